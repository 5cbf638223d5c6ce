"""Caps per source and near-duplicates: what goes beyond the conditions of the contract."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidInputError, select
from tests.shared_core.cases import GREEDY_PAIRS, Pair, gaussian, names

every_pair = pytest.mark.parametrize("pair", GREEDY_PAIRS, ids=names)


@every_pair
def test_a_cosine_at_the_threshold_is_not_above_it(pair: Pair) -> None:
    query, rows = [1.0, 0.5, 0.25, 0.1], np.eye(4)
    assert len(pair.select(query, rows, 4, drop_near_duplicates=0.0)) == 4
    assert len(pair.select(query, rows, 4, drop_near_duplicates=-0.01)) == 1


@every_pair
def test_a_threshold_of_one_drops_nothing(pair: Pair) -> None:
    # The cosine of a copy may be 1 plus rounding error.
    for seed, dtype in enumerate((np.float32, np.float64) * 5):
        query, vectors = gaussian(seed, 4, 7 + seed, dtype)
        copies = np.repeat(vectors, 3, axis=0)
        assert len(pair.select(query, copies, 12, drop_near_duplicates=1.0)) == 12


@every_pair
def test_copies_of_any_length_are_near_duplicates(pair: Pair) -> None:
    for seed, dtype in enumerate((np.float32, np.float64) * 5):
        query, vectors = gaussian(seed, 5, 30, dtype)
        copies = np.concatenate([vectors, 1e-3 * vectors, 1e4 * vectors]).astype(dtype)
        picks = pair.select(query, copies, 15, drop_near_duplicates=0.9999).indices
        assert sorted(i % 5 for i in picks.tolist()) == list(range(5))


@pytest.mark.parametrize("pair", GREEDY_PAIRS[::3], ids=names)
@pytest.mark.parametrize("missing", [None, np.nan, np.float32("nan"), " ", np.datetime64("NaT")], ids=repr)
def test_a_candidate_without_a_source_is_a_source_of_its_own(pair: Pair, missing: Any) -> None:
    rows = np.eye(6)
    query = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    rules: dict[str, Any] = {"sources": ["a", missing, "a", missing, "b", missing], "max_per_source": 1}
    picks = pair.select(query, rows, 6, **rules).indices.tolist()
    assert len(picks) == 5
    assert {*picks} - {0, 2} == {1, 3, 4, 5}
    # What was shown takes the place of its own source only.
    shown = pair.select(query, rows, 4, shown=[1, 2], **rules)
    assert {*shown.indices.tolist()} == {3, 4, 5}


# Four versions of one text, each near to its neighbours only, and another text.
DEGREES = np.radians([0, 20, 40, 60, 150])
VERSIONS = np.stack([np.cos(DEGREES), np.sin(DEGREES)], axis=1)
NEAR: dict[str, Any] = {"drop_near_duplicates": 0.9}


@pytest.mark.parametrize("pair", GREEDY_PAIRS[::3], ids=names)
@pytest.mark.parametrize(
    ("prefer", "kept"),
    [
        ([1, 2, 3, 4, 5], {1, 3, 4}),  # row 3 drops row 2, which then does not drop row 1
        ([4, 3, 2, 1, 5], {0, 2, 4}),
        ([0, 1, 0, 0, 0], {1, 3, 4}),
        ([None, "2026-01-31", "2025-12-01", None, None], {1, 3, 4}),
        ([datetime(2026, 1, 1, 23, tzinfo=UTC), date(2026, 1, 2), "2026-01-01T23:30:00-02:00", None, None], {0, 2, 4}),
        ([False, True, False, False, False], {1, 3, 4}),
        (np.array(["2024", "2026", "2025", "NaT", "2025"], "datetime64[D]"), {1, 3, 4}),
        (np.array(["2024", "2026", "2025", "NaT", "2025"], "datetime64[ns]"), {1, 3, 4}),
        ([np.nan, 1, Decimal("NaN"), np.float32("nan"), ""], {1, 3, 4}),
    ],
)
def test_the_preferred_of_near_duplicates_stays(pair: Pair, prefer: Any, kept: set[int]) -> None:
    for query in ([1.0, 0.1], [0.1, 1.0], [0.5, 0.6]):
        assert {*pair.select(query, VERSIONS, 5, prefer=prefer, **NEAR).indices.tolist()} == kept


def test_a_large_number_of_candidates_needs_no_square_matrix() -> None:
    query, vectors = gaussian(0, 600, 8)
    copies = np.concatenate([vectors, vectors, vectors])
    found = select(query, copies, 600, "similarity", prefer=np.arange(1800), drop_near_duplicates=0.9999)
    assert found.indices.min() >= 1200


@pytest.mark.parametrize(
    ("prefer", "word"),
    [
        ([1, 2, "2026-01-31", 4, 5], "row 2 is '2026-01-31'"),
        (["2026-01-31", "31.01.2026", None, None, None], "row 1 is '31.01.2026'.*ISO"),
        ([1, 2, {}, 4, 5], "prefer .*hashed"),
        ([1, 2, 3], "prefer must be 5"),
        ("abcde", "row 0 is 'a'"),
        (3, "prefer must be a collection"),
    ],
)
def test_values_without_an_order_are_refused(prefer: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        select([1.0, 0.1], VERSIONS, 2, prefer=prefer, **NEAR)
