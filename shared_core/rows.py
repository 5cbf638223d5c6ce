"""Candidates' vectors: kept as they came, with one over each length beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, read_only


class Rows:
    """The part of :class:`Candidates` that computes cosines between rows."""

    __slots__ = ("_inverse", "_rows", "_unit")

    # Rows as they came and one over their lengths: scaling every dot product is cheaper than scaling every row.
    _rows: FloatArray
    _inverse: FloatArray
    _unit: FloatArray | None

    @property
    def vectors(self) -> FloatArray:
        """The rows at unit length, shape (n, d), read-only; made when first asked for."""
        if self._unit is None:
            object.__setattr__(self, "_unit", read_only(self._rows * self._inverse[:, None]))
        assert self._unit is not None
        return self._unit

    def unit_rows(self, index: list[int] | NDArray[np.intp]) -> FloatArray:
        """``vectors[index]``, without the other rows being scaled for it.

        >>> from shared_core import Candidates
        >>> Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).unit_rows([1]).tolist()
        [[0.0, 1.0]]
        """
        at = np.asarray(index, np.intp)
        rows: FloatArray = self._rows[at]
        if self._rows is not self._unit:
            rows *= self._inverse[at][:, None]
        return rows

    def rows_and_inverse(self) -> tuple[FloatArray, FloatArray]:
        """The rows as they are kept, of any length, and one over each length; a single 1 where all have that length.

        >>> from shared_core import Candidates
        >>> Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 4.0]]).rows_and_inverse()[1].tolist()
        [0.5, 0.25]
        """
        return self._rows, self._inverse

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: what the vectors are computed in."""
        return self._rows.dtype

    def cosines_by_row(self, factor: float = 1.0) -> Callable[[int], FloatArray]:
        """:meth:`cosines_with` for a loop that calls it often.

        >>> from shared_core import Candidates
        >>> Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).cosines_by_row()(1).tolist()
        [0.0, 1.0]
        """
        rows, inverse = self._rows, self._inverse
        dot, row_of = rows.dot, rows.__getitem__
        # An array, since numpy would make one of a number at each call.
        times = np.array(factor, rows.dtype)
        if rows is not self._unit:
            scales = inverse * times

            def scaled(row: int) -> FloatArray:
                cosines: FloatArray = dot(row_of(row) * scales[row])
                cosines *= inverse
                return cosines

            return scaled
        if factor == 1:
            return lambda row: dot(row_of(row))

        def multiplied(row: int) -> FloatArray:
            cosines: FloatArray = dot(row_of(row))
            cosines *= times
            return cosines

        return multiplied

    def cosines_with(self, row: int) -> FloatArray:
        """Cosine of each candidate with the one at ``row``: one pass over the vectors.

        >>> from shared_core import Candidates
        >>> Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]]).cosines_with(1).tolist()
        [0.0, 1.0]
        """
        return self.cosines_by_row()(row)

    def raw_rows(self, index: slice | NDArray[np.intp], out: FloatArray | None = None) -> FloatArray:
        """The rows at ``index`` as they are kept, of any length: what :meth:`cosines_of` takes."""
        if isinstance(index, slice):
            return self._rows[index]
        return self._rows.take(index, axis=0, out=out, mode="clip")

    def cosines_of(
        self, rows: FloatArray, index: slice | NDArray[np.intp], others: list[int], factor: float = 1.0
    ) -> FloatArray:
        """(others, rows): cosines of the ``others`` with the :meth:`raw_rows` at ``index``, times ``factor``.

        >>> from shared_core import Candidates
        >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
        >>> c.cosines_of(c.raw_rows(slice(0, 2)), slice(0, 2), [1], 0.5).tolist()
        [[0.0, 0.5]]
        """
        if len(others) == 1:
            cosines: FloatArray = rows.dot(self._rows[others[0]])[None]
        else:
            cosines = self._rows[others].dot(rows.T)
        if self._rows is self._unit:
            cosines *= factor
        else:
            cosines *= self._inverse[index] * factor
            cosines *= self._inverse[others][:, None]
        return cosines

    def __len__(self) -> int:
        return len(self._rows)
