"""The index of words, against BM25 by loops, and against an index that is made anew."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import InvalidInputError
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text
from tests import oracles

WORDS = ["lamp", "red", "fuse", "disk", "error", "port"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), max_size=12)
# Accents that some texts have, scripts without spaces, identifiers, marks at the start of a pair.
ODD = ["résumé", "resume", "RESUME", "naive", "北京大学", "京", "getUserById", "user id", "บ้าน", "่า", "the", ""]
ODD_TEXTS = st.lists(st.lists(st.sampled_from([*ODD, *WORDS]), max_size=4).map(" ".join), max_size=8)


def hits(index: WordIndex, question: str, n: int = 20, passes: Callable[[int], bool] | None = None) -> list[int]:
    rows, scores = index.best_rows(question, n, passes)
    assert len(rows) == len(scores)
    assert (np.diff(scores) <= 0).all()
    found: list[int] = rows.tolist()
    return found


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.lists(st.sampled_from([*WORDS, "absent"]), max_size=6), st.integers(1, 15), st.integers(1, 3))
def test_rows_and_scores_are_those_of_the_formula(
    texts: list[list[str]], question: list[str], n: int, every: int
) -> None:
    wanted = oracles.bm25(question, texts)
    index = WordIndex([" ".join(text) for text in texts])
    for passes in (None, lambda row: row % every == 0):
        rows, scores = index.best_rows(" ".join(question), n, passes)
        allowed = [row for row in range(len(texts)) if wanted[row] > 0 and (passes is None or passes(row))]
        assert len(rows) == min(n, len(allowed))
        np.testing.assert_allclose(scores, wanted[rows], rtol=1e-5)
        order = list(zip(-scores, rows.tolist(), strict=True))
        assert order == sorted(order)
        left = [row for row in allowed if row not in rows]
        assert all(wanted[row] <= scores.min() + 1e-5 for row in left)
        # Of equal texts the lower row comes first.
        assert all(texts[row] != texts[other] or row > other for row in left for other in rows)


@settings(max_examples=60, deadline=None)
@given(ODD_TEXTS, ODD_TEXTS, st.lists(st.sampled_from([*ODD, *WORDS]), max_size=3).map(" ".join))
def test_what_an_earlier_index_or_a_pickle_gives_is_an_index_made_anew(
    before: list[str], texts: list[str], question: str
) -> None:
    anew, earlier = WordIndex(texts), WordIndex(before)
    with mock.patch("shared_core.texts.word_index.Text", wraps=Text) as split:
        later = WordIndex(texts, earlier)
    assert sorted(call.args[0] for call in split.call_args_list) == sorted({*texts} - {*before})
    for index in (later, pickle.loads(pickle.dumps(later))):
        for wanted, found in zip(anew.best_rows(question, 5), index.best_rows(question, 5), strict=True):
            np.testing.assert_array_equal(wanted, found)


def test_words_are_those_of_the_selection_without_english_stop_words_and_stemming() -> None:
    index = WordIndex(["loaves", "a loaf", "A loaf", "the", "北京大学在北京", "getUserById()", "Das Café", "ein Cafe"])
    assert hits(index, "Loaf!") == [1, 2]
    assert hits(index, "Loaf!", 1) == [1]
    assert hits(index, "北京") == hits(index, "北") == [4]
    assert hits(index, "user") == [5]
    assert {*hits(index, "cafe")} == {*hits(index, "café")} == {6, 7}
    assert hits(WordIndex(["un thé", "Thé à la menthe"]), "the menthe") == [1]
    assert hits(index, "the zyzzyva") == hits(index, "") == hits(index, "?!") == []


def test_words_weigh_their_inverse_document_frequency() -> None:
    index = WordIndex(["red lamp", "red red fuse", "the red café", "getUser"])
    terms = ["red", "lamp", "café", "cafe", "user", "the", "zyzzyva", "lámp"]
    three, one = np.log1p(1.5 / 3.5), np.log1p(3.5 / 1.5)
    np.testing.assert_allclose(index.weigh(terms), [three, one, one, one, one, 0, 0, one], rtol=1e-12)
    assert WordIndex([*index.texts, "cafe"]).weigh(["cafe", "café"]).tolist() == [np.log1p(3.5 / 2.5)] * 2
    assert WordIndex([]).weigh(["red"]).tolist() == [0]
    assert index.weigh([]).tolist() == []


@pytest.mark.parametrize("texts", [[], [""], ["the", "a"], ["", "?"]])
def test_without_a_word_nothing_is_found(texts: list[str]) -> None:
    for index in (
        WordIndex(texts),
        WordIndex(texts, WordIndex(["lamp"])),
        pickle.loads(pickle.dumps(WordIndex(texts))),
    ):
        assert hits(index, "the lamp") == hits(index, "lamp", passes=lambda row: True) == []
    assert hits(WordIndex([*texts, "lamp"], WordIndex(texts)), "lamp") == [len(texts)]


def test_a_pickle_does_not_hold_the_matrix() -> None:
    index = WordIndex(["lamp fuse"] * 50)
    size = len(pickle.dumps(index))
    assert hits(index, "fuse", 2) == [0, 1]
    assert len(pickle.dumps(index)) < size + 500


@pytest.mark.parametrize("bad", [None, float("nan"), 3, b"lamp"])
def test_a_text_that_is_none_is_refused_by_its_row(bad: object) -> None:
    with pytest.raises(InvalidInputError, match="row 1 "):
        WordIndex(["lamp", bad])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="'lamp'"):
        WordIndex("lamp")


def test_a_hostile_question_takes_linear_time() -> None:
    index = WordIndex([f"word{i % 50} lamp fuse" for i in range(5_000)])
    started = time.perf_counter()
    assert len(hits(index, "lamp " * 200_000)) == 20
    assert len(hits(index, " ".join(f"word{i}" * (1 + i % 3) for i in range(50_000)))) == 20
    assert time.perf_counter() - started < 20
