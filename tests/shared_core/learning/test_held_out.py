from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from shared_core import NDPP, InvalidInputError, LinearKernel, LowRankKernel, TopK
from shared_core.learning.held_out import HeldOut
from shared_core.learning.neighbours import Neighbours
from tests import oracles

Item = Mapping[str, Any]

RNG = np.random.default_rng(6)
N = 15
VECTORS = RNG.normal(size=(N, 4))
ITEMS = [{"question": f"q{n}", "answer": f"a{n}", "number": n} for n in range(N)]


class Noting:
    """Depends on the query and on the order, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[int, ...]]] = []

    def __call__(self, query: Item, subset: Sequence[Item]) -> float:
        self.asked.append((query["number"], tuple(item["number"] for item in subset)))
        return float(np.sin(sum((place + 2) * item["number"] for place, item in enumerate(subset)) + query["number"]))


def held_out(feedback: Any, queries: Sequence[int] = (3, 8, 1), k: int = 3, fetch_k: int = 6, **more: Any) -> HeldOut:
    return HeldOut(Neighbours(ITEMS, VECTORS), VECTORS, queries, feedback, k, fetch_k, **more)


def nearest(query: int) -> list[int]:
    order: list[int] = np.argsort(-oracles.cosines(VECTORS[query], VECTORS)).tolist()
    order.remove(query)
    return order


def test_the_selector_picks_among_the_nearest_and_the_nearest_pick_is_last() -> None:
    found = held_out(Noting()).picks(NDPP())
    for query, picks in zip((3, 8, 1), found, strict=True):
        among = nearest(query)[:6]
        reference = oracles.ndpp_greedy(VECTORS[query], VECTORS[among], 3)
        assert set(picks) == {among[i] for i in reference.picks}
        assert sorted(picks, key=among.index, reverse=True) == list(picks)


def test_the_values_are_those_of_the_feedback_and_no_set_is_scored_twice() -> None:
    feedback = Noting()
    measured = held_out(feedback)
    for selector in (TopK(), NDPP(), TopK(), NDPP(relevance="exponential", temperature=1e-3)):
        values = measured.values(selector)
        asked = Noting()
        picks = measured.picks(selector)
        expected = [asked(ITEMS[q], [ITEMS[r] for r in p]) for q, p in zip(measured.queries, picks, strict=True)]
        assert values.tolist() == expected
    assert len(set(feedback.asked)) == len(feedback.asked)


def test_a_feedback_with_score_gets_all_new_pairs_in_one_call() -> None:
    calls: list[int] = []

    class Batched(Noting):
        def score(self, pairs: Sequence[tuple[Item, Sequence[Item]]]) -> list[float]:
            calls.append(len(pairs))
            return [self(*pair) for pair in pairs]

    measured = held_out(Batched())
    measured.values(TopK())
    measured.values(TopK())
    assert calls == [3, 0] or calls == [3]


def test_row_kernels_are_looked_up_by_row_or_by_id() -> None:
    v = RNG.normal(size=(N, 4))
    ids = [f"item {n}" for n in range(N)]
    by_row = held_out(Noting()).picks(NDPP(LowRankKernel(v)))
    assert held_out(Noting(), ids=ids).picks(NDPP(LowRankKernel(v, ids=ids))) == by_row
    assert held_out(Noting()).picks(NDPP(LinearKernel(np.eye(4)))) == held_out(Noting()).picks(NDPP())


def test_a_query_and_its_duplicates_are_never_picked() -> None:
    items = [*ITEMS[:-1], {**ITEMS[3], "number": N - 1}]
    measured = HeldOut(Neighbours(items, VECTORS), VECTORS, [3], Noting(), N, N)
    assert set(measured.picks(TopK())[0]) == set(range(N)) - {3, N - 1}


def test_there_may_be_fewer_candidates_than_k() -> None:
    assert [len(picks) for picks in held_out(Noting(), k=5, fetch_k=2).picks(TopK())] == [2, 2, 2]


def test_the_input_is_unchanged() -> None:
    vectors, queries = VECTORS.copy(), [3, 8]
    vectors.setflags(write=False)
    measured = HeldOut(Neighbours(ITEMS, vectors), vectors, queries, Noting(), 2, 5)
    measured.values(NDPP())
    measured.queries.append(0)
    assert queries == [3, 8]
    np.testing.assert_array_equal(vectors, VECTORS)


def test_a_value_that_is_not_a_number_names_the_item_and_the_rows() -> None:
    with pytest.raises(InvalidInputError, match=r"held-out item 3, rows \(\d+, \d+, \d+\)"):
        held_out(lambda query, subset: float("nan")).values(TopK())


def test_a_zero_vector_is_refused_as_a_query() -> None:
    vectors = VECTORS.copy()
    vectors[8] = 0
    with pytest.raises(InvalidInputError, match="row 8 is zero"):
        HeldOut(Neighbours(ITEMS, vectors), vectors, [3, 8], Noting(), 2, 5)
