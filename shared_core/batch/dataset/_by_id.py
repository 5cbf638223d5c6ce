"""Vectors and texts by id, from Parquet files with a row for each id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._argument_names import argument_name
from ..._validation import is_missing, quoted
from ...errors import InvalidInputError
from ...facts import IDENTIFIER_KEYS, PLACE_KEYS, write_identifier
from ._columns import VECTORS, Column, check_columns, is_id, is_text, is_vectors, read_vectors
from ._row_ranges import Paths, RowRange, cut_into_ranges, list_files, open_parquet, read_rows
from ._settings import TextsById, ValuesById

# Rows that read_vectors_by_id holds at once.
_BLOCK_ROWS = 100_000
# The types of what texts are called by, and the columns that have it, with the form in which it is written.
_ID = (is_id, "texts or whole numbers")
_TYPES = {"titles": (is_text, "text"), "identifiers": _ID, "sources": _ID, "neighbours": _ID}
_USUAL = {
    "titles": {"title": "{}"},
    "identifiers": IDENTIFIER_KEYS,
    "sources": {"source": "{}"},
    "neighbours": dict.fromkeys(PLACE_KEYS, "{}"),
}


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
        The column of the vectors: lists of floats, or of int8 and the like, all of the same length.

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
    >>> path = f"{tempfile.mkdtemp()}/vectors.parquet"
    >>> pq.write_table(pa.table({"id": ["a", "b"], "vector": [[1.0, 0.0], [0.0, 2.0]]}), path)
    >>> read_vectors_by_id(path, ["b", "a"])
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    if not ids:
        raise InvalidInputError("there are no ids to read vectors for")
    columns = [
        Column(id_column, is_id, "texts or whole numbers", f" ({argument_name('id_column')})"),
        Column(vector_column, is_vectors, VECTORS, f" ({argument_name('vector_column')})"),
    ]
    names = set(ids)
    by_id: dict[str, NDArray[np.float32]] = {}
    first_id, dimension = None, None
    for rows in cut_into_ranges(list_files(paths), _BLOCK_ROWS):
        with open_parquet(rows.file) as parquet:
            check_columns(parquet.schema_arrow, columns, rows.file)
        table = read_rows(rows, [id_column, vector_column])
        vectors, problems = read_vectors(table[vector_column], dimension, zero_is_problem=False)
        for row, value in enumerate(table[id_column].to_pylist()):
            # A row without an id is nobody's.
            if is_missing(value):
                continue
            name = str(value)
            first_id = first_id or name
            if name not in names:
                continue
            problem = "the id occurs a second time" if name in by_id else problems[row]
            if problem is not None:
                raise InvalidInputError(f"{rows.file}: row {rows.start + row} (id {quoted(name)}): {problem}")
            by_id[name] = vectors[row]
            dimension = vectors.shape[1]
    missing = [name for name in ids if name not in by_id]
    if missing:
        shown = ", ".join(map(quoted, missing[:3])) + (", ..." if len(missing) > 3 else "")
        held = "it has no row" if first_id is None else f"its first id is {quoted(first_id)}"
        raise InvalidInputError(f"{paths} has no vector for {len(missing)} of {len(ids)} ids: {shown}; {held}")
    return np.stack([by_id[name] for name in ids])


def read_texts(paths: Paths, columns: Mapping[str, str | None]) -> tuple[TextsById, dict[str, ValuesById]]:
    """Functions that give the texts of ids, and their titles, numbers and so on: the columns that are named.

    Without a name the usual columns are read, if there are any of the right type. The functions leave out ids that the
    files do not have, and there is none for what no text has. A null is an empty text.
    """
    texts: dict[str, str] = {}
    others: dict[str, dict[str, Any]] = {name: {} for name in columns}
    for file in list_files(paths):
        with open_parquet(file) as parquet:
            schema, count = parquet.schema_arrow, parquet.metadata.num_rows
        named = [Column(column, *_TYPES[name]) for name, column in columns.items()]
        check_columns(schema, [Column("id", *_ID), Column("text", is_text, "text"), *named], str(file))
        forms = {
            name: {column: "{}"}
            if column
            else {key: form for key, form in _USUAL[name].items() if _fits(schema, key, name)}
            for name, column in columns.items()
        }
        read = list(dict.fromkeys(["id", "text", *chain(*forms.values())]))
        for record in read_rows(RowRange(0, str(file), 0, count, 0), read).to_pylist():
            # A row without an id is nobody's.
            if is_missing(record["id"]):
                continue
            key = str(record["id"])
            if key in texts:
                raise InvalidInputError(f"{paths}: the id {quoted(key)} occurs a second time")
            texts[key] = record["text"] or ""
            for name, of_name in forms.items():
                written = [text for column, form in of_name.items() if (text := write_identifier(form, record[column]))]
                if written:
                    others[name][key] = written if name == "identifiers" else written[0]
    return partial(_look_up, texts), {name: partial(_look_up, values) for name, values in others.items() if values}


def _fits(schema: Any, column: str, name: str) -> bool:
    return column in schema.names and _TYPES[name][0](schema.field(column).type)


def _look_up(values: dict[str, Any], ids: Sequence[Any]) -> dict[Any, Any]:
    return {i: values[str(i)] for i in ids if str(i) in values}
