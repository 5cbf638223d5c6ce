"""The relevance that a kernel was learned with: its values, its file, and what NDPP selects with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, KernelError, LinearKernel, LowRankKernel, SetSelectError
from shared_core.selectors.ndpp import AUTO_TEMPERATURE
from tests import oracles
from tests.shared_core.cases import Case, draw_relevance, gaussian, random_cases, same

RNG = np.random.default_rng(21)
D, N = 5, 9
V, B, HALF = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3)), RNG.normal(size=(3, 3))
W_V, W_B, W_R = RNG.normal(size=(D, 4)), RNG.normal(size=(D, 3)), RNG.normal(size=(D, 2))
C = HALF - HALF.T
QUERY, VECTORS = gaussian(22, N, D)

Made = Callable[..., Any]
KERNELS: dict[str, Made] = {
    "low rank": lambda **more: LowRankKernel(V, B, C, **more),
    "low rank, symmetric": lambda **more: LowRankKernel(V, **more),
    "linear": lambda **more: LinearKernel(W_V, W_B, C, **more),
    "linear, symmetric": lambda **more: LinearKernel(W_V, **more),
}
every_kernel = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
both_kinds = pytest.mark.parametrize("make", [KERNELS["low rank"], KERNELS["linear"]], ids=["low rank", "linear"])


def log_r(query: Any, vectors: Any, temperature: float, w_r: Any = None) -> NDArray[np.float64]:
    """NDPP paper, section 4.4.1, candidate by candidate."""
    cos = oracles.cosines(query, vectors) if w_r is None else oracles.mapped_cosines(query, vectors, w_r)[0]
    r = [math.exp(c / (2 * temperature)) for c in cos]
    return np.array([math.log(x / max(r)) for x in r])


# --- log r ----------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize(
    ("w_r", "temperature"), [(None, 0.05), (W_R, 1), (RNG.normal(size=(D, 11)), 30.0)], ids=["plain", "narrow", "wide"]
)
def test_log_relevance_is_that_of_the_formula(make: Made, w_r: Any, temperature: float) -> None:
    found = make(W_R=w_r, temperature=temperature).log_relevance(Candidates(QUERY, VECTORS))
    assert found.dtype == np.float64
    assert found.max() == 0
    np.testing.assert_allclose(found, log_r(QUERY, VECTORS, temperature, w_r), rtol=0, atol=1e-13 / temperature)
    # Of several queries only the first counts.
    several = Candidates(np.stack([QUERY, VECTORS[0], VECTORS[1]]), VECTORS)
    assert np.array_equal(make(W_R=w_r, temperature=temperature).log_relevance(several), found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_vector_that_the_map_sends_to_zero_has_cosine_zero(dtype: Any) -> None:
    # Both columns are orthogonal to (1, 1, 1). Rounding makes its image tiny instead of zero.
    w_r = [[1.0, 0.3], [-0.7, 0.4], [-0.3, -0.7]]
    query, vectors = [1.0, 0.0, 0.2], [[0.3, 0.3, 0.3], [1.0, 0.0, 0.2], [-1.0, 0.0, -0.2], [0.0, 0.0, 0.0]]
    kernel = LinearKernel(np.eye(3), W_R=w_r, temperature=0.5)
    found = kernel.log_relevance(Candidates(np.array(query, dtype), np.array(vectors, dtype)))
    assert found is not None
    np.testing.assert_allclose(found, [-1.0, 0.0, -2.0, -1.0], rtol=0, atol=1e-6)
    flat = kernel.log_relevance(Candidates(np.ones(3, dtype), np.array(vectors, dtype)))
    assert flat is not None
    assert flat.tolist() == [0.0] * 4


@pytest.mark.parametrize("shape", [(203, 129, 31), (301, 30, 7), (45, 20, 6)])
def test_copies_of_a_row_are_equally_relevant_to_the_last_bit(shape: tuple[int, int, int]) -> None:
    n, d, r = shape
    query, some = gaussian(n, 7, d)
    vectors = np.resize(some, (n, d))
    w_r = np.random.default_rng(n).normal(size=(d, r))
    found = LowRankKernel(np.ones((n, 1)), W_R=w_r, temperature=1e-6).log_relevance(Candidates(query, vectors))
    assert found is not None
    assert len(set(found.tolist())) == 7


# --- invalid relevance ----------------------------------------------------------------------------


@both_kinds
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"W_R": W_R}, "^W_R .*temperature"),
        ({"W_R": W_R[:, 0], "temperature": 1.0}, "^W_R .*two"),
        ({"W_R": W_R[:, :0], "temperature": 1.0}, "^W_R .*one"),
        ({"W_R": np.full((D, 2), np.nan), "temperature": 1.0}, "^W_R .*NaN"),
        *(({"temperature": t}, "^temperature ") for t in (0, -1.0, math.nan, math.inf)),
    ],
)
def test_an_invalid_relevance_is_refused(make: Made, more: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        make(**more)
    if len(more) == 2:
        with pytest.raises(KernelError, match=" rows"):
            LinearKernel(W_V, W_R=W_R[:4], temperature=0.1)


# --- files ----------------------------------------------------------------------------------------


# --- in NDPP --------------------------------------------------------------------------------------


def learned_case(case: Case, kind: str) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None, float]:
    """A kernel with a learned relevance for a case; its dense L, its W_R and its temperature."""
    n, d = case.vectors.shape
    rows = d if kind == "linear" else n
    left = case.rng.normal(size=(rows, int(case.rng.integers(1, 12))))
    skew = int(case.rng.integers(0, 6))
    half = case.rng.normal(size=(skew, skew))
    right, c = (case.rng.normal(size=(rows, skew)), half - half.T) if skew else (None, None)
    w_r = None if case.number % 5 == 4 else case.rng.normal(size=(d, int(case.rng.integers(1, 9))))
    temperature = float(case.rng.choice([0.1, 0.3, 2.0]))
    if kind == "low rank":
        kernel: Any = LowRankKernel(left, right, c, W_R=w_r, temperature=temperature)
        return kernel, oracles.ndpp_dense(left, right, c), w_r, temperature
    unit = oracles.unit_rows(case.vectors)
    dense = oracles.ndpp_dense(unit @ left, None if right is None else unit @ right, c)
    return LinearKernel(left, right, c, W_R=w_r, temperature=temperature), dense, w_r, temperature


@pytest.mark.parametrize("with_shown", [False, True], ids=["", "shown"])
@pytest.mark.parametrize("kind", ["low rank", "linear"])
def test_kernels_agree_with_the_reference(kind: str, with_shown: bool) -> None:
    """With the learned relevance, with a mapping of one's own, and with a given relevance."""
    compared = 0
    for case in random_cases(62 if with_shown else 61, 96):
        kernel, dense, w_r, temperature = learned_case(case, kind)
        n = len(case.vectors)
        shown = case.rng.permutation(n)[: min(3, n - 1)].tolist() if with_shown else []
        if abs(oracles.ndpp_determinant(dense, shown)) < 1e-3:
            continue
        compared += 1
        k = min(case.k, n - len(shown))
        more: dict[str, Any]
        selector, more = [
            (NDPP(kernel), {"kind": "exponential", "temperature": temperature, "W_R": w_r}),
            (NDPP(kernel, "linear"), {"kind": "linear"}),
            (NDPP(kernel, "exponential", 0.3), {"kind": "exponential", "temperature": 0.3}),
        ][case.number // 2 % 3]
        worth = draw_relevance(case) if case.number % 5 == 0 else None
        if worth is not None and "W_R" in more:
            more = {"kind": "auto", "c": AUTO_TEMPERATURE}
        expected = oracles.ndpp_greedy(case.query, case.vectors, k, kernel=dense, relevance=worth, shown=shown, **more)
        actual = selector.select(Candidates(case.query, case.vectors, relevance=worth), k, shown=shown)
        oracles.assert_agrees(actual, expected, f"{selector}, {case}, shown {shown}")
    assert compared > 30


@every_kernel
def test_a_given_relevance_comes_before_the_mapping_and_the_mapping_before_the_learned_one(make: Made) -> None:
    candidates, given = Candidates(QUERY, VECTORS), Candidates(QUERY, VECTORS, relevance=np.linspace(-1, 2, N))
    plain, learned = make(), make(W_R=W_R, temperature=0.05)
    assert plain.log_relevance(candidates) is None
    assert same(NDPP(plain).select(candidates, 5), NDPP(plain, relevance_mapping="exponential").select(candidates, 5))
    alone = NDPP(plain, relevance_mapping="exponential", temperature=0.3).select(candidates, 5)
    assert same(NDPP(make(temperature=0.3)).select(candidates, 5), alone)
    for parameters in ({}, {"relevance_mapping": "linear"}, {"relevance_mapping": "exponential", "temperature": 0.5}):
        selection = NDPP(learned, **parameters).select(given, 5)
        assert same(selection, NDPP(plain, **parameters).select(given, 5))
        assert not same(selection, NDPP(learned, **parameters).select(candidates, 5))
        mapped = NDPP(learned, **parameters).select(candidates, 5)
        assert same(mapped, NDPP(plain, **parameters).select(candidates, 5)) == bool(parameters)


class OnlyFactors:
    """A user's own kernel, with what the protocol requires."""

    def factors(self, candidates: Candidates) -> tuple[Any, Any, Any]:
        return LinearKernel(W_V, W_B, C).factors(candidates)


class WithRelevance(OnlyFactors):
    def __init__(self, found: Any) -> None:
        self.found = found

    def log_relevance(self, candidates: Candidates) -> Any:
        return self.found


def test_a_users_own_kernel_may_have_a_relevance() -> None:
    candidates, given = Candidates(QUERY, VECTORS), log_r(QUERY, VECTORS, 0.2, W_R)
    before = given.copy()
    found = NDPP(WithRelevance(given)).select(candidates, 4)
    wanted = NDPP(LinearKernel(W_V, W_B, C, W_R, 0.2)).select(candidates, 4)
    assert found.indices.tolist() == wanted.indices.tolist()
    np.testing.assert_allclose(found.gains, wanted.gains, rtol=1e-9)
    assert np.array_equal(given, before)


@pytest.mark.parametrize("found", [np.zeros(N - 1), np.zeros((N, 1)), 0.0, [math.nan] + [0.0] * (N - 1), ["high"] * N])
def test_an_invalid_relevance_of_a_users_own_kernel_is_refused(found: Any) -> None:
    with pytest.raises(SetSelectError, match="log_relevance"):
        NDPP(WithRelevance(found)).select(Candidates(QUERY, VECTORS), 2)
