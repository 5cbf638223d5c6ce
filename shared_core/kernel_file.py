"""The file of an NDPP kernel: safetensors with a format version, never pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import KernelError

Matrix = NDArray[np.float64]
_K = TypeVar("_K")

FORMAT = "setselect-kernel"
FORMAT_VERSION = 1


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('saving and loading kernels needs safetensors: pip install "setselect[kernel]"') from error
    return safetensors


def write_kernel(path: str | os.PathLike[str], kind: str, arrays: dict[str, Matrix], extra: dict[str, str]) -> None:
    """Write the arrays of a kernel of this kind; ``extra`` goes into the file's metadata.

    Raises
    ------
    ImportError
        safetensors is missing.
    """
    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION), "kind": kind, **extra}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    _safetensors().numpy.save_file(contiguous, os.fspath(path), metadata=metadata)


def read_kernel(
    path: str | os.PathLike[str], kind: str, names: tuple[str, str, str]
) -> tuple[list[Matrix], dict[str, str]]:
    """The arrays of these names, and the metadata, of a kernel file of this kind.

    Raises
    ------
    KernelError
        The file is truncated, no kernel, of another kind or a later format, or lacks an array.
    FileNotFoundError
        There is no such file.
    ImportError
        safetensors is missing.
    """
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            _check_metadata(path, kind, metadata)
            missing = set(names) - set(file.keys())
            if missing:
                raise KernelError(f"{path}: no array {', '.join(sorted(missing))} in the file")
            return [file.get_tensor(name) for name in names], metadata
    except safetensors.SafetensorError as error:
        raise KernelError(f"{path}: truncated, or no safetensors file ({error})") from None


def _check_metadata(path: str | os.PathLike[str], kind: str, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise KernelError(f"{path}: a safetensors file, but no setselect kernel")
    version = metadata.get("version", "")
    if not version.isdigit() or int(version) < 1:
        raise KernelError(f"{path}: format version {version!r} is no version")
    if int(version) > FORMAT_VERSION:
        raise KernelError(
            f"{path}: format version {version} is later than {FORMAT_VERSION}, the last that this setselect reads: "
            "upgrade it"
        )
    if metadata.get("kind") != kind:
        raise KernelError(
            f"{path}: holds a {metadata.get('kind')!r} kernel, not a {kind!r} one: load it with its own class"
        )


def naming(path: str | os.PathLike[str], make: Callable[[], _K]) -> _K:
    """What ``make`` returns; its KernelError gets the file's name in front."""
    try:
        return make()
    except KernelError as error:
        raise KernelError(f"{path}: {error}") from None
