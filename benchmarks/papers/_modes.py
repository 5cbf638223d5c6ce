"""The scoring modes of the PIR paper's Table 4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shared_core import PAP, Candidates

Vector = NDArray[np.float64]
PERSPECTIVE_MODES = ("base", "add", "concat", "cast", "cast+", "dual-sum", "tri-sum", "pap", "pap+")


def perspective_scores(mode: str, query: Vector, root: Vector, perspective: Vector, vectors: Vector) -> Vector:
    """Score each row of ``vectors``, shape (n, d), by a mode; (n,). The others have shape (d,).

    With q the query, r the root (the query without its perspective), p the perspective and c a candidate:
    ``"base"`` cos(q, c); ``"add"`` cos(r + p, c); ``"concat"`` cos([r; p], [c; c]), which always ranks like
    ``"add"``; ``"cast"`` cos(q − p, c); ``"cast+"`` cos(q − p, c − p); ``"dual-sum"`` cos(r, c) + cos(p, c);
    ``"tri-sum"`` cos(q, c) + cos(r, c) + cos(p, c); ``"pap"`` and ``"pap+"`` see ``PAP``. Vectors are used as given,
    without scaling, because sums and differences depend on their lengths. A cosine with a zero vector is 0.
    """
    q, r, p, c = query, root, perspective, vectors
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
