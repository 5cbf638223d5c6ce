"""The checkpoint of a fit: safetensors with everything that the next epoch needs."""

from __future__ import annotations

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
    write_atomically(path, save({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, metadata))


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
    except SafetensorError as error:
        raise InvalidInputError(
            f"{path}: truncated, or not a checkpoint ({quoted(str(error))}); remove the file to start again"
        ) from None
    then = json.loads(metadata["settings"])
    _check_settings(path, {name: then.get(name) for name in settings} if partly else then, dict(settings))
    return tensors, json.loads(metadata["state"])


def _check_settings(path: str | os.PathLike[str], then: dict[str, Any], now: dict[str, Any]) -> None:
    if then.get("objective") != now.get("objective"):
        # The message leaves out the settings that only one of the objectives has.
        then, now = ({"objective": of.get("objective")} for of in (then, now))
    differing = describe_differences(then, now)
    if differing:
        raise InvalidParameterError(
            f"{path}: started with other settings or labels: {differing}. Remove the file, or name another one"
        )
