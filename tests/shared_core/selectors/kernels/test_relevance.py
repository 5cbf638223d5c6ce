"""The relevance that a kernel was learned with: its values, its file, and what NDPP selects with it."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, KernelError, LinearKernel, LowRankKernel, Selection, SetSelectWarning
from tests import oracles
from tests.shared_core.cases import Case, gaussian, random_cases

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
    "w_r",
    [None, W_R, W_R[:, :1], RNG.normal(size=(D, 11)), np.eye(D)],
    ids=["plain", "two columns", "one column", "eleven columns", "identity"],
)
@pytest.mark.parametrize("temperature", [0.05, 1, 30.0])
def test_log_relevance_is_that_of_the_formula(make: Made, w_r: Any, temperature: float) -> None:
    found = make(W_R=w_r, temperature=temperature).log_relevance(Candidates(QUERY, VECTORS))
    assert found.dtype == np.float64
    assert found.max() == 0
    np.testing.assert_allclose(found, log_r(QUERY, VECTORS, temperature, w_r), rtol=0, atol=1e-13 / temperature)


@every_kernel
def test_a_kernel_without_a_temperature_has_no_relevance(make: Made) -> None:
    assert make().log_relevance(Candidates(QUERY, VECTORS)) is None


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_the_lengths_of_the_vectors_and_of_the_map_do_not_matter(scale: float) -> None:
    wanted = log_r(QUERY, VECTORS, 0.2, W_R)
    found = LowRankKernel(V, W_R=scale * W_R, temperature=0.2).log_relevance(Candidates(7 * QUERY, VECTORS * 1e3))
    assert found is not None
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


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


def test_a_zero_map_makes_all_candidates_equally_relevant() -> None:
    found = LowRankKernel(V, W_R=np.zeros((D, 2)), temperature=0.5).log_relevance(Candidates(QUERY, VECTORS))
    assert found is not None
    assert found.tolist() == [0.0] * N


@pytest.mark.parametrize("temperature", [1e-300, 5e-324, 1e308])
def test_the_lowest_and_highest_temperatures_give_finite_values(temperature: float) -> None:
    found = LowRankKernel(V, W_R=W_R, temperature=temperature).log_relevance(Candidates(QUERY, VECTORS))
    assert found is not None
    assert np.isfinite(found).all()
    assert found.max() == 0
    assert np.argmax(found) == np.argmax(oracles.mapped_cosines(QUERY, VECTORS, W_R)[0]) or temperature > 1


@pytest.mark.parametrize("shape", [(203, 129, 31), (301, 30, 7), (45, 20, 6)])
def test_copies_of_a_row_are_equally_relevant_to_the_last_bit(shape: tuple[int, int, int]) -> None:
    n, d, r = shape
    query, some = gaussian(n, 7, d)
    vectors = np.resize(some, (n, d))
    w_r = np.random.default_rng(n).normal(size=(d, r))
    found = LowRankKernel(np.ones((n, 1)), W_R=w_r, temperature=1e-6).log_relevance(Candidates(query, vectors))
    assert found is not None
    assert len(set(found.tolist())) == 7


@pytest.mark.parametrize("w_r", [W_R, None], ids=["mapped", "plain"])
def test_a_permutation_of_the_rows_permutes_log_relevance(w_r: Any) -> None:
    order = RNG.permutation(N)
    kernel = LinearKernel(W_V, W_R=w_r, temperature=0.1)
    plain, moved = (kernel.log_relevance(Candidates(QUERY, rows)) for rows in (VECTORS, VECTORS[order]))
    assert plain is not None
    assert moved is not None
    assert moved.tolist() == plain[order].tolist()


def test_vectors_of_another_length_are_refused() -> None:
    query, vectors = gaussian(23, N, D + 1)
    with pytest.raises(KernelError, match=r"length 5.*have 6.*another embedding model"):
        LowRankKernel(V, W_R=W_R, temperature=0.1).log_relevance(Candidates(query, vectors))
    with pytest.raises(KernelError, match="another embedding model"):
        NDPP(LowRankKernel(V, W_R=W_R, temperature=0.1)).select(Candidates(query, vectors), 2)
    # With a relevance of its own, NDPP does not read the learned one.
    assert len(NDPP(LowRankKernel(V, W_R=W_R, temperature=0.1), "linear").select(Candidates(query, vectors), 2)) == 2


# --- invalid relevance ----------------------------------------------------------------------------


def with_nan() -> NDArray[np.float64]:
    spoiled = W_R.copy()
    spoiled[3, 1] = np.nan
    return spoiled


@both_kinds
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"W_R": W_R}, "W_R needs a temperature"),
        ({"W_R": with_nan(), "temperature": 1.0}, "W_R holds NaN or inf, first in row 3"),
        ({"W_R": W_R[:, 0], "temperature": 1.0}, "W_R must have two dimensions"),
        ({"W_R": W_R[None], "temperature": 1.0}, "W_R must have two dimensions"),
        ({"W_R": W_R[:, :0], "temperature": 1.0}, "W_R must have at least one"),
        ({"W_R": np.ma.masked_array(W_R), "temperature": 1.0}, "W_R is a masked array"),
        ({"W_R": [["a"]], "temperature": 1.0}, "W_R must be numbers"),
        *(({"temperature": t}, "temperature must be") for t in (0, -1.0, math.nan, math.inf, "0.1", True, [0.1])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_relevance_is_refused(make: Made, more: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        make(**more)


def test_both_maps_of_a_linear_kernel_must_take_vectors_of_one_length() -> None:
    with pytest.raises(KernelError, match=r"W_V \(5, 4\) and W_R \(4, 2\) must have the same number of rows"):
        LinearKernel(W_V, W_R=W_R[:4], temperature=0.1)


def test_a_kernel_keeps_a_copy_of_the_map() -> None:
    given = W_R.copy()
    kernel = LinearKernel(W_V, W_R=given, temperature=0.1)
    before = kernel.log_relevance(Candidates(QUERY, VECTORS))
    given[:] = 1
    after = kernel.log_relevance(Candidates(QUERY, VECTORS))
    assert before is not None
    assert after is not None
    assert before.tolist() == after.tolist()


@both_kinds
def test_repr_shows_the_temperature_if_it_is_set(make: Made) -> None:
    assert "temperature=0.25" in repr(make(temperature=0.25))
    assert "temperature" not in repr(make())


# --- files ----------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("w_r", [None, W_R], ids=["plain", "mapped"])
@pytest.mark.parametrize("temperature", [0.1, 1 / 3, 5e-324, 1e300, np.float32(0.1)])
def test_a_loaded_kernel_has_the_relevance_of_the_saved_one(
    make: Made, w_r: Any, temperature: float, tmp_path: Path
) -> None:
    pytest.importorskip("safetensors")
    kernel, path = make(W_R=w_r, temperature=temperature), tmp_path / "kernel.safetensors"
    kernel.save(path)
    loaded = type(kernel).load(path)
    assert loaded.temperature == float(temperature)
    assert loaded.W_R is None if w_r is None else np.array_equal(loaded.W_R, w_r)
    candidates = Candidates(QUERY, VECTORS)
    assert loaded.log_relevance(candidates).tolist() == kernel.log_relevance(candidates).tolist()


@every_kernel
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_copies_select_the_same(make: Made, again: Callable[[Any], Any]) -> None:
    selector = NDPP(make(W_R=W_R, temperature=0.2))
    first, second = (s.select(Candidates(QUERY, VECTORS), 4) for s in (selector, again(selector)))
    assert (first.indices.tolist(), first.gains.tolist()) == (second.indices.tolist(), second.gains.tolist())


def rewrite(path: Path, arrays: dict[str, Any], metadata: dict[str, str | None]) -> None:
    """Write the same file with these arrays and metadata in place of its own; None leaves one out."""
    safetensors = pytest.importorskip("safetensors")
    from safetensors.numpy import load_file, save_file

    with safetensors.safe_open(path, framework="np") as file:
        changed = {key: value for key, value in {**file.metadata(), **metadata}.items() if value is not None}
    held = {name: value for name, value in {**load_file(path), **arrays}.items() if value is not None}
    save_file(held, path, metadata=changed)


@both_kinds
def test_a_file_without_a_relevance_loads(make: Made, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    kernel, path = make(W_R=W_R, temperature=0.1), tmp_path / "kernel.safetensors"
    kernel.save(path)
    rewrite(path, {"W_R": None}, {"temperature": None})
    loaded = type(kernel).load(path)
    assert (loaded.W_R, loaded.temperature) == (None, None)


@both_kinds
@pytest.mark.parametrize(
    ("arrays", "metadata", "message"),
    [
        *(({}, {"temperature": t}, f"the temperature '{t}'") for t in ("abc", "nan", "-1", "0", "inf", "1e999", "")),
        ({}, {"temperature": None}, "W_R needs a temperature"),
        ({"W_R": with_nan()}, {}, "W_R holds NaN or inf"),
        ({"W_R": W_R.ravel().copy()}, {}, "W_R must have two dimensions"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_file_is_refused(
    make: Made, arrays: dict[str, Any], metadata: dict[str, Any], message: str, tmp_path: Path
) -> None:
    pytest.importorskip("safetensors")
    kernel, path = make(W_R=W_R, temperature=0.1), tmp_path / "kernel.safetensors"
    kernel.save(path)
    rewrite(path, arrays, metadata)
    with pytest.raises(KernelError, match=message) as caught:
        type(kernel).load(path)
    assert str(path) in str(caught.value)


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


@pytest.mark.parametrize("kind", ["low rank", "linear"])
def test_learned_kernels_agree_with_the_reference(kind: str) -> None:
    for case in random_cases(61, 144):
        kernel, dense, w_r, temperature = learned_case(case, kind)
        expected = oracles.ndpp_greedy(
            case.query,
            case.vectors,
            case.k,
            kernel=dense,
            kind="exponential",
            temperature=temperature,
            W_R=w_r,
        )
        oracles.assert_agrees(NDPP(kernel).select(case.candidates, case.k), expected, f"{kind}, {case}")


@pytest.mark.parametrize("kind", ["low rank", "linear"])
def test_shown_conditions_a_learned_kernel(kind: str) -> None:
    compared = 0
    for case in random_cases(62, 96):
        kernel, dense, w_r, temperature = learned_case(case, kind)
        n = len(case.vectors)
        shown = case.rng.permutation(n)[: min(3, n - 1)].tolist()
        if abs(oracles.ndpp_determinant(dense, shown)) < 1e-3:
            continue
        compared += 1
        k = min(case.k, n - len(shown))
        expected = oracles.ndpp_greedy(
            case.query,
            case.vectors,
            k,
            kernel=dense,
            kind="exponential",
            temperature=temperature,
            W_R=w_r,
            shown=shown,
        )
        actual = NDPP(kernel).select(case.candidates, k, shown=shown)
        oracles.assert_agrees(actual, expected, f"{kind}, {case}, shown {shown}")
    assert compared > 30


def same(one: Selection, other: Selection) -> bool:
    return one.indices.tolist() == other.indices.tolist() and one.gains.tolist() == other.gains.tolist()


@every_kernel
def test_objective_is_the_determinant_of_the_adapted_kernel(make: Made) -> None:
    kernel, candidates = make(W_R=W_R, temperature=0.4), Candidates(QUERY, VECTORS)
    left, right, c = kernel.factors(candidates)
    r = np.exp(log_r(QUERY, VECTORS, 0.4, W_R))
    adapted = np.diag(r) @ (left @ left.T + right @ c @ right.T) @ np.diag(r)
    selection = NDPP(kernel).select(candidates, 3)
    assert selection.filled_from is None
    assert selection.objective == pytest.approx(oracles.ndpp_determinant(adapted, selection.indices.tolist()), rel=1e-9)


@every_kernel
def test_a_permutation_of_the_candidates_permutes_the_picks(make: Made) -> None:
    # A low-rank kernel finds its rows by id.
    order = RNG.permutation(N)
    selector = NDPP(make(W_R=W_R, temperature=0.3))
    plain = selector.select(Candidates(QUERY, VECTORS, ids=range(N)), 4)
    moved = selector.select(Candidates(QUERY, VECTORS[order], ids=order.tolist()), 4)
    assert order[moved.indices].tolist() == plain.indices.tolist()
    np.testing.assert_allclose(moved.gains, plain.gains, rtol=1e-9)


@every_kernel
def test_without_a_learned_relevance_ndpp_uses_the_exponential_one(make: Made) -> None:
    candidates = Candidates(QUERY, VECTORS)
    assert same(NDPP(make()).select(candidates, 5), NDPP(make(), relevance_mapping="exponential").select(candidates, 5))


@every_kernel
def test_the_relevance_of_ndpp_replaces_the_learned_one(make: Made) -> None:
    candidates = Candidates(QUERY, VECTORS)
    plain, learned = make(), make(W_R=W_R, temperature=0.05)
    for parameters in ({"relevance_mapping": "linear"}, {"relevance_mapping": "exponential", "temperature": 0.5}):
        assert same(NDPP(learned, **parameters).select(candidates, 5), NDPP(plain, **parameters).select(candidates, 5))
        assert not same(NDPP(learned, **parameters).select(candidates, 5), NDPP(learned).select(candidates, 5))


@every_kernel
def test_a_given_relevance_replaces_the_learned_one(make: Made) -> None:
    relevance = np.linspace(-1, 2, N)
    candidates, given = Candidates(QUERY, VECTORS), Candidates(QUERY, VECTORS, relevance=relevance)
    plain, learned = make(), make(W_R=W_R, temperature=0.05)
    for parameters in ({}, {"relevance_mapping": "linear"}, {"relevance_mapping": "exponential", "temperature": 0.5}):
        selection = NDPP(learned, **parameters).select(given, 5)
        assert same(selection, NDPP(plain, **parameters).select(given, 5))
        assert not same(selection, NDPP(learned, **parameters).select(candidates, 5))


@every_kernel
def test_a_learned_temperature_alone_is_the_exponential_relevance(make: Made) -> None:
    candidates = Candidates(QUERY, VECTORS)
    expected = NDPP(make(), relevance_mapping="exponential", temperature=0.3).select(candidates, 5)
    assert same(NDPP(make(temperature=0.3)).select(candidates, 5), expected)


def test_temperature_has_no_effect_on_a_learned_or_linear_relevance() -> None:
    candidates, learned = Candidates(QUERY, VECTORS), LinearKernel(W_V, W_R=W_R, temperature=0.05)
    for kernel, relevance in ((learned, None), (learned, "linear"), (LinearKernel(W_V), "linear"), (None, "linear")):
        with pytest.warns(SetSelectWarning, match="temperature has no effect"):
            selector = NDPP(kernel, relevance, temperature=3.0)
        with_one = selector.select(candidates, 5)
        assert same(with_one, NDPP(kernel, relevance).select(candidates, 5))


class OnlyFactors:
    """A user's own kernel, with what the protocol requires."""

    def factors(self, candidates: Candidates) -> tuple[Any, Any, Any]:
        return LinearKernel(W_V, W_B, C).factors(candidates)


class WithRelevance(OnlyFactors):
    def __init__(self, found: Any) -> None:
        self.found = found

    def log_relevance(self, candidates: Candidates) -> Any:
        return self.found


def test_a_users_own_kernel_needs_factors_alone() -> None:
    candidates = Candidates(QUERY, VECTORS)
    plain = NDPP(LinearKernel(W_V, W_B, C)).select(candidates, 4)
    for kernel in (OnlyFactors(), WithRelevance(None)):
        assert same(NDPP(kernel).select(candidates, 4), plain)


def test_a_users_own_kernel_may_have_a_relevance() -> None:
    candidates, given = Candidates(QUERY, VECTORS), log_r(QUERY, VECTORS, 0.2, W_R)
    before = given.copy()
    found = NDPP(WithRelevance(given)).select(candidates, 4)
    wanted = NDPP(LinearKernel(W_V, W_B, C, W_R, 0.2)).select(candidates, 4)
    assert found.indices.tolist() == wanted.indices.tolist()
    np.testing.assert_allclose(found.gains, wanted.gains, rtol=1e-9)
    assert np.array_equal(given, before)


@pytest.mark.parametrize(
    "found",
    [
        np.zeros(N - 1), np.zeros((N, 1)), 0.0, [math.nan] + [0.0] * (N - 1), [-math.inf] * N,
        ["high"] * N, [[0.0], [0.0, 0.0]], {"a": 0.0},
    ],
)  # fmt: skip
def test_an_invalid_relevance_of_a_users_own_kernel_is_refused(found: Any) -> None:
    with pytest.raises(KernelError, match="log_relevance of"):
        NDPP(WithRelevance(found)).select(Candidates(QUERY, VECTORS), 2)
