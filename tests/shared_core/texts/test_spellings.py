"""Every place that splits texts reads words and names as people and converters write them."""

from __future__ import annotations

import pytest

from setselect import TopK, find_references, match_words
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult, judge
from shared_core.texts.names import find_names
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text
from tests.shared_core.texts.spellings import KINDS, ROWS, Row

OTHER = "zzz"


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_every_reader_of_words_and_names_reads_the_same(kind: str, row: Row) -> None:
    texts = [row.text, OTHER]
    assert match_words(row.sought, texts).covered.any(axis=1).tolist() == [row.has, False]
    assert WordIndex(texts).best_rows(row.sought, 2)[0].tolist() == [0] * row.has
    # The measure "answers", and the words of the question that the report shows.
    query = Query("1", row.sought, answers=(row.sought,))
    documents = [Document(str(i), text) for i, text in enumerate(texts)]
    view = judge(query, SearchResult([1.0, 0.0], documents, [[1.0, 0.5], [1.0, 0.6]]), [TopK()], [1], view=True).view
    assert view is not None
    for held in ([one.parts for one in view.candidates], [one.words for one in view.candidates]):
        assert list(map(bool, held)) == [row.has, False]
    if row.names is not None:
        titles = [row.sought, *(f"Another title {letter}" for letter in "ABC")]
        assert find_references(["", row.text, OTHER, OTHER], titles).strength[1, 0] == row.names
    # The names for which ``follow`` searches: those of two words and more, as they are written in the text.
    if row.names and len(row.sought.split()) > 1:
        name, *_ = find_names([row.text], [])
        assert Text(name).has_phrase(Text(row.sought))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_words_that_are_there_and_words_that_are_not(kind: str) -> None:
    values = [row.has for row in KINDS[kind]]
    assert len(values) >= 8
    assert 0 < sum(values) < len(values)
