"""Vector readers for LlamaIndex's two FAISS stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.faiss import vectors_by_label

from .reader import VectorReader

# FaissVectorStore knows only labels; the index's struct maps a label to a node. With many nodes, inverting that map
# takes longer than the search, so the inverted map is kept while the index lives, with the number of its nodes.
_LABELS: WeakKeyDictionary[VectorStoreIndex, tuple[int, dict[str, str]]] = WeakKeyDictionary()


def _fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    if index is None:
        raise VectorSourceError(
            "FaissVectorStore does not know the ids of its nodes, but the index over it does: "
            "pass index= instead of vector_store="
        )
    nodes = index.index_struct.nodes_dict
    number, labels = _LABELS.get(index, (-1, {}))
    known = [node_id for node_id in node_ids if node_id in labels]
    if number != len(nodes) or [nodes.get(labels[node_id]) for node_id in known] != known:
        # A copy: another thread may add nodes.
        nodes = nodes.copy()
        labels = {node_id: label for label, node_id in nodes.items()}
        _LABELS[index] = len(nodes), labels
        known = [node_id for node_id in node_ids if node_id in labels]
    rows = vectors_by_label(store.client, [int(labels[node_id]) for node_id in known])
    return dict(zip(known, rows, strict=True))


def _fetch_mapped(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    labels, nodes = store._node_id_to_faiss_id_map, store._faiss_id_to_node_id_map
    # After a deletion the store gives the next node a label that is in use, and loses the node that had it.
    known = [node_id for node_id in node_ids if node_id in labels and nodes.get(labels[node_id]) == node_id]
    return dict(zip(known, vectors_by_label(store.client, [labels[node_id] for node_id in known]), strict=True))


def takes_node_ids(store: Any) -> bool:
    """Whether a search of this store can be restricted to given nodes; a search of FAISS cannot.

    FAISS needs no restriction: LlamaIndex's own search raises an error for a label that the index does not know.
    """
    return not any(f"{cls.__module__}.{cls.__qualname__}" in READERS for cls in type(store).__mro__)


READERS: dict[type | str, VectorReader] = {
    "llama_index.vector_stores.faiss.base.FaissVectorStore": VectorReader(_fetch),
    "llama_index.vector_stores.faiss.map_store.FaissMapVectorStore": VectorReader(_fetch_mapped),
}
