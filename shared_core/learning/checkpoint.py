"""A fit in the middle of its work, on disk: safetensors with everything that the next epoch needs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import InvalidInputError, InvalidParameterError

FORMAT = "setselect-fit"
FORMAT_VERSION = 1

Tensors = dict[str, Tensor]


def write_checkpoint(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], settings: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Replace the file in one step: killed at any moment, there is the old one or the new one.

    Parameters
    ----------
    path : path
    tensors : mapping of str to Tensor
    settings : mapping
        What a fit that goes on from here must have in common with this one; plain values (JSON).
    state : mapping
        Anything else to keep; plain values (JSON).

    Raises
    ------
    OSError
        The file cannot be written.
    """
    from safetensors.torch import save

    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION)}
    metadata |= {"settings": json.dumps(settings), "state": json.dumps(state)}
    file = Path(path)
    content = save({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, metadata)
    # Always the same name: what a kill leaves half written is overwritten by the run that goes on.
    written = file.with_name(f"{file.name}.tmp")
    try:
        with written.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)


def read_checkpoint(
    path: str | os.PathLike[str], settings: Mapping[str, Any], *, partly: bool = False
) -> tuple[Tensors, dict[str, Any]] | None:
    """Tensors and state of a fit with these settings; None if there is no such file yet.

    ``partly``: the settings are not all known yet; those that are must be the same.

    Raises
    ------
    InvalidInputError
        The file is truncated, or no checkpoint, or one of a later version.
    InvalidParameterError
        It was written with other settings; the message names them.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checkpoint(folder + "/fit", {"a": torch.ones(1)}, {"seed": 0}, {"epoch": 3})
    ...     read_checkpoint(folder + "/fit", {"seed": 0})
    ({'a': tensor([1.])}, {'epoch': 3})
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
                raise InvalidInputError(f"{path}: a safetensors file, but no checkpoint of a fit; name another")
            if metadata.get("version") != str(FORMAT_VERSION):
                raise InvalidInputError(
                    f"{path}: a checkpoint of version {metadata.get('version')!r}, but this setselect reads "
                    f"{FORMAT_VERSION}: remove it to begin again"
                )
            _compare(path, json.loads(metadata["settings"]), json.loads(json.dumps(settings)), partly)
            return {name: file.get_tensor(name) for name in file.keys()}, json.loads(metadata["state"])  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        if isinstance(error, (InvalidInputError, InvalidParameterError)):
            raise
        raise InvalidInputError(f"{path}: truncated, or no checkpoint ({error}); remove it to begin again") from None


def _compare(path: str | os.PathLike[str], then: dict[str, Any], now: dict[str, Any], partly: bool) -> None:
    names = [name for name in (now if partly else {**then, **now}) if then.get(name) != now.get(name)]
    # Another objective has settings of its own, which say nothing more.
    names = [name for name in names if name in then and name in now] or names
    if names == ["labels"]:
        raise InvalidParameterError(
            f"{path}: begun with other labels. Pass the same (label keeps them in its resume file; a model's scores "
            "may differ from run to run), or name another checkpoint"
        )
    if names:
        differ = ", ".join(f"{name} (then {then.get(name)!r}, now {now.get(name)!r})" for name in names)
        raise InvalidParameterError(f"{path}: begun with other settings: {differ}. Remove it, or name another")
