"""Perspective-aware projection, PAP and PAP+ (PIR paper, 3.1), and the other scoring modes of its Table 4."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._validation import check_one_of
from .arrays import as_numeric
from .candidates import Candidates
from .errors import InvalidInputError, InvalidParameterError, PerspectiveError

Vector = NDArray[np.float64]

PERSPECTIVE_MODES = ("base", "add", "concat", "cast", "cast+", "dual-sum", "tri-sum", "pap", "pap+")
DIRECTIONS = ("remove", "emphasize")
# What is left of a vector after its projection is rounding once it is this short, by dtype of the vectors.
_NEGLIGIBLE = {"float32": 1e-6, "float64": 1e-12}


@dataclass(frozen=True, eq=False)
class PAP:
    """Project the query on what is orthogonal to a perspective (PAP), or the candidates too (PAP+).

    q_p = q − (q·p / ‖p‖²) p, and with ``corpus=True`` c_p = c − (c·p / ‖p‖²) p for each candidate. The length
    and the sign of p make no difference. ``direction="emphasize"`` adds the component instead of taking it away.

    Removing helps where the perspective words drown the topic ("articles that *oppose* X"), and is fatal where
    the perspective is itself what is sought ("news from *Canada*"): there leave it alone, or emphasize it.

    Parameters
    ----------
    perspective : array-like, shape (d,)
        The perspective's embedding, of any length but zero, from the same model as the query.
    corpus : bool
        PAP+: project the candidates as well.
    direction : {"remove", "emphasize"}

    Raises
    ------
    PerspectiveError
        The perspective is zero, not one vector of numbers, or holds NaN or inf; later: it is of another length than the
        query, or parallel to it, so that nothing of the query would be left.
    InvalidParameterError
        An unknown ``direction``, or a ``corpus`` that is not a bool.

    Examples
    --------
    >>> from shared_core import PAP, Candidates
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
        if not isinstance(self.corpus, (bool, np.bool_)):
            raise InvalidParameterError(f"corpus must be True or False, got {self.corpus!r}")
        p = _vector(self.perspective, "perspective")
        p.setflags(write=False)
        object.__setattr__(self, "perspective", p)
        object.__setattr__(self, "_unit", _unit(p, "perspective"))

    def project(self, query: ArrayLike) -> Vector:
        """The projected query, shape (d,), float64, on the scale of ``query``: what to search the store with.

        Raises
        ------
        PerspectiveError
            The lengths differ, or the query is zero or parallel to the perspective (``"remove"``).
        """
        return self._project_query(_vector(query, "query"))

    def apply(self, candidates: Candidates) -> Candidates:
        """The candidates as seen under the perspective: query projected, with ``corpus`` the rows too.

        Raises
        ------
        PerspectiveError
            As :meth:`project`.
        """
        dtype = candidates.dtype
        query = self._project_query(candidates.query.astype(np.float64))
        if not self.corpus:
            return candidates.with_query(query)
        unit = self._unit.astype(dtype)
        rows = candidates.vectors
        projected = rows + np.multiply.outer(self._sign * rows.dot(unit), unit)
        if self.direction == "remove":
            projected[np.vecdot(projected, projected) <= _NEGLIGIBLE[dtype.name] ** 2] = 0
        return candidates.with_vectors(query, projected)

    @property
    def _sign(self) -> int:
        return -1 if self.direction == "remove" else 1

    def _project_query(self, query: Vector) -> Vector:
        if query.shape != self._unit.shape:
            raise PerspectiveError(
                f"the perspective has length {self._unit.shape[0]}, the query {query.shape[0]}: "
                "embed both with one model"
            )
        unit = _unit(query, "query")
        projected: Vector = query + self._sign * query.dot(self._unit) * self._unit
        # Measured on the unit query, so that a short query is not taken for a parallel one.
        left = unit + self._sign * unit.dot(self._unit) * self._unit
        # Embeddings are float32 at best, in whatever type they come.
        if np.sqrt(left.dot(left)) <= _NEGLIGIBLE["float32"]:
            raise PerspectiveError(
                "the perspective is parallel to the query: removing it leaves nothing to search for. "
                "Use direction='emphasize' or no perspective for this query"
            )
        return projected


def perspective_scores(
    mode: str, query: ArrayLike, root: ArrayLike, perspective: ArrayLike, vectors: ArrayLike
) -> Vector:
    """Score each candidate by a mode of the PIR paper's Table 4; for comparisons, not for serving.

    With q the query, r the query without its perspective, p the perspective and c a candidate: ``"base"``
    cos(q, c); ``"add"`` cos(r + p, c); ``"concat"`` cos([r; p], [c; c]), which always ranks as ``"add"`` does;
    ``"cast"`` cos(q − p, c); ``"cast+"`` cos(q − p, c − p); ``"dual-sum"`` cos(r, c) + cos(p, c); ``"tri-sum"``
    that plus cos(q, c); ``"pap"`` and ``"pap+"`` as :class:`PAP`. Vectors enter as given, not scaled first, since
    sums and differences depend on their lengths. A cosine with a zero vector is 0.

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
        An unknown mode.
    InvalidInputError, PerspectiveError
        Shapes differ, a value is NaN or inf, or something is ragged, masked or not numeric; the projection leaves
        nothing of the query.

    Examples
    --------
    >>> from shared_core import perspective_scores
    >>> perspective_scores("dual-sum", [1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]).tolist()
    [1.0, 1.0]
    """
    check_one_of(mode, "mode", PERSPECTIVE_MODES)
    q, r, p = (_vector(v, name) for v, name in ((query, "query"), (root, "root"), (perspective, "perspective")))
    c = as_numeric(vectors, "vectors").astype(np.float64)
    if c.ndim != 2 or {r.shape, p.shape, q.shape} != {c.shape[1:]}:
        raise InvalidInputError(
            f"query {q.shape}, root {r.shape}, perspective {p.shape} and the rows of vectors {c.shape} "
            "must be of one length"
        )
    if not np.isfinite(c).all():
        raise InvalidInputError(f"vectors: row {np.flatnonzero(~np.isfinite(c).all(axis=1))[0]} holds NaN or inf")
    if mode == "base":
        return _cosines(q, c)
    if mode == "add":
        return _cosines(r + p, c)
    if mode == "concat":
        return _cosines(np.concatenate([r, p]), np.hstack([c, c]))
    if mode == "cast":
        return _cosines(q - p, c)
    if mode == "cast+":
        return _cosines(q - p, c - p)
    if mode == "dual-sum":
        return _cosines(r, c) + _cosines(p, c)
    if mode == "tri-sum":
        return _cosines(r, c) + _cosines(p, c) + _cosines(q, c)
    return PAP(p, corpus=mode == "pap+").apply(Candidates(q, c)).relevance.astype(np.float64)


def _cosines(a: Vector, rows: Vector) -> Vector:
    lengths = np.sqrt(np.vecdot(rows, rows)) * np.sqrt(a.dot(a))
    cosines: Vector = np.divide(rows.dot(a), lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return cosines


def _vector(values: ArrayLike, what: str) -> Vector:
    try:
        vector = as_numeric(values, what).astype(np.float64)
    except InvalidInputError as error:
        raise PerspectiveError(str(error)) from None
    if vector.ndim != 1 or not vector.size:
        raise PerspectiveError(f"{what} must be one vector, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise PerspectiveError(f"{what} holds NaN or inf")
    return vector


def _unit(vector: Vector, what: str) -> Vector:
    largest = np.abs(vector).max()
    if largest == 0:
        raise PerspectiveError(f"the {what} is the zero vector: it has no direction")
    scaled = vector / largest
    unit: Vector = scaled / np.sqrt(scaled.dot(scaled))
    return unit
