from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import NDPP, Coverage, InvalidInputError, InvalidParameterError, TopK
from shared_core.learning import Split, hold_out, pool
from shared_core.learning.fitting import HeldOut
from shared_core.learning.pool import Neighbours
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
    for wrong in ({"held_out": 0.0}, {"seed": -1}, {"queries": [N]}, {"queries": []}):
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


# --- neighbours and duplicates ---------------------------------------------------------------------


def different(n: int) -> list[dict[str, Any]]:
    return [{"question": f"q{i}", "answer": f"a{i}"} for i in range(n)]


def exactly(items: list[dict[str, Any]], vectors: list[list[int]], query: int, count: int) -> list[int]:
    """Cosines compared as exact fractions, without square roots or rounding."""
    a = vectors[query]
    keys = {}
    for row, b in enumerate(vectors):
        dot, square = sum(x * y for x, y in zip(a, b, strict=True)), sum(y * y for y in b)
        signed = Fraction(dot * abs(dot), square) if square else Fraction(0)
        same_direction = signed == sum(x * x for x in a)
        if not same_direction and items[row] != items[query]:
            keys[row] = signed
    return sorted(keys, key=lambda row: (-keys[row], row))[:count]


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[list[int]], list[int]]:
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 4))
    vectors = draw(st.lists(st.lists(st.integers(-3, 3), min_size=d, max_size=d), min_size=n, max_size=n))
    texts = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), min_size=n, max_size=n))
    scales = draw(st.lists(st.integers(-100, 100), min_size=n, max_size=n))
    return [{"question": q, "answer": a} for q, a in texts], vectors, scales


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(case=pools(), count=st.integers(1, 15))
def test_agrees_with_exact_fractions_for_vectors_of_any_length(dtype: Any, case: Any, count: int) -> None:
    items, vectors, scales = case
    scaled = np.ldexp(np.array(vectors, dtype=dtype), np.array(scales)[:, None]).astype(dtype)
    queries = [row for row, vector in enumerate(vectors) if any(vector)]
    found = Neighbours(items, scaled).nearest(queries, count)
    assert [rows.tolist() for rows in found] == [exactly(items, vectors, row, count) for row in queries]


def test_agrees_with_brute_force_and_does_not_depend_on_the_other_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=300) + 0.3 * rng.normal(size=(400, 300))).astype(np.float32)
    # Rows that tie with one another for every query, far apart in the block.
    vectors[[5, 190, 399]] = vectors[77]
    wide = vectors.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1)[:, None]
    known = Neighbours(different(400), vectors)
    together = known.nearest(range(400), 30)
    for query, rows in enumerate(together):
        cosines = np.round(wide @ wide[query], 11)
        cosines[[query, *([5, 77, 190, 399] if query in (5, 77, 190, 399) else [])]] = -2
        assert rows.tolist() == np.argsort(-cosines, kind="stable")[:30].tolist()
    monkeypatch.setattr(pool, "_BLOCK", 1000)
    for queries in ([3], [399, 5, 0], range(100, 160)):
        for query, rows in zip(queries, known.nearest(queries, 30), strict=True):
            np.testing.assert_array_equal(rows, together[query])


@pytest.mark.parametrize(
    ("one", "other", "duplicates"),
    [
        ({"question": "x", "answer": "a", "id": 1}, {"id": 2, "answer": "a", "question": "x"}, True),
        ({"question": "x", "answer": "a"}, {"question": "x", "answer": "b"}, False),
        ({"question": "x", "program": "p"}, {"program": "p", "question": "x"}, True),
        ({"question": "x", "id": 1}, {"question": "x", "id": 2}, False),
        ({"question": "x", "answer": np.arange(3)}, {"question": "x", "answer": np.arange(3)}, True),
        ({"question": "x", "answer": 1}, {"question": "x", "answer": "1"}, False),
    ],
)
def test_which_items_are_duplicates(one: dict[str, Any], other: dict[str, Any], duplicates: bool) -> None:
    known = Neighbours([one, {"question": "y", "answer": "c"}, other], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    assert known.nearest([0], 5)[0].tolist() == ([1] if duplicates else [2, 1])


@pytest.mark.parametrize(
    ("items", "vectors", "word"),
    [
        (["a", *different(2)], np.eye(3), "row 0"),
        (different(2), np.eye(3), "each of the 2 items"),
        ([], np.empty((0, 2)), "shape"),
        (different(3), np.diag([1, np.nan, 1]), "row 1 holds NaN"),
        (different(3), [[0.0], [1.0], [2.0]], "row 0 is zero"),
    ],
)
def test_what_is_refused(items: Any, vectors: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        Neighbours(items, vectors).nearest([0], 1)


def test_groups_hold_the_duplicates_that_nearest_leaves_out_and_are_transitive() -> None:
    rng = np.random.default_rng(0)
    once = rng.standard_normal((40, 48))
    # The same texts embedded in another batch, and at another length; in float32 and float64.
    noisy = once + 1e-9 * rng.standard_normal(once.shape)
    for again, dtype in ((noisy, np.float32), (3.7 * once, np.float32), (3.7 * once, np.float64)):
        items = [{"question": str(n), "answer": str(n)} for n in range(80)]
        groups = Neighbours(items, np.concatenate((once, again)).astype(dtype)).groups(range(80))
        assert sorted(map(sorted, groups)) == [[n, n + 40] for n in range(40)]
    bridge = [{"question": q, "answer": "x"} for q in ("a", "b", "a")]
    assert Neighbours(bridge, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).groups([0, 1, 2]) == [[0, 1, 2]]
