"""Queries from Parquet files and tables: the blocks of the files, and the vectors of the rows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..._argument_names import argument_name
from ..._validation import quoted
from ...errors import InvalidInputError
from ._settings import OUTPUT_COLUMNS, REFERRED_BY, TITLE_COLUMN, DatasetSettings

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# Float32 vectors (n, d), and for each row None or the reason why its vector is unusable.
Rows = tuple[NDArray[np.float32], list[str | None]]
# The ids of a query's candidates, and their relevance (m,) if it is given; or the reason why they are unusable.
Given = tuple[list[Any], NDArray[np.float64] | None] | str
# If the first SAMPLE vectors of a file all have the same length and it is not the index's, the run is refused.
SAMPLE = 100
_BATCH_ROWS = 4096
# Rows that read_vectors_by_id holds at once.
_BLOCK_ROWS = 100_000
# pyarrow raises these where a file is damaged or cannot be read.
PARQUET_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True)
class RowRange:
    """The queries of one part: ``count`` rows of a file, from ``start`` on. ``first_row`` counts over all files."""

    number: int
    file: str
    start: int
    count: int
    first_row: int

    def __str__(self) -> str:
        return f"{self.file}: rows {self.start} to {self.start + self.count - 1}"


def list_files(paths: Paths) -> list[Path]:
    """The files in the given order; a folder stands for the .parquet files in it, sorted by name."""
    files: list[Path] = []
    for path in (Path(one).absolute() for one in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)):
        # As readers of Parquet do, skip names that begin with an underscore or a dot.
        inside = sorted(f for f in path.glob("*.parquet") if f.name[0] not in "._") if path.is_dir() else [path]
        if not inside:
            raise InvalidInputError(f"the folder {path} contains no .parquet file (folders inside it are not searched)")
        files += inside
    if not files:
        raise InvalidInputError("the list of files is empty")
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise InvalidInputError(f"there is no file {missing[0]}")
    return files


def open_parquet(file: str | Path) -> Any:
    """The file, opened for reading."""
    try:
        return pq.ParquetFile(file, memory_map=True)
    except PARQUET_ERRORS as error:
        raise InvalidInputError(f"{file} is not a Parquet file, or is damaged: {quoted(str(error))}") from None


def cut_into_ranges(files: Sequence[Path], block_rows: int) -> list[RowRange]:
    """The rows of these files in order, at most ``block_rows`` of one file together. No rows give one empty range."""
    ranges: list[RowRange] = []
    first_row = 0
    for file in files:
        with open_parquet(file) as parquet:
            rows = parquet.metadata.num_rows
        for start in range(0, rows, block_rows):
            ranges.append(RowRange(len(ranges), str(file), start, min(block_rows, rows - start), first_row + start))
        first_row += rows
    # The part of an empty range has the columns of any other part.
    return ranges or [RowRange(0, str(files[0]), 0, 0, 0)]


def read_rows(wanted: RowRange, columns: list[str]) -> Any:
    """The rows as a pyarrow Table of these columns."""
    try:
        return _read(wanted, columns)
    except PARQUET_ERRORS as error:
        raise InvalidInputError(f"{wanted} cannot be read: {quoted(str(error))}") from None


def _read(wanted: RowRange, columns: list[str]) -> Any:
    end = wanted.start + wanted.count
    with open_parquet(wanted.file) as parquet:
        groups, skipped, row = [], 0, 0
        for group in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row + rows <= wanted.start:
                skipped += rows
            elif row < end:
                groups.append(group)
            row += rows
        # A row group may be long: the rows before the wanted ones are decoded in batches and dropped.
        pieces, row = [], skipped
        for piece in parquet.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=columns):
            low, high = max(wanted.start - row, 0), min(end - row, len(piece))
            if low < high:
                pieces.append(piece.slice(low, high - low))
            row += len(piece)
            if row >= end:
                break
        schema = parquet.schema_arrow
        return pa.Table.from_batches(pieces, pa.schema([schema.field(name) for name in columns])).combine_chunks()


def check_schema(schema: Any, settings: DatasetSettings, where: str, dimension: int | None = None) -> None:
    """Raise InvalidInputError if a column is missing or has a type that cannot be read."""
    missing = [name for name in settings.columns if name not in schema.names]
    if missing:
        hint = f" ({argument_name('id_column=None')} writes row numbers instead)"
        hint = hint if missing == [settings.id_column] else ""
        raise InvalidInputError(f"{where}: no column {', '.join(missing)}{hint}; there is {', '.join(schema.names)}")
    for name in settings.columns:
        if schema.names.count(name) > 1:
            raise InvalidInputError(f"{where}: there are {schema.names.count(name)} columns {name!r}; rename one")
    by_label = isinstance(settings.index, Path)
    ids = (pa.types.is_integer, "lists of whole numbers") if by_label else (_is_id, "lists of ids")
    _check_type(schema, settings.text_column, _is_text, "text", where)
    _check_type(schema, settings.question_column, _is_text, "text", where)
    _check_type(schema, settings.vector_column, *_FLOATS, where)
    _check_type(schema, settings.candidates_column, _lists_of(ids[0]), ids[1], where)
    _check_type(schema, settings.relevance_column, _lists_of(_is_number), "lists of numbers", where)
    if settings.vector_column is not None and dimension is not None:
        kind = schema.field(settings.vector_column).type
        lists = _list_type(kind)
        length = lists.list_size if pa.types.is_fixed_size_list(lists) else getattr(kind, "shape", (dimension,))[0]
        if length not in (None, dimension):
            _raise_other_length(where, settings.vector_column, length, dimension)


def _check_type(schema: Any, column: str | None, is_right: Callable[[Any], bool], content: str, where: str) -> None:
    if column is not None and not is_right(kind := schema.field(column).type):
        raise InvalidInputError(f"{where}: column {column!r} must contain {content}, but contains {kind}")


def check_lengths(column: Any, name: str, where: str, dimension: int) -> None:
    """Raise InvalidInputError if the first vectors of a file all have the same wrong length."""
    lengths = pc.unique(pc.list_value_length(_as_lists(column))).to_pylist()
    if len(column) >= SAMPLE and len(lengths) == 1 and lengths[0] not in (None, 0, dimension):
        _raise_other_length(where, name, lengths[0], dimension)


def read_vectors_by_id(
    paths: Paths, ids: Sequence[str], *, id_column: str = "id", vector_column: str = "vector"
) -> NDArray[np.float32]:
    """The vectors of these ids, from Parquet files with a row for each id; rows with other ids are passed over.

    Parameters
    ----------
    paths : path or paths
        Parquet files, or a folder of them.
    ids : sequence of str, length n
        The ids whose vectors to read. A whole number in a file counts as its text.
    id_column : str
        The column of the ids: texts or whole numbers.
    vector_column : str
        The column of the vectors: lists of floats, all of the same length.

    Returns
    -------
    ndarray of float32, shape (n, d)

    Raises
    ------
    InvalidInputError
        There are no ids; a file cannot be read or lacks a column; an id has no vector, or two; or a vector is null,
        holds NaN or inf, or has another length. The message names the file, and the row (from 0) with its id.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.parquet"
    >>> pq.write_table(pa.table({"id": ["a", "b"], "vector": [[1.0, 0.0], [0.0, 2.0]]}), path)
    >>> read_vectors_by_id(path, ["b", "a"])
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    if not ids:
        raise InvalidInputError("there are no ids to read vectors for")
    wanted = set(ids)
    found: dict[str, NDArray[np.float32]] = {}
    first, dimension = None, None
    for block in cut_into_ranges(list_files(paths), _BLOCK_ROWS):
        with open_parquet(block.file) as parquet:
            _check_id_and_vector(parquet.schema_arrow, id_column, vector_column, block.file)
        table = read_rows(block, [id_column, vector_column])
        # A row without an id is nobody's.
        names = [None if name is None else str(name) for name in table[id_column].to_pylist()]
        first = first or next(filter(None, names), None)
        vectors, problems = read_vectors(table[vector_column], dimension, zero_is_problem=False)
        for row, name in enumerate(names):
            if name is None or name not in wanted:
                continue
            problem = "the id occurs a second time" if name in found else problems[row]
            if problem is not None:
                raise InvalidInputError(f"{block.file}: row {block.start + row} (id {quoted(name)}): {problem}")
            found[name] = vectors[row]
            dimension = vectors.shape[1]
    missing = [name for name in ids if name not in found]
    if missing:
        some = ", ".join(map(quoted, missing[:3])) + (", ..." if len(missing) > 3 else "")
        held = "it has no row" if first is None else f"its first id is {quoted(first)}"
        raise InvalidInputError(f"{paths} has no vector for {len(missing)} of {len(ids)} ids: {some}; {held}")
    return np.stack([found[name] for name in ids])


def _listed(schema: Any) -> str:
    return ", ".join(map(quoted, schema.names))


def _check_id_and_vector(schema: Any, id_column: str, vector_column: str, where: str) -> None:
    for argument, name in (("id_column", id_column), ("vector_column", vector_column)):
        if schema.names.count(name) != 1:
            raise InvalidInputError(
                f"{where}: {argument_name(argument)} = {quoted(name)}, but the columns are {_listed(schema)}"
            )
    _check_type(schema, id_column, _is_id, "ids, which are texts or whole numbers", where)
    _check_type(schema, vector_column, *_FLOATS, where)


class TextFiles:
    """The texts of candidates by their ids, from Parquet files with the columns ``id`` and ``text``.

    ``titles`` is the column of the titles; None: ``title``, in the files that have it. All texts are held in memory.
    """

    def __init__(self, paths: Paths, titles: str | None = None) -> None:
        tables = []
        for file in list_files(paths):
            with open_parquet(file) as parquet:
                schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
            wanted = {"id": (_is_id, "texts or whole numbers"), "text": (_is_text, "text")}
            title = titles or TITLE_COLUMN
            if titles is not None or (title in schema.names and _is_text(schema.field(title).type)):
                wanted[title] = (_is_text, "text")
            for name, (is_right, content) in wanted.items():
                if schema.names.count(name) != 1:
                    raise InvalidInputError(f"{file}: there must be one column {name!r}; there is {_listed(schema)}")
                _check_type(schema, name, is_right, content, str(file))
            table = read_rows(RowRange(0, str(file), 0, rows, 0), list(wanted))
            # Ids are compared as texts, which have the same type in all files.
            columns = {"id": table["id"].cast(pa.string()), "text": table["text"].cast(pa.large_string())}
            columns["title"] = (
                table[title].cast(pa.large_string()) if title in wanted else pa.nulls(rows, "large_string")
            )
            tables.append(pa.table(columns))
        table = pa.concat_tables(tables).combine_chunks()
        ids = table["id"].to_pylist()
        self._table, self._row = table, {name: row for row, name in enumerate(ids)}
        if len(self._row) < len(ids):
            again = next(name for row, name in enumerate(ids) if self._row[name] != row)
            raise InvalidInputError(f"{paths}: the id {quoted(again)} occurs a second time")

    def __call__(self, ids: Sequence[Any]) -> dict[Any, str]:
        """The texts of those ids that the files have; a null is an empty text."""
        return self._read("text", ids)

    def titles(self, ids: Sequence[Any]) -> dict[Any, str]:
        """The titles of those ids that the files have; a null is an empty title."""
        return self._read("title", ids)

    def _read(self, column: str, ids: Sequence[Any]) -> dict[Any, str]:
        known = {i: row for i in ids if (row := self._row.get(str(i))) is not None}
        values = self._table[column].take(pa.array(known.values(), pa.int64())).to_pylist()
        return {i: value or "" for i, value in zip(known, values, strict=True)}


def read_vectors(column: Any, dimension: int | None, *, zero_is_problem: bool = True) -> Rows:
    """The vectors of a column of lists or 1-d tensors of floats; without a dimension the most common length counts."""
    lists = _as_lists(column)
    null = lists.is_null().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    # flatten() leaves out the values behind a null list.
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    if dimension is None:
        dimension = int(np.bincount(lengths[~null]).argmax()) if (~null).any() else 0
    complete = ~null & (lengths == dimension)
    vectors = np.zeros((len(lists), dimension), np.float32)
    starts = np.cumsum(lengths) - lengths
    with np.errstate(over="ignore"):
        if complete.all():
            vectors[:] = flat.reshape(vectors.shape)
        else:
            vectors[complete] = flat[starts[complete, None] + np.arange(dimension)]
    problems = _find_problems(vectors, zero_is_problem)
    for i in np.flatnonzero(~complete):
        problems[i] = "the vector is null" if null[i] else f"the vector has length {lengths[i]}, not {dimension}"
    return vectors, problems


def read_candidates(queries: Any, rows: Sequence[int], settings: DatasetSettings) -> list[Given]:
    """The candidates that these rows of a table name, and their relevance if the settings name its column.

    The rows must be in ascending order.
    """
    # A slice of a table is a view. Only the lists of its rows become Python objects.
    part = queries.slice(rows[0], rows[-1] - rows[0] + 1)
    ids = _as_lists(part[settings.candidates_column]).to_pylist()
    name = settings.relevance_column
    relevance = [None] * len(part) if name is None else _as_lists(part[name]).to_pylist()
    given: list[Given] = []
    for i in (row - rows[0] for row in rows):
        problem = _find_problem_of_candidates(ids[i], relevance[i], settings)
        if problem is not None:
            given.append(problem)
        else:
            given.append((ids[i], None if relevance[i] is None else np.array(relevance[i], np.float64)))
    return given


def _find_problem_of_candidates(
    ids: list[Any] | None, relevance: list[Any] | None, settings: DatasetSettings
) -> str | None:
    if not ids:
        return "the list of candidates is null" if ids is None else "the list of candidates is empty"
    if None in ids:
        return f"the list of candidates contains a null at position {ids.index(None)}"
    if len(set(ids)) < len(ids):
        return f"candidate {quoted(next(i for i in ids if ids.count(i) > 1))} is in the list twice"
    if settings.relevance_column is None:
        return None
    if relevance is None:
        return "the list of relevance is null"
    if len(relevance) != len(ids):
        return f"the list of relevance has length {len(relevance)}, the list of candidates {len(ids)}"
    for i, number in zip(ids, relevance, strict=True):
        if number is None or not math.isfinite(number):
            return f"the relevance of candidate {quoted(i)} is {'null' if number is None else number}"
    return None


def embed_texts(column: Any, embed: Callable[[list[str]], NDArray[np.float32]], dimension: int | None) -> Rows:
    """The vectors that an embedding model gives for a column of texts."""
    texts = column.to_pylist()
    problems: list[str | None] = [
        "the text is null" if text is None else None if text.strip() else "the text is blank" for text in texts
    ]
    good = [i for i, problem in enumerate(problems) if problem is None]
    if not good:
        return np.zeros((len(texts), dimension or 0), np.float32), problems
    embedded = np.asarray(embed([texts[i] for i in good]), np.float32)
    if dimension is not None and embedded.shape[1] != dimension:
        raise InvalidInputError(
            f"the model's vectors have length {embedded.shape[1]}, the index's {dimension}: name the model that "
            "embedded the index's texts"
        )
    vectors = np.zeros((len(texts), embedded.shape[1]), np.float32)
    vectors[good] = embedded
    for i, problem in zip(good, _find_problems(embedded), strict=True):
        problems[i] = problem
    return vectors, problems


def output_schema(settings: DatasetSettings, schema: Any) -> Any:
    """The schema of the parts for queries of this ``schema``."""
    first = pa.field("row", pa.int64())
    if settings.id_column is not None:
        first = pa.field(settings.id_column, schema.field(settings.id_column).type)
    # A vector database may have ids of any type; as text they have the same type in all parts.
    ids = pa.string() if callable(settings.index) else pa.int64()
    kinds = (pa.list_(ids), pa.list_(pa.float64()), pa.list_(pa.float64()), pa.string())
    fields = [first, *map(pa.field, OUTPUT_COLUMNS, kinds)]
    if settings.reads_references:
        fields.insert(-1, pa.field(REFERRED_BY, pa.list_(ids)))
    return pa.schema(fields)


def _find_problems(vectors: NDArray[np.float32], zero_is_problem: bool = True) -> list[str | None]:
    problems: list[str | None] = [None] * len(vectors)
    for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
        problems[i] = f"the vector contains {vectors[i][~np.isfinite(vectors[i])][0]} (as float32)"
    for i in np.flatnonzero(~vectors.any(axis=1)) if zero_is_problem else ():
        problems[i] = "the vector is zero and has no direction"
    return problems


def _list_type(kind: Any) -> Any:
    """The list type in which rows of this type are stored; None if they are not lists."""
    if isinstance(kind, pa.BaseExtensionType):
        # The extension types are Arrow's tensors, and those that Ray makes of arrays. Only 1-d tensors are vectors.
        if getattr(kind, "ndim", len(getattr(kind, "shape", ()))) != 1:
            return None
        kind = kind.storage_type
        if pa.types.is_struct(kind):
            # Ray stores tensors of different lengths as structs.
            kind = kind.field("data").type if kind.get_field_index("data") >= 0 else None
    list_types = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return kind if kind is not None and any(is_type(kind) for is_type in list_types) else None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_id(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind)) or _is_text(kind)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _lists_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda kind: (lists := _list_type(kind)) is not None and is_right(lists.value_type)


_FLOATS = (_lists_of(pa.types.is_floating), "lists of floats")


def _as_lists(column: Any) -> Any:
    """A column that has a :func:`_list_type` as one array of lists."""
    lists = column.combine_chunks()
    # Without chunks, combine_chunks() returns a ChunkedArray.
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], _list_type(column.type))
    if isinstance(lists, pa.ExtensionArray):
        lists = lists.storage
        if pa.types.is_struct(lists.type):
            lists = pc.struct_field(lists, "data")
    return lists


def _raise_other_length(where: str, name: str, length: int, dimension: int) -> NoReturn:
    raise InvalidInputError(
        f"{where}: the vectors of column {name!r} have length {length}, those of the index {dimension}: they most "
        "likely come from different embedding models"
    )
