"""The columns of a table of queries: their types, what they hold, and the columns of the parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..._argument_names import argument_name
from ..._validation import is_missing, quoted
from ...errors import InvalidInputError, explain_lengths
from ._settings import OUTPUT_COLUMNS, REFERRED_BY, DatasetSettings

# Float32 vectors (n, d), and for each row None or the reason why its vector is unusable.
Rows = tuple[NDArray[np.float32], list[str | None]]
# The ids of a query's candidates, and their relevance (m,) if it is given; or the reason why they are unusable.
Given = tuple[list[Any], NDArray[np.float64] | None] | str
# What a message calls the right types of vectors.
VECTORS = "lists of floats or signed integers"


class Column(NamedTuple):
    """A column to be read, unless its name is None: the test of its type, and what a message calls the right types."""

    name: str | None
    is_right: Callable[[Any], bool]
    content: str
    hint: str = ""


def as_table(queries: Any) -> Any:
    """Queries as a pyarrow Table, if they are one of another library, columns, or records."""
    try:
        # A DataFrame of pandas before 2.2 has no Arrow stream, but pyarrow knows it.
        if isinstance(queries, Mapping) or any(hasattr(queries, name) for name in ("__arrow_c_stream__", "iloc")):
            return pa.table(queries)
        rows = list(queries)
        return pa.table({key: [row.get(key) for row in rows] for key in dict.fromkeys(k for row in rows for k in row)})
    except (TypeError, AttributeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"queries must be a pyarrow.Table, a DataFrame or a list of records, got {type(queries).__name__}, which "
            f"cannot be made into a table: {quoted(str(error))}"
        ) from error


def is_text(kind: Any) -> bool:
    """Whether a type is one of Arrow's strings, or a dictionary of them."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_whole(kind: Any) -> bool:
    """Whether a type is whole numbers, or a dictionary of them."""
    return bool(pa.types.is_integer(kind.value_type if pa.types.is_dictionary(kind) else kind))


def is_id(kind: Any) -> bool:
    """Whether a type is text or whole numbers."""
    return is_whole(kind) or is_text(kind)


def is_vectors(kind: Any) -> bool:
    """Whether a type is lists of floats or of signed integers. Unsigned ones are packed bits."""
    return is_numbers(kind) and not pa.types.is_unsigned_integer(list_type(kind).value_type)


def is_numbers(kind: Any) -> bool:
    """Whether a type is lists of numbers."""
    return _is_list(kind, lambda value: pa.types.is_floating(value) or pa.types.is_integer(value))


def list_type(kind: Any) -> Any:
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


def _is_list(kind: Any, is_right: Callable[[Any], bool]) -> bool:
    lists = list_type(kind)
    return lists is not None and is_right(lists.value_type)


def check_columns(schema: Any, columns: Iterable[Column], where: str) -> None:
    """Raise InvalidInputError unless each column is there once, with a type that can be read."""
    for name, is_right, content, hint in columns:
        if name is None:
            continue
        count = schema.names.count(name)
        if not count:
            raise InvalidInputError(f"{where}: no column {name}{hint}; there is {', '.join(schema.names)}")
        if count > 1:
            raise InvalidInputError(f"{where}: there are {count} columns {name!r}; rename one")
        if not is_right(kind := schema.field(name).type):
            raise InvalidInputError(f"{where}: column {name!r} must contain {content}, but contains {kind}")


def check_schema(schema: Any, settings: DatasetSettings, where: str, dimension: int | None = None) -> None:
    """Raise InvalidInputError if a column is missing or has a type that cannot be read."""
    is_label, labels = is_id, "lists of ids"
    if isinstance(settings.index, Path):
        is_label, labels = is_whole, "lists of whole numbers"
    columns = [
        Column(
            settings.id_column, lambda _: True, "", f" ({argument_name('id_column=None')} writes row numbers instead)"
        ),
        Column(settings.text_column, is_text, "text"),
        Column(settings.question_column, is_text, "text"),
        Column(settings.vector_column, is_vectors, VECTORS),
        Column(settings.candidates_column, lambda kind: _is_list(kind, is_label), labels),
        Column(settings.relevance_column, is_numbers, "lists of numbers"),
    ]
    check_columns(schema, columns, where)
    if settings.vector_column is not None and dimension is not None:
        kind = schema.field(settings.vector_column).type
        lists = list_type(kind)
        length = lists.list_size if pa.types.is_fixed_size_list(lists) else getattr(kind, "shape", (None,))[0]
        check_length(length, dimension, settings.vector_column, where)


def check_length(length: int | None, dimension: int, column: str, where: str) -> None:
    """Raise InvalidInputError if vectors of this length, None for any, do not fit the index."""
    if length is not None and length != dimension:
        raise InvalidInputError(
            f"{where}: the vectors of column {column!r} have length {length}, those of the index {dimension}: "
            f"{explain_lengths(length, dimension)}"
        )


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


def read_vectors(column: Any, dimension: int | None, *, zero_is_problem: bool = True) -> Rows:
    """The vectors of a column of lists or 1-d tensors of floats; without a dimension the most common length counts."""
    lists = as_lists(column)
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


def embed_texts(column: Any, embed: Callable[[list[str]], NDArray[np.float32]], dimension: int | None) -> Rows:
    """The vectors that an embedding model gives for a column of texts."""
    texts = column.to_pylist()
    problems: list[str | None] = [describe_missing(text, "the text") for text in texts]
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


def describe_missing(text: str | None, what: str) -> str | None:
    """Why a text is unusable; None if it is not missing."""
    return f"{what} is {'null' if text is None else 'blank'}" if is_missing(text) else None


def _find_problems(vectors: NDArray[np.float32], zero_is_problem: bool = True) -> list[str | None]:
    problems: list[str | None] = [None] * len(vectors)
    for i in np.flatnonzero(~np.isfinite(vectors).all(axis=1)):
        problems[i] = f"the vector contains {vectors[i][~np.isfinite(vectors[i])][0]} (as float32)"
    for i in np.flatnonzero(~vectors.any(axis=1)) if zero_is_problem else ():
        problems[i] = "the vector is zero and has no direction"
    return problems


def read_candidates(queries: Any, rows: Sequence[int], settings: DatasetSettings) -> list[Given]:
    """The candidates that these ascending rows of a table name, and their relevance if the settings name its column."""
    # A slice of a table is a view. Only the lists of its rows become Python objects.
    part = queries.slice(rows[0], rows[-1] - rows[0] + 1)
    ids = as_lists(part[settings.candidates_column]).to_pylist()
    name = settings.relevance_column
    relevance = [None] * len(part) if name is None else as_lists(part[name]).to_pylist()
    return [_check_candidates(ids[i - rows[0]], relevance[i - rows[0]], name is not None) for i in rows]


def _check_candidates(ids: list[Any] | None, relevance: list[Any] | None, has_relevance: bool) -> Given:
    if not ids:
        return "the list of candidates is null" if ids is None else "the list of candidates is empty"
    if missing := [position for position, name in enumerate(ids) if is_missing(name)]:
        which = "null" if ids[missing[0]] is None else "blank id"
        return f"the list of candidates contains a {which} at position {missing[0]}"
    if len(set(ids)) < len(ids):
        return f"candidate {quoted(next(i for i in ids if ids.count(i) > 1))} is in the list twice"
    if not has_relevance:
        return ids, None
    if relevance is None:
        return "the list of relevance is null"
    if len(relevance) != len(ids):
        return f"the list of relevance has length {len(relevance)}, the list of candidates {len(ids)}"
    for i, number in zip(ids, relevance, strict=True):
        if number is None or not math.isfinite(number):
            return f"the relevance of candidate {quoted(i)} is {'null' if number is None else number}"
    return ids, np.array(relevance, np.float64)


def as_lists(column: Any) -> Any:
    """A column that has a :func:`list_type` as one array of lists."""
    lists = column.combine_chunks()
    # Without chunks, combine_chunks() returns a ChunkedArray.
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.array([], list_type(column.type))
    if isinstance(lists, pa.ExtensionArray):
        lists = lists.storage
        if pa.types.is_struct(lists.type):
            lists = pc.struct_field(lists, "data")
    return lists
