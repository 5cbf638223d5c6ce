"""The PIR tables and the rules for a direction, on cases small enough to check by hand; no data, no model."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from benchmarks.papers import _pir, direction
from benchmarks.papers._measures import max_difference, success_at_k, win_rate
from benchmarks.papers._modes import PERSPECTIVE_MODES, perspective_scores
from benchmarks.papers._pir import Vectors
from benchmarks.papers.direction import EMPHASIZE, LEAVE, REMOVE, Cases, fit_threshold
from tests import oracles
from tests.shared_core.cases import gaussian

HALF = math.sqrt(0.5)


@pytest.mark.parametrize("mode", PERSPECTIVE_MODES)
def test_scores_are_those_of_table_4(mode: str) -> None:
    for seed in range(20):
        # The lengths differ, so that normalising the vectors first would give other scores.
        query, vectors = gaussian(seed, 7, 2 + seed % 11)
        root, perspective = np.random.default_rng(seed).normal(size=(2, len(query)))
        given = 2 * query, 3 * root, perspective, vectors
        expected = [oracles.table4_score(mode, *given[:3], candidate) for candidate in vectors]
        np.testing.assert_allclose(perspective_scores(mode, *given), expected, rtol=0, atol=1e-9)


def test_measures_by_hand() -> None:
    ours, theirs = [0.5, 0.7, 0.6, 0.9], [0.25, 0.7, 0.8, 0.9 - 1e-10]
    assert (win_rate(ours, theirs), win_rate(theirs, ours), max_difference(ours, theirs)) == (1 / 4, 1 / 4, 0.25)
    assert [success_at_k(["d3", "d1", "d2"], {"d2", "d1"}, k) for k in (1, 2, 9)] == [False, True, True]


def cases(features: object, success: object, subsets: object, roots: object) -> Cases:
    return Cases(*(np.array(column) for column in (features, success, subsets, roots)))


class TestRankings:
    # q = (1, 1)/√2, root (1, 0), perspective (0, 1): removing leaves (1, 0), emphasizing gives (1, 2).
    @pytest.mark.parametrize(
        ("mode", "how", "expected"),
        [
            ("base", None, [2, 0, 1]),
            ("pap", "remove", [0, 2, 1]),
            ("pap+", "remove", [0, 2, 1]),
            ("pap", "emphasize", [2, 1, 0]),
            ("cast", None, [0, 2, 1]),
        ],
    )
    def test_modes_by_hand(self, mode: str, how: str | None, expected: list[int]) -> None:
        items = np.array([[1.0, 0.0], [0.0, 1.0], [HALF, HALF]])
        v = Vectors(items, *(np.array([row]) for row in ([HALF, HALF], [1.0, 0.0], [0.0, 1.0])))
        assert _pir.rankings(v, mode, how) == [expected]


class TestCases:
    # Subset 0: root 0 with two queries, root 1 with one; subset 1: root 2 with one query.
    DATA = cases(
        np.zeros((4, 9)), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], subsets=[0, 0, 0, 1], roots=[0, 0, 1, 2]
    )

    @pytest.mark.parametrize(
        ("actions", "expected"),
        [([LEAVE] * 4, {0: 0.25, 1: 1.0}), ([LEAVE, REMOVE, EMPHASIZE, EMPHASIZE], {0: 1.0, 1: 0.0})],
    )
    def test_recall(self, actions: list[int], expected: dict[int, float]) -> None:
        assert self.DATA.recall(np.array(actions)) == expected

    def test_features_by_hand(self) -> None:
        q, r, p = np.array([0.6, 0.8]), np.array([1.0, 0.0]), np.array([0.0, 2.0])
        items = np.array([[1.0, 0.0], [0.0, 1.0]])
        # q − root = (−0.4, 0.8), of length √0.8. The candidates' cosines with p are 0.5 ± 0.5, with the root reversed.
        expected = [0.6, 0.8, 0.0, 0.8 / math.sqrt(0.8), 0.5, 0.5, 0.5, 0.5, -1.0]
        np.testing.assert_allclose(direction.features(q, r, p, items), expected, atol=1e-12)


def made(value: np.ndarray, best: np.ndarray) -> Cases:
    """Queries of one subset, each its own root, that succeed under one action only; feature 3 tells which."""
    features = np.random.default_rng(5).normal(size=(len(value), 9))
    features[:, 3] = value
    return Cases(features, np.eye(3)[best], np.zeros(len(value), dtype=int), np.arange(len(value)))


class TestFits:
    VALUES = np.linspace(0, 1, 200)
    BEST = np.select([VALUES < 0.3, VALUES > 0.7], [REMOVE, EMPHASIZE], LEAVE)

    def test_thresholds_are_found(self) -> None:
        rule = fit_threshold(made(self.VALUES, self.BEST))
        assert (rule.feature, rule.below, rule.above) == (3, REMOVE, EMPHASIZE)
        assert (round(rule.low, 2), round(rule.high, 2)) == (0.3, 0.7)
        assert (rule.actions(made(self.VALUES, self.BEST).features) == self.BEST).all()


class TestValidation:
    DATA = Cases(np.zeros((24, 9)), np.ones((24, 3)), np.repeat(np.arange(3), 8), np.repeat(np.arange(12), 2))

    def test_halves_never_split_a_root_query(self) -> None:
        parts = list(direction.halves(self.DATA))
        assert len(parts) == 2 * direction.SPLITS
        for train, test in parts:
            assert not set(train.root) & set(test.root)
            assert set(train.root) | set(test.root) == set(range(12))
            assert Counter(train.subset.tolist()) == Counter(test.subset.tolist()) == {0: 4, 1: 4, 2: 4}
        assert any((a.root != b.root).any() for (a, _), (b, _) in zip(parts[::2], parts[2::2], strict=False))
