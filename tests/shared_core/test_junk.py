"""Whatever is passed as an argument of the core: it is used, or an error of setselect refuses it in a short message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from shared_core import MMR, NDPP, Candidates, InvalidParameterError, LinearKernel, SetSelectError, select
from tests.shared_core.junk import ARGUMENTS, JUNK

# The longest message besides the values that it quotes.
MOST = 400


def assert_short_and_printable(error: SetSelectError) -> None:
    message = str(error)
    assert len(message) < MOST, message[:1000]
    assert message.isprintable(), message


@pytest.mark.filterwarnings("ignore::shared_core.SetSelectWarning")  # an argument that has no effect
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_any_object_is_used_or_refused(argument: str) -> None:
    for name, make in JUNK.items():
        value = make()
        try:
            ARGUMENTS[argument](value)
        except SetSelectError as error:
            assert_short_and_printable(error)
        except Exception as error:
            raise AssertionError(f"{argument} = {name} raised {error!r}") from error


CANDIDATES = Candidates([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], costs=[1.0, 1.0])


@pytest.mark.parametrize("value", [10**400, -(10**400), np.timedelta64(1, "s")], ids=["huge", "-huge", "timedelta"])
@pytest.mark.parametrize(
    "use",
    [
        lambda value: MMR(lambda_d=value),
        lambda value: MMR(lambda_b=value),
        lambda value: NDPP(temperature=value),
        lambda value: MMR().select(CANDIDATES, 1, budget=value),
        lambda value: Candidates([1.0], [[1.0]], drop_near_duplicates=value),
    ],
    ids=["lambda_d", "lambda_b", "temperature", "budget", "drop_near_duplicates"],
)
def test_a_number_that_no_float_can_hold_is_refused(use: Any, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="must be a finite number"):
        use(value)


def test_an_array_as_relevance_of_ndpp_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="relevance must be one of linear, exponential, got array"):
        NDPP(relevance=np.ones(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [torch.eye(2), np.eye(2), MMR], ids=["tensor", "array", "class"])
def test_what_only_looks_like_a_selector_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="or an object with a method"):
        select([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], 1, value)


def test_numbers_of_numpy_are_kept_as_floats() -> None:
    # A compiled loop has no long doubles. numba would fail, and every later selection would use numpy.
    selector = MMR(lambda_d=np.longdouble(0.5), lambda_b=np.float32(0.5))
    assert selector == MMR(0.5, 0.5)
    assert repr(selector) == "MMR(lambda_d=0.5, lambda_b=0.5)"
    assert selector.select(CANDIDATES, 2).indices.tolist() == [0, 1]


@pytest.mark.parametrize("name", [b"\xff\xfe\x00", "a\0b", "\ud800", 3, None, ["a"]])
def test_what_is_no_file_name_is_refused(name: Any) -> None:
    kernel = LinearKernel(np.eye(2))
    for use in (kernel.save, kernel.load):
        with pytest.raises(InvalidParameterError, match="path must be the name of a file") as caught:
            use(name)
        assert_short_and_printable(caught.value)


def test_control_characters_of_a_file_name_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31mred\n.safetensors"
    path.write_bytes(b"no kernel")
    with pytest.raises(SetSelectError, match=r"\\x1b\[31mred\\n\.safetensors: truncated") as caught:
        LinearKernel.load(path)
    assert str(caught.value).isprintable()
