from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import MMR, NDPP, VRSD, Candidates, InvalidInputError, InvalidParameterError, select
from tests import oracles
from tests.shared_core.cases import GREEDY_PAIRS, PAIRS, Pair, gaussian, names

pytestmark = pytest.mark.usefixtures("either_way")

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)
greedy_pairs = pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])

QUERY, VECTORS = gaussian(90, 11, 5)


def changed(row: int, value: float) -> NDArray[np.float64]:
    vectors = VECTORS.copy()
    vectors[row] = value
    return vectors


REFUSED: dict[str, tuple[type[ValueError], str, dict[str, Any]]] = {
    "NaN": (InvalidInputError, r"\b7\b", {"vectors": changed(7, np.nan)}),
    "inf": (InvalidInputError, r"\b7\b", {"vectors": changed(7, np.inf)}),
    "minus inf": (InvalidInputError, r"\b7\b", {"vectors": changed(7, -np.inf)}),
    "query too short": (InvalidInputError, r"(?s)\b4\b.*\b5\b|\b5\b.*\b4\b", {"query": QUERY[:4]}),
    "one axis": (InvalidInputError, "5", {"vectors": VECTORS[0]}),
    "no candidates": (InvalidInputError, "0", {"vectors": VECTORS[:0]}),
    "zero query": (InvalidInputError, "query", {"query": np.zeros(5)}),
    "quality too short": (InvalidInputError, r"(?s)\b3\b.*\b11\b|\b11\b.*\b3\b", {"quality": [1, 2, 3]}),
    "ids too short": (InvalidInputError, r"(?s)\b3\b.*\b11\b|\b11\b.*\b3\b", {"ids": [1, 2, 3]}),
    "costs too short": (InvalidInputError, r"(?s)\b3\b.*\b11\b|\b11\b.*\b3\b", {"costs": [1, 2, 3]}),
    "k = 0": (InvalidParameterError, r"(?s)\b0\b.*\b11\b|\b11\b.*\b0\b", {"k": 0}),
    "k = -3": (InvalidParameterError, r"(?s)-3\b.*\b11\b|\b11\b.*-3\b", {"k": -3}),
    "k = 12": (InvalidParameterError, r"(?s)\b12\b.*\b11\b|\b11\b.*\b12\b", {"k": 12}),
    "lambda over 1": (InvalidParameterError, "lambda", {"selector": "mmr", "lambda_d": 1.5}),
    "lambda under 0": (InvalidParameterError, "lambda", {"selector": "mmr", "lambda_b": -0.5}),
    "unknown selector": (InvalidParameterError, "vrsd", {"selector": "vsrd"}),
    "unknown parameter": (InvalidParameterError, "refine", {"refines": True}),
    "shown beyond n": (InvalidParameterError, r"\b11\b", {"shown": [11]}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_why(what: str) -> None:
    error, words, given = REFUSED[what]
    with pytest.raises(error, match=words):
        select(**{"query": QUERY, "vectors": VECTORS, "k": 3, **given})


# --- ties -----------------------------------------------------------------------------------------


@greedy_pairs
@both_dtypes
def test_of_exact_copies_the_lower_index_wins(pair: Pair, dtype: Any) -> None:
    # BLAS sums the last rows of a block in another order, so many sizes are needed to see it.
    rng = np.random.default_rng(91)
    for _ in range(300):
        n, d = int(rng.integers(2, 70)), int(rng.integers(2, 80))
        copies = int(rng.integers(1, n))
        vectors = rng.normal(size=(n, d)).astype(dtype)
        source = rng.integers(0, n - copies, size=copies)
        vectors[n - copies :] = vectors[source]
        query = rng.normal(size=d).astype(dtype)
        picks = pair.selector.select(Candidates(query, vectors), int(rng.integers(1, min(n, 12) + 1))).indices
        kind = np.concatenate([np.arange(n - copies), source])
        for position, pick in enumerate(picks):
            earlier = [i for i in range(pick) if kind[i] == kind[pick] and i not in picks[:position]]
            assert not earlier, f"n={n} d={d}: {pick} was picked before its copy {earlier} ({picks})"


@greedy_pairs
@both_dtypes
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 100])
def test_of_nothing_but_copies_the_first_k_are_picked(pair: Pair, dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    for d in (1, 2, 3, 7, 16, 33, 64, 384):
        query, row = rng.normal(size=(2, d)).astype(dtype)
        k = min(n, 9)
        selection = pair.selector.select(Candidates(query, np.tile(row, (n, 1))), k)
        assert selection.indices.tolist() == list(range(k)), d
        if isinstance(pair.selector, NDPP) and k > 1:
            assert selection.filled_from == 1


@both_dtypes
def test_refinement_among_nothing_but_copies_changes_nothing(dtype: Any) -> None:
    for n in (2, 5, 33, 64):
        query, row = np.random.default_rng(n).normal(size=(2, 17)).astype(dtype)
        k = min(n, 9)
        selection = VRSD(refine=True).select(Candidates(query, np.tile(row, (n, 1))), k)
        assert selection.indices.tolist() == list(range(k))


@every_pair
@both_dtypes
def test_scaled_copies_are_copies(pair: Pair, dtype: Any) -> None:
    # Powers of two leave the direction as it was to the last bit.
    rng = np.random.default_rng(92)
    for _ in range(30):
        query, row = rng.normal(size=(2, 19)).astype(dtype)
        vectors = np.outer([2.0**i for i in rng.integers(-8, 9, size=20)], row).astype(dtype)
        picks = pair.selector.select(Candidates(query, vectors), 6).indices
        assert picks.tolist() == list(range(6))


# --- extremes of size -----------------------------------------------------------------------------


@every_pair
@both_dtypes
def test_one_candidate(pair: Pair, dtype: Any) -> None:
    for row in ([3.0, 4.0], [-3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]):
        vectors = np.array([row], dtype=dtype)
        selection = pair.selector.select(Candidates(np.array([1.0, 0.0], dtype=dtype), vectors), 1)
        assert selection.indices.tolist() == [0]
        assert selection.relevance[0] == pytest.approx(oracles.cosine([1, 0], row), abs=1e-6)


@every_pair
@both_dtypes
def test_one_dimension(pair: Pair, dtype: Any) -> None:
    rng = np.random.default_rng(93)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        vectors = rng.normal(size=(n, 1)).astype(dtype)
        query = rng.normal(size=1).astype(dtype)
        k = int(rng.integers(1, n + 1))
        selection = pair.selector.select(Candidates(query, vectors), k)
        expected = pair.reference(query, vectors, k)
        # Every score is a whole number here or a plain fraction: no tie is a matter of rounding.
        assert selection.indices.tolist() == list(expected.picks), (query, vectors, k)


@every_pair
@both_dtypes
def test_all_of_them(pair: Pair, dtype: Any) -> None:
    for seed in range(20):
        n = 1 + seed
        query, vectors = gaussian(seed, n, 6, dtype)
        picks = pair.selector.select(Candidates(query, vectors), n).indices
        assert sorted(picks.tolist()) == list(range(n))


# --- kinds of array -------------------------------------------------------------------------------


def strided(a: NDArray[Any]) -> NDArray[Any]:
    wide = np.full(tuple(3 * s for s in a.shape), np.nan, dtype=a.dtype)
    view = wide[tuple(slice(1, None, 3) for _ in a.shape)]
    view[...] = a
    return view


def backwards(a: NDArray[Any]) -> NDArray[Any]:
    turned = tuple(slice(None, None, -1) for _ in a.shape)
    return a[turned].copy()[turned]


def read_only(a: NDArray[Any]) -> NDArray[Any]:
    copy = a.copy()
    copy.flags.writeable = False
    return copy


KINDS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a),
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "list of rows": list,
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape))[1],
}


@every_pair
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_array_does_not_matter(pair: Pair, kind: str) -> None:
    query, vectors = gaussian(94, 30, 12)
    expected = pair.selector.select(Candidates(query, vectors), 6)
    actual = pair.selector.select(Candidates(KINDS[kind](query), KINDS[kind](vectors)), 6)
    assert actual.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(actual.gains, expected.gains, rtol=1e-9, atol=1e-12)


@every_pair
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_floating_type_agrees_with_the_reference(pair: Pair, dtype: Any) -> None:
    for seed in range(20):
        query, vectors = gaussian(seed, 25, 30, dtype)
        actual = pair.selector.select(Candidates(query, vectors), 6)
        expected = pair.reference(query, vectors, 6)
        if pair.refined:
            oracles.assert_refined(actual, expected, query, vectors, (dtype, seed))
        else:
            oracles.assert_agrees(actual, expected, (dtype, seed))


# --- zero rows, opposite rows ---------------------------------------------------------------------


@every_pair
@both_dtypes
def test_nothing_but_zero_rows(pair: Pair, dtype: Any) -> None:
    candidates = Candidates(np.ones(4, dtype=dtype), np.zeros((6, 4), dtype=dtype))
    selection = pair.selector.select(candidates, 4)
    assert selection.indices.tolist() == [0, 1, 2, 3]
    assert selection.relevance.tolist() == [0.0] * 4
    assert np.all(np.isfinite(selection.gains))
    if isinstance(pair.selector, NDPP):
        assert selection.filled_from == 0


@every_pair
@both_dtypes
def test_nothing_but_opposite_rows(pair: Pair, dtype: Any) -> None:
    query = np.array([0.3, -0.4, 0.7], dtype=dtype)
    vectors = np.stack([-query, -2 * query, -4 * query])
    selection = pair.selector.select(Candidates(query, vectors), 3)
    assert selection.indices.tolist() == [0, 1, 2]
    np.testing.assert_allclose(selection.relevance, -1, atol=1e-6)


@both_dtypes
@pytest.mark.parametrize("selector", [VRSD(), MMR()], ids=repr)
def test_rows_that_cancel_leave_finite_numbers(selector: Any, dtype: Any) -> None:
    rng = np.random.default_rng(95)
    for _ in range(50):
        half = rng.normal(size=(5, 7)).astype(dtype)
        vectors = np.concatenate([half, -half])
        query = rng.normal(size=7).astype(dtype)
        selection = selector.select(Candidates(query, vectors), 10)
        assert sorted(selection.indices.tolist()) == list(range(10))
        assert np.all(np.isfinite(selection.gains))
        if isinstance(selector, VRSD):
            assert selection.objective == pytest.approx(0, abs=1e-5)
