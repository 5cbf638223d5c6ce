"""A FAISS index that is mapped into memory from its file, so that the processes of a machine share its pages."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import import_library, quoted
from ..errors import InvalidInputError, VectorSourceError

# FAISS raises these where a file is damaged; its Python wrapper raises the last one.
_FAISS_ERRORS = (RuntimeError, MemoryError, AssertionError)


class FaissFile:
    """A search over the index in a file, opened read-only by memory map."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        self._faiss = faiss = import_library("faiss", "batch")
        self._name, self._threads = f"the index {path}", threads
        # The index keeps no copy of its vectors, so the map must live as long as the index. IO_FLAG_MMAP_IFC also maps
        # the file, but ends the process if the file is truncated within a number.
        self._content = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
        try:
            index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(self._content), self._content.size))
        except _FAISS_ERRORS as error:
            raise InvalidInputError(
                f"{self._name} cannot be read by FAISS {faiss.__version__}; it is damaged or of another kind: "
                f"{quoted(str(error))}"
            ) from None
        if not index.ntotal:
            raise InvalidInputError(f"{self._name} is empty")
        self._whole, self._index, self._ids = index, index, None
        if hasattr(index, "id_map"):
            # IDMap does not return vectors. The index inside it does, with row numbers that the map turns into ids.
            self._index = faiss.downcast_index(index.index)
            self._ids = faiss.rev_swig_ptr(index.id_map.data(), index.id_map.size())
        self.dimension = int(index.d)
        # An IndexRefine has the vectors itself, whatever index it refines.
        refined = isinstance(self._index, faiss.IndexRefine)
        self._ivf: Any = None if refined else faiss.downcast_index(faiss.try_extract_index_ivf(self._index))
        self._check_vectors()

    def __call__(self, vectors: NDArray[np.float32], k: int) -> tuple[list[list[int]], list[NDArray[np.float32]]]:
        """For each row of ``vectors`` (n, d), the ids of its nearest ``k`` and their vectors (m, d), m <= k."""
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(self._threads)
        try:
            _, rows, found = self._index.search_and_reconstruct(vectors, min(k, self._index.ntotal))
        except _FAISS_ERRORS as error:
            raise VectorSourceError(f"FAISS could not search {self._name}: {quoted(str(error))}") from None
        finally:
            self._faiss.omp_set_num_threads(before)
        # If FAISS finds fewer than k, the row ends with -1.
        counts = (rows >= 0).sum(axis=1).tolist()
        ids = (rows if self._ids is None else self._ids[rows]).tolist()
        return [own[:m] for own, m in zip(ids, counts, strict=True)], [
            own[:m] for own, m in zip(found, counts, strict=True)
        ]

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

    def _check_vectors(self) -> None:
        """Refuse an index without vectors, because a search of such an IVF index ends the process."""
        faiss, ivf = self._faiss, self._ivf
        try:
            if ivf is None:
                self._index.reconstruct(0)
                return
            # A request for a vector of a fast-scan index would end the process too.
            if isinstance(ivf, faiss.IndexIVFFastScan):
                raise RuntimeError("fast-scan codes are not stored row by row")
            filled = next(i for i in range(ivf.nlist) if ivf.invlists.list_size(i))
            ivf.reconstruct_from_offset(filled, 0, faiss.swig_ptr(np.empty(ivf.d, np.float32)))
        except _FAISS_ERRORS as error:
            raise VectorSourceError(
                f"{self._name} is an {type(self._index).__name__}, which does not return the vectors that it stores "
                f"({quoted(str(error))}); use a flat, IVFFlat or HNSWFlat index, or a quantised one of these"
            ) from None
