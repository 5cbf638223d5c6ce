"""Every store's cases, one line a store."""

from tests.stores import (
    chroma_cases,
    duckdb_cases,
    elasticsearch_cases,
    lancedb_cases,
    local_cases,
    opensearch_cases,
    postgres_cases,
    qdrant_cases,
    sqlite_vec_cases,
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
)

LANGCHAIN: list[LangChainCase] = [case for module in _MODULES for case in module.LANGCHAIN]
LLAMAINDEX: list[LlamaIndexCase] = [case for module in _MODULES for case in module.LLAMAINDEX]
