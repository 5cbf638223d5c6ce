"""Vectors of nodes that come out of a store in one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from numpy.typing import NDArray


class RowsById(Mapping[str, NDArray[Any]]):
    """Vectors by node id, and in one array: taken apart they would have to be put together again for the choice.

    Parameters
    ----------
    ids : sequence of n str
        No repeats.
    array : ndarray, shape (n, d)
        A row for each id, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> rows = RowsById(["a", "b"], np.eye(2))
    >>> rows["b"].tolist(), "c" in rows
    ([0.0, 1.0], False)
    """

    def __init__(self, ids: Sequence[str], array: NDArray[Any]) -> None:
        self.ids = ids
        self.array = array

    def __getitem__(self, node_id: str) -> NDArray[Any]:
        row: NDArray[Any] = self.array[self._places[node_id]]
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}
