"""Names and parameters of selectors, and ``select`` on arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import (
    MMR,
    NDPP,
    VRSD,
    BudgetError,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    KernelError,
    LowRankKernel,
    PerspectiveError,
    Selection,
    SetSelectError,
    SetSelectWarning,
    TopK,
    make_selector,
    register_selector,
    select,
    select_many,
    selector_names,
)
from shared_core.selectors.base import MAX_SHOWN
from tests import oracles
from tests.shared_core.cases import gaussian

NAMES = ("similarity", "vrsd", "mmr", "ndpp")


def assert_same(a: Selection, b: Selection) -> None:
    for field in dataclasses.fields(Selection):
        assert np.array_equal(getattr(a, field.name), getattr(b, field.name)), field.name


# --- selectors and errors -------------------------------------------------------------------------


def test_selectors_with_different_parameters_differ() -> None:
    assert VRSD() != VRSD(refine=True)
    assert MMR(0.5) != MMR(0.75)
    assert NDPP() != NDPP(relevance_mapping="exponential")
    assert len({TopK(), TopK(), VRSD(), MMR(), NDPP()}) == 4


def test_a_selector_with_a_kernel_is_hashable() -> None:
    kernel = LowRankKernel(np.eye(3))
    assert hash(NDPP(kernel)) == hash(NDPP(kernel))
    assert NDPP(kernel) == NDPP(kernel)


def test_defaults() -> None:
    assert MMR() == MMR(lambda_mult=0.5, lambda_b=0.95)
    assert VRSD() == VRSD(refine=False)
    assert NDPP() == NDPP(kernel=None, relevance=None, temperature="auto")


@pytest.mark.parametrize(
    "call", [select, lambda query, vectors, *rest, **more: select_many([query], vectors, *rest, **more)]
)
@pytest.mark.parametrize(
    ("selector", "arguments", "problem"),
    [
        ("vrsd", {"quality": [1, 2, 3]}, "quality has no effect with VRSD"),
        ("similarity", {"quality": [1, 2, 3]}, "quality has no effect with TopK"),
        ("ndpp", {"quality": [1, 2, 3]}, "quality has no effect with NDPP"),
        ("mmr", {"lambda_b": 0.5}, "lambda_b, .* has no effect without quality"),
    ],
)
def test_an_argument_without_an_effect_is_named_in_a_warning(
    call: Callable[..., Any], selector: str, arguments: dict[str, Any], problem: str
) -> None:
    vectors = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]]
    with pytest.warns(SetSelectWarning, match=problem):
        found = call([1.0, 0.5], vectors, 2, selector, **arguments)
    plain = call([1.0, 0.5], vectors, 2, selector)
    assert np.array_equal(found.indices, plain.indices)


def test_a_temperature_without_an_effect_is_named_in_a_warning() -> None:
    learned = LowRankKernel([[1.0], [0.5]], temperature=0.3)
    with pytest.warns(SetSelectWarning, match="temperature has no effect on the relevance that the kernel has learned"):
        NDPP(learned, temperature=0.5)
    with pytest.warns(SetSelectWarning, match="temperature has no effect with relevance_mapping='linear'"):
        select([1.0, 0.5], [[1.0, 0.0], [1.0, 0.2]], 1, "ndpp", relevance_mapping="linear", temperature=0.25)


def test_arguments_with_an_effect_give_no_warning() -> None:
    vectors, more = [[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]], {"quality": [1, 2, 3], "lambda_b": 0.5}
    assert len(select([1.0, 0.5], vectors, 2, "mmr", **more)) == 2
    assert len(select([1.0, 0.5], vectors, 2, "ndpp", relevance_mapping="exponential", temperature=0.5)) == 2
    assert len(select([1.0, 0.5], vectors, 2, "ndpp", temperature=0.5)) == 2
    assert len(select([1.0, 0.5], vectors, 2, "ndpp", relevance_mapping="linear", temperature="auto")) == 2


def test_every_error_is_a_set_select_error_and_a_value_error() -> None:
    for error in (InvalidInputError, InvalidParameterError, BudgetError, KernelError, PerspectiveError):
        assert issubclass(error, SetSelectError)
        assert issubclass(error, ValueError)


# --- the registry ---------------------------------------------------------------------------------


def test_the_registry_knows_the_four_selectors() -> None:
    assert set(NAMES) <= set(selector_names())
    for name, kind in zip(NAMES, (TopK, VRSD, MMR, NDPP), strict=True):
        assert make_selector(name) == kind()


def test_parameters_reach_the_selector() -> None:
    assert make_selector("vrsd", refine=True) == VRSD(refine=True)
    assert make_selector("mmr", lambda_mult=0.2, lambda_b=0.3) == MMR(0.2, 0.3)
    assert make_selector("mmr", lambda_mult=0.2) == MMR(lambda_mult=0.2)
    assert make_selector("ndpp", relevance_mapping="exponential", temperature=0.5) == NDPP(None, "exponential", 0.5)


def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(InvalidParameterError) as caught:
        make_selector("vsrd")
    assert "vsrd" in str(caught.value)
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("name", "parameters", "allowed"),
    [
        ("vrsd", {"refined": True}, ("refine",)),
        ("mmr", {"lambda": 0.5}, ("lambda_mult", "lambda_b", "lambda_mult")),
        ("ndpp", {"temprature": 0.5}, ("kernel", "relevance", "temperature")),
        ("similarity", {"lambda_mult": 0.5}, ()),
        ("vrsd", {"lambda_mult": 0.5}, ("refine",)),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_allowed_ones(
    name: str, parameters: dict[str, Any], allowed: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        make_selector(name, **parameters)
    assert next(iter(parameters)) in str(caught.value)
    assert all(word in str(caught.value) for word in allowed), str(caught.value)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_lambda_mult_has_the_range_of_lambda_d(value: float) -> None:
    with pytest.raises(InvalidParameterError):
        make_selector("mmr", lambda_mult=value)


@pytest.mark.parametrize("name", NAMES)
def test_a_registered_name_is_refused_for_another_class(name: str) -> None:
    before = make_selector(name)

    # This class has the name of the registered one, as a copy of it in another module would.
    class Other(TopK):
        pass

    Other.__name__ = Other.__qualname__ = type(before).__qualname__
    with pytest.raises(InvalidParameterError, match=f"'{name}' is taken by {type(before).__name__}"):
        register_selector(name)(dataclasses.dataclass(frozen=True)(Other))
    assert type(make_selector(name)) is type(before)
    # The registered class itself may be registered again.
    assert register_selector(name)(type(before)) is type(before)


# --- select ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_select_gives_the_selection_of_the_selector(name: str) -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = make_selector(name).select(Candidates(query, vectors), 5)
    assert_same(select(query, vectors, 5, name), expected)
    assert_same(select(query, vectors, k=5, selector=make_selector(name)), expected)


@pytest.mark.parametrize("name", NAMES)
def test_select_takes_lists(name: str) -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = select(query, vectors, 5, name)
    for rows in (vectors.tolist(), list(vectors), tuple(map(tuple, vectors))):
        assert_same(select(query.tolist(), rows, 5, name), expected)


def test_a_parameter_of_another_selector_is_refused_with_the_name_of_that_selector() -> None:
    for parameter, owner in (("lambda_mult", "mmr"), ("lambda_b", "mmr"), ("refine", "vrsd")):
        message = rf"selector 'ndpp' has no parameter '{parameter}' \(a parameter of '{owner}'\); allowed: kernel, "
        with pytest.raises(InvalidParameterError, match=message):
            make_selector("ndpp", **{parameter: 0.5})
    with pytest.raises(InvalidParameterError, match=r"selector 'similarity' has no parameter 'x'; allowed: none$"):
        make_selector("similarity", x=1)


def test_the_default_of_select_is_ndpp() -> None:
    query, vectors = gaussian(2, 20, 8)
    expected = oracles.ndpp_greedy(query, vectors, 5, kind="auto")
    assert list(expected.picks) != list(oracles.vrsd(query, vectors, 5).picks), "else this shows nothing"
    oracles.assert_agrees(select(query, vectors, 5), expected)
    scores = np.random.default_rng(2).normal(size=20)
    by_scores = oracles.ndpp_greedy(query, vectors, 5, relevance=scores, kind="auto")
    assert list(by_scores.picks) != list(expected.picks), "else this shows nothing"
    oracles.assert_agrees(select(query, vectors, 5, relevance=scores, relevance_scale=None), by_scores)


def test_select_passes_every_argument_on() -> None:
    query, vectors = gaussian(2, 20, 8)
    quality, costs = np.linspace(-1, 1, 20), np.arange(20) % 4 + 1.0
    candidates = Candidates(query, vectors, quality=quality, costs=costs)
    expected = MMR(0.4).select(candidates, 6, budget=9, shown=[3, 1])
    actual = select(query, vectors, 6, "mmr", quality=quality, costs=costs, budget=9, shown=[3, 1], lambda_mult=0.4)
    assert_same(actual, expected)
    assert_same(
        select(query, vectors, selector=VRSD(), costs=costs, budget=9),
        VRSD().select(candidates, budget=9),
    )
    ids = [f"doc {i}" for i in range(20)]
    kernel = LowRankKernel(np.random.default_rng(0).normal(size=(20, 6)), ids=ids[::-1])
    assert_same(
        select(query, vectors, 4, "ndpp", ids=ids, kernel=kernel),
        NDPP(kernel).select(Candidates(query, vectors, ids=ids), 4),
    )
    rules: dict[str, Any] = {"sources": [i // 4 for i in range(20)], "max_per_source": 1, "drop_near_duplicates": 0.3}
    assert_same(select(query, vectors, 6, **rules), NDPP().select(Candidates(query, vectors, **rules), 6))


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


def test_parameters_beside_a_selector_object_are_refused() -> None:
    query, vectors = gaussian(2, 20, 8)
    with pytest.raises(InvalidParameterError, match="refine"):
        select(query, vectors, 5, VRSD(), refine=True)


@pytest.mark.parametrize("selector", ["nothing", "VRSD ", 3, None, VRSD])
def test_an_invalid_selector_is_refused(selector: Any) -> None:
    query, vectors = gaussian(2, 20, 8)
    with pytest.raises(InvalidParameterError):
        select(query, vectors, 5, selector)


QUERY, VECTORS = gaussian(90, 11, 5)


def changed(row: int, value: float) -> NDArray[np.float64]:
    vectors = VECTORS.copy()
    vectors[row] = value
    return vectors


# What is wrong: the error, what its message must hold, and the arguments.
REFUSED: dict[str, tuple[type[ValueError], str, dict[str, Any]]] = {
    "NaN": (InvalidInputError, r"^vectors: row 7 holds NaN", {"vectors": changed(7, np.nan)}),
    "inf": (InvalidInputError, r"^vectors: row 7 holds NaN or inf", {"vectors": changed(7, np.inf)}),
    "minus inf": (InvalidInputError, r"\b7\b", {"vectors": changed(7, -np.inf)}),
    "query too short": (InvalidInputError, r"(?s)\b4\b.*\b5\b|\b5\b.*\b4\b", {"query": QUERY[:4]}),
    "one axis": (InvalidInputError, "5", {"vectors": VECTORS[0]}),
    "no candidates": (InvalidInputError, "0", {"vectors": VECTORS[:0]}),
    "zero query": (InvalidInputError, "^query is the zero vector", {"query": np.zeros(5)}),
    "quality too short": (InvalidInputError, r"(?s)quality.*\b11\b.*\b3\b", {"selector": "mmr", "quality": [1, 2, 3]}),
    "quality NaN": (
        InvalidInputError,
        r"^quality: row 4 is nan",
        {"selector": "mmr", "quality": [0.0] * 4 + [np.nan] + [0.0] * 6},
    ),
    "ids too short": (InvalidInputError, r"(?s)\b3\b.*\b11\b|\b11\b.*\b3\b", {"ids": [1, 2, 3]}),
    "costs too short": (InvalidInputError, r"(?s)\b3\b.*\b11\b|\b11\b.*\b3\b", {"costs": [1, 2, 3]}),
    "k = 0": (InvalidParameterError, r"(?s)\b0\b.*\b11\b|\b11\b.*\b0\b", {"k": 0}),
    "k = -3": (InvalidParameterError, r"(?s)-3\b.*\b11\b|\b11\b.*-3\b", {"k": -3}),
    "k = 12": (InvalidParameterError, r"(?s)\b12\b.*\b11\b|\b11\b.*\b12\b", {"k": 12}),
    "lambda above 1": (InvalidParameterError, "lambda", {"selector": "mmr", "lambda_mult": 1.5}),
    "lambda below 0": (InvalidParameterError, "lambda", {"selector": "mmr", "lambda_b": -0.5}),
    "unknown selector": (InvalidParameterError, "vrsd", {"selector": "vsrd"}),
    "unknown parameter": (InvalidParameterError, "refine", {"refines": True}),
    "shown beyond n": (InvalidParameterError, r"\b11\b", {"shown": [11]}),
    "bad vectors before bad quality": (
        InvalidInputError,
        r"^vectors: row 7",
        {"selector": "mmr", "vectors": changed(7, np.nan), "quality": np.zeros(4)},
    ),
    "zero query before bad quality": (
        InvalidInputError,
        r"^query is the zero vector",
        {"selector": "mmr", "query": np.zeros(5), "quality": np.full(11, np.nan)},
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_an_invalid_argument_is_refused_with_the_reason(what: str) -> None:
    error, words, given = REFUSED[what]
    with pytest.raises(error, match=words):
        select(**{"query": QUERY, "vectors": VECTORS, "k": 3, **given})


def test_a_selection_is_short_on_the_screen() -> None:
    rng = np.random.default_rng(3)
    found = select(rng.normal(size=8), rng.normal(size=(500, 8)), 200, "similarity")
    assert len(repr(found)) < 250
    assert repr(found).startswith(f"Selection(k=200, indices=[{found.indices[0]}, {found.indices[1]}, ")
    assert ", ...], objective=" in repr(found)
    assert len(repr(select_many(rng.normal(size=(90, 8)), rng.normal(size=(500, 8)), 50))) < 100


def test_a_notebook_shows_a_selection_as_a_table() -> None:
    found = select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], 2)
    table = ElementTree.fromstring(found._repr_html_())
    cells = [[cell.text for cell in row] for row in table.iter("tr")]
    assert cells[0] == ["pick", "candidate", "relevance", "gain"]
    assert [row[1] for row in cells[1:]] == ["1", "2"]
    assert [float(row[2] or 0) for row in cells[1:]] == pytest.approx(found.relevance.tolist(), abs=1e-4)
    assert [float(row[3] or 0) for row in cells[1:]] == pytest.approx(found.gains.tolist(), abs=1e-4)


def test_a_notebook_shows_the_first_picks_of_a_large_selection() -> None:
    rng = np.random.default_rng(3)
    html = select(rng.normal(size=8), rng.normal(size=(50, 8)), 30, "similarity")._repr_html_()
    table = ElementTree.fromstring(html)
    assert len([*table.iter("tr")]) == 1 + MAX_SHOWN
    assert (table.findtext("caption") or "").startswith("30 picks")
    assert (table.findtext("caption") or "").endswith(f"The first {MAX_SHOWN} are shown.")


def test_a_notebook_shows_an_empty_selection() -> None:
    none = np.empty(0)
    table = ElementTree.fromstring(Selection(none.astype(np.int64), none, none, 0.0)._repr_html_())
    assert (table.findtext("caption"), len([*table.iter("tr")])) == ("0 picks, objective 0.", 1)
