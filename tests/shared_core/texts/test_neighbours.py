"""Texts that stand next to each other in a document."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setselect import Coverage, InvalidInputError, SetSelectWarning, find_references, select
from shared_core.candidates import REFERENCE_KINDS
from shared_core.texts import as_texts
from shared_core.texts.neighbours import count_shared

TEXTS = ["It rains in the morning.", "Ships wait for the tide.", "A port opens at dawn.", "Nobody sails at night."]
NEIGHBOUR = REFERENCE_KINDS.index("neighbour")
NAN = float("nan")


@pytest.mark.parametrize(
    ("numbers", "sources", "pairs"),
    [
        ([0, 1, 2, 3], ["a"] * 4, {(0, 1), (1, 2), (2, 3)}),
        ([3, 2, 1, 0], ["a"] * 4, {(0, 1), (1, 2), (2, 3)}),
        ([0, 1, 0, 1], ["a", "a", "b", "b"], {(0, 1), (2, 3)}),
        # Numbers with a gap, and of no source or no number.
        ([0, 2, 4, 6], ["a"] * 4, set()),
        ([0, 1, 2, 3], ["a", None, "a", "a"], {(2, 3)}),
        (["0", 1.0, NAN, None], ["a"] * 4, {(0, 1)}),
        # Two texts in one place: the source is not a document.
        ([0, 1, 1, 2], ["a"] * 4, set()),
    ],
)
def test_texts_with_successive_numbers_of_a_source_lead_to_each_other(
    numbers: list[Any], sources: list[Any], pairs: set[tuple[int, int]]
) -> None:
    references = find_references(TEXTS, neighbours=numbers, sources=sources)
    rows, others = np.nonzero(references.strength)
    assert {*zip(rows.tolist(), others.tolist(), strict=True)} == pairs | {(b, a) for a, b in pairs}
    assert references.kinds is not None
    assert (references.kinds[rows, others] == NEIGHBOUR).all()
    assert (references.strength[rows, others] == 1).all()


def test_an_overlap_counts_less_and_another_reference_more() -> None:
    half = ["It rains in June. Nobody is here.", "Nobody is here. Ann Lee swims.", "She likes Perth."]
    strength, _, kinds = find_references(half, ["Diary", "Diary", "Ann Lee"], neighbours=[0, 1, 2], sources=["a"] * 3)
    shared = len("Nobody is here.")
    assert strength[0, 1] == pytest.approx((1 - shared / len(half[1])) ** 2)
    assert strength[1, 0] == pytest.approx((1 - shared / len(half[0])) ** 2)
    # Text 1 names text 2, which does not name its neighbour.
    assert kinds is not None
    assert [REFERENCE_KINDS[kinds[pair]] for pair in ((1, 2), (2, 1))] == ["name", "neighbour"]
    assert (kinds.flags.writeable, strength.flags.writeable) == (False, False)


@given(st.text("ab ", max_size=30), st.text("ab ", max_size=30))
def test_what_two_texts_share_is_the_longest_end_and_beginning(text: str, following: str) -> None:
    lengths = [n for n in range(10, min(len(text), len(following)) + 1) if text[-n:] == following[:n]]
    assert count_shared(text, following) == max(lengths, default=0)


def test_one_character_many_times_takes_linear_time() -> None:
    assert count_shared("a" * 10**7, "a" * 10**7) == 10**4
    assert count_shared("a" * 10**7, "a" * 9_999 + "b") == 9_999


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"neighbours": [0, 1, 2, "x"], "sources": ["a"] * 4}, r"neighbours: row 3 .*'x'"),
        ({"neighbours": [0, -1, 2, 3], "sources": ["a"] * 4}, r"neighbours: row 1 .*-1"),
        ({"neighbours": [0, 1.5, 2, 3], "sources": ["a"] * 4}, r"neighbours: row 1 .*1\.5"),
        ({"neighbours": [0, 1, 2, 3]}, "sources"),
        ({"neighbours": [0, 1], "sources": ["a"] * 4}, "neighbours must .*4.* got 2"),
    ],
)
def test_wrong_numbers_are_refused_by_row(wrong: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInputError, match=names):
        find_references(TEXTS, **wrong)
    with pytest.raises(InvalidInputError, match=names):
        select([1.0, 0.0], np.ones((4, 2)), 2, question="port", texts=TEXTS, **wrong)


def test_select_follows_a_pick_to_its_neighbour() -> None:
    vectors = [[1.0, 0.0], [0.7, 0.72], [0.7, -0.72], [0.6, 0.8]]
    given_: dict[str, Any] = {"question": "rain", "texts": TEXTS, "sources": ["a", "b", "b", "a"]}
    plain = select([1.0, 0.0], vectors, 2, **given_, neighbours=[7, 0, 5, 9])
    led = select([1.0, 0.0], vectors, 2, **given_, neighbours=[7, 0, 5, 8], neighbour_weight=20)
    assert plain.indices.tolist()[0] == led.indices.tolist()[0] == 0
    assert 3 not in plain.indices
    assert led.indices.tolist() == [0, 3]
    assert led.referred_by is not None
    assert led.reference_kinds is not None
    assert (led.referred_by.tolist(), led.reference_kinds.tolist()) == ([-1, 0], [-1, NEIGHBOUR])
    with pytest.warns(SetSelectWarning, match="neighbours .*references"):
        select([1.0, 0.0], vectors, 2, **given_, neighbours=[7, 0, 5, 8], references=np.zeros((4, 4)))


def test_what_a_selector_uses_of_the_same_texts() -> None:
    texts = as_texts(["Ann Lee swims.", "She dives.", "Perth has a port. Ann Lee."], ["Ann Lee", "", "Perth"],
                     sources=["a"] * 3, neighbours=[0, 1, 2])  # fmt: skip
    found = {(refer, beside): texts.find_references(refer=refer, neighbours=beside)
             for refer in (True, False) for beside in (True, False)}  # fmt: skip
    assert found[False, False] is None
    counts = {key: int((one.strength > 0).sum()) for key, one in found.items() if one is not None}
    # One name leads to row 0; rows 0, 1 and 1, 2 stand next to each other.
    assert counts == {(True, True): 5, (True, False): 1, (False, True): 4}
    # The rows that are left keep their neighbours.
    taken = texts.take([2, 1]).find_references(refer=False)
    assert taken is not None
    assert np.nonzero(taken.strength)[0].tolist() == [0, 1]


def test_capabilities_say_what_is_read() -> None:
    assert Coverage().capabilities.neighbours
    assert not Coverage(neighbour_weight=0).capabilities.neighbours
    assert Coverage(reference_weight=0).capabilities.neighbours
