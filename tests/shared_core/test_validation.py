"""How messages show a value: short, on one line, and without control characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core._validation import MAX_QUOTED, printable, quoted


class Unprintable:
    """Its repr raises an error of its own."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Colourful:
    """Its repr holds the escape sequence that turns a terminal red."""

    def __repr__(self) -> str:
        return "\x1b[31m" + "x" * 500


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        (0.5, "0.5"),
        (None, "None"),
        ("\x1b[31mred\r\n", r"'\x1b[31mred\r\n'"),
        ("é\u202e", r"'é\u202e'"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ],
)
def test_a_short_value_is_quoted_whole(value: Any, text: str) -> None:
    assert quoted(value) == text


@pytest.mark.parametrize(
    "value",
    [
        "x" * 200_000,
        b"\x00" * 200_000,
        "\x1b" * 79,
        10**400,
        [1.0] * 100_000,
        [[[["\n" * 100] * 100] * 100] * 100],
        {"key": Unprintable()},
        np.zeros((400, 400)),
        Colourful(),
        Unprintable(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_quoted_in_few_printable_characters(value: Any) -> None:
    assert len(quoted(value)) <= MAX_QUOTED
    assert quoted(value).isprintable()


def test_an_integer_that_python_refuses_to_write_is_quoted_by_its_type() -> None:
    assert quoted(10**5000).startswith("<int")


def test_a_long_text_is_quoted_by_its_start_and_its_end() -> None:
    assert quoted("start" + "-" * 1000 + "end").startswith("'start--")
    assert quoted("start" + "-" * 1000 + "end").endswith("--end'")


def test_a_file_name_is_shown_whole_without_control_characters() -> None:
    assert printable("folder/" * 20 + "\x1b]0;title\x07.npy") == "folder/" * 20 + r"\x1b]0;title\x07.npy"
    assert printable("lone\udcff.npy").encode() == rb"lone\udcff.npy"
