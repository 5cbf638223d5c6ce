"""Sources that crowd and near-duplicates: rules inside every selector's choice, alone and with budget and shown."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared_core import NDPP, VRSD, Candidates, InvalidInputError, InvalidParameterError, Selection, choose, select
from shared_core.errors import NothingLeftError
from tests import oracles
from tests.shared_core.cases import NDPP_LINEAR, PAIRS, VRSD_REFINED, Case, Pair, gaussian, names, random_cases

pytestmark = pytest.mark.usefixtures("either_way")

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@dataclass(frozen=True)
class Limited:
    """A case under limits: what the candidates are made with, and what `select` is asked for."""

    case: Case
    rules: dict[str, Any]
    k: int | None
    costs: Any = None
    budget: float | None = None
    shown: tuple[int, ...] = ()

    @property
    def candidates(self) -> Candidates:
        return Candidates(self.case.query, self.case.vectors, costs=self.costs, **self.rules)

    def select(self, selector: Any) -> Selection:
        selection: Selection = selector.select(self.candidates, self.k, budget=self.budget, shown=self.shown)
        return selection

    def reference(self, pair: Pair) -> oracles.Reference:
        conditions = {"costs": self.costs, "budget": self.budget, "shown": list(self.shown), **self.rules}
        return pair.reference(self.case.query, self.case.vectors, self.k, **conditions)

    def open_after(self, taken: Sequence[int]) -> list[int]:
        """What no rule forbids once `taken` are picked or shown, by counting."""
        picked = [i for i in taken if i not in self.shown]
        left = math.inf if self.budget is None else self.budget - sum(self.costs[i] for i in picked)
        threshold, most = self.rules.get("drop_near_duplicates"), self.rules.get("max_per_source")
        near = None if threshold is None else oracles.near_pairs(self.case.vectors, threshold)
        counts = Counter(self.rules["sources"][i] for i in taken) if most else Counter()
        return [
            i
            for i in range(len(self.case.vectors))
            if i not in taken
            and (self.costs is None or self.costs[i] <= left)
            and (not most or counts[self.rules["sources"][i]] < most)
            and (near is None or not near[i, list(taken)].any())
        ]

    def __str__(self) -> str:
        rules = {name: value for name, value in self.rules.items() if name != "sources"}
        return f"{self.case}, {rules}, k={self.k}, budget={self.budget}, shown={self.shown}"


def clear_threshold(case: Case) -> float:
    """A cosine that many pairs exceed, in the middle of a gap: float32 puts every pair on the same side."""
    rows = oracles.unit_rows(case.vectors)
    between = np.unique(np.round((rows @ rows.T)[np.triu_indices(len(rows), 1)], 9))
    if len(between) < 2:
        return 0.5
    start = int(case.rng.uniform(0.3, 1) * (len(between) - 1))
    nearby = between[max(0, start - 8) : start + 8]
    gap = int(np.argmax(np.diff(nearby)))
    assert nearby[gap + 1] - nearby[gap] > 1e-5, f"{case}: no gap to put the threshold in"
    return float(min(1.0, (nearby[gap] + nearby[gap + 1]) / 2))


def limited(case: Case, pair: Pair, *, shown: bool = False, budget: bool = False) -> Limited:
    """Either rule alone and both in turn, on every kind of data in both dtypes."""
    n = len(case.vectors)
    rng = case.rng
    which = case.number // 12 % 3
    rules: dict[str, Any] = {}
    if which != 1:
        rules["sources"] = [f"{j}.md" for j in rng.integers(0, n // 4 + 1, size=n)]
        rules["max_per_source"] = int(rng.integers(1, 4))
    if which != 0:
        rules["drop_near_duplicates"] = clear_threshold(case)
    already: list[int] = rng.permutation(n)[: int(rng.integers(0, min(n, 5)))].tolist() if shown else []
    if isinstance(pair.selector, NDPP):
        # A shown set that is linearly dependent has no determinant to condition on.
        kernel = oracles.ndpp_dense(oracles.unit_rows(case.vectors))
        while already and oracles.ndpp_determinant(kernel, already) < 1e-3:
            already.pop()
    k: int | None = min(case.k, n - len(already))
    if not budget:
        return Limited(case, rules, k, shown=tuple(already))
    # Whole numbers, so that adding them up in another order gives the same sum.
    costs = rng.integers(0, 9, size=n).astype(np.float64)
    amount = float(rng.integers(int(np.delete(costs, already).min()), 30))
    return Limited(case, rules, k if rng.random() < 0.6 else None, costs, amount, tuple(already))


def check(pair: Pair, asked: Limited) -> Selection | None:
    """The selection, once it agrees with the reference; None where both find nothing to pick."""
    expected = asked.reference(pair)
    if not expected.picks:
        with pytest.raises(NothingLeftError):
            asked.select(pair.selector)
        return None
    actual = asked.select(pair.selector)
    if pair.refined:
        conditions = {"costs": asked.costs, "budget": asked.budget, "shown": list(asked.shown), **asked.rules}
        query, vectors = asked.case.query, asked.case.vectors
        oracles.assert_refined(actual, expected, query, vectors, str(asked), k=asked.k, **conditions)
    else:
        oracles.assert_agrees(actual, expected, f"{pair.name}, {asked}")
    return actual


EXTRAS = [{}, {"shown": True}, {"budget": True}, {"shown": True, "budget": True}]


@every_pair
@pytest.mark.parametrize("extras", EXTRAS, ids=lambda extras: " and ".join(extras) or "alone")
def test_agrees_with_the_reference(pair: Pair, extras: dict[str, bool]) -> None:
    changed = short = filled = 0
    for case in random_cases(110 + EXTRAS.index(extras), 300):
        asked = limited(case, pair, **extras)
        selection = check(pair, asked)
        if selection is None:
            continue
        free = replace(asked, rules={}).select(pair.selector)
        changed += selection.indices.tolist() != free.indices.tolist()
        short += asked.k is not None and len(selection) < asked.k
        filled += selection.filled_from is not None
    # Were the rules never in the way, the agreement would say nothing.
    assert changed > 100
    assert short > 30
    assert filled > 10 or not isinstance(pair.selector, NDPP)


@every_pair
@pytest.mark.parametrize("extras", EXTRAS, ids=lambda extras: " and ".join(extras) or "alone")
def test_no_rule_is_broken_and_nothing_open_remains(pair: Pair, extras: dict[str, bool]) -> None:
    ended_by_a_rule = 0
    for case in random_cases(120, 150):
        asked = limited(case, pair, **extras)
        selection = choose(asked.candidates, pair.selector, asked.k, budget=asked.budget, shown=asked.shown)
        picks = selection.indices.tolist()
        taken = [*asked.shown, *picks]
        assert len(set(taken)) == len(taken), f"{asked}: {picks}"
        for i in picks:
            # Each pick must have been allowed beside all others: closed to it alone, it would be open again.
            assert i in asked.open_after([j for j in taken if j != i]), f"{asked}: {i} of {picks}"
        if asked.k is None or len(picks) < asked.k:
            assert asked.open_after(taken) == [], f"{asked}: {picks}"
            ended_by_a_rule += 1
        else:
            assert len(picks) == asked.k
    assert ended_by_a_rule > 15


@pytest.mark.parametrize("extras", EXTRAS, ids=lambda extras: " and ".join(extras) or "alone")
def test_refinement_under_limits_is_never_worse_and_sometimes_better(extras: dict[str, bool]) -> None:
    better = 0
    for case in random_cases(130, 300):
        asked = limited(case, VRSD_REFINED, **extras)
        if not asked.open_after(asked.shown):
            continue
        greedy, refined = asked.select(VRSD()), asked.select(VRSD(refine=True))
        assert len(refined) == len(greedy)
        rounding = 2e-6 if case.vectors.dtype == np.float32 else 1e-12
        assert refined.objective >= greedy.objective - rounding, str(asked)
        if not asked.shown:
            assert refined.indices[0] == greedy.indices[0]
        better += refined.objective > greedy.objective + 1e-4
    assert better > 5


def test_refinement_still_happens_where_sources_end_the_choice() -> None:
    better = 0
    for seed in range(60):
        query, vectors = gaussian(seed, 24, 16)
        sources = [i % 4 for i in range(24)]
        kwargs: dict[str, Any] = {"sources": sources, "max_per_source": 2}
        greedy = select(query, vectors, 12, **kwargs)
        refined = select(query, vectors, 12, refine=True, **kwargs)
        assert len(greedy) == len(refined) == 8
        assert set(Counter(sources[i] for i in refined.indices).values()) == {2}
        better += refined.objective > greedy.objective + 1e-9
    assert better > 10


@every_pair
@settings(deadline=None, derandomize=True, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 25), data=st.data())
def test_the_order_of_the_candidates_does_not_matter(pair: Pair, seed: int, n: int, data: st.DataObject) -> None:
    query, vectors = gaussian(seed, n, 20)
    # NDPP's linear relevance is the same for all that point away from the query: of nothing else, the first is a tie.
    assume((vectors @ query > 0).any())
    rng = np.random.default_rng(seed)
    sources, costs = rng.integers(0, 5, size=n), rng.integers(1, 5, size=n)
    order = np.array(data.draw(st.permutations(range(n))))
    place = np.argsort(order)
    shown = data.draw(st.sampled_from([[], [0], [2, 1]]))
    budget = data.draw(st.sampled_from([None, 4.0, 20.0]))
    rules: dict[str, Any] = {"max_per_source": 2, "drop_near_duplicates": 0.3}
    one = choose(
        Candidates(query, vectors, costs=costs, sources=sources, **rules),
        pair.selector,
        6,
        budget=budget,
        shown=shown,
    )
    other = choose(
        Candidates(query, vectors[order], costs=costs[order], sources=sources[order], **rules),
        pair.selector,
        6,
        budget=budget,
        shown=place[shown].tolist(),
    )
    assert [int(order[i]) for i in other.indices] == one.indices.tolist()
    np.testing.assert_allclose(other.gains, one.gains, rtol=1e-7, atol=1e-10)


@every_pair
@both_dtypes
@pytest.mark.parametrize("most", [1, 2])
def test_a_source_with_900_of_1000_candidates_gets_no_more_than_its_share(pair: Pair, dtype: Any, most: int) -> None:
    query, noise = gaussian(5, 1000, 40, dtype)
    sources = ["big.md"] * 900 + [f"{i}.md" for i in range(100)]
    # The big one is nearest throughout, and mixed in among the others.
    vectors = noise + np.where(np.arange(1000) < 900, 2, 0.3)[:, None].astype(dtype) * query
    order = np.random.default_rng(6).permutation(1000)
    mixed = [sources[i] for i in order]
    free = pair.selector.select(Candidates(query, vectors[order]), 10)
    assert sum(mixed[i] == "big.md" for i in free.indices) > most
    candidates = Candidates(query, vectors[order], sources=mixed, max_per_source=most)
    picks = pair.selector.select(candidates, 10).indices
    counts = Counter(mixed[i] for i in picks)
    assert len(picks) == 10
    assert counts["big.md"] == most
    assert len(counts) == 11 - most


@every_pair
def test_what_was_shown_counts_for_its_source_and_its_copies(pair: Pair) -> None:
    query, vectors = gaussian(7, 9, 12)
    vectors[5] = vectors[0] * 3
    sources = ["a", "b", "c", "a", "a", "d", "e", "e", "f"]
    candidates = Candidates(query, vectors, sources=sources, max_per_source=2, drop_near_duplicates=0.99)
    picks = pair.selector.select(candidates, 7, shown=[0, 3]).indices.tolist()
    assert set(picks) == {1, 2, 6, 7, 8}, "4 is a third of source a, 5 a copy of 0"


@every_pair
def test_a_cosine_at_the_threshold_is_not_above_it(pair: Pair) -> None:
    query, rows = [1.0, 0.5, 0.25, 0.1], np.eye(4)
    assert len(pair.selector.select(Candidates(query, rows, drop_near_duplicates=0.0), 4)) == 4
    assert len(pair.selector.select(Candidates(query, rows, drop_near_duplicates=-0.01), 4)) == 1


@every_pair
@both_dtypes
def test_no_cosine_is_above_one(pair: Pair, dtype: Any) -> None:
    # Of a copy the cosine is 1 but for rounding, which must not decide whether it is dropped.
    for seed in range(40):
        query, vectors = gaussian(seed, 4, 7 + seed, dtype)
        copies = np.repeat(vectors, 3, axis=0)
        assert len(pair.selector.select(Candidates(query, copies, drop_near_duplicates=1.0), 12)) == 12


@every_pair
@both_dtypes
def test_copies_of_any_length_are_near(pair: Pair, dtype: Any) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 5, 30, dtype)
        copies = np.concatenate([vectors, 1e-3 * vectors, 1e4 * vectors]).astype(dtype)
        picks = pair.selector.select(Candidates(query, copies, drop_near_duplicates=0.9999), 15).indices
        assert sorted(i % 5 for i in picks.tolist()) == list(range(5))


@every_pair
def test_rules_that_forbid_nothing_change_nothing(pair: Pair) -> None:
    for case in random_cases(140, 60):
        n = len(case.vectors)
        free = pair.selector.select(case.candidates, case.k)
        wide = Candidates(case.query, case.vectors, sources=[0] * n, max_per_source=n)
        selection = pair.selector.select(wide, case.k)
        assert selection.indices.tolist() == free.indices.tolist()
        # Limits are kept by numpy alone, whose products differ from those of compiled loops in the last bits.
        room = 64 * np.finfo(case.vectors.dtype).eps
        np.testing.assert_allclose(selection.gains, free.gains, rtol=room, atol=room)
        # Sources alone are no rule.
        named = pair.selector.select(Candidates(case.query, case.vectors, sources=[0] * n), case.k)
        assert named.indices.tolist() == free.indices.tolist()


def test_ndpp_fills_by_relevance_under_the_same_rules() -> None:
    query, vectors = gaussian(3, 30, 3)
    sources = [i // 3 for i in range(30)]
    candidates = Candidates(query, vectors, sources=sources, max_per_source=1)
    selection = NDPP().select(candidates, 8)
    assert selection.filled_from == 3
    chosen = selection.indices.tolist()
    for position in range(3, 8):
        full = {sources[i] for i in chosen[:position]}
        free = [i for i in range(30) if sources[i] not in full]
        assert chosen[position] == max(free, key=lambda i: candidates.relevance[i])


@every_pair
def test_nothing_left_under_the_rules(pair: Pair) -> None:
    query, vectors = gaussian(8, 6, 9)
    for rules in (
        {"sources": ["a"] * 6, "max_per_source": 1},
        {"drop_near_duplicates": -1.0},
        {"sources": ["a"] * 6, "max_per_source": 2, "drop_near_duplicates": -1.0},
    ):
        candidates = Candidates(query, vectors, **rules)
        with pytest.raises(NothingLeftError, match="n=6"):
            pair.selector.select(candidates, 2, shown=[4])
        for score_threshold in (None, -1.0):
            empty = choose(candidates, pair.selector, 2, shown=[4], score_threshold=score_threshold)
            assert (len(empty), empty.objective, empty.filled_from) == (0, 0.0, None)
    # What fits the budget is of a full source, and what is of another source does not fit.
    candidates = Candidates(query, vectors, costs=[1.0] * 3 + [9.0] * 3, sources="aaabbb", max_per_source=1)
    with pytest.raises(NothingLeftError):
        pair.selector.select(candidates, 2, budget=5, shown=[0])
    assert len(choose(candidates, pair.selector, 2, budget=5, shown=[0])) == 0


def test_every_way_to_candidates_keeps_the_rules() -> None:
    query, vectors = gaussian(9, 8, 5)
    rules: dict[str, Any] = {"sources": list("aabbccdd"), "max_per_source": 1, "drop_near_duplicates": 0.8}
    given = Candidates(query, vectors, **rules)
    expected = VRSD().select(given, 8).indices.tolist()
    assert len(expected) <= 4
    assert select(query, vectors, 8, **rules).indices.tolist() == expected
    for other in (
        Candidates.borrow(query, vectors, **rules),
        Candidates(-query, vectors, **rules).with_query(query),
        Candidates(query, -vectors, **rules).with_vectors(query, vectors),
        given.take(range(8)),
        pickle.loads(pickle.dumps(given)),
    ):
        assert (other.sources, other.max_per_source, other.drop_near_duplicates) == (tuple("aabbccdd"), 1, 0.8)
        assert VRSD().select(other, 8).indices.tolist() == expected
    part = given.take([7, 0, 1])
    assert part.sources == ("d", "a", "a")
    assert len(VRSD().select(part, 3)) <= 2
    under = choose(given, VRSD(), 8, score_threshold=0.0)
    assert all(n == 1 for n in Counter(rules["sources"][i] for i in under.indices).values())


@pytest.mark.parametrize(
    ("rules", "error", "words"),
    [
        ({"max_per_source": 1}, InvalidInputError, "needs sources"),
        ({"sources": ["a"], "max_per_source": 1}, InvalidInputError, r"(?s)sources.*\b6\b.*\b1\b"),
        ({"sources": [["a"]] * 6, "max_per_source": 1}, InvalidInputError, "sources: row 0"),
        ({"sources": 6, "max_per_source": 1}, InvalidInputError, "sources"),
        *(
            ({"sources": ["a"] * 6, "max_per_source": most}, InvalidParameterError, "max_per_source")
            for most in (0, -1, True, 1.5, "1")
        ),
        *(
            ({"drop_near_duplicates": cosine}, InvalidParameterError, "drop_near_duplicates")
            for cosine in (1.5, -1.01, np.nan, np.inf, "0.9", True)
        ),
    ],
)
def test_rules_that_are_none_are_refused(rules: dict[str, Any], error: type[Exception], words: str) -> None:
    query, vectors = gaussian(10, 6, 4)
    for make in (Candidates, Candidates.borrow):
        with pytest.raises(error, match=words):
            make(query, vectors, **rules)
    with pytest.raises(error, match=words):
        select(query, vectors, 2, **rules)


def test_the_reference_itself_knows_the_rules() -> None:
    query, vectors = [1.0, 0.0], [[1.0, 0.0], [1.0, 0.01], [0.9, 0.5], [0.0, 1.0]]
    assert oracles.top_k(query, vectors, 3, sources="aabb", max_per_source=1).picks == (0, 2)
    assert oracles.top_k(query, vectors, 3, drop_near_duplicates=0.99).picks == (0, 2, 3)
    assert NDPP_LINEAR.reference(query, vectors, 2, sources="aabb", max_per_source=1, shown=[0]).picks == (2,)
