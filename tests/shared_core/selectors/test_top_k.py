from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import Candidates, TopK
from tests.shared_core.cases import gaussian


def test_by_hand() -> None:
    selection = TopK().select(Candidates([1.0, 0.0], [[0.0, 1.0], [3.0, 4.0], [-1.0, 0.0], [4.0, 3.0]]), 3)
    assert selection.indices.tolist() == [3, 1, 0]
    np.testing.assert_allclose(selection.gains, [0.8, 0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(selection.objective, 1.4, atol=1e-15)
    assert selection.filled_from is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-300, 0.5, 1e12])
def test_the_smallest_difference_in_a_given_relevance_counts(size: float, dtype: Any) -> None:
    # Cosines this near each other are ties.
    relevance = np.full(20, size)
    relevance[13] = np.nextafter(size, np.inf)
    relevance[4] = np.nextafter(size, -np.inf)
    selection = TopK().select(Candidates(*gaussian(5, 20, 6, dtype), relevance=relevance), 20)
    assert selection.indices.tolist() == [13, *(i for i in range(20) if i not in (4, 13)), 4]
