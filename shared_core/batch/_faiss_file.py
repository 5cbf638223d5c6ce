"""The FAISS index in a file: a search in it, and its vectors by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import import_library
from ..errors import InvalidInputError, VectorSourceError, quoted

# FAISS raises these where a file is damaged or an index lacks a function; its Python wrapper raises the last one.
_ERRORS = (RuntimeError, MemoryError, AssertionError)


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
