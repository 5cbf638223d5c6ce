"""Checks of arguments and arrays: one wording for one mistake."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import math
import operator
import re
import reprlib
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidInputError, InvalidParameterError

FloatArray = NDArray[np.floating[Any]]
_Array = TypeVar("_Array", bound=NDArray[Any])

# What the classes of the frameworks call the number of results.
_SIZES = "similarity_top_k", "top_n", "max_tools", "k"
# Names that other libraries, the papers or earlier versions give to arguments.
_ELSEWHERE = {
    "embed_model": ("embeddings",),
    "embeddings": ("embed_model",),
    "k": _SIZES,
    "lambda": ("lambda_mult",),
    "lambda_d": ("lambda_mult",),
    "method": ("selector", "search_type"),
    "mmr_prefetch_factor": ("fetch_k",),
    "mmr_prefetch_k": ("fetch_k",),
    "mmr_threshold": ("lambda_mult",),
    "search_type": ("selector",),
    "similarity_top_k": _SIZES,
    "store": ("vectorstore", "vector_store"),
    "threshold": ("score_threshold",),
    "top_k": _SIZES,
    "top_n": _SIZES,
    "topn": _SIZES,
}
# Forms of versions and dates: "v1.10.0", "D:20250131120000+01'00'", "2025", "2025/1/31", "2025-W05".
_VERSION = re.compile(r"[vV]?(\d+(?:\.\d+)*?)(?:\.0+)*")
_PDF_DATE = re.compile(r"D:(\d{4,14})(Z|[+-]\d\d'?\d{0,2}|)")
_YEAR_FIRST = re.compile(r"(\d{4})(?:/(\d\d?)/(\d\d?))?((?:[T ].*)?)")
_WEEK = re.compile(r"\d{4}-?W", re.IGNORECASE)
# The most characters of a value that a message shows.
MAX_QUOTED = 80


_short = reprlib.Repr()
_short.maxstring = _short.maxother = MAX_QUOTED
_short.maxlevel = 2


def quoted(value: object) -> str:
    """``value`` as messages show it: its repr on one line, shortened to MAX_QUOTED printable characters."""
    try:
        text = printable(_short.repr(value))
    # Python writes no integer of more than 4,300 digits.
    except ValueError:
        text = f"a long {type(value).__name__}"
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 3]}..."


def printable(text: str) -> str:
    """``text`` on one line, with an escape in place of each character that a terminal does not print."""
    # The repr of an array has several lines.
    text = re.sub(r"\s*\n\s*", " ", text)
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is ``name`` elsewhere, or that is spelt like it; None if there is none.

    >>> nearest_name("fetchk", ["k", "fetch_k"]), nearest_name("lambda_d", ["lambda_b", "lambda_mult"])
    ('fetch_k', 'lambda_mult')
    """
    by_lower = {other.lower(): other for other in known}
    name = name.lower()
    # A letter that was typed twice is most of a short name.
    names = name, re.sub(r"(.)\1+", r"\1", name)
    near = [other for one in names for other in (one, *_ELSEWHERE.get(one, ())) if other in by_lower]
    near += difflib.get_close_matches(name, by_lower, n=1, cutoff=0.82)
    return by_lower[near[0]] if near else None


class Whole(NamedTuple):
    """The range of a whole number."""

    least: int


class Real(NamedTuple):
    """The range of a finite number, with its bounds."""

    low: float = -math.inf
    high: float = math.inf


_ABOVE_0 = Real(1e-12)
# What an argument may be, wherever it is one: a number, a truth value, or one of some words.
RANGES: dict[str, Whole | Real | type[bool] | tuple[str | None, ...]] = {
    **dict.fromkeys(("k", "fetch_k", "subsets", "max_per_source", "workers", "threads", "concurrency"), Whole(1)),
    **dict.fromkeys(("block_rows", "rank", "batch_size", "epochs", "patience"), Whole(1)),
    **dict.fromkeys(("min_k", "skew_rank", "seed"), Whole(0)),
    **dict.fromkeys(("min_gain", "lambda_mult", "lambda_b", "confidence"), Real(0, 1)),
    # With a higher weight, rounding errors of the words would be larger than the differences of the other terms.
    **dict.fromkeys(("word_weight", "cover_weight", "reference_weight", "neighbour_weight"), Real(0, 1e6)),
    **dict.fromkeys(("ridge", "pull", "alpha", "beta"), Real(0)),
    **dict.fromkeys(("temperature", "sharpness", "learning_rate"), _ABOVE_0),
    **dict.fromkeys(("share", "held_out"), Real(1e-9, 1)),
    "budget": Real(),
    "drop_near_duplicates": Real(-1, 1),
    **dict.fromkeys(("refine", "corpus", "progress", "keyword_search", "learn_relevance"), bool),
    # None: not scaled.
    **dict.fromkeys(("scale", "relevance_scale"), ("minmax", "rank", "sigmoid", "zscore", None)),
    "relevance_mapping": ("linear", "exponential"),
    "direction": ("remove", "emphasize"),
    "objective": ("listwise", "likelihood"),
}


def check_ranges(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, each within its range in ``RANGES``, numbers as those of Python. None stays None."""
    return {name: None if value is None else check_range(name, value) for name, value in values.items()}


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass that are in ``RANGES`` and not the default, and keep their values as Python's."""
    for name, field in instance.__dataclass_fields__.items():
        if name in RANGES and (value := getattr(instance, name)) is not field.default:
            object.__setattr__(instance, name, check_range(name, value))


def check_range(name: str, value: Any) -> Any:
    """``value``, if it is in the range of the argument of this name."""
    match RANGES[name]:
        case Whole(least):
            return check_integer(value, name, least)
        case Real(low, high):
            return check_number(value, name, low, high)
        case tuple() as words:
            allowed = [word for word in words if word is not None]
            return None if value is None and None in words else check_one_of(value, name, allowed)
    return check_bool(value, name)


def check_integer(value: Any, what: str, least: int | None = None) -> int:
    """``value`` as an int of at least ``least``; floats, bools and what int64 cannot hold are refused."""
    try:
        # An array has an index only if it is one integer.
        whole = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None:
        raise InvalidParameterError(f"{argument_name(what)} must be an integer, got {quoted(value)}")
    if least is not None and whole < least:
        raise InvalidParameterError(f"{argument_name(what)} must be at least {least}, got {quoted(whole)}")
    if abs(whole) >= 2**63:
        raise InvalidParameterError(f"{argument_name(what)} must be below 2**63, got {quoted(whole)}")
    return whole


def as_float(value: Any) -> float:
    """A number as a float, also one that is written in a string; NaN for any other value.

    >>> [as_float(value) for value in (3, "0.5", True, [], 10**400)]
    [3.0, 0.5, nan, nan, nan]
    """
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


def check_bool(value: Any, what: str) -> bool:
    """``value`` as a bool; numbers, strings and arrays are refused: ``bool("False")`` is True, for example."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"{argument_name(what)} must be True or False, got {quoted(value)}")
    return bool(value)


def check_one_of(value: Any, what: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of the ``allowed`` strings."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidParameterError(f"{argument_name(what)} must be one of {', '.join(allowed)}, got {quoted(value)}")
    return value


def as_identifiers(values: Iterable[Hashable] | None, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple of ids, empty for None. A string is refused, because its characters would become ids."""
    try:
        ids = () if values is None else tuple(values)
        hash(ids)
    except TypeError:
        # Documents and nodes cannot be hashed.
        ids = (None,)
    if isinstance(values, str) or None in ids:
        raise InvalidParameterError(
            f"{what} takes a collection of ids, got {quoted(values)}: a list of [item.id for item in ...] (nodes have "
            "node_id), without None, which cannot be told apart"
        )
    return ids


def id_of_text(text: str) -> str:
    """The id of a text whose store gave it none."""
    return f"text {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def as_numeric(values: ArrayLike, what: str, kinds: str = "fiu") -> NDArray[Any]:
    """``values`` as an array of numbers whose dtype is of these ``kinds`` (numpy's letters), a view where possible.

    Tensors of PyTorch are read from any device, without their gradient. Floats of a type that numpy lacks (bfloat16,
    float8) become float32.
    """
    # np.asarray would use the values under the mask.
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(f"{what} is a masked array: fill its masked values, or drop them, first")
    try:
        try:
            array = np.asarray(values)
        except (TypeError, RuntimeError):
            array = np.asarray(_without_tensors(values))
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
    """``values`` with an array in place of each tensor of PyTorch that numpy cannot read by itself."""
    if isinstance(values, (list, tuple)):
        return [_without_tensors(value) for value in values]
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    tensor = values.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.float().numpy()


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


def as_names(values: Iterable[Hashable], n: int, what: str) -> tuple[Hashable, ...]:
    """``values`` as a tuple of n hashables."""
    try:
        # The elements of a tensor are objects of their own, of which no two are equal.
        names = tuple(as_plain(values))
        hash(names)
    except TypeError:
        raise InvalidInputError(
            f"{what} must be a collection of values that can be hashed, one for each candidate, got {quoted(values)}"
        ) from None
    if len(names) != n:
        raise InvalidInputError(f"{what} must be {n}, one for each candidate, got {len(names)}")
    return names


def as_ranks(
    values: Iterable[Any], n: int, what: str, name: Callable[[int], str] = "row {}".format
) -> NDArray[np.int64]:
    """The ranks of n numbers, dates or versions: 0 for a missing one, and from 1 for the lowest.

    Messages name a value's row. A date is a date, a datetime, or a string as ISO, mail or PDF write it. One without a
    time zone is in UTC.

    >>> as_ranks(["2026-01-31", None, "Mon, 1 Dec 2025 10:00:00 +0100", "D:20260131000000Z"], 4, "prefer").tolist()
    [2, 0, 1, 2]
    >>> as_ranks(["1.9", "v1.10.0", "2"], 3, "prefer").tolist()
    [1, 2, 3]
    """
    objects = as_names(values, n, what)
    strings = [value for value in objects if isinstance(value, str) and value.strip()]
    if strings and all(_VERSION.fullmatch(value.strip()) for value in strings):
        # Numbers beside them are versions of one part.
        objects = tuple(_as_version(value) for value in objects)
    ordered: list[Any] = []
    first = None
    for row, value in enumerate(objects):
        try:
            ordered.append(None if is_missing(value) else _as_ordered(value))
            last = ordered[-1]
            first = last if first is None else first
            # A number and a date raise TypeError.
            valid = last is None or last <= first or last > first
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise InvalidInputError(
                f"{what} of {name(row)} is {quoted(value)}: the values must be all numbers, all versions ('1.10.0'), "
                "or all dates (datetimes, or ISO strings as '2026-01-31'), or None where one is missing"
            )
    rank = {value: number for number, value in enumerate(sorted({*ordered} - {None}), 1)}
    return read_only(np.array([rank.get(value, 0) for value in ordered], np.int64))


def _as_ordered(value: Any) -> Any:
    """A date as a datetime with a time zone; other values as they are."""
    if isinstance(value, str):
        value = _read_date(value.strip())
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _read_date(text: str) -> datetime:
    """The date of a string; ValueError for another string, and for a week."""
    if match := _PDF_DATE.match(text):
        # What is left out is the first month, the first day, and midnight.
        digits, zone = match[1] + "00000101000000"[len(match[1]) :], match[2].replace("'", "")
        return datetime.fromisoformat(f"{digits[:8]}T{digits[8:]}{zone}")
    if match := _YEAR_FIRST.fullmatch(text):
        text = f"{match[1]}-{match[2] or 1:0>2}-{match[3] or 1:0>2}{match[4]}"
    if _WEEK.match(text):
        raise ValueError
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)


def _as_version(value: Any) -> Any:
    """A version, or a whole number, as a tuple of its numbers, without zeros at its end."""
    if isinstance(value, str) and (match := _VERSION.fullmatch(value.strip())):
        return tuple(map(int, match[1].split(".")))
    return (value,) if isinstance(value, (int, float)) and not is_missing(value) else value


def as_plain(value: Any) -> Any:
    """A scalar or array of numpy, PyTorch, pandas or Arrow as a Python value or list; any other value as it is."""
    to_python = getattr(value, "as_py", None) or getattr(value, "tolist", None)
    return to_python() if callable(to_python) else value


def as_text(value: object) -> str:
    """A value as text. Python writes no integer of more than 4,300 digits."""
    try:
        return str(value)
    except ValueError:
        return quoted(value)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none, as tables write it: None, NaN, NaT, NA, a null, a masked value, blank text.

    >>> [is_missing(value) for value in (None, float("nan"), " ", 0, False, [])]
    [True, True, True, False, False, False]
    """
    if not isinstance(value, str):
        value = as_plain(value)
    if value is None or isinstance(value, str):
        return not (value and value.strip())
    try:
        return bool(value != value)
    # NA of pandas is neither equal to itself nor different, and a signalling NaN refuses to be compared.
    except (TypeError, ArithmeticError):
        return True


def as_optional(values: Iterable[Any]) -> list[Any]:
    """The values, with None in place of those that are missing, and a list in place of an array."""
    return [
        None if is_missing(value) else value.tolist() if isinstance(value, np.ndarray) else value for value in values
    ]


def as_rows(values: ArrayLike, n: int, what: str) -> NDArray[np.intp]:
    """``values`` as a list of row numbers below ``n``."""
    rows = as_numeric(values, what)
    # numpy makes an empty list an array of floats.
    if rows.ndim != 1 or (rows.size and rows.dtype.kind == "f"):
        raise InvalidInputError(f"{what} must be a list of row numbers, got shape {rows.shape} and dtype {rows.dtype}")
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise InvalidInputError(f"{what} must be in 0..{n - 1}, got {rows.min()}..{rows.max()}")
    return rows.astype(np.intp)


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


# What messages call an argument: in a command the option that sets it.
_names: ContextVar[Mapping[str, str]] = ContextVar("_names", default=MappingProxyType({}))


@contextmanager
def rename_arguments(names: Mapping[str, str]) -> Iterator[None]:
    """Let messages call arguments by these names.

    >>> with rename_arguments({"fetch_k": "--fetch-k"}):
    ...     argument_name("fetch_k"), argument_name("k")
    ('--fetch-k', 'k')
    """
    token = _names.set({**_names.get(), **names})
    try:
        yield
    finally:
        _names.reset(token)


def argument_name(name: str) -> str:
    """The name of this argument in a message."""
    return _names.get().get(name, name)


def import_library(name: str, extra: str) -> Any:
    """The module ``name``, imported now; the ImportError names the extra of setselect that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'this needs {name}: pip install "setselect[{extra}]"') from error
