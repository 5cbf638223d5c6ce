from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, InvalidParameterError
from shared_core.learning.labels.draws import GreedyDraws
from tests import oracles

RNG = np.random.default_rng(2)
VECTORS = RNG.normal(size=(40, 6)) * RNG.uniform(0.2, 5, size=(40, 1))
UNIT = oracles.unit_rows(VECTORS)
AMONG = np.arange(1, 40)


def drawn(draw: GreedyDraws, seed: int = 0, among: NDArray[np.int64] = AMONG) -> list[tuple[int, ...]]:
    return draw(0, among, np.random.default_rng(seed))


@given(st.data())
def test_subsets_are_one_to_k_of_the_candidates_and_all_different(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 5), "k")
    among = np.array(data.draw(st.permutations(range(1, 40)), "among"))[: data.draw(st.integers(k, 39), "n")]
    subsets = data.draw(st.none() | st.integers(2 * k, 300), "subsets")
    draw = GreedyDraws(VECTORS, k, subsets, noise=data.draw(st.sampled_from([1e-3, 0.5, 50.0]), "noise"))
    seed = data.draw(st.integers(0, 5), "seed")
    found = drawn(draw, seed, among)
    assert 1 <= len(found) <= draw.subsets
    assert len({frozenset(subset) for subset in found}) == len(found)
    assert drawn(draw, seed, among) == found
    for subset in found:
        assert 1 <= len(set(subset)) == len(subset) <= k
        assert set(subset) <= set(among.tolist())
        assert all(type(row) is int for row in subset)


def test_the_first_path_is_the_greedy_selection_without_a_kernel() -> None:
    for temperature in (0.05, 0.5, 5.0):
        found = {frozenset(subset) for subset in drawn(GreedyDraws(VECTORS, 4, temperature=temperature))}
        chosen = NDPP(relevance_mapping="exponential", temperature=temperature, ridge=0).select(
            Candidates(VECTORS[0], VECTORS[AMONG]), 4
        )
        picks = AMONG[chosen.indices].tolist()
        for size in range(1, 5):
            assert frozenset(picks[:size]) in found


def test_each_step_is_drawn_with_many_next_items() -> None:
    """Beside the picks so far stand those a kernel may put first and some at random."""
    found = [frozenset(subset) for subset in drawn(GreedyDraws(VECTORS, 3))]
    sizes = [sum(len(subset) == size for subset in found) for size in (1, 2, 3)]
    assert min(sizes) >= 30
    chosen = NDPP(relevance_mapping="exponential", temperature=0.1, ridge=0).select(
        Candidates(VECTORS[0], VECTORS[AMONG]), 3
    )
    picks = AMONG[chosen.indices].tolist()
    for size in (1, 2):
        assert sum(set(picks[:size]) < subset and len(subset) == size + 1 for subset in found) >= 30


def test_low_noise_stays_near_greedy_and_high_noise_goes_far() -> None:
    def value(rows: frozenset[int]) -> float:
        r = np.exp(UNIT @ UNIT[0] / (2 * 0.1))
        places = sorted(rows)
        return float(np.linalg.slogdet(UNIT[places] @ UNIT[places].T)[1] + 2 * np.log(r[places]).sum())

    means = []
    for noise in (0.05, 100.0):
        sets = [drawn(GreedyDraws(VECTORS, 3, 36, noise=noise), seed) for seed in range(10)]
        means.append(np.mean([value(frozenset(s)) for found in sets for s in found if len(s) == 3]))
    assert means[0] > means[1] + 1


def test_copies_and_zero_rows_do_not_break_it() -> None:
    vectors = VECTORS.copy()
    vectors[1:20] = vectors[1]
    vectors[20:30] = 0
    found = drawn(GreedyDraws(vectors, 5))
    assert max(map(len, found)) == 5
    assert np.isfinite(vectors).all()


def test_fingerprints_differ_between_draws() -> None:
    every: list[dict[str, Any]] = [{}, {"k": 3}, {"subsets": 5}, {"temperature": 0.2}, {"noise": 0.1}]
    names = [GreedyDraws(VECTORS, **{"k": 2, **change}).fingerprint for change in every]
    assert len(set(names)) == len(names)
    assert GreedyDraws(2 * VECTORS, 2).fingerprint == names[0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": 2.0}, "k must be an integer"),
        ({"subsets": 1}, "subsets must be at least"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"noise": -1.0}, "noise must be"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        GreedyDraws(VECTORS, **{"k": 2, **change})
