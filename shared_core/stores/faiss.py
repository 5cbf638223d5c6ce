"""Stored vectors out of a FAISS index of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import VectorSourceError, check_query_length


def search_with_vectors(
    index: Any, query: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Search an index of any kind, and return labels, int64 of shape (m,), in place of rows.

    If the index was filled with unit vectors, scale the query to length 1. An index that keeps no vectors raises a
    :class:`VectorSourceError`, a query of another length an :class:`InvalidInputError`.
    """
    check_query_length(query.shape[0], index.d, "the FAISS index")
    k = min(k, index.ntotal)
    if k == 0:
        return np.zeros(0, np.int64), np.zeros((0, index.d), np.float32)
    if hasattr(index, "id_map"):
        # IDMap2 forwards reconstruct and search_and_reconstruct to the index inside; IDMap does not.
        places, vectors = search_with_vectors(_inside(index), query, k)
        return _ids_of(index)[places], vectors
    try:
        _, found, vectors = index.search_and_reconstruct(query[None], k)
    except RuntimeError as error:
        raise _no_vectors(index) from error
    # If FAISS finds fewer than k, it fills the end with the label -1.
    if found[0, -1] >= 0:
        return found[0], vectors[0]
    kept = found[0] >= 0
    return found[0][kept], vectors[0][kept]


def vectors_by_label(index: Any, labels: ArrayLike) -> NDArray[np.float32]:
    """The vectors under these labels, in their order: float32 of shape (n, d).

    An unknown label raises a :class:`VectorSourceError`. An IVF index needs a direct map (``index.make_direct_map()``).
    """
    keys = np.asarray(labels, dtype=np.int64)
    if not keys.size:
        return np.zeros((0, index.d), np.float32)
    if hasattr(index, "id_map"):
        return _through_id_map(index, keys)
    outside = keys[(keys < 0) | (keys >= index.ntotal)]
    # An IVF index may hold labels that its caller chose, and checks them itself.
    if outside.size and not hasattr(index, "invlists"):
        raise VectorSourceError(f"the FAISS index holds {index.ntotal} vectors and none under label {outside[0]}")
    try:
        vectors: NDArray[np.float32] = index.reconstruct_batch(keys)
    except RuntimeError as error:
        raise _no_vectors(index) from error
    return vectors


def _inside(index: Any) -> Any:
    import faiss

    return faiss.downcast_index(index.index)


def _ids_of(index: Any) -> NDArray[np.int64]:
    """The ids in the order of the vectors: a view of the index's memory, valid until the index changes."""
    import faiss

    ids: NDArray[np.int64] = faiss.rev_swig_ptr(index.id_map.data(), index.id_map.size())
    return ids


def _through_id_map(index: Any, keys: NDArray[np.int64]) -> NDArray[np.float32]:
    known = _ids_of(index)
    places = np.flatnonzero(np.isin(known, keys))
    # If an id occurs twice, the later vector counts, as in FAISS's own IDMap2.reconstruct.
    place_of = dict(zip(known[places].tolist(), places.tolist(), strict=True))
    missing = [key for key in keys.tolist() if key not in place_of]
    if missing:
        raise VectorSourceError(f"the FAISS index holds no vector under id {missing[0]}")
    return vectors_by_label(_inside(index), [place_of[key] for key in keys.tolist()])


def _no_vectors(index: Any) -> VectorSourceError:
    return VectorSourceError(
        f"{type(index).__name__} does not return the vectors that it stores. "
        "For an IVF index call index.make_direct_map(); otherwise register a vector reader of your own"
    )
