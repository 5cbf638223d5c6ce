"""Names and parameters of selectors, and ``select`` on arrays."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import setselect
from setselect import (
    MMR,
    NDPP,
    VRSD,
    Candidates,
    Coverage,
    InvalidInputError,
    InvalidParameterError,
    LowRankKernel,
    Selection,
    SetSelectError,
    SetSelectWarning,
    TopK,
    make_selection,
    make_selector,
    match_words,
    register_selector,
    rescale,
    select,
    select_many,
    select_stream,
    selector_names,
)
from shared_core.selectors.selection import MAX_SHOWN, at_rows
from shared_core.texts.references import find_references
from tests import oracles
from tests.shared_core.cases import gaussian

NAMES = ("similarity", "vrsd", "mmr", "ndpp", "coverage")
QUERY, VECTORS = gaussian(90, 11, 5)


def assert_same(a: Selection, b: Selection) -> None:
    for field in dataclasses.fields(Selection):
        assert np.array_equal(getattr(a, field.name), getattr(b, field.name)), field.name


def many(query: Any, vectors: Any, *rest: Any, **more: Any) -> Any:
    return select_many([query], vectors, *rest, **more)


@pytest.mark.parametrize("name", [name for name in setselect.__all__ if name.endswith(("Error", "Warning"))])
def test_errors_and_warnings_belong_to_setselect(name: str) -> None:
    kind = getattr(setselect, name)
    assert kind.__module__ == "setselect"
    assert type(pickle.loads(pickle.dumps(kind("reason")))) is kind
    assert issubclass(kind, SetSelectError if name.endswith("Error") else SetSelectWarning)
    assert issubclass(kind, (ValueError, UserWarning)) or name in ("SetSelectError", "VectorSourceError")


# --- the registry ---------------------------------------------------------------------------------


def test_parameters_reach_the_selector() -> None:
    assert set(NAMES) <= set(selector_names())
    for name, kind in zip(NAMES, (TopK, VRSD, MMR, NDPP, Coverage), strict=True):
        assert make_selector(name) == kind()
    assert make_selector("vrsd", refine=True) == VRSD(refine=True) != VRSD()
    assert make_selector("mmr", lambda_mult=0.2, lambda_b=0.3) == MMR(0.2, 0.3) != MMR()
    assert make_selector("ndpp", relevance_mapping="exponential", temperature=0.5) == NDPP(None, "exponential", 0.5)
    kernel = LowRankKernel(np.eye(3))
    assert hash(NDPP(kernel)) == hash(NDPP(kernel))


def test_selectors_say_what_they_can_use() -> None:
    can = [(kind().capabilities.relevance, kind().capabilities.quality) for kind in (TopK, VRSD, MMR, NDPP, Coverage)]
    assert can == [(True, False), (False, False), (True, True), (True, False), (True, False)]
    assert [name for name in NAMES if make_selector(name).capabilities.words] == ["coverage"]
    assert [name for name in NAMES if make_selector(name).capabilities.references] == ["coverage"]
    assert not Coverage(reference_weight=0).capabilities.references


@pytest.mark.parametrize("name", NAMES)
def test_a_registered_name_is_refused_for_another_class(name: str) -> None:
    before = make_selector(name)

    class Other(TopK):
        """As a copy of the registered class in another module would be named."""

    Other.__name__ = Other.__qualname__ = type(before).__qualname__
    with pytest.raises(InvalidParameterError, match=f"'{name}' is taken by {type(before).__name__}"):
        register_selector(name)(dataclasses.dataclass(frozen=True)(Other))
    assert type(make_selector(name)) is type(before)
    # The registered class itself may be registered again.
    assert register_selector(name)(type(before)) is type(before)


@pytest.mark.parametrize(
    ("kind", "words"), [(type("A", (), {}), "frozen"), (dataclasses.make_dataclass("B", [], frozen=True), "select")]
)
def test_a_class_that_is_no_selector_is_not_registered(kind: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        register_selector("new")(kind)
    assert "new" not in selector_names()


@pytest.mark.parametrize(("picks", "gains"), [([0, 11], [1.0, 1.0]), ([-1], [1.0]), ([0, 1], [1.0])])
def test_picks_that_are_no_rows_make_no_selection(picks: list[int], gains: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="picks must be rows of the 11 candidates"):
        make_selection(Candidates(QUERY, VECTORS), picks, gains)


# --- select ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_select_gives_the_selection_of_the_selector(name: str) -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = make_selector(name).select(Candidates(query, vectors), 5)
    assert_same(select(query, vectors, 5, name), expected)
    assert_same(select(query.tolist(), list(vectors), k=5, selector=make_selector(name)), expected)


def test_the_default_of_select_is_coverage() -> None:
    query, vectors = gaussian(2, 20, 8)
    assert_same(select(query, vectors, 5), Coverage().select(Candidates(query, vectors), 5))


def test_select_passes_every_argument_on() -> None:
    query, vectors = gaussian(2, 20, 8)
    quality, costs = np.linspace(-1, 1, 20), np.arange(20) % 4 + 1.0
    candidates = Candidates(query, vectors, quality=quality, costs=costs)
    expected = MMR(0.4).select(candidates, 6, budget=9, shown=[3, 1])
    actual = select(query, vectors, 6, "mmr", quality=quality, costs=costs, budget=9, shown=[3, 1], lambda_mult=0.4)
    assert_same(actual, expected)
    found = select(query, vectors, selector=VRSD(), costs=costs, budget=9)
    assert_same(found, VRSD().select(candidates, budget=9))
    ids = [f"doc {i}" for i in range(20)]
    kernel = LowRankKernel(np.random.default_rng(0).normal(size=(20, 6)), ids=ids[::-1])
    by_kernel = select(query, vectors, 4, "ndpp", ids=ids, kernel=kernel)
    assert_same(by_kernel, NDPP(kernel).select(Candidates(query, vectors, ids=ids), 4))
    rules: dict[str, Any] = {"sources": [i // 4 for i in range(20)], "max_per_source": 1, "drop_near_duplicates": 0.3}
    assert_same(select(query, vectors, 6, **rules), Coverage().select(Candidates(query, vectors, **rules), 6))


def test_select_reads_texts_and_parts() -> None:
    query, vectors = gaussian(2, 4, 8)
    question, texts = "a river", ["a sea", "a river", "the long river", ""]
    words, labels = match_words(question, texts), ["x", None, "y", ["x", "y"]]
    read = {"words": words, "references": np.zeros((4, 4))}
    expected = Coverage(cover_weight=0.5).select(Candidates(query, vectors, cover=labels, **read), 3)
    for given in (texts, tuple(texts), np.array(texts)):
        found = select(query, vectors, 3, question=question, texts=given, cover=labels, cover_weight=0.5)
        assert_same(found, expected)
    relevance = [0.1, 0.7, 30.0, 0.2]
    scaled = Candidates(query, vectors, **read, relevance=rescale(relevance, "minmax"))
    found = select(query, vectors, 3, question=question, texts=texts, relevance=relevance)
    assert found.gains.tolist() == Coverage().select(scaled, 3).gains.tolist()
    for name in set(NAMES) - {"coverage"}:
        with pytest.warns(SetSelectWarning, match="^question and cover have no effect with .*'coverage' uses"):
            select(query, vectors, 2, name, question=question, texts=texts, cover=labels)


NAMING = ["the river that flows through Ghent", "a river", "a sea", "Lys is long", "a lake"]


def test_select_reads_which_texts_name_each_other() -> None:
    query, vectors = np.array([1.0, 0, 0, 0, 0, 0]), np.eye(6)[1:] + [[0.9], [0.8], [0.7], [0.3], [0.6]] * np.eye(6)[:1]
    read: dict[str, Any] = {"question": "which city has a river", "texts": NAMING}
    titles = [None, "", "Aral", "Ghent", None]
    references = find_references(NAMING, titles)
    assert np.argwhere(references.strength).tolist() == [[0, 3]]
    words = match_words(read["question"], NAMING)
    expected = Coverage().select(Candidates(query, vectors, words=words, references=references), 3)
    found = select(query, vectors, 3, **read, titles=titles)
    assert_same(found, expected)
    assert dict(zip(found.indices.tolist(), found.referred_by.tolist(), strict=True))[3] == 0  # type: ignore[union-attr]
    # The name of the last text but one is "Lys" unless its title says otherwise, and no text has this word.
    assert 3 not in select(query, vectors, 3, **read).indices
    assert_same(select(query, vectors, 3, **read, references=references), expected)
    without = select(query, vectors, 3, **read, titles=titles, reference_weight=0)
    assert without.referred_by is None
    assert 3 not in without.indices
    with pytest.warns(SetSelectWarning, match="^titles has no effect with references"):
        assert_same(select(query, vectors, 3, **read, titles=["b"] * 5, references=references), expected)
    with pytest.warns(SetSelectWarning, match="^question and titles have no effect with MMR"):
        select(query, vectors, 3, "mmr", **read, titles=titles)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("unit", [True, False], ids=["unit rows", "rows of any length"])
def test_select_leaves_the_callers_arrays_alone(unit: bool, dtype: Any) -> None:
    query, vectors = gaussian(3, 20, 8)
    if unit:
        query, vectors = oracles.unit(query), oracles.unit_rows(vectors)
    given = query.astype(dtype), vectors.astype(dtype), np.ones(20), np.ones(20)
    before = [array.tobytes() for array in given]
    for name in NAMES:
        quality = given[2] if name == "mmr" else None
        select(given[0], given[1], 5, name, quality=quality, costs=given[3], budget=9)
    assert [array.tobytes() for array in given] == before
    assert all(array.flags.writeable for array in given)


# The arguments, the error, and a word of its message. The checks of the arrays are in test_candidates.py.
REFUSED: list[tuple[dict[str, Any], type[ValueError], str]] = [
    ({"vectors": VECTORS[:, :4]}, InvalidInputError, r"query has shape \(5,\), vectors have shape \(11, 4\)"),
    ({"k": 12}, InvalidParameterError, "k=12 with n=11"),
    ({"relevance": [1.0, 2.0]}, InvalidInputError, r"^relevance must have shape \(11,\)"),
    ({"relevance": [np.nan] * 11}, InvalidInputError, "^relevance: row 0 is nan"),
    ({"relevance": range(11), "selector": "vrsd"}, InvalidParameterError, "VRSD .* use 'coverage', 'ndpp'"),
    ({"relevance": range(11), "relevance_scale": "log"}, InvalidParameterError, "scale must be one of minmax, rank"),
    ({"selector": "mmr", "lambda_mult": 1.5}, InvalidParameterError, "lambda_mult"),
    ({"selector": "vsrd"}, InvalidParameterError, "'vsrd'; known: .*vrsd"),
    *(({"selector": s}, InvalidParameterError, "selector") for s in (3, None, VRSD)),
    ({"selector": VRSD(), "refine": True}, InvalidParameterError, "object with parameters of its own: set refine"),
    ({"question": "a"}, InvalidInputError, "^texts is missing"),
    ({"texts": ["a"] * 11}, InvalidInputError, "^question is missing"),
    ({"question": "a", "texts": ["a"] * 10}, InvalidInputError, "^texts must be 11, one for each candidate, got 10"),
    ({"question": "a", "texts": []}, InvalidInputError, "^texts must be 11, one for each candidate, got 0"),
    ({"question": "a", "texts": "eleven char"}, InvalidInputError, "^texts must be a sequence of strings"),
    ({"question": "a", "texts": ["a"] * 4 + [None] * 7}, InvalidInputError, "^texts: row 4 is None"),
    ({"question": 7, "texts": ["a"] * 11}, InvalidInputError, "^question must be a string or a list of strings, got 7"),
    ({"question": ["a", "b"], "texts": ["a"] * 11}, InvalidInputError, "question has 2 strings and query has 1 rows"),
    ({"titles": ["a"] * 11}, InvalidInputError, "^texts is missing: titles are the names"),
    ({"question": "a", "texts": ["a"] * 11, "titles": ["b"] * 10}, InvalidInputError, "^titles must be 11, .* got 10"),
    (
        {"question": "a", "texts": ["a"] * 11, "titles": [None, float("nan")] * 5 + ["b"]},
        InvalidInputError,
        "^titles: row 1 is nan",
    ),
    ({"question": "a", "texts": ["a"] * 11, "titles": "eleven char"}, InvalidInputError, "^titles must be a sequence"),
    ({"references": np.ones((11, 10))}, InvalidInputError, r"^references must have shape \(11, 11\)"),
    ({"cover": "collection_"}, InvalidInputError, "^cover must be a collection, .* got 'collection_'"),
    ({"refine": True}, InvalidParameterError, "'coverage' has no parameter 'refine' .a parameter of 'vrsd'"),
]


@pytest.mark.parametrize(("given", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_an_invalid_argument_is_refused_with_the_reason(
    given: dict[str, Any], error: type[ValueError], words: str
) -> None:
    with pytest.raises(error, match=words):
        select(**{"query": QUERY, "vectors": VECTORS, "k": 3, **given})


@pytest.mark.parametrize("call", [select, select_many, select_stream])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("relevence", "did you mean 'relevance'?"),
        ("lambda_mul", "did you mean 'lambda_mult'?"),
        ("scor_threshold", "it has quer"),
        ("score_threshold", "it has quer"),
        ("lambda_d", "did you mean 'lambda_mult'"),
    ],
)
def test_a_misspelt_argument_is_not_blamed_on_the_selector(call: Callable[..., Any], name: str, says: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        call(QUERY, VECTORS, 3, **{name: 1})
    assert str(caught.value).startswith(f"{call.__name__}() has no argument '{name}': {says}")


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("mmr", {"lamda_mult": 0.5}, "did you mean 'lambda_mult'"),
        ("ndpp", {"temprature": 0.5}, "did you mean 'temperature'"),
        ("vrsd", {"lambda_mult": 0.5}, "allowed: refine"),
        ("similarity", {"x": 0.5}, "allowed: none$"),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_allowed_ones(name: str, parameters: Any, says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        make_selector(name, **parameters)


# --- several queries ------------------------------------------------------------------------------


def test_the_words_of_all_questions_count() -> None:
    queries, texts = np.stack([QUERY, VECTORS[3]]), [f"the {word}" for word in "abcdefghijk"]
    found = select(queries, VECTORS, 4, question=["the a?", "the d?"], texts=texts)
    words = match_words("the a? the d?", texts)
    references = find_references(texts)
    assert_same(found, Coverage().select(Candidates(queries, VECTORS, words=words, references=references), 4))
    assert_same(found, select(queries, VECTORS, 4, question="the a? the d?", texts=texts))
    assert match_words(["a b", "b c"], texts).covered.tolist() == match_words("a b c", texts).covered.tolist()


def test_the_table_says_which_query_a_pick_serves() -> None:
    found = select([QUERY, VECTORS[3]], VECTORS, 3)
    assert found.serves is not None
    rows = [[cell.text for cell in row] for row in ElementTree.fromstring(found._repr_html_()).iter("tr")]
    assert [row[-1] for row in rows] == ["serves", *map(str, found.serves)]
    assert pickle.loads(pickle.dumps(found)).serves.tolist() == found.serves.tolist()
    assert at_rows(found, np.arange(11) + 5).serves is found.serves


# --- arguments without an effect ------------------------------------------------------------------


@pytest.mark.parametrize("call", [select, many])
@pytest.mark.parametrize(
    ("selector", "arguments", "problem"),
    [
        *((name, {"quality": range(11)}, "quality has no effect with") for name in ("vrsd", "similarity", "ndpp")),
        ("mmr", {"lambda_b": 0.5}, "^lambda_b has no effect without quality"),
        ("mmr", {"references": np.eye(11)}, "^references has no effect with .*'coverage' uses"),
        ("coverage", {"word_weight": 0.5}, "^word_weight has no effect without (question and texts|words)"),
        ("coverage", {"cover_weight": 0.5}, "^cover_weight has no effect without cover"),
        ("coverage", {"reference_weight": 0.5}, "^reference_weight has no effect without .*references"),
        ("mmr", {"relevance_scale": "rank"}, "^relevance_scale has no effect without relevance"),
        ("mmr", {"relevance": "cosine", "relevance_scale": None}, "^relevance_scale has no effect without relevance"),
    ],
)
def test_an_argument_without_an_effect_is_named_in_a_warning(
    call: Callable[..., Any], selector: str, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.warns(SetSelectWarning, match=problem):
        found = call(QUERY, VECTORS, 2, selector, **arguments)
    assert np.array_equal(found.indices, call(QUERY, VECTORS, 2, selector).indices)


def test_costs_and_sources_alone_are_named_in_a_warning() -> None:
    with pytest.warns(SetSelectWarning, match="^costs has no effect without budget"):
        select(QUERY, VECTORS, 2, costs=range(11))
    with pytest.warns(SetSelectWarning, match="^sources has no effect without max_per_source"):
        select(QUERY, VECTORS, 2, sources=range(11))


def test_a_temperature_without_an_effect_is_named_in_a_warning() -> None:
    learned = LowRankKernel([[1.0], [0.5]], temperature=0.3)
    for kernel, mapping in ((learned, None), (learned, "linear"), (None, "linear")):
        with pytest.warns(SetSelectWarning, match="temperature has no effect"):
            NDPP(kernel, mapping, temperature=0.5)  # type: ignore[arg-type]
    # With an effect there is no warning, which would be an error here.
    assert len(select(QUERY, VECTORS, 2, "mmr", quality=range(11), lambda_b=0.5)) == 2
    for parameters in ({"temperature": 0.5}, {"relevance_mapping": "linear", "temperature": "auto"}):
        assert len(select(QUERY, VECTORS, 2, "ndpp", **parameters)) == 2


# --- on the screen --------------------------------------------------------------------------------


def test_a_selection_is_short_on_the_screen() -> None:
    rng = np.random.default_rng(3)
    found = select(rng.normal(size=8), rng.normal(size=(500, 8)), 200, "similarity")
    assert len(repr(found)) < 250
    assert repr(found).startswith(f"Selection(k=200, indices=[{found.indices[0]}, {found.indices[1]}, ")
    table = ElementTree.fromstring(found._repr_html_())
    assert len([*table.iter("tr")]) == 1 + MAX_SHOWN
    assert (table.findtext("caption") or "").startswith("200 picks")


def test_a_notebook_shows_a_selection_as_a_table() -> None:
    found = select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], 2)
    cells = [[cell.text for cell in row] for row in ElementTree.fromstring(found._repr_html_()).iter("tr")]
    assert cells[0] == ["pick", "candidate", "relevance", "gain"]
    for row, *numbers in zip(cells[1:], found.indices, found.relevance, found.gains, strict=True):
        assert [float(cell or 0) for cell in row[1:]] == pytest.approx(numbers, abs=1e-4)
    references = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    found = select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], 2, references=references)
    cells = [[cell.text for cell in row] for row in ElementTree.fromstring(found._repr_html_()).iter("tr")]
    assert [row[-1] for row in cells] == ["named by", None, str(found.indices[0])]
    none = np.empty(0)
    empty = Selection(none.astype(np.int64), none, none, 0.0)._repr_html_()
    assert ElementTree.fromstring(empty).findtext("caption") == "0 picks, objective 0."
