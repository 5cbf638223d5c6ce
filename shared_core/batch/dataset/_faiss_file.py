"""A FAISS index that is mapped into memory from its file, so that the processes of a machine share its pages."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._libraries import import_library
from ..._validation import quoted
from ...errors import InvalidInputError, VectorSourceError

# FAISS raises these where a file is damaged; its Python wrapper raises the last one.
_FAISS_ERRORS = (RuntimeError, MemoryError, AssertionError)


class FaissFile:
    """A search over the index in a file, opened read-only by memory map."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        faiss = import_library("faiss", "batch")
        self._faiss, self._threads, self._name = faiss, threads, f"the index {path}"
        # The index keeps no copy of its vectors, so the map must live as long as the index.
        self._content = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
        # IO_FLAG_MMAP_IFC also maps the file, but ends the process if the file is truncated within a number.
        try:
            self._index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(self._content), self._content.size))
        except _FAISS_ERRORS as error:
            raise InvalidInputError(
                f"{self._name} cannot be read by FAISS {faiss.__version__}; it is damaged or of another kind: "
                f"{_reason(error)}"
            ) from None
        if not self._index.ntotal:
            raise InvalidInputError(f"{self._name} is empty")
        self._searched: Any = self._index
        self._ids: NDArray[np.int64] | None = None
        if hasattr(self._index, "id_map"):
            # IDMap does not return vectors. The index inside it does, with row numbers that the map turns into ids.
            self._searched = faiss.downcast_index(self._index.index)
            self._ids = faiss.rev_swig_ptr(self._index.id_map.data(), self._index.id_map.size())
        self.dimension = int(self._index.d)
        # An IndexRefine has the vectors itself, whatever index it refines.
        refined = isinstance(self._searched, faiss.IndexRefine)
        self._ivf: Any = None if refined else faiss.downcast_index(faiss.try_extract_index_ivf(self._searched))
        self._check_vectors()

    def __call__(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """For each row of ``vectors`` (n, d), the ids (m,) of its nearest ``k`` and their vectors (m, d), m <= k."""
        with self._work("search"):
            _, rows, found = self._searched.search_and_reconstruct(vectors, min(k, self._index.ntotal))
        # If FAISS finds fewer than k, the row ends with -1.
        exists = rows >= 0
        counts = exists.sum(axis=1)
        if self._ids is not None:
            rows = np.where(exists, self._ids[rows], -1)
        return [i[:m] for i, m in zip(rows, counts, strict=True)], [v[:m] for v, m in zip(found, counts, strict=True)]

    def vectors_by_id(self, ids: Iterable[int]) -> dict[int, NDArray[np.float32]]:
        """The vectors of those ids that the index has."""
        keys = np.array([i for i in ids if abs(i) < 1 << 63], np.int64)
        if self._labels is None:
            rows = keys = keys[(keys >= 0) & (keys < self._index.ntotal)]
        else:
            labels, order = self._labels
            # If an id occurs twice, the later vector counts, as in FAISS's own IDMap2.
            places = np.searchsorted(labels, keys, side="right") - 1
            exists = labels[places] == keys
            keys = keys[exists]
            rows = keys if self._ids is None else order[places[exists]]
        if not len(rows):
            return {}
        with self._work("read vectors of"):
            vectors = self._searched.reconstruct_batch(rows)
        return dict(zip(keys.tolist(), vectors, strict=True))

    @functools.cached_property
    def _labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """The ids in ascending order and the row of each; None if the ids are the row numbers."""
        faiss, ivf = self._faiss, self._ivf
        if ivf is not None:
            with self._work("read"):
                try:
                    ivf.make_direct_map()
                except RuntimeError:
                    # The ids of this index are not 0 to n - 1, so FAISS needs a map of another kind.
                    ivf.set_direct_map_type(faiss.DirectMap.Hashtable)
        if self._ids is not None:
            labels = self._ids
        elif ivf is not None:
            lists = ((ivf.invlists.get_ids(i), ivf.invlists.list_size(i)) for i in range(ivf.nlist))
            labels = np.concatenate([faiss.rev_swig_ptr(ids, size) for ids, size in lists if size])
        else:
            return None
        order = np.argsort(labels, kind="stable")
        return labels[order], order

    @contextmanager
    def _work(self, what: str) -> Iterator[None]:
        """Give FAISS its threads, and name the index in its errors."""
        before = self._faiss.omp_get_max_threads()
        self._faiss.omp_set_num_threads(self._threads)
        try:
            yield
        except _FAISS_ERRORS as error:
            raise VectorSourceError(f"FAISS could not {what} {self._name}: {_reason(error)}") from None
        finally:
            self._faiss.omp_set_num_threads(before)

    def _check_vectors(self) -> None:
        """Refuse an index without vectors, because a search of such an IVF index ends the process."""
        faiss, ivf = self._faiss, self._ivf
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
        except _FAISS_ERRORS as error:
            raise VectorSourceError(
                f"{self._name} is an {type(self._searched).__name__}, which does not return the vectors that it "
                f"stores ({_reason(error)}); use a flat, IVFFlat or HNSWFlat index, or a quantised one of these"
            ) from None


def _reason(error: BaseException) -> str:
    """A message of FAISS without the C++ function and the line at its beginning."""
    return quoted(re.sub(r"^Error in .* at \S+:\d+: (Error: )?", "", str(error)) or type(error).__name__)
