"""A set for each row of a table of queries: in this process, or on Ray (extra ``ray``). See docs/cluster.md."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from pathlib import Path
from statistics import mode
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._files import write_atomically
from .._parsing import parse_object
from .._validation import as_numeric, check_fields, check_ranges, import_library
from .._values import is_missing
from ..candidates import Candidates
from ..errors import InvalidInputError, InvalidParameterError, SetSelectError, VectorSourceError, quoted
from ..errors import argument_name as name_of
from ..facts import Facts, read_facts
from ..selection.effects import warn_of_no_effect
from ..selection.route import DEFAULT_K, default_fetch_k, select_set
from ..selectors.registry import DEFAULT_SELECTOR, Selector, capabilities_of, check_capability, resolve_selector
from ..stores.faiss import FaissFile
from ..texts import Texts

__all__ = ["Summary", "TableSelector", "select_dataset"]

pa, pq = import_library("pyarrow", "batch"), import_library("pyarrow.parquet", "batch")
# pyarrow raises these where a file is damaged or cannot be read.
_PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
# search(vectors (n, d), k) -> for each vector its ids (m,) and their vectors (m, d), m <= k
Search = Callable[[NDArray[np.float32], int], tuple[Sequence[Any], Sequence[Any]]]
# vectors_by_id(ids) -> the vector of each of these ids that is known
ById = Callable[[list[Any]], Mapping[Any, Any]]
Index = str | os.PathLike[str] | Search | ById

# referred_by is written where the references in the texts are read.
OUTPUT_COLUMNS = ("ids", "gains", "relevance", "referred_by", "error")
# The key of the settings in the metadata of a part.
_SETTINGS = b"setselect"
# Queries per search: 40 MB of candidates at fetch_k = 100 and d = 384.
_SEARCH_ROWS = 256
# A setting, and the setting that it needs.
_NEEDED = (("relevance_column", "candidates_column"), ("question_column", "texts"), ("texts", "question_column"))


@dataclass
class TableSelector:
    """Select for each row of a table of queries: ``selector(table)`` gives a table of selections.

    It works on a pyarrow Table or RecordBatch, and as the class of ``ray.data.Dataset.map_batches`` with
    ``batch_format="pyarrow"``. Each query gets a row with its id, ``ids`` (the picks in their order; all candidates if
    there are fewer than ``k``), ``gains``, ``relevance`` (cosines with the query, or what was given) and ``error``,
    which is null, or says why there is no selection. With ``texts``, ``referred_by`` has for each pick the id of the
    candidate that refers to it and brought it a bonus, or null.

    Parameters
    ----------
    index : path, or callable
        The file of a FAISS index; or ``search(vectors, k) -> ids, vectors`` over a vector database, which returns for
        each of n query vectors, float32 (n, d), the ids (m,) and the vectors (m, d) of the nearest items, m <= k. With
        ``candidates_column`` a callable is ``vectors_by_id(ids) -> mapping``: it gets the ids of the candidates of up
        to 256 queries, each once, and returns the vectors that it knows. Ids of a callable are written as text. On Ray
        the callable is pickled, so it must open its connection at its first call.
    k, fetch_k : int
        The number of picks for each query, and of nearest candidates to select from (default: 5 k, at least 50).
    selector : str or Selector
        ``"coverage"`` (default), another registered name, or an object with parameters of its own.
    id_column, vector_column : str
        The columns of the queries' ids, which are written unchanged, and of their vectors.
    candidates_column, relevance_column : str, optional
        Columns of lists: the ids of the candidates of each query, for which no search is made then (the ids of a FAISS
        index are its labels), and the worth of each, in place of the cosine, scaled to [0, 1] for the selector.
    question_column, texts : str and path, optional
        The column of the queries' texts; and the candidates' texts, which each process holds in memory: Parquet files
        with the columns ``id`` and ``text``, and ``title``, ``section``, ``source`` and so on, by which texts refer to
        each other. Without them :class:`Coverage` selects by the vectors alone.

    Raises
    ------
    InvalidInputError, InvalidParameterError, VectorSourceError
        A column or the index cannot be read; a setting is wrong; or a search does not return what it should.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> def search(vectors, k):
    ...     return [["a", "b"]] * len(vectors), [np.eye(2, dtype=np.float32)] * len(vectors)
    >>> table = pa.table({"id": [7, 8], "vector": [[2.0, 0.0], [0.0, float("nan")]]})
    >>> for row in TableSelector(search, k=1)(table).to_pylist():
    ...     print(row["id"], row["ids"], row["relevance"], row["error"])
    7 ['a'] [1.0] None
    8 None None the vector contains nan (as float32)
    """

    index: Index
    k: int = DEFAULT_K
    selector: str | Selector = DEFAULT_SELECTOR
    _: KW_ONLY
    fetch_k: int | None = None
    id_column: str = "id"
    vector_column: str = "vector"
    candidates_column: str | None = None
    relevance_column: str | None = None
    question_column: str | None = None
    texts: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        self.selector = resolve_selector(self.selector, {})
        check_fields(self)
        self.fetch_k = self.fetch_k or default_fetch_k(self.k)
        for name, needed in _NEEDED:
            if getattr(self, name) is not None and getattr(self, needed) is None:
                raise InvalidParameterError(f"{name_of(name)} has no use without {name_of(needed)}")
        given = [name for name in ("texts", "relevance_column") if getattr(self, name) is not None]
        warn_of_no_effect(self.selector, given, ("texts", "relevance_column"))
        if self.relevance_column is not None:
            check_capability(self.selector, "relevance")
        if self.candidates_column is None and self.fetch_k < self.k:
            raise InvalidParameterError(
                f"{name_of('fetch_k')} must be at least {name_of('k')} = {self.k}, got {self.fetch_k}"
            )
        if self.id_column in OUTPUT_COLUMNS:
            raise InvalidParameterError(
                f"{name_of('id_column')} is {self.id_column!r}, the name of a column that is written; rename it"
            )
        capabilities = capabilities_of(self.selector)
        if not capabilities.words:
            self.texts = self.question_column = None
        self._refers = self.texts is not None and (capabilities.references or capabilities.neighbours)
        # A worker may have another current folder.
        self.index = self.index if callable(self.index) else Path(self.index).absolute()
        self.texts = None if self.texts is None else Path(self.texts).absolute()

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        more = (self.candidates_column, self.relevance_column, self.question_column)
        return list(dict.fromkeys((self.id_column, self.vector_column, *filter(None, more))))

    def __call__(self, queries: Any) -> Any:
        """The selections of a table of queries, row by row."""
        table = pa.Table.from_pylist(queries) if isinstance(queries, list) else pa.table(queries)
        _check_columns(table.schema, self.columns, "the queries")
        vectors, errors = _read_vectors(
            table, self.vector_column, None if self._faiss is None else self._faiss.dimension
        )
        rows: list[dict[str, Any]] = [{"error": error} for error in errors]
        good = [row for row, error in enumerate(errors) if error is None]
        texts = self._texts
        for start in range(0, len(good), _SEARCH_ROWS):
            places = good[start : start + _SEARCH_ROWS]
            for place, known in zip(places, self._find_candidates(table, places, vectors), strict=True):
                try:
                    rows[place] = self._select(vectors[place], texts, *known)
                except SetSelectError as error:
                    rows[place] = {"error": str(error)}
        # A vector database may have ids of any type; as text they have the same type in all parts.
        ids, numbers = pa.list_(pa.string() if callable(self.index) else pa.int64()), pa.list_(pa.float64())
        kinds = dict(zip(OUTPUT_COLUMNS, (ids, numbers, numbers, ids, pa.string()), strict=True))
        columns = {key: pa.array([row.get(key) for row in rows], kind) for key, kind in kinds.items()}
        written = pa.table({self.id_column: table[self.id_column]} | columns)
        return written if self._refers else written.drop_columns("referred_by")

    @cached_property
    def _faiss(self) -> FaissFile | None:
        return FaissFile(self.index) if isinstance(self.index, Path) else None

    @cached_property
    def _texts(self) -> dict[str, tuple[str, Facts]]:
        return {} if self.texts is None else _read_texts(Path(self.texts))

    def _find_candidates(self, table: Any, places: list[int], vectors: list[Any]) -> Iterator[tuple[Any, ...]]:
        """What is known of the candidates of each of these rows, as :meth:`_select` takes it."""
        names = (self.candidates_column, self.relevance_column, self.question_column)
        lists, relevance, questions = (
            [None] * len(places) if name is None else table[name].take(places).to_pylist() for name in names
        )
        known: Sequence[Mapping[Any, Any]]
        if self.candidates_column is None:
            search: Any = self._faiss or self.index
            found, theirs = search(np.stack([vectors[place] for place in places]), self.fetch_k)
            if not len(found) == len(theirs) == len(places):
                raise VectorSourceError(f"the search of {len(places)} queries returned {len(found)} lists of ids")
            ids = [np.asarray(own).tolist() for own in found]
            known = [dict(zip(own, its, strict=True)) for own, its in zip(ids, theirs, strict=True)]
        else:
            ids = [own or [] for own in lists]
            by_id: Any = self._faiss.vectors_by_id if self._faiss else self.index
            asked = list(dict.fromkeys(name for own in ids for name in own if not is_missing(name)))
            known = [by_id(asked) if asked else {}] * len(ids)
        return zip(ids, known, relevance, questions, strict=True)

    def _select(
        self,
        query: Any,
        told: Mapping[str, Any],
        ids: list[Any],
        known: Mapping[Any, Any],
        relevance: Any,
        question: Any,
    ) -> dict[str, Any]:
        """The row of a query, from the vectors and texts that are known by id; InvalidInputError says what is not."""
        assert not isinstance(self.selector, str)
        if not ids:
            raise InvalidInputError("there are no candidates")
        vectors, texts = _look_up(known, ids, "vector"), None
        if len(set(ids)) < len(ids):
            raise InvalidInputError("a candidate is in the list twice")
        if self.relevance_column is not None and relevance is None:
            raise InvalidInputError("the list of relevance is null")
        if self.texts is not None:
            if is_missing(question):
                raise InvalidInputError("the question is null or blank")
            texts = Texts(*map(list, zip(*_look_up(told, [*map(str, ids)], "text"), strict=True)))
        # A kernel may have a row for each id.
        names = ids if getattr(self.selector, "kernel", None) is not None else None
        candidates = Candidates(query, as_numeric(vectors, "vectors"), relevance=relevance, ids=names, copy=False)
        chosen = select_set(candidates, self.selector, min(self.k, len(ids)), question=question or "", texts=texts)
        written = [*(map(str, ids) if callable(self.index) else ids), None]
        rows = chosen.indices, chosen.referred_by
        picks, referring = (None if own is None else [written[i] for i in own] for own in rows)
        return dict(zip(OUTPUT_COLUMNS, (picks, chosen.gains, chosen.relevance, referring), strict=False))

    def write_part(self, part: Path, queries: Any, settings: str) -> None:
        """Write the selections of a table of queries, and the settings of the run, in one step."""
        content = pa.BufferOutputStream()
        pq.write_table(self(queries).replace_schema_metadata({_SETTINGS: settings}), content)
        write_atomically(part, content.getvalue().to_pybytes())


def _describe(value: Any) -> str:
    """A setting as text: a file by its content, because its date may be restored after a change."""
    digest = hashlib.sha256()
    if isinstance(value, Path):
        for path in _list_files(value):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return f"sha256 {digest.hexdigest()}"
    if (kernel := getattr(value, "kernel", None)) is not None:
        digest.update(pickle.dumps(kernel))
        return f"{value!r}, sha256 {digest.hexdigest()}"
    return getattr(value, "__qualname__", type(value).__qualname__) if callable(value) else repr(value)


def _look_up(known: Mapping[Any, Any], ids: list[Any], what: str) -> list[Any]:
    values = [known.get(name) for name in ids]
    for name, value in zip(ids, values, strict=True):
        if value is None:
            raise InvalidInputError(f"there is no {what} of candidate {quoted(name)}")
    return values


def _read_vectors(table: Any, column: str, dimension: int | None) -> tuple[list[Any], list[str | None]]:
    """The vectors of a column, and why a row has none. Without a dimension the most common length counts."""
    rows = [row for chunk in table[column].chunks for row in chunk.to_numpy(zero_copy_only=False)]
    present = [row for row in rows if row is not None]
    if not all(isinstance(row, np.ndarray) and row.dtype.kind in "fiu" for row in present):
        raise InvalidInputError(f"column {column!r} must contain lists of numbers, but contains {table[column].type}")
    with np.errstate(over="ignore"):
        vectors = [None if row is None else row.astype(np.float32) for row in rows]
    dimension = dimension or (mode(map(len, present)) if present else 0)
    return vectors, [_find_fault(vector, dimension) for vector in vectors]


def _find_fault(vector: NDArray[np.float32] | None, dimension: int) -> str | None:
    """Why a vector cannot be used; None if it can."""
    if vector is None:
        return "the vector is null"
    if len(vector) != dimension:
        return f"the vector has length {len(vector)}, not {dimension}"
    if not np.isfinite(vector).all():
        return f"the vector contains {vector[~np.isfinite(vector)][0]} (as float32)"
    return None if vector.any() else "the vector is zero and has no direction"


def _check_columns(schema: Any, columns: Iterable[str], where: str) -> None:
    """Refuse a table that has not each of these columns once."""
    for name in columns:
        if (count := schema.names.count(name)) != 1:
            raise InvalidInputError(f"{where}: there are {count} columns {name!r} among {', '.join(schema.names)}")


def _list_files(path: Path) -> list[Path]:
    """The file, or the Parquet files of a folder, sorted by name."""
    # As readers of Parquet do, skip names that begin with an underscore or a dot.
    files = sorted(path.glob("[!._]*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InvalidInputError(f"there is no file {path}, and no .parquet file in a folder of this name")
    return files


def _read_tables(path: Path, columns: Sequence[str], rows: int = 10_000, *, more: bool = False) -> Iterator[Any]:
    """The rows of these files in order, at most ``rows`` of one file together; ``more``: all columns but lists."""
    for file in _list_files(path):
        try:
            with pq.ParquetFile(file, memory_map=True) as opened:
                schema = opened.schema_arrow
                _check_columns(schema, columns, str(file))
                read = [field.name for field in schema if more and not pa.types.is_nested(field.type)] or columns
                if not opened.metadata.num_rows:
                    yield schema.empty_table()
                for batch in opened.iter_batches(rows, columns=read):
                    # Text that is not UTF-8 would fail where it is used.
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])
        except _PARQUET_ERRORS as error:
            raise InvalidInputError(
                f"{file} cannot be read: it is damaged, or no Parquet file: {quoted(str(error))}"
            ) from None


def _read_texts(path: Path) -> dict[str, tuple[str, Facts]]:
    """By id, the text of each row of files (a null is an empty text), and what its other columns say of it."""
    texts: dict[str, tuple[str, Facts]] = {}
    for row in (row for table in _read_tables(path, ("id", "text"), more=True) for row in table.to_pylist()):
        name, text = row["id"], row["text"]
        if (str(name) in texts and not is_missing(name)) or not isinstance(text, (str, type(None))):
            raise InvalidInputError(f"{path}: the id {quoted(name)} occurs a second time, or its text is no text")
        texts[str(name)] = text or "", read_facts([SimpleNamespace(metadata=row, id=name)], [name])[0]
    return texts


class Summary(NamedTuple):
    """What is in the folder of :func:`select_dataset`: the first of the ``errors`` is ``first_error``, or None."""

    out: Path
    rows: int
    errors: int
    parts: int
    first_error: str | None


def select_dataset(
    queries: str | os.PathLike[str],
    index: Index,
    *,
    out: str | os.PathLike[str],
    concurrency: int | None = None,
    block_rows: int = 10_000,
    progress: bool = False,
    **settings: Any,
) -> Summary:
    """Select for each query of Parquet files of any length with a :class:`TableSelector`, into Parquet files.

    Parameters
    ----------
    queries : path
        A Parquet file, or a folder of them.
    index, **settings
        Those of :class:`TableSelector`.
    out : path
        A folder for one part (a Parquet file) for each block of queries. Readers of Parquet take it as one table.
        Blocks whose parts are complete are skipped, so the same call resumes a run that was stopped; parts of
        other settings are an error. On a cluster all machines must see the folder, index and texts under one path.
    concurrency : int, optional
        The number of Ray's workers. None: in this process, without Ray.
    block_rows : int
        Queries per part.
    progress : bool
        Show a bar over the blocks on the error output (rich).
    """
    selector, folder, source = TableSelector(index, **settings), Path(out).absolute(), Path(queries)
    checked = check_ranges({"block_rows": block_rows, "concurrency": concurrency, "progress": progress})
    # An index that cannot be read is refused here, and not in each worker.
    _ = selector._faiss
    described = {field.name: _describe(getattr(selector, field.name)) for field in fields(selector)}
    described |= {"queries": _describe(source), "block_rows": str(block_rows)}
    blocks: Iterable[Any] = _read_tables(source, selector.columns, checked["block_rows"])
    if progress:
        console = import_library("rich.console", "batch").Console(stderr=True)
        total = sum(-(-pq.read_metadata(file).num_rows // block_rows) for file in _list_files(source))
        blocks = import_library("rich.progress", "batch").track(blocks, "Selecting", total, console=console)
    folder.mkdir(parents=True, exist_ok=True)
    parts = ((folder / f"part-{number:05d}.parquet", table) for number, table in enumerate(blocks))
    missing = ((*part, json.dumps(described)) for part in parts if not _is_complete(*part, described))
    if concurrency is None:
        for part in missing:
            selector.write_part(*part)
    else:
        _write_on_ray(missing, concurrency, index, settings)
    files = sorted(folder.glob("part-*.parquet"))
    errors = [error for file in files for error in pq.read_table(file, columns=["error"])["error"].to_pylist()]
    said = [error for error in errors if error is not None]
    return Summary(folder, len(errors), len(said), len(files), said[0] if said else None)


def _write_on_ray(parts: Iterable[tuple[Any, ...]], workers: int, index: Index, settings: dict[str, Any]) -> None:
    ray, pools = import_library("ray", "ray"), import_library("ray.util", "ray")
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    actor = ray.remote(TableSelector).options(max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD")
    pool = pools.ActorPool([actor.remote(index, **settings) for _ in range(workers)])
    try:
        for part in parts:
            if not pool.has_free():
                pool.get_next_unordered()
            pool.submit(lambda worker, part: worker.write_part.remote(*part), part)
        while pool.has_next():
            pool.get_next_unordered()
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _is_complete(part: Path, table: Any, settings: dict[str, Any]) -> bool:
    """Whether a part has all its rows: a copy or a full disk can have truncated it. Other settings are an error."""
    try:
        written = pq.read_table(part, partitioning=None)
        written.validate(full=True)
        known = parse_object((written.schema.metadata or {}).get(_SETTINGS, b"{}"))
    except (*_PARQUET_ERRORS, InvalidInputError):
        return False
    pairs = {name: (known.get(name), value) for name, value in settings.items()}
    differing = [f"{name}: {old} there, {now} now" for name, (old, now) in pairs.items() if old != now]
    if differing:
        raise InvalidParameterError(
            f"{part.parent} has parts that were made with other settings ({'; '.join(differing)}); name another folder"
        )
    return len(written) == len(table)
