"""The checkpoint of a fit: safetensors with everything that the next epoch needs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from .._files import write_atomically
from ..errors import InvalidInputError, InvalidParameterError

FORMAT = "setselect-fit"
FORMAT_VERSION = 1


def write_checkpoint(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], settings: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Replace the checkpoint in one step. ``settings`` and ``state`` are JSON values; see :func:`read_checkpoint`."""
    from safetensors.torch import save

    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION)}
    metadata |= {"settings": json.dumps(settings), "state": json.dumps(state)}
    write_atomically(path, save({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, metadata))


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
                    f"{path}: a checkpoint of version {metadata.get('version')!r}, but this setselect reads version "
                    f"{FORMAT_VERSION}: remove the file to start again"
                )
            _check_settings(path, json.loads(metadata["settings"]), json.loads(json.dumps(settings)), partly)
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(metadata["state"])  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, (InvalidInputError, InvalidParameterError)):
            raise
        raise InvalidInputError(
            f"{path}: truncated, or not a checkpoint ({error}); remove the file to start again"
        ) from None


def _check_settings(path: str | os.PathLike[str], then: dict[str, Any], now: dict[str, Any], partly: bool) -> None:
    names = [name for name in (now if partly else {**then, **now}) if then.get(name) != now.get(name)]
    # If the objectives differ, the message leaves out the settings that only one of them has.
    names = [name for name in names if name in then and name in now] or names
    if names == ["labels"]:
        raise InvalidParameterError(
            f"{path}: started with other labels. Use the labels of that fit (a resume file keeps labels, because a "
            "model may score differently in a second run), or name another file for the checkpoint"
        )
    if names:
        differing = ", ".join(f"{name} (then {then.get(name)!r}, now {now.get(name)!r})" for name in names)
        raise InvalidParameterError(
            f"{path}: started with other settings: {differing}. Remove the file, or name another one"
        )
