"""Every store's cases, one line a store."""

from tests.stores import (
    azure_search_cases,
    chroma_cases,
    duckdb_cases,
    elasticsearch_cases,
    lancedb_cases,
    local_cases,
    milvus_cases,
    opensearch_cases,
    pinecone_cases,
    postgres_cases,
    qdrant_cases,
    sqlite_vec_cases,
    weaviate_cases,
)
from tests.stores.harness import LangChainCase, LlamaIndexCase

_MODULES = (
    local_cases,
    chroma_cases,
    qdrant_cases,
    lancedb_cases,
    duckdb_cases,
    sqlite_vec_cases,
    postgres_cases,
    elasticsearch_cases,
    opensearch_cases,
    milvus_cases,
    pinecone_cases,
    azure_search_cases,
    weaviate_cases,
)

LANGCHAIN: list[LangChainCase] = [case for module in _MODULES for case in module.LANGCHAIN]
LLAMAINDEX: list[LlamaIndexCase] = [case for module in _MODULES for case in module.LLAMAINDEX]
