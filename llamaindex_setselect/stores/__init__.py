"""How each LlamaIndex store hands back what it stores: a module a store, none of which imports a client."""

from . import (
    azure_search,
    chroma,
    duckdb,
    elasticsearch,
    faiss,
    lancedb,
    milvus,
    opensearch,
    pinecone,
    postgres,
    qdrant,
    simple,
    weaviate,
)
from .source import Source

# By the full name of the store's class, so that a store whose package is missing costs nothing.
SOURCES: dict[type | str, Source] = {
    name: source
    for module in (
        simple,
        faiss,
        chroma,
        qdrant,
        lancedb,
        duckdb,
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
