"""The result of a selection: how it is made, and what it shows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from setselect import (
    PAP,
    Candidates,
    InvalidInputError,
    LinearKernel,
    LowRankKernel,
    Selection,
    make_selection,
    select,
    select_many,
)
from shared_core.selectors.selection import at_rows, newly_served, write_reasons
from tests.shared_core.cases import gaussian

QUERY, VECTORS = gaussian(90, 11, 5)


@pytest.mark.parametrize(("picks", "gains"), [([0, 11], [1.0, 1.0]), ([-1], [1.0]), ([0, 1], [1.0])])
def test_picks_that_are_no_rows_make_no_selection(picks: list[int], gains: list[float]) -> None:
    with pytest.raises(InvalidInputError, match=r"^picks "):
        make_selection(Candidates(QUERY, VECTORS), picks, gains)


ARRAYS: dict[str, Any] = {
    "selection": lambda: select([QUERY, VECTORS[3]], VECTORS, 3, texts=["Ann Lee", "B"] * 5 + ["C"], question="a"),
    "selections": lambda: select_many([QUERY] * 2, VECTORS, 3),
    "low-rank": lambda: LowRankKernel(np.eye(3), np.ones((3, 2)), [[0, 1], [-1, 0]], temperature=1, W_R=np.eye(5)),
    "linear": lambda: LinearKernel(np.eye(3)),
    "perspective": lambda: PAP([1.0, 2.0]),
    "candidates": lambda: Candidates(QUERY, VECTORS, costs=[1] * 11, references=np.eye(11)),
}


@pytest.mark.parametrize("copied", [lambda one: one, lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only_also_in_copies(name: str, copied: Any) -> None:
    values = vars(copied(ARRAYS[name]())).values()
    arrays = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
    arrays = [one for one in arrays if isinstance(one, np.ndarray)]
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


SHARES = np.array([[1.0, 0, 0], [0.25, 0, 0.75], [0.404, 0.5, 0.096], [0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize(("kind", "lead"), [(0, "named by"), (1, "linked by"), (2, "cited by"), (3, "next to")])
def test_a_reason_names_what_brought_the_pick(kind: int, lead: str) -> None:
    rows, numbers = np.array([4, 3, 2, 1, 0]), np.array([0.5, 0.25, 1 / 3, -0.125, 120.0])
    by, kinds = np.array([-1, 4, 3, -1, -1]), np.array([-1, kind, kind, -1, -1], np.int8)
    found = Selection(rows, numbers, numbers, 0.0, None, by, kinds, None, SHARES)
    title = "A long\ntitle " * 20
    reasons = write_reasons(
        found,
        words=[["of", "no", "worth"], [], ["one", "two"], [], []],
        covers=[[], [], ["news"], [], []],
        name_row={4: "Ann Lee", 3: title}.__getitem__,
    )
    assert reasons[:2] == ["relevance 0.5 (100 %)", f"relevance 0.25 (25 %); {lead} Ann Lee (75 %)"]
    named = f"words: one, two; covers: news (50 %); {lead} A long title A long title "
    assert reasons[2].startswith(f"relevance 0.333 (40 %); {named}")
    assert len(reasons[2]) < 170
    assert reasons[3:] == ["relevance -0.125 (0 %); covers more (100 %)", "relevance 120 (0 %)"]


def test_without_shares_a_reason_says_only_what_is_known() -> None:
    numbers = np.array([0.5, 0.25])
    for shares in (None, np.array([[1.0, 0, 0], [1, 0, 0]])):
        plain = Selection(np.array([1, 0]), numbers, numbers, 0.0, shares=shares)
        assert write_reasons(plain) == ["relevance 0.5", "relevance 0.25"]
    served = select([QUERY, VECTORS[3]], VECTORS, 3, "mmr")
    assert served.serves is not None
    first = [row not in served.serves[:i] for i, row in enumerate(served.serves.tolist())]
    assert [bool(names) for names in newly_served(served)] == first
    assert [f"; covers: {names[0]}" if names else "" for names in newly_served(served)] == [
        reason.removeprefix(f"relevance {relevance:.3g}")
        for reason, relevance in zip(write_reasons(served, covers=newly_served(served)), served.relevance, strict=True)
    ]


def test_a_selection_says_which_question_a_pick_serves() -> None:
    found = select([QUERY, VECTORS[3]], VECTORS, 3)
    assert found.serves is not None
    assert pickle.loads(pickle.dumps(found)).serves.tolist() == found.serves.tolist()
    moved = at_rows(found, np.arange(11) + 5)
    assert moved.serves is found.serves
    assert moved.shares is found.shares
    assert moved.shares is not None
