"""How each LangChain store searches and hands back what it stores: a module a store, none of which imports a client."""

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
from .source import Source

# By the full name of the store's class, so that a store whose package is missing costs nothing.
SOURCES: dict[type | str, Source] = {
    name: source
    for module in (
        in_memory,
        faiss,
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
    for name, source in module.SOURCES.items()
}
