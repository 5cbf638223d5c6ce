"""Vector readers for LlamaIndex's two FAISS stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores.faiss import labels_by_id, vectors_by_label

from .reader import VectorReader


def _fetch(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    if index is None:
        raise VectorSourceError(
            "FaissVectorStore does not know the ids of its nodes, but the index over it does: "
            "pass index= instead of vector_store="
        )
    labels = labels_by_id(index, index.index_struct.nodes_dict, node_ids)
    return _read(store, node_ids, labels)


def _fetch_mapped(store: Any, node_ids: Sequence[str], index: VectorStoreIndex | None) -> Mapping[str, ArrayLike]:
    labels, nodes = store._node_id_to_faiss_id_map, store._faiss_id_to_node_id_map
    # After a deletion the store gives the next node a label that is in use, and loses the node that had it.
    found = [labels[name] if name in labels and nodes.get(labels[name]) == name else None for name in node_ids]
    return _read(store, node_ids, found)


def _read(store: Any, node_ids: Sequence[str], labels: Sequence[str | int | None]) -> Mapping[str, ArrayLike]:
    """The vectors under these labels; None is the label of a node that the store does not know."""
    known = {name: int(label) for name, label in zip(node_ids, labels, strict=True) if label is not None}
    return dict(zip(known, vectors_by_label(store.client, [*known.values()]), strict=True))


def takes_node_ids(store: Any) -> bool:
    """Whether a search of this store can be restricted to given nodes; a search of FAISS cannot, and needs not."""
    return not any(f"{cls.__module__}.{cls.__qualname__}" in READERS for cls in type(store).__mro__)


READERS: dict[type | str, VectorReader] = {
    "llama_index.vector_stores.faiss.base.FaissVectorStore": VectorReader(_fetch),
    "llama_index.vector_stores.faiss.map_store.FaissMapVectorStore": VectorReader(_fetch_mapped),
}
