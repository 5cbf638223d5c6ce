"""Checks of arguments and arrays: one wording for one mistake."""

from __future__ import annotations

import importlib
import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInputError, InvalidParameterError, argument_name, quoted

FloatArray = NDArray[np.floating[Any]]
_Array = TypeVar("_Array", bound=NDArray[Any])


def check_integer(value: Any, what: str, least: int | None = None) -> int:
    """``value`` as an int of at least ``least``; floats, bools and what int64 cannot hold are refused."""
    try:
        # An array has an index only if it is one integer.
        whole = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or abs(whole) >= 2**63:
        raise InvalidParameterError(f"{argument_name(what)} must be an integer below 2**63, got {quoted(value)}")
    if least is not None and whole < least:
        raise InvalidParameterError(f"{argument_name(what)} must be at least {least}, got {quoted(whole)}")
    return whole


def as_float(value: Any) -> float:
    """A number as a float, also one that is written in a string; NaN for any other value, and for a truth value."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def as_finite(value: Any) -> float:
    """A number as a float; NaN for one that is not finite or too large for a float, and for any other value."""
    number = as_float(value) if isinstance(value, (int, float, np.integer, np.floating)) else math.nan
    return number if math.isfinite(number) else math.nan


def check_number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """``value`` as a finite float in [low, high]; strings and bools are refused."""
    number = as_finite(value)
    if not low <= number <= high:
        bounds = "" if low == -math.inf and high == math.inf else f" in [{low:g}, {high:g}]"
        raise InvalidParameterError(f"{argument_name(what)} must be a finite number{bounds}, got {quoted(value)}")
    return number


def check_one_of(value: Any, what: str, allowed: Sequence[str | None]) -> Any:
    """``value`` if it is one of the ``allowed`` strings."""
    if not isinstance(value, str | None) or value not in allowed:
        words = ", ".join(word for word in allowed if word is not None)
        raise InvalidParameterError(f"{argument_name(what)} must be one of {words}, got {quoted(value)}")
    return value


def check_truth(value: Any, what: str) -> bool:
    """``value`` as a bool; a string is refused, because bool("False") is True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"{argument_name(what)} must be True or False, got {quoted(value)}")
    return bool(value)


# What an argument may be, wherever it is one: the check of its value.
RANGES: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(
        ("k", "fetch_k", "subsets", "max_per_source", "workers", "threads", "concurrency", "block_rows", "rank",
         "batch_size", "epochs", "patience"), partial(check_integer, least=1),
    ),
    **dict.fromkeys(("min_k", "skew_rank", "seed"), partial(check_integer, least=0)),
    **dict.fromkeys(("min_gain", "lambda_mult", "lambda_b", "confidence"), partial(check_number, low=0, high=1)),
    # With a higher weight, rounding errors of the words would be larger than the differences of the other terms.
    **dict.fromkeys(
        ("word_weight", "cover_weight", "reference_weight", "neighbour_weight"), partial(check_number, low=0, high=1e6)
    ),
    **dict.fromkeys(("ridge", "pull", "alpha", "beta"), partial(check_number, low=0)),
    **dict.fromkeys(("temperature", "sharpness", "learning_rate"), partial(check_number, low=1e-12)),
    **dict.fromkeys(("share", "held_out"), partial(check_number, low=1e-9, high=1)),
    "budget": check_number,
    "drop_near_duplicates": partial(check_number, low=-1, high=1),
    **dict.fromkeys(("refine", "corpus", "progress", "keyword_search", "learn_relevance"), check_truth),
    # None: not scaled.
    **dict.fromkeys(
        ("scale", "relevance_scale"), partial(check_one_of, allowed=("minmax", "rank", "sigmoid", "zscore", None))
    ),
    "relevance_mapping": partial(check_one_of, allowed=("linear", "exponential")),
    "direction": partial(check_one_of, allowed=("remove", "emphasize")),
    "objective": partial(check_one_of, allowed=("listwise", "likelihood")),
}  # fmt: skip


def check_range(name: str, value: Any) -> Any:
    """``value``, if it is in the range of the argument of this name; a number as that of Python."""
    return RANGES[name](value, name)


def check_ranges(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each within its range in ``RANGES``. None stays None."""
    return {name: None if value is None else check_range(name, value) for name, value in values.items()}


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass that are in ``RANGES`` and not the default; keep their values as Python's."""
    for name, field in instance.__dataclass_fields__.items():
        if name in RANGES and (value := getattr(instance, name)) is not field.default:
            object.__setattr__(instance, name, check_range(name, value))


def as_numeric(values: ArrayLike, what: str, kinds: str = "fiu") -> NDArray[Any]:
    """``values`` as an array of numbers whose dtype is of these ``kinds`` (numpy's letters), a view where possible.

    Tensors of PyTorch are read from any device, without their gradient. Floats of a type that numpy lacks (bfloat16,
    float8) become float32.
    """
    # np.asarray would use the values under the mask.
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(f"{what} is a masked array: fill its masked values, or drop them, first")
    try:
        plain = _without_tensors(values) if sys.modules.get("torch") else values
        array = plain if type(plain) is np.ndarray else np.asarray(plain)
    # numpy raises ValueError for rows of different lengths, and PyTorch the others for a tensor without plain values.
    except (TypeError, RuntimeError, ValueError) as error:
        raise InvalidInputError(f"{what} cannot be made into an array: {quoted(str(error))}") from error
    # The types of ml_dtypes, which JAX and TensorFlow use, are registered with numpy (2). Most are of the kind "V".
    if array.dtype.isbuiltin == 2 and np.can_cast(array.dtype, np.float32):
        array = array.astype(np.float32)
    if array.dtype.kind not in kinds:
        found = f"{quoted(values)} of dtype {array.dtype}" if array.ndim else quoted(values)
        raise InvalidInputError(f"{what} must be numbers, got {found}")
    return array


def _without_tensors(values: Any) -> Any:
    """``values`` with an array in place of each tensor of PyTorch, in float32 if numpy lacks its type."""
    torch: Any = sys.modules["torch"]
    if isinstance(values, (list, tuple)) and isinstance(next(iter(values), 0), (list, tuple, torch.Tensor)):
        return [_without_tensors(value) for value in values]
    if not isinstance(values, torch.Tensor):
        return values
    tensor = values.detach().cpu()
    return (tensor.float() if tensor.dtype.is_floating_point and tensor.element_size() < 4 else tensor).numpy()


def as_float64(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """A float64 copy of ``values``; a number too large for float64 becomes inf."""
    # A signalling NaN warns where another NaN does not.
    with np.errstate(over="ignore", invalid="ignore"):
        copy: NDArray[np.float64] = as_numeric(values, what).astype(np.float64)
    return copy


def as_column(values: ArrayLike, n: int, what: str, least: float = -math.inf) -> NDArray[np.float64]:
    """``values`` as a read-only float64 column of n finite numbers of at least ``least``."""
    column = as_float64(values, what)
    if column.shape != (n,):
        raise InvalidInputError(f"{what} must have shape ({n},), one for each candidate, got {column.shape}")
    bad = np.flatnonzero(~np.isfinite(column) | (column < least))
    if bad.size:
        bound = "" if least == -math.inf else f" and at least {least:g}"
        raise InvalidInputError(f"{what}: row {bad[0]} is {column[bad[0]]}; every value must be finite{bound}")
    return read_only(column)


def read_only(array: _Array) -> _Array:
    """The same array, marked read-only."""
    array.setflags(write=False)
    return array


class ReadOnlyArrays:
    """A class whose arrays stay read-only in deep copies and after pickling, where numpy drops the flag."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            # The words, parts and references of candidates are tuples of arrays.
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    read_only(array)
        self.__dict__.update(state)


def import_library(name: str, extra: str) -> Any:
    """The module ``name``, imported now; the ImportError names the extra of setselect that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'this needs {name}: pip install "setselect[{extra}]"') from error
