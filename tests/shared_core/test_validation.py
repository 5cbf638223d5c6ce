"""How messages show a value, and which values are missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from setselect import (
    MMR,
    NDPP,
    Coverage,
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    LowRankKernel,
    select,
    select_many,
)
from shared_core._validation import as_float
from shared_core._values import as_plain, as_ranks, is_missing
from shared_core.errors import MAX_QUOTED, quoted


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


@pytest.mark.parametrize(
    "value",
    [
        None, float("nan"), np.float32("nan"), np.array(np.nan), pd.NA, pd.NaT, np.datetime64("NaT"), np.ma.masked,
        np.timedelta64("NaT", "ns"), Decimal("NaN"), Decimal("sNaN"), pa.scalar(None), pa.scalar(None, pa.string()),
        pa.scalar(float("nan")), pa.array([None, "a"]).dictionary_encode()[0], "", " \t\n\u00a0\u3000", np.str_(" "),
        pd.Series([1, None], dtype="Int64")[1], pd.Series(["a", None])[1], pa.scalar(" "),
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_table_or_a_store_writes_for_no_value_is_missing(value: Any) -> None:
    assert is_missing(value) is True


@pytest.mark.parametrize(
    "value",
    [
        0, 0.0, False, "0", "nan", "None", b"", [], (), {}, set(), [None], np.array([]), np.int8(0),
        np.bool_(False), float("inf"), np.datetime64("2026-01-31"), pd.Timestamp(0), pd.Series([1, 2]), Decimal(0),
        pa.scalar(0), pa.scalar([]), object(), np.eye(2), np.array([np.nan, 1]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_zero_false_words_and_lists_are_values(value: Any) -> None:
    assert is_missing(value) is False


NO_NUMBERS = [-(10**400), -(10**5000), np.array([1.0, 2.0]), np.array([]), float("nan"), "x", [1]]
NUMBERS: dict[str, Callable[[Any], object]] = {
    "lambda_mult": MMR,
    "lambda_b": lambda value: MMR(lambda_b=value),
    "word_weight": Coverage,
    "ridge": lambda value: NDPP(ridge=value),
    "temperature": lambda value: NDPP(temperature=value),
    "temperature of a kernel": lambda value: LowRankKernel(np.eye(2), temperature=value),
    "budget": lambda value: select([1], [[1], [2]], 1, budget=value, costs=[1, 1]),
    "min_gain": lambda value: select([1], [[1], [2]], 1, min_gain=value),
    "drop_near_duplicates": lambda value: select([1], [[1], [2]], 1, drop_near_duplicates=value),
}
INTEGERS: dict[str, Callable[[Any], object]] = {
    "k": lambda value: select([1], [[1], [2]], value),
    "k of many": lambda value: select_many([[1]], [[1], [2]], value),
    "shown": lambda value: select([1], [[1], [2]], 1, shown=[value]),
    "min_k": lambda value: select([1], [[1], [2]], 1, min_gain=0.5, min_k=value),
    "max_per_source": lambda value: select([1], [[1], [2]], 1, max_per_source=value, sources="ab"),
    "workers": lambda value: select_many([[1]], [[1], [2]], 1, workers=value),
}


@pytest.mark.parametrize("name", [*NUMBERS, *INTEGERS])
def test_a_number_out_of_range_is_refused_with_the_name_of_its_argument(name: str) -> None:
    for value in [*NO_NUMBERS, 10**400] if name in NUMBERS else NO_NUMBERS:
        with pytest.raises((InvalidParameterError, KernelError), match=name.split()[0]) as error:
            (NUMBERS | INTEGERS)[name](value)
        assert len(str(error.value)) < 300


def test_numbers_as_floats() -> None:
    assert [as_float(value) for value in (2, -0.5, "1e3", np.float32(0.5))] == [2.0, -0.5, 1000.0, 0.5]
    assert all(math.isnan(as_float(value)) for value in (None, True, "x", [1], {}, 10**309, "nan"))


def test_plain_values_are_those_of_python() -> None:
    given = [np.int8(7), np.array([1, 2]), pa.scalar("a"), pd.Series([1.5]), np.str_("b"), "c", pd.Timestamp(0), int]
    assert [as_plain(value) for value in given] == [7, [1, 2], "a", [1.5], "b", "c", pd.Timestamp(0), int]


def test_dates_as_people_have_them_and_versions_are_ordered() -> None:
    dates = ["Fri, 31 Jan 2025 10:00:00 +0100", "D:20250131100000+01'00'", "2025/1/31 12:00", "D:202502", "2024", None]
    assert as_ranks(dates, 6, "prefer").tolist() == [2, 2, 3, 4, 1, 0]
    assert as_ranks(["1.10.0", "v2", "1.9", "1.10"], 4, "prefer").tolist() == [2, 3, 1, 2]
    assert as_ranks(["2024", "2023", 2025], 3, "prefer").tolist() == [2, 1, 3]
    for wrong in (["2025-W05", "2024-01-01"], ["1.0", "soon"], [1, "2025-01-01"], ["1.0b1"], ["31/01/2025"]):
        with pytest.raises(InvalidInputError, match=r"prefer of row \d is"):
            as_ranks(wrong, len(wrong), "prefer")
