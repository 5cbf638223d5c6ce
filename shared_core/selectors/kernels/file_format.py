"""The file of an NDPP kernel: safetensors with a format version, never pickle."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._files import write_atomically
from ..._validation import quoted
from ...errors import KernelError

Matrix = NDArray[np.float64]

FORMAT = "setselect-kernel"
FORMAT_VERSION = 1


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('saving and loading kernels needs safetensors: pip install "setselect[kernel]"') from error
    return safetensors


def write_kernel(path: str | os.PathLike[str], kind: str, arrays: dict[str, Matrix], metadata: dict[str, str]) -> None:
    """Write the arrays and the metadata of a kernel of this kind."""
    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION), "kind": kind, **metadata}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    made = _safetensors().numpy.save(contiguous, metadata=metadata)
    # safetensors orders its header at random. The header is sorted here, so that a kernel always gives the same file.
    size = int.from_bytes(made[:8], "little")
    header = json.dumps(json.loads(made[8 : 8 + size]), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    padded = header.encode()
    padded = padded.ljust(-(-len(padded) // 8) * 8)
    write_atomically(path, len(padded).to_bytes(8, "little") + padded + made[8 + size :])


def read_kernel(
    path: str | os.PathLike[str], kind: str, names: tuple[str, ...]
) -> tuple[dict[str, Matrix], dict[str, str]]:
    """The arrays of these names, W_R if the file has it, and the metadata, of a kernel file of this kind.

    :class:`KernelError` says what is wrong with the file. The caller adds the name of the file.
    """
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            _check_metadata(kind, metadata)
            held = set(file.keys())
            missing = set(names) - held
            if missing:
                raise KernelError(f"the file has no array {', '.join(sorted(missing))}")
            return {name: file.get_tensor(name) for name in held & {*names, "W_R"}}, metadata
    except safetensors.SafetensorError as error:
        raise KernelError(f"truncated, or not a safetensors file ({error})") from None


def _check_metadata(kind: str, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise KernelError("a safetensors file, but not a setselect kernel")
    version = metadata.get("version", "")
    if not version.isdecimal() or not 1 <= int(version) <= FORMAT_VERSION:
        raise KernelError(
            f"this setselect reads format versions up to {FORMAT_VERSION}, not {quoted(version)}: upgrade it"
        )
    if metadata.get("kind") != kind:
        raise KernelError(
            f"holds a {quoted(metadata.get('kind'))} kernel, not a {kind!r} one: load it with its own class"
        )
