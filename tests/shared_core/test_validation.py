"""How messages show a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core._validation import MAX_QUOTED, quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        (None, "None"),
        ("\x1b[31mred\r\n", r"'\x1b[31mred\r\n'"),
        (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ],
)
def test_a_short_value_is_quoted_whole(value: Any, text: str) -> None:
    assert quoted(value) == text


@pytest.mark.parametrize(
    "value",
    ["x" * 200_000, [1.0] * 100_000, [[[["\n" * 100] * 100] * 100] * 100], np.zeros((400, 400))],
    ids=lambda value: type(value).__name__,
)
def test_a_long_value_is_quoted_in_few_printable_characters(value: Any) -> None:
    assert len(quoted(value)) <= MAX_QUOTED
    assert quoted(value).isprintable()
