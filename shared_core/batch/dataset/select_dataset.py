"""Choose for all queries of a table, a set of Parquet files or a Ray Dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar, overload

from ..._validation import check_integer
from ...errors import InvalidParameterError
from ...selectors.base import Selector
from ._worker import Chooser
from ._faiss_file import FaissFile
from ._output_folder import OutputFolder, Summary
from ._query_files import Block, Paths, blocks_of, files_of, first_rows, opened, read_block
from ._query_rows import SAMPLE, check_lengths, check_schema
from ._settings import Search, Settings, fingerprint_of, make_settings

_Part = TypeVar("_Part")


def select_table(queries: Any, index: str | os.PathLike[str] | Search, k: int = 5, **settings: Any) -> Any:
    """Choose ``k`` for each query of a table in memory.

    Parameters
    ----------
    queries : pyarrow.Table of n rows
    index, k, **settings
        As in :func:`select_dataset`.

    Returns
    -------
    pyarrow.Table of n rows, in the order of the queries, with the columns that :func:`select_dataset` writes

    Raises
    ------
    InvalidInputError, InvalidParameterError, VectorSourceError
        As :func:`select_dataset`.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> def search(vectors, k):
    ...     return [["a", "b"]] * len(vectors), [np.eye(2, dtype=np.float32)] * len(vectors)
    >>> table = pa.table({"id": [7, 8], "vector": [[2.0, 0.0], [0.0, float("nan")]]})
    >>> for row in select_table(table, search, k=1).to_pylist():
    ...     print(row["id"], row["ids"], row["relevance"], row["error"])
    7 ['a'] [1.0] None
    8 None None the vector holds nan (as float32)
    """
    return Chooser(make_settings(index, k, **settings)).choose(queries, first_row=0)


@overload
def select_dataset(
    queries: Any, index: str | os.PathLike[str] | Search, *, out: str | os.PathLike[str], **settings: Any
) -> Summary: ...
@overload
def select_dataset(
    queries: Any, index: str | os.PathLike[str] | Search, *, out: None = None, **settings: Any
) -> Any: ...
def select_dataset(
    queries: Any,
    index: str | os.PathLike[str] | Search,
    *,
    out: str | os.PathLike[str] | None = None,
    k: int = 5,
    fetch_k: int = 100,
    selector: str | Selector = "vrsd",
    id_column: str | None = "id",
    vector_column: str | None = None,
    text_column: str | None = None,
    model: str | None = None,
    concurrency: int | None = None,
    threads: int = 1,
    block_rows: int = 10_000,
    progress: bool = False,
    **parameters: Any,
) -> Summary | Any:
    """Choose ``k`` out of the ``fetch_k`` nearest for each query of files of any length.

    For each query there is a row with its id, ``ids`` (what was picked, in the order of choice), ``gains``,
    ``relevance`` (cosines with the query) and ``error``: null, or why there is no set (a vector with NaN, of another
    length or zero, a null, a blank text, a search that found nothing). Fewer than ``k`` are picked where the search
    finds fewer.

    Parameters
    ----------
    queries : path, paths or ray.data.Dataset
        Parquet files, or a folder of them.
    index : path, or callable
        A FAISS index in a file, opened read-only by memory map; or ``search(vectors, k) -> ids, vectors`` over a
        vector database: of (n, d) float32 vectors, for each the ids (m,) and the vectors (m, d) of its nearest,
        m <= k. Ids of a callable are written as text. On Ray the callable is pickled: let it connect when first called.
    out : path, optional
        A folder: a part for each block of queries and ``_settings.json``; readers of Parquet take it as one table.
        Blocks whose part is there are passed over, so the same call goes on where one was broken off. On a cluster
        all machines must see the folder, the queries and the index under the same path.
        None only with a Ray Dataset: what is chosen comes as a Ray Dataset, lazily.
    k, fetch_k : int
    selector, **parameters
        As in :func:`shared_core.select`.
    id_column : str or None
        Carried through; None writes the number of the row, in a column ``row``.
    vector_column, text_column : str, optional
        Where the queries are: vectors (default: ``vector``; lists of floats) or texts, which ``model`` embeds.
    model : str, optional
        A sentence-transformers model, name or folder; default all-MiniLM-L6-v2.
    concurrency : int, optional
        So many Ray actors; None: in this process, without Ray (with a Ray Dataset: one fewer than there are CPUs).
    threads : int
        Of FAISS in each process. More than 1 seldom helps here.
    block_rows : int
        Queries of a part. What is written depends on it in the last bit at most, and never on ``concurrency``.
    progress : bool
        A bar on the error output, of blocks (rich).

    Returns
    -------
    Summary, or a ray.data.Dataset where ``out`` is None

    Raises
    ------
    InvalidInputError
        A file or column is missing or of the wrong kind, or the index is for vectors of another length.
    InvalidParameterError
        A setting is out of its range, or ``out`` was begun with other settings; the message names them.
    VectorSourceError
        The index hands no vectors out, or the search answers what it should not.

    Examples
    --------
    >>> import faiss, tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> index = faiss.IndexFlatIP(2)
    >>> index.add(np.eye(2, dtype=np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     faiss.write_index(index, f"{folder}/index.faiss")
    ...     pq.write_table(pa.table({"id": ["x"], "vector": [[2.0, 1.0]]}), f"{folder}/queries.parquet")
    ...     done = select_dataset(f"{folder}/queries.parquet", f"{folder}/index.faiss", out=f"{folder}/sets", k=2)
    ...     pq.read_table(f"{folder}/sets").to_pylist()[0]["ids"], done.rows, done.errors
    ([0, 1], 1, 0)
    """
    settings = make_settings(
        index, k, fetch_k, selector, id_column=id_column, vector_column=vector_column, text_column=text_column,
        model=model, threads=threads, **parameters,
    )  # fmt: skip
    block_rows = check_integer(block_rows, "block_rows", least=1)
    if concurrency is not None:
        concurrency = check_integer(concurrency, "concurrency", least=1)
    # Here and not only in the workers, so that what is wrong with all rows is said at once and plainly.
    dimension = FaissFile(settings.index).dimension if isinstance(settings.index, Path) else None
    if not _is_paths(queries):
        from ._ray_run import choose_lazily, staged

        if out is None:
            return choose_lazily(queries, settings, dimension, concurrency, block_rows)
        queries = staged(queries, settings, dimension, Path(out).absolute())
        concurrency = concurrency or max(1, (os.cpu_count() or 2) - 1)
    elif out is None:
        raise InvalidParameterError(
            "out is missing: name a folder for the parts (for a table in memory there is select_table)"
        )
    return _choose_files(queries, settings, dimension, Path(out).absolute(), concurrency, block_rows, progress)


def _choose_files(
    queries: Paths, settings: Settings, dimension: int | None, out: Path, concurrency: int | None, block_rows: int,
    progress: bool,
) -> Summary:  # fmt: skip
    files = files_of(queries)
    first = None
    for file in files:
        with opened(file) as parquet:
            schema = parquet.schema_arrow
        check_schema(schema, settings, str(file), dimension)
        if settings.vector_column is not None and dimension is not None:
            column = settings.vector_column
            check_lengths(first_rows(file, column, SAMPLE), column, str(file), dimension)
        if settings.id_column is not None:
            kind = schema.field(settings.id_column).type
            first = first or kind
            if kind != first:
                raise InvalidParameterError(f"{file}: ids are {kind}, in {files[0]} {first}; give all files one type")
    folder = OutputFolder(out)
    blocks = blocks_of(files, block_rows)
    folder.open(
        {
            "version": 1,
            **settings.described(),
            "queries": [fingerprint_of(file) for file in files],
            "block_rows": block_rows,
            "parts": len(blocks),
        }
    )
    missing = [block for block in blocks if not folder.has(block.number, block.rows)]
    if missing and concurrency is not None:
        from ._ray_run import choose_blocks

        choose_blocks(missing, settings, folder, concurrency, progress)
    elif missing:
        chooser = Chooser(settings)
        for block in shown(missing, len(missing), progress):
            choose_block(chooser, block, folder)
    return folder.summary(range(len(blocks)), resumed=len(blocks) - len(missing))


def choose_block(chooser: Chooser, block: Block, folder: OutputFolder) -> None:
    """Read a block, choose, and write its part."""
    table = read_block(block, chooser.settings.columns)
    folder.write(block.number, chooser.choose(table, block.first_row))


def _is_paths(queries: Any) -> bool:
    return isinstance(queries, (str, os.PathLike, list, tuple))


def shown(parts: Iterable[_Part], total: int, progress: bool) -> Iterable[_Part]:
    """The parts as they come, with a bar on request."""
    if not progress:
        return parts
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError as error:
        raise ImportError('a progress bar needs rich: pip install "setselect[eval]"') from error
    return track(parts, "Choosing", total=total, console=Console(stderr=True))
