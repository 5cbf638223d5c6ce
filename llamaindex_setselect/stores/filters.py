"""How a search is narrowed to nodes with some metadata, by LlamaIndex's filters."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from shared_core.retrieval.follow import Where

# The stores that pass the values of filters on as they are. Others write a query as a text, and not all escape them.
_PASSING_ON = ("SimpleVectorStore", "ChromaVectorStore", "QdrantVectorStore")
_QUOTES = frozenset("'\"`\\\n")


def narrow(store: Any, own: MetadataFilters | None, where: Where) -> MetadataFilters | None:
    """The filters that let in what ``own`` does, as far as it has these values under the keys.

    None if a value is not safe in a query that the store writes.
    """
    filters: list[MetadataFilter | MetadataFilters] = []
    if own is not None:
        # Not every store knows filters in filters.
        is_flat = own.condition in (None, FilterCondition.AND) or len(own.filters) == 1
        filters += own.filters if is_flat and own.condition != FilterCondition.NOT else [own]
    passes_on = any(cls.__name__ in _PASSING_ON for cls in type(store).__mro__)
    for key, values in where.items():
        if isinstance(values, range):
            filters.append(MetadataFilter(key=key, operator=FilterOperator.GTE, value=values.start))
            filters.append(MetadataFilter(key=key, operator=FilterOperator.LT, value=values.stop))
        elif passes_on or _QUOTES.isdisjoint("".join(map(str, values))):
            filters.append(MetadataFilter(key=key, operator=FilterOperator.IN, value=[*values]))
        else:
            return None
    return MetadataFilters(filters=filters)
