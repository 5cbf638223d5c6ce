"""The checkpoint of a fit: safetensors with everything that the next epoch needs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._files import write_atomically
from .._parsing import SafetensorsFile, parse_object
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
    arrays = {name: tensor.cpu().numpy() for name, tensor in plain.items()}
    write_atomically(path, save(plain, {**metadata, "sha256": _digest(arrays, metadata)}))


def read_checkpoint(
    path: str | os.PathLike[str], settings: Mapping[str, Any], *, partly: bool = False
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and state of a fit with these settings; None if the file does not exist.

    With ``partly`` only the given settings are compared; the file may have further ones.
    """
    if not Path(path).exists():
        return None
    try:
        file = SafetensorsFile(path)
        metadata = file.metadata
        if (metadata.get("format"), metadata.get("version")) != (FORMAT, str(FORMAT_VERSION)):
            raise InvalidInputError(f"not a checkpoint of version {FORMAT_VERSION}, which this setselect reads")
        arrays = {name: file.read(name) for name in file.names}
        if metadata.pop("sha256", None) != _digest(arrays, metadata):
            raise InvalidInputError("the file is damaged")
        # Somebody can give a file with other content a right SHA-256.
        then, state = (parse_object(metadata.get(name, "")) for name in ("settings", "state"))
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{path}: not a checkpoint that can be used: {error}; remove the file to start again, or name another one"
        ) from None
    differing = describe_differences({name: then.get(name) for name in settings} if partly else then, settings)
    if differing:
        raise InvalidParameterError(
            f"{path}: started with other settings or labels: {differing}. Remove the file, or name another one"
        )
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, state


def _digest(arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]) -> str:
    """A SHA-256 of all parts of a checkpoint. safetensors notices damage to its header only."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
