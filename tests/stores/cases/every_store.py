"""The cases of all stores."""

from tests.stores.cases import (
    azure_search,
    chroma,
    duckdb,
    elasticsearch,
    lancedb,
    local,
    milvus,
    opensearch,
    pinecone,
    postgres,
    qdrant,
    sqlite_vec,
    weaviate,
)
from tests.stores.harness import LangChainCase, LlamaIndexCase

_MODULES = (
    local,
    chroma,
    qdrant,
    lancedb,
    duckdb,
    sqlite_vec,
    postgres,
    elasticsearch,
    opensearch,
    milvus,
    pinecone,
    azure_search,
    weaviate,
)

LANGCHAIN: list[LangChainCase] = [case for module in _MODULES for case in module.LANGCHAIN]
LLAMAINDEX: list[LlamaIndexCase] = [case for module in _MODULES for case in module.LLAMAINDEX]
