"""Properties of Coverage beside those of every selector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, Coverage, InvalidParameterError, Parts, Selection, select
from shared_core.candidates import REFERENCE_KINDS, References
from shared_core.selectors.coverage import COVERED, REFERRED, RIDGE, TEMPERATURE, WORDS_IN_RELEVANCE
from tests.shared_core.cases import assert_alike, draw_relevance, gaussian, random_cases

quick = settings(deadline=None, derandomize=True, max_examples=40)
pytestmark = pytest.mark.usefixtures("either_way")


def gain_of(i: int, candidates: dict[str, Any], shown: list[int], selector: Coverage | None = None) -> float:
    """What candidate i adds to the shown ones: no other candidate fits into the budget."""
    costs = np.arange(len(candidates["vectors"])) != i
    found = (selector or Coverage()).select(Candidates(**candidates, costs=costs * 1.0), budget=0, shown=shown)
    assert found.indices.tolist() == [i]
    return float(found.gains[0])


def random_parts(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Words and values of n candidates; a third of the words stand in a candidate."""
    covered = rng.random((n, 6)) * (rng.random((n, 6)) < 0.3)
    return {"words": Parts(covered, rng.random(6) + 0.1), "cover": rng.choice(["a", "b", "c"], size=n)}


# --- without words --------------------------------------------------------------------------------


def test_without_words_and_parts_it_is_ndpp_of_its_temperature_and_ridge() -> None:
    for case in random_cases(70, 96):
        more = {"relevance": draw_relevance(case)} if case.number % 3 == 0 else {}
        candidates = Candidates(case.query, case.vectors, **more)
        shown = case.rng.permutation(len(case.vectors))[: case.number % 3].tolist()
        k = min(case.k, len(case.vectors) - len(shown))
        sigma = float(candidates.relevance.astype(np.float64).std())
        if k and sigma > 1e-3:
            ndpp = NDPP(temperature=TEMPERATURE * sigma, ridge=RIDGE)
            ours, theirs = (one.select(candidates, k, shown=shown) for one in (Coverage(), ndpp))
            assert ours.indices.tolist() == theirs.indices.tolist(), case


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 15))
def test_a_weight_of_zero_is_as_if_nothing_was_given(seed: int, n: int) -> None:
    query, vectors = gaussian(seed, n, 6)
    parts = random_parts(np.random.default_rng(seed), n)
    plain, both = Candidates(query, vectors), Candidates(query, vectors, **parts)
    assert_alike(Coverage(word_weight=0, cover_weight=0).select(both, n), Coverage().select(plain, n))
    without_words = Coverage().select(Candidates(query, vectors, cover=parts["cover"]), n)
    assert_alike(Coverage(word_weight=0).select(both, n), without_words)
    # Words that weigh nothing, no words at all, and no values.
    nothing = {"words": Parts(parts["words"].covered, np.zeros(6)), "cover": [None] * n}
    assert_alike(Coverage().select(Candidates(query, vectors, **nothing), n), Coverage().select(plain, n))
    none = {"words": Parts(np.zeros((n, 0)), np.zeros(0)), "cover": np.zeros((n, 0))}
    assert_alike(Coverage().select(Candidates(query, vectors, **none), n), Coverage().select(plain, n))


# --- what a set covers ----------------------------------------------------------------------------


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 15), data=st.data())
def test_the_gain_of_a_candidate_never_rises(seed: int, n: int, data: st.DataObject) -> None:
    query, vectors = gaussian(seed, n, 6)
    candidates = {"query": query, "vectors": vectors, **random_parts(np.random.default_rng(seed), n)}
    order = data.draw(st.permutations(range(n)))
    i, larger = order[0], order[1:]
    smaller = larger[: data.draw(st.integers(0, n - 2))]
    assert gain_of(i, candidates, larger) <= gain_of(i, candidates, smaller) + 1e-9
    by_itself = Coverage().select(Candidates(**candidates), n)
    assert (np.diff(by_itself.gains) <= 1e-9).all()


# --- words ----------------------------------------------------------------------------------------

TEXTS = [
    "the river of Paris",
    "the rivers of Paris, and the bridges",
    "the Seine is long",
    "the long bridges of the Seine",
    "the weather",
]


def of_words(question: str, texts: list[str] = TEXTS, k: int = 5, **parameters: Any) -> Selection:
    query, vectors = gaussian(5, len(texts), 8)
    return select(query, vectors, k, question=question, texts=texts, **parameters)


@pytest.mark.parametrize("question", ["", "?", "the", "zzz"])
def test_a_question_that_tells_no_text_from_another_leaves_it_to_the_vectors(question: str) -> None:
    query, vectors = gaussian(5, 5, 8)
    assert_alike(of_words(question), select(query, vectors, 5))
    assert_alike(of_words("the river", ["", "", "?"], 3), of_words(question, ["one"] * 3, 3))
    assert of_words(question, ["one text"], 1).indices.tolist() == [0]


def test_words_count_in_the_relevance_and_once_in_what_the_set_covers() -> None:
    # β is 0.3, 0.1 and 0.6. The standard deviation of the relevance is 2, and all vectors are orthogonal.
    covered = np.array([[1.0, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1]])
    candidates = {"query": np.ones(4), "vectors": np.eye(4), "relevance": [7.0, 7, 3, 3]}
    words = {"words": Parts(covered, np.array([3.0, 1, 6]))}
    of_words = np.array([0.4, 0.1, 0.9, 0.6])
    rho = np.array([1, 1, -1, -1]) + WORDS_IN_RELEVANCE * (of_words - of_words.mean()) / of_words.std()
    for i, new in enumerate(of_words):
        expected = (rho[i] - rho.max()) / rho.std() / TEMPERATURE + COVERED * new
        assert gain_of(i, candidates | words, []) == pytest.approx(expected, abs=1e-12)


# --- what the question names exactly --------------------------------------------------------------


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 40), named=st.integers(1, 4))
def test_a_set_has_a_candidate_for_all_that_the_question_names_exactly(seed: int, n: int, named: int) -> None:
    query, vectors = gaussian(seed, n, 6)
    rng = np.random.default_rng(seed)
    exact = rng.random((n, named)) < 0.2
    parts = random_parts(rng, n)
    with_names = parts | {"words": parts["words"]._replace(exact=exact), "references": random_references(rng, n)}
    found = Coverage().select(Candidates(query, vectors, **with_names), named)
    assert (exact[found.indices].any(axis=0) == exact.any(axis=0)).all()
    # What no candidate, or a shown one, contains changes nothing.
    nothing = parts | {"words": parts["words"]._replace(exact=np.zeros((n, named), bool))}
    plain = Candidates(query, vectors, **parts)
    assert_alike(Coverage().select(Candidates(query, vectors, **nothing), n), Coverage().select(plain, n))
    first = parts | {"words": parts["words"]._replace(exact=np.arange(n)[:, None] == 0)}
    shown = Coverage().select(Candidates(query, vectors, **first), n - 1, shown=[0])
    assert_alike(shown, Coverage().select(plain, n - 1, shown=[0]))
    off = Coverage(word_weight=0).select(Candidates(query, vectors, **first), n)
    assert_alike(off, Coverage(word_weight=0).select(plain, n))


# --- names in texts -------------------------------------------------------------------------------


def random_references(rng: np.random.Generator, n: int) -> References:
    """Candidates of which some share a name or a section, with references of every kind."""
    named = np.round(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 2)
    kinds = rng.integers(0, len(REFERENCE_KINDS), size=(n, n))
    return References(np.float32(named), rng.integers(0, n, size=(len(REFERENCE_KINDS), n)), kinds)


def test_a_candidate_that_an_earlier_text_names_is_preferred_and_says_by_which() -> None:
    # The last ten are irrelevant.
    query = np.eye(16)[0]
    vectors = np.column_stack([[0.9, 0.8, 0.7, 0.6, 0.6, *[0.0] * 10], np.eye(15)])
    named = np.zeros((15, 15))
    named[0, 3], named[3, 1], named[2, 4] = 1, 1, 1
    plain, bridged = Candidates(query, vectors), Candidates(query, vectors, references=named)
    assert Coverage().select(plain, 3).indices.tolist() == [0, 1, 2]
    found = Coverage().select(bridged, 3)
    assert found.indices.tolist() == [0, 3, 1]
    assert found.referred_by.tolist() == [-1, 0, 3]  # type: ignore[union-attr]
    after = Coverage().select(bridged, 1, shown=[2])
    assert (after.indices.tolist(), after.referred_by.tolist()) == ([4], [2])  # type: ignore[union-attr]
    # A text of the same name is there already.
    one_name = References(np.float32(named), np.array([0, 1, 4, 0, 4, *range(5, 15)]))
    found = Coverage().select(Candidates(query, vectors, references=one_name), 3)
    assert found.indices.tolist() == [0, 1, 2]
    assert found.referred_by.tolist() == [-1, -1, -1]  # type: ignore[union-attr]


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 15))
def test_what_names_nothing_changes_nothing(seed: int, n: int) -> None:
    query, vectors = gaussian(seed, n, 6)
    rng = np.random.default_rng(seed)
    given_ = {"query": query, "vectors": vectors, **random_parts(rng, n)}
    references = random_references(rng, n)
    plain, bridged = Candidates(**given_), Candidates(**given_, references=references)
    expected = Coverage().select(plain, n)
    assert expected.referred_by is None
    one_name = references._replace(documents=np.zeros(n, np.int64))
    for without in (np.zeros((n, n)), one_name):
        nothing = Coverage().select(Candidates(**given_, references=without), n)
        assert_alike(nothing, expected)
        assert nothing.referred_by.tolist() == [-1] * n  # type: ignore[union-attr]
    off = Coverage(reference_weight=0, neighbour_weight=0).select(bridged, n)
    assert_alike(off, expected)
    assert off.referred_by is None
    itself = references.strength.copy()
    np.fill_diagonal(itself, rng.random(n))
    itself_too = Candidates(**given_, references=references._replace(strength=itself))
    assert_alike(Coverage().select(itself_too, n), Coverage().select(bridged, n))


# --- the shares of a pick's worth -----------------------------------------------------------------


def test_the_shares_are_those_of_the_relevance_the_new_parts_and_the_bonus() -> None:
    # σ of the relevance is 2, and no vector repeats another.
    named = np.zeros((4, 4))
    named[1, 3] = 0.5
    given_ = {"query": np.ones(4), "vectors": np.eye(4), "relevance": [7.0, 7, 3, 3], "references": named}
    covered = Parts(np.array([[1.0, 0, 0], [0.5, 1, 0], [0, 0, 0], [0, 0, 1]]), np.array([1.0, 1, 2]))
    # Candidates 2 and 3 count e^-2 as much as the most relevant ones, and get half of a bonus.
    part = COVERED / TEMPERATURE / 4
    worth = {
        1: [2 / TEMPERATURE, 1.5 * part, 0],
        0: [2 / TEMPERATURE, 0.5 * part, 0],
        2: [0, 0, 0],
        3: [0, 2 * part * math.exp(-2), 0.5 * 0.5 * REFERRED[0]],
    }
    found = Coverage().select(Candidates(**given_, cover=covered), 4)
    assert found.indices.tolist()[0] == 1, "else candidate 3 gets no bonus"
    assert found.shares is not None
    for row, shares in zip(found.indices.tolist(), found.shares, strict=True):
        np.testing.assert_allclose(shares, np.array(worth[row]) / (sum(worth[row]) or 1), atol=1e-12)
    # What the shown text covers is not new.
    after = Coverage().select(Candidates(**given_, cover=covered), 1, shown=[1, 0, 3])
    assert after.shares is not None
    assert after.shares.tolist() == [[0, 0, 0]]


# --- numbers at the ends of the range -------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"word_weight": 1e6, "cover_weight": 1e6, "reference_weight": 1e6, "neighbour_weight": 1e6},
        {"ridge": 1e-4},
        {"ridge": 1e300},
    ],
)
def test_parameters_at_the_ends_of_their_range(parameters: dict[str, float]) -> None:
    for case in random_cases(71, 36):
        n = len(case.vectors)
        relevance: NDArray[np.float64] | None = case.rng.normal(size=n) * 1e307 if case.number % 3 == 0 else None
        parts = random_parts(case.rng, n)
        references = random_references(case.rng, n)
        candidates = Candidates(case.query, case.vectors, relevance=relevance, references=references, **parts)
        found = Coverage(**parameters).select(candidates, n)
        assert sorted(found.indices.tolist()) == list(range(n))
        assert np.isfinite(found.gains).all()
        assert found.shares is not None
        np.testing.assert_allclose(found.shares.sum(axis=1), found.shares.any(axis=1), atol=1e-12)


@pytest.mark.parametrize("name", ["word_weight", "cover_weight", "reference_weight", "neighbour_weight", "ridge"])
def test_a_parameter_out_of_range_is_refused(name: str) -> None:
    for value in (-0.1, np.nan, np.inf, "1", True, None):
        with pytest.raises(InvalidParameterError, match=name):
            Coverage(**{name: value})
