"""Stored vectors out of a Milvus collection: Milvus Lite's file or a server, pymilvus 2.6 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import InvalidInputError, VectorSourceError

# Row by row; a list only where the field is nullable, with None for the rows that have no vector.
Vectors = NDArray[np.float32] | list[NDArray[np.float32] | None]

# Raw control characters are fine in Milvus's string literals, but for these.
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def search_with_vectors(
    client: Any,
    collection: str,
    query: Sequence[float],
    k: int,
    *,
    field: str,
    output_fields: Sequence[str] = (),
    **arguments: Any,
) -> tuple[list[Mapping[str, Any]], Vectors]:
    """The collection's own top ``k`` for a query, and the vectors it stores for them, in one request.

    Parameters
    ----------
    client : pymilvus.MilvusClient
    collection : str
    query : sequence of d floats
    k : int
    field : str
        The vector field to search and to read.
    output_fields : sequence of str
        Which other fields the hits are to carry.
    **arguments
        For ``client.search`` unchanged: ``filter``, ``search_params``, ``partition_names``, ``timeout``, ...

    Returns
    -------
    hits : list of mapping, m <= k
        The client's own: ``{primary field: id, "distance": float, "entity": {field: value}}``, without vectors.
    vectors : float32, shape (m, d); or list of m, each float32 of shape (d,) or None, where the field is nullable
        Bit-equal to what was added where the field holds 32 bits; float16, bfloat16 and int8 are widened exactly.

    Raises
    ------
    pymilvus.MilvusException
        What the client raises: a query of another length than the field's vectors, an unreadable filter, a broken
        connection, ...
    InvalidInputError
        The query is of another length than the field's vectors, and Milvus answered all the same, or not a word.
    VectorSourceError
        The field holds no dense numbers: it is binary or sparse.
    """
    try:
        found = client.search(
            collection, data=[query], limit=k, anns_field=field, output_fields=[*output_fields, field], **arguments
        )
    except Exception as error:
        if _without_a_word(error):
            _check_length(query, field, _dimensions(client.describe_collection(collection), field))
        raise
    return _taken_apart(found, field, query)


async def asearch_with_vectors(
    client: Any,
    collection: str,
    query: Sequence[float],
    k: int,
    *,
    field: str,
    output_fields: Sequence[str] = (),
    **arguments: Any,
) -> tuple[list[Mapping[str, Any]], Vectors]:
    """As :func:`search_with_vectors`, awaiting a ``pymilvus.AsyncMilvusClient``."""
    try:
        found = await client.search(
            collection, data=[query], limit=k, anns_field=field, output_fields=[*output_fields, field], **arguments
        )
    except Exception as error:
        if _without_a_word(error):
            _check_length(query, field, _dimensions(await client.describe_collection(collection), field))
        raise
    return _taken_apart(found, field, query)


def vectors_by_id(
    client: Any, collection: str, ids: Sequence[str | int], *, field: str, id_field: str = "id"
) -> dict[Any, NDArray[np.float32]]:
    """The vectors stored under these ids, in one request; ids that the collection does not have are left out.

    Parameters
    ----------
    client : pymilvus.MilvusClient
    collection : str
    ids : sequence of str or of int
        Integers may come as strings too.
    field : str
        The vector field to read.
    id_field : str
        The primary field.

    Returns
    -------
    dict of id, as the collection has it, to ndarray, float32, shape (d,)
        In the collection's own order, which is not that of ``ids``; rows whose vector is null are left out.

    Raises
    ------
    pymilvus.MilvusException
        What the client raises.
    VectorSourceError
        The field holds no dense numbers: it is binary or sparse.
    """
    if not ids:
        return {}
    found = client.query(collection, **_among(id_field, ids), output_fields=[id_field, field])
    return _by_id(found, id_field, field)


async def avectors_by_id(
    client: Any, collection: str, ids: Sequence[str | int], *, field: str, id_field: str = "id"
) -> dict[Any, NDArray[np.float32]]:
    """As :func:`vectors_by_id`, awaiting a ``pymilvus.AsyncMilvusClient``."""
    if not ids:
        return {}
    found = await client.query(collection, **_among(id_field, ids), output_fields=[id_field, field])
    return _by_id(found, id_field, field)


def _among(id_field: str, ids: Sequence[str | int]) -> dict[str, Any]:
    words = [str(one) for one in ids]
    # Numbers are quoted or not, as the primary field wants them: the client knows.
    if all(word.removeprefix("-").isdecimal() for word in words):
        return {"ids": words}
    # But it escapes nothing: a quote or a backslash in an id would end in a syntax error, or in worse.
    literals = ", ".join(f'"{word.translate(_ESCAPES)}"' for word in words)
    return {"filter": f"{id_field} in [{literals}]"}


def _taken_apart(found: Any, field: str, query: Sequence[float]) -> tuple[list[Mapping[str, Any]], Vectors]:
    if not found or not len(found[0]):
        return [], np.empty((0, 0), dtype=np.float32)
    hits = found[0]
    column = {one.field_name: one for one in hits.lazy_field_data}[field]
    # What is not in the list is not turned into Python floats: that costs more than the choice.
    hits.lazy_field_data.remove(column)
    vectors = _vectors(column)
    # Milvus Lite stretches a query of one number over every dimension.
    _check_length(query, field, column.vectors.dim)
    return list(hits), vectors


def _without_a_word(error: Exception) -> bool:
    # So fail the indexes of Milvus Lite where a query is of another length than their vectors.
    return getattr(error, "message", None) == ""


def _check_length(query: Sequence[float], field: str, dimensions: int | None) -> None:
    if dimensions is not None and len(query) != dimensions:
        raise InvalidInputError(f"the query has {len(query)} dimensions, and Milvus's field {field!r} has {dimensions}")


def _dimensions(description: Mapping[str, Any], field: str) -> int | None:
    return next((one["params"].get("dim") for one in description["fields"] if one["name"] == field), None)


def _by_id(found: Any, id_field: str, field: str) -> dict[Any, NDArray[np.float32]]:
    columns = found._lazy_field_data
    column = next((one for one in columns if one.field_name == field), None)
    if column is None:
        return {}
    columns.remove(column)
    rows = zip(found, _vectors(column), strict=True)
    return {row[id_field]: vector for row, vector in rows if vector is not None}


def _vectors(column: Any) -> Vectors:
    rows = _floats(column).reshape(-1, column.vectors.dim)
    if not len(column.valid_data):
        return rows
    # Null rows take no room in a server's column, and some in Milvus Lite's.
    valid = np.array(column.valid_data, dtype=bool)
    places = np.arange(len(valid)) if len(rows) == len(valid) else np.cumsum(valid) - 1
    return [rows[place] if there else None for place, there in zip(places, valid, strict=True)]


def _floats(column: Any) -> NDArray[np.float32]:
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
            raise VectorSourceError(f"Milvus's field {column.field_name!r} holds no dense numbers: {kind}")
