from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidInputError, InvalidParameterError, LinearKernel

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors import numpy as safetensors_numpy  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from shared_core.learning.checkpoint import (  # noqa: E402
    FORMAT,
    FORMAT_VERSION,
    _digest,
    read_checkpoint,
    write_checkpoint,
)

SETTINGS: dict[str, Any] = {"seed": 3, "pull": 0.001, "ids": None, "name": "a \u00fc \U0001f600", "device": "cpu"}
STATE: dict[str, Any] = {"epochs": [[0, None, None, 0.1], [1, 1 / 3, None, 0.2]], "values": [1e-300, 0.1 + 0.2]}


def tensors() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "now.V": torch.from_numpy(rng.normal(size=(7, 3))),
        "now.B": torch.zeros((7, 0), dtype=torch.float64),
        "adam.0.step": torch.tensor(5.0),
        "turned": torch.from_numpy(rng.normal(size=(3, 7))).T,
    }


def test_what_is_written_is_read_bit_for_bit(tmp_path: Path) -> None:
    given = tensors()
    given["now.V"].requires_grad_()
    write_checkpoint(tmp_path / "fit", given, SETTINGS, STATE)
    found = read_checkpoint(tmp_path / "fit", SETTINGS)
    assert found is not None
    assert found[1] == STATE
    assert set(found[0]) == set(given)
    for name, tensor in given.items():
        assert found[0][name].dtype == tensor.dtype
        assert found[0][name].shape == tensor.shape
        assert torch.equal(found[0][name], tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


def test_a_missing_file_gives_none(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "fit", SETTINGS) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 4}, ["seed = 3 then, 4 now"]),
        ({"pull": 0.5, "name": "b"}, ["pull = 0.001 then, 0.5 now", "name = 'a \u00fc \U0001f600' then, 'b' now"]),
        ({"new": 1}, ["new = None then, 1 now"]),
        ({"objective": "likelihood", "seed": 4}, ["objective = None then, 'likelihood' now"]),
    ],
)
def test_other_settings_are_refused_by_name_and_the_file_is_unchanged(
    tmp_path: Path, change: dict[str, Any], named: list[str]
) -> None:
    path = tmp_path / "fit"
    write_checkpoint(path, tensors(), SETTINGS, STATE)
    before = path.read_bytes()
    with pytest.raises(InvalidParameterError, match=re.escape(": " + "; ".join(named) + ".")):
        read_checkpoint(path, {**SETTINGS, **change})
    assert path.read_bytes() == before


def test_truncated_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit"
    write_checkpoint(path, tensors(), SETTINGS, STATE)
    whole = path.read_bytes()
    LinearKernel(np.eye(3)).save(tmp_path / "kernel.safetensors")
    # In a fit of version 2, held-out items were examples in training: it must not go on.
    save_file({"a": torch.ones(1)}, tmp_path / "old", {"format": FORMAT, "version": "2", "settings": "{}"})
    others = [(tmp_path / name).read_bytes() for name in ("kernel.safetensors", "old")]
    for content in (*(whole[:kept] for kept in (0, 1, 8, 100, -1)), b"some text", bytes(500), *others):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=r"fit: .*not a checkpoint"):
            read_checkpoint(path, SETTINGS)
        assert path.read_bytes() == content


@pytest.mark.parametrize("settings", ["[" * 100_000, "{}"])
@pytest.mark.parametrize("partly", [True, False])
def test_settings_and_a_state_that_are_no_objects_are_refused_whatever_the_digest(
    settings: str, partly: bool, tmp_path: Path
) -> None:
    path, arrays = tmp_path / "fit", {"now.V": np.ones((2, 3))}
    metadata = {"format": FORMAT, "version": str(FORMAT_VERSION), "settings": settings}
    for more in ({}, {"state": "5"}, {"state": "["}):
        whole = metadata | more
        path.write_bytes(safetensors_numpy.save(arrays, whole | {"sha256": _digest(arrays, whole)}))
        with pytest.raises(InvalidInputError, match=r"fit: .*not a checkpoint"):
            read_checkpoint(path, SETTINGS, partly=partly)


def test_any_change_of_the_content_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_checkpoint(path, tensors(), SETTINGS, STATE)
    with safe_open(path, framework="pt") as file:
        whole = file.metadata()
    changed = {**tensors(), "now.V": tensors()["now.V"] + 1e-16}
    renamed = {name.replace("now.V", "now.W"): tensor for name, tensor in tensors().items()}
    for parts, metadata in (
        (tensors(), {**whole, "settings": "{"}),
        (tensors(), {**whole, "state": "[" * 100_000}),
        (tensors(), {name: text for name, text in whole.items() if name != "state"}),
        (tensors(), {name: text for name, text in whole.items() if name != "sha256"}),
        ({name: tensor for name, tensor in tensors().items() if name != "now.V"}, whole),
        (renamed, whole),
        (changed, whole),
        ({**tensors(), "more": torch.ones(1)}, whole),
    ):
        save_file({name: tensor.contiguous() for name, tensor in parts.items()}, path, metadata)
        with pytest.raises(InvalidInputError, match=r"file: .*damaged"):
            read_checkpoint(path, SETTINGS)
