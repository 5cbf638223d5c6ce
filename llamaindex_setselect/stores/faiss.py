"""LlamaIndex's two FAISS stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.faiss import vectors_by_label

from .rows import RowsById
from .source import Source

# FaissVectorStore keeps labels only; the index's struct maps label to node. Turning that round takes longer
# than the search once there are many nodes, so it is kept for as long as the index lives, with their number.
_labels: WeakKeyDictionary[VectorStoreIndex, tuple[int, dict[str, str]]] = WeakKeyDictionary()


def fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, through the labels that the index keeps."""
    if index is None:
        raise VectorSourceError(
            "FaissVectorStore does not know the ids of its nodes, but the index over it does: "
            "pass index= instead of vector_store="
        )
    nodes = index.index_struct.nodes_dict
    number, labels = _labels.get(index, (-1, {}))
    known = [node_id for node_id in node_ids if node_id in labels]
    found = [labels[node_id] for node_id in known]
    if number != len(nodes) or [nodes.get(label) for label in found] != known:
        nodes = nodes.copy()
        labels = {node_id: label for label, node_id in nodes.items()}
        _labels[index] = len(nodes), labels
        known = [node_id for node_id in node_ids if node_id in labels]
        found = [labels[node_id] for node_id in known]
    return RowsById(known, vectors_by_label(store.client, [*map(int, found)]))


def fetch_mapped(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    """Vectors by node id, through the store's own map of ids."""
    labels, nodes = store._node_id_to_faiss_id_map, store._faiss_id_to_node_id_map
    # After a delete the store gives the next node a label that is in use; the node that had it is lost to it.
    known = [i for i in node_ids if i in labels and nodes.get(labels[i]) == i]
    return RowsById(known, vectors_by_label(store.client, [labels[i] for i in known]))


def takes_node_ids(store: Any) -> bool:
    """Whether a search of this store may be told which nodes to look among.

    FAISS's looks at all: what it found under a label that the index does not know would be an error anyway.
    """
    return not any(f"{cls.__module__}.{cls.__qualname__}" in SOURCES for cls in type(store).__mro__)


SOURCES = {
    "llama_index.vector_stores.faiss.base.FaissVectorStore": Source(fetch),
    "llama_index.vector_stores.faiss.map_store.FaissMapVectorStore": Source(fetch_mapped),
}
