"""A FAISS index read where it lies on disk: the processes of a machine share its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInputError, VectorSourceError
from ._settings import Search


class FaissFile:
    """The index of a file, opened read-only by memory map.

    ``IO_FLAG_MMAP`` alone maps the inverted lists of an IVF index and loads every other kind into each process's own
    memory; ``IO_FLAG_MMAP_IFC`` (FAISS 1.11) maps flat, HNSW, IVF, scalar-quantised and id-mapped indexes alike.

    Parameters
    ----------
    path : Path
    threads : int
        Of FAISS while it searches; more than one hurts where processes fill the cores already.

    Attributes
    ----------
    dimension : int

    Raises
    ------
    InvalidInputError
        FAISS cannot read the file, or the index is empty.
    VectorSourceError
        An index of this kind keeps no vectors.

    Examples
    --------
    >>> import faiss, tempfile
    >>> index = faiss.IndexFlatIP(2)
    >>> index.add(np.eye(2, dtype=np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     faiss.write_index(index, f"{folder}/two.faiss")
    ...     ids, vectors = FaissFile(Path(folder, "two.faiss"))(np.array([[0, 1]], dtype=np.float32), 5)
    >>> ids[0].tolist(), vectors[0].tolist()
    ([1, 0], [[0.0, 1.0], [1.0, 0.0]])
    """

    def __init__(self, path: Path, threads: int = 1) -> None:
        try:
            import faiss
        except ImportError as error:
            raise ImportError('reading a FAISS index needs faiss: pip install "setselect[faiss]"') from error
        flags = getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        self._path = path
        self._index: Any
        try:
            self._index = faiss.read_index(str(path), flags)
        except RuntimeError as error:
            raise InvalidInputError(f"{path} is no index that FAISS {faiss.__version__} can read: {error}") from None
        if not self._index.ntotal:
            raise InvalidInputError(f"the index {path} is empty")
        self._threads = threads
        self._searched: Any = self._index
        self._names: NDArray[np.int64] | None = None
        if hasattr(self._index, "id_map"):
            # IDMap hands no vectors out; the index inside does, under places that the map turns into ids.
            self._searched = faiss.downcast_index(self._index.index)
            self._names = faiss.rev_swig_ptr(self._index.id_map.data(), self._index.id_map.size())
        self.dimension = int(self._index.d)
        self._check_vectors(faiss)

    def __call__(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float32]]]:
        """For each row of ``vectors`` (n, d) the ids (m,) of its top ``k`` and their vectors (m, d), m <= k."""
        with faiss_threads(self._threads):
            try:
                _, places, rows = self._searched.search_and_reconstruct(vectors, min(k, self._index.ntotal))
            except RuntimeError as error:
                raise VectorSourceError(f"FAISS could not search {self._path}: {error}") from None
        kept = places >= 0
        # Places that nothing was found for stand at the end.
        found = kept.sum(axis=1)
        ids = places if self._names is None else np.where(kept, self._names[places], -1)
        return [row[:m] for row, m in zip(ids, found, strict=True)], [r[:m] for r, m in zip(rows, found, strict=True)]

    def _check_vectors(self, faiss: Any) -> None:
        # Now, since within a search an IVF index that keeps no vectors takes the whole process down.
        kind = type(self._searched).__name__
        # What refines has the vectors itself, whatever it searches first.
        refined = isinstance(self._searched, faiss.IndexRefine)
        ivf = None if refined else faiss.downcast_index(faiss.try_extract_index_ivf(self._searched))
        try:
            if ivf is None:
                self._searched.reconstruct(0)
                return
            # Asked for a vector, it takes the process down too.
            if isinstance(ivf, faiss.IndexIVFFastScan):
                raise RuntimeError("fast-scan codes are not stored row by row")
            room = np.empty(ivf.d, np.float32)
            filled = next(i for i in range(ivf.nlist) if ivf.invlists.list_size(i))
            ivf.reconstruct_from_offset(filled, 0, faiss.swig_ptr(room))
        except RuntimeError as error:
            raise VectorSourceError(
                f"{kind} does not hand back the vectors it stores ({error}); "
                "take a kind that does: flat, IVFFlat, HNSWFlat, or a quantised one of these"
            ) from None


def open_search(index: Path | Search, threads: int) -> Search:
    """What searches: the index of a file, or the callable itself."""
    return FaissFile(index, threads) if isinstance(index, Path) else index


@contextmanager
def faiss_threads(n: int) -> Iterator[None]:
    """So many FAISS threads inside, and as many as before after it, whatever happens.

    >>> import faiss
    >>> before = faiss.omp_get_max_threads()
    >>> with faiss_threads(1):
    ...     faiss.omp_get_max_threads()
    1
    >>> faiss.omp_get_max_threads() == before
    True
    """
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
