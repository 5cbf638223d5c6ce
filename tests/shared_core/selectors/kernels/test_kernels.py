"""Low-rank and linear kernels: their rows, their checks and their files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
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
    ids: dict[str, list[Any]] = {"low rank, names": list("abcdefghi"), "low rank, numbers": [10 * i for i in range(9)]}
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
    kernel = KERNELS[name]()
    factors = kernel.factors(candidates_for(name))
    assert all(factor.dtype == np.float64 for factor in factors)
    np.testing.assert_allclose(multiplied(factors), dense_of(name), rtol=0, atol=1e-12)


def test_rows_are_found_by_id() -> None:
    order = [4, 0, 8, 2]
    expected = dense_of("low rank")[np.ix_(order, order)]
    for ids in (list("abcdefghi"), ["a", 7, ("b", 1), "c", 2.5, "e", "f", "g", 3], None):
        kernel = LowRankKernel(V, B, C, ids=ids)
        some = Candidates(QUERY, VECTORS[order], ids=order if ids is None else [ids[i] for i in order])
        np.testing.assert_allclose(multiplied(kernel.factors(some)), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "vectors", "ids", "words"),
    [
        (LowRankKernel(V, B, C), VECTORS[:3], [0, 99, 2], "id 99"),
        (LowRankKernel(V, B, C), VECTORS[:1], ["7"], "id '7'.* 9 ids.* 7.* type"),
        (LowRankKernel(V, B, C), VECTORS[:8], None, "8 candidates .*ids.* 9 rows"),
        (LinearKernel(W_V, W_B, C), np.ones((4, 6)), None, "length 5.* 6"),
    ],
)
def test_candidates_that_the_kernel_does_not_know_are_refused(kernel: Any, vectors: Any, ids: Any, words: str) -> None:
    with pytest.raises(KernelError, match=words):
        NDPP(kernel).select(Candidates(np.ones(vectors.shape[1]), vectors, ids=ids), 1)


# --- invalid kernels ------------------------------------------------------------------------------


def spoiled(array: NDArray[np.float64], value: float) -> NDArray[np.float64]:
    copy = array.copy()
    copy.flat[1] = value
    return copy


BAD: dict[str, tuple[Any, Any, Any]] = {
    "V with one axis": (V[:, 0], B, C),
    "B of another length": (V, B[:-1], C),
    "C of another size": (V, B, C[:2, :2]),
    "C not skew": (V, B, HALF),
    "C nearly skew": (V, B, C + 1e-3 * np.eye(3)),
    "C large": (V, B, np.full((3, 3), 1e308)),
    "B without C": (V, B, None),
    "C without B": (V, None, C),
    "NaN in V": (spoiled(V, np.nan), B, C),
    "inf in V": (spoiled(V, np.inf), B, C),
    "NaN in B": (V, spoiled(B, np.nan), C),
    "NaN in C": (V, B, spoiled(C, np.nan)),
    "empty": (np.zeros((0, 4)), None, None),
}


@pytest.mark.parametrize("kind", [LowRankKernel, LinearKernel])
def test_an_invalid_kernel_is_refused(kind: Any) -> None:
    for arrays in BAD.values():
        with pytest.raises(KernelError):
            kind(*arrays)


@pytest.mark.parametrize("shown", [[], [1]])
@pytest.mark.parametrize("largest", [1e155, 1e300])
def test_a_kernel_whose_determinants_overflow_is_refused(largest: float, shown: list[int]) -> None:
    for kernel in (LowRankKernel(V * largest, B, C), LowRankKernel(V, B * largest, C)):
        with pytest.raises(KernelError, match="overflows"):
            NDPP(kernel).select(Candidates(QUERY, VECTORS), 5, shown=shown)


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


def tensors(change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Path], None]:
    """Write the same file with the first array of a kernel changed."""

    def damage(path: Path) -> None:
        with safetensors.safe_open(path, framework="np") as file:
            metadata = file.metadata()
        arrays = load_file(path)
        first = "V" if "V" in arrays else "W_V"
        save_file({**arrays, first: np.ascontiguousarray(change(arrays[first]))}, path, metadata=metadata)

    return damage


def metadata(**changed: str | None) -> Callable[[Path], None]:
    """Write the same file with other metadata; None leaves an entry out."""

    def damage(path: Path) -> None:
        with safetensors.safe_open(path, framework="np") as file:
            held = {**file.metadata(), **changed}
        save_file(load_file(path), path, metadata={name: value for name, value in held.items() if value is not None})

    return damage


def retyped(dtype: str) -> Callable[[Path], None]:
    """Write the same file with another dtype of the first array, whose shape has as many bytes."""

    def damage(path: Path) -> None:
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        head = json.loads(content[8 : 8 + size])
        array = head["V" if "V" in head else "W_V"]
        array |= {"dtype": dtype, "shape": [*array["shape"], 16 if dtype == "F4" else 8]}
        text = json.dumps(head).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])

    return damage


def contents(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return damage


DAMAGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a later version": (metadata(version="999"), "'999'"),
    "no kernel": (metadata(format=None), "setselect"),
    "one row less": (tensors(lambda t: t[:-1]), "same number of rows"),
    "NaN": (tensors(lambda t: np.full_like(t, np.nan)), "NaN or inf"),
    **{f"{kept} bytes": (contents(lambda c, n=kept: c[:n]), "truncated") for kept in (0, -1)},  # type: ignore[misc]
    **{f"temperature {t}": (metadata(temperature=t), "temperature") for t in ("abc", "-1")},
    "F4": (retyped("F4"), "F4"),
    "numbers that are none": (retyped("BOOL"), "dtype bool"),
    "a pickle": (contents(lambda _: pickle.dumps(print)), "safetensors"),
}


@pytest.mark.parametrize("what", DAMAGED)
@pytest.mark.parametrize("name", ["low rank", "linear"])
def test_a_damaged_file_is_refused_by_its_name(name: str, what: str, tmp_path: Path) -> None:
    damage, words = DAMAGED[what]
    kernel, path = KERNELS[name](), tmp_path / "kernel.safetensors"
    kernel.save(str(path))
    damage(path)
    with pytest.raises(KernelError, match=f"kernel.safetensors: .*{words}"):
        type(kernel).load(path)


def test_a_missing_file_and_ids_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        LowRankKernel.load(tmp_path / "absent.safetensors")
    with pytest.raises(KernelError, match=r"ids .*strings or integers"):
        LowRankKernel(V[:1], ids=[("a", 1)]).save(tmp_path / "kernel.safetensors")
    LowRankKernel(V).save(tmp_path / "kernel.safetensors")
    metadata(ids="[1.5]")(tmp_path / "kernel.safetensors")
    with pytest.raises(KernelError, match="ids are damaged"):
        LowRankKernel.load(tmp_path / "kernel.safetensors")
