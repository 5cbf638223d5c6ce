"""Vectors for texts where no store hands them back: out of a cache of embeddings, or by embedding, with a warning."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.embeddings import Embeddings


def words(embeddings: Embeddings) -> str:
    """Where the vectors of texts come from, for people."""
    name = type(embeddings).__name__
    return f"the cache of {name}, else embedding with it" if _caches(embeddings) else f"embedding the texts with {name}"


def embed(embeddings: Embeddings, texts: list[str], warn: Callable[[int], None]) -> list[list[float]]:
    """A vector for each text; ``warn`` is told how many are embedded, unless a cache embeds each only once."""
    if texts and not _caches(embeddings):
        warn(len(texts))
    return embeddings.embed_documents(texts) if texts else []


async def aembed(embeddings: Embeddings, texts: list[str], warn: Callable[[int], None]) -> list[list[float]]:
    """As :func:`embed`."""
    if texts and not _caches(embeddings):
        warn(len(texts))
    return await embeddings.aembed_documents(texts) if texts else []


def _caches(embeddings: Embeddings) -> bool:
    # LangChain's CacheBackedEmbeddings, by what it calls its store: it lives in a package that need not be installed.
    return hasattr(embeddings, "document_embedding_store")
