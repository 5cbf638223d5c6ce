"""Settings whose candidates a search by words finds too, against ``select`` over the united candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from shared_core import select
from shared_core.evaluation.compare import compare, compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison, QueryView

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


SEARCHED = [Document(f"d{row}", text) for row, text in enumerate(TEXTS)]


def searched(**more: Any) -> SearchResult:
    order = [*NEAREST[:10].tolist(), FAR]
    return SearchResult(QUERY, [SEARCHED[row] for row in order], VECTORS[order], candidates=10, **more)


def test_a_search_of_ones_own_names_what_it_found_by_words_or_the_row_is_left_out() -> None:
    question = Query("1", "E1234", gold=(f"d{FAR}",))
    found = compare_candidates([question], lambda query: searched(by_words=[10, 0]), k=3)
    assert f"d{FAR}" in picked(found)
    assert not any(ROW in note for note in found.notes)
    without = compare_candidates([question], lambda query: searched(), k=3)
    assert [one.label for one in without.settings] == [one.label for one in found.settings if one.label != ROW]
    assert sum(ROW in note for note in without.notes) == 1
    nothing = compare_candidates([question], lambda query: searched(by_words=[]), k=3)
    assert picked(nothing) == picked(nothing, "coverage")
