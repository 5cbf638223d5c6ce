"""The candidates of many queries, checked together, for the compiled loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, as_float64, read_only
from ..errors import InvalidInputError
from .unit_vectors import as_unit_rows


@dataclass(frozen=True, eq=False)
class CandidateBlock:
    """The candidates of b queries, checked together, for the compiled loops."""

    queries: FloatArray  # (b, d), unit length
    vectors: FloatArray  # (b, n, d), or (1, n, d) if all queries share the candidates; rows of unit length
    relevance: FloatArray  # (b, n)
    relevance_given: bool
    quality: NDArray[np.float64] | None  # (b, n), or (1, n)

    @classmethod
    def validate(
        cls,
        queries: ArrayLike,
        vectors: FloatArray,
        quality: ArrayLike | None = None,
        relevance: ArrayLike | None = None,
    ) -> CandidateBlock:
        """The same checks as :class:`Candidates`, on whole arrays; ``vectors`` come from :func:`as_unit_rows`.

        No user reads the message of an error: :class:`Candidates` of each query say which one is wrong, and why.
        """
        # In float64, because float32 has few digits for a query of length 1e-44, and none for one of 1e40.
        units = as_unit_rows(as_float64(queries, "queries")).astype(vectors.dtype, copy=False)
        fits = units.shape[1:] == vectors.shape[2:] and len(vectors) in (1, len(units))
        if not fits or not units.any(axis=1).all():
            raise InvalidInputError("a query is zero, or does not fit the vectors")
        columns = None if quality is None else np.atleast_2d(as_float64(quality, "quality"))
        if relevance is None:
            known: FloatArray = np.ascontiguousarray(np.matmul(vectors, units[:, :, None])[:, :, 0])
        else:
            known = as_float64(relevance, "relevance")
        for column, shape in ((columns, vectors.shape[:2]), (known, (len(units), vectors.shape[1]))):
            if column is not None and (column.shape != shape or not np.isfinite(column).all()):
                raise InvalidInputError(f"quality and relevance must have finite values, of shape {shape}")
        # Read-only as in Candidates: for writeable rows numba would compile its loops again.
        return cls(units, read_only(vectors[:]), known, relevance is not None, columns)
