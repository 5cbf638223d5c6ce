"""Perspective-aware projection, PAP and PAP+ (PIR paper, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import ReadOnlyArrays, as_float64, check_fields, read_only
from .candidates import Candidates
from .errors import PerspectiveError

Vector = NDArray[np.float64]

# A projected unit vector of at most this length consists of rounding errors; by dtype of the vectors.
_NEGLIGIBLE = {"float32": 1e-6, "float64": 1e-12}


@dataclass(frozen=True, eq=False)
class PAP(ReadOnlyArrays):
    """Project the query (PAP), or the query and the candidates (PAP+), onto the complement of a perspective p.

    q_p = q − (q·p / ‖p‖²) p, and with ``corpus=True`` c_p = c − (c·p / ‖p‖²) p for each candidate c. The length and
    the sign of p make no difference. ``direction="emphasize"`` adds the component along p instead of subtracting it.

    Removing helps if the words of the perspective dominate the topic ("articles that *oppose* X"). It does harm if
    the perspective is itself what the query asks for ("news from *Canada*"): use no perspective there, or emphasize.

    Parameters
    ----------
    perspective : array-like, shape (d,)
        The perspective's embedding, of any length above zero, from the same model as the query.
    corpus : bool
        PAP+: project the candidates too.
    direction : {"remove", "emphasize"}
        Subtract the component along p, or add it a second time.

    Raises
    ------
    PerspectiveError
        The perspective is zero, is not one vector, or holds NaN or inf. When it is applied: its length differs from
        the query's, or it is parallel to the query, so that removing it would leave nothing.

    Examples
    --------
    >>> from setselect import PAP, Candidates
    >>> c = Candidates([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> PAP([0.0, 3.0]).apply(c).relevance.tolist()
    [1.0, 0.0]
    """

    perspective: ArrayLike
    corpus: bool = False
    direction: str = "remove"
    _unit: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self)
        p = read_only(_as_vector(self.perspective, "perspective"))
        object.__setattr__(self, "perspective", p)
        object.__setattr__(self, "_unit", read_only(_as_unit(p, "perspective")))

    def project(self, query: ArrayLike) -> Vector:
        """The projected query, shape (d,), float64, on the scale of ``query``; search the store with it."""
        q = _as_vector(query, "query")
        if q.shape != self._unit.shape:
            raise PerspectiveError(
                f"the perspective has length {self._unit.shape[0]}, the query {q.shape[0]}: "
                "embed both with the same model"
            )
        unit = _as_unit(q, "query")
        # The length is measured on the unit query, so a short query does not count as parallel. The tolerance is that
        # of float32, because embedding models compute in float32 at best.
        if np.linalg.norm(unit + self._sign * unit.dot(self._unit) * self._unit) <= _NEGLIGIBLE["float32"]:
            raise PerspectiveError(
                "the perspective is parallel to the query: removing it leaves nothing to search for. "
                "Use direction='emphasize' or no perspective for this query"
            )
        projected: Vector = q + self._sign * q.dot(self._unit) * self._unit
        return projected

    def apply(self, candidates: Candidates) -> Candidates:
        """New candidates with the projected query, and with ``corpus=True`` projected vectors.

        Of several questions each is projected.
        """
        query = np.array(list(map(self.project, candidates.questions)))
        if not self.corpus:
            return candidates.with_query(query)
        dtype = candidates.dtype
        p = self._unit.astype(dtype)
        rows = candidates.vectors
        projected = rows + np.multiply.outer(self._sign * rows.dot(p), p)
        if self.direction == "remove":
            projected[np.vecdot(projected, projected) <= _NEGLIGIBLE[dtype.name] ** 2] = 0
        return candidates.with_vectors(query, projected)

    @property
    def _sign(self) -> int:
        return -1 if self.direction == "remove" else 1


def _as_vector(values: ArrayLike, what: str) -> Vector:
    """A copy of ``values`` as a finite float64 vector."""
    vector = as_float64(values, what)
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise PerspectiveError(f"{what} must be one vector without NaN and inf, got shape {vector.shape}")
    return vector


def _as_unit(vector: Vector, what: str) -> Vector:
    """``vector`` at unit length, also where its square would overflow or underflow."""
    largest = np.abs(vector).max()
    if largest == 0:
        raise PerspectiveError(f"the {what} is the zero vector: it has no direction")
    scaled = vector / largest
    unit: Vector = scaled / np.sqrt(scaled.dot(scaled))
    return unit
