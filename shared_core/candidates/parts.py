"""What a set has to cover, and which candidates refer to which others."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import as_float64, as_numeric, read_only
from .._values import as_plain, is_missing
from ..errors import InvalidInputError, quoted

# How one text leads to another.
REFERENCE_KINDS = ("name", "link", "citation", "neighbour")


class Parts(NamedTuple):
    """What a set has to cover: the words of the question, for example, or the values of a metadata key.

    Parameters
    ----------
    covered : ndarray, shape (n, m), in [0, 1]
        How well candidate i covers part j.
    weights : ndarray, shape (m,), at least 0
        What each part counts. Only their ratios matter.
    exact : ndarray, shape (n, r), booleans, optional
        Which candidates contain what the question names exactly: r identifiers and quoted strings. A set has a
        candidate for each of them before anything else counts.
    """

    covered: NDArray[np.float64]
    weights: NDArray[np.float64]
    exact: NDArray[np.bool_] | None = None

    def take(self, rows: NDArray[np.int64]) -> Parts:
        """The parts of the candidates at these rows."""
        exact = None if self.exact is None else read_only(self.exact[rows])
        return Parts(read_only(self.covered[rows]), self.weights, exact)

    def that_count(self) -> Parts:
        """The parts that a candidate covers: the others would take a share of the weight."""
        counts = self.covered.any(axis=0)
        return self if counts.all() else Parts(read_only(self.covered[:, counts]), read_only(self.weights[counts]))


class References(NamedTuple):
    """Which candidates refer to which others; :func:`find_references` makes them.

    Parameters
    ----------
    strength : ndarray, shape (n, n), in [0, 1]
        How clearly the text of candidate i refers to candidate j. The diagonal counts as 0.
    documents : ndarray, shape (n,) or (len(REFERENCE_KINDS), n), integers
        Candidates with the same number belong together: the passages of one document, for example. References lead to
        one of them at a time. Row j is about references of kind j; a single row is about all of them.
    kinds : ndarray, shape (n, n), integers, optional
        The kind of each reference, as an index of ``REFERENCE_KINDS``: by name, by a link, by a number or code, or to
        the next or previous text of a document. None: it is not known, and counts as a name.
    """

    strength: NDArray[np.float32]
    documents: NDArray[np.int64]
    kinds: NDArray[np.int8] | None = None

    def take(self, rows: NDArray[np.int64]) -> References:
        """The references among the candidates at these rows."""
        among = np.ix_(rows, rows)
        kinds = None if self.kinds is None else read_only(self.kinds[among])
        return References(read_only(self.strength[among]), read_only(self.documents[..., rows]), kinds)


def as_parts(given: Any, n: int, what: str, name: Callable[[int], str] = "row {}".format) -> Parts:
    """``given`` as read-only float64 :class:`Parts` of n candidates. Messages name a candidate by its row.

    It may be ``Parts``, an array (n, m), whose parts weigh the same, or n values: a candidate covers its value. A value
    may be a list of values. A missing value (None, NaN, NaT, NA, blank text) covers nothing.

    >>> as_parts(["news", "blog", ["blog", "news"], None], 4, "cover").covered.tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    exact = given.exact if isinstance(given, Parts) else None
    if exact is not None:
        exact = read_only(as_numeric(exact, f"{what}.exact", kinds="bfiu").copy())
        if exact.dtype != np.bool_ or exact.ndim != 2 or len(exact) != n:
            raise InvalidInputError(f"{what}.exact must be booleans of shape ({n}, r), got {exact.dtype} {exact.shape}")
    if isinstance(given, Parts):
        covered, weights = as_float64(given.covered, what), as_float64(given.weights, f"the weights of {what}")
    else:
        if getattr(given, "ndim", 1) == 2:
            covered = as_numeric(given, what, kinds="fiub").astype(np.float64)
        else:
            covered = _as_indicators(given, n, what, name)
        weights = np.ones(covered.shape[1])
    if covered.ndim != 2 or len(covered) != n:
        raise InvalidInputError(f"{what} must have shape ({n}, m), one row for each candidate, got {covered.shape}")
    if weights.shape != covered.shape[1:]:
        raise InvalidInputError(
            f"the weights of {what} must have shape ({covered.shape[1]},), one for each part, got {weights.shape}"
        )
    # A comparison with NaN is false.
    if covered.size and not (covered.min() >= 0 and covered.max() <= 1):
        row, part = np.argwhere(~((covered >= 0) & (covered <= 1)))[0].tolist()
        raise InvalidInputError(f"{what}: row {row} covers part {part} by {covered[row, part]}; it must be in [0, 1]")
    if weights.size and not (weights.min() >= 0 and weights.max() < math.inf):
        raise InvalidInputError(f"the weights of {what} must be finite and at least 0, got {quoted(weights)}")
    return Parts(read_only(covered), read_only(weights), exact)


def _as_indicators(values: Iterable[Any], n: int, what: str, name: Callable[[int], str]) -> NDArray[np.float64]:
    """(n, m): 1 where a candidate has one of the m different values."""
    if isinstance(values, str):
        raise InvalidInputError(f"{what} must be a collection, one for each candidate, got {quoted(values)}")
    # The elements of a tensor are objects of their own, which no two candidates have in common.
    rows = list(as_plain(values))
    if len(rows) != n:
        raise InvalidInputError(f"{what} must be {n}, one for each candidate, got {len(rows)}")
    # A column of lists that was read from a Parquet file has an array in each row.
    rows = [as_plain(value) for value in rows]
    lists = [
        [one for one in value if not is_missing(one)] if isinstance(value, (list, tuple)) else [] for value in rows
    ]
    # A row of a 0/1 matrix repeats a value. The labels of a candidate are different from each other.
    is_matrix = {type(one) for some in lists for one in some} <= {bool, int} and any(
        len({*some}) < len(some) and {*some} <= {0, 1} for some in lists
    )
    column: dict[Hashable, int] = {}
    own = []
    for row, value in enumerate(rows):
        if is_matrix or any(isinstance(one, float) for one in lists[row]):
            raise InvalidInputError(
                f"{what}: {name(row)} is {quoted(value)}; pass how well each candidate covers each part as an array "
                f"of shape ({n}, m), for example np.array({what})"
            )
        some = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        try:
            own.append([column.setdefault(one, len(column)) for one in some if not is_missing(one)])
        except TypeError:
            raise InvalidInputError(f"{what}: {name(row)} is {quoted(value)}, which cannot be hashed") from None
    covered = np.zeros((n, len(column)))
    for row, columns in enumerate(own):
        covered[row, columns] = 1.0
    return covered


def as_references(references: References | ArrayLike, n: int) -> References:
    """``references`` as read-only :class:`References` of n candidates; in an array each has a name of its own."""
    matrix, numbers, given_kinds = (
        references if isinstance(references, References) else (references, np.arange(n), None)
    )
    strength = as_numeric(matrix, "references", kinds="fiub")
    documents = as_numeric(numbers, "the documents of references", kinds="iu")
    kinds = None if given_kinds is None else as_numeric(given_kinds, "the kinds of references", kinds="iu")
    of_documents = documents.shape in ((n,), (len(REFERENCE_KINDS), n))
    if strength.shape != (n, n) or not of_documents or (kinds is not None and kinds.shape != (n, n)):
        raise InvalidInputError(
            f"references must have shape ({n}, {n}), a row and a column for each candidate, got {strength.shape}"
            + (f", with {n} documents, got {documents.shape}" if isinstance(references, References) else "")
        )
    # A comparison with NaN is false.
    if not (strength.min() >= 0 and strength.max() <= 1):
        i, j = np.argwhere(~((strength >= 0) & (strength <= 1)))[0].tolist()
        raise InvalidInputError(
            f"references: row {i} refers to candidate {j} by {strength[i, j]}; it must be in [0, 1]"
        )
    if kinds is not None and not (kinds.min() >= 0 and kinds.max() < len(REFERENCE_KINDS)):
        raise InvalidInputError(f"the kinds of references must be below {len(REFERENCE_KINDS)}, got {kinds.max()}")
    return References(
        # In this order of memory the compiled loop knows it.
        read_only(strength.astype(np.float32, order="C")),
        read_only(documents.astype(np.int64, order="C")),
        None if kinds is None else read_only(kinds.astype(np.int8, order="C")),
    )
