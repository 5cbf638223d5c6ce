"""Stored vectors out of a FAISS index of any kind, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import import_library
from ..errors import InvalidInputError, VectorSourceError, check_query_length, quoted

# FAISS raises these where a file is damaged or an index lacks a function; its Python wrapper raises the last one.
_ERRORS = (RuntimeError, MemoryError, AssertionError)


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


class FaissFile:
    """A search over the index in a file. The lists of an inverted file (IVF) are mapped into memory."""

    def __init__(self, path: Path) -> None:
        self._faiss = faiss = import_library("faiss", "batch")
        self._name, self._ids = f"the index {path}", None
        try:
            self._whole = self._index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
            if hasattr(self._whole, "id_map"):
                # IDMap does not return vectors. The index inside it does, with row numbers that the map turns into ids.
                self._index = faiss.downcast_index(self._whole.index)
                self._ids = faiss.vector_to_array(self._whole.id_map)
            # An IndexRefine has the vectors itself, whatever index it refines.
            refined = isinstance(self._index, faiss.IndexRefine)
            self._ivf: Any = None if refined else faiss.downcast_index(faiss.try_extract_index_ivf(self._index))
            if not self._whole.ntotal:
                raise RuntimeError("it is empty")
            # A request for their vectors would end the process.
            if isinstance(self._ivf, (faiss.IndexIVFSpectralHash, faiss.IndexIVFFastScan)):
                raise RuntimeError(f"an {type(self._ivf).__name__} does not return the vectors that it stores")
        except _ERRORS as error:
            raise InvalidInputError(
                f"{self._name} cannot be used by FAISS {faiss.__version__} ({quoted(str(error))}): pass a flat, IVF or "
                "HNSW index that stores its vectors"
            ) from None
        self.dimension = int(self._whole.d)

    def __call__(self, vectors: NDArray[np.float32], k: int) -> tuple[list[list[int]], list[NDArray[np.float32]]]:
        """For each row of ``vectors`` (n, d), the ids of its nearest ``k`` and their vectors (m, d), m <= k."""
        try:
            _, rows, found = self._index.search_and_reconstruct(vectors, min(k, self._index.ntotal))
        except _ERRORS as error:
            raise VectorSourceError(f"{self._name} does not return its nearest vectors: {quoted(str(error))}") from None
        # If FAISS finds fewer than k, the row ends with -1.
        counts = (rows >= 0).sum(axis=1).tolist()
        ids = (rows if self._ids is None else self._ids[rows]).tolist()
        pairs = [(own[:m], its[:m]) for own, its, m in zip(ids, found, counts, strict=True)]
        return [own for own, _ in pairs], [its for _, its in pairs]

    def vectors_by_id(self, ids: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        """The vectors of those ids that the index has."""
        vectors = {}
        for name in ids:
            row = name if self._rows is None else self._rows.get(name, -1)
            # An IVF index may have labels of any size, and refuses those that it does not have.
            if 0 <= row < (self._index.ntotal if self._ivf is None else 1 << 63):
                with suppress(RuntimeError):
                    vectors[name] = self._index.reconstruct(row)
        return vectors

    @cached_property
    def _rows(self) -> dict[int, int] | None:
        """The row of each id; None if the index itself knows its ids."""
        if self._ivf is not None:
            self._ivf.set_direct_map_type(self._faiss.DirectMap.Hashtable)
        # If an id occurs twice, the later vector counts, as in FAISS's own IDMap2.
        return None if self._ids is None else {name: row for row, name in enumerate(self._ids.tolist())}
