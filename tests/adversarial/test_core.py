"""The core against the slow references: random cases of every kind, with random conditions, single and in batches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import (
    NDPP,
    PAP,
    Candidates,
    LinearKernel,
    LowRankKernel,
    NothingLeftError,
    PerspectiveError,
    SetSelectError,
    rescale,
    select_stream,
)
from shared_core.candidates import References
from shared_core.selectors.ndpp import AUTO_TEMPERATURE
from shared_core.selectors.registry import capabilities_of
from tests import oracles
from tests.adversarial.conftest import Cases, damage
from tests.shared_core.cases import PAIRS, REGISTERED, Case, Pair, condition_on_regular, draw, draw_conditions, names
from tests.shared_core.selectors.loops import available_loops, use_loops

Rng = np.random.Generator
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


# --- random cases ---------------------------------------------------------------------------------


def draw_case(number: int, rng: Rng) -> Case:
    """A case of test data as for the other tests of the core, or with lengths, types or a layout that few have."""
    case = draw(number, rng, n_max=24, d_max=24, k_max=8)
    query, vectors = case.query, case.vectors
    match rng.integers(6):
        case 0:
            # Lengths at which a square overflows or underflows, and subnormal lengths.
            largest = 300 if vectors.dtype == np.float64 else 37
            lengths = 10.0 ** rng.uniform(-largest, largest - 2, size=(len(vectors), 1))
            vectors = (vectors / max(1.0, np.abs(vectors).max()) * lengths).astype(vectors.dtype)
            query = (query / np.abs(query).max() * 10.0 ** rng.uniform(-largest, largest - 2)).astype(query.dtype)
        case 1 if case.flavour == "grid":
            vectors = vectors.astype(rng.choice(["i1", "i8", "f2", ">f4", ">f8"]))
        case 2 if case.flavour != "grid":
            # Almost copies: their scores are near each other, but are no ties. If they were nearer, most digits of the
            # reference's determinants would be rounding errors. Grids have almost opposite rows, whose sums have the
            # same problem.
            noise = rng.normal(size=vectors.shape) * 10.0 ** rng.uniform(-3, -1)
            vectors = (vectors[rng.integers(len(vectors), size=len(vectors))] + noise).astype(vectors.dtype)
    return Case(number, case.flavour, query, lay_out(vectors, rng), case.k, case.quality, rng)


def lay_out(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The same numbers, in one of the ways in which numpy can hold them."""
    match rng.integers(6):
        case 0:
            array = np.asfortranarray(array)
        case 1:
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        case 2:
            array = array[::-1].copy()[::-1]
        case 3:
            unaligned = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
            array = unaligned.view(array.dtype).reshape(array.shape)
        case 4:
            array.flags.writeable = False
    return array


def draw_relevance(case: Case, rng: Rng, *, largest: float) -> NDArray[Any]:
    """Relevance that somebody gave: of one size or another, with ties, and of any kind of number."""
    values = rng.uniform(-1, 1.5, size=len(case.vectors))
    match rng.integers(4):
        case 0:
            return lay_out(np.round(values * 4) / 4, rng)
        case 1:
            # Differences that would be ties among cosines.
            return np.round(values * 4) / 4 + rng.integers(0, 3, size=len(values)) * 1e-9
        case 2:
            return lay_out(np.round(values * 4).astype(rng.choice(["i1", "f2", ">f4"])) if largest > 6 else values, rng)
        case _:
            return lay_out(values * 10.0 ** rng.uniform(-4, np.log10(largest)), rng)


def draw_queries(case: Case, rng: Rng) -> NDArray[Any]:
    """The query of a case and up to three others: any, opposite, equal, or near a candidate."""
    rows, d = oracles.unit_rows(case.vectors), len(case.query)
    others = [rng.normal(size=d), -oracles.unit(case.query), oracles.unit(case.query), rows[0] + 1e-3]
    chosen = [others[i] for i in rng.permutation(4)[: rng.integers(1, 4)]]
    return lay_out(np.stack([oracles.unit(case.query), *chosen]) * rng.choice([1e-200, 1.0, 1e200]), rng)


def draw_references(case: Case, rng: Rng) -> References | NDArray[Any]:
    """Which candidates name each other: a few or nearly all, clearly or hardly, of any kind of number."""
    n = len(case.vectors)
    if rng.integers(2):
        return References(np.float32(rng.random((n, n)) < 0.3), rng.integers(-3, 4, size=n))
    named = rng.random((n, n)) < rng.choice([0.0, 0.1, 0.5, 1.0])
    match rng.integers(3):
        case 0:
            return lay_out(named, rng)
        case 1:
            return lay_out((named * np.round(rng.random((n, n)) * 4) / 4).astype(rng.choice(["f2", ">f4", "f8"])), rng)
        case _:
            return lay_out(named * 10.0 ** -rng.uniform(0, 50, size=(n, n)), rng)


def check(pair: Pair, case: Case, k: int | None, conditions: dict[str, Any]) -> None:
    """Compare the selections with the reference. The arguments are as before."""
    query, vectors = case.query.copy(), case.vectors.copy()
    pair.check(case.query, case.vectors, k, f"{case}, {conditions}", **conditions)
    assert np.array_equal(case.query, query)
    assert np.array_equal(case.vectors, vectors)


@every_pair
def test_a_selection_is_that_of_the_reference(pair: Pair, cases: Cases) -> None:
    for number, rng in cases(share=0.09):
        case = draw_case(number, rng)
        k, conditions = draw_conditions(case, ["shown"] if pair.refined else None)
        if pair.takes_relevance and rng.random() < 0.4:
            # The reference of NDPP computes determinants, which underflow if the exponential of r does.
            largest = 1.0 if pair in REGISTERED["ndpp"] else 1e4
            conditions["relevance"] = draw_relevance(case, rng, largest=largest)
        if pair.with_parts and rng.random() < 0.4:
            conditions["references"] = draw_references(case, rng)
        # In float32 the reference does not know how far rounding errors go in the standard deviations of each query.
        if capabilities_of(pair.selector).sub_questions and not oracles.is_single(case.vectors) and rng.random() < 0.4:
            case = replace(case, query=draw_queries(case, rng))
        if pair in REGISTERED["ndpp"]:
            rows = oracles.unit_rows(case.vectors)
            condition_on_regular(conditions, rows @ rows.T)
        check(pair, case, k, conditions)


@every_pair
def test_each_selection_of_a_batch_is_that_of_the_reference(pair: Pair, cases: Cases) -> None:
    for number, rng in cases(share=0.02):
        case = draw_case(number, rng)
        count = int(rng.integers(1, 7))
        queries = case.query * rng.choice([-1.0, 1.0, 2.0], size=(count, len(case.query))).astype(case.query.dtype)
        shared = bool(rng.integers(2))
        vectors = case.vectors if shared else np.stack([rng.permutation(case.vectors) for _ in range(count)])
        own = [vectors] * count if shared else list(vectors)
        more: dict[str, Any] = {}
        if pair.with_quality:
            qualities = [pair.columns(rows)["quality"] for rows in own]
            more["quality"] = qualities[0] if shared else np.stack(qualities)
        without: dict[str, Any] = {}
        if pair.with_parts:
            more["words"] = [pair.columns(rows)["words"] for rows in own]
            called = [pair.columns(rows)["references"] for rows in own]
            without = {} if shared else {"cover": None}
            more |= {"cover": pair.columns(vectors)["cover"]} if shared else {}
            more["references"] = called[0] if shared else called
        given, scale = [None] * count, (None, "minmax", "rank", "sigmoid")[rng.integers(4)]
        if pair.takes_relevance and rng.random() < 0.5:
            largest = 1e4 if scale is not None or pair not in REGISTERED["ndpp"] else 1.0
            given = [draw_relevance(case, rng, largest=largest).astype(np.float64) for _ in range(count)]
            more |= {"relevance": np.stack(given), "relevance_scale": scale}
        in_turn = bool(rng.integers(2))
        rest = {"workers": int(rng.integers(1, 4)), **more}
        for way in available_loops():
            with use_loops(way):
                asked = iter(queries) if in_turn else queries
                found = list(select_stream(asked, vectors, case.k, pair.selector, **rest))
            assert len(found) == count
            for selection, query, rows, worth in zip(found, queries, own, given, strict=True):
                conditions = dict(without)
                if worth is not None:
                    assert selection.relevance.tolist() == worth[selection.indices].tolist()
                    conditions["relevance"] = rescale(worth, scale)
                    scaled = conditions["relevance"][selection.indices]
                    selection = replace(selection, relevance=scaled)
                expected = pair.expected(query, rows, case.k, **conditions)
                pair.assert_agrees(selection, expected, query, rows, case.k, f"{way}, {case}")


# --- kernels --------------------------------------------------------------------------------------


def draw_kernel(case: Case, rng: Rng) -> tuple[LowRankKernel | LinearKernel, NDArray[np.float64]]:
    """A kernel, and its dense matrix of the candidates."""
    n, d = case.vectors.shape
    rank, skew_rank = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    half = rng.normal(size=(skew_rank, skew_rank))
    skew = half - half.T
    if rng.integers(2):
        V, B = rng.normal(size=(n, rank)), rng.normal(size=(n, skew_rank))
        if rng.integers(2):
            V, B = np.round(V), np.round(B)
        return LowRankKernel(V, B, skew), oracles.ndpp_dense(V, B, skew)
    W_V, W_B = rng.normal(size=(d, rank)), rng.normal(size=(d, skew_rank))
    rows = oracles.unit_rows(case.vectors)
    return LinearKernel(W_V, W_B, skew), oracles.ndpp_dense(rows @ W_V, rows @ W_B, skew)


def test_a_selection_with_a_kernel_is_that_of_the_reference(cases: Cases) -> None:
    for number, rng in cases(share=0.05):
        # In float32 the reference has no bound for the error of a linear kernel.
        drawn = draw_case(number, rng)
        case = replace(drawn, query=drawn.query.astype(np.float64), vectors=drawn.vectors.astype(np.float64))
        kernel, dense = draw_kernel(case, rng)
        k, conditions = draw_conditions(case)
        condition_on_regular(conditions, dense)
        if rng.random() < 0.3:
            conditions["relevance"] = draw_relevance(case, rng, largest=1.0)
        linear = bool(rng.integers(2))
        kind: dict[str, Any] = {"kind": "linear"} if linear else {"kind": "auto", "c": AUTO_TEMPERATURE}
        expected = oracles.ndpp_greedy(case.query, case.vectors, k, kernel=dense, **kind, **conditions)
        shown, budget = conditions.pop("shown", ()), conditions.pop("budget", None)
        selector = NDPP(kernel, "linear" if linear else None)
        for way in available_loops():
            try:
                candidates = Candidates(case.query, case.vectors, **conditions)
                with use_loops(way):
                    actual = selector.select(candidates, k, shown=shown, budget=budget)
            except NothingLeftError:
                assert not expected.picks, case
                continue
            oracles.assert_agrees(actual, expected, f"{way}, {selector}, {case}, {conditions}, shown {shown}")


def test_a_damaged_kernel_file_is_refused_or_used_as_it_is(cases: Cases, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    path = tmp_path / "kernel.safetensors"
    rng = np.random.default_rng(0)
    V, skew = rng.normal(size=(5, 3)), [[0.0, 1.0], [-1.0, 0.0]]
    kernels = (
        LowRankKernel(V, V[:, :2], skew, ids=["a", "b", 3, "é", 10**30], W_R=rng.normal(size=(5, 2)), temperature=0.5),
        LinearKernel(V, V[:, :2], skew, W_R=V, temperature=0.2),
        LowRankKernel(V),
    )
    for number, rng in cases(share=0.1):
        kernels[number % 3].save(path)
        path.write_bytes(damage(path.read_bytes(), rng))
        try:
            loaded: Any = type(kernels[number % 3]).load(path)
            candidates = Candidates(rng.normal(size=5), rng.normal(size=(5, 5)), ids=getattr(loaded, "ids", None))
            selection = NDPP(loaded).select(candidates, 3, shown=[1] if rng.integers(2) else ())
        except SetSelectError:
            continue
        assert len(set(selection.indices.tolist())) == 3


# --- perspectives ---------------------------------------------------------------------------------


def test_a_projection_is_that_of_the_reference(cases: Cases) -> None:
    for number, rng in cases(share=0.05):
        case = draw_case(number, rng)
        perspective = (
            rng.normal(size=len(case.query)) if rng.integers(2) else np.round(rng.normal(size=len(case.query)))
        )
        direction, corpus = ("remove", "emphasize")[rng.integers(2)], bool(rng.integers(2))
        unit = oracles.unit(case.query)
        left = oracles.pap(unit, perspective, direction) if perspective.any() else None
        try:
            projected = PAP(perspective, corpus, direction).apply(Candidates(case.query, case.vectors))
        except PerspectiveError:
            assert left is None or np.linalg.norm(left) < 1e-5, case
            continue
        assert left is not None
        tolerance = (1e-5 if oracles.is_single(case.vectors) else 1e-10) / float(np.linalg.norm(left))
        rows = oracles.unit_rows(case.vectors)
        lengths = np.ones(len(rows))
        if corpus:
            rows = np.array([oracles.pap(row, perspective, direction) for row in rows])
            lengths = np.linalg.norm(rows, axis=1)
        expected = oracles.cosines(left, rows)
        # If the projection leaves little of a row, the direction of the rest is rounding error.
        sure = lengths > 1e-3
        np.testing.assert_allclose(projected.relevance[sure], expected[sure], atol=1e3 * tolerance, err_msg=str(case))
