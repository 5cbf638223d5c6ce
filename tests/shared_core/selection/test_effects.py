"""Arguments without effect: each gives one message that names it, and none where it has one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from setselect import MMR, VRSD, Coverage, Selector, SetSelectWarning, TopK, select
from shared_core.selection.effects import NEEDS, NEEDS_CAPABILITY, find_without_effect
from tests.shared_core.cases import gaussian

KNOWN = {*NEEDS, *NEEDS_CAPABILITY, *(need for needs in NEEDS.values() for need in needs)}


def messages(selector: Selector, *given: str, known: Any = KNOWN) -> list[str]:
    return [*find_without_effect(selector, given, known)]


def assert_names(found: list[str], name: str) -> None:
    assert len(found) == 1
    assert name in found[0].partition(" no effect ")[0].split()


@pytest.mark.parametrize("name", NEEDS)
def test_an_argument_without_another_one(name: str) -> None:
    alone = messages(Coverage(), name)
    assert_names(alone, name)
    assert all(need in alone[0] for need in NEEDS[name])
    for need in NEEDS[name]:
        assert messages(Coverage(), name, need) == []
    # An interface that lacks what the argument needs says nothing.
    assert messages(Coverage(), name, known={name}) == []


@pytest.mark.parametrize("name", NEEDS_CAPABILITY)
def test_an_argument_that_the_selector_cannot_use(name: str) -> None:
    for selector in (TopK(), VRSD()):
        assert_names(messages(selector, name), name)
    assert messages(MMR() if name == "quality" else Coverage(), name) == []
    if NEEDS_CAPABILITY[name] == "references":
        assert_names(messages(Coverage(reference_weight=0), name), name)


def test_select_warns() -> None:
    query, vectors = gaussian(90, 11, 5)
    words: dict[str, Any] = {"question": "a", "texts": ["Ann"] * 11, "titles": ["Ann"] * 11}
    with pytest.warns(SetSelectWarning, match="question and texts and titles|texts and titles|question .* no effect"):
        select(query, vectors, 2, "mmr", **words)
    with pytest.warns(SetSelectWarning, match="titles has no effect with references"):
        select(query, vectors, 2, references=np.eye(11), **words)
