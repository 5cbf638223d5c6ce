"""The trained relevance of candidates to a query (NDPP paper, 4.4.1: encoders of its own)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class LearnedRelevance(nn.Module):
    """log r_i = cos(q W_R, e_i W_R) / (2·temperature), W_R the identity at first; W_R and the temperature are trained.

    Parameters
    ----------
    vectors : Tensor, shape (n, d)
        Unit vectors of the pool; the queries are among them.
    temperature : float > 0
        At first.
    mapped : bool
        Whether there is a W_R; without it only the temperature is trained.

    Examples
    --------
    >>> relevance = LearnedRelevance(torch.eye(2, dtype=torch.float64), 0.5)
    >>> relevance.logs(torch.tensor([0]), torch.tensor([[0, 1]])).tolist()
    [[1.0, 0.0]]
    """

    unit: Tensor

    def __init__(self, vectors: Tensor, temperature: float = 0.1, *, mapped: bool = True) -> None:
        super().__init__()
        self.register_buffer("unit", vectors, persistent=False)
        eye = torch.eye(vectors.shape[1], dtype=torch.float64)
        self.W_R = nn.Parameter(eye) if mapped else None
        self.log_temperature = nn.Parameter(torch.tensor(float(np.log(temperature)), dtype=torch.float64))

    def logs(self, queries: Tensor, items: Tensor) -> Tensor:
        """log r of items (m, c) for queries (m,): float64, shape (m, c); not shifted by the maximum."""
        rows, places = torch.unique(torch.cat((queries, items.flatten())), return_inverse=True)
        mapped = self.unit.index_select(0, rows).to(torch.float64)
        if self.W_R is not None:
            mapped = mapped @ self.W_R
        mapped = nn.functional.normalize(mapped, dim=1, eps=1e-12).index_select(0, places)
        asked, found = mapped[: len(queries)], mapped[len(queries) :].reshape(*items.shape, -1)
        cosines: Tensor = (found @ asked[:, :, None])[..., 0]
        return cosines / (2 * self.log_temperature.exp())

    def numbers(self) -> tuple[NDArray[np.float64] | None, float]:
        """W_R (d, d) or None, and the temperature, as a kernel takes them."""
        w_r = None if self.W_R is None else np.array(self.W_R.detach().cpu().numpy())
        return w_r, float(self.log_temperature.detach().exp())
