from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from shared_core import NDPP, Coverage, InvalidInputError, InvalidParameterError, LinearKernel, LowRankKernel, TopK
from shared_core.learning.held_out import HeldOut, Split, hold_out
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


HELD_OUT = (3, 8, 1)


def split_of(*held_out: int, n: int = N) -> Split:
    known = tuple(row for row in range(n) if row not in held_out)
    return Split(known, known, held_out)


def held_out(feedback: Any, k: int = 3, fetch_k: int = 6, **more: Any) -> HeldOut:
    return HeldOut(Neighbours(ITEMS, VECTORS), VECTORS, split_of(*HELD_OUT), feedback, k, fetch_k, **more)


def nearest(query: int) -> list[int]:
    order: list[int] = np.argsort(-oracles.cosines(VECTORS[query], VECTORS)).tolist()
    return [row for row in order if row not in HELD_OUT]


def test_the_selector_picks_among_the_nearest_known_items_and_the_nearest_pick_is_last() -> None:
    found = held_out(Noting()).picks(NDPP(relevance_mapping="linear", ridge=0))
    for query, picks in zip(HELD_OUT, found, strict=True):
        among = nearest(query)[:6]
        reference = oracles.ndpp_greedy(VECTORS[query], VECTORS[among], 3)
        assert set(picks) == {among[i] for i in reference.picks}
        assert sorted(picks, key=among.index, reverse=True) == list(picks)


def test_the_values_are_those_of_the_feedback_and_no_set_is_scored_twice() -> None:
    feedback = Noting()
    measured = held_out(feedback)
    for selector in (TopK(), NDPP(), TopK(), NDPP(relevance_mapping="exponential", temperature=1e-3)):
        values = measured.values(selector)
        asked = Noting()
        picks = measured.picks(selector)
        expected = [asked(ITEMS[q], [ITEMS[r] for r in p]) for q, p in zip(measured.queries, picks, strict=True)]
        assert values.tolist() == expected
    assert len(set(feedback.asked)) == len(feedback.asked)


def test_row_kernels_are_looked_up_by_row_or_by_id() -> None:
    v = RNG.normal(size=(N, 4))
    ids = [f"item {n}" for n in range(N)]
    by_row = held_out(Noting()).picks(NDPP(LowRankKernel(v)))
    assert held_out(Noting(), ids=ids).picks(NDPP(LowRankKernel(v, ids=ids))) == by_row
    assert held_out(Noting()).picks(NDPP(LinearKernel(np.eye(4)))) == held_out(Noting()).picks(NDPP(ridge=0))


def test_held_out_items_and_their_duplicates_are_never_picked() -> None:
    items = [*ITEMS[:-1], {**ITEMS[3], "number": N - 1}]
    split = Split(tuple(set(range(N)) - {3, 8, N - 1}), (0,), (3, 8))
    measured = HeldOut(Neighbours(items, VECTORS), VECTORS, split, Noting(), N, N)
    assert set(measured.picks(TopK())[0]) == set(range(N)) - {3, 8, N - 1}


# --- the split --------------------------------------------------------------------------------------


REPEATED = [
    ({"question": "What is it?", "answer": "x"}, {"question": "what  IS it", "answer": "y"}),
    ({"question": "What is it?", "answer": "x"}, {"question": "What is it ?!", "answer": "x"}),
    ({"question": "q", "answer": "x"}, {"question": "q", "answer": "x", "number": 7}),
    ({"text": "t"}, {"text": "t"}),
]


@pytest.mark.parametrize(("one", "other"), REPEATED)
def test_items_that_repeat_each_other_are_on_one_side(one: Item, other: Item) -> None:
    items = [*ITEMS, one, other]
    vectors = np.random.default_rng(0).normal(size=(len(items), 4))
    sides = set()
    for seed in range(12):
        split = hold_out(items, vectors, held_out=0.4, seed=seed)
        assert (N in split.held_out) == (N + 1 in split.held_out)
        assert set(split.trained) == set(split.examples) == set(range(N + 2)) - set(split.held_out)
        sides.add(N in split.held_out)
    assert sides == {True, False}


def test_an_item_that_is_no_query_and_repeats_a_held_out_one_is_no_example() -> None:
    """It is not measured on, and it would show training what the held-out query is about."""
    items = [*ITEMS[:10], *({**ITEMS[n], "answer": "other"} for n in range(5))]
    split = hold_out(items, VECTORS, queries=range(10), held_out=0.5, seed=1)
    assert 0 < sum(row < 5 for row in split.held_out) < 5
    assert set(split.examples) == set(range(15)) - {r for row in split.held_out for r in (row, row + 10)} | {
        row + 10 for row in split.trained if row < 5
    }
    assert set(split.trained) | set(split.held_out) == set(range(10))


def test_the_share_is_of_different_queries_and_each_side_has_one() -> None:
    assert len(hold_out(ITEMS, VECTORS).held_out) == 3
    assert len(hold_out(ITEMS, VECTORS, held_out=0.01).held_out) == 1
    assert len(hold_out(ITEMS, VECTORS, held_out=0.99).trained) == 1
    assert hold_out(ITEMS, VECTORS, seed=1) == hold_out(ITEMS, VECTORS, seed=1) != hold_out(ITEMS, VECTORS, seed=2)
    for wrong in ({"held_out": 0.0}, {"held_out": 1}, {"seed": -1}, {"queries": [N]}, {"queries": []}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            hold_out(ITEMS, VECTORS, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="at least 2 "):
        hold_out(ITEMS, VECTORS, queries=[4])


def test_a_selector_that_reads_words_gets_those_of_the_questions() -> None:
    def pick(items: list[dict[str, Any]], selector: Any) -> Any:
        measured = HeldOut(Neighbours(items, VECTORS), VECTORS, split_of(*HELD_OUT), Noting(), 1, 6)
        return measured.picks(selector)

    query = HELD_OUT[0]
    last = nearest(query)[:6][-1]
    asked = [{"question": "rfft2" if row in (query, last) else f"text {row}", "answer": str(row)} for row in range(N)]
    assert pick(asked, Coverage(word_weight=9))[0] == (last,)
    assert pick(asked, NDPP())[0] == pick(ITEMS, Coverage())[0] != (last,)
