"""`choose`: up to k candidates, with a threshold and without errors where candidates run short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import (
    BudgetError,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    choose,
    rescale,
    select,
    select_many,
)
from shared_core.candidates import SCALES
from tests import oracles
from tests.shared_core.cases import PAIRS, TOP_K, VRSD_GREEDY, Pair, gaussian, names, random_cases

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


@every_pair
def test_without_a_threshold_the_selection_is_that_of_the_selector(pair: Pair) -> None:
    for case in random_cases(60, 30):
        expected = pair.selector.select(case.candidates, case.k)
        found = choose(case.candidates, pair.selector, case.k)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.gains.tolist() == expected.gains.tolist()
        assert found.objective == expected.objective
        assert found.filled_from == expected.filled_from


@every_pair
def test_a_k_above_the_number_of_candidates_selects_all_of_them(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 6, 9))
    assert sorted(choose(candidates, pair.selector, 100).indices.tolist()) == list(range(6))
    assert sorted(choose(candidates, pair.selector, 100, shown=[2, 0]).indices.tolist()) == [1, 3, 4, 5]


@every_pair
def test_only_candidates_at_or_above_the_threshold_are_selected(pair: Pair) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 30, 12)
        cos = oracles.cosines(query, vectors)
        kept = np.flatnonzero(cos >= 0.1)
        selection = choose(Candidates(query, vectors), pair.selector, 4, score_threshold=0.1)
        k = min(4, len(kept))
        expected = pair.selector.select(Candidates(query, vectors[kept]), k)
        assert selection.indices.tolist() == kept[expected.indices].tolist()
        np.testing.assert_allclose(selection.relevance, cos[selection.indices], rtol=0, atol=1e-12)
        np.testing.assert_allclose(selection.gains, expected.gains, rtol=1e-9, atol=1e-12)
        assert selection.objective == pytest.approx(expected.objective)


def test_a_cosine_equal_to_the_threshold_passes() -> None:
    candidates = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    assert choose(candidates, TOP_K.selector, 3, score_threshold=0.0).indices.tolist() == [0, 1]
    assert choose(candidates, TOP_K.selector, 3, score_threshold=1.0).indices.tolist() == [0]


@every_pair
def test_with_no_open_candidate_the_selection_is_empty(pair: Pair) -> None:
    candidates = Candidates(*gaussian(1, 6, 9), costs=[5.0] * 6)
    for selection in (
        choose(candidates, pair.selector, 3, score_threshold=0.999),
        choose(candidates, pair.selector, 3, shown=range(6)),
    ):
        assert selection.indices.shape == selection.gains.shape == selection.relevance.shape == (0,)
        assert selection.indices.dtype == np.int64
        assert selection.gains.dtype == selection.relevance.dtype == np.float64
        assert selection.filled_from is None
        assert selection.objective == 0.0


@every_pair
def test_with_constraints_that_forbid_all_candidates_the_selection_is_empty(pair: Pair) -> None:
    query, vectors = gaussian(8, 6, 9)
    rules: list[dict[str, Any]] = [
        {"sources": ["a"] * 6, "max_per_source": 1},
        {"drop_near_duplicates": -1.0},
    ]
    for conditions in rules:
        candidates = pair.candidates(query, vectors, **conditions)
        for score_threshold in (None, -1.0):
            empty = choose(candidates, pair.selector, 2, shown=[4], score_threshold=score_threshold)
            assert (len(empty), empty.objective, empty.filled_from) == (0, 0.0, None)
    # Candidates 1 and 2 fit the budget and are of the source of candidate 0. The others do not fit.
    candidates = Candidates(query, vectors, costs=[1.0] * 3 + [9.0] * 3, sources="aaabbb", max_per_source=1)
    assert len(choose(candidates, pair.selector, 2, budget=5, shown=[0])) == 0


@every_pair
def test_quality_ids_and_costs_follow_their_rows(pair: Pair) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 20, 12)
        rng = np.random.default_rng(seed)
        quality, costs = rng.normal(size=20), rng.integers(1, 5, size=20).astype(float)
        kept = np.flatnonzero(oracles.cosines(query, vectors) >= 0)
        found = choose(
            Candidates(query, vectors, quality=quality, costs=costs),
            pair.selector,
            5,
            budget=9,
            score_threshold=0.0,
        )
        expected = pair.selector.select(
            Candidates(query, vectors[kept], quality=quality[kept], costs=costs[kept]),
            min(5, len(kept)),
            budget=9,
        )
        assert found.indices.tolist() == kept[expected.indices].tolist()


@every_pair
def test_shown_holds_rows_of_the_given_candidates(pair: Pair) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 20, 12)
        kept = np.flatnonzero(oracles.cosines(query, vectors) >= 0)
        shown = [int(kept[-1]), int(kept[0])]
        k = min(3, len(kept) - 2)
        found = choose(Candidates(query, vectors), pair.selector, k, shown=shown, score_threshold=0.0)
        expected = pair.selector.select(Candidates(query, vectors[kept]), k, shown=[len(kept) - 1, 0])
        assert found.indices.tolist() == kept[expected.indices].tolist()


def test_shown_candidates_below_the_threshold_count() -> None:
    # The reader has seen them, whatever their cosine with this query is.
    for seed in range(20):
        query, vectors = gaussian(seed, 20, 6)
        cos = oracles.cosines(query, vectors)
        shown = [int(np.argmin(cos))]
        kept = [*np.flatnonzero(cos >= 0).tolist(), *shown]
        k = min(3, len(kept) - 1)
        found = choose(Candidates(query, vectors), VRSD_GREEDY.selector, k, shown=shown, score_threshold=0.0)
        expected = VRSD_GREEDY.selector.select(Candidates(query, vectors[kept]), k, shown=[len(kept) - 1])
        assert found.indices.tolist() == [kept[i] for i in expected.indices]


@pytest.mark.parametrize("score_threshold", [None, -1.0, 0.0])
@pytest.mark.parametrize("k", [0, -1, True, 2.5, 100.5, "3", None])
def test_k_that_is_not_an_integer_of_at_least_one_is_refused(k: Any, score_threshold: float | None) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    with pytest.raises(InvalidParameterError, match="k"):
        choose(candidates, VRSD_GREEDY.selector, k, score_threshold=score_threshold)


@pytest.mark.parametrize("score_threshold", [None, -1.0, 0.0])
def test_a_budget_into_which_no_candidate_fits_is_an_error(score_threshold: float | None) -> None:
    candidates = Candidates(*gaussian(1, 11, 12), costs=[5.0] * 11)
    with pytest.raises(BudgetError):
        choose(candidates, VRSD_GREEDY.selector, 3, budget=4.0, score_threshold=score_threshold)


@pytest.mark.parametrize("shown", [[11], [-1], [2, 2], [1.5], ["1"], [True], 5, np.array(3)])
@pytest.mark.parametrize("score_threshold", [None, -1.0, 0.0])
def test_shown_is_checked_with_and_without_a_threshold(shown: Any, score_threshold: float | None) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    with pytest.raises(InvalidParameterError, match="shown"):
        choose(candidates, VRSD_GREEDY.selector, 3, shown=shown, score_threshold=score_threshold)


@pytest.mark.parametrize("score_threshold", [None, -1.0])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_shown_may_be_an_array(dtype: Any, score_threshold: float | None) -> None:
    candidates = Candidates(*gaussian(1, 11, 12))
    expected = VRSD_GREEDY.selector.select(candidates, 3, shown=[2, 5]).indices.tolist()
    shown = np.array([2, 5], dtype)
    found = choose(candidates, VRSD_GREEDY.selector, 3, shown=shown, score_threshold=score_threshold)
    assert found.indices.tolist() == expected


@pytest.mark.parametrize("score_threshold", [np.nan, 1.5, -1.5])
def test_a_threshold_that_is_not_a_cosine_is_refused(score_threshold: float) -> None:
    with pytest.raises(InvalidParameterError, match="score_threshold"):
        choose(Candidates(*gaussian(1, 11, 12)), TOP_K.selector, 3, score_threshold=score_threshold)


def test_a_copy_of_the_query_reaches_any_threshold() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        query, other = rng.normal(size=(2, int(rng.integers(1, 1600)))).astype(np.float32)
        scale = np.float32(10.0) ** rng.integers(-15, 15, size=2).astype(np.float32)
        candidates = Candidates(scale[0] * query, np.stack([other, scale[1] * query]))
        assert 1 in choose(candidates, TOP_K.selector, 2, score_threshold=1.0).indices, seed


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("selector", ["similarity", "mmr", "ndpp"])
def test_given_relevance_is_reported_as_it_was_given(selector: str, scale: Any) -> None:
    query, vectors = gaussian(3, 30, 8)
    given = np.random.default_rng(3).normal(scale=3, size=30)
    one = select(query, vectors, 5, selector, relevance=given.tolist(), relevance_scale=scale)
    assert one.relevance.tolist() == given[one.indices].tolist()
    assert one.indices[0] == given.argmax(), "nothing was shown before, so the most relevant is the first pick"
    many = select_many(
        [query, query], [vectors, vectors], 5, selector, relevance=[given, -given], relevance_scale=scale
    )
    assert many.indices[0].tolist() == one.indices.tolist()
    np.testing.assert_array_equal(many.relevance, [given[many.indices[0]], -given[many.indices[1]]])


GIVEN = [pair for pair in PAIRS if pair.takes_relevance]


@pytest.mark.parametrize("pair", GIVEN, ids=names)
def test_the_threshold_applies_to_a_given_relevance_of_any_size(pair: Pair) -> None:
    query, vectors = gaussian(4, 20, 12)
    relevance = np.random.default_rng(4).normal(scale=30, size=20)
    kept = np.flatnonzero(relevance >= -12.5)
    found = choose(Candidates(query, vectors, relevance=relevance), pair.selector, 5, score_threshold=-12.5)
    expected = pair.selector.select(Candidates(query, vectors[kept], relevance=relevance[kept]), 5)
    assert found.indices.tolist() == kept[expected.indices].tolist()
    assert found.relevance.tolist() == relevance[found.indices].tolist()
    assert not len(choose(Candidates(query, vectors, relevance=relevance), pair.selector, 5, score_threshold=1e9))


def test_a_given_relevance_at_the_threshold_passes_and_one_bit_below_does_not() -> None:
    relevance = [0.7, np.nextafter(0.7, 0), 0.9]
    candidates = Candidates([1.0, 0.0], np.ones((3, 2), np.float32), relevance=relevance)
    assert choose(candidates, TOP_K.selector, 3, score_threshold=0.7).indices.tolist() == [2, 0]


@pytest.mark.parametrize("pair", GIVEN, ids=names)
def test_the_threshold_may_be_on_other_numbers_than_the_relevance(pair: Pair) -> None:
    query, vectors = gaussian(5, 20, 12)
    scores = np.random.default_rng(5).normal(scale=30, size=20)
    scaled = rescale(scores)
    shown = [int(scores.argmin())]
    kept = np.flatnonzero((scores >= 3.0) | (np.arange(20) == shown[0]))
    candidates = Candidates(query, vectors, relevance=scaled)
    found = choose(candidates, pair.selector, 3, shown=shown, score_threshold=3.0, threshold_on=scores)
    place = kept.tolist().index(shown[0])
    expected = pair.selector.select(candidates.take(kept), 3, shown=[place])
    assert found.indices.tolist() == kept[expected.indices].tolist()
    assert found.relevance.tolist() == scaled[found.indices].tolist()
    # Without a given relevance too: the numbers are the caller's.
    plain = choose(Candidates(query, vectors), pair.selector, 20, score_threshold=3.0, threshold_on=scores)
    assert sorted(plain.indices.tolist()) == np.flatnonzero(scores >= 3.0).tolist()


@pytest.mark.parametrize(
    ("threshold_on", "says"),
    [
        ([1.0, 2.0], r"threshold_on must have shape \(3,\).*got \(2,\)"),
        ([1.0, np.nan, 2.0], "threshold_on: row 1 is nan"),
        ("high", "threshold_on"),
    ],
)
def test_what_a_threshold_is_compared_with_is_checked(threshold_on: Any, says: str) -> None:
    candidates = Candidates([1.0, 0.0], np.ones((3, 2)), relevance=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match=says):
        choose(candidates, TOP_K.selector, 1, score_threshold=0.5, threshold_on=threshold_on)
    for score_threshold in (np.nan, np.inf, "high", True):
        with pytest.raises(InvalidParameterError, match="score_threshold"):
            choose(candidates, TOP_K.selector, 1, score_threshold=score_threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [*SCALES, None])
@pytest.mark.parametrize("pair", GIVEN, ids=names)
def test_select_is_the_selector_on_scaled_relevance(pair: Pair, scale: Any) -> None:
    for case in random_cases(62, 40):
        n = len(case.vectors)
        scores = case.rng.normal(scale=3, size=n) if case.number % 2 else case.rng.integers(-3, 4, size=n)
        more: dict[str, Any] = {"quality": case.quality} if pair.with_quality else {}
        found = select(case.query, case.vectors, case.k, pair.selector, relevance=scores, relevance_scale=scale, **more)
        expected = pair.selector.select(
            Candidates(case.query, case.vectors, relevance=rescale(scores, scale), **more), case.k
        )
        for name in ("indices", "gains"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=str(case))
        assert (found.objective, found.filled_from) == (expected.objective, expected.filled_from)
        assert found.relevance.tolist() == scores[found.indices].tolist()
        assert not found.relevance.flags.writeable


@pytest.mark.parametrize("refine", [False, True])
def test_vrsd_refuses_a_given_relevance_and_names_the_others(refine: bool) -> None:
    query, vectors = gaussian(6, 5, 4)
    with pytest.raises(InvalidParameterError, match=r"^VRSD selects by angles.*'mmr', 'ndpp' or 'similarity'"):
        select(query, vectors, 2, "vrsd", relevance=[1.0, 2, 3, 4, 5], refine=refine)


@pytest.mark.parametrize(
    ("relevance", "says"),
    [
        ([1.0, 2.0, np.nan, 4.0, 5.0], "^relevance: row 2 is nan; every value must be finite"),
        ([1.0, -np.inf, np.nan, 4.0, 5.0], "^relevance: row 1 is -inf"),
        ([10**400, 1, 2, 3, 4], "^relevance"),
        ([1.0, 2.0], r"^relevance must have shape \(5,\), one for each candidate, got \(2,\)"),
        ([[1.0, 2, 3, 4, 5]], r"^relevance must have shape \(5,\).*got \(1, 5\)"),
        (3.0, r"^relevance must have shape .*got \(\)"),
        ([], r"^relevance must have shape .*got \(0,\)"),
        ([["a"], 1, 2], "^relevance"),
    ],
)
@pytest.mark.parametrize("scale", [*SCALES, None])
def test_relevance_that_does_not_fit_is_refused(relevance: Any, says: str, scale: Any) -> None:
    with pytest.raises(InvalidInputError, match=says):
        select(*gaussian(6, 5, 4), 2, "mmr", relevance=relevance, relevance_scale=scale)


def test_an_unknown_scale_is_refused() -> None:
    for scale in ("log", "MinMax", 1, ["minmax"]):
        with pytest.raises(InvalidParameterError, match="relevance_scale must be one of minmax, rank, sigmoid"):
            select(*gaussian(6, 5, 4), 2, "mmr", relevance=range(5), relevance_scale=scale)  # type: ignore[arg-type]
