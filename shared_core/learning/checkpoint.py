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

FORMAT = "setselect-fit"
FORMAT_VERSION = 3


def write_checkpoint(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], settings: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Replace the checkpoint in one step. ``settings`` and ``state`` are JSON values; see :func:`read_checkpoint`."""
    from safetensors.torch import save

    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION)}
    metadata |= {"settings": json.dumps(settings), "state": json.dumps(state)}
    kept = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, save(kept, {**metadata, "sha256": _digest(kept, metadata)}))


def read_checkpoint(
    path: str | os.PathLike[str], settings: Mapping[str, Any], *, partly: bool = False
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and state of a fit with these settings; None if the file does not exist.

    With ``partly`` only the given settings are compared; the file may have further ones. An InvalidInputError is raised
    for a file that is damaged, of another kind or of another version, an InvalidParameterError for other settings.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).exists():
        return None
    if Path(path).is_dir():
        raise InvalidInputError(f"{path} is a folder; name a file for the checkpoint")
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            metadata = dict(file.metadata() or {})
            if metadata.get("format") != FORMAT:
                raise InvalidInputError(f"{path}: a safetensors file, but not a checkpoint of a fit; name another file")
            if metadata.get("version") != str(FORMAT_VERSION):
                raise InvalidInputError(
                    f"{path}: a checkpoint of version {quoted(metadata.get('version'))}, but this setselect reads "
                    f"version {FORMAT_VERSION}: remove the file to start again"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.pop("sha256", None) != _digest(tensors, metadata):
            raise InvalidInputError(f"{path}: the file is damaged; remove it to start again")
    except SafetensorError as error:
        raise InvalidInputError(
            f"{path}: truncated, or not a checkpoint ({quoted(str(error))}); remove the file to start again"
        ) from None
    _check_settings(path, json.loads(metadata["settings"]), json.loads(json.dumps(settings)), partly)
    return tensors, json.loads(metadata["state"])


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A SHA-256 of all parts of a checkpoint. safetensors notices damage to its header only."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        array = tensor.cpu().numpy()
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _check_settings(path: str | os.PathLike[str], then: dict[str, Any], now: dict[str, Any], partly: bool) -> None:
    names = [name for name in (now if partly else {**then, **now}) if then.get(name) != now.get(name)]
    # If the objectives differ, the message leaves out the settings that only one of them has.
    names = [name for name in names if name in then and name in now] or names
    if names == ["labels"]:
        raise InvalidParameterError(
            f"{path}: made from other labels. Restore the file of those labels, or remove this file to start again"
        )
    if names:
        differing = "; ".join(f"{name} = {quoted(then.get(name))} then, {quoted(now.get(name))} now" for name in names)
        raise InvalidParameterError(
            f"{path}: started with other settings: {differing}. Remove the file, or name another one"
        )
