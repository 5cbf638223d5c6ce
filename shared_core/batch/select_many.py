"""One selection for each of many queries, in threads."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import as_numeric, check_ranges
from ..candidates import Candidates, Parts, References
from ..errors import InvalidInputError, SetSelectError
from ..scaling import Scale
from ..selection.effects import refuse_unknown_parameters, warn_of_no_effect
from ..selection.route import Limits, select_set
from ..selectors.registry import DEFAULT_SELECTOR, Selector, SelectorName, resolve_selector
from ..selectors.selection import Selection, Selections, join_selections

# The arguments of select_many that hold something of each candidate.
COLUMNS = ("words", "references", "cover", "relevance", "quality", "ids")
# Of candidates that all queries share, these hold something of each query.
_OF_A_QUERY = ("words", "relevance")
# Queries that a thread takes at once.
_PIECE = 32
_MISSING = object()


def select_many(
    queries: Iterable[ArrayLike],
    vectors: ArrayLike | Iterable[ArrayLike],
    k: int,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    words: Iterable[Parts] | None = None,
    references: References | ArrayLike | Iterable[References | ArrayLike] | None = None,
    cover: ArrayLike | Iterable[Any] | None = None,
    relevance: ArrayLike | Iterable[ArrayLike] | None = None,
    relevance_scale: Scale | None = "minmax",
    quality: ArrayLike | Iterable[ArrayLike] | None = None,
    ids: Iterable[Hashable] | None = None,
    workers: int = 1,
    **parameters: Any,
) -> Selections:
    """Select ``k`` for each query, from shared candidates or from each query's own.

    The result is that of :func:`select` for each query. It does not depend on the number of ``workers``.

    Parameters
    ----------
    queries : array-like, shape (Q, d), Q >= 1; or an iterable of Q arrays
        The queries' embeddings. A question with sub-questions has an array (q, d), with the question first.
    vectors : array-like, shape (n, d); or of shape (Q, n, d), or an iterator of Q arrays (n, d)
        Candidates that all queries share, or those of each query. A memory map is read query by query.
    k, selector, **parameters
        As in :func:`select`, without constraints.
    words, relevance : iterables of Q Parts, and of Q arrays (n,), optional
        Those of each query, as in :class:`Candidates`.
    references, quality : References and array (n,), or for own candidates iterables of Q of them, optional
        Those of the candidates, as in :class:`Candidates`.
    cover, ids : array (n, m) or n values, and n hashables, optional
        Those of shared candidates, as in :class:`Candidates`.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance of each query is scaled for the selector; see :func:`rescale`. None: not at all.
    workers : int
        The number of threads that share the queries. Meanwhile BLAS uses one thread in the whole process, because it
        has no setting per thread; this needs threadpoolctl. Several threads need numba, whose loops release the
        interpreter's lock.

    Raises
    ------
    InvalidInputError, InvalidParameterError
        As :func:`select`; the message names the query.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import select_many
    >>> rng = np.random.default_rng(0)
    >>> select_many(rng.normal(size=(5, 8)), rng.normal(size=(20, 8)), k=3, selector="mmr").indices.shape
    (5, 3)
    """
    columns = {"words": words, "references": references, "cover": cover, "relevance": relevance, "quality": quality}
    settings: dict[str, Any] = {"ids": ids, "relevance_scale": relevance_scale, "workers": workers, **parameters}
    selections = list(select_stream(queries, vectors, k, selector, **columns, **settings))
    if not selections:
        raise InvalidInputError("queries is empty: pass a row for each query")
    return join_selections(selections)


def select_stream(
    queries: Iterable[ArrayLike],
    vectors: ArrayLike | Iterable[ArrayLike],
    k: int,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    **arguments: Any,
) -> Iterator[Selection]:
    """:func:`select_many` query by query, for more queries than fit into memory together with their selections.

    The arguments are those of :func:`select_many`. An iterator is read as the selections are taken, some queries ahead.
    Arrays must not change before the last one. The error of a query is raised when this query is reached.

    >>> import numpy as np
    >>> from setselect import select_stream
    >>> rng = np.random.default_rng(0)
    >>> queries = (rng.normal(size=8) for _ in range(3))  # read from a file, for example
    >>> [len(selection) for selection in select_stream(queries, rng.normal(size=(20, 8)), k=3)]
    [3, 3, 3]
    """
    given = {name: value for name in COLUMNS if (value := arguments.pop(name, None)) is not None}
    settings = {"relevance_scale": arguments.pop("relevance_scale", "minmax"), "workers": arguments.pop("workers", 1)}
    refuse_unknown_parameters(select_many, arguments)
    checked = check_ranges({"k": k, **settings})
    resolved, scale = resolve_selector(selector, arguments), checked["relevance_scale"]
    if isinstance(given.get("relevance"), str) and given["relevance"] == "cosine":
        del given["relevance"]
    warn_of_no_effect(resolved, [*given, *(["relevance_scale"] if scale != "minmax" else [])], COLUMNS)
    select = functools.partial(select_set, selector=resolved, k=k, relevance_scale=scale, limits=Limits(exactly_k=True))
    return _stream(_read_candidates(queries, vectors, given), select, checked["workers"])


def _read_candidates(queries: Any, vectors: Any, given: dict[str, Any]) -> Iterator[Callable[[], Candidates]]:
    """For each query what makes its candidates, so that a thread checks them."""
    by_query = {"queries": queries, "vectors": vectors} | given
    shared = None
    lists = isinstance(vectors, (list, tuple)) and len(vectors) and as_numeric(vectors[0], "vectors").ndim == 2
    if not (lists or isinstance(vectors, Iterator) or getattr(vectors, "ndim", 0) == 3):
        rows = as_numeric(by_query.pop("vectors"), "vectors")
        of_shared = {name: by_query.pop(name) for name in given if name not in _OF_A_QUERY}
        # with_query replaces this query of ones by each query.
        shared = Candidates(np.ones(rows.shape[-1:]), rows, **of_shared, copy=False)
    elif unusable := given.keys() & {"ids", "cover"}:
        raise InvalidInputError(f"the argument {min(unusable)} is for shared candidates: vectors of shape (n, d)")
    for name, column in by_query.items():
        if isinstance(column, (Parts, References)):
            raise InvalidInputError(f"{name} must be a sequence, one for each query, got those of one query")
    return _bind_candidates(by_query, shared)


def _bind_candidates(by_query: dict[str, Any], shared: Candidates | None) -> Iterator[Callable[[], Candidates]]:
    make = functools.partial(Candidates, copy=False) if shared is None else shared.with_query
    for number, values in enumerate(zip_longest(*by_query.values(), fillvalue=_MISSING)):
        columns = dict(zip(by_query, values, strict=True))
        for name, value in columns.items():
            if value is _MISSING:
                raise InvalidInputError(f"{name} ends at query {number}: there must be one for each query")
        yield functools.partial(make, columns.pop("queries"), **columns)


def _stream(
    made: Iterator[Callable[[], Candidates]], select: Callable[[Candidates], Selection], threads: int
) -> Iterator[Selection]:
    numbered = enumerate(made)
    pieces = iter(lambda: list(islice(numbered, _PIECE)), [])
    waiting: deque[Future[list[Selection]]] = deque()
    with _one_blas_thread():
        if threads == 1:
            for piece in pieces:
                yield from _select(piece, select)
            return
        # The threads end with the generator, also if the caller closes it early.
        with ThreadPoolExecutor(threads) as pool:
            for piece in pieces:
                waiting.append(pool.submit(_select, piece, select))
                if len(waiting) > 2 * threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()


def _select(
    piece: list[tuple[int, Callable[[], Candidates]]], select: Callable[[Candidates], Selection]
) -> list[Selection]:
    selections = []
    for number, make in piece:
        try:
            selections.append(select(make()))
        except SetSelectError as error:
            raise type(error)(f"query {number}: {error}") from error
    return selections


_lock = threading.Lock()
# The number of BLAS threads belongs to the process. If calls overlap, the last one to end takes the limit of the first.
_limits: list[Any] = []


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread: work that is split by queries would have to share its cores with more threads."""
    controller = _controller()
    if controller is None:
        yield
        return
    with _lock:
        _limits.append(controller.limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _limits.pop().restore_original_limits()


@functools.cache
def _controller() -> Any:
    # The controller is made once: its search through the process's libraries takes longer than a small batch.
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
