"""Selectors by name: their parameters, what they can use, and which classes may be registered."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

from setselect import (
    MMR,
    NDPP,
    VRSD,
    Capabilities,
    Coverage,
    InvalidParameterError,
    LowRankKernel,
    SetSelectWarning,
    TopK,
    make_selector,
    register_selector,
    select,
    select_greedily,
    selector_names,
)  # fmt: skip

KINDS = {"similarity": TopK, "vrsd": VRSD, "mmr": MMR, "ndpp": NDPP, "coverage": Coverage}


def test_parameters_reach_the_selector() -> None:
    assert set(KINDS) <= set(selector_names())
    for name, kind in KINDS.items():
        assert make_selector(name) == kind()
    assert make_selector("vrsd", refine=True) == VRSD(refine=True) != VRSD()
    assert make_selector("mmr", lambda_mult=0.2, lambda_b=0.3) == MMR(0.2, 0.3) != MMR()
    assert make_selector("ndpp", relevance_mapping="exponential", temperature=0.5) == NDPP(None, "exponential", 0.5)
    assert NDPP(temperature="auto") == NDPP()
    kernel = LowRankKernel(np.eye(3))
    assert hash(NDPP(kernel)) == hash(NDPP(kernel))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (TopK(), Capabilities(quality=False, constraints=True)),
        (VRSD(), Capabilities(False, False, False, constraints=True)),
        (MMR(), Capabilities(constraints=True)),
        (NDPP(), Capabilities(quality=False, constraints=True)),
        (Coverage(), Capabilities(True, False, True, True, True, True, log_gains=True, constraints=True)),
        (Coverage(reference_weight=0), Capabilities(True, False, True, True, False, True, True, constraints=True)),
    ],
    ids=repr,
)
def test_selectors_say_what_they_can_use(selector: Any, expected: Capabilities) -> None:
    assert selector.capabilities == expected


@pytest.mark.parametrize("name", KINDS)
def test_a_registered_name_is_refused_for_another_class(name: str) -> None:
    class Other(TopK):
        """As a copy of the registered class in another module would be named."""

    Other.__name__ = Other.__qualname__ = KINDS[name].__qualname__
    with pytest.raises(InvalidParameterError, match=f"'{name}' .*{KINDS[name].__name__}"):
        register_selector(name)(dataclasses.dataclass(frozen=True)(Other))
    assert type(make_selector(name)) is KINDS[name]
    # The registered class itself may be registered again.
    assert register_selector(name)(KINDS[name]) is KINDS[name]


@pytest.mark.parametrize(
    ("kind", "word"), [(type("A", (), {}), "frozen"), (dataclasses.make_dataclass("B", [], frozen=True), "select")]
)
def test_a_class_that_is_no_selector_is_not_registered(kind: Any, word: str) -> None:
    with pytest.raises(InvalidParameterError, match=word):
        register_selector("new")(kind)
    assert "new" not in selector_names()


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("mmr", {"lamda_mult": 0.5}, "'lambda_mult'"),
        ("ndpp", {"temprature": 0.5}, "'temperature'"),
        ("vrsd", {"lambda_mult": 0.5}, "'lambda_mult'.*'mmr'"),
        ("similarity", {"x": 0.5}, "none"),
        ("vsrd", {}, "'vsrd'.*vrsd"),
    ],
)
def test_an_unknown_name_is_refused_with_the_allowed_ones(name: str, parameters: Any, says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        make_selector(name, **parameters)


def test_a_temperature_without_an_effect_is_named_in_a_warning() -> None:
    learned = LowRankKernel([[1.0], [0.5]], temperature=0.3)
    for kernel, mapping in ((learned, None), (learned, "linear"), (None, "linear")):
        with pytest.warns(SetSelectWarning, match="^temperature "):
            NDPP(kernel, mapping, temperature=0.5)  # type: ignore[arg-type]
    # With an effect there is no warning, which would be an error here.
    assert NDPP(temperature=0.5) != NDPP(relevance_mapping="linear", temperature="auto")


@dataclasses.dataclass(frozen=True)
class Plain:
    """A selector of a user that uses only the vectors of one query."""

    capabilities = Capabilities(relevance=False, sub_questions=False)

    def select(self, candidates: Any, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Any:
        return TopK().select(candidates, k, budget=budget, shown=shown)


@pytest.mark.parametrize("selector", [Plain(), VRSD(refine=True)])
def test_what_a_selector_cannot_use_is_refused_by_its_name(selector: Any) -> None:
    vectors = np.eye(3)
    assert select(vectors[0], vectors, 2, selector).indices.tolist() == [0, 1]
    with pytest.raises(InvalidParameterError, match=rf"^{re.escape(repr(selector))}.*relevance.*'mmr'"):
        select(vectors[0], vectors, 2, selector, relevance=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidParameterError, match=rf"^{re.escape(repr(selector))}.*several queries.*'mmr'"):
        select(vectors[:2], vectors, 2, selector)


@pytest.mark.parametrize(
    "limit",
    [
        {"shown": [0]},
        {"budget": 2.0, "costs": [1.0, 1.0, 1.0]},
        {"max_per_source": 1, "sources": "aab"},
        {"drop_near_duplicates": 0.9},
    ],
    ids=lambda limit: min(limit),
)
def test_a_selector_of_ones_own_is_refused_with_a_limit_or_keeps_to_it(limit: dict[str, Any]) -> None:
    vectors = [[1.0, 0.1], [1.0, 0.2], [0.1, 1.0]]
    with pytest.raises(InvalidParameterError, match=r"^Plain\(\).*select_greedily"):
        select(vectors[0], vectors, 1, Plain(), **limit)

    class Greedy:
        """The relevance, by the helper for authors."""

        capabilities = Capabilities(constraints=True)

        def select(self, candidates: Any, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Any:
            return select_greedily(candidates, lambda rows: candidates.relevance, k, budget=budget, shown=shown)

    found = select(vectors[0], vectors, None if "budget" in limit else 2, Greedy(), **limit)
    assert (
        found.indices.tolist()
        == select(vectors[0], vectors, None if "budget" in limit else 2, "similarity", **limit).indices.tolist()
    )
