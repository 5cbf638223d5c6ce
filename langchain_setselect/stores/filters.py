"""How LangChain's stores filter by metadata: the arguments of a search that lets in only documents with some values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared_core.retrieval.follow import Where
from shared_core.retrieval.inputs import find_registered

# Arguments of a search that lets in what the filter does, as far as it has these values.
Narrow = Callable[[Any, Any, Where], dict[str, Any]]


def _operators(store: Any, own: Any, where: Where) -> dict[str, Any]:
    """The operators of MongoDB, which Chroma, Pinecone and PGVector take."""
    conditions: list[Any] = [own] if own else []
    for key, values in where.items():
        if isinstance(values, range):
            conditions += [{key: {"$gte": values.start}}, {key: {"$lt": values.stop}}]
        else:
            conditions.append({key: {"$in": [*values]}})
    return {"filter": conditions[0] if len(conditions) == 1 else {"$and": conditions}}


def _qdrant(store: Any, own: Any, where: Where) -> dict[str, Any]:
    from qdrant_client.models import FieldCondition, Filter, MatchAny, Range

    conditions: list[Any] = [] if own is None else [own]
    for key, values in where.items():
        field = f"{store.metadata_payload_key}.{key}"
        if isinstance(values, range):
            conditions.append(FieldCondition(key=field, range=Range(gte=values.start, lt=values.stop)))
        else:
            conditions.append(FieldCondition(key=field, match=MatchAny(any=[*values])))
    return {"filter": Filter(must=conditions)}


def _lancedb(store: Any, own: Any, where: Where) -> dict[str, Any]:
    """SQL, which is read before the search. A string with its quotes doubled is one literal."""
    if isinstance(own, dict):
        from langchain_community.vectorstores.lancedb import to_lance_filter

        own = to_lance_filter(own)
    conditions = [f"({own})"] if own else []
    for key, values in where.items():
        field = f"metadata.{key}"
        if isinstance(values, range):
            conditions += [f"{field} >= {values.start}", f"{field} < {values.stop}"]
        else:
            conditions.append(f"{field} IN ({', '.join(map(_as_literal, values))})")
    return {"filter": " AND ".join(conditions), "prefilter": True}


def _as_literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


# The keys are full names of classes, so that no store's package has to be imported.
FILTERS: dict[type | str, Narrow] = {
    "langchain_chroma.vectorstores.Chroma": _operators,
    "langchain_community.vectorstores.lancedb.LanceDB": _lancedb,
    "langchain_pinecone.vectorstores.PineconeVectorStore": _operators,
    "langchain_postgres.vectorstores.PGVector": _operators,
    "langchain_qdrant.qdrant.QdrantVectorStore": _qdrant,
}


def narrow(store: Any, arguments: dict[str, Any], where: Where) -> dict[str, Any]:
    """The arguments of a search that lets in what these do, as far as it has the values; :func:`can_narrow` is true."""
    of_store = find_registered(FILTERS, type(store))
    assert of_store is not None
    return {**arguments, **of_store(store, arguments.get("filter"), where)}


def can_narrow(store: Any) -> bool:
    """Whether it is known how the store filters by metadata."""
    return find_registered(FILTERS, type(store)) is not None
