"""The lazy path of MMR: the same answer as the slow reference and as the full pass, wherever the paths part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import MMR, BudgetError, Candidates, NothingLeftError, Selection, select
from shared_core.selectors import compiled, lazy
from shared_core.selectors.lazy import Front, lazy_pays
from tests import oracles
from tests.shared_core.cases import MMR_PLAIN, Pair, draw, grids, random_cases

NEVER = 10**9


@pytest.fixture(scope="module", autouse=True)
def by_numpy() -> Iterator[None]:
    """Compiled loops have a lazy way of their own, and take precedence."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_loops", lambda: None)
        yield


both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@contextmanager
def path(*, lazily: bool, block: int = 2, steps: int = 1, widest: float = 0.5) -> Iterator[None]:
    """One path for all sizes, with a front so small that it must widen, be cut back and be begun anew."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FROM_RELEVANT", "FROM_NOVEL"):
            patch.setattr(lazy, name, 1 if lazily else NEVER)
        patch.setattr(lazy, "LEAST_PICKS", 1)
        for name, value in {"BLOCK": block, "LEAST_STEPS": steps, "WIDEST": widest}.items():
            patch.setattr(lazy, name, value)
        yield


def both(selector: MMR, candidates: Candidates, k: int | None, **conditions: Any) -> tuple[Selection, Selection]:
    with path(lazily=True):
        lazily = selector.select(candidates, k, **conditions)
    with path(lazily=False):
        fully = selector.select(candidates, k, **conditions)
    return lazily, fully


def assert_same(lazily: Selection, fully: Selection, dtype: Any, about: Any = "") -> None:
    assert lazily.indices.tolist() == fully.indices.tolist(), about
    # A product of a few rows sums in another order than one of all.
    room = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(lazily.gains, fully.gains, rtol=0, atol=room, err_msg=str(about))
    assert np.array_equal(lazily.relevance, fully.relevance)


def test_a_thousand_cases_agree_with_the_reference() -> None:
    for case in random_cases(400):
        with path(lazily=True, block=1 + case.number % 4, steps=1 + case.number % 3):
            MMR_PLAIN.check(case, quality=case.number % 4 == 0)


@pytest.mark.parametrize("lambda_d", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_every_lambda_agrees_with_the_reference(lambda_d: float) -> None:
    def reference(*args: Any, **more: Any) -> oracles.Reference:
        return oracles.mmr(*args, lambda_d=lambda_d, lambda_b=0.6, **more)

    pair = Pair(f"MMR({lambda_d})", MMR(lambda_d, 0.6), reference)
    for case in random_cases(401, 120):
        with path(lazily=True):
            pair.check(case, quality=case.number % 2 == 0)


@settings(deadline=None, derandomize=True)
@given(grids(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.integers(1, 3), st.integers(1, 3))
def test_agrees_where_everything_ties(
    data: tuple[NDArray[np.float64], NDArray[np.float64], int], lambda_d: float, block: int, steps: int
) -> None:
    query, vectors, k = data
    with path(lazily=True, block=block, steps=steps):
        actual = MMR(lambda_d).select(Candidates(query, vectors), k)
    oracles.assert_agrees(actual, oracles.mmr(query, vectors, k, lambda_d=lambda_d), data)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.integers(0, 2**32 - 1), st.data())
def test_agrees_with_the_full_pass_under_limits_and_after_shown(seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    case = draw(data.draw(st.integers(0, 11)), rng)
    n = len(case.vectors)
    shown = data.draw(st.lists(st.integers(0, n - 1), max_size=min(3, n - 1), unique=True))
    limits: dict[str, Any] = {}
    conditions: dict[str, Any] = {"shown": shown}
    if data.draw(st.booleans()):
        limits |= {"costs": rng.integers(1, 4, size=n)}
        conditions["budget"] = float(rng.integers(3, 12))
    if data.draw(st.booleans()):
        limits |= {"sources": rng.integers(0, 4, size=n).tolist(), "max_per_source": len(shown) + 2}
    if data.draw(st.booleans()):
        # Above every cosine but those of copies.
        limits["drop_near_duplicates"] = 0.9999
    if data.draw(st.booleans()):
        limits["quality"] = case.quality
    candidates = Candidates(case.query, case.vectors, **limits)
    k = data.draw(st.integers(1, n - len(shown)))
    selector = MMR(data.draw(st.sampled_from([0.2, 0.5, 0.8])))
    try:
        with path(lazily=False):
            fully = selector.select(candidates, k, **conditions)
    except (BudgetError, NothingLeftError) as error:
        with path(lazily=True), pytest.raises(type(error)):
            selector.select(candidates, k, **conditions)
        return
    with path(lazily=True, block=data.draw(st.integers(1, 8))):
        lazily = selector.select(candidates, k, **conditions)
    assert_same(lazily, fully, case.vectors.dtype, (str(case), limits, conditions))


@both_dtypes
def test_of_exact_copies_the_lower_index_wins(dtype: Any) -> None:
    rng = np.random.default_rng(402)
    for _ in range(150):
        n, d = int(rng.integers(2, 70)), int(rng.integers(2, 80))
        copies = int(rng.integers(1, n))
        vectors = rng.normal(size=(n, d)).astype(dtype)
        source = rng.integers(0, n - copies, size=copies)
        vectors[n - copies :] = vectors[source]
        with path(lazily=True, block=int(rng.integers(1, 9))):
            candidates = Candidates(rng.normal(size=d).astype(dtype), vectors)
            picks = MMR(0.6).select(candidates, int(rng.integers(1, min(n, 12) + 1))).indices
        kind = np.concatenate([np.arange(n - copies), source])
        for position, pick in enumerate(picks):
            earlier = [i for i in range(pick) if kind[i] == kind[pick] and i not in picks[:position]]
            assert not earlier, f"n={n} d={d}: {pick} was picked before its copy {earlier} ({picks})"


@both_dtypes
def test_of_nothing_but_copies_the_first_are_picked(dtype: Any) -> None:
    for n in (3, 17, 64):
        query, row = np.random.default_rng(n).normal(size=(2, 19)).astype(dtype)
        with path(lazily=True):
            assert MMR().select(Candidates(query, np.tile(row, (n, 1))), 3).indices.tolist() == [0, 1, 2]


def test_a_waiting_candidate_that_ties_with_the_front_goes_first_by_its_index() -> None:
    # After row 5, rows 0 and 4 score the same to the last bit but one: 4 is at the front, 0 waits just below it.
    step = 8 * np.finfo(np.float32).eps
    relevance = np.array([0.5 - step, 0.1, 0.1, 0.1, 0.5, 0.9, 0.1, 0.1])
    vectors = np.zeros((8, 10), dtype=np.float32)
    vectors[:, 0] = relevance
    vectors[np.arange(8), np.arange(8) + 1] = np.sqrt(1 - relevance**2)
    query = np.eye(10, dtype=np.float32)[0]
    for lazily in (False, True):
        with path(lazily=lazily, block=1):
            assert MMR(0.9).select(Candidates(query, vectors), 2).indices.tolist() == [5, 0]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(2, 20), st.data())
def test_a_permutation_of_the_candidates_permutes_the_answer(seed: int, n: int, d: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    query, vectors, order = rng.normal(size=d), rng.normal(size=(n, d)), rng.permutation(n)
    k = data.draw(st.integers(1, n))
    with path(lazily=True, block=3):
        straight = MMR(0.6).select(Candidates(query, vectors), k)
        permuted = MMR(0.6).select(Candidates(query, vectors[order]), k)
    assert order[permuted.indices].tolist() == straight.indices.tolist()
    np.testing.assert_allclose(permuted.gains, straight.gains, rtol=0, atol=1e-12)


# --- the rule -------------------------------------------------------------------------------------


@both_dtypes
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("lambda_d", "name"), [(0.75, "FROM_RELEVANT"), (0.5, "FROM_NOVEL")])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_both_sides_of_the_crossover_agree(
    lambda_d: float, name: str, off: int, scaled: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = getattr(lazy, name) + off
    rng = np.random.default_rng([403, n])
    vectors = rng.normal(size=(n, 24)) + 0.5
    if scaled:
        vectors *= np.exp(rng.normal(size=(n, 1)))
    candidates = Candidates(rng.normal(size=24).astype(dtype) + 0.5, vectors.astype(dtype))
    begun: list[int] = []
    begin = Front._begin
    monkeypatch.setattr(Front, "_begin", lambda self: (begun.append(1), begin(self))[1])
    by_rule = MMR(lambda_d).select(candidates, 20)
    assert bool(begun) == (off >= 0)
    monkeypatch.setattr(lazy, name, NEVER)
    fully = MMR(lambda_d).select(candidates, 20)
    monkeypatch.setattr(lazy, name, 1)
    lazily = MMR(lambda_d).select(candidates, 20)
    assert_same(lazily, fully, dtype)
    assert_same(by_rule, fully, dtype)


@pytest.mark.parametrize("k", [lazy.LEAST_PICKS - 1, lazy.LEAST_PICKS, lazy.LEAST_PICKS + 1])
def test_both_sides_of_the_least_k_agree(k: int) -> None:
    rng = np.random.default_rng(404)
    query, vectors = rng.normal(size=16), rng.normal(size=(lazy.FROM_NOVEL, 16))
    by_rule = select(query, vectors, k, "mmr")
    with path(lazily=False):
        assert_same(by_rule, select(query, vectors, k, "mmr"), np.float64)
    assert lazy_pays(lazy.FROM_NOVEL, k, 0.5, 0.5) == (k >= lazy.LEAST_PICKS)


@pytest.mark.parametrize("steps", [1, 4, NEVER])
@pytest.mark.parametrize("kind", ["duplicates", "flat quality", "low rank", "clusters"])
def test_where_bounds_are_loose_the_front_gives_up_and_the_answer_stays(kind: str, steps: int) -> None:
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
    for lambda_d in (0.0, 0.1, 0.5):
        selector = MMR(lambda_d, 0.1)
        with path(lazily=True, block=16, steps=steps, widest=0.125):
            lazily = selector.select(candidates, 40)
        with path(lazily=False):
            fully = selector.select(candidates, 40)
        assert_same(lazily, fully, np.float64, (kind, lambda_d))


def test_a_front_that_all_limits_closed_lets_others_come() -> None:
    # The sixteen most relevant are of one source, of which one may be picked.
    rng = np.random.default_rng(406)
    vectors = rng.normal(size=(100, 12))
    query = rng.normal(size=12)
    order = np.argsort(-oracles.cosines(query, vectors))
    sources = np.arange(100)
    sources[order[:16]] = 1000
    candidates = Candidates(query, vectors, sources=sources.tolist(), max_per_source=1)
    lazily, fully = both(MMR(0.95), candidates, 10)
    assert_same(lazily, fully, np.float64)
    assert sum(sources[i] == 1000 for i in lazily.indices) == 1


def test_the_candidates_stay_as_they_are() -> None:
    rng = np.random.default_rng(407)
    query, vectors = rng.normal(size=8), rng.normal(size=(50, 8))
    kept = vectors.tobytes()
    with path(lazily=True):
        first, second = select(query, vectors, 20, "mmr"), select(query, vectors, 20, "mmr")
    assert vectors.tobytes() == kept
    assert np.array_equal(first.gains, second.gains)
