"""What comes out of each class besides the picks: order, metadata, scores, distinct texts, events and log lines."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setselect import MMR, SetSelectWarning, select
from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RERANKERS,
    ROWS,
    SUBJECTS,
    VECTORS,
    Row,
    Subject,
    expected,
    metadata,
    name_of,
    nearest,
    numbers,
    over,
    unit,
)
from tests.embedding import DIMENSION, embed

OVER_ALL_CLASSES = over(SUBJECTS)
SELECTORS = "similarity", "vrsd", "mmr", "ndpp", "coverage"
SCORES = {"relevance_score", "selection_score", "selection_reason"}
# The example selectors of LangChain return examples as they were stored, and send no event.
WITH_EVENTS = over([s for s in SUBJECTS if s is not EXAMPLES[0]])


def places(ranked: list[int], order: str) -> list[int]:
    """Rows, the most relevant first, in one of the orders."""
    if order == "long_context":
        return ranked[::2] + ranked[1::2][::-1]
    return ranked if order == "relevance" else ranked[::-1]


@OVER_ALL_CLASSES
async def test_a_budget_into_which_nothing_fits_gives_nothing_and_a_warning_at_the_users_line(subject: Subject) -> None:
    made = subject.make(subject.corpus(), budget=0.5, costs="tokens")
    with pytest.warns(SetSelectWarning, match="budget") as told:
        assert subject.run(made, ROWS) == await subject.arun(made, ROWS) == []
    assert {Path(one.filename).parent for one in told} == {Path(__file__).parent}
    # The only item that fits was shown.
    first = nearest(1)[0]
    settings = {"costs": lambda item: metadata(item)["number"] != first, "shown": [ROWS[first].id]}
    with pytest.warns(SetSelectWarning, match="budget"):
        assert subject.run(subject.make(subject.corpus(), budget=0.5, **settings), ROWS) == []


@OVER_ALL_CLASSES
@pytest.mark.parametrize("order", ["relevance", "nearest_last", "long_context"])
def test_orders_go_by_relevance_cosine_or_given(subject: Subject, order: str) -> None:
    rows = nearest(30)
    picks = expected(rows, 5, "mmr")
    by_cosine = sorted(picks, key=rows.index)
    assert picks != by_cosine, "the orders must differ for this test to test anything"
    assert subject.select(rows, k=5, selector="mmr", order=order) == places(by_cosine, order)
    by_number = sorted(expected(rows, 5, "mmr", relevance=rows), reverse=True)
    found = subject.select(rows, k=5, selector="mmr", order=order, relevance="number")
    assert found == places(by_number, order)


@OVER_ALL_CLASSES
def test_results_are_what_the_store_holds_and_changing_them_changes_nothing(subject: Subject) -> None:
    store = subject.corpus()
    given = [ROWS[row] for row in nearest()]
    made = subject.make(store)
    found = subject.run(made, given)
    assert [metadata(result) for result in found] == [ROWS[number].metadata for number in numbers(found)]
    assert [id_of(result) for result in found] in ([ROWS[number].id for number in numbers(found)], [None] * 4)
    if subject in EXAMPLES:
        for result in found:
            result.clear()
    assert numbers(subject.run(made, given)) == expected(nearest())


def id_of(result: Any) -> Any:
    return getattr(result, "node_id", None) or getattr(result, "id", None)


@WITH_EVENTS
async def test_scores_are_added_to_copies_and_overwrite_nothing(subject: Subject) -> None:
    rows = [
        row._replace(metadata={**row.metadata, "relevance_score": "theirs"} if i % 2 else row.metadata)
        for i, row in enumerate(ROWS)
    ]
    store = subject.open(rows, subject.kinds[0])
    given = [rows[row] for row in nearest()]
    told: list[Any] = []
    made = subject.make(store, k=6, selector="mmr", scores=True)
    found = subject.run(made, given, told)
    assert await subject.arun(made, given) == found
    columns = (told[0][key] for key in ("relevance", "gains", "reasons"))
    for result, relevance, gain, reason in zip(found, *columns, strict=True):
        number = metadata(result)["number"]
        assert relevance == pytest.approx(float(VECTORS[number] @ unit(embed(QUERY))), abs=1e-9)
        ours = "selection_relevance" if "relevance_score" in rows[number].metadata else "relevance_score"
        assert reason == f"relevance {relevance:.3g}"
        added = {ours: relevance, "selection_score": gain, "selection_reason": reason}
        assert metadata(result) == added | rows[number].metadata
        metadata(result).clear()
    assert subject.run(made, given) != found
    assert numbers(subject.run(subject.make(store, k=6, selector="mmr"), given)) == expected(nearest(), 6, "mmr")
    assert all(
        SCORES.isdisjoint(metadata(result).keys() - {"relevance_score"})
        for result in subject.run(subject.make(store), given)
    )


@over(RERANKERS)
def test_the_first_of_items_with_one_id_counts(subject: Subject) -> None:
    told: list[Any] = []
    twins = [row._replace(metadata={"number": -1}) for row in ROWS]
    found = subject.run(subject.make(subject.corpus(), k=50), [*ROWS, *twins], told)
    assert numbers(found) == expected(range(60), 50)
    assert told[0]["candidates"] == 60, "the distinct ids"


# Repeated texts, and searches that constraints widen


def thrice(texts: int = 40) -> list[Row]:
    """Each text three times, with vectors that are nearly the same."""
    rng = np.random.default_rng(0)
    near = unit(embed(QUERY)) + rng.normal(scale=0.3, size=(texts, DIMENSION))
    return [
        Row(f"id-{i}", f"text {i // 3}", {"number": i}, unit(near[i // 3] + rng.normal(scale=1e-3, size=DIMENSION)))
        for i in range(3 * texts)
    ]


@functools.cache
def opened(subject: Subject, kind: str) -> tuple[list[Row], Any]:
    """The rows of ``thrice()`` and a store of them."""
    return thrice(), subject.open(thrice(), kind)


@OVER_ALL_CLASSES
@pytest.mark.parametrize("selector", SELECTORS)
async def test_each_text_comes_once_and_k_texts_come_whenever_there_are_k(subject: Subject, selector: str) -> None:
    for kind in subject.kinds:
        rows, store = opened(subject, kind)
        paid = {"budget": 40, "costs": lambda item: 1}
        for settings in ({"k": 10}, {"k": 10, "fetch_k": 11}, {"k": 40, "fetch_k": 41, **paid}, {"k": 50}):
            if not subject.searches:
                settings.pop("fetch_k", None)
            made = subject.make(store, selector=selector, **settings)
            found = numbers(subject.run(made, rows))
            assert len({number // 3 for number in found}) == len(found) == min(settings["k"], 40)
            assert numbers(await subject.arun(made, rows)) == found


@OVER_ALL_CLASSES
def test_texts_that_were_shown_do_not_come_back_and_repeated_ones_are_kept_on_request(subject: Subject) -> None:
    rows, store = opened(subject, subject.kinds[0])
    first = numbers(subject.run(subject.make(store, k=10), rows))
    rest = numbers(subject.run(subject.make(store, k=10, shown=[f"id-{number}" for number in first]), rows))
    assert len({number // 3 for number in first + rest}) == 20
    kept = subject.make(store, k=9, selector="similarity", drop_duplicates=False)
    assert len({number // 3 for number in numbers(subject.run(kept, rows))}) < len(subject.run(kept, rows)) == 9


@OVER_ALL_CLASSES
@pytest.mark.parametrize("selector", SELECTORS)
def test_of_a_repeated_text_the_preferred_one_counts_else_the_most_relevant_else_the_first(
    subject: Subject, selector: str
) -> None:
    days = ["2026-03-01", None, "2026-03-01T12:00:00+01:00", *["2025-12-31"] * 9]
    rows = [row._replace(metadata={"number": i, "worth": i, "day": days[i]}) for i, row in enumerate(thrice(4))]
    # The first copy is the nearest. Where one document is selected, no text is selected twice.
    rows = [row._replace(vector=unit(embed(QUERY)) - i * 1e-4) for i, row in enumerate(rows)]
    store = subject.open(rows, subject.kinds[0])

    def select_with(**settings: Any) -> list[int]:
        return sorted(numbers(subject.run(subject.make(store, **{"k": 4, "selector": selector, **settings}), rows)))

    assert select_with() == [0, 3, 6, 9]
    assert select_with(prefer="day", k=1) == [2]
    assert select_with(prefer="day") == [2, 3, 6, 9]
    if selector != "vrsd":
        assert select_with(relevance="worth") == [2, 5, 8, 11]
        assert select_with(prefer="day", relevance="worth") == [2, 5, 8, 11], "it decides among equal values"
    assert select_with(prefer="day", k=1, shown=["id-0"]) != [2], "a shown text does not come back in another copy"


@OVER_ALL_CLASSES
@pytest.mark.parametrize("prefer", [{}, {"prefer": "number"}], ids=name_of)
def test_a_copy_that_cannot_be_selected_leaves_its_place_to_one_that_can(
    subject: Subject, prefer: dict[str, Any]
) -> None:
    # The last copy of each text is preferred, and has the highest worth. It costs more than the whole budget.
    rows = [
        row._replace(metadata={"number": i, "worth": i, "cost": [3, 1, 9][i % 3], "close": [0, 1, -1][i % 3]})
        for i, row in enumerate(thrice(4))
    ]
    store = subject.open(rows, subject.kinds[0])
    settings: list[dict[str, Any]] = [{"selector": "similarity", "budget": 8, "costs": "cost", "relevance": "worth"}]
    if prefer:
        settings.append({**settings[0], "drop_duplicates": False, "drop_near_duplicates": 0.999})
        settings.append({"score_threshold": 0.5, "relevance": "close"})
    for more in settings:
        assert sorted(numbers(subject.run(subject.make(store, k=4, **prefer, **more), rows))) == [1, 4, 7, 10]


# Events


@WITH_EVENTS
async def test_the_event_holds_the_selection(subject: Subject) -> None:
    rows = nearest()
    made = subject.make(subject.corpus(), k=5, selector="mmr", lambda_mult=0.25, order="nearest_last")
    told: list[dict[str, Any]] = []
    found = subject.run(made, [ROWS[row] for row in rows], told)
    await subject.arun(made, [ROWS[row] for row in rows], told)
    wanted = select(embed(QUERY), VECTORS[rows], 5, "mmr", lambda_mult=0.25)
    common = {
        "selector": repr(MMR(lambda_mult=0.25)),
        "fetch_k": 50 if subject.searches else None,
        "candidates": 50,
        "vector_source": made.vector_source,
    }
    assert len(told) == 2
    for event in told:
        assert event.items() >= (common | {"k": 5, "filled_from": None}).items()
        assert event["ids"] == [f"doc-{rows[i]}" for i in wanted.indices]
        assert {int(name[4:]) for name in event["ids"]} == set(numbers(found))
        assert event["gains"] == pytest.approx(wanted.gains.tolist(), abs=1e-9)
        assert event["relevance"] == pytest.approx(wanted.relevance.tolist(), abs=1e-9)
        assert event["milliseconds"] > 0
