"""Perspective-aware projection, PAP and PAP+ (PIR paper, section 3.1), and the other scoring modes of its Table 4."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import as_float64, check_bool, check_one_of, read_only
from .candidates import Candidates
from .errors import InvalidInputError, PerspectiveError

Vector = NDArray[np.float64]

PERSPECTIVE_MODES = ("base", "add", "concat", "cast", "cast+", "dual-sum", "tri-sum", "pap", "pap+")
DIRECTIONS = ("remove", "emphasize")
# A projected unit vector of at most this length consists of rounding errors; by dtype of the vectors.
_NEGLIGIBLE = {"float32": 1e-6, "float64": 1e-12}


@dataclass(frozen=True, eq=False)
class PAP:
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
        The perspective is zero, is not one vector of numbers, or holds NaN or inf. When it is applied: its length
        differs from the query's, or it is parallel to the query, so that removing it would leave nothing.
    InvalidParameterError
        ``direction`` is unknown, or ``corpus`` is not a bool.

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
        check_one_of(self.direction, "direction", DIRECTIONS)
        object.__setattr__(self, "corpus", check_bool(self.corpus, "corpus"))
        p = read_only(_as_vector(self.perspective, "perspective"))
        object.__setattr__(self, "perspective", p)
        object.__setattr__(self, "_unit", _as_unit(p, "perspective"))

    def project(self, query: ArrayLike) -> Vector:
        """The projected query, shape (d,), float64, on the scale of ``query``; search the store with it.

        Raises
        ------
        PerspectiveError
            The lengths differ, or the query is zero, or parallel to the perspective (with ``"remove"``).
        """
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

        Raises
        ------
        PerspectiveError
            See :meth:`project`.
        """
        query = self.project(candidates.query)
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


def perspective_scores(
    mode: str, query: ArrayLike, root: ArrayLike, perspective: ArrayLike, vectors: ArrayLike
) -> Vector:
    """Score each candidate by a mode of the PIR paper's Table 4; meant for comparisons, not for serving.

    With q the query, r the root (the query without its perspective), p the perspective and c a candidate:
    ``"base"`` cos(q, c); ``"add"`` cos(r + p, c); ``"concat"`` cos([r; p], [c; c]), which always ranks like
    ``"add"``; ``"cast"`` cos(q − p, c); ``"cast+"`` cos(q − p, c − p); ``"dual-sum"`` cos(r, c) + cos(p, c);
    ``"tri-sum"`` cos(q, c) + cos(r, c) + cos(p, c); ``"pap"`` and ``"pap+"`` see :class:`PAP`. Vectors are used as
    given, without scaling, because sums and differences depend on their lengths. A cosine with a zero vector is 0.

    Parameters
    ----------
    mode : str
        One of ``PERSPECTIVE_MODES``.
    query, root, perspective : array-like, shape (d,)
    vectors : array-like, shape (n, d)

    Returns
    -------
    ndarray, float64, shape (n,)

    Raises
    ------
    InvalidParameterError
        The mode is unknown.
    InvalidInputError, PerspectiveError
        Shapes differ, a value is NaN or inf, an input is ragged, masked or not numeric, or the projection leaves
        nothing of the query.

    Examples
    --------
    >>> from setselect import perspective_scores
    >>> perspective_scores("dual-sum", [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]).tolist()
    [1.0, 1.0]
    """
    check_one_of(mode, "mode", PERSPECTIVE_MODES)
    q, r, p = (_as_vector(v, name) for v, name in ((query, "query"), (root, "root"), (perspective, "perspective")))
    c = as_float64(vectors, "vectors")
    if c.ndim != 2 or {r.shape, p.shape, q.shape} != {c.shape[1:]}:
        raise InvalidInputError(
            f"query {q.shape}, root {r.shape}, perspective {p.shape} and the rows of vectors {c.shape} "
            "must have the same length"
        )
    if not np.isfinite(c).all():
        raise InvalidInputError(f"vectors: row {np.flatnonzero(~np.isfinite(c).all(axis=1))[0]} holds NaN or inf")
    if mode in ("pap", "pap+"):
        return PAP(p, corpus=mode == "pap+").apply(Candidates(q, c)).relevance.astype(np.float64)
    terms: dict[str, list[tuple[Vector, Vector]]] = {
        "base": [(q, c)],
        "add": [(r + p, c)],
        "concat": [(np.concatenate([r, p]), np.hstack([c, c]))],
        "cast": [(q - p, c)],
        "cast+": [(q - p, c - p)],
        "dual-sum": [(r, c), (p, c)],
        "tri-sum": [(q, c), (r, c), (p, c)],
    }
    scores: Vector = np.sum([_cosines(vector, rows) for vector, rows in terms[mode]], axis=0)
    return scores


def _cosines(vector: Vector, rows: Vector) -> Vector:
    lengths = np.sqrt(np.vecdot(rows, rows)) * np.sqrt(vector.dot(vector))
    cosines: Vector = np.divide(rows.dot(vector), lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return cosines


def _as_vector(values: ArrayLike, what: str) -> Vector:
    """A copy of ``values`` as a finite float64 vector."""
    try:
        vector = as_float64(values, what)
    except InvalidInputError as error:
        raise PerspectiveError(str(error)) from None
    if vector.ndim != 1 or not vector.size:
        raise PerspectiveError(f"{what} must be one vector, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise PerspectiveError(f"{what} holds NaN or inf")
    return vector


def _as_unit(vector: Vector, what: str) -> Vector:
    """``vector`` at unit length, also where its square would overflow or underflow."""
    largest = np.abs(vector).max()
    if largest == 0:
        raise PerspectiveError(f"the {what} is the zero vector: it has no direction")
    scaled = vector / largest
    unit: Vector = scaled / np.sqrt(scaled.dot(scaled))
    return unit
