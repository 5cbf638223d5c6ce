"""What the JSON of files is read as, and where each limit lies."""

from __future__ import annotations

import math
from typing import Any

import pytest

from setselect import InvalidInputError
from shared_core._parsing import parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": [1, 2.5, null, true]} ', {"a": [1, 2.5, None, True]}),
        ("\ufeff[1]".encode(), [1]),
        ('"\\ud83d\\ude00 \\\\ud800 é"', "😀 \\ud800 é"),
        ("9" * 4300, 10**4300 - 1),
        ("1e999", math.inf),
    ],
)
def test_values_that_can_be_used(text: str | bytes, value: Any) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "column 1"),
        ('{"a": 1,}', "column 9"),
        (b'"caf\xe9"', "UTF-8"),
        ('{"a":' * 100_000, "too deep"),
        ("9" * 4301, "4,300"),
        ('"\\ud83d"', "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
    ],
)
def test_values_that_nobody_can_use_are_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        parse_json(text)
