"""The PIR tables and the rules for a direction, on cases small enough to check by hand; no data, no model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import _pir
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
