"""The route: up to k candidates, with a threshold, without errors where candidates run short; ``select`` on scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from setselect import (
    SCALES,
    Candidates,
    Coverage,
    InvalidParameterError,
    Selection,
    Selector,
    SetSelectWarning,
    rescale,
    select,
    select_many,
)
from shared_core.selection.route import Limits, select_set
from tests import oracles
from tests.shared_core.cases import PAIRS, RELEVANCE_PAIRS, TOP_K, VRSD_GREEDY, Pair, gaussian, names, random_cases


def select_up_to(
    candidates: Candidates, selector: Selector, k: int, shown: Sequence[int] = (), **limits: Any
) -> Selection:
    return select_set(candidates, selector, k, shown=[*shown], relevance_scale=None, limits=Limits(**limits))


every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)
relevance_pairs = pytest.mark.parametrize("pair", RELEVANCE_PAIRS, ids=names)


@every_pair
def test_without_a_threshold_the_selection_is_that_of_the_selector(pair: Pair) -> None:
    for case in random_cases(60, 30):
        expected = pair.selector.select(case.candidates, case.k)
        found = select_up_to(case.candidates, pair.selector, case.k)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.gains.tolist() == expected.gains.tolist()
        assert (found.objective, found.filled_from) == (expected.objective, expected.filled_from)


@every_pair
def test_a_k_above_the_number_of_candidates_selects_all_of_them(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 6, 9))
    assert sorted(select_up_to(candidates, pair.selector, 100).indices.tolist()) == list(range(6))
    assert sorted(select_up_to(candidates, pair.selector, 100, shown=[2, 0]).indices.tolist()) == [1, 3, 4, 5]


@every_pair
def test_only_candidates_at_or_above_the_threshold_are_selected_with_their_columns(pair: Pair) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 30, 12)
        rng = np.random.default_rng(seed)
        columns = {"quality": rng.normal(size=30), "costs": rng.integers(1, 5, size=30).astype(float)}
        cos = oracles.cosines(query, vectors)
        kept = np.flatnonzero(cos >= 0.1)
        candidates = Candidates(query, vectors, **columns)
        selection = select_up_to(candidates, pair.selector, 4, budget=9, score_threshold=0.1)
        part = Candidates(query, vectors[kept], **{name: column[kept] for name, column in columns.items()})
        expected = pair.selector.select(part, min(4, len(kept)), budget=9)
        assert selection.indices.tolist() == kept[expected.indices].tolist()
        np.testing.assert_allclose(selection.relevance, cos[selection.indices], rtol=0, atol=1e-12)
        np.testing.assert_allclose(selection.gains, expected.gains, rtol=1e-9, atol=1e-12)
        assert selection.objective == pytest.approx(expected.objective)


def test_a_cosine_equal_to_the_threshold_passes() -> None:
    candidates = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert select_up_to(candidates, TOP_K.selector, 3, score_threshold=0.0).indices.tolist() == [0, 1]
    for seed in range(200):
        rng = np.random.default_rng(seed)
        query, other = rng.normal(size=(2, int(rng.integers(1, 1600)))).astype(np.float32)
        scale = np.float32(10.0) ** rng.integers(-15, 15, size=2).astype(np.float32)
        copy = Candidates(scale[0] * query, np.stack([other, scale[1] * query]))
        assert 1 in select_up_to(copy, TOP_K.selector, 2, score_threshold=1.0).indices, seed


@every_pair
def test_with_no_open_candidate_the_selection_is_empty(pair: Pair) -> None:
    query, vectors = gaussian(8, 6, 9)
    for conditions, call in (
        ({}, {"score_threshold": 0.999}),
        ({}, {"shown": range(6)}),
        ({"sources": "aaaaaa", "max_per_source": 1}, {"shown": [4]}),
        ({"drop_near_duplicates": -1.0}, {"shown": [4], "score_threshold": -1.0}),
        # Candidates 1 and 2 fit the budget and are of the source of candidate 0. The others do not fit.
        ({"costs": [1.0] * 3 + [9.0] * 3, "sources": "aaabbb", "max_per_source": 1}, {"budget": 5, "shown": [0]}),
    ):
        candidates = pair.candidates(query, vectors, **conditions)  # type: ignore[arg-type]
        selection = select_up_to(candidates, pair.selector, 2, **call)  # type: ignore[arg-type]
        assert selection.indices.shape == selection.gains.shape == selection.relevance.shape == (0,)
        assert selection.indices.dtype == np.int64
        assert (selection.objective, selection.filled_from) == (0.0, None)


@pytest.mark.parametrize("score_threshold", [None, -1.0, 0.0])
def test_a_budget_into_which_no_candidate_fits_selects_nothing(score_threshold: float | None) -> None:
    query, vectors = gaussian(1, 11, 12)
    costs = np.full(11, 5.0)
    # It fits, and is below the threshold or was shown.
    last = int(np.argmin(oracles.cosines(query, vectors)))
    costs[last] = 1.0
    candidates = Candidates(query, vectors, costs=costs)
    shown = [] if score_threshold == 0.0 else [last]
    with pytest.warns(SetSelectWarning, match="nothing fits .* costs 5"):
        found = select_up_to(
            candidates, VRSD_GREEDY.selector, 3, budget=4.0, score_threshold=score_threshold, shown=shown
        )
    assert not len(found)


@every_pair
def test_shown_holds_rows_of_the_given_candidates_below_the_threshold_too(pair: Pair) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 20, 12)
        cos = oracles.cosines(query, vectors)
        above = np.flatnonzero(cos >= 0)
        # The reader has seen the last one, whatever its cosine with this query is.
        shown = [int(above[-1]), int(above[0]), int(np.argmin(cos))]
        kept = np.flatnonzero((cos >= 0) | (np.arange(20) == shown[2])).tolist()
        k = min(3, len(kept) - 3)
        found = select_up_to(Candidates(query, vectors), pair.selector, k, shown=shown, score_threshold=0.0)
        expected = pair.selector.select(Candidates(query, vectors[kept]), k, shown=[kept.index(i) for i in shown])
        assert found.indices.tolist() == [kept[i] for i in expected.indices]


def test_a_threshold_keeps_the_row_that_names_a_pick() -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 20, 12)
        kept = np.flatnonzero(oracles.cosines(query, vectors) >= 0)
        references = np.random.default_rng(seed).random((20, 20)) < 0.2
        candidates = Candidates(query, vectors, references=references)
        shown = kept[-2:-1].tolist()
        found = select_up_to(candidates, Coverage(), 5, shown=shown, score_threshold=0.0)
        assert found.referred_by is not None
        oracles.assert_referred_by(found.referred_by, references, found.indices.tolist(), shown)
        assert set(found.referred_by.tolist()) <= {-1, *kept.tolist()}


# --- a given relevance ----------------------------------------------------------------------------


@relevance_pairs
def test_the_threshold_applies_to_a_given_relevance_of_any_size(pair: Pair) -> None:
    query, vectors = gaussian(4, 20, 12)
    relevance = np.random.default_rng(4).normal(scale=30, size=20)
    kept = np.flatnonzero(relevance >= -12.5)
    found = select_up_to(Candidates(query, vectors, relevance=relevance), pair.selector, 5, score_threshold=-12.5)
    expected = pair.selector.select(Candidates(query, vectors[kept], relevance=relevance[kept]), 5)
    assert found.indices.tolist() == kept[expected.indices].tolist()
    assert found.relevance.tolist() == relevance[found.indices].tolist()
    # The threshold and the result have the numbers as they were before they are scaled.
    candidates = Candidates(query, vectors, relevance=relevance)
    scaled = select_set(candidates, pair.selector, 5, limits=Limits(score_threshold=-12.5))
    expected = pair.selector.select(candidates.with_values(rescale(relevance)).take(kept), 5)
    assert scaled.indices.tolist() == kept[expected.indices].tolist()
    assert scaled.relevance.tolist() == relevance[scaled.indices].tolist()


def test_a_given_relevance_at_the_threshold_passes_and_one_bit_below_does_not() -> None:
    relevance = [0.7, np.nextafter(0.7, 0), 0.9]
    candidates = Candidates([1.0, 0.0], np.ones((3, 2), np.float32), relevance=relevance)
    assert select_up_to(candidates, TOP_K.selector, 3, score_threshold=0.7).indices.tolist() == [2, 0]


@pytest.mark.parametrize("relevance", [None, [0.1, 0.2]])
def test_an_unknown_scale_is_refused_with_and_without_a_relevance(relevance: Any) -> None:
    with pytest.raises(InvalidParameterError, match="relevance_scale must be one of minmax"):
        select([1.0, 0.0], np.eye(2), 1, relevance=relevance, relevance_scale="max")  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [*SCALES, None])
@relevance_pairs
def test_select_is_the_selector_on_scaled_relevance(pair: Pair, scale: Any) -> None:
    for case in random_cases(62, 40):
        n = len(case.vectors)
        scores = case.rng.normal(scale=3, size=n) if case.number % 2 else case.rng.integers(-3, 4, size=n)
        more: dict[str, Any] = {"quality": case.quality} if pair.with_quality else {}
        more |= {"relevance_scale": scale}
        found = select(case.query, case.vectors, case.k, pair.selector, relevance=scores, **more)
        relevance, quality = rescale(scores, scale), more.get("quality")
        candidates = Candidates(case.query, case.vectors, relevance=relevance, quality=quality)
        expected = pair.selector.select(candidates, case.k)
        np.testing.assert_array_equal(found.indices, expected.indices, err_msg=str(case))
        np.testing.assert_array_equal(found.gains, expected.gains, err_msg=str(case))
        assert (found.objective, found.filled_from) == (expected.objective, expected.filled_from)
        assert found.relevance.tolist() == scores[found.indices].tolist()
        assert not found.relevance.flags.writeable
        both = select_many([case.query] * 2, case.vectors, case.k, pair.selector, relevance=[scores, -scores], **more)
        assert both.relevance.tolist() == [scores[both.indices[0]].tolist(), (-scores)[both.indices[1]].tolist()]


def test_the_cosine_is_the_relevance_by_name_too() -> None:
    query, vectors = gaussian(4, 9, 5)
    named = select(query, vectors, 3, "mmr", relevance="cosine")
    assert named.indices.tolist() == select(query, vectors, 3, "mmr").indices.tolist()
    many = select_many([query], vectors, 3, "mmr", relevance="cosine")
    assert many.indices[0].tolist() == named.indices.tolist()


@every_pair
def test_min_gain_ends_the_set_before_the_first_gain_below_that_share(pair: Pair) -> None:
    ended = 0
    for case in random_cases(30, 25):
        query, vectors = case.candidates.query, case.candidates.vectors
        full = select(query, vectors, min(10, len(vectors)), pair.selector)
        worth = np.exp(np.minimum(full.gains, 0)) if isinstance(pair.selector, Coverage) else full.gains / full.gains[0]
        for min_gain, min_k in ((0.05, 1), (0.5, 1), (0.5, 3), (1.0, 2)):
            count = next((i for i in range(min_k, len(worth)) if worth[i] < min_gain), len(worth))
            found = select(query, vectors, len(full), pair.selector, min_gain=min_gain, min_k=min_k)
            smaller = select(query, vectors, min(count, len(full)), pair.selector)
            assert (found.indices.tolist(), found.objective) == (smaller.indices.tolist(), smaller.objective)
            ended += len(found) < len(full)
    assert ended


def test_min_gain_measures_coverage_by_the_most_relevant_candidate_alone() -> None:
    vectors, texts = [[1.0, 0.0], [1.0, 0.1], [0.2, 1.0]], ["red", "red too", "blue"]
    asked = {"question": "red or blue?", "texts": texts}
    gains = select([1.0, 0.5], vectors, 3, **asked).gains
    assert gains[0] > 1 > gains[1] > 0 > gains[2], "the second word is worth more than a candidate without words"
    assert len(select([1.0, 0.5], vectors, 3, **asked, min_gain=1.0, min_k=1)) == 2
    assert len(select([1.0, 0.5], vectors, 3, **asked, min_gain=float(np.exp(gains[2])) - 1e-6)) == 3


@pytest.mark.parametrize("given", [{"min_gain": 1.5}, {"min_gain": -0.1}, {"min_gain": 0.5, "min_k": 0}])
def test_a_min_gain_that_is_no_share_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match=[*given][-1]):
        select([1.0, 0.0], [[1.0, 0.0]], 1, **given)
