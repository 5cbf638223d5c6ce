"""One choice for each of many queries."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer
from ..arrays import read_only
from ..errors import SetSelectError
from ..selectors.base import Selection, Selector, resolve_selector
from ._blocks import Block, Blocks, QueryBlocks, blocks_of
from ._many import choose_piece
from ._threads import in_order, one_blas_thread

# Queries that are chosen for between two steps of the progress bar.
_LONGEST = 1024


@dataclass(frozen=True, eq=False)
class Selections:
    """The sets chosen for Q queries, read-only.

    Attributes
    ----------
    indices : int64, shape (Q, k)
    gains, relevance : float64, shape (Q, k)
    objective : float64, shape (Q,)
    filled_from : int64, shape (Q,)
        As in :class:`Selection`, with -1 for none.

    Examples
    --------
    >>> from shared_core import select_many
    >>> many = select_many([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], k=1)
    >>> many.indices.tolist(), len(many)
    ([[0], [1]], 2)
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: NDArray[np.float64]
    filled_from: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, query: int) -> Selection:
        filled_from = int(self.filled_from[query])
        return Selection(
            self.indices[query],
            self.gains[query],
            self.relevance[query],
            float(self.objective[query]),
            None if filled_from < 0 else filled_from,
        )


def select_many(
    queries: Blocks,
    vectors: Blocks,
    k: int,
    selector: str | Selector = "vrsd",
    *,
    quality: Blocks | None = None,
    ids: Iterable[Hashable] | None = None,
    workers: int = 1,
    progress: bool = False,
    **parameters: Any,
) -> Selections:
    """Choose ``k`` for each query, from shared candidates or from each query's own.

    The answers are those of :func:`select` for one query after the other, but for what only rounding parts, whatever
    the number of ``workers``. Where numba is installed VRSD and MMR choose for query after query in compiled loops: 5
    µs for 70 at 20 candidates of 384 dimensions, 40 for 180 at 100 of 768 (MMR).

    Parameters
    ----------
    queries : array-like, shape (Q, d), Q >= 1, or an iterator of blocks of shape (b, d)
    vectors : array-like, shape (n, d) shared by all queries, or (Q, n, d), or an iterator of blocks (b, n, d)
        Of a memory map no more is read at a time than a few MB or one query's candidates; of an iterator two
        blocks are held at most. Blocks of queries and of vectors must be of the same lengths where both are iterators.
    k : int
        How many for each query, 1..n.
    selector, **parameters
        As in :func:`select`.
    quality : array-like, shape (n,), or for own candidates (Q, n) or an iterator of blocks (b, n), optional
    ids : iterable of n hashables, optional
        Of shared candidates.
    workers : int
        So many threads share the queries. While they run, BLAS is held to one thread (for the whole process, as
        BLAS knows no other way) and is given back after that, also on an error; this needs threadpoolctl.
        Compiled loops do not hold the interpreter's lock: two threads are 1.2 to 1.8 times as fast as one. By numpy's
        calls they get in each other's way: half as fast at 20 to 100 candidates, 1.1 to 1.4 times from 200 on.
    progress : bool
        Show a bar (tqdm).

    Raises
    ------
    InvalidInputError, InvalidParameterError
        As :func:`select`; the message names the query.
    ImportError
        ``progress`` without tqdm.

    Examples
    --------
    >>> import numpy as np
    >>> from shared_core import select_many
    >>> rng = np.random.default_rng(0)
    >>> select_many(rng.normal(size=(5, 8)), rng.normal(size=(20, 8)), k=3, selector="mmr").indices.shape
    (5, 3)
    """
    more = {"quality": quality, "ids": ids, "workers": workers, "progress": progress, **parameters}
    return _joined(list(select_stream(queries, vectors, k, selector, **more)))


def select_stream(
    queries: Blocks,
    vectors: Blocks,
    k: int,
    selector: str | Selector = "vrsd",
    *,
    quality: Blocks | None = None,
    ids: Iterable[Hashable] | None = None,
    workers: int = 1,
    progress: bool = False,
    block_size: int = 1024,
    **parameters: Any,
) -> Iterator[Selections]:
    """As :func:`select_many`, block by block: for more queries than their answers fit into memory.

    Parameters
    ----------
    block_size : int
        Queries to a block where none of the arguments is an iterator; else its blocks are the blocks.
    **parameters
        And all others as in :func:`select_many`. The arrays must stay as they are until the last block.

    Yields
    ------
    Selections
        Of the queries in their order, row 0 being the first query of the block.

    Raises
    ------
    InvalidInputError, InvalidParameterError, ImportError
        As :func:`select_many`; what concerns one block when it is its turn. The message names the query by its
        number among all.

    Examples
    --------
    >>> import numpy as np
    >>> from shared_core import select_stream
    >>> rng = np.random.default_rng(0)
    >>> blocks = (rng.normal(size=(4, 8)) for _ in range(3))  # queries, as they are read from a file, say
    >>> [many.indices.shape for many in select_stream(blocks, rng.normal(size=(20, 8)), k=3)]
    [(4, 3), (4, 3), (4, 3)]
    """
    chosen_by = resolve_selector(selector, parameters)
    threads = check_integer(workers, "workers", 1)
    blocks = blocks_of(queries, vectors, quality, ids, check_integer(block_size, "block_size", 1))
    return _stream(chosen_by, check_integer(k, "k"), blocks, threads, _tqdm() if progress else None)


def _tqdm() -> Any:
    try:
        return importlib.import_module("tqdm").tqdm
    except ImportError as error:
        raise ImportError('progress=True needs tqdm: pip install "setselect[batch]"') from error


def _stream(selector: Selector, k: int, blocks: QueryBlocks, threads: int, tqdm: Any) -> Iterator[Selections]:
    with ExitStack() as stack:
        bar = None if tqdm is None else stack.enter_context(tqdm(total=blocks.total, unit="query"))
        # Threads end with the generator, also where it is given up halfway.
        pool = stack.enter_context(ThreadPoolExecutor(threads)) if threads > 1 else None
        for block in blocks:

            def chosen(piece: range, block: Block = block) -> Selections:
                return _chosen(selector, block, piece, k)

            # Some pieces more than threads, so that a slow one is not waited for at the end; and none so long that
            # the bar stands still.
            step = min(-(-len(block) // (4 * threads)), _LONGEST)
            pieces = [range(i, min(i + step, len(block))) for i in range(0, len(block), step)]
            found: list[Selections] = []
            # The caller's own work between two blocks has its BLAS threads.
            with one_blas_thread():
                for part in in_order(chosen, pieces, pool):
                    found.append(part)
                    if bar is not None:
                        bar.update(len(part))
            yield _joined(found)


def _chosen(selector: Selector, block: Block, piece: range, k: int) -> Selections:
    at_once = choose_piece(selector, block, piece, k)
    if at_once is None:
        return _collect([_one(selector, block, i, k) for i in piece])
    indices, gains, relevance, left = at_once
    for i in left:
        selection = _one(selector, block, piece[i], k)
        indices[i], gains[i], relevance[i] = selection.indices, selection.gains, selection.relevance
    columns = indices, gains, relevance, gains.sum(axis=1), np.full(len(piece), -1)
    return Selections(*map(read_only, columns))


def _one(selector: Selector, block: Block, i: int, k: int) -> Selection:
    try:
        return selector.select(block.candidates(i), k)
    except SetSelectError as error:
        # Made without its constructor, since that of a selector's own error may take other arguments; and not in place,
        # since a selector may raise the same object again.
        named = type(error).__new__(type(error))
        named.__dict__.update(error.__dict__)
        named.args = (f"query {block.start + i}: {error}",)
        raise named from error


def _joined(parts: list[Selections]) -> Selections:
    if len(parts) == 1:
        return parts[0]
    names = (field.name for field in fields(Selections))
    return Selections(*(read_only(np.concatenate([getattr(part, name) for part in parts])) for name in names))


def _collect(selections: list[Selection]) -> Selections:
    def stack(name: str, dtype: Any) -> NDArray[Any]:
        return read_only(np.array([getattr(s, name) for s in selections], dtype=dtype))

    filled = read_only(np.array([-1 if s.filled_from is None else s.filled_from for s in selections], dtype=np.int64))
    return Selections(
        stack("indices", np.int64),
        stack("gains", np.float64),
        stack("relevance", np.float64),
        stack("objective", np.float64),
        filled,
    )
