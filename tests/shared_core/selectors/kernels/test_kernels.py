"""Low-rank and linear kernels: their rows, their checks and their files."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, KernelError, LinearKernel, LowRankKernel
from tests import oracles
from tests.shared_core.cases import gaussian

safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import load_file, save_file  # noqa: E402

RNG = np.random.default_rng(11)
V = RNG.normal(size=(9, 4))
B = RNG.normal(size=(9, 3))
HALF = RNG.normal(size=(3, 3))
C = HALF - HALF.T
W_V = RNG.normal(size=(5, 4))
W_B = RNG.normal(size=(5, 3))
QUERY, VECTORS = gaussian(12, 9, 5)

KERNELS: dict[str, Callable[[], Any]] = {
    "low rank": lambda: LowRankKernel(V, B, C),
    "low rank, symmetric": lambda: LowRankKernel(V),
    "low rank, names": lambda: LowRankKernel(V, B, C, ids=list("abcdefghi")),
    "low rank, numbers": lambda: LowRankKernel(V, B, C, ids=[10 * i for i in range(9)]),
    "linear": lambda: LinearKernel(W_V, W_B, C),
    "linear, symmetric": lambda: LinearKernel(W_V),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)


def candidates_for(name: str) -> Candidates:
    ids: dict[str, list[Any]] = {
        "low rank, names": list("abcdefghi"),
        "low rank, numbers": [10 * i for i in range(9)],
    }
    return Candidates(QUERY, VECTORS, ids=ids.get(name))


def dense_of(name: str) -> NDArray[np.float64]:
    rows = oracles.unit_rows(VECTORS)
    left, right = (rows @ W_V, rows @ W_B) if "linear" in name else (V, B)
    return oracles.ndpp_dense(left) if "symmetric" in name else oracles.ndpp_dense(left, right, C)


def multiplied(factors: tuple[Any, Any, Any]) -> NDArray[np.float64]:
    left, right, skew = factors
    return left @ left.T + right @ skew @ right.T


# --- rows -----------------------------------------------------------------------------------------


@every_kernel
def test_factors_multiply_to_the_kernel(name: str) -> None:
    factors = KERNELS[name]().factors(candidates_for(name))
    assert all(factor.dtype == np.float64 for factor in factors)
    np.testing.assert_allclose(multiplied(factors), dense_of(name), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["low rank", "low rank, symmetric", "low rank, names"])
def test_a_dense_low_rank_kernel(name: str) -> None:
    np.testing.assert_allclose(KERNELS[name]().dense(), dense_of(name), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["linear", "linear, symmetric"])
def test_a_dense_linear_kernel_is_computed_from_unit_rows(name: str) -> None:
    kernel = KERNELS[name]()
    np.testing.assert_allclose(kernel.dense(VECTORS), dense_of(name), rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel.dense(7 * VECTORS), dense_of(name), rtol=0, atol=1e-12)


def test_rows_are_found_by_id() -> None:
    order = [4, 0, 8, 2]
    kernel = LowRankKernel(V, B, C, ids=list("abcdefghi"))
    some = Candidates(QUERY, VECTORS[order], ids=["e", "a", "i", "c"])
    np.testing.assert_allclose(multiplied(kernel.factors(some)), dense_of("low rank")[np.ix_(order, order)], atol=1e-12)
    numbered = Candidates(QUERY, VECTORS[order], ids=order)
    np.testing.assert_allclose(
        multiplied(LowRankKernel(V, B, C).factors(numbered)),
        dense_of("low rank")[np.ix_(order, order)],
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learned", [{}, {"temperature": 0.3}, {"W_R": RNG.normal(size=(5, 2)), "temperature": 0.3}])
@pytest.mark.parametrize("skew", [(), (W_B, C)], ids=["symmetric", "with a skew part"])
def test_the_rows_of_a_linear_kernel_may_be_computed_once(skew: Any, learned: Any, dtype: Any) -> None:
    linear = LinearKernel(W_V, *skew, **learned)
    vectors, names = 3 * VECTORS.astype(dtype), list("abcdefghi")
    rows = linear.to_low_rank(vectors, names)
    assert np.array_equal(rows.V, linear.factors(Candidates(QUERY, vectors))[0])
    order = [7, 2, 0, 5, 8]
    some = Candidates(QUERY.astype(dtype), vectors[order], ids=[names[i] for i in order])
    for relevance in (None, "linear"):
        found, expected = (NDPP(kernel, relevance).select(some, 3) for kernel in (rows, linear))
        assert found.indices.tolist() == expected.indices.tolist()
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9)
    assert linear.to_low_rank(vectors).ids == tuple(range(9))
    with pytest.raises(KernelError, match="takes vectors of length 5"):
        linear.to_low_rank(vectors[:, :4])
    with pytest.raises(KernelError, match="ids must be 9"):
        linear.to_low_rank(vectors, "abc")


def test_ids_may_be_of_several_types() -> None:
    kernel = LowRankKernel(V[:3], ids=["a", 7, ("b", 1)])
    some = Candidates(QUERY, VECTORS[:2], ids=[("b", 1), "a"])
    np.testing.assert_allclose(kernel.factors(some)[0], V[[2, 0]])


@pytest.mark.parametrize("unknown", ["z", 99, -1, 9])
def test_an_unknown_id_is_named(unknown: Any) -> None:
    with pytest.raises(KernelError, match=str(unknown)):
        NDPP(LowRankKernel(V, B, C)).select(Candidates(QUERY, VECTORS[:3], ids=[0, unknown, 2]), 2)


def test_candidates_without_ids_must_be_as_many_as_the_rows() -> None:
    kernel = LowRankKernel(V, B, C)
    assert len(kernel.factors(Candidates(QUERY, VECTORS))[0]) == 9
    with pytest.raises(KernelError, match=r"(?s)8.*9|9.*8"):
        kernel.factors(Candidates(QUERY, VECTORS[:8]))


def test_a_linear_kernel_takes_other_candidates_than_it_was_learned_from() -> None:
    query, vectors = gaussian(13, 40, 5)
    factors = LinearKernel(W_V, W_B, C).factors(Candidates(query, vectors))
    rows = oracles.unit_rows(vectors)
    np.testing.assert_allclose(multiplied(factors), oracles.ndpp_dense(rows @ W_V, rows @ W_B, C), atol=1e-12)


def test_a_linear_kernel_of_another_dimension_is_rejected() -> None:
    query, vectors = gaussian(13, 4, 6)
    with pytest.raises(KernelError, match=r"(?s)5.*6|6.*5"):
        LinearKernel(W_V, W_B, C).factors(Candidates(query, vectors))


# --- invalid kernels ------------------------------------------------------------------------------


def spoiled(array: NDArray[np.float64], value: float) -> NDArray[np.float64]:
    copy = array.copy()
    copy.flat[1] = value
    return copy


BAD: dict[str, tuple[Any, Any, Any]] = {
    "V with one axis": (V[:, 0], B, C),
    "V with three axes": (V[None], B, C),
    "B of another length": (V, B[:-1], C),
    "B with one axis": (V, B[:, 0], C),
    "C not square": (V, B, C[:2]),
    "C of another size": (V, B, C[:2, :2]),
    "C not skew": (V, B, HALF),
    "C symmetric": (V, B, HALF + HALF.T),
    "C with a diagonal": (V, B, C + np.eye(3)),
    "C nearly skew": (V, B, C + 1e-3 * np.eye(3)),
    "B without C": (V, B, None),
    "C without B": (V, None, C),
    "NaN in V": (spoiled(V, np.nan), B, C),
    "inf in V": (spoiled(V, np.inf), B, C),
    "NaN in B": (V, spoiled(B, np.nan), C),
    "NaN in C": (V, B, spoiled(C, np.nan)),
    "no numbers": ([["a"]], None, None),
    "empty": (np.zeros((0, 4)), None, None),
}


@pytest.mark.parametrize("what", BAD)
def test_an_invalid_low_rank_kernel_is_refused(what: str) -> None:
    with pytest.raises(KernelError):
        LowRankKernel(*BAD[what])


@pytest.mark.parametrize("what", BAD)
def test_an_invalid_linear_kernel_is_refused(what: str) -> None:
    with pytest.raises(KernelError):
        LinearKernel(*BAD[what])


@pytest.mark.parametrize("ids", [list(range(8)), list(range(10)), [0] * 9, [[i] for i in range(9)]])
def test_ids_that_do_not_identify_the_rows_are_refused(ids: Any) -> None:
    with pytest.raises(KernelError):
        LowRankKernel(V, B, C, ids=ids)


def test_a_kernel_keeps_a_copy_of_the_factors() -> None:
    given = V.copy(), B.copy(), C.copy()
    kernel = LowRankKernel(*given)
    assert all(array.flags.writeable for array in given)
    given[0][:] = 0
    np.testing.assert_allclose(kernel.dense(), dense_of("low rank"), atol=1e-12)


@pytest.mark.parametrize("shown", [[], [1]])
@pytest.mark.parametrize("largest", [1e155, 1e300])
def test_a_kernel_whose_determinants_overflow_is_refused(largest: float, shown: list[int]) -> None:
    for kernel in (LowRankKernel(V * largest, B, C), LowRankKernel(V, B * largest, C)):
        with pytest.raises(KernelError, match="so large that a determinant overflows"):
            NDPP(kernel).select(Candidates(QUERY, VECTORS), 5, shown=shown)


def test_a_matrix_that_is_far_from_skew_is_refused_without_overflow() -> None:
    with pytest.raises(KernelError, match="C must be skew-symmetric"):
        LowRankKernel(V, B, np.full((3, 3), 1e308))


# --- files ----------------------------------------------------------------------------------------


@every_kernel
def test_a_loaded_kernel_equals_the_saved_one(name: str, tmp_path: Path) -> None:
    kernel = KERNELS[name]()
    path = tmp_path / "kernel.safetensors"
    kernel.save(path)
    loaded = type(kernel).load(path)
    assert type(loaded) is type(kernel)
    candidates = candidates_for(name)
    for before, after in zip(kernel.factors(candidates), loaded.factors(candidates), strict=True):
        assert np.array_equal(before, after)
    first, second = (NDPP(k).select(candidates, 5) for k in (kernel, loaded))
    assert first.indices.tolist() == second.indices.tolist()
    assert first.gains.tolist() == second.gains.tolist()


def test_threads_that_save_and_load_at_once_see_whole_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    kernels = [LowRankKernel(np.full((rows, 20), rows)) for rows in (50, 400)]
    kernels[0].save(path)

    def save(kernel: LowRankKernel) -> None:
        for _ in range(40):
            kernel.save(path)

    def load() -> set[tuple[int, bool]]:
        found = [np.asarray(LowRankKernel.load(path).V) for _ in range(100)]
        return {(len(V), bool((V[:, 0] == len(V)).all())) for V in found}

    with ThreadPoolExecutor(6) as pool:
        savers = [pool.submit(save, kernel) for kernel in kernels * 2]
        loaders = [pool.submit(load) for _ in range(2)]
        for saver in savers:
            saver.result()
        for loader in loaders:
            assert loader.result() <= {(50, True), (400, True)}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("planted", ["{name}", "{name}.tmp", ".{name}.tmp", "{name}.{pid}.tmp"])
def test_a_link_that_somebody_planted_is_not_followed(planted: str, tmp_path: Path) -> None:
    path, other = tmp_path / "kernel.safetensors", tmp_path / "other"
    other.write_text("mine")
    (tmp_path / planted.format(name=path.name, pid=os.getpid())).symlink_to(other)
    LowRankKernel(V).save(path)
    assert other.read_text() == "mine"
    assert not path.is_symlink()
    np.testing.assert_allclose(LowRankKernel.load(path).dense(), V @ V.T, atol=1e-12)


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    path = str(tmp_path / "kernel.safetensors")
    LowRankKernel(V).save(path)
    np.testing.assert_allclose(LowRankKernel.load(path).dense(), V @ V.T, atol=1e-12)


def test_the_file_is_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    LowRankKernel(V, B, C).save(path)
    shapes = {tensor.shape for tensor in load_file(path).values()}
    assert {V.shape, B.shape, C.shape} <= shapes


def rewrite(
    path: Path,
    tensors: Callable[[NDArray[Any]], NDArray[Any]] = lambda tensor: tensor,
    metadata: Callable[[str, str], str] = lambda key, value: value,
) -> None:
    """Write the same file with changed tensors or metadata; the names of the fields do not matter."""
    with safetensors.safe_open(path, framework="np") as file:
        changed = {key: metadata(key, value) for key, value in (file.metadata() or {}).items()}
    save_file({key: np.ascontiguousarray(tensors(t)) for key, t in load_file(path).items()}, path, metadata=changed)


def test_a_rewritten_file_still_loads(tmp_path: Path) -> None:
    # The tests below rely on it.
    path = tmp_path / "kernel.safetensors"
    LowRankKernel(V, B, C).save(path)
    rewrite(path)
    np.testing.assert_allclose(LowRankKernel.load(path).dense(), dense_of("low rank"), atol=1e-12)


def test_a_future_version_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    LowRankKernel(V, B, C).save(path)
    changed: list[str] = []

    def later(key: str, value: str) -> str:
        if "version" not in key:
            return value
        changed.append(key)
        return "999"

    rewrite(path, metadata=later)
    assert changed, "no format version in the file"
    with pytest.raises(KernelError, match="999"):
        LowRankKernel.load(path)


def test_a_file_without_metadata_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    save_file({"V": V, "B": B, "C": C}, path)
    with pytest.raises(KernelError):
        LowRankKernel.load(path)


CHANGES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "C not skew": lambda t: np.abs(t) if t.shape == C.shape else t,
    "C too small": lambda t: t[:2, :2] if t.shape == C.shape else t,
    "V without a row": lambda t: t[:-1] if t.shape in (V.shape, W_V.shape) else t,
    "B without a column": lambda t: t[:, :-1] if t.shape in (B.shape, W_B.shape) else t,
    "V with one axis": lambda t: t.ravel() if t.shape in (V.shape, W_V.shape) else t,
    "NaN": lambda t: np.full_like(t, np.nan) if t.shape in (V.shape, W_V.shape) else t,
    "inf in C": lambda t: np.full_like(t, np.inf) if t.shape == C.shape else t,
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("name", ["low rank", "linear"])
def test_a_spoiled_file_is_rejected(name: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    kernel = KERNELS[name]()
    kernel.save(path)
    rewrite(path, tensors=CHANGES[what])
    with pytest.raises(KernelError):
        type(kernel).load(path)


@pytest.mark.parametrize("name", ["low rank", "linear"])
@pytest.mark.parametrize("kept", [0, 4, 8, 20, 0.5, 0.9, -1])
def test_a_truncated_file_is_rejected(name: str, kept: float, tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    kernel = KERNELS[name]()
    kernel.save(path)
    content = path.read_bytes()
    length = int(kept * len(content)) if 0 < kept < 1 else int(kept)
    path.write_bytes(content[:length])
    with pytest.raises(KernelError):
        type(kernel).load(path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"\xff" * 64, b"not a kernel at all"])
def test_other_bytes_are_rejected(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    path.write_bytes(content)
    with pytest.raises(KernelError):
        LowRankKernel.load(path)


class Trap:
    """An object whose pickle runs code when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    trace, path = tmp_path / "trace", tmp_path / "kernel.safetensors"
    path.write_bytes(pickle.dumps(Trap(trace)))
    with pytest.raises(KernelError):
        LowRankKernel.load(path)
    assert not trace.exists()


def test_the_wrong_kind_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "kernel.safetensors"
    LowRankKernel(V, B, C).save(path)
    with pytest.raises(KernelError):
        LinearKernel.load(path)
    LinearKernel(W_V, W_B, C).save(path)
    with pytest.raises(KernelError):
        LowRankKernel.load(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises((KernelError, FileNotFoundError), match="absent"):
        LowRankKernel.load(tmp_path / "absent.safetensors")


def test_an_id_of_another_type_is_named() -> None:
    # A store may return ids as texts that are numbers in the file of examples.
    kernel = LowRankKernel([[1.0], [2.0]], ids=[7, 8])
    with pytest.raises(
        KernelError, match="does not know id '7'; it was learned for 2 ids, one of which is 7, of another type"
    ):
        kernel.factors(Candidates([1.0], [[1.0]], ids=["7"]))
