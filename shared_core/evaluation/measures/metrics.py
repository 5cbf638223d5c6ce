"""The papers' measures: sums and spreads of vectors (VRSD, RAGSys) and perspectives (PIR)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import check_integer, quoted
from ...candidates import as_unit_vector
from ...errors import InvalidInputError
from ._inputs import as_unit_matrix, as_values

# If a sum of k unit rows is shorter than k times this, only rounding is left and the sum has no direction.
_CANCELLED = 4 * float(np.finfo(np.float64).eps)


def sum_cosine(query: ArrayLike, vectors: ArrayLike) -> float:
    """Cosine of the query with the sum of the unit vectors that were picked for it, in [-1, 1] (VRSD 4.2).

    Parameters
    ----------
    query : array-like of shape (d,)
        Not zero.
    vectors : array-like of shape (k, d)
        Normalised here; a zero row adds nothing.

    Returns
    -------
    float
        0.0 if the vectors cancel each other.

    Raises
    ------
    InvalidInputError
        An array is empty, has the wrong shape or holds NaN or inf, or the query is zero.

    Examples
    --------
    >>> round(sum_cosine([1, 1], [[2, 0], [0, 3]]), 9)
    1.0
    >>> sum_cosine([1, 1], [[1, 0], [-1, 0]])
    0.0
    """
    rows = as_unit_matrix(vectors)
    unit = as_unit_vector(query, rows.shape, rows.dtype)
    total = rows.sum(axis=0)
    length = float(np.linalg.norm(total))
    if length <= len(rows) * _CANCELLED:
        return 0.0
    return float(np.clip(total @ unit / length, -1, 1))


def mean_pairwise_cosine(vectors: ArrayLike) -> float:
    """Mean cosine over all pairs of the vectors, in [-1, 1]: low if they differ (RAGSys 4.4, Figure 1).

    Parameters
    ----------
    vectors : array-like of shape (k, d)
        Two or more; a zero row has cosine 0 with every other.

    Raises
    ------
    InvalidInputError
        There are fewer than two vectors, or the array has the wrong shape or holds NaN or inf.

    Examples
    --------
    >>> mean_pairwise_cosine([[1, 0], [0, 1], [2, 0]]) == 1 / 3
    True
    """
    rows = as_unit_matrix(vectors)
    k = len(rows)
    if k < 2:
        raise InvalidInputError("vectors holds one vector: a cosine between pairs needs at least two")
    above = (rows @ rows.T)[np.triu_indices(k, 1)]
    return float(np.clip(above.mean(), -1, 1))


def p_recall_at_k(success: ArrayLike, root_of: Sequence[Hashable]) -> float:
    """p-Recall@k: mean over root queries of the mean success of their perspectives, in [0, 1] (PIR 2.3, equation 1).

    Every root query has the same weight, however many perspectives it has. Plain recall gives every query the same
    weight.

    Parameters
    ----------
    success : array-like of shape (Q,)
        Whether a right document was among the first k results of each query: True or False, or a value in [0, 1].
    root_of : sequence of Q hashables
        The root query that each query belongs to.

    Raises
    ------
    InvalidInputError
        ``success`` is empty, holds NaN or a value outside [0, 1], or the lengths differ.

    Examples
    --------
    >>> p_recall_at_k([True, False, True], ["r1", "r1", "r2"])
    0.75
    """
    values = as_values(success, "success")
    if ((values < 0) | (values > 1)).any():
        raise InvalidInputError("success must lie in [0, 1]: 1 where a right document was found, else 0")
    if isinstance(root_of, str) or len(root_of) != len(values):
        raise InvalidInputError(
            f"root_of must name one root query for each of {len(values)} queries, got {quoted(root_of)}"
        )
    of_root: dict[Hashable, list[float]] = {}
    for root, value in zip(root_of, values.tolist(), strict=True):
        of_root.setdefault(root, []).append(value)
    return float(np.mean([np.mean(successes) for successes in of_root.values()]))


def perspective_shares(
    ranked: Sequence[Sequence[Hashable]], gold: Sequence[Mapping[Any, Collection[Hashable]]], k: int
) -> dict[Hashable, float]:
    """Share of each perspective among the gold documents that root queries find, summing to 1 (PIR 2.5, Table 3).

    A root query names no perspective, so an unbiased retriever finds all of them equally often. The shares count
    documents: the gold documents of each perspective among the first k of a root query are counted, the counts of all
    root queries are added, and each sum is divided by the total. (The paper's percentages are such fractions: 27.9,
    44.3, 27.9 are 17, 27 and 17 of 61.) A root query that finds nothing has no weight. The shares show a bias only if
    each perspective has equally many gold documents, as in the paper's corpora.

    Parameters
    ----------
    ranked : sequence of R sequences of hashables
        The ids that each root query returned, best first.
    gold : sequence of R mappings
        For each root query, the gold documents of each of its perspectives. A document counts for each perspective that
        names it, so leave out a perspective such as "general" that covers the others.
    k : int >= 1
        Probably 1 in the paper, whose section 2.1 gives the mean of its column "Support" for the top document.

    Returns
    -------
    dict
        Every perspective that occurs in ``gold``, in that order; 0.0 if it was never found.

    Raises
    ------
    InvalidInputError
        An input is empty, the lengths differ, a root query or perspective has no gold documents, or none was found.
    InvalidParameterError
        ``k`` is less than 1.

    Examples
    --------
    >>> perspective_shares(
    ...     [["a", "b", "c"], ["x", "d", "y"]],
    ...     [{"left": ["a"], "right": ["c"]}, {"left": ["z"], "right": ["d"]}],
    ...     k=2,
    ... )
    {'left': 0.5, 'right': 0.5}
    """
    if not len(ranked) or len(ranked) != len(gold):
        raise InvalidInputError(
            f"ranked holds {len(ranked)} root queries, gold {len(gold)}: both need the same, 1 or more"
        )
    found: Counter[Hashable] = Counter()
    for row, (ids, of_perspective) in enumerate(zip(ranked, gold, strict=True)):
        if not of_perspective:
            raise InvalidInputError(f"gold: root query {row} has no perspectives")
        first = set(_first(ids, k))
        for perspective, documents in of_perspective.items():
            what = f"gold: root query {row}, perspective {quoted(perspective)}"
            found[perspective] += len(first & _as_id_set(documents, what))
    total = found.total()
    if not total:
        raise InvalidInputError(f"no root query has a gold document among its first {k}: there is nothing to share")
    return {perspective: count / total for perspective, count in found.items()}


def _first(ranked: Sequence[Hashable], k: int) -> Sequence[Hashable]:
    if isinstance(ranked, str):
        raise InvalidInputError(f"ranked must be a list of ids, not one string: [{quoted(ranked)}]")
    return ranked[: check_integer(k, "k", 1)]


def _as_id_set(documents: Collection[Hashable], what: str) -> set[Hashable]:
    if isinstance(documents, str) or not len(documents):
        raise InvalidInputError(f"{what} must be a non-empty collection of ids, got {quoted(documents)}")
    return set(documents)
