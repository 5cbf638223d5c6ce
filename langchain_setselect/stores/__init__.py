"""Vector readers for LangChain stores: a table of their classes, and a module per store that imports no client."""

from __future__ import annotations

from . import (
    azure_search,
    chroma,
    duckdb,
    elasticsearch,
    faiss,
    in_memory,
    lancedb,
    milvus,
    opensearch,
    pinecone,
    postgres,
    qdrant,
    sqlite_vec,
    weaviate,
)
from .reader import VectorReader, id_in_metadata

_AZURE = VectorReader(
    azure_search.search,
    azure_search.asearch,
    azure_search.fetch,
    azure_search.afetch,
    azure_search.id_of,
    widest=10_000,
)

# The keys are full names of classes, so that no store's package has to be imported.
READERS: dict[type | str, VectorReader] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": VectorReader(in_memory.search, fetch=in_memory.fetch),
    "langchain_azure_ai.vectorstores.azuresearch.AzureSearch": _AZURE,
    "langchain_chroma.vectorstores.Chroma": VectorReader(chroma.search, fetch=chroma.fetch),
    "langchain_community.vectorstores.azuresearch.AzureSearch": _AZURE,
    "langchain_community.vectorstores.duckdb.DuckDB": VectorReader(duckdb.search),
    "langchain_community.vectorstores.faiss.FAISS": VectorReader(faiss.search, fetch=faiss.fetch),
    "langchain_community.vectorstores.lancedb.LanceDB": VectorReader(lancedb.search_community),
    "langchain_community.vectorstores.opensearch_vector_search.OpenSearchVectorSearch": VectorReader(
        opensearch.search, fetch=opensearch.fetch, widest=10_000
    ),
    "langchain_community.vectorstores.sqlitevec.SQLiteVec": VectorReader(
        sqlite_vec.search, sqlite_vec.asearch, widest=4_096
    ),
    "langchain_elasticsearch.vectorstores.ElasticsearchStore": VectorReader(elasticsearch.search, widest=10_000),
    "langchain_elasticsearch.vectorstores.AsyncElasticsearchStore": VectorReader(
        elasticsearch.refuse_sync, elasticsearch.asearch, widest=10_000
    ),
    "langchain_lancedb.vectorstores.LanceDB": VectorReader(lancedb.search),
    "langchain_milvus.vectorstores.milvus.Milvus": VectorReader(
        milvus.search, milvus.asearch, milvus.fetch, milvus.afetch, milvus.id_of, widest=16_384
    ),
    "langchain_pinecone.vectorstores.PineconeVectorStore": VectorReader(
        pinecone.search, pinecone.asearch, pinecone.fetch, pinecone.afetch, widest=10_000
    ),
    "langchain_postgres.vectorstores.PGVector": postgres.COLLECTION,
    "langchain_postgres.v2.vectorstores.PGVectorStore": postgres.TABLE,
    "langchain_postgres.v2.async_vectorstore.AsyncPGVectorStore": postgres.ASYNC_TABLE,
    # The store has no async client.
    "langchain_qdrant.qdrant.QdrantVectorStore": VectorReader(
        qdrant.search, fetch=qdrant.fetch, id_of=id_in_metadata("_id")
    ),
    # The documents have no id (return_uuids writes one into the metadata), so vectors cannot be looked up.
    "langchain_weaviate.vectorstores.WeaviateVectorStore": VectorReader(
        weaviate.search, weaviate.asearch, widest=10_000
    ),
}
