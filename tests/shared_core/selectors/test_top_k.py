from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from shared_core import Candidates, TopK
from tests.shared_core.cases import Grid, grids


def test_by_hand() -> None:
    selection = TopK().select(Candidates([1.0, 0.0], [[0.0, 1.0], [3.0, 4.0], [-1.0, 0.0], [4.0, 3.0]]), 3)
    assert selection.indices.tolist() == [3, 1, 0]
    np.testing.assert_allclose(selection.gains, [0.8, 0.6, 0.0], atol=1e-15)
    np.testing.assert_allclose(selection.objective, 1.4, atol=1e-15)
    assert selection.filled_from is None


@settings(deadline=None, derandomize=True, max_examples=50)
@given(grids())
def test_gains_are_the_relevance_and_never_rise(data: Grid) -> None:
    query, vectors, k = data
    selection = TopK().select(Candidates(query, vectors), k)
    assert np.array_equal(selection.gains, selection.relevance)
    assert np.all(np.diff(selection.gains) <= 1e-14)
