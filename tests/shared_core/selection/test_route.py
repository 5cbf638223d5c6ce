"""The one route against a slow reference: what is read from texts, scaled, left out, dropped and reported."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from setselect import (
    MMR,
    NDPP,
    VRSD,
    Candidates,
    Coverage,
    NothingLeftError,
    Parts,
    References,
    Selection,
    SetSelectWarning,
    TopK,
    find_references,
    match_words,
)
from shared_core.selection.route import Limits, select_set
from shared_core.texts import as_texts
from tests import oracles
from tests.shared_core.cases import PAIRS, TOP_K, Pair, assert_alike, gaussian, names

every_pair = pytest.mark.parametrize("pair", PAIRS, ids=names)


@dataclass(frozen=True)
class Asked:
    """All that a selection depends on; ``columns`` are what :class:`Candidates` take."""

    query: Any
    vectors: Any
    k: int | None
    selector: Any
    columns: dict[str, Any] = field(default_factory=dict)
    question: str | list[str] = ""
    texts: list[str] | None = None
    titles: list[str] | None = None
    scale: Any = None
    shown: list[int] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)

    def select(self) -> Selection:
        """The selection of the route."""
        texts = None if self.texts is None else as_texts(self.texts, self.titles)
        more: dict[str, Any] = {"relevance_scale": self.scale, "shown": self.shown, "limits": self.limits}
        candidates = Candidates(self.query, self.vectors, **self.columns)
        return select_set(candidates, self.selector, self.k, question=self.question, texts=texts, **more)


class Expected(NamedTuple):
    """What the reference selects, in the rows of the question."""

    rows: list[int]
    gains: list[float]
    relevance: list[float]
    referred_by: list[int] | None
    left_out: tuple[int, ...] = ()
    ended: bool = False


NOTHING = Expected([], [], [], None)


def of_rows(column: Any, rows: Sequence[int]) -> Any:
    """A column of the candidates at these rows; a single number is for all of them."""
    if isinstance(column, Parts):
        return Parts(column.covered[rows], column.weights)
    if isinstance(column, References):
        assert column.kinds is not None
        among = np.ix_(rows, rows)
        return References(column.strength[among], column.documents[..., rows], column.kinds[among])
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return column[np.ix_(rows, rows)]
    return [column[row] for row in rows] if isinstance(column, list) else column


def select_slowly(asked: Asked) -> Expected:
    """The reference: one step after the other, each for all rows."""
    everything = list(range(len(asked.vectors)))
    if not asked.limits.drop_copies or asked.texts is None:
        return select_among(asked, everything)
    texts = asked.texts
    kept = [row for row in everything if row in asked.shown or row == preferred_copy(asked, texts[row], row)]
    return select_among(asked, kept)._replace(left_out=tuple(row for row in everything if row not in kept))


def preferred_copy(asked: Asked, text: str, row: int) -> int | None:
    """The one row with this text that stays; None if one was shown."""
    assert asked.texts is not None
    if not text:
        return row
    copies = [other for other, own in enumerate(asked.texts) if own == text]
    if set(copies) & set(asked.shown):
        return None
    relevance, prefer, costs = (asked.columns.get(name) for name in ("relevance", "prefer", "costs"))
    budget, threshold = asked.limits.budget, asked.limits.score_threshold

    def order(copy: int) -> Any:
        dear = costs is not None and budget is not None and costs[copy] > budget
        low = relevance is not None and threshold is not None and relevance[copy] < threshold
        worth = 0 if relevance is None else relevance[copy]
        return (dear or low, 0 if prefer is None else -prefer[copy], -worth, copy)

    return min(copies, key=order)


def select_among(asked: Asked, rows: list[int]) -> Expected:
    """The selection if there were only these rows."""
    columns = {name: of_rows(column, rows) for name, column in asked.columns.items()}
    can = asked.selector.capabilities
    plain = columns.get("relevance")
    if plain is not None and asked.scale:
        columns["relevance"] = oracles.scaled_relevance(plain, asked.scale)
    if plain is None:
        plain = oracles.worth_of(asked.query, asked.vectors[rows], None).tolist()
    if asked.texts is not None:
        texts, titles = of_rows(asked.texts, rows), None if asked.titles is None else of_rows(asked.titles, rows)
        if can.words and "words" not in columns and any(asked.question):
            columns["words"] = match_words(asked.question, texts)
        if can.references and "references" not in columns and any(texts):
            columns["references"] = find_references(texts, titles)
    found = select_up_to(asked, rows, columns, plain, asked.k)
    if asked.limits.min_gain is not None and found.rows:
        first, gains = found.gains[0], np.array(found.gains)
        share = np.exp(np.minimum(gains, 0)) if can.log_gains else gains / first if first > 0 else np.ones(len(gains))
        low = [at for at in range(asked.limits.min_k, len(gains)) if share[at] < asked.limits.min_gain]
        if low:
            return select_up_to(asked, rows, columns, plain, low[0])._replace(ended=True)
    return found


def select_up_to(asked: Asked, rows: list[int], columns: dict[str, Any], plain: Any, k: int | None) -> Expected:
    """Of these rows those above the threshold, and up to k of them."""
    limit = asked.limits.score_threshold
    near = [at for at, row in enumerate(rows) if limit is None or plain[at] >= limit or row in asked.shown]
    shown = [near.index(rows.index(row)) for row in asked.shown]
    if len(near) == len(shown):
        return NOTHING
    of_near = {name: of_rows(column, near) for name, column in columns.items()}
    candidates = Candidates(asked.query, asked.vectors[[rows[at] for at in near]], **of_near)
    size = None if k is None else min(k, len(near) - len(shown))
    try:
        found = asked.selector.select(candidates, size, budget=asked.limits.budget, shown=shown)
    except NothingLeftError:
        return NOTHING
    picks = found.indices.tolist()
    referred = found.referred_by
    return Expected(
        [rows[near[pick]] for pick in picks],
        found.gains.tolist(),
        [plain[near[pick]] for pick in picks],
        None if referred is None else [-1 if by < 0 else rows[near[by]] for by in referred.tolist()],
    )


WORDS = ["a river", "the river of Ghent", "Ghent", "a city by Ann Lee", "Ann Lee", "a sea", "", ""]
SELECTORS = [Coverage(), Coverage(word_weight=0.5, reference_weight=0), MMR(0.4), NDPP(), TopK(), VRSD()]


def draw(number: int) -> Asked:
    rng = np.random.default_rng([77, number])
    selector: Any = SELECTORS[number % len(SELECTORS)]
    n = int(rng.integers(2, 13))
    several = bool(rng.integers(3) == 0) and selector.capabilities.sub_questions
    columns: dict[str, Any] = {}
    if selector.capabilities.relevance and rng.integers(2):
        columns["relevance"] = (rng.integers(-4, 6, size=n) / 4).tolist()
    if rng.integers(2):
        columns["prefer"] = rng.integers(0, 3, size=n).tolist()
    if rng.integers(3) == 0:
        columns |= {"sources": rng.integers(0, 3, size=n).tolist(), "max_per_source": 2}
    if rng.integers(3) == 0:
        columns["drop_near_duplicates"] = 0.5
    if selector.capabilities.words and rng.integers(4) == 0:
        columns["words"] = Parts(rng.random((n, 3)), np.ones(3))
    if selector.capabilities.references and rng.integers(4) == 0:
        columns["references"] = np.float32(rng.random((n, n)) < 0.3)
    budget = None
    if rng.integers(3) == 0:
        columns["costs"], budget = rng.integers(0, 9, size=n).tolist(), float(rng.integers(0, 20))
    limits = Limits(
        budget,
        float(rng.normal() / 2) + 0.01 if rng.integers(2) else None,
        float(rng.uniform(0, 1)) if rng.integers(3) == 0 else None,
        int(rng.integers(1, 4)),
        drop_copies=bool(rng.integers(4)),
    )
    return Asked(
        query=rng.normal(size=(2, 6)) if several else rng.normal(size=6),
        vectors=rng.normal(size=(n, 6)),
        k=None if budget is not None and rng.integers(2) else int(rng.integers(1, 9)),
        selector=selector,
        columns=columns,
        question="" if rng.integers(4) == 0 else ["which river?", "Ann"] if several else "which river in the city?",
        texts=None if rng.integers(6) == 0 else rng.choice(WORDS, size=n).tolist(),
        titles=rng.choice(["", "Ghent", "Ann Lee"], size=n).tolist() if rng.integers(2) else None,
        scale=[None, "minmax", "rank", "sigmoid"][rng.integers(4)],
        shown=rng.permutation(n)[: rng.integers(0, 3)].tolist() if rng.integers(2) else [],
        limits=limits,
    )


def is_too_dear(asked: Asked, expected: Expected) -> bool:
    """Whether nothing is selected because every candidate costs more than the budget."""
    costs, budget = asked.columns.get("costs"), asked.limits.budget
    return costs is not None and not expected.rows and budget is not None and max(costs) > budget


def test_a_selection_is_that_of_the_reference() -> None:
    left_out = ended = empty = referred = 0
    for number in range(600):
        asked = draw(number)
        expected = select_slowly(asked)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = asked.select()
        assert {warning.category for warning in caught} <= {SetSelectWarning}
        assert not caught or is_too_dear(asked, expected) or expected.left_out, asked
        assert found.indices.tolist() == expected.rows, asked
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.relevance, expected.relevance, rtol=0, atol=1e-12)
        assert (found.left_out, found.ended) == (expected.left_out, expected.ended), asked
        if expected.rows:
            assert (None if found.referred_by is None else found.referred_by.tolist()) == expected.referred_by, asked
        left_out, ended = left_out + bool(found.left_out), ended + found.ended
        empty += not len(found)
        referred += found.referred_by is not None and bool((found.referred_by >= 0).any())
    # The agreement says little if the conditions never matter.
    assert min(left_out, ended, empty, referred) > 10


def test_one_more_copy_of_a_text_changes_no_pick() -> None:
    changed = 0
    for number in range(150):
        asked = draw(number)
        if asked.texts is None or not any(asked.texts):
            continue
        rng, n = np.random.default_rng(number), len(asked.texts)
        rows = [*range(n), *rng.choice([row for row in range(n) if asked.texts[row]], size=3).tolist()]
        asked = replace(asked, limits=asked.limits._replace(drop_copies=True))
        more = replace(
            asked,
            vectors=asked.vectors[rows],
            texts=of_rows(asked.texts, rows),
            titles=None if asked.titles is None else of_rows(asked.titles, rows),
            columns={name: of_rows(column, rows) for name, column in asked.columns.items()},
        )
        with warnings.catch_warnings(action="ignore"):
            expected = asked.select()
            assert_alike(more.select(), expected)
            with_copies = replace(more, limits=more.limits._replace(drop_copies=False)).select()
        changed += with_copies.indices.tolist() != expected.indices.tolist()
    assert changed > 25


@every_pair
def test_what_is_too_few_gives_all_or_nothing(pair: Pair) -> None:
    query, vectors = gaussian(8, 6, 9)
    everything = Asked(query, vectors, 100, pair.selector)
    assert sorted(everything.select().indices.tolist()) == list(range(6))
    assert sorted(replace(everything, shown=[2, 0]).select().indices.tolist()) == [1, 3, 4, 5]
    one_source, near = {"sources": "aaaaaa", "max_per_source": 1}, {"drop_near_duplicates": -1.0}
    # Candidates 1 and 2 fit the budget and are of the source of candidate 0. The others do not fit.
    dear = {"costs": [1.0] * 3 + [9.0] * 3, "sources": "aaabbb", "max_per_source": 1}
    conditions: list[tuple[dict[str, Any], list[int], Limits]] = [
        ({}, [], Limits(score_threshold=0.999)),
        ({}, [*range(6)], Limits()),
        (one_source, [4], Limits()),
        (near, [4], Limits(score_threshold=-1.0)),
        (dear, [0], Limits(budget=5)),
    ]
    for columns, shown, limits in conditions:
        found = replace(everything, k=2, columns=columns, shown=shown, limits=limits).select()
        assert found.indices.shape == found.gains.shape == found.relevance.shape == (0,)
        assert found.indices.dtype == np.int64
        assert (found.objective, found.filled_from) == (0.0, None)


def test_a_cosine_equal_to_the_threshold_passes() -> None:
    three = Asked([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], 3, TOP_K.selector)
    assert replace(three, limits=Limits(score_threshold=0.0)).select().indices.tolist() == [0, 1]
    for seed in range(200):
        rng = np.random.default_rng(seed)
        query, other = rng.normal(size=(2, int(rng.integers(1, 1600)))).astype(np.float32)
        scale = np.float32(10.0) ** rng.integers(-15, 15, size=2).astype(np.float32)
        copy = Asked(scale[0] * query, np.stack([other, scale[1] * query]), 2, TOP_K.selector)
        assert 1 in replace(copy, limits=Limits(score_threshold=1.0)).select().indices, seed
    relevance = {"relevance": [0.7, np.nextafter(0.7, 0), 0.9]}
    given = Asked([1.0, 0.0], np.ones((3, 2), np.float32), 3, TOP_K.selector, relevance)
    assert replace(given, limits=Limits(score_threshold=0.7)).select().indices.tolist() == [2, 0]


@pytest.mark.parametrize("score_threshold", [None, -1.0, 0.0])
def test_a_budget_into_which_no_candidate_fits_selects_nothing_and_says_so(score_threshold: float | None) -> None:
    query, vectors = gaussian(1, 11, 12)
    costs = np.full(11, 5.0)
    # It fits, and is below the threshold or was shown.
    last = int(np.argmin(oracles.cosines(query, vectors)))
    costs[last] = 1.0
    shown = [] if score_threshold == 0.0 else [last]
    limits = Limits(budget=4.0, score_threshold=score_threshold)
    with pytest.warns(SetSelectWarning, match="budget=4.* costs 5"):
        assert not len(Asked(query, vectors, 3, VRSD(), {"costs": costs}, shown=shown, limits=limits).select())
