"""The compiled loops: when they are used, and that they select what numpy selects on larger sets and in threads."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import MMR, NDPP, Candidates, Coverage, Parts, Selector, SetSelectWarning
from shared_core.candidates import References
from shared_core.selectors import greedy
from tests.shared_core.cases import gaussian
from tests.shared_core.selectors.loops import use_loops

numba = pytest.importorskip("numba")
if numba.config.DISABLE_JIT:
    pytest.skip("numba is switched off", allow_module_level=True)
from shared_core.selectors import _compiled  # noqa: E402

SELECTORS = [MMR(lambda_mult=0.5), MMR(lambda_mult=0.75), NDPP(), NDPP(relevance_mapping="linear"), Coverage()]
every_selector = pytest.mark.parametrize("selector", SELECTORS, ids=repr)


def text_like(n: int, d: int, seed: int = 0, dtype: Any = np.float32) -> tuple[NDArray[Any], NDArray[Any]]:
    """Vectors in a cone, like the embeddings of texts."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=d)
    return (rng.normal(size=d) + common).astype(dtype), (rng.normal(size=(n, d)) + common).astype(dtype)


def assert_numpy_selects_the_same(selector: Selector, candidates: Candidates, k: int) -> None:
    compiled = selector.select(candidates, k)
    with use_loops("numpy"):
        expected = selector.select(candidates, k)
    assert compiled.indices.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(compiled.gains, expected.gains, atol=1e-5)
    assert np.array_equal(compiled.relevance, expected.relevance)


# --- when they are used ---------------------------------------------------------------------------


@every_selector
def test_the_compiled_loops_are_used(selector: Selector, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            used.append(name)
            return getattr(_compiled, name)

    monkeypatch.setattr(greedy, "compiled_loops", Recorder)
    selector.select(Candidates(*gaussian(0, 20, 8)), 5)
    # NDPP without a kernel is Coverage without parts.
    assert used == ["mmr" if isinstance(selector, MMR) else "coverage"]


@pytest.fixture
def forget_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look for numba anew, before and after the test."""
    monkeypatch.setattr(greedy, "_numba_failed", False)
    greedy._import_loops.cache_clear()
    yield
    greedy._import_loops.cache_clear()


class NoSpace:
    """Compiled loops that cannot write their machine code."""

    def __getattr__(self, name: str) -> Any:
        raise OSError("no space left on device")


@pytest.mark.usefixtures("forget_numba")
@pytest.mark.parametrize("how", ["missing", "switched off", "for another numpy", "full disk"])
def test_without_numba_numpy_selects_the_same(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = Candidates(*text_like(300, 64))
    expected = [selector.select(candidates, 12).indices.tolist() for selector in SELECTORS]
    greedy._import_loops.cache_clear()
    if how == "switched off":
        # numba reads NUMBA_DISABLE_JIT into this setting.
        monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    elif how == "missing":
        monkeypatch.setitem(sys.modules, "numba", None)
    elif how == "for another numpy":
        (tmp_path / "numba.py").write_text('raise ImportError("Numba needs NumPy 2.9 or less. Got NumPy 3.0.")')
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "numba")
    else:
        monkeypatch.setattr(greedy, "_import_loops", functools.cache(NoSpace))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for selector, picks in zip(SELECTORS, expected, strict=True):
            assert selector.select(candidates, 12).indices.tolist() == picks
    assert [w.category for w in caught] == [SetSelectWarning] * (how in ("for another numpy", "full disk"))
    assert greedy.compiled_loops() is None


# --- larger sets ----------------------------------------------------------------------------------


@every_selector
@pytest.mark.parametrize("quality", [False, True], ids=["", "quality"])
def test_larger_sets(selector: Selector, quality: bool) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        query, vectors = text_like(400 + 50 * seed, 48, seed)
        if seed % 2:
            # Copies in the last rows, which BLAS sums in another order, and lengths far from 1.
            vectors[-30:] = vectors[:30]
            vectors *= rng.uniform(0.01, 100, size=(len(vectors), 1)).astype(np.float32)
        candidates = Candidates(query, vectors, quality=rng.random(len(vectors)) if quality else None)
        assert_numpy_selects_the_same(selector, candidates, 40)


@pytest.mark.parametrize("kind", ["duplicates", "flat quality", "low rank", "clusters"])
def test_mmr_where_the_bound_of_the_compiled_loop_excludes_few_candidates(kind: str) -> None:
    rng = np.random.default_rng(405)
    n, d = 600, 32
    vectors = rng.normal(size=(n, d))
    if kind == "duplicates":
        vectors = vectors[rng.integers(0, 60, size=n)]
    elif kind == "low rank":
        vectors = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d))
    elif kind == "clusters":
        vectors = vectors[rng.integers(0, 12, size=n)] + 0.2 * vectors
    quality = 0.5 + 1e-4 * rng.random(n) if kind == "flat quality" else None
    candidates = Candidates(rng.normal(size=d), vectors, quality=quality)
    for lambda_mult in (0.0, 0.1, 0.5):
        assert_numpy_selects_the_same(MMR(lambda_mult, 0.1), candidates, 40)


@pytest.mark.parametrize("kind", ["text-like", "nearly flat relevance", "copies", "words of few texts"])
def test_coverage_where_the_bound_of_the_compiled_loop_excludes_few_candidates(kind: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, d, m = 1500, 24, 6
        query, vectors = np.ones(d), 1 + rng.normal(size=(n, d))
        if kind == "nearly flat relevance":
            # A rounding error of a cosine is about a hundredth of their standard deviation.
            vectors -= vectors @ np.outer(query, query) / d
            vectors += np.linalg.norm(vectors, axis=1)[:, None] * rng.normal(size=(n, 1)) * 1e-14
        elif kind == "copies":
            vectors = vectors[rng.integers(0, 40, size=n)]
        covered = rng.random((n, m)) * (rng.random((n, m)) < 0.3)
        if kind == "words of few texts":
            covered[rng.random(n) < 0.95] = 0
        words = Parts(covered, rng.random(m))
        named = np.float32(rng.random((n, n)) * (rng.random((n, n)) < 0.01))
        references = References(named, rng.integers(0, n // 2, size=n))
        labels = rng.choice(["a", "b", "c"], size=n)
        candidates = Candidates(query, vectors, words=words, references=references, cover=labels)
        assert_numpy_selects_the_same(Coverage(), candidates, 40)


# --- threads --------------------------------------------------------------------------------------


@every_selector
def test_threads_side_by_side_select_what_one_thread_selects(selector: Selector) -> None:
    sets = [Candidates(*text_like(120, 64, seed)) for seed in range(40)]

    def pick(candidates: Candidates) -> list[int]:
        picks: list[int] = selector.select(candidates, 10).indices.tolist()
        return picks

    alone = [pick(candidates) for candidates in sets]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(pick, sets)) == alone
