"""Where the vectors of nodes come from: the store, the nodes themselves, or, last, the embedding model."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.settings import Settings
from numpy.typing import ArrayLike

from shared_core import EmbeddingFallbackWarning, InvalidParameterError, SetSelectWarning, VectorSourceError
from shared_core.retrieval.request import WIDEST

from .stores import SOURCES
from .stores.rows import RowsById
from .stores.source import AsyncVectorSource, Source, VectorSource

# A name stands for a class whose package may not be installed and must not be imported for nothing.
_SOURCES: dict[type[Any] | str, Source] = dict(SOURCES)
_warned: set[type[Any] | None] = set()


def register_vector_source(
    store_class: type[Any] | str,
    function: VectorSource,
    *,
    afunction: AsyncVectorSource | None = None,
    on_node: bool = False,
) -> None:
    """Tell how a vector store hands back the vectors that it keeps, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class, or its full name (``"package.module.Class"``), to be matched without importing it. The
        source serves its subclasses too, unless they have their own. A later one replaces an earlier.
    function : callable
        ``function(store, node_ids, index) -> {node_id: vector}``; ``index`` is the ``VectorStoreIndex``
        or None. Ids that the store does not know are left out.
    afunction : async callable, optional
        The same, awaited; without it ``function`` is called from a thread in async code.
    on_node : bool
        The store's own search leaves its vectors on the nodes, as ``node.embedding``: only nodes without one are
        looked up.

    Raises
    ------
    InvalidParameterError
        ``store_class`` is not a class, or ``function`` cannot be called.

    Examples
    --------
    >>> from llama_index.core.vector_stores import SimpleVectorStore
    >>> class MyStore(SimpleVectorStore):
    ...     pass
    >>> def stored(store, node_ids, index):
    ...     return {i: store.get(i) for i in node_ids if i in store.data.embedding_dict}
    >>> register_vector_source(MyStore, stored)
    """
    if not isinstance(store_class, (type, str)):
        raise InvalidParameterError(f"store_class must be a class or its full name, got {store_class!r}")
    if not callable(function):
        raise InvalidParameterError(f"the second is function(store, node_ids, index), got {function!r}")
    if afunction is not None and not callable(afunction):
        raise InvalidParameterError(f"afunction must be an async function(store, node_ids, index), got {afunction!r}")
    _SOURCES[store_class] = Source(function, afunction, on_node)


def resolve_embed_model(embed_model: BaseEmbedding | None, index: VectorStoreIndex | None) -> BaseEmbedding | None:
    """The model given, the index's, or the one in ``Settings`` if it has been set."""
    if embed_model is not None:
        return embed_model
    if index is not None:
        return index._embed_model
    # Settings.embed_model would build LlamaIndex's default, which asks for an OpenAI key.
    return Settings._embed_model


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """Vectors for nodes: out of a store (with the index over it), or made by an embedding model."""

    store: Any
    index: VectorStoreIndex | None
    model: BaseEmbedding | None

    @cached_property
    def source(self) -> Source | None:
        """What is registered for the store; None where it does not hand back vectors, or there is none."""
        return _source_of(self.store)

    @property
    def widest(self) -> int:
        """The most candidates that the store is asked for unasked."""
        return WIDEST if self.source is None else self.source.widest

    @property
    def words(self) -> str:
        """Where vectors will come from, for people."""
        if self.source is not None:
            return f"store: {type(self.store).__name__}"
        how = (
            "node embeddings only: there is no embed_model"
            if self.model is None
            else f"node embeddings or embedding with {type(self.model).__name__}"
            if self.model.embeddings_cache is None
            else f"node embeddings, the embeddings_cache of {type(self.model).__name__}, or embedding with it"
        )
        if self.store is None:
            return how
        return f"{how}; no vector source is registered for {type(self.store).__name__}"

    def need_model(self, what: str) -> BaseEmbedding:
        """The model, or the error that asks for it."""
        if self.model is None:
            raise VectorSourceError(
                f"there is no embedding model for {what}: pass embed_model= with the model that the store "
                "was filled with, or index=, or set Settings.embed_model"
            )
        return self.model

    def fetch(
        self, nodes: Sequence[BaseNode], ids: list[str], *, embed_unknown: bool = False
    ) -> Mapping[str, ArrayLike]:
        """Vectors by node id. What the store does not know is embedded, or left out with a warning.

        A node of another retriever (keywords, say) was never in the store; one that the store itself has just
        found was deleted since.
        """
        source = self.source
        asked = _to_ask(source, nodes, ids)
        stored = source.fetch(self.store, asked, self.index) if source and asked else {}
        if _all_there(stored, ids):
            return stored
        found, missing = self._at_hand(nodes, ids, stored, embed_unknown)
        if missing:
            vectors = self._for_embedding(missing).get_text_embedding_batch(_texts(missing))
            found.update(zip(_ids(missing), vectors, strict=True))
        return found

    async def afetch(
        self, nodes: Sequence[BaseNode], ids: list[str], *, embed_unknown: bool = False
    ) -> Mapping[str, ArrayLike]:
        """As :meth:`fetch`; a store whose source cannot be awaited is asked in a thread."""
        source = self.source
        asked = _to_ask(source, nodes, ids)
        stored: Mapping[str, ArrayLike] = {}
        if source and asked and source.afetch is not None:
            stored = await source.afetch(self.store, asked, self.index)
        elif source and asked:
            stored = await asyncio.to_thread(source.fetch, self.store, asked, self.index)
        if _all_there(stored, ids):
            return stored
        found, missing = self._at_hand(nodes, ids, stored, embed_unknown)
        if missing:
            vectors = await self._for_embedding(missing).aget_text_embedding_batch(_texts(missing))
            found.update(zip(_ids(missing), vectors, strict=True))
        return found

    def _at_hand(
        self, nodes: Sequence[BaseNode], ids: list[str], stored: Mapping[str, ArrayLike], embed_unknown: bool
    ) -> tuple[dict[str, ArrayLike], list[BaseNode]]:
        """What is stored and the vectors that lie on the nodes, and the nodes that have none."""
        found, missing = dict(stored), []
        for name, node in zip(ids, nodes, strict=True):
            if name not in found:
                if node.embedding is None:
                    missing.append(node)
                else:
                    found[name] = node.embedding
        if self.source is None or not missing or (embed_unknown and self.model is not None):
            return found, missing
        warnings.warn(
            f"{type(self.store).__name__} knows no vector for {len(missing)} of {len(nodes)} nodes: they "
            "were deleted since the search, or come from another index. They are left out: "
            f"{', '.join(map(repr, _ids(missing)))}",
            SetSelectWarning,
            stacklevel=2,
        )
        return found, []

    def _for_embedding(self, nodes: Sequence[BaseNode]) -> BaseEmbedding:
        model = self.need_model(f"the texts of {len(nodes)} nodes that have no stored vector")
        kind = None if self.store is None else type(self.store)
        # A model with a cache embeds each text once, which is no cost worth a warning.
        if kind not in _warned and model.embeddings_cache is None:
            _warned.add(kind)
            why, remedy = (
                ("there is no store to take vectors from", "Pass index= or vector_store=")
                if kind is None
                else (f"{kind.__name__} does not know these nodes", "Pass the store that holds them")
                if self.source is not None
                else (
                    f"no vector source is registered for {kind.__name__}",
                    f"Call register_vector_source({kind.__name__}, ...)",
                )
            )
            warnings.warn(
                f"{why}: each query embeds the texts of its nodes again ({len(nodes)} this time) with "
                f"{type(model).__name__}. {remedy} to avoid that cost",
                EmbeddingFallbackWarning,
                stacklevel=2,
            )
        return model


def _to_ask(source: Source | None, nodes: Sequence[BaseNode], ids: list[str]) -> list[str]:
    if source is None:
        return []
    if not source.on_node:
        # A copy: a function of the user's may sort it, or take out what it has found.
        return [*ids]
    return [name for name, node in zip(ids, nodes, strict=True) if node.embedding is None]


def _all_there(stored: Mapping[str, ArrayLike], ids: list[str]) -> bool:
    return isinstance(stored, RowsById) and stored.ids == ids


def _source_of(store: Any) -> Source | None:
    for cls in type(store).__mro__:
        source = _SOURCES.get(cls) or _SOURCES.get(f"{cls.__module__}.{cls.__qualname__}")
        if source is not None:
            return source
    return None


def _ids(nodes: Sequence[BaseNode]) -> list[str]:
    return [node.node_id for node in nodes]


def _texts(nodes: Sequence[BaseNode]) -> list[str]:
    return [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]
