"""The VRSD paper's Table 2: prompts and the judging of answers, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.papers.vrsd_downstream import DATA_SETS, named_option

ARC, BOOK, PUZZLE = DATA_SETS
CHOICES = [("A", "a hen"), ("B", "fox"), ("C", "a fox cub"), ("D", "none (B is a trap)")]
RECORDS: list[dict[str, Any]] = [
    {
        "question": "Which is 3?",
        "choices": [{"label": "1", "text": "no"}, {"label": "2", "text": "it is 3"}],
        "answer_key": "2",
        "answers": ["it is 3"],
    },
    {
        "question": "Number 3 is",
        "choices": [{"label": "A", "text": "odd"}, {"label": "B", "text": "even"}],
        "answer_key": "A",
    },
    {"story": "Why was he not hurt?", "answer": "They were low."},
]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("(B) fox", "B"),
        ("I think it is (C), not a hen", "C"),
        ("The answer is Dogs", None),
        ("A fox", "B"),
        ("a fox cub", "C"),
        ("(E)", None),
        ("", None),
    ],
)
def test_which_option_an_answer_names(answer: str, label: str | None) -> None:
    assert named_option(answer, CHOICES) == label


def test_what_each_data_set_shows_and_how_it_judges() -> None:
    arc, book, puzzle = RECORDS
    assert ARC.read(arc) == ("Which is 3?", "it is 3")
    assert BOOK.read(book) == ("Number 3 is\n(A) odd\n(B) even", "(A) odd")
    assert PUZZLE.read(puzzle) == (puzzle["story"], "They were low.")
    assert ARC.judge("it is", arc) == pytest.approx(0.8)
    assert (BOOK.judge("(A) odd", book), BOOK.judge("even", book)) == (1, 0)
    assert PUZZLE.judge("They were low.", puzzle) == 1
