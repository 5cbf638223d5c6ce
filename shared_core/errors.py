"""The errors and warnings of setselect.

::

    SetSelectError
    ├── InvalidInputError        (ValueError)   wrong vectors, query, quality, costs or ids
    ├── InvalidParameterError    (ValueError)   wrong k, shown, λ, or names of selectors and parameters
    │   └── NothingLeftError                    a constraint or ``shown`` excludes every candidate
    ├── BudgetError              (ValueError)   a budget without costs
    ├── PerspectiveError         (ValueError)   a perspective that has no projection: zero, or wrong length
    ├── KernelError              (ValueError)   an invalid NDPP kernel or kernel file
    └── VectorSourceError        (RuntimeError) an adapter cannot get the vectors that it needs

    SetSelectWarning             (UserWarning)
    └── EmbeddingFallbackWarning                texts are embedded again, because stored vectors cannot be read

All errors except ``VectorSourceError`` are also ``ValueError``, so code that catches ``ValueError`` catches them.
"""

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

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


def explain_lengths(one: int, other: int) -> str:
    """Why two vectors that are to be compared may differ in length.

    >>> explain_lengths(768, 384)
    'they most likely come from different embedding models'
    """
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
