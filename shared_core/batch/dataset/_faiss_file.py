"""A FAISS index that is mapped into memory from its file, so that the processes of a machine share its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInputError, VectorSourceError


class FaissFile:
    """A search over the index in a file, opened read-only by memory map."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        try:
            import faiss
        except ImportError as error:
            raise ImportError('reading a FAISS index needs faiss: pip install "setselect[faiss]"') from error
        # IO_FLAG_MMAP maps only the lists of an IVF index and loads every other kind into each process's memory.
        # IO_FLAG_MMAP_IFC (FAISS 1.11) maps flat, HNSW, IVF, scalar-quantised and id-mapped indexes.
        flags = getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        self._faiss, self._path = faiss, path
        self._index: Any
        try:
            self._index = faiss.read_index(str(path), flags)
        except RuntimeError as error:
            raise InvalidInputError(
                f"{path} is not an index that FAISS {faiss.__version__} can read: {error}"
            ) from None
        if not self._index.ntotal:
            raise InvalidInputError(f"the index {path} is empty")
        self._threads = threads
        self._searched: Any = self._index
        self._ids: NDArray[np.int64] | None = None
        if hasattr(self._index, "id_map"):
            # IDMap does not return vectors. The index inside it does, with row numbers that the map turns into ids.
            self._searched = faiss.downcast_index(self._index.index)
            self._ids = faiss.rev_swig_ptr(self._index.id_map.data(), self._index.id_map.size())
        self.dimension = int(self._index.d)
        self._check_vectors()

    def __call__(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """For each row of ``vectors`` (n, d), the ids (m,) of its nearest ``k`` and their vectors (m, d), m <= k."""
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(self._threads)
        try:
            _, rows, found = self._searched.search_and_reconstruct(vectors, min(k, self._index.ntotal))
        except RuntimeError as error:
            raise VectorSourceError(f"FAISS could not search {self._path}: {error}") from None
        finally:
            self._faiss.omp_set_num_threads(before)
        # If FAISS finds fewer than k, the row ends with -1.
        exists = rows >= 0
        counts = exists.sum(axis=1)
        ids = rows if self._ids is None else np.where(exists, self._ids[rows], -1)
        return [i[:m] for i, m in zip(ids, counts, strict=True)], [v[:m] for v, m in zip(found, counts, strict=True)]

    def _check_vectors(self) -> None:
        faiss = self._faiss
        # This check comes before the first search, because a search of an IVF index without vectors ends the process.
        # An IndexRefine has the vectors itself, whatever index it refines.
        refined = isinstance(self._searched, faiss.IndexRefine)
        ivf = None if refined else faiss.downcast_index(faiss.try_extract_index_ivf(self._searched))
        try:
            if ivf is None:
                self._searched.reconstruct(0)
                return
            # A request for a vector of a fast-scan index would end the process too.
            if isinstance(ivf, faiss.IndexIVFFastScan):
                raise RuntimeError("fast-scan codes are not stored row by row")
            vector = np.empty(ivf.d, np.float32)
            filled = next(i for i in range(ivf.nlist) if ivf.invlists.list_size(i))
            ivf.reconstruct_from_offset(filled, 0, faiss.swig_ptr(vector))
        except RuntimeError as error:
            raise VectorSourceError(
                f"{type(self._searched).__name__} does not return the vectors that it stores ({error}); use a flat, "
                "IVFFlat or HNSWFlat index, or a quantised one of these"
            ) from None
