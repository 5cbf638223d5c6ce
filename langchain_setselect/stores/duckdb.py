"""The vector reader for the DuckDB store of langchain-community, whose documents have no ids to look vectors up by."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any

from langchain_core.documents import Document

from shared_core.retrieval.lookup import refuse_unknown
from shared_core.stores import duckdb

from .reader import Hits, read_with_client


def _request(store: Any, **unknown: Any) -> dict[str, Any]:
    refuse_unknown("DuckDB", unknown, ())
    return {"relation": store._table, "vector_column": store._vector_key}


def _hits(store: Any, columns: Any, vectors: Any, more: dict[str, Any]) -> Hits:
    ids, texts = columns[store._id_key], columns[store._text_key]
    documents = [
        Document(
            # Only documents without a vector get an id, for the warning that they are left out.
            id=ids[i] if vectors[i] is None else None,
            page_content=texts[i],
            metadata={**json.loads(metadata), "_similarity_score": similarity} if metadata else {},
        )
        for i, (metadata, similarity) in enumerate(zip(columns["metadata"], columns["similarity_score"], strict=True))
    ]
    return documents, vectors


READER = read_with_client(duckdb, attrgetter("_connection"), _request, _hits)
