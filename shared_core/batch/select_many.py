"""One selection for each of many queries, in threads."""

from __future__ import annotations

import functools
import operator
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice, zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import as_numeric, check_ranges, import_library
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
_EXACTLY_K = Limits(exactly_k=True)
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
    progress: bool = False,
    **parameters: Any,
) -> Selections:
    """Select ``k`` for each query, from shared candidates or from each query's own.

    The result is that of :func:`select` for each query. It does not depend on the number of ``workers``.

    Parameters
    ----------
    queries : array-like, shape (Q, d), Q >= 1; or an iterable of Q arrays
        The queries' embeddings. A question with sub-questions has an array (q, d), with the question first; see
        :class:`Candidates`.
    vectors : array-like, shape (n, d); or of shape (Q, n, d), or an iterator of Q arrays (n, d)
        Candidates that all queries share, or those of each query. A memory map is read query by query.
    k : int
        The number of picks for each query, 1..n.
    selector, **parameters
        As in :func:`select`, without constraints.
    words : iterable of Q Parts, optional
        The words of each query and how well each of its candidates covers them; :func:`match_words` makes them.
    references : References or array (n, n); for own candidates an iterable of Q of them; optional
        How clearly candidate i refers to candidate j, in [0, 1]; :func:`find_references` reads it from texts.
    cover : array of shape (n, m) in [0, 1], or n values, optional
        Parts that each set has to cover, for shared candidates; see :func:`select`.
    relevance : array-like, shape (Q, n), or an iterable of Q arrays (n,), optional
        What each candidate is worth for each query, in place of the cosine: the scores of a reranker or of hybrid
        search. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance of each query is scaled for the selector; see :func:`rescale`. None: not at all.
    quality : array-like, shape (n,); for own candidates (Q, n) or an iterable of Q arrays (n,); optional
        How good each candidate is by itself, see :class:`Candidates`.
    ids : iterable of n hashables, optional
        Names of the shared candidates.
    workers : int
        The number of threads that share the queries. Meanwhile BLAS uses one thread in the whole process, because it
        has no setting per thread; this needs threadpoolctl. Several threads need numba, whose loops release the
        interpreter's lock.
    progress : bool
        Show a progress bar (tqdm).

    Raises
    ------
    InvalidInputError, InvalidParameterError
        As :func:`select`; the message names the query.
    ImportError
        ``progress`` is set and tqdm is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import select_many
    >>> rng = np.random.default_rng(0)
    >>> select_many(rng.normal(size=(5, 8)), rng.normal(size=(20, 8)), k=3, selector="mmr").indices.shape
    (5, 3)
    """
    refuse_unknown_parameters(select_many, parameters)
    columns = {"words": words, "references": references, "cover": cover, "relevance": relevance, "quality": quality}
    settings = {"relevance_scale": relevance_scale, "workers": workers, "progress": progress}
    arguments: dict[str, Any] = {"ids": ids, **columns, **settings, **parameters}
    selections = list(select_stream(queries, vectors, k, selector, **arguments))
    if not selections:
        raise InvalidInputError("queries is empty: pass a row for each query")
    return join_selections(selections)


def select_stream(
    queries: Iterable[ArrayLike],
    vectors: ArrayLike | Iterable[ArrayLike],
    k: int,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    relevance_scale: Scale | None = "minmax",
    workers: int = 1,
    progress: bool = False,
    **parameters: Any,
) -> Iterator[Selection]:
    """:func:`select_many` query by query, for more queries than fit into memory together with their selections.

    Parameters
    ----------
    queries, vectors, k, selector, relevance_scale, workers, progress, **parameters
        As in :func:`select_many`, also ``words``, ``references``, ``cover``, ``relevance``, ``quality`` and ``ids``. An
        iterator is read as the selections are taken, some queries ahead. Arrays must not change before the last one.

    Yields
    ------
    Selection
        One for each query, in their order.

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        As :func:`select_many`. The error of a query is raised when this query is reached.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import select_stream
    >>> rng = np.random.default_rng(0)
    >>> queries = (rng.normal(size=8) for _ in range(3))  # read from a file, for example
    >>> [len(selection) for selection in select_stream(queries, rng.normal(size=(20, 8)), k=3)]
    [3, 3, 3]
    """
    columns = {name: parameters.pop(name, None) for name in COLUMNS}
    refuse_unknown_parameters(select_stream, parameters, COLUMNS)
    if isinstance(columns["relevance"], str) and columns["relevance"] == "cosine":
        columns["relevance"] = None
    checked = check_ranges({"k": k, "relevance_scale": relevance_scale, "workers": workers, "progress": progress})
    resolved = resolve_selector(selector, parameters)
    given = [name for name, value in columns.items() if value is not None]
    warn_of_no_effect(resolved, [*given, *(["relevance_scale"] if relevance_scale != "minmax" else [])], columns)
    tqdm = import_library("tqdm", "batch").tqdm if checked["progress"] else None
    made = _read_candidates(queries, vectors, {name: value for name, value in columns.items() if value is not None})
    select = functools.partial(select_set, selector=resolved, k=k, relevance_scale=relevance_scale, limits=_EXACTLY_K)
    stream = _stream(made, select, checked["workers"])
    if tqdm is None:
        return stream
    return iter(tqdm(stream, total=operator.length_hint(queries) or None, unit="query"))


def _read_candidates(queries: Any, vectors: Any, given: dict[str, Any]) -> Iterator[Callable[[], Candidates]]:
    """For each query what makes its candidates, so that a thread checks them."""
    by_query = {"queries": queries, "vectors": vectors} | given
    shared = None
    if not _has_one_for_each(vectors):
        rows = as_numeric(by_query.pop("vectors"), "vectors")
        of_shared = {name: by_query.pop(name) for name in given if name not in _OF_A_QUERY}
        # with_query replaces this query of ones by each query.
        shared = Candidates(np.ones(rows.shape[-1:]), rows, **of_shared, copy=False)
    elif unusable := given.keys() & {"ids", "cover"}:
        raise InvalidInputError(f"the argument {min(unusable)} is for shared candidates: vectors of shape (n, d)")
    for name, column in by_query.items():
        if isinstance(column, (Parts, References)):
            raise InvalidInputError(f"{name} must be a sequence, one for each query, got those of one query")
    lengths = {name: len(column) for name, column in by_query.items() if hasattr(column, "__len__")}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"there must be one for each query, but the lengths are {lengths}")
    return _bind_candidates(by_query, shared)


def _has_one_for_each(vectors: Any) -> bool:
    """Whether the vectors are those of each query, (n, d) each, and not (n, d) for all."""
    if isinstance(vectors, (list, tuple)) and vectors:
        return as_numeric(vectors[0], "vectors").ndim == 2
    return isinstance(vectors, Iterator) or getattr(vectors, "ndim", 0) == 3


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
    with one_blas_thread():
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
# The number of BLAS threads belongs to the process. If calls overlap, the first one sets the number to 1, and the last
# one restores it.
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread until the last of the overlapping calls ends. Without threadpoolctl nothing changes.

    Work that is split by queries would have to share its cores with more threads.
    """
    global _inside, _limit
    with _lock:
        if not _inside and (controller := _controller()) is not None:
            _limit = controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and _limit is not None:
                _limit.restore_original_limits()
                _limit = None


@functools.cache
def _controller() -> Any:
    # The controller is made once: its search through the process's libraries takes longer than a small batch.
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
