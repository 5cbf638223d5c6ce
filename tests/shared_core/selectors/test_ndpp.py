from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import NDPP, Candidates, InvalidParameterError, KernelError, LinearKernel, LowRankKernel, select
from shared_core.selectors.ndpp import AUTO_TEMPERATURE
from tests import oracles
from tests.shared_core.cases import gaussian
from tests.shared_core.selectors.loops import available_loops, use_loops


def test_by_hand() -> None:
    # The weights are 0.8, 0.6 and 0.6. L' has 0.64 and 0.36 on its diagonal; between rows 0 and 2 it has 0.48 * 0.48.
    candidates = Candidates([1.0, 0.0, 0.0], [[0.8, 0.6, 0.0], [0.6, 0.8, 0.0], [0.6, 0.0, 0.8]])
    selection = NDPP(relevance_mapping="linear", ridge=0).select(candidates, 2)
    assert selection.indices.tolist() == [0, 2]
    second = (0.64 * 0.36 - (0.48 * 0.48) ** 2) / 0.64
    np.testing.assert_allclose(selection.gains, [0.64, second], rtol=1e-12)
    np.testing.assert_allclose(selection.objective, 0.64 * second, rtol=1e-12)
    # A ridge of 0.5 makes each diagonal entry of L 1.5: 0.96 and 0.54 in L'.
    ridged = NDPP(relevance_mapping="linear", ridge=0.5).select(candidates, 2)
    assert ridged.indices.tolist() == [0, 2]
    np.testing.assert_allclose(ridged.gains, [0.96, (0.96 * 0.54 - (0.48 * 0.48) ** 2) / 0.96], rtol=1e-12)


def test_a_text_is_selected_beside_its_copy_if_the_others_are_much_less_relevant() -> None:
    rows = [[0.6, 0.8, 0.0], [0.6, 0.8, 0.0], [0.6, 0.0, 0.8]]
    far = Candidates([1.0, 0.0, 0.0], rows, relevance=[1.0, 1.0, -6.0])
    for way in available_loops():
        with use_loops(way):
            assert NDPP(temperature=1.0).select(far, 2).indices.tolist() == [0, 1]
            assert NDPP(temperature=1.0, ridge=0).select(far, 2).indices.tolist() == [0, 2]


@pytest.mark.parametrize("way", available_loops())
def test_a_ridge_beside_a_kernel_and_shown_candidates(way: str) -> None:
    rng = np.random.default_rng(8)
    for skew_rank in (0, 2):
        V, B, half = rng.normal(size=(20, 3)), rng.normal(size=(20, skew_rank)), rng.normal(size=(skew_rank, skew_rank))
        dense = oracles.ndpp_dense(V, B, half - half.T)
        query, vectors = gaussian(8, 20, 5)
        auto: dict[str, Any] = {"kind": "auto", "c": AUTO_TEMPERATURE}
        for shown in ([], [3, 3 + 9]):
            # The rank is 3 or 5. With a ridge it is never used up.
            expected = oracles.ndpp_greedy(query, vectors, 8, kernel=dense, **auto, ridge=0.2, shown=shown)
            with use_loops(way):
                kernel = LowRankKernel(V, B, half - half.T)
                actual = NDPP(kernel, ridge=0.2).select(Candidates(query, vectors), 8, shown=shown)
            assert actual.filled_from is None
            oracles.assert_agrees(actual, expected, f"skew rank {skew_rank}, shown {shown}")


def test_of_copies_of_any_length_almost_at_right_angles_to_the_query_the_first_is_picked() -> None:
    # Lengths that are no powers of two change the last bits of a direction. A small cosine enlarges that.
    rng = np.random.default_rng(10)
    for _ in range(200):
        query, row = rng.normal(size=(2, 14))
        row += (1e-4 * np.linalg.norm(row) - row @ query) / (query @ query) * query
        vectors = np.outer(rng.uniform(1, 1e6, size=5), row)
        for relevance in ("linear", "exponential"):
            assert NDPP(relevance_mapping=relevance).select(Candidates(query, vectors), 1).indices.tolist() == [0]


@pytest.mark.parametrize("way", available_loops())
def test_where_r_squared_overflows_or_underflows_the_more_relevant_still_comes_first(way: str) -> None:
    # L is the identity, so the order of the picks is that of the relevance.
    large, small = NDPP(relevance_mapping="linear", ridge=0), NDPP(temperature=1e-5, ridge=0)
    for selector, relevance in ((large, [1e200, 1e300, 1e250, 1e301]), (small, [0.0, 0.3, 0.2, 0.4])):
        with use_loops(way):
            found = selector.select(Candidates(np.ones(4), np.eye(4), relevance=relevance), 4)
        assert found.indices.tolist() == [3, 1, 2, 0], selector


def test_with_a_purely_skew_kernel_all_picks_are_filled_in() -> None:
    # The determinant of a single candidate is 0, so the greedy method finds nothing. Some pairs have one above 0.
    kernel = LowRankKernel(np.zeros((4, 1)), np.eye(4), [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]])
    query, vectors = gaussian(4, 4, 6)
    selection = NDPP(kernel).select(Candidates(query, vectors), 3)
    assert selection.filled_from == 0
    oracles.assert_same_picks(selection, oracles.top_k(query, vectors, 3))


@pytest.mark.parametrize("shown", [[], [3, 17]])
@pytest.mark.parametrize("a", [1e-290, 0.003, 1.0, 40.0, 1e290])
def test_given_relevance_of_any_scale_and_offset_selects_the_same(a: float, shown: list[int]) -> None:
    query, vectors = gaussian(12, 30, 16)
    scores = np.random.default_rng(12).normal(size=30)
    wanted = NDPP().select(Candidates(query, vectors, relevance=scores), 8, shown=shown)
    for b in (0.0, -3.0, 100.0):
        found = NDPP().select(Candidates(query, vectors, relevance=a * (scores + b)), 8, shown=shown)
        assert found.indices.tolist() == wanted.indices.tolist()
        np.testing.assert_allclose(found.gains, wanted.gains, rtol=1e-9)
    for scale in (None, "minmax"):
        scaled = select(query, vectors, 8, "ndpp", relevance=a * scores, relevance_scale=scale, shown=shown)
        assert scaled.indices.tolist() == wanted.indices.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", [None, 0.1, -1e300])
def test_with_equal_relevance_the_kernel_decides_alone(given: float | None, dtype: Any) -> None:
    rng = np.random.default_rng(33)
    across = rng.normal(size=(12, 5))
    # Each row has the cosine 0.6 with the query, up to rounding, and a length of its own.
    rows = np.column_stack([np.full(12, 0.6), 0.8 * oracles.unit_rows(across)]) * rng.uniform(1, 9, size=(12, 1))
    query, V = np.eye(6)[0].astype(dtype), rng.normal(size=(12, 4))
    candidates = Candidates(query, rows.astype(dtype), relevance=None if given is None else np.full(12, given))
    found = NDPP(LowRankKernel(V)).select(candidates, 3)
    plain = oracles.ndpp_greedy(query, rows, 3, kernel=oracles.ndpp_dense(V), relevance=np.ones(12))
    oracles.assert_same_picks(found, plain)
    np.testing.assert_allclose(found.gains, plain.gains, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1, 100, 1e4])
def test_the_rank_is_found_at_every_scale_of_the_skew_part(scale: float, dtype: Any) -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        V, B = rng.normal(size=(15, 2)), rng.normal(size=(15, 2))
        candidates = Candidates(*gaussian(seed + 1000, 15, 6, dtype))
        kernel = LowRankKernel(V, B, scale * np.array([[0.0, 1.0], [-1.0, 0.0]]))
        assert NDPP(kernel).select(candidates, 8).filled_from == 4, seed


def test_the_rank_of_float32_vectors_in_a_narrow_cone_is_found() -> None:
    # The pivots become small, and divide the rounding errors of sums in float32.
    for seed in range(60, 100):
        rng = np.random.default_rng(seed)
        centre = rng.normal(size=6)
        query, vectors = (centre + spread * rng.normal(size=shape) for spread, shape in ((0.5, 6), (0.7, (40, 6))))
        candidates = Candidates(
            query.astype(np.float32), vectors.astype(np.float32), relevance=rng.uniform(-1, 1.5, size=40)
        )
        for way in available_loops():
            with use_loops(way):
                assert NDPP(relevance_mapping="linear", ridge=0).select(candidates, 9).filled_from == 6, (seed, way)


def test_products_of_float32_are_summed_in_float64() -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=6) + 0.05 * rng.normal(size=(9, 6))).astype(np.float32)
    candidates = Candidates(vectors[0], vectors, relevance=np.ones(9))
    rows = candidates.vectors.astype(np.float64)
    for way in available_loops():
        with use_loops(way):
            selection = NDPP(ridge=0).select(candidates, 4)
        picked = rows[selection.indices]
        np.testing.assert_allclose(selection.gains.prod(), np.linalg.det(picked @ picked.T), rtol=1e-9, err_msg=way)


def test_a_kernel_is_loaded_from_its_file(tmp_path: Path) -> None:
    query, vectors = gaussian(6, 11, 9)
    candidates = Candidates(query, vectors)
    for kernel in (LinearKernel(np.eye(9)[:3].T), LowRankKernel(vectors[:, :3])):
        path = tmp_path / "kernel.safetensors"
        kernel.save(path)
        expected = NDPP(kernel).select(candidates, 5).indices.tolist()
        for given in (path, str(path)):
            assert NDPP(given).select(candidates, 5).indices.tolist() == expected
    path.write_bytes(b"no kernel")
    with pytest.raises(KernelError, match=r"kernel\.safetensors: "):
        NDPP(path)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
        NDPP("nowhere.safetensors")


@pytest.mark.parametrize("s", np.linspace(0.1, 3, 9))
@pytest.mark.parametrize("c", [0.1, 0.7, 2.5])
def test_a_ratio_of_rounding_errors_after_shown_candidates_is_no_gain(s: float, c: float) -> None:
    # The inverse of L_SS = [[1, s], [-s, 0]] of the shown ones has a 0 in its first place, the only one that counts for
    # the third candidate, so the candidate's determinant ratio is 0.
    skew = [[0.0, s, c], [-s, 0.0, 0.0], [-c, 0.0, 0.0]]
    kernel = LowRankKernel([[1.0], [0.0], [0.0]], np.eye(3), skew)
    candidates = Candidates([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = NDPP(kernel).select(candidates, 1, shown=[0, 1])
    assert (found.indices.tolist(), found.gains.tolist(), found.filled_from) == ([2], [0.0], 0)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(("temperature", t, "above 0, or 'auto', got") for t in ("", "Auto", "0.1", True, -1, 0, np.nan, math.inf)),
        *(("ridge", r, "ridge must be") for r in (-0.1, math.nan, math.inf, "0.05", True)),
        *(("relevance_mapping", m, "linear, exponential") for m in ("cubic", "", False, 1)),
        ("kernel", np.eye(3), "the path of one"),
    ],
)
def test_parameters_out_of_range_are_refused_with_what_is_allowed(name: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        NDPP(**{name: value})
