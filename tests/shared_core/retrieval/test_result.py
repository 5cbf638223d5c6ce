"""Neighbours as one text: overlaps once, metadata merged."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from shared_core.retrieval.pool import name_of_text
from shared_core.retrieval.result import join, join_texts, merge_metadata

V = np.arange(2)
TEXT = "\n\n".join(" ".join(f"Sentence {p}.{s} tells of matter {s * p}." for s in range(5)) for p in range(4))


@pytest.mark.parametrize(
    ("texts", "starts", "joined"),
    [
        (["abcd", "cdef"], [0, 2], "abcdef"),
        (["abcd", "efgh"], [10, 14], "abcdefgh"),
        (["abcd", "efgh"], [0, 5], "abcd efgh"),
        (["abcd", "efgh"], [0, 6], "abcd\n\nefgh"),
        # One of them is a part of the other.
        (["abcd", "bc"], [0, 1], "abcd"),
        # The places are wrong, or not known.
        (["abcd", "xyz"], [0, 2], "abcd\n\nxyz"),
        (["abcd", "cdef"], [5, 2], "abcd\n\ncdef"),
        (["it is so. It rains today.", "It rains today. And then"], [None, 3], "it is so. It rains today. And then"),
        (["It rains today.", "It rains today. So"], [0, 90], "It rains today.\n\nIt rains today. So"),
        # Fewer letters than chance gives.
        (["the cat", "at once"], [None, None], "the cat\n\nat once"),
        (["one ", "two"], [None, None], "one two"),
        (["one"], [None], "one"),
    ],
)  # fmt: skip
def test_overlaps_stand_once(texts: list[str], starts: list[int | None], joined: str) -> None:
    assert join_texts(texts, starts) == joined


@pytest.mark.parametrize("text", ["a" * 10_000_000, "ab" * 500_000, "\u0301" * 1_000_000])
@pytest.mark.parametrize("starts", [(None, None), (0, 17)])
def test_joining_takes_linear_time(text: str, starts: Any) -> None:
    started = time.process_time()
    assert len(join_texts([text, text[1:] + "c"], starts)) > len(text)
    assert time.process_time() - started < 2


def test_metadata_is_merged() -> None:
    given: list[dict[str, Any]] = [
        {"source": "a", "page": 3, "start_index": 5, "rerank_score": 0.25, "tags": ["x"], "only": None, "v": V},
        {"source": "a", "page": 4, "start_index": 9, "rerank_score": 0.5, "tags": ["x"], "lang": "en", "v": V},
        {"source": "a", "page": 3, "start_index": 12, "rerank_score": float("nan"), "lang": "", "score": "high"},
    ]  # fmt: skip
    before = [dict(one) for one in given]
    merged = merge_metadata(given)
    assert merged.pop("v").tolist() == [0, 1]
    assert merged == {
        "source": "a", "page": [3, 4], "start_index": 5, "rerank_score": 0.5, "tags": ["x"], "only": None, "lang": "en",
        "score": "high",
    }  # fmt: skip
    assert [list(one) for one in given] == [list(one) for one in before]


def test_a_part_without_an_id_has_the_name_of_its_text() -> None:
    whole = join(["a", None], ["one", "two"], [{}, {}], [None, None])
    one, two = name_of_text("one"), name_of_text("two")
    assert (whole.id, whole.metadata) == (None, {"selection_joined": {"a": one, two: two}})
