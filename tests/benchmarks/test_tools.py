import numpy as np

from benchmarks.tools import Known, complete, in_turn, row_of, split_at


def test_each_clause_takes_its_turn() -> None:
    known = Known("none")
    request = "find the red lamp and buy a blue chair"
    known.vectors = {request: np.array([1.0, 0.0, 0.0]), "find the red lamp": np.array([0.0, 1.0, 0.1])}
    known.vectors["buy a blue chair"] = np.array([0.0, 0.1, 1.0])
    assert in_turn(known, request, np.eye(3)) == [0, 1, 2]
    assert in_turn(known, request, np.eye(3)[::-1]) == [2, 1, 0]


def test_the_share_of_complete_sets() -> None:
    recall = {5: np.array([100.0, 50.0, 0.0, 100.0])}
    assert complete(recall[5]).tolist() == [100, 0, 0, 100]
    assert row_of("name", recall) == ["name", "50.0", "62.5"]


def test_parts_of_two_words_are_left_out() -> None:
    assert split_at(r",\s+")("find a lamp, thank you, buy a chair") == ["find a lamp", "buy a chair"]
    assert split_at(r",\s+")("find a lamp, thank you") == []
