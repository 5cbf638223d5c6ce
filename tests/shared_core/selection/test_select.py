"""``select``: its arguments reach the selector as they are, and wrong ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from setselect import (
    MMR,
    NDPP,
    SCALES,
    VRSD,
    Candidates,
    Coverage,
    InvalidInputError,
    InvalidParameterError,
    LowRankKernel,
    find_references,
    make_selector,
    match_words,
    rescale,
    select,
    select_many,
    select_stream,
)
from tests.shared_core.cases import RELEVANCE_PAIRS, Pair, gaussian, names, random_cases, same

NAMES = ("similarity", "vrsd", "mmr", "ndpp", "coverage")
QUERY, VECTORS = gaussian(90, 11, 5)


@pytest.mark.parametrize("name", NAMES)
def test_it_gives_the_selection_of_the_selector(name: str) -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = make_selector(name).select(Candidates(query, vectors), 5)
    assert same(select(query, vectors, 5, name), expected)
    assert same(select(query.tolist(), list(vectors), k=5, selector=make_selector(name)), expected)
    if name == "coverage":
        assert same(select(query, vectors, 5), expected)


def test_every_argument_is_passed_on() -> None:
    query, vectors = gaussian(2, 20, 8)
    quality, costs = np.linspace(-1, 1, 20), np.arange(20) % 4 + 1.0
    candidates = Candidates(query, vectors, quality=quality, costs=costs)
    expected = MMR(0.4).select(candidates, 6, budget=9, shown=[3, 1])
    actual = select(query, vectors, 6, "mmr", quality=quality, costs=costs, budget=9, shown=[3, 1], lambda_mult=0.4)
    assert same(actual, expected)
    found = select(query, vectors, selector=VRSD(), costs=costs, budget=9)
    assert same(found, VRSD().select(candidates, budget=9))
    ids = [f"doc {i}" for i in range(20)]
    kernel = LowRankKernel(np.random.default_rng(0).normal(size=(20, 6)), ids=ids[::-1])
    by_kernel = select(query, vectors, 4, "ndpp", ids=ids, kernel=kernel)
    assert same(by_kernel, NDPP(kernel).select(Candidates(query, vectors, ids=ids), 4))
    rules: dict[str, Any] = {"sources": [i // 4 for i in range(20)], "max_per_source": 1, "drop_near_duplicates": 0.3}
    assert same(select(query, vectors, 6, **rules), Coverage().select(Candidates(query, vectors, **rules), 6))


def test_texts_and_parts_are_read() -> None:
    query, vectors = gaussian(2, 4, 8)
    question, texts = "a river", ["a sea", "a river", "the long river", ""]
    words, labels = match_words(question, texts), ["x", None, "y", ["x", "y"]]
    read: dict[str, Any] = {"words": words, "references": find_references(texts)}
    expected = Coverage(cover_weight=0.5).select(Candidates(query, vectors, cover=labels, **read), 3)
    for given in (texts, tuple(texts), np.array(texts)):
        found = select(query, vectors, 3, question=question, texts=given, cover=labels, cover_weight=0.5)
        assert same(found, expected)


def test_names_in_texts_are_read_unless_there_are_references() -> None:
    texts = ["the river that flows through Ghent", "a river", "a sea", "Lys is long", "a lake"]
    query, vectors = (
        np.array([1.0, 0, 0, 0, 0, 0]),
        np.eye(6)[1:] + [[0.9], [0.8], [0.7], [0.65], [0.6]] * np.eye(6)[:1],
    )
    read: dict[str, Any] = {"question": "which city has a river", "texts": texts}
    titles = [None, "", "Aral", "Ghent", None]
    references = find_references(texts, titles)
    assert np.argwhere(references.strength).tolist() == [[0, 3]]
    words = match_words(read["question"], texts)
    expected = Coverage().select(Candidates(query, vectors, words=words, references=references), 3)
    found = select(query, vectors, 3, **read, titles=titles)
    assert same(found, expected)
    assert dict(zip(found.indices.tolist(), found.referred_by.tolist(), strict=True))[3] == 0  # type: ignore[union-attr]
    # The name of the last text but one is "Lys" unless its title says otherwise, and no text has this word.
    assert 3 not in select(query, vectors, 3, **read).indices
    assert same(select(query, vectors, 3, **read, references=references), expected)
    without = select(query, vectors, 3, **read, reference_weight=0)
    assert without.referred_by is None
    assert 3 not in without.indices


def test_the_words_of_all_questions_count() -> None:
    queries, texts = np.stack([QUERY, VECTORS[3]]), [f"the {word}" for word in "abcdefghijk"]
    found = select(queries, VECTORS, 4, question=["the a?", "the d?"], texts=texts)
    words, references = match_words("the a? the d?", texts), find_references(texts)
    assert same(found, Coverage().select(Candidates(queries, VECTORS, words=words, references=references), 4))
    assert same(found, select(queries, VECTORS, 4, question="the a? the d?", texts=texts))
    assert match_words(["a b", "b c"], texts).covered.tolist() == match_words("a b c", texts).covered.tolist()


@pytest.mark.parametrize("scale", [*SCALES, None])
@pytest.mark.parametrize("pair", RELEVANCE_PAIRS, ids=names)
def test_a_given_relevance_is_scaled_for_the_selector_and_reported_as_given(pair: Pair, scale: Any) -> None:
    for case in random_cases(62, 40):
        n = len(case.vectors)
        scores = case.rng.normal(scale=3, size=n) if case.number % 2 else case.rng.integers(-3, 4, size=n)
        more: dict[str, Any] = {"quality": case.quality} if pair.with_quality else {}
        more |= {"relevance_scale": scale}
        found = select(case.query, case.vectors, case.k, pair.selector, relevance=scores, **more)
        relevance, quality = rescale(scores, scale), more.get("quality")
        candidates = Candidates(case.query, case.vectors, relevance=relevance, quality=quality)
        expected = pair.selector.select(candidates, case.k)
        np.testing.assert_array_equal(found.indices, expected.indices, err_msg=str(case))
        np.testing.assert_array_equal(found.gains, expected.gains, err_msg=str(case))
        assert (found.objective, found.filled_from) == (expected.objective, expected.filled_from)
        assert found.relevance.tolist() == scores[found.indices].tolist()
        assert not found.relevance.flags.writeable
        both = select_many([case.query] * 2, case.vectors, case.k, pair.selector, relevance=[scores, -scores], **more)
        assert both.relevance.tolist() == [scores[both.indices[0]].tolist(), (-scores)[both.indices[1]].tolist()]


def test_the_cosine_is_the_relevance_by_name_too() -> None:
    named = select(QUERY, VECTORS, 3, "mmr", relevance="cosine")
    assert named.indices.tolist() == select(QUERY, VECTORS, 3, "mmr").indices.tolist()
    assert select_many([QUERY], VECTORS, 3, "mmr", relevance="cosine").indices.tolist() == [named.indices.tolist()]


READ: dict[str, Any] = {"question": "a", "texts": ["a"] * 11}
# The arguments, the error, and words of its message. The checks of the arrays are in test_candidates.py.
REFUSED: list[tuple[dict[str, Any], type[ValueError], str]] = [
    ({"vectors": VECTORS[:, :4]}, InvalidInputError, r"query .*\(5,\), vectors .*\(11, 4\)"),
    ({"k": 12}, InvalidParameterError, "k=12 .*n=11"),
    ({"relevance": [1.0, 2.0]}, InvalidInputError, r"^relevance .*\(11,\)"),
    ({"relevance": range(11), "selector": "vrsd"}, InvalidParameterError, "^VRSD.*'coverage', 'ndpp'"),
    ({"relevance": range(11), "relevance_scale": "log"}, InvalidParameterError, "^relevance_scale .*minmax, rank"),
    *(({"selector": s}, InvalidParameterError, "selector") for s in (3, None, VRSD)),
    ({"selector": VRSD(), "refine": True}, InvalidParameterError, "VRSD.*refine"),
    ({"refine": True}, InvalidParameterError, "'coverage' .*'refine' .*'vrsd'"),
    ({"question": "a"}, InvalidInputError, "^texts "),
    ({"texts": ["a"] * 11}, InvalidInputError, "^question "),
    ({**READ, "texts": ["a"] * 10}, InvalidInputError, "^texts .*11.* 10"),
    ({**READ, "texts": ["a"] * 4 + [None] * 7}, InvalidInputError, "^texts: row 4 .*None"),
    ({**READ, "question": 7}, InvalidInputError, "^question .*7"),
    ({**READ, "question": ["a", "b"]}, InvalidInputError, "question .*2.* query .*1"),
    ({"titles": ["a"] * 11}, InvalidInputError, "^texts .*titles"),
    ({**READ, "titles": [None, 7] * 5 + ["b"]}, InvalidInputError, "^titles: row 1 .*7"),
]


@pytest.mark.parametrize(("given", "error", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_an_invalid_argument_is_refused_by_its_name(given: Any, error: type[ValueError], says: str) -> None:
    with pytest.raises(error, match=says):
        select(**{"query": QUERY, "vectors": VECTORS, "k": 3, **given})


@pytest.mark.parametrize("call", [select, select_many, select_stream])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("relevence", "'relevance'"),
        ("lambda_mul", "'lambda_mult'"),
        ("lambda_d", "'lambda_mult'"),
        ("score_threshold", "it has quer"),
    ],
)
def test_a_misspelt_argument_is_not_blamed_on_the_selector(call: Callable[..., Any], name: str, says: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"^select\w*\(\) .*'{name}': .*{says}"):
        call(QUERY, VECTORS, 3, **{name: 1})
