"""The columns of the queries and their types, and the columns of the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..._argument_names import argument_name
from ...errors import InvalidInputError
from ._settings import OUTPUT_COLUMNS, REFERRED_BY, DatasetSettings


class Column(NamedTuple):
    """A column to be read, unless its name is None: the test of its type, and what a message calls the right types."""

    name: str | None
    is_right: Callable[[Any], bool]
    content: str
    hint: str = ""


def is_text(kind: Any) -> bool:
    """Whether a type is one of Arrow's strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_id(kind: Any) -> bool:
    """Whether a type is text or whole numbers."""
    return bool(pa.types.is_integer(kind)) or is_text(kind)


def is_floats(kind: Any) -> bool:
    """Whether a type is lists of floats."""
    return _is_list(kind, pa.types.is_floating)


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
        is_label, labels = pa.types.is_integer, "lists of whole numbers"
    columns = [
        Column(
            settings.id_column, lambda _: True, "", f" ({argument_name('id_column=None')} writes row numbers instead)"
        ),
        Column(settings.text_column, is_text, "text"),
        Column(settings.question_column, is_text, "text"),
        Column(settings.vector_column, is_floats, "lists of floats"),
        Column(settings.candidates_column, lambda kind: _is_list(kind, is_label), labels),
        Column(
            settings.relevance_column,
            lambda kind: is_floats(kind) or _is_list(kind, pa.types.is_integer),
            "lists of numbers",
        ),
    ]
    check_columns(schema, columns, where)
    if settings.vector_column is not None and dimension is not None:
        kind = schema.field(settings.vector_column).type
        lists = list_type(kind)
        length = lists.list_size if pa.types.is_fixed_size_list(lists) else getattr(kind, "shape", (None,))[0]
        check_length(length, dimension, settings.vector_column, where)


def check_length(length: int | None, dimension: int, column: str, where: str) -> None:
    """Raise InvalidInputError if vectors of this length, None for any, do not fit the index."""
    if length not in (None, dimension):
        raise InvalidInputError(
            f"{where}: the vectors of column {column!r} have length {length}, those of the index {dimension}: they "
            "most likely come from different embedding models"
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
