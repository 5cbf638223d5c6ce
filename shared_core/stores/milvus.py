"""Stored vectors out of a Milvus collection: Milvus Lite's file or a server, pymilvus 2.6 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError, VectorSourceError
from .rows import Calls, Id, Row, TwoWays, Vectors, rows_by_id

# The most hits of one search, the server's limit.
WIDEST = 16_384
# Milvus's string literals accept all raw control characters except these.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


@TwoWays
def search_with_vectors(
    client: Any,
    collection: str,
    query: Sequence[float],
    k: int,
    *,
    field: str,
    output_fields: Sequence[str] = (),
    **arguments: Any,
) -> Calls[tuple[list[Mapping[str, Any]], Vectors]]:
    """Search the vectors of a field, with a ``MilvusClient`` or ``AsyncMilvusClient``.

    The rows are the client's hits with their ``output_fields``. Fields of binary or sparse vectors raise a
    :class:`VectorSourceError`, and a query of another length an :class:`InvalidInputError` if Milvus gives no reason.
    """
    from pymilvus import MilvusException  # type: ignore[import-not-found,unused-ignore]

    request = {"data": [query], "limit": k, "anns_field": field, "output_fields": [*output_fields, field]}
    try:
        found = yield client.search(collection, **request, **arguments)
    except MilvusException as error:
        # Milvus Lite's indexes fail with an empty message if the query and their vectors differ in length.
        if getattr(error, "message", None) == "":
            description = yield client.describe_collection(collection)
            _check_length(query, field, description)
        raise
    if not found or not len(found[0]):
        return [], np.empty((0, 0), dtype=np.float32)
    hits = found[0]
    column = {one.field_name: one for one in hits.lazy_field_data}[field]
    # The client turns the columns of this list into Python floats, which takes longer than the selection.
    hits.lazy_field_data.remove(column)
    return list(hits), _vectors(column)


@TwoWays
def vectors_by_id(
    client: Any, collection: str, ids: Sequence[Id], *, field: str, id_field: str = "id", **arguments: Any
) -> Calls[dict[Id, Row]]:
    """Look vectors up by primary key, a string or an integer. Integers may be given as strings.

    ``arguments``: passed to the client, ``partition_names`` for example.
    """
    if not ids:
        return {}
    given = {str(name): name for name in ids}
    request: dict[str, Any]
    if all(word.removeprefix("-").isdecimal() for word in given):
        # The client knows whether the primary field needs quotes around numbers.
        request = {"ids": list(given)}
    else:
        # The client does not escape ids, so a quote or a backslash in one would break or change the filter.
        literals = ", ".join(f'"{word.translate(_ESCAPES)}"' for word in given)
        request = {"filter": f"{id_field} in [{literals}]"}
    found = yield client.query(collection, output_fields=[id_field, field], **request, **arguments)
    column = next((one for one in found._lazy_field_data if one.field_name == field), None)
    if column is None:
        return {}
    found._lazy_field_data.remove(column)
    rows = ((str(row[id_field]), vector) for row, vector in zip(found, _vectors(column), strict=True))
    return rows_by_id((given[name], vector) for name, vector in rows if name in given)


asearch_with_vectors, avectors_by_id = search_with_vectors.awaited, vectors_by_id.awaited


def _check_length(query: Sequence[float], field: str, description: Mapping[str, Any]) -> None:
    dimension = next((one["params"].get("dim") for one in description["fields"] if one["name"] == field), None)
    if dimension is not None and len(query) != dimension:
        raise InvalidInputError(f"the query has {len(query)} dimensions, and Milvus's field {field!r} has {dimension}")


def _vectors(column: Any) -> Vectors:
    rows = _as_floats(column).reshape(-1, column.vectors.dim)
    if not len(column.valid_data):
        return rows
    # A server leaves null rows out of the column's data, Milvus Lite keeps a place for them.
    valid = np.array(column.valid_data, dtype=bool)
    places = np.arange(len(valid)) if len(rows) == len(valid) else np.cumsum(valid) - 1
    return [rows[place] if there else None for place, there in zip(places, valid, strict=True)]


def _as_floats(column: Any) -> NDArray[np.float32]:
    vectors = column.vectors
    match vectors.WhichOneof("data"):
        case "float_vector":
            return np.array(vectors.float_vector.data, dtype=np.float32)
        case "float16_vector":
            return np.frombuffer(vectors.float16_vector, dtype="<f2").astype(np.float32)
        case "bfloat16_vector":
            return (np.frombuffer(vectors.bfloat16_vector, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
        case "int8_vector":
            return np.frombuffer(vectors.int8_vector, dtype=np.int8).astype(np.float32)
        case kind:
            raise VectorSourceError(f"Milvus's field {column.field_name!r} holds no dense vectors: {kind}")
