"""How relevant candidates are to the query, by cosines that may be learned (NDPP paper, 4.4.1: E_Q and E_P)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import check_number
from ...candidates import TIE_EPS, Candidates
from ...errors import InvalidParameterError, KernelError
from ._factors import Matrix, matrix, refuse_empty

# Far below any relevance that counts, and still finite under a temperature of next to nothing.
_LEAST_LOG = -1e100


class KernelRelevance:
    """The part of a kernel that says how relevant candidates are: r = exp(cos(q W_R, e W_R) / (2·temperature))."""

    W_R: ArrayLike | None
    temperature: float | None

    def log_relevance(self, candidates: Candidates) -> Matrix | None:
        """log r of each candidate, shape (n,), float64, at most 0; None where the kernel has no temperature.

        r_i = exp(cos(q W_R, e_i W_R) / (2·temperature)) over its maximum among the candidates, q and e_i the unit
        vectors. Without W_R it is their plain cosine. Whatever W_R maps to zero has cosine 0 with everything. (The
        paper, 4.4.1, has encoders E_Q and E_P trained for the similarity; here one linear map stands for both.)

        Raises
        ------
        KernelError
            The candidates' vectors are not as long as W_R has rows.

        Examples
        --------
        >>> from shared_core import Candidates, LowRankKernel
        >>> kernel = LowRankKernel([[1.0], [2.0]], temperature=0.5)
        >>> kernel.log_relevance(Candidates([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])).tolist()
        [-1.0, 0.0]
        """
        if self.temperature is None:
            return None
        if self.W_R is None:
            return log_exponential(cosines_with_query(candidates), self.temperature)
        return log_exponential(mapped_cosines(candidates, np.asarray(self.W_R)), self.temperature)

    def _relevance_arrays(self) -> dict[str, Matrix]:
        return {} if self.W_R is None else {"W_R": np.asarray(self.W_R)}

    def _temperature_shown(self) -> str:
        return "" if self.temperature is None else f", temperature={self.temperature:.4g}"


def checked_relevance(w_r: ArrayLike | None, temperature: float | None) -> tuple[Matrix | None, float | None]:
    """Both as a kernel keeps them: a read-only copy, float64, and a float.

    Raises
    ------
    KernelError
        ``w_r`` is no finite matrix, or has no temperature, or that is no finite number above 0.

    Examples
    --------
    >>> checked_relevance(None, 1)
    (None, 1.0)
    """
    if temperature is not None:
        try:
            temperature = check_number(temperature, "temperature", 0)
        except InvalidParameterError as error:
            raise KernelError(str(error)) from None
        if temperature == 0:
            raise KernelError("temperature must be above 0, got 0")
    if w_r is None:
        return None, temperature
    if temperature is None:
        raise KernelError("W_R needs a temperature: give both, or temperature alone for the cosine of the vectors")
    learned = matrix(w_r, "W_R")
    refuse_empty(learned, "W_R")
    learned.setflags(write=False)
    return learned, temperature


def cosines_with_query(candidates: Candidates) -> Matrix:
    """Cosine of each candidate with the query, shape (n,), float64.

    >>> cosines_with_query(Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 0.0]
    """
    # Row by row, unlike a matrix product: copies of a row get one cosine, to the last bit, which the logarithm
    # of a small one, or a low temperature, would blow up.
    cosines: Matrix = np.vecdot(candidates.vectors, candidates.query).astype(np.float64)
    return cosines


def mapped_cosines(candidates: Candidates, w_r: Matrix) -> Matrix:
    """cos(q W_R, e_i W_R), shape (n,), float64.

    Raises
    ------
    KernelError
        The candidates' vectors are not as long as W_R has rows.

    Examples
    --------
    >>> mapped_cosines(Candidates([1.0, 1.0], [[1.0, -3.0], [0.0, 1.0]]), np.array([[1.0], [0.0]])).tolist()
    [1.0, 0.0]
    """
    length = candidates.query.shape[0]
    if length != len(w_r):
        raise KernelError(
            f"the kernel's W_R takes vectors of length {len(w_r)}, the candidates have {length}; it was most likely "
            "learned on another embedding model"
        )
    # Cosines do not depend on the scale, and squares of large or small entries would leave the range of floats.
    scale = np.abs(w_r).max() or 1.0
    columns = np.ascontiguousarray(w_r.T / scale)
    # What unit vectors that are rounded in their own type leave of a zero.
    nothing = TIE_EPS * float(np.finfo(candidates.dtype).eps) * float(np.linalg.norm(columns))
    query = _unit(np.vecdot(columns, candidates.query.astype(np.float64)), nothing)
    # Row by row, as above, it would take five times as long as all the rest of a selection; so each row goes through
    # the matrix product once, and its copies get what it got.
    rows = candidates.vectors
    seen: dict[bytes, int] = {}
    places = [seen.setdefault(row.tobytes(), len(seen)) for row in rows]
    if len(seen) < len(rows):
        rows = rows[np.unique(places, return_index=True)[1]]
    mapped = rows.astype(np.float64, copy=False).dot(columns.T)
    cosines: Matrix = np.vecdot(_unit(mapped, nothing), query)
    return cosines[places]


def _unit(rows: Matrix, nothing: float) -> Matrix:
    lengths = np.sqrt(np.vecdot(rows, rows))[..., None]
    unit: Matrix = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > nothing)
    return unit


def log_exponential(cosines: Matrix, temperature: float) -> Matrix:
    """log of exp(cos / (2·temperature)) over its maximum, shape (n,).

    >>> log_exponential(np.array([0.5, 1.0]), 0.25).tolist()
    [-1.0, 0.0]
    """
    with np.errstate(over="ignore"):
        logs: Matrix = np.maximum((cosines - cosines.max()) / 2 / temperature, _LEAST_LOG)
    return logs
