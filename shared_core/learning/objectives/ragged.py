"""Lists of rows of a pool, of different lengths, checked once and handed out batch by batch with padding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._validation import as_numeric
from ...errors import InvalidInputError


class Ragged:
    """N lists of numbers, one after the other.

    Parameters
    ----------
    lists : iterable of N array-likes, each of shape (m,)
    what : str
        What one of them is, for messages: ``"subset"``.
    rows : int, optional
        They are rows of a pool of so many items: integers in range, at least one, none twice. Otherwise they are
        positive finite numbers.
    device : torch.device, optional

    Raises
    ------
    InvalidInputError
        A list is not as above (the message says which), or there is none.

    Examples
    --------
    >>> subsets = Ragged([[3, 1], [2]], "subset", rows=4)
    >>> index, mask = subsets.padded(torch.tensor([1, 0]))
    >>> index.tolist(), mask.tolist()
    ([[2, 0], [3, 1]], [[True, False], [True, True]])
    """

    def __init__(
        self,
        lists: Iterable[ArrayLike],
        what: str,
        *,
        rows: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        arrays = [_rows(entry, f"{what} {n}", rows) for n, entry in enumerate(lists)]
        if not arrays:
            raise InvalidInputError(f"there must be at least one {what}, got none")
        lengths = np.array([len(array) for array in arrays])
        self.widest = int(lengths.max())
        self.values = torch.from_numpy(np.concatenate(arrays)).to(device)
        self.lengths = torch.from_numpy(lengths).to(device)
        self.starts = self.lengths.cumsum(0) - self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, n: int) -> list[int]:
        """The n-th list."""
        start = int(self.starts[n])
        found: list[int] = self.values[start : start + int(self.lengths[n])].tolist()
        return found

    def padded(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """The lists of ``batch`` (int64, shape (m,)) as one array (m, widest of them), 0 where the mask is False."""
        lengths, starts = self.lengths[batch], self.starts[batch]
        places = torch.arange(int(lengths.max()), device=batch.device)
        mask = places < lengths[:, None]
        return self.values[torch.where(mask, starts[:, None] + places, 0)].masked_fill(~mask, 0), mask


def _rows(entry: ArrayLike, name: str, rows: int | None) -> np.ndarray:
    if np.size(entry) == 0:
        raise InvalidInputError(f"{name} is empty; leave it out")
    array = as_numeric(entry, name)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be a list of numbers, got shape {array.shape}")
    if rows is None:
        wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
        if wrong.size:
            raise InvalidInputError(f"{name}: number {wrong[0]} is {array[wrong[0]]}; each must be positive and finite")
        return array.astype(np.float64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold rows of the pool, integers; got {array.tolist()}")
    wrong = np.flatnonzero((array < 0) | (array >= rows))
    if wrong.size:
        raise InvalidInputError(f"{name} holds row {array[wrong[0]]}, but the pool has rows 0 to {rows - 1}")
    if len(set(array.tolist())) < len(array):
        raise InvalidInputError(f"{name} holds a row twice: {array.tolist()}")
    return array.astype(np.int64)
