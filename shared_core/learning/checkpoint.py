"""The checkpoint of a fit: safetensors with everything that the next epoch needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from .._files import write_atomically
from .._validation import quoted
from ..errors import InvalidInputError, InvalidParameterError
from .settings import describe_differences

FORMAT = "setselect-fit"
FORMAT_VERSION = 3


def write_checkpoint(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], settings: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Replace the checkpoint in one step. ``settings`` and ``state`` are JSON values; see :func:`read_checkpoint`."""
    from safetensors.torch import save

    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION)}
    metadata |= {"settings": json.dumps(settings), "state": json.dumps(state)}
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(plain, {**metadata, "sha256": _digest(plain, metadata)}))


def read_checkpoint(
    path: str | os.PathLike[str], settings: Mapping[str, Any], *, partly: bool = False
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and state of a fit with these settings; None if the file does not exist.

    With ``partly`` only the given settings are compared; the file may have further ones.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).exists():
        return None
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            metadata = dict(file.metadata() or {})
            if (metadata.get("format"), metadata.get("version")) != (FORMAT, str(FORMAT_VERSION)):
                raise InvalidInputError(
                    f"{path}: not a checkpoint of version {FORMAT_VERSION}, which this setselect reads: remove the "
                    "file to start again, or name another one"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.pop("sha256", None) != _digest(tensors, metadata):
            raise InvalidInputError(f"{path}: the file is damaged; remove it to start again")
    except SafetensorError as error:
        raise InvalidInputError(
            f"{path}: truncated, or not a checkpoint ({quoted(str(error))}); remove the file to start again"
        ) from None
    then = json.loads(metadata["settings"])
    differing = describe_differences({name: then.get(name) for name in settings} if partly else then, settings)
    if differing:
        raise InvalidParameterError(
            f"{path}: started with other settings or labels: {differing}. Remove the file, or name another one"
        )
    return tensors, json.loads(metadata["state"])


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A SHA-256 of all parts of a checkpoint. safetensors notices damage to its header only."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        array = tensor.cpu().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
