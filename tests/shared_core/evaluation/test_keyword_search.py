"""Settings whose candidates a search by words finds too, against ``select`` over the united candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_core import select
from shared_core.errors import InvalidInputError
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison, QueryView
from shared_core.evaluation.settings import named

ROW = "coverage keyword_search=True"
RNG = np.random.default_rng(3)
VECTORS = RNG.normal(size=(60, 8))
QUERY = RNG.normal(size=8)
COSINES = VECTORS @ QUERY / np.linalg.norm(VECTORS, axis=1)
NEAREST = np.argsort(-COSINES, kind="stable")
# The 15th document has the code. All have the same length and the word "report", so that ties go to the lower row.
FAR = int(NEAREST[14])
TEXTS = [f"report {'E1234' if row == FAR else 'none'} number {row}" for row in range(60)]
BY_WORDS = [FAR, *(row for row in range(60) if row != FAR)][:25]


def documents(texts: list[str] = TEXTS) -> list[dict[str, Any]]:
    return [{"id": f"d{row}", "text": text} for row, text in enumerate(texts)]


def picked(found: Comparison, label: str = ROW, query: int = 0) -> list[str]:
    at = [setting.label for setting in found.settings].index(label)
    view: QueryView = found.queries[query]
    return [view.candidates[i].id for i in view.picks[at]]


def test_the_default_selects_from_the_nearest_and_the_25_best_by_words() -> None:
    question: dict[str, Any] = {"text": "Which report has E1234?", "gold": [f"d{FAR}"]}
    found = compare(documents(), [question], (VECTORS, [QUERY]), k=5, fetch_k=10)
    united = list(dict.fromkeys([*NEAREST[:10].tolist(), *BY_WORDS]))
    read: Any = {"question": question["text"], "texts": [TEXTS[row] for row in united]}
    expected = [f"d{united[i]}" for i in select(QUERY, VECTORS[united], 5, **read).indices]
    assert picked(found) == expected
    recall = {setting.label: found.values[at, "recall"].mean for at, setting in enumerate(found.settings)}
    assert {label for label, value in recall.items() if value} == {ROW, "sum of scores"}
    near = {f"d{row}" for row in NEAREST[:10]}
    assert {one.id: one.beyond for one in found.queries[0].candidates} == {
        name: name not in near
        for name in near | set(expected) | {*picked(found, "hybrid search"), *picked(found, "sum of scores")}
    }


def test_a_setting_of_ones_own_selects_from_them_too() -> None:
    scores = {f"d{row}": float(row % 7) for row in range(60) if row % 2 or row == FAR}
    question: dict[str, Any] = {"text": "Which report has E1234?", "scores": scores}
    settings = [
        named("similarity"),
        named("mmr", lambda_mult=0.7, keyword_search=True),
        named("coverage", keyword_search=True, relevance="scores"),
        named("ndpp", keyword_search=False),
    ]
    found = compare(documents(), [question], (VECTORS, [QUERY]), k=4, fetch_k=10, settings=settings)
    united = list(dict.fromkeys([*NEAREST[:10].tolist(), *BY_WORDS]))
    by_mmr = select(QUERY, VECTORS[united], 4, selector="mmr", lambda_mult=0.7)
    assert picked(found, settings[1][0].label) == [f"d{united[i]}" for i in by_mmr.indices]
    scored = [row for row in united if f"d{row}" in scores]
    by_scores = select(
        QUERY,
        VECTORS[scored],
        4,
        relevance=[scores[f"d{row}"] for row in scored],
        question=question["text"],
        texts=[TEXTS[row] for row in scored],
    )
    assert picked(found, settings[2][0].label) == [f"d{scored[i]}" for i in by_scores.indices]
    near = NEAREST[:10]
    plain = select(QUERY, VECTORS[near], 4, selector="ndpp")
    assert picked(found, settings[3][0].label) == [f"d{near[i]}" for i in plain.indices]


def test_a_question_and_its_sub_questions_share_the_25() -> None:
    # Each of three words is in 12 texts. BM25 ranks shorter texts higher, so the 9 shortest are the best.
    words = ["alpha", "beta", "gamma"]
    texts = [f"{words[row // 12]}{' filler' * (row % 12)}" if row < 36 else f"other {row}" for row in range(60)]
    queries = RNG.normal(size=(3, 8))
    asked = {"text": "alpha?", "sub_questions": ["beta?", "gamma?"]}
    found = compare(documents(texts), [asked], (VECTORS, queries), k=6, fetch_k=9)
    cosines = VECTORS @ queries.T / np.linalg.norm(VECTORS, axis=1)[:, None]
    near = [row for one in cosines.T for row in np.argsort(-one, kind="stable")[:6].tolist()]
    by_words = [12 * word + row for word in range(3) for row in range(9)]
    united = list(dict.fromkeys([*near, *by_words]))
    read: Any = {"question": ["alpha?", "beta?", "gamma?"], "texts": [texts[row] for row in united]}
    assert picked(found) == [f"d{united[i]}" for i in select(queries, VECTORS[united], 6, **read).indices]


def test_all_documents_of_a_small_corpus_are_candidates_of_every_setting() -> None:
    found = compare(documents()[:3], ["report E1234"], (VECTORS[:3], [QUERY]), k=2)
    assert picked(found) == picked(found, "coverage")
    assert not any(one.beyond for one in found.queries[0].candidates)
    # No text has a word of the question.
    nothing = compare(documents(), ["zyzzyva"], (VECTORS, [QUERY]), k=5, fetch_k=10)
    assert picked(nothing) == picked(nothing, "coverage")


@pytest.mark.parametrize("drop_duplicates", [True, False])
def test_a_copy_that_the_words_find_counts_once(drop_duplicates: bool) -> None:
    # The words find both copies of the far text, and the gold id stands for either.
    texts, vectors = [*TEXTS, TEXTS[FAR]], np.vstack([VECTORS, VECTORS[FAR]])
    question: dict[str, Any] = {"text": "E1234", "gold": ["d60"]}
    options: dict[str, Any] = {"k": 3, "fetch_k": 10, "drop_duplicates": drop_duplicates}
    found = compare(documents(texts), [question], (vectors, [QUERY]), **options)
    picks = picked(found)
    assert len(picks) == len(set(picks)) == 3
    copies = {f"d{FAR}", "d60"} & set(picks)
    assert copies == {"d60"} if drop_duplicates else f"d{FAR}" in copies


SEARCHED = [Document(f"d{row}", text) for row, text in enumerate(TEXTS)]


def searched(**more: Any) -> SearchResult:
    order = [*NEAREST[:10].tolist(), FAR]
    return SearchResult(QUERY, [SEARCHED[row] for row in order], VECTORS[order], candidates=10, **more)


def test_a_search_of_ones_own_names_what_it_found_by_words_or_the_row_is_left_out() -> None:
    question = Query("1", "E1234", gold=(f"d{FAR}",))
    found = compare_candidates([question], lambda query: searched(by_words=np.array([10, 0])), k=3)
    assert f"d{FAR}" in picked(found)
    assert not any(ROW in note for note in found.notes)
    without = compare_candidates([question], lambda query: searched(), k=3)
    assert [one.label for one in without.settings] == [one.label for one in found.settings if one.label != ROW]
    assert sum(ROW in note for note in without.notes) == 1
    nothing = compare_candidates([question], lambda query: searched(by_words=[]), k=3)
    assert picked(nothing) == picked(nothing, "coverage")


def test_candidates_by_words_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"query '\?': by_words must be in 0..10, got 11..11"):
        compare_candidates(["?"], lambda query: searched(by_words=[11]), k=3)
    given = {"1": searched(by_words=[]), "2": searched()}
    with pytest.raises(InvalidInputError, match=r"query '\?' has by_words True, and query '!' has False"):
        compare_candidates(["?", "!"], lambda query: given[query.id], k=3)


def test_a_document_that_only_the_words_find_covers_its_subtopic() -> None:
    labelled = replace(searched(by_words=[10]), documents=[
        replace(one, subtopics=("code",) if one.id == f"d{FAR}" else ()) for one in searched().documents
    ])  # fmt: skip
    found = compare_candidates([{"text": "E1234", "subtopics": ["code"]}], lambda query: labelled, k=3)
    recall = {one.label: found.values[at, "subtopic_recall"].mean for at, one in enumerate(found.settings)}
    assert (recall[ROW], recall["coverage"]) == (1, 0)
