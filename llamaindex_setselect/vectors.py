"""Where the vectors of nodes come from: the store, the nodes themselves, or, last, the embedding model."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.simple import SimpleVectorStore
from numpy.typing import ArrayLike

from shared_core import EmbeddingFallbackWarning, InvalidParameterError, SetSelectWarning, VectorSourceError
from shared_core.stores.faiss import vectors_by_label

VectorSource = Callable[[Any, Sequence[str], VectorStoreIndex | None], Mapping[str, ArrayLike]]

# A name stands for a class whose package may not be installed and must not be imported for nothing.
_SOURCES: dict[type[Any] | str, VectorSource] = {}
_warned: set[type[Any] | None] = set()


def register_vector_source(store_class: type[Any] | str, function: VectorSource) -> None:
    """Tell how a vector store hands back the vectors that it keeps, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class, or its full name (``"package.module.Class"``), to be matched without importing it. The
        source serves its subclasses too, unless they have their own. A later one replaces an earlier.
    function : callable
        ``function(store, node_ids, index) -> {node_id: vector}``; ``index`` is the ``VectorStoreIndex``
        or None. Ids that the store does not know are left out. Called from a thread in async code.

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
    _SOURCES[store_class] = function


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

    @property
    def stored(self) -> bool:
        """Whether the store hands back vectors, so that a wider search embeds nothing."""
        return _source_of(self.store) is not None

    @property
    def words(self) -> str:
        """Where vectors will come from, for people."""
        if _source_of(self.store) is not None:
            return f"store: {type(self.store).__name__}"
        how = (
            "node embeddings only: there is no embed_model"
            if self.model is None
            else f"node embeddings or embedding with {type(self.model).__name__}"
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

    def fetch(self, nodes: Sequence[BaseNode], *, embed_unknown: bool = False) -> dict[str, ArrayLike]:
        """Vectors by node id. What the store does not know is embedded, or left out with a warning.

        A node of another retriever (keywords, say) was never in the store; one that the store itself has just
        found was deleted since.
        """
        found, missing = self._at_hand(nodes, embed_unknown)
        if missing:
            vectors = self._for_embedding(missing).get_text_embedding_batch(_texts(missing))
            found.update(zip(_ids(missing), vectors, strict=True))
        return found

    async def afetch(self, nodes: Sequence[BaseNode], *, embed_unknown: bool = False) -> dict[str, ArrayLike]:
        """As :meth:`fetch`; the store is asked in a thread, since its source may go over the network."""
        found, missing = await asyncio.to_thread(self._at_hand, nodes, embed_unknown)
        if missing:
            vectors = await self._for_embedding(missing).aget_text_embedding_batch(_texts(missing))
            found.update(zip(_ids(missing), vectors, strict=True))
        return found

    def _at_hand(self, nodes: Sequence[BaseNode], embed_unknown: bool) -> tuple[dict[str, ArrayLike], list[BaseNode]]:
        source = _source_of(self.store)
        found = {} if source is None else dict(source(self.store, _ids(nodes), self.index))
        found |= {
            node.node_id: node.embedding for node in nodes if node.node_id not in found and node.embedding is not None
        }
        missing = [node for node in nodes if node.node_id not in found]
        if source is None or not missing or (embed_unknown and self.model is not None):
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
        if kind not in _warned:
            _warned.add(kind)
            why, remedy = (
                ("there is no store to take vectors from", "Pass index= or vector_store=")
                if kind is None
                else (f"{kind.__name__} does not know these nodes", "Pass the store that holds them")
                if _source_of(self.store) is not None
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


def _source_of(store: Any) -> VectorSource | None:
    for cls in type(store).__mro__:
        source = _SOURCES.get(cls) or _SOURCES.get(f"{cls.__module__}.{cls.__qualname__}")
        if source is not None:
            return source
    return None


def _ids(nodes: Sequence[BaseNode]) -> list[str]:
    return [node.node_id for node in nodes]


def _texts(nodes: Sequence[BaseNode]) -> list[str]:
    return [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]


def _from_simple(
    store: SimpleVectorStore, node_ids: Sequence[str], index: VectorStoreIndex | None
) -> Mapping[str, ArrayLike]:
    stored = store.data.embedding_dict
    return {node_id: stored[node_id] for node_id in node_ids if node_id in stored}


# FaissVectorStore keeps labels only; the index's struct maps label to node. Turning that round takes longer
# than the search once there are many nodes, so it is kept for as long as the index lives, with their number.
_labels: WeakKeyDictionary[VectorStoreIndex, tuple[int, dict[str, str]]] = WeakKeyDictionary()


def _from_faiss(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    if index is None:
        raise VectorSourceError(
            "FaissVectorStore does not know the ids of its nodes, but the index over it does: "
            "pass index= instead of vector_store="
        )
    nodes = index.index_struct.nodes_dict
    number, labels = _labels.get(index, (-1, {}))
    if number != len(nodes) or any(nodes.get(labels[i]) != i for i in node_ids if i in labels):
        nodes = nodes.copy()
        labels = {node_id: label for label, node_id in nodes.items()}
        _labels[index] = len(nodes), labels
    known = {node_id: int(labels[node_id]) for node_id in node_ids if node_id in labels}
    return dict(zip(known, vectors_by_label(store.client, list(known.values())), strict=True))


def _from_faiss_map(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    labels, nodes = store._node_id_to_faiss_id_map, store._faiss_id_to_node_id_map
    # After a delete the store gives the next node a label that is in use; the node that had it is lost to it.
    known = {i: labels[i] for i in node_ids if i in labels and nodes.get(labels[i]) == i}
    return dict(zip(known, vectors_by_label(store.client, list(known.values())), strict=True))


register_vector_source(SimpleVectorStore, _from_simple)
register_vector_source("llama_index.vector_stores.faiss.base.FaissVectorStore", _from_faiss)
register_vector_source("llama_index.vector_stores.faiss.map_store.FaissMapVectorStore", _from_faiss_map)
