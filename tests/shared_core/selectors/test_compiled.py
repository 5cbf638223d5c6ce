"""When the compiled loops are taken, and that both ways agree where they meet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import (
    MMR,
    VRSD,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    Selection,
    Selector,
    SetSelectWarning,
    select,
    select_many,
    select_stream,
)
from shared_core.batch.select_many import select_many as batch
from shared_core.selectors import compiled
from shared_core.selectors.compiled import MOST_BYTES
from tests import oracles
from tests.shared_core.cases import MMR_PLAIN, VRSD_GREEDY, VRSD_REFINED, Pair, gaussian, random_cases

numba = pytest.importorskip("numba")

SELECTORS = [MMR(lambda_d=0.5), MMR(), VRSD(), VRSD(refine=True)]
every_selector = pytest.mark.parametrize("selector", SELECTORS, ids=repr)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the compiled loops that were called."""
    loops = compiled._loops()
    called: list[str] = []

    class Told:
        def __getattr__(self, name: str) -> Any:
            called.append(name)
            return getattr(loops, name)

    told = Told()
    monkeypatch.setattr(compiled, "_loops", lambda: told)
    return called


def by_numpy(selector: Selector, candidates: Candidates, k: int, **conditions: Any) -> Selection:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_loops", lambda: None)
        return selector.select(candidates, k, **conditions)


def text_like(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=d)
    return (rng.normal(size=d) + common).astype(np.float32), (rng.normal(size=(n, d)) + common).astype(np.float32)


@every_selector
def test_the_loops_are_taken_where_numba_is_installed(selector: Selector, calls: list[str]) -> None:
    selector.select(Candidates(*gaussian(0, 20, 8)), 5)
    assert calls[0] == ("pick_marginal" if isinstance(selector, MMR) else "pick_sum")
    assert ("exchange" in calls) == (selector == VRSD(refine=True))


@every_selector
@pytest.mark.parametrize("limit", ["budget", "max_per_source", "drop_near_duplicates"])
def test_under_a_limit_numpy_chooses(selector: Selector, limit: str, calls: list[str]) -> None:
    more: dict[str, Any] = {
        "budget": {"costs": [1.0] * 20},
        "max_per_source": {"sources": [i % 4 for i in range(20)], "max_per_source": 2},
        "drop_near_duplicates": {"drop_near_duplicates": 0.9},
    }[limit]
    candidates = Candidates(*gaussian(0, 20, 8), **more)
    selector.select(candidates, 5, budget=4.0 if limit == "budget" else None)
    assert not calls


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("refine", [False, True])
def test_both_sides_of_the_crossover_agree_with_the_reference(more: int, refine: bool, calls: list[str]) -> None:
    d = 2048
    n = MOST_BYTES // (4 * d) + more
    query, vectors = text_like(n, d)
    selection = VRSD(refine).select(Candidates(query, vectors), 6)
    assert bool(calls) == (more <= 0)
    if refine:
        oracles.assert_refined(selection, oracles.vrsd_refined(query, vectors, 6), query, vectors, k=6)
    else:
        oracles.assert_agrees(selection, oracles.vrsd(query, vectors, 6))


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("lambda_d", [0.5, 0.75])
def test_both_sides_of_the_crossover_of_marginal_relevance_agree(
    more: int, lambda_d: float, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "MOST_BOUNDS", 1500)
    query, vectors = text_like(1500 + more, 32)
    selection = MMR(lambda_d).select(Candidates(query, vectors), 9)
    assert bool(calls) == (more <= 0 or lambda_d == 0.5)
    oracles.assert_agrees(selection, oracles.mmr(query, vectors, 9, lambda_d=lambda_d))
    many = select_many(query[None], vectors, 9, MMR(lambda_d))
    assert many.indices[0].tolist() == selection.indices.tolist()


@pytest.fixture
def found_anew() -> Iterator[None]:
    compiled._loops.cache_clear()
    yield
    compiled._loops.cache_clear()


@pytest.mark.parametrize(
    "line",
    ['raise ImportError("Numba needs NumPy 2.9 or less. Got NumPy 3.0.")', 'raise OSError("no libllvm")', ""],
)
def test_a_numba_that_cannot_be_used_is_told_once(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found_anew: None
) -> None:
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "numba")
    candidates = Candidates(*gaussian(0, 20, 8))
    with pytest.warns(SetSelectWarning, match="numba is installed but cannot be used"):
        first = VRSD().select(candidates, 3)
    # Once: any other warning is an error in these tests.
    assert VRSD().select(candidates, 3).indices.tolist() == first.indices.tolist()


def test_where_numba_is_told_not_to_compile_numpy_chooses(monkeypatch: pytest.MonkeyPatch, found_anew: None) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert compiled._loops() is None


@every_selector
def test_without_numba_the_picks_are_the_same(selector: Selector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled._loops.cache_clear()
    query, vectors = text_like(300, 64)
    try:
        without = selector.select(Candidates(query, vectors), 12)
        assert compiled._loops() is None
    finally:
        compiled._loops.cache_clear()
    monkeypatch.undo()
    assert selector.select(Candidates(query, vectors), 12).indices.tolist() == without.indices.tolist()


@every_selector
@pytest.mark.parametrize("quality", [False, True])
def test_larger_sets_agree_with_numpy(selector: Selector, quality: bool) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        query, vectors = text_like(400 + 50 * seed, 48, seed)
        if seed % 2:
            # Copies, at the ends of blocks too, and lengths far from 1.
            vectors[-30:] = vectors[:30]
            vectors *= rng.uniform(0.01, 100, size=(len(vectors), 1)).astype(np.float32)
        candidates = Candidates(query, vectors, quality=rng.random(len(vectors)) if quality else None)
        shown = rng.permutation(len(vectors))[: seed % 3].tolist()
        one = selector.select(candidates, 40, shown=shown)
        other = by_numpy(selector, candidates, 40, shown=shown)
        assert one.indices.tolist() == other.indices.tolist()
        np.testing.assert_allclose(one.gains, other.gains, atol=1e-5)
        assert np.array_equal(one.relevance, other.relevance)


@pytest.mark.parametrize("pair", [MMR_PLAIN, VRSD_GREEDY, VRSD_REFINED], ids=lambda pair: pair.name)
def test_to_the_last_candidate_the_order_is_the_references(pair: Pair) -> None:
    for case in random_cases(910, 120):
        pair.check(case, k=len(case.vectors))


@every_selector
def test_threads_side_by_side_choose_as_one_does(selector: Selector) -> None:
    sets = [Candidates(*text_like(120, 64, seed)) for seed in range(40)]
    alone = [selector.select(candidates, 10).indices.tolist() for candidates in sets]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda candidates: selector.select(candidates, 10).indices.tolist(), sets))
    assert together == alone


def test_where_no_folder_can_keep_machine_code_it_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from shared_core.selectors import _compiled as loops

    def njit(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return numba.njit(**options)

    monkeypatch.setattr(loops, "njit", njit)
    assert loops.as_machine_code()(lambda a: a + 1)(1) == 2
