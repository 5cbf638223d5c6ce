"""A request is parsed anew where parsing could give another, and only there."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from shared_core import MMR, NDPP, InvalidParameterError, LowRankKernel, Selection, TopK, register_selector
from shared_core.retrieval import request
from shared_core.retrieval._memory import RequestMemory
from shared_core.retrieval.request import Request
from shared_core.selectors import base as selection


def parsed(memory: RequestMemory, **settings: Any) -> Request:
    return memory.parse(settings)[0]


def test_the_same_settings_are_parsed_once() -> None:
    memory = RequestMemory()
    settings = {
        "k": 3,
        "selector": "mmr",
        "lambda_mult": 0.25,
        "shown": ("a",),
        "quality": len,
        "costs": {"a": 1.0},
        "perspective": "tea",
        "max_per_source": None,
    }
    first = parsed(memory, **settings)
    assert parsed(memory, **settings) is first
    assert (first.k, first.selector, first.shown) == (3, MMR(lambda_d=0.25), ("a",))


@pytest.mark.parametrize(
    "kernel", [None, LowRankKernel([[1.0], [0.5]], ids=["a", "b"])], ids=["without a kernel", "with a kernel"]
)
def test_so_are_those_of_a_kernel(kernel: LowRankKernel | None) -> None:
    memory = RequestMemory()
    first = parsed(memory, selector="ndpp", kernel=kernel)
    assert parsed(memory, selector="ndpp", kernel=kernel) is first
    assert first.selector == NDPP(kernel)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"k": 3}, {"k": 4}),
        ({"k": 3}, {}),
        ({}, {"k": 3}),
        ({"k": 3}, {"fetch_k": 3, "k": None, "budget": 1, "costs": len}),
        ({"quality": len}, {"quality": "rank"}),
        ({"selector": "mmr"}, {"selector": "mmr", "lambda_mult": 0.9}),
        ({"shown": ("a",)}, {"shown": ("b",)}),
    ],
)
def test_other_settings_are_parsed_anew(before: dict[str, Any], after: dict[str, Any]) -> None:
    memory = RequestMemory()
    parsed(memory, **before)
    assert vars(parsed(memory, **after)) == vars(Request.parse(after)[0])


def test_a_bool_is_not_taken_for_the_number_that_it_equals() -> None:
    memory = RequestMemory()
    parsed(memory, k=1)
    with pytest.raises(InvalidParameterError, match="k must be an integer, got True"):
        parsed(memory, k=True)
    # What went wrong has left nothing behind.
    assert parsed(memory, k=1).k == 1


def test_a_list_of_shown_ids_may_grow() -> None:
    memory, shown = RequestMemory(), ["a"]
    assert parsed(memory, shown=shown).shown == ("a",)
    shown.append("b")
    assert parsed(memory, shown=shown).shown == ("a", "b")


def test_what_is_the_stores_is_handed_out_as_it_is_now_and_cannot_be_spoilt() -> None:
    memory, condition = RequestMemory(), {"colour": "red"}
    settings = {"k": 2, "filter": condition}
    rest = memory.parse(settings)[1]
    rest.clear()
    condition["colour"] = "blue"
    assert memory.parse(settings)[1] == {"filter": {"colour": "blue"}}


def test_a_selector_registered_later_takes_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_REGISTRY", dict(selection._REGISTRY))
    monkeypatch.setattr(selection, "_PARAMETERS", dict(selection._PARAMETERS))
    memory, settings = RequestMemory(), {"k": 2, "depth": 3}
    assert memory.parse(settings)[1] == {"depth": 3}

    @register_selector("deep")
    @dataclass(frozen=True)
    class Deep:
        depth: int = 1

        def select(self, candidates: Any, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Selection:
            return TopK().select(candidates, k, budget=budget, shown=shown)

    with pytest.raises(InvalidParameterError, match="depth"):
        memory.parse(settings)
    assert parsed(memory, selector="deep", depth=3).selector == Deep(3)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_remember_nothing(way: Any) -> None:
    memory = RequestMemory()
    # A lambda cannot be pickled.
    settings = {"quality": lambda item: 1.0}
    first = parsed(memory, **settings)
    assert parsed(way(memory), **settings) is not first


@pytest.mark.parametrize(
    ("settings", "n", "quick"),
    [
        ({"k": 10}, 100, True),
        ({"k": 10}, 100_000, False),
        ({"budget": 5, "costs": {"a": 1.0}}, 100, False),
        ({"k": 10, "quality": len}, 100, False),
        ({"k": 10, "quality": "rank"}, 100, True),
        ({"k": 10, "costs": len}, 100, False),
        ({"k": 10, "source": len}, 100, True),
        ({"k": 10, "source": len, "max_per_source": 1}, 100, False),
        ({"k": 10, "selector": "ndpp", "kernel": LowRankKernel(np.eye(2))}, 100, False),
    ],
)
def test_what_may_take_its_time(settings: dict[str, Any], n: int, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class All:
        def __contains__(self, kind: object) -> bool:
            return True

    monkeypatch.setattr(request, "_MADE", All())
    assert Request.parse(settings)[0].is_quick(np.ones((n, 2))) is quick


KINDS: list[dict[str, Any]] = [{}, {"selector": "mmr"}, {"refine": True}, {"score_threshold": 0.1}]


@pytest.mark.parametrize("made", KINDS, ids=str)
def test_the_first_choice_of_a_kind_may_take_its_time(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "_MADE", set())
    asked = Request.parse({"k": 1, **made})[0]
    assert not asked.is_quick(np.eye(2))
    asked.choose(["a", "b"], ["a", "b"], np.eye(2), asked.asked([1.0, 0.0], None))
    for kind in KINDS:
        assert Request.parse({"k": 1, **kind})[0].is_quick(np.eye(2)) is (kind == made)


def test_so_may_the_first_of_another_kind_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "_MADE", set())
    asked = Request.parse({"k": 1})[0]
    large = np.ones((1024, 1025))
    fixed = np.eye(2)
    fixed.setflags(write=False)
    singles = [*np.eye(2, dtype=np.float32)]
    kinds: list[Any] = [np.eye(2), np.eye(2, dtype=np.float32), fixed, large, [[1.0, 0.0], [0.0, 1.0]], singles]
    for number, vectors in enumerate(kinds):
        assert [asked.is_quick(kind) for kind in kinds] == [True] * number + [False] * (len(kinds) - number)
        asked.choose(range(len(vectors)), [*range(len(vectors))], vectors, asked.asked([1.0] * len(vectors[0]), None))
    assert not asked.is_quick([])
