"""How each LlamaIndex store hands back what it stores: a module a store, none of which imports a client."""

from . import chroma, duckdb, elasticsearch, faiss, lancedb, opensearch, postgres, qdrant, simple
from .source import Source

# By the full name of the store's class, so that a store whose package is missing costs nothing.
SOURCES: dict[type | str, Source] = {
    name: source
    for module in (simple, faiss, chroma, qdrant, lancedb, duckdb, postgres, elasticsearch, opensearch)
    for name, source in module.SOURCES.items()
}
