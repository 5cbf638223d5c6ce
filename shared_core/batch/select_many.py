"""One selection for each of many queries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._libraries import import_library
from .._validation import check_bool, check_integer, check_one_of, read_only
from ..errors import InvalidInputError, SetSelectError
from ..scaling import SCALES, Scale
from ..selection.effects import refuse_unknown_parameters, warn_of_no_effect
from ..selection.route import Limits, select_set
from ..selectors.registry import DEFAULT_SELECTOR, Selector, SelectorName, resolve_selector
from ..selectors.selection import Selections
from ._blocks import COLUMNS, Block, Blocks, Named, Queries, Words, read_blocks
from ._threads import one_blas_thread

# The most queries between two updates of the progress bar.
_MAX_PIECE = 1024
_EXACTLY_K = Limits(exactly_k=True)


def select_many(
    queries: Queries,
    vectors: Blocks,
    k: int,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    words: Words | None = None,
    references: Named | None = None,
    cover: ArrayLike | Iterable[Any] | None = None,
    relevance: Blocks | None = None,
    relevance_scale: Scale | None = "minmax",
    quality: Blocks | None = None,
    ids: Iterable[Hashable] | None = None,
    workers: int = 1,
    progress: bool = False,
    **parameters: Any,
) -> Selections:
    """Select ``k`` for each query, from shared candidates or from each query's own.

    The result is that of :func:`select` for each query, except for ties within rounding error. It does not depend on
    the number of ``workers``. With numba, VRSD, MMR, NDPP without a kernel, and Coverage without words, references and
    parts validate and select for blocks of queries.

    Parameters
    ----------
    queries : array-like, shape (Q, d), Q >= 1, or an iterator of blocks of shape (b, d)
        The queries' embeddings, one per row. Questions with sub-questions: shape (Q, q, d), or a list of Q arrays of
        shape (q_i, d), each with the question first; see :class:`Candidates`.
    vectors : array-like, shape (n, d) shared by all queries, or (Q, n, d), or an iterator of blocks (b, n, d)
        A memory map of shape (Q, n, d) is read a few MB at a time, or one query's candidates where these are larger.
        At most two blocks of an iterator are in memory. Blocks of queries, vectors and quality must have equal lengths.
    k : int
        The number of picks for each query, 1..n.
    selector, **parameters
        As in :func:`select`, without constraints.
    words : sequence of Q Parts, or an iterator of blocks of b Parts, optional
        The words of each query and how well each of its candidates covers them; :func:`match_words` makes them.
    references : References or array (n, n); for own candidates a sequence of Q, or an iterator of blocks; optional
        How clearly candidate i refers to candidate j, in [0, 1]; :func:`find_references` reads it from texts.
    cover : array of shape (n, m) in [0, 1], or n values, optional
        Parts that each set has to cover, for shared candidates; see :func:`select`.
    relevance : array-like, shape (Q, n), or an iterator of blocks (b, n), optional
        What each candidate is worth for each query, in place of the cosine: the scores of a reranker or of hybrid
        search. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance of each query is scaled for the selector; see :func:`rescale`. None: not at all.
    quality : array-like, shape (n,), or for own candidates (Q, n) or an iterator of blocks (b, n), optional
        How good each candidate is by itself, see :class:`Candidates`.
    ids : iterable of n hashables, optional
        Names of the shared candidates.
    workers : int
        The number of threads that share the queries. While they run, BLAS uses one thread in the whole process, because
        it has no setting per thread; this needs threadpoolctl. Its setting is restored afterwards, also after an error.
        Several threads need numba, whose loops release the interpreter's lock.
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
    return _join(list(select_stream(queries, vectors, k, selector, **arguments)))


def select_stream(
    queries: Queries,
    vectors: Blocks,
    k: int,
    selector: SelectorName | str | Selector = DEFAULT_SELECTOR,
    *,
    block_size: int = 1024,
    relevance_scale: Scale | None = "minmax",
    workers: int = 1,
    progress: bool = False,
    **parameters: Any,
) -> Iterator[Selections]:
    """:func:`select_many` block by block, for more queries than fit into memory together with their selections.

    Parameters
    ----------
    block_size : int
        Queries per block if no argument is an iterator. The blocks of an iterator are taken as they are.
    queries, vectors, k, selector, relevance_scale, workers, progress, **parameters
        As in :func:`select_many`, also ``words``, ``references``, ``cover``, ``relevance``, ``quality`` and ``ids``.
        Arrays must not change before the last block.

    Yields
    ------
    Selections
        One for each block, in the order of the queries. Row 0 is the first query of the block.

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        As :func:`select_many`. An error in a block is raised when this block is reached. The message names the query
        by its number among all queries.

    Examples
    --------
    >>> import numpy as np
    >>> from setselect import select_stream
    >>> rng = np.random.default_rng(0)
    >>> blocks = (rng.normal(size=(4, 8)) for _ in range(3))  # blocks of queries, read from a file for example
    >>> [many.indices.shape for many in select_stream(blocks, rng.normal(size=(20, 8)), k=3)]
    [(4, 3), (4, 3), (4, 3)]
    """
    columns = {name: parameters.pop(name, None) for name in COLUMNS}
    refuse_unknown_parameters(select_stream, parameters, COLUMNS)
    if isinstance(columns["relevance"], str) and columns["relevance"] == "cosine":
        columns["relevance"] = None
    if relevance_scale is not None:
        check_one_of(relevance_scale, "relevance_scale", SCALES)
    resolved = resolve_selector(selector, parameters)
    given = [name for name, value in columns.items() if value is not None]
    warn_of_no_effect(resolved, [*given, *(["relevance_scale"] if relevance_scale != "minmax" else [])], columns)
    threads = check_integer(workers, "workers", 1)
    k, block_size = check_integer(k, "k"), check_integer(block_size, "block_size", 1)
    tqdm = import_library("tqdm", "batch").tqdm if check_bool(progress, "progress") else None
    blocks, total = read_blocks(queries, vectors, columns, block_size)
    task = functools.partial(_select, resolved, BlockSelector(resolved, relevance_scale), k)
    return _stream(task, blocks, total, threads, tqdm)


class BlockSelector:
    """A selector's compiled loop for whole blocks of queries, if it has one; ``scale`` is that of a given relevance."""

    def __init__(self, selector: Selector, scale: Scale | None) -> None:
        # None means that each query needs a call of its own.
        self.loop: Any = getattr(selector, "select_block", None)
        self.scale = scale

    def select(self, block: Block, k: int) -> Selections | None:
        """The selections of a block; None if there is no loop for it, or an error that the call of its query names."""
        # Another thread may set it to None meanwhile.
        loop = self.loop
        if loop is None or block.needs_candidates:
            return None
        try:
            validated = block.scaled(self.scale).validate()
        except InvalidInputError:
            return None
        selections: Selections | None = loop(validated, k)
        if selections is None:
            # Numba is missing, for example. Further blocks need no validation.
            self.loop = None
        elif "relevance" in block.columns:
            given = np.take_along_axis(block.columns["relevance"], selections.indices, axis=1).astype(np.float64)
            return replace(selections, relevance=read_only(given))
        return selections


def _stream(
    task: Callable[[Block], Selections], blocks: Iterator[Block], total: int | None, threads: int, tqdm: Any
) -> Iterator[Selections]:
    with ExitStack() as stack:
        bar = None if tqdm is None else stack.enter_context(tqdm(total=total, unit="query"))
        # The threads end with the generator, also if the caller closes it early.
        pool = stack.enter_context(ThreadPoolExecutor(threads)) if threads > 1 else None
        for block in blocks:
            # With some more pieces than threads, the other threads do not wait long for the slowest one.
            pieces = block.split(min(-(-len(block) // (4 * threads)), _MAX_PIECE))
            parts: list[Selections] = []
            # Between two blocks the caller has all BLAS threads.
            with one_blas_thread():
                for part in (map if pool is None else pool.map)(task, pieces):
                    parts.append(part)
                    if bar is not None:
                        bar.update(len(part))
            yield _join(parts)


def _select(selector: Selector, at_once: BlockSelector, k: int, block: Block) -> Selections:
    many = at_once.select(block, k)
    if many is not None:
        return many
    selections = []
    for i in range(len(block)):
        try:
            selections.append(
                select_set(block.candidates(i), selector, k, relevance_scale=at_once.scale, limits=_EXACTLY_K)
            )
        except SetSelectError as error:
            raise type(error)(f"query {block.start + i}: {error}") from error
    columns: dict[str, Any] = {
        name: read_only(np.array([getattr(selection, name) for selection in selections]))
        for name in ("indices", "gains", "relevance", "objective")
    }
    columns["filled_from"] = read_only(
        np.array([-1 if one.filled_from is None else one.filled_from for one in selections])
    )
    # Without words, references and parts the compiled loop selects, and only the relevance has a share.
    shares = ("shares",) if block.needs_candidates else ()
    for name in ("referred_by", "reference_kinds", *shares):
        if getattr(selections[0], name) is not None:
            columns[name] = read_only(np.array([getattr(selection, name) for selection in selections]))
    if block.has_several:
        alone = np.zeros(k, np.int64)  # a question without sub-questions
        columns["serves"] = read_only(np.array([alone if one.serves is None else one.serves for one in selections]))
    return Selections(**columns)


def _join(parts: list[Selections]) -> Selections:
    if len(parts) == 1:
        return parts[0]
    names = [field.name for field in fields(Selections) if getattr(parts[0], field.name) is not None]
    return Selections(**{name: read_only(np.concatenate([getattr(part, name) for part in parts])) for name in names})
