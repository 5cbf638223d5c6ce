"""What a selection of the route says about itself: the copies that were left out, and whether a gain ended it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from setselect import Candidates, Coverage, make_selector
from shared_core.selection.route import Limits, select_set
from shared_core.texts import Texts

# Of the last two, which have one text, the first is nearer to the query.
VECTORS = [[0.5, 0.5, 0.2], [0.2, 0.9, 0.1], [1.0, 0.1, 0.0], [1.0, 0.2, 0.0]]
TEXTS = ["one", "two", "the same", "the same"]


@pytest.mark.parametrize(
    ("more", "shown", "left_out"),
    [
        ({}, [], (3,)),
        ({"prefer": [0, 0, 0, 1]}, [], (2,)),
        ({"relevance": [0.1, 0.2, 0.3, 0.9]}, [], (2,)),
        ({}, [2], (3,)),
    ],
)
def test_copies_that_were_left_out_are_named(more: dict[str, Any], shown: list[int], left_out: tuple[int, ...]) -> None:
    candidates = Candidates([1.0, 0.0, 0.0], VECTORS, **more)
    for drop in (True, False):
        found = select_set(
            candidates,
            make_selector("similarity"),
            4,
            texts=Texts(TEXTS, refer=False),
            shown=shown,
            limits=Limits(drop_copies=drop),
        )
        assert found.left_out == (left_out if drop else ())
        assert sorted(found.indices.tolist()) == sorted({0, 1, 2, 3} - {*found.left_out, *shown})


def test_copies_of_which_none_was_selected_are_named_too() -> None:
    candidates = Candidates([0.0, 1.0, 0.0], VECTORS)
    limits = Limits(drop_copies=True)
    found = select_set(candidates, make_selector("similarity"), 1, texts=Texts(TEXTS, refer=False), limits=limits)
    assert (found.indices.tolist(), found.left_out) == ([1], (3,))


@pytest.mark.parametrize(("min_gain", "ended"), [(None, False), (0.0, False), (0.9, True)])
def test_a_set_that_a_low_gain_ends_says_so(min_gain: float | None, ended: bool) -> None:
    vectors = np.random.default_rng(0).normal(size=(20, 4))
    found = select_set(Candidates(vectors[0], vectors), make_selector("coverage"), 9, limits=Limits(min_gain=min_gain))
    assert (found.ended, len(found) < 9) == (ended, ended)


def test_what_only_a_copy_covers_takes_no_share_of_the_weight() -> None:
    vectors = np.array([[1.0, 0.1], [1.0, 0.1], [0.2, 1.0]])
    texts, labels, rows = ["a", "a", "b"], ["news", "blog", "wiki"], [0, 2]
    candidates = Candidates([1.0, 0.5], vectors, cover=labels)
    without_copy = Candidates([1.0, 0.5], vectors[rows], cover=[labels[row] for row in rows])
    selection = select_set(candidates, Coverage(), 2, texts=Texts(texts), limits=Limits(drop_copies=True))
    expected = Coverage().select(without_copy, 2)
    assert selection.indices.tolist() == [rows[row] for row in expected.indices]
    np.testing.assert_allclose(selection.gains, expected.gains, rtol=1e-12)
