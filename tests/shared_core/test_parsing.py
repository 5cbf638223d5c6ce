"""What JSON and arrays of files are read as, and where each limit lies."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setselect import InvalidInputError
from shared_core._parsing import open_npy, parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"a": [1, 2.5, null, true]} ', {"a": [1, 2.5, None, True]}),
        ("\ufeff[1]".encode(), [1]),
        ('"\\ud83d\\ude00 \\\\ud800 é"', "😀 \\ud800 é"),
        ("[" * 100 + "]" * 100, json.loads("[" * 100 + "]" * 100)),
        ('[{"a": []}, "[[[["]' + " " * 9, [{"a": []}, "[[[["]),
        (json.dumps([[]] * 500), [[]] * 500),
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
        ('"a"'.encode("utf-16"), "UTF-8"),
        ("[" * 101 + "]" * 101, "100"),
        ('{"a":' * 101 + "1" + "}" * 101, "100"),
        ("[" * 100_000, "100"),
        ('{"a":' * 100_000, "100"),
        ("9" * 4301, "4,300"),
        ('{"a": [-%s]}' % ("9" * 5000), "4,300"),
        ('"\\ud83d"', "surrogate"),
        ('"\\uDE00\\uD83D"', "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
    ],
)
def test_values_that_nobody_can_use_are_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        parse_json(text)


def test_the_header_of_an_array_may_be_that_of_python_2(tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(6.0).reshape(2, 3))
    assert open_npy(path).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    path.write_bytes(path.read_bytes().replace(b"(2, 3), }  ", b"(2L, 3L), }"))
    with pytest.warns(UserWarning, match="Python 2"):
        assert open_npy(path).shape == (2, 3)
