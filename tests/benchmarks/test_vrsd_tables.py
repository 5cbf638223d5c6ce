"""The pure functions of the VRSD paper's tables, on cases worked out by hand; no data, no model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import vrsd

QUERY = np.array([1.0, 0.0])
# Degrees from the query. The pool of three leaves out the item at 90°; its order by cosine is rows 3, 1, 2.
ANGLES = (90, 12, -20, 10)
ITEMS = np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in ANGLES])
ARC = next(data_set for data_set in vrsd.DATA_SETS if data_set.paper == "ARC-DA")
BM25 = np.array([5.0, 1.0, 0.0, 0.0])


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


@pytest.mark.parametrize(("n", "asked"), [(10, 2), (70, 14), (4833, 966), (2099, 419)])
def test_a_fifth_are_questions_and_no_items(n: int, asked: int) -> None:
    questions, rest = vrsd.split(n)
    assert len(questions) == asked
    assert sorted([*questions, *rest]) == list(range(n))


def test_best_takes_the_lower_index_of_equals_and_all_if_there_are_fewer() -> None:
    assert vrsd.best(np.array([0.1, 0.7, 0.7, 0.9]), 3).tolist() == [3, 1, 2]
    assert vrsd.best(np.zeros(1000), 5).tolist() == [0, 1, 2, 3, 4]
    assert vrsd.best(np.array([0.1, 0.2]), 100).tolist() == [1, 0]


def test_what_each_method_selects() -> None:
    found = vrsd.picks(QUERY, ITEMS, BM25, size=3, k=2)
    assert {name: chosen.tolist() for name, chosen in found.items()} == {
        "similarity": [3, 1],
        "MMR λ 1": [3, 1],
        # ½(cos 12° − cos 2°) < 0 < ½(cos 20° − cos 30°)
        "MMR λ 0.5": [3, 2],
        # ¾ cos 20° − ¼ cos 30° = 0.488, and 0.484 for row 1
        "MMR λ 0.75": [3, 2],
        "MMR λ 0": [3, 2],
        # 10° and −20° add up to −5°, 10° and 12° to 11°
        "VRSD": [3, 2],
        "VRSD refined": [3, 2],
        # BM25 scores rows 2 and 3 equally; row 3 is nearer.
        "BM25, the pool": [1, 3],
        "BM25, all items": [0, 1],
    }


def test_cosines_of_sums_and_pairs_follow_from_the_angles() -> None:
    aims, likeness = vrsd.judge(QUERY[None], ITEMS, [BM25], size=3, k=2)
    assert list(aims) == list(likeness) == list(vrsd.METHODS)
    # The sum of two unit vectors halves the angle between them.
    for name, towards, apart in (
        ("similarity", 11, 2),
        ("VRSD", 5, 30),
        ("BM25, the pool", 11, 2),
        ("BM25, all items", 51, 78),
    ):
        assert aims[name] == pytest.approx([cosine_of(towards)], abs=1e-12)
        assert likeness[name] == pytest.approx([cosine_of(apart)], abs=1e-12)


def test_refining_corrects_a_greedy_mistake_and_both_are_judged() -> None:
    # 5° and −6° nearly cancel, and any third item turns the sum away; 5°, 20° and −28° point closer to the query.
    angles = (5, -6, 20, -28)
    items = np.array([[cosine_of(a), math.sin(math.radians(a))] for a in angles])
    aims, _ = vrsd.judge(QUERY[None], items, [np.zeros(4)], size=4, k=3)
    for name, rows in ((vrsd.VRSD, [0, 1, 2]), (vrsd.REFINED, [0, 2, 3])):
        assert aims[name] == pytest.approx([math.cos(math.atan2(*items[rows].sum(axis=0)[::-1]))], abs=1e-12)
    assert vrsd.worsened(aims) == 0


def test_an_item_is_the_question_and_its_answer_as_each_data_set_defines_it() -> None:
    record = {
        "question": "Ice is",
        "choices": [{"label": "A", "text": "cold"}, {"label": "B", "text": "hot"}],
        "answer": "cold",
        "answers": ["cold"],
        "story": "He slept.",
    }
    assert [data_set.read(record) for data_set in vrsd.DATA_SETS] == [
        ("Ice is", "cold"),
        ("Ice is? The options are: cold. hot", "cold"),
        ("Ice is", "cold"),
        ("He slept.", "cold"),
    ]


def test_without_data_it_says_so_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vrsd, "DATA", tmp_path)
    monkeypatch.setattr("benchmarks.common.RESULTS", tmp_path / "results")
    vrsd.main(["--write"])
    out, err = capsys.readouterr()
    assert not out
    assert err.count("skipped") == len(vrsd.DATA_SETS)
    assert "SETSELECT_DATA" in err
    assert not (tmp_path / "results").exists()
