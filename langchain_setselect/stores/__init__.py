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
from .reader import VectorReader

# The keys are full names of classes, so that no store's package has to be imported.
READERS: dict[type | str, VectorReader] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": in_memory.READER,
    "langchain_azure_ai.vectorstores.azuresearch.AzureSearch": azure_search.READER,
    "langchain_chroma.vectorstores.Chroma": chroma.READER,
    "langchain_community.vectorstores.azuresearch.AzureSearch": azure_search.READER,
    "langchain_community.vectorstores.duckdb.DuckDB": duckdb.READER,
    "langchain_community.vectorstores.faiss.FAISS": faiss.READER,
    "langchain_community.vectorstores.lancedb.LanceDB": lancedb.COMMUNITY_READER,
    "langchain_community.vectorstores.opensearch_vector_search.OpenSearchVectorSearch": opensearch.READER,
    "langchain_community.vectorstores.sqlitevec.SQLiteVec": sqlite_vec.READER,
    "langchain_elasticsearch.vectorstores.ElasticsearchStore": elasticsearch.READER,
    "langchain_elasticsearch.vectorstores.AsyncElasticsearchStore": elasticsearch.ASYNC_READER,
    "langchain_lancedb.vectorstores.LanceDB": lancedb.READER,
    "langchain_milvus.vectorstores.milvus.Milvus": milvus.READER,
    "langchain_pinecone.vectorstores.PineconeVectorStore": pinecone.READER,
    "langchain_postgres.vectorstores.PGVector": postgres.COLLECTION_READER,
    "langchain_postgres.v2.vectorstores.PGVectorStore": postgres.TABLE_READER,
    "langchain_postgres.v2.async_vectorstore.AsyncPGVectorStore": postgres.ASYNC_TABLE_READER,
    "langchain_qdrant.qdrant.QdrantVectorStore": qdrant.READER,
    "langchain_weaviate.vectorstores.WeaviateVectorStore": weaviate.READER,
}
