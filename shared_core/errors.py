"""The errors and warnings of setselect.

All errors except ``VectorSourceError`` are also ``ValueError``, so code that catches ``ValueError`` catches them.
"""

import difflib
import math
import re
import reprlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

# Names that other libraries, the papers or earlier versions give to arguments.
_ELSEWHERE = {
    "embed_model": ("embeddings",),
    "embeddings": ("embed_model",),
    "keywords": ("keyword_search",),
    "method": ("selector", "search_type"),
    "search_type": ("selector",),
    "store": ("vectorstore", "vector_store"),
    "threshold": ("score_threshold",),
    # The classes of the frameworks call the number of results differently.
    **dict.fromkeys(
        ("k", "top_k", "topn", "top_n", "similarity_top_k"), ("similarity_top_k", "top_n", "max_tools", "k")
    ),
    **dict.fromkeys(("lambda", "lambda_d", "mmr_threshold"), ("lambda_mult",)),
    **dict.fromkeys(("mmr_prefetch_factor", "mmr_prefetch_k"), ("fetch_k",)),
}
# The most characters of a value that a message shows.
MAX_QUOTED = 80
_short = reprlib.Repr()
_short.maxstring = _short.maxother = MAX_QUOTED
_short.maxlevel = 2

# The packages between a user's line and a warning of the adapters.
_INSIDE = {"langchain_setselect", "llamaindex_setselect", "shared_core", "pydantic", "contextlib", "contextvars"}
_INSIDE |= {"langchain", "langchain_classic", "langchain_core", "langgraph", "langsmith"}
_INSIDE |= {"llama_index", "llama_index_instrumentation", "workflows"}
_INSIDE |= {"asyncio", "concurrent", "threading"}


class SetSelectError(Exception):
    """Base class of all errors of setselect."""


class InvalidInputError(SetSelectError, ValueError):
    """An array has the wrong shape, type or length, or holds NaN or inf; the message names the place."""


class InvalidParameterError(SetSelectError, ValueError):
    """A parameter is unknown or out of its range. The message lists what is allowed."""


class NothingLeftError(InvalidParameterError):
    """Every candidate was shown before, breaks a constraint, or does not fit into the budget."""


class BudgetError(SetSelectError, ValueError):
    """A budget was given without costs."""


class PerspectiveError(SetSelectError, ValueError):
    """A perspective is zero, of the wrong length, or parallel to the query."""


class KernelError(SetSelectError, ValueError):
    """An NDPP kernel has wrong shapes or values, does not know an id, or its file cannot be read."""


class VectorSourceError(SetSelectError, RuntimeError):
    """An adapter needs vectors and has no way to get them; the message says which argument to pass."""


class SetSelectWarning(UserWarning):
    """Base class of all warnings of setselect."""


class EmbeddingFallbackWarning(SetSelectWarning):
    """The candidates' texts are embedded again, because setselect cannot read the vectors of this store."""


# Users import these classes from setselect, so tracebacks name that module. Pickles find them there too.
for _kind in list(globals().values()):
    if isinstance(_kind, type) and issubclass(_kind, (SetSelectError, SetSelectWarning)):
        _kind.__module__ = "setselect"


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


# What messages call an argument: in a command the option that sets it.
_names: ContextVar[Mapping[str, str]] = ContextVar("_names", default=MappingProxyType({}))


@contextmanager
def rename_arguments(names: Mapping[str, str]) -> Iterator[None]:
    """Let messages call arguments by these names, as the options of a command."""
    token = _names.set({**_names.get(), **names})
    try:
        yield
    finally:
        _names.reset(token)


def argument_name(name: str) -> str:
    """The name of this argument in a message."""
    return _names.get().get(name, name)


def explain_lengths(one: int, other: int) -> str:
    """Why two vectors that are to be compared may differ in length."""
    shorter, longer = sorted((one, other))
    if shorter >= 8 and shorter == math.ceil(longer / 8):
        return (
            "the shorter one most likely holds packed bits (precision 'binary' or 'ubinary'), which cannot be compared "
            "as numbers: embed both without packing, or unpack the bits"
        )
    return "they most likely come from different embedding models"


def check_query_length(query: int, stored: int, of: str) -> None:
    """Refuse a query of another length than the stored vectors; ``of`` says whose these are."""
    if query != stored:
        raise InvalidInputError(f"the query has length {query}, {of} {stored}: {explain_lengths(query, stored)}")


# The file, the number and the warnings shown so far of the user's line that awaits, for warnings in a worker thread.
_Line = tuple[str, int, dict[Any, Any]]
_awaiting: ContextVar[_Line | None] = ContextVar("_awaiting", default=None)


def warn(message: str, category: type[Warning] = SetSelectWarning) -> None:
    """Warn at the user's line: the nearest one outside of setselect, of the frameworks and of Python's threads."""
    line = _users_line() or _awaiting.get()
    if line is None:
        warnings.warn(message, category, stacklevel=2)
    else:
        warnings.warn_explicit(message, category, *line[:2], registry=line[2])


@contextmanager
def remembered_line() -> Iterator[None]:
    """Let warnings of the threads that are started in here name the user's line."""
    token = _awaiting.set(_users_line())
    try:
        yield
    finally:
        _awaiting.reset(token)


def _users_line() -> _Line | None:
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.setdefault("__warningregistry__", {})
