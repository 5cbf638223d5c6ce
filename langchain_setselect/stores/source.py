"""Replaced by reader.py (VectorReader; READERS in place of SOURCES). Removed as soon as vectors.py and retriever.py follow."""

from .reader import AsyncVectorFetch, Hits, IdOf, VectorFetch, document_id
from .reader import AsyncVectorSearch as AsyncVectorSource
from .reader import VectorReader as Source
from .reader import VectorSearch as VectorSource

__all__ = ["AsyncVectorFetch", "AsyncVectorSource", "Hits", "IdOf", "Source", "VectorFetch", "VectorSource", "document_id"]
