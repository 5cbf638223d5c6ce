"""How LlamaIndex's stores look vectors up, list their nodes, and filter. No store's client is imported here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.follow import Where
from shared_core.stores import (
    WIDEST,
    azure_search,
    chroma,
    elasticsearch,
    faiss,
    lancedb,
    milvus,
    opensearch,
    pinecone,
    postgres,
    qdrant,
    weaviate,
)

Fetch = Callable[..., Mapping[str, ArrayLike]]
AsyncFetch = Callable[..., Awaitable[Mapping[str, ArrayLike]]]


class VectorReader(NamedTuple):
    """How a store looks vectors up by node id, with ``fetch(store, node_ids, index)``."""

    fetch: Fetch
    afetch: AsyncFetch | None = None
    # The store's own search leaves the vectors on the nodes.
    on_node: bool = False
    # The most hits that the store returns; no search of setselect asks for more.
    widest: int = WIDEST
    # The arguments of a search that name a part of the store, such as partitions. ``fetch`` takes them too.
    scope: Collection[str] = ()


def read_with_client(
    core: ModuleType,
    client: Callable[[Any], Any],
    aclient: Callable[[Any], Any] | None = None,
    arguments: Callable[..., dict[str, Any]] = lambda store: {},
    **more: Any,
) -> VectorReader:
    """A reader that calls ``core.vectors_by_id`` or ``core.avectors_by_id`` with the store's sync or async client.

    ``arguments(store, **where)`` makes further arguments of these functions; ``where`` holds those of the ``scope``.
    ``more`` are further fields of the reader.
    """

    def fetch(store: Any, node_ids: Sequence[str], index: Any, **where: Any) -> Mapping[str, ArrayLike]:
        sync = client(store)
        if sync is None:
            raise VectorSourceError(
                f"{type(store).__name__} has no sync client: give it one, or use the async methods of setselect"
            )
        found: Mapping[str, ArrayLike] = core.vectors_by_id(sync, ids=node_ids, **arguments(store, **where))
        return found

    async def afetch(store: Any, node_ids: Sequence[str], index: Any, **where: Any) -> Mapping[str, ArrayLike]:
        awaited = aclient(store) if aclient else None
        if awaited is None:
            return await asyncio.to_thread(fetch, store, node_ids, index, **where)
        found: Mapping[str, ArrayLike] = await core.avectors_by_id(awaited, ids=node_ids, **arguments(store, **where))
        return found

    return VectorReader(fetch, afetch if aclient else None, widest=getattr(core, "WIDEST", WIDEST), **more)


def _fetch_simple(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    stored = store.data.embedding_dict
    return {node_id: stored[node_id] for node_id in node_ids if node_id in stored}


def _fetch_lancedb(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    # The store has no table until a node is added.
    return {} if store._table is None else lancedb.vectors_by_id(store.table, node_ids, store.vector_column_name)


async def _afetch_elasticsearch(
    store: Any, node_ids: Sequence[str], index: VectorStoreIndex
) -> Mapping[str, ArrayLike]:
    return await elasticsearch.avectors_by_id(store.client, store.index_name, store.vector_field, node_ids)


def _fetch_elasticsearch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    # The store has an async client only; its own ``query`` runs in this event loop too.
    return asyncio.get_event_loop().run_until_complete(_afetch_elasticsearch(store, node_ids, index))


def _fetch_postgres(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    store._initialize()
    with store._session() as session:
        return postgres.vectors_by_id(session, _select_nodes(store), node_ids)


async def _afetch_postgres(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    store._initialize()
    async with store._async_session() as session:
        return await postgres.avectors_by_id(session, _select_nodes(store), node_ids)


def _select_nodes(store: Any) -> Any:
    from sqlalchemy import select

    row = store._table_class
    # A node that was added twice has two rows. In this order the later one counts.
    return select(row.node_id, row.embedding).order_by(row.id)


def _milvus_arguments(store: Any, milvus_partition_names: Sequence[str] | None = None) -> dict[str, Any]:
    if not store.enable_dense:
        raise VectorSourceError(
            f"the collection {store.collection_name!r} holds no dense vectors: its store has enable_dense=False"
        )
    part = {} if milvus_partition_names is None else {"partition_names": milvus_partition_names}
    return {"collection": store.collection_name, "field": store.embedding_field, **part}


def _qdrant_arguments(store: Any, shard_identifier: Any = None) -> dict[str, Any]:
    # A store that has only an async client learns in its first query whether the vector has a name.
    is_known = store.dense_vector_name == "" or store.client is not None
    names = [store.dense_vector_name] if is_known else [store.dense_vector_name, ""]
    arguments = {"collection": store.collection_name, "names": names}
    if shard_identifier is not None:
        arguments["shard_key_selector"] = store._generate_shard_key_selector(shard_identifier)
    return arguments


def _opensearch_arguments(store: Any) -> dict[str, Any]:
    client = store.client
    # A serverless collection generates ids itself, so the store keeps the node's id in a field.
    id_field = "id" if client.is_aoss else None
    return {"index": client._index, "field": client._embedding_field, "id_field": id_field}


def _weaviate_collection(store: Any) -> Any:
    return store.client.collections.get(store.index_name)


def _weaviate_async_collection(store: Any) -> Any:
    return None if store._aclient is None else store._aclient.collections.get(store.index_name)


def _list_postgres(store: Any, ids: Sequence[str] | None) -> list[BaseNode]:
    from sqlalchemy import select

    # The store's own ``get_nodes`` reads the vectors too, and a node refuses those of half precision.
    row = store._table_class
    statement = select(row.node_id, row.text, row.metadata_).order_by(row.id)
    store._initialize()
    with store._session() as session:
        rows = session.execute(statement if ids is None else statement.where(row.node_id.in_(ids))).all()
    return [_as_node(*fields) for fields in rows]


def _as_node(node_id: str, text: str, metadata: dict[str, Any]) -> BaseNode:
    try:
        return metadata_dict_to_node(metadata, text)
    # A row that another program wrote. The store's own search makes the same node of it.
    except ValueError:
        return TextNode(id_=node_id, text=text, metadata=metadata)


def _count_postgres(store: Any) -> int:
    from sqlalchemy import func, select

    store._initialize()
    with store._session() as session:
        count: int = session.execute(select(func.count(store._table_class.id))).scalar()
    return count


def _fetch_faiss(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    wanted = set(node_ids)
    # A copy: another thread may add nodes.
    labels = {name: label for label, name in index.index_struct.nodes_dict.copy().items() if name in wanted}
    return _read_faiss(store, labels)


def _fetch_faiss_mapped(store: Any, node_ids: Sequence[str], index: VectorStoreIndex) -> Mapping[str, ArrayLike]:
    labels, nodes = store._node_id_to_faiss_id_map, store._faiss_id_to_node_id_map
    # After a deletion the store gives the next node a label that is in use, and loses the node that had it.
    return _read_faiss(store, {n: labels[n] for n in node_ids if n in labels and nodes.get(labels[n]) == n})


def _read_faiss(store: Any, labels: Mapping[str, str | int]) -> Mapping[str, ArrayLike]:
    return dict(zip(labels, faiss.vectors_by_label(store.client, list(map(int, labels.values()))), strict=True))


def takes_node_ids(store: Any) -> bool:
    """Whether a search of this store can be restricted to given nodes; a search of FAISS cannot, and needs not."""
    return not any(cls.__module__.startswith("llama_index.vector_stores.faiss.") for cls in type(store).__mro__)


_CLIENT = attrgetter("client")

# The keys are full names of classes, so that no store's package has to be imported.
READERS: dict[type | str, VectorReader] = {
    "llama_index.core.vector_stores.simple.SimpleVectorStore": VectorReader(_fetch_simple),
    "llama_index.vector_stores.azureaisearch.base.AzureAISearchVectorStore": read_with_client(
        azure_search,
        _CLIENT,
        attrgetter("aclient"),
        lambda store: {"key": store._field_mapping["id"], "field": store._field_mapping["embedding"]},
    ),
    "llama_index.vector_stores.chroma.base.ChromaVectorStore": read_with_client(chroma, _CLIENT),
    "llama_index.vector_stores.elasticsearch.base.ElasticsearchStore": VectorReader(
        _fetch_elasticsearch, _afetch_elasticsearch, widest=elasticsearch.WIDEST
    ),
    "llama_index.vector_stores.faiss.base.FaissVectorStore": VectorReader(_fetch_faiss),
    "llama_index.vector_stores.faiss.map_store.FaissMapVectorStore": VectorReader(_fetch_faiss_mapped),
    "llama_index.vector_stores.lancedb.base.LanceDBVectorStore": VectorReader(_fetch_lancedb, on_node=True),
    "llama_index.vector_stores.milvus.base.MilvusVectorStore": read_with_client(
        milvus, _CLIENT, attrgetter("aclient"), _milvus_arguments, scope=["milvus_partition_names"]
    ),
    "llama_index.vector_stores.opensearch.base.OpensearchVectorStore": read_with_client(
        opensearch,
        attrgetter("client._os_client"),
        attrgetter("client._os_async_client"),
        _opensearch_arguments,
    ),
    # The store writes a node that came from a document under "<document's id>#<node's id>". The node's id alone does
    # not give this key, so such nodes are not found by id. The store's own search leaves vectors on the nodes.
    "llama_index.vector_stores.pinecone.base.PineconeVectorStore": read_with_client(
        pinecone, _CLIENT, arguments=lambda store: {"namespace": store.namespace}, on_node=True
    ),
    "llama_index.vector_stores.postgres.base.PGVectorStore": VectorReader(_fetch_postgres, _afetch_postgres),
    "llama_index.vector_stores.qdrant.base.QdrantVectorStore": read_with_client(
        qdrant, _CLIENT, attrgetter("_aclient"), _qdrant_arguments, scope=["shard_identifier"]
    ),
    "llama_index.vector_stores.weaviate.base.WeaviateVectorStore": read_with_client(
        weaviate, _weaviate_collection, _weaviate_async_collection, on_node=True
    ),
}

# The stores that hold the texts of their nodes. Those of the others are in the index's docstore.
LISTINGS: dict[type | str, StoreListing[BaseNode]] = {
    "llama_index.vector_stores.chroma.base.ChromaVectorStore": StoreListing(
        lambda store, ids: store.get_nodes(ids),
        lambda store: (store.client.count(), None),
        ids=lambda store: store.client.get(include=[])["ids"],
    ),
    "llama_index.vector_stores.lancedb.base.LanceDBVectorStore": StoreListing(
        lambda store, ids: [] if store._table is None else store.get_nodes(),
        lambda store: (0, 0) if store._table is None else (store.table.count_rows(), store.table.version),
        by_id=False,
    ),
    "llama_index.vector_stores.postgres.base.PGVectorStore": StoreListing(
        _list_postgres, lambda store: (_count_postgres(store), None)
    ),
}

# The stores that pass the values of filters on as they are. Others write a query as a text, and not all escape them.
_PASSING_ON = ("SimpleVectorStore", "ChromaVectorStore", "QdrantVectorStore")
_QUOTES = frozenset("'\"`\\\n")


def narrow(store: Any, own: MetadataFilters | None, where: Where) -> MetadataFilters | None:
    """The filters that let in what ``own`` does, as far as it has these values under the keys.

    None if a value is not safe in a query that the store writes.
    """
    filters: list[MetadataFilter | MetadataFilters] = []
    if own is not None:
        # Not every store knows filters in filters.
        is_flat = own.condition in (None, FilterCondition.AND) or len(own.filters) == 1
        filters += own.filters if is_flat and own.condition != FilterCondition.NOT else [own]
    passes_on = any(cls.__name__ in _PASSING_ON for cls in type(store).__mro__)
    for key, values in where.items():
        if isinstance(values, range):
            filters.append(MetadataFilter(key=key, operator=FilterOperator.GTE, value=values.start))
            filters.append(MetadataFilter(key=key, operator=FilterOperator.LT, value=values.stop))
        elif passes_on or _QUOTES.isdisjoint("".join(map(str, values))):
            filters.append(MetadataFilter(key=key, operator=FilterOperator.IN, value=[*values]))
        else:
            return None
    return MetadataFilters(filters=filters)
