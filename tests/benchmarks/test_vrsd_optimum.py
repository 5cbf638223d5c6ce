"""The searches of the page on VRSD's optimum, against the package and the slow references; no data, no model."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.papers import vrsd_optimum
from benchmarks.papers.vrsd_optimum import Pool
from tests import oracles
from tests.shared_core.cases import gaussian

SEEDS = range(12)
N, K = 12, 5


def pool_of(seed: int) -> tuple[Pool, np.ndarray, np.ndarray]:
    query, vectors = (oracles.unit_rows(np.atleast_2d(given)) for given in gaussian(seed, N, 5))
    return Pool(vectors @ query[0], vectors @ vectors.T), query[0], vectors


def test_the_best_sets_are_those_of_the_reference() -> None:
    for seed in SEEDS:
        pool, query, vectors = pool_of(seed)
        picks, with_nearest = vrsd_optimum.optimum(pool, K)
        expected, highest = oracles.best_vrsd_set(query, vectors, K)
        assert set(picks) == expected
        assert pool.cosine(picks) == pytest.approx(highest, abs=1e-12)
        nearest = int(pool.relevance.argmax())
        assert nearest in with_nearest
        assert (with_nearest == picks) == (nearest in expected)


def test_a_beam_of_one_is_greedy_and_one_that_keeps_every_set_finds_the_best() -> None:
    for seed in SEEDS:
        pool, _, _ = pool_of(seed)
        assert vrsd_optimum.beam(pool, K, 1) == vrsd_optimum.greedy(pool, K)
        assert sorted(vrsd_optimum.beam(pool, K, 800)) == vrsd_optimum.optimum(pool, K)[0]
