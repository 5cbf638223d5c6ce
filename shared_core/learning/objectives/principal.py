"""Where the factors of a kernel start: unit vectors, their second moments and their principal directions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ...candidates import as_unit_rows

Matrix = NDArray[np.float64]

# Rows of a large pool that are float64 at one time.
_BLOCK = 16384


def unit_rows(vectors: ArrayLike) -> Tensor:
    """The vectors at length 1 as :class:`Candidates` has them: float32 or float64, in memory of their own.

    Raises
    ------
    InvalidInputError
        They are no matrix, or hold NaN or inf; the message names the row.

    Examples
    --------
    >>> unit_rows([[0.0, 4.0]]).tolist()
    [[0.0, 1.0]]
    """
    return torch.from_numpy(as_unit_rows(vectors))


def blocks(rows: Tensor) -> Iterator[Tensor]:
    """The rows in float64, a block at a time.

    Examples
    --------
    >>> [block.shape[0] for block in blocks(torch.zeros(20000, 1))]
    [16384, 3616]
    """
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK].to(torch.float64)


def second_moment(rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """EᵀE, or Eᵀ diag(w) E, of rows E (M, d) and weights w (M,): float64, shape (d, d).

    Examples
    --------
    >>> second_moment(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    total = torch.zeros((rows.shape[1],) * 2, dtype=torch.float64, device=rows.device)
    start = 0
    for block in blocks(rows):
        total.addmm_(block.T, block if weights is None else block * weights[start : start + len(block), None])
        start += len(block)
    return total


def principal_directions(rows: Tensor) -> tuple[Matrix, Matrix]:
    """Right singular vectors of the rows, uncentred: with the first K of them, E P Pᵀ Eᵀ is nearest to E Eᵀ.

    Returns
    -------
    directions : ndarray, float64, shape (d, d)
        A column each, the most important first; its largest entry is positive.
    squares : ndarray, float64, shape (d,)
        Squares of the singular values.

    Examples
    --------
    >>> directions, squares = principal_directions(torch.tensor([[0.0, -1.0], [0.0, -2.0], [1.0, 0.0]]))
    >>> directions.tolist(), squares.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [5.0, 1.0])
    """
    squares, vectors = np.linalg.eigh(second_moment(rows).cpu().numpy())
    directions = vectors[:, ::-1]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -directions, directions), squares[::-1]
