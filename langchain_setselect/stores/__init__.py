"""Vector readers and listings for LangChain stores: tables of their classes. No store's client is imported here."""

from __future__ import annotations

from langchain_core.documents import Document

from shared_core.retrieval.extra import StoreListing

from . import clients, faiss, in_memory, lancedb, postgres
from .reader import VectorReader

# The keys are full names of classes, so that no store's package has to be imported.
READERS: dict[type | str, VectorReader] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": in_memory.READER,
    "langchain_azure_ai.vectorstores.azuresearch.AzureSearch": clients.AZURE_SEARCH,
    "langchain_chroma.vectorstores.Chroma": clients.CHROMA,
    "langchain_community.vectorstores.azuresearch.AzureSearch": clients.AZURE_SEARCH,
    "langchain_community.vectorstores.faiss.FAISS": faiss.READER,
    "langchain_community.vectorstores.opensearch_vector_search.OpenSearchVectorSearch": clients.OPENSEARCH,
    "langchain_elasticsearch.vectorstores.ElasticsearchStore": clients.ELASTICSEARCH,
    "langchain_elasticsearch.vectorstores.AsyncElasticsearchStore": clients.ASYNC_ELASTICSEARCH,
    "langchain_lancedb.vectorstores.LanceDB": lancedb.READER,
    "langchain_milvus.vectorstores.milvus.Milvus": clients.MILVUS,
    "langchain_pinecone.vectorstores.PineconeVectorStore": clients.PINECONE,
    "langchain_postgres.vectorstores.PGVector": postgres.COLLECTION_READER,
    "langchain_postgres.v2.vectorstores.PGVectorStore": postgres.TABLE_READER,
    "langchain_postgres.v2.async_vectorstore.AsyncPGVectorStore": postgres.ASYNC_TABLE_READER,
    "langchain_qdrant.qdrant.QdrantVectorStore": clients.QDRANT,
    "langchain_weaviate.vectorstores.WeaviateVectorStore": clients.WEAVIATE,
}

LISTINGS: dict[type | str, StoreListing[Document]] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": in_memory.LISTING,
    "langchain_chroma.vectorstores.Chroma": clients.CHROMA_LISTING,
    "langchain_community.vectorstores.faiss.FAISS": faiss.LISTING,
    "langchain_lancedb.vectorstores.LanceDB": lancedb.LISTING,
    "langchain_postgres.vectorstores.PGVector": postgres.COLLECTION_LISTING,
    "langchain_postgres.v2.vectorstores.PGVectorStore": postgres.TABLE_LISTING,
}
