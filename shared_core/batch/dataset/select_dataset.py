"""Select for all queries of a table, of Parquet files or of a Ray Dataset."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

import pyarrow.compute as pc

from ..._libraries import import_library
from ..._validation import check_integer
from ...errors import InvalidInputError, InvalidParameterError
from ...selection.route import DEFAULT_K
from ._columns import as_lists, as_table, check_length, check_schema
from ._faiss_file import FaissFile
from ._output_folder import OutputFolder, Summary
from ._row_ranges import RowRange, cut_into_ranges, list_files, open_parquet, read_rows
from ._settings import DatasetSettings, Index, describe, make_settings
from ._worker import Worker

# If the first SAMPLE vectors of a file all have the same length and it is not the index's, the run is refused.
SAMPLE = 100


def select_table(queries: Any, index: Index, k: int = DEFAULT_K, **settings: Any) -> Any:
    """Select ``k`` for each query of a table in memory.

    Parameters
    ----------
    queries : table of n rows, or list of n mappings
        The queries, with the columns of :func:`select_dataset`: a pyarrow.Table, a DataFrame of pandas or polars, a
        Dataset of the package ``datasets``, or records.
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
    8 None None the vector contains nan (as float32)
    """
    return Worker(make_settings(index, k=k, **settings))(as_table(queries))


@overload
def select_dataset(queries: Any, index: Index, *, out: str | os.PathLike[str], **settings: Any) -> Summary: ...
@overload
def select_dataset(queries: Any, index: Index, *, out: None = None, **settings: Any) -> Any: ...
def select_dataset(
    queries: Any,
    index: Index,
    *,
    out: str | os.PathLike[str] | None = None,
    concurrency: int | None = None,
    block_rows: int = 10_000,
    progress: bool = False,
    **settings: Any,
) -> Summary | Any:
    """Select ``k`` of the ``fetch_k`` nearest candidates for each query of Parquet files of any length.

    The candidates and their relevance may also come from columns of the queries: the hits of a hybrid search, the
    scores of a reranker. The default selector reads the words of questions and candidates, and which candidates name
    each other, if ``texts`` gives those of the candidates. It selects by the vectors alone otherwise.

    Each query gets a row with its id, ``ids`` (the picks in their order), ``gains``, ``relevance`` (cosines with the
    query, or what was given) and ``error``. With ``texts``, ``referred_by`` has for each pick the id of the candidate
    that refers to it and brought it a bonus, or null. ``error`` is null, or says why there is no selection: a vector
    that is zero, has another length or holds NaN; a null; a blank text; a search that found nothing; or an id that the
    index does not have. If there are fewer than ``k`` candidates, all of them are picked.

    Parameters
    ----------
    queries : path, paths or ray.data.Dataset
        Parquet files, or a folder of them.
    index : path, or callable
        The file of a FAISS index, opened read-only by memory map; or ``search(vectors, k) -> ids, vectors`` over a
        vector database. A search gets n query vectors, float32 (n, d). For each of them it returns the ids (m,) and
        the vectors (m, d) of the nearest items, m <= k. With ``candidates_column`` a callable is
        ``vectors_by_id(ids) -> mapping`` instead: it gets the ids of the candidates of up to 256 queries, each id once,
        and returns the vectors of those that it knows. Ids of a callable are written as text. On Ray the callable is
        pickled, so it must open its connection at its first call.
    out : path, optional
        A folder for ``_settings.json`` and one part (a Parquet file) for each block of queries. Readers of Parquet
        take it as one table.
        Blocks whose parts exist are skipped, so the same call resumes a run that was stopped. On a cluster all
        machines must see the folder, the queries, the index and the texts under the same path.
        None is for a Ray Dataset alone: the result is a Ray Dataset, computed lazily.
    concurrency : int, optional
        The number of Ray actors. None: in this process, without Ray (for a Ray Dataset: one actor fewer than CPUs).
    block_rows : int
        Queries per part. It changes the written numbers in the last bit at most; ``concurrency`` does not change them.
    progress : bool
        Show a bar over the blocks on the error output (rich).
    **settings
        The parameters below.

    Other Parameters
    ----------------
    k, fetch_k : int
        The number of picks for each query, and the number of nearest candidates to select from (default: 5 k, at
        least 50). ``fetch_k`` has no effect with ``candidates_column``.
    selector, **parameters
        As in :func:`shared_core.select`, without constraints.
    id_column : str or None
        The column of the queries' ids, which are written unchanged. None writes the number of the row, in a column
        ``row``.
    vector_column, text_column : str, optional
        The column of the queries: vectors (default: ``vector``; lists of floats or signed integers) or texts, which
        ``model`` embeds.
    model : str, optional
        A sentence-transformers model, name or folder; default all-MiniLM-L6-v2.
    candidates_column : str, optional
        The column of lists of ids: the candidates of each query, for which no search is made then. The ids of a FAISS
        index are its labels.
    relevance_column : str, optional
        The column of lists of numbers, one for each candidate in ``candidates_column``: its worth for the query, in
        place of the cosine. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance of each query is scaled for the selector; see
        :func:`shared_core.rescale`. It is written as it was given.
    question_column : str, optional
        The column of the queries' texts, of which :class:`Coverage` reads the words; default: ``text_column``.
    texts : path, or callable
        The candidates' texts: a Parquet file, or a folder of them, with the columns ``id`` and ``text``; or
        ``texts_by_id(ids) -> mapping``, which gets the ids of the candidates of up to 256 queries. Each process holds
        the texts of the files in memory.
    titles : str or callable, optional
        The candidates' titles, by which the texts mention each other: their column in the files of ``texts`` (default:
        ``title``, if the files have it), or ``titles_by_id(ids) -> mapping``. The name of a text without a title is
        the one with which it begins; see :func:`shared_core.find_references`.
    identifiers, sources : str or callable, optional
        The numbers or codes by which the texts cite each other, and the documents in which a number counts: a column
        of the files of ``texts`` (default: ``section``, ``clause``, ``article``, ``rule``, ``number``, ``key``,
        ``code`` and ``symbol``, and ``source``, if the files have them), or ``values_by_id(ids) -> mapping``.
    neighbours : str or callable, optional
        The numbers of the texts in their ``sources``, by which texts with successive numbers lead to each other: a
        column (default: ``chunk_index``, ``chunk`` or ``seq_num``), or ``values_by_id(ids) -> mapping``.
    threads : int
        Threads of FAISS in each process.

    Returns
    -------
    Summary, or a ray.data.Dataset if ``out`` is None

    Raises
    ------
    InvalidInputError
        A file or column is missing or of the wrong kind, or the index is for vectors of another length.
    InvalidParameterError
        A setting is out of its range, or ``out`` has parts that were made with other settings; the message names
        them.
    VectorSourceError
        The index does not return vectors, or the search returns the wrong number of results.

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
    run = make_settings(index, **settings)
    block_rows = check_integer(block_rows, "block_rows", least=1)
    if concurrency is not None:
        concurrency = check_integer(concurrency, "concurrency", least=1)
    # The index is opened here as well as in the workers, so that an error of all rows is raised at once.
    dimension = FaissFile(run.index).dimension if isinstance(run.index, Path) else None
    if isinstance(queries, (str, os.PathLike, list, tuple)):
        if out is None:
            raise InvalidParameterError(
                "out is missing: name a folder for the parts (select_table takes a table in memory and needs none)"
            )
        files = list_files(queries)
        _check_files(files, run, dimension)
        folder = OutputFolder(Path(out).absolute())
        with folder.hold():
            return _fill(folder, files, run, block_rows, concurrency, progress)
    from ._ray_run import check_dataset, map_dataset, stage_queries

    check_dataset(queries, run, dimension)
    if out is None:
        return map_dataset(queries, run, concurrency, block_rows)
    folder = OutputFolder(Path(out).absolute())
    with folder.hold():
        files = list_files(stage_queries(queries, run, folder.path))
        _check_files(files, run, dimension)
        return _fill(folder, files, run, block_rows, concurrency or max(1, (os.cpu_count() or 2) - 1), progress)


def _fill(
    folder: OutputFolder,
    files: list[Path],
    settings: DatasetSettings,
    block_rows: int,
    concurrency: int | None,
    progress: bool,
) -> Summary:
    """Write the parts that the folder lacks."""
    plan = cut_into_ranges(files, block_rows)
    described = _describe(files, settings)
    folder.open({"version": 3, **described, "block_rows": block_rows, "parts": len(plan)})
    missing = [rows for rows in plan if folder.read_errors(rows) is None]
    if missing:
        parts: Iterable[None]
        if concurrency is None:
            parts = map(functools.partial(Worker(settings).write_part, folder=folder), missing)
        else:
            from ._ray_run import write_parts

            parts = write_parts(missing, settings, folder, concurrency)
        if progress:
            console = import_library("rich.console", "batch").Console(stderr=True)
            track = import_library("rich.progress", "batch").track
            parts = track(parts, "Selecting", total=len(missing), console=console)
        for _ in parts:
            pass
        if _describe(files, settings) != described:
            for rows in missing:
                folder.part(rows.number).unlink(missing_ok=True)
            raise InvalidInputError(
                "the queries or the index changed while the run was reading them, so the parts that this run wrote are "
                "removed: name another folder for the changed files"
            )
    return folder.summarise(plan, resumed=len(plan) - len(missing))


def _describe(files: list[Path], settings: DatasetSettings) -> dict[str, Any]:
    return {**settings.describe(), "queries": [describe(file) for file in files]}


def _check_files(files: list[Path], settings: DatasetSettings, dimension: int | None) -> None:
    id_type = None
    for file in files:
        with open_parquet(file) as parquet:
            schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        check_schema(schema, settings, str(file), dimension)
        name = settings.vector_column
        if name is not None and dimension is not None and count >= SAMPLE:
            first = as_lists(read_rows(RowRange(0, str(file), 0, SAMPLE, 0), [name])[name])
            lengths = pc.unique(pc.list_value_length(first)).to_pylist()
            # One length for all, and not that of vectors that are null or empty.
            if len(lengths) == 1:
                check_length(lengths[0] or None, dimension, name, str(file))
        if settings.id_column is not None:
            kind = schema.field(settings.id_column).type
            id_type = id_type or kind
            if kind != id_type:
                raise InvalidParameterError(f"{file}: ids are {kind}, in {files[0]} {id_type}; give all files one type")
