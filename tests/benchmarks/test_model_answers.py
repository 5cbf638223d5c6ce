"""benchmarks/answers.py with a model made up here, and figures by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import answers
from benchmarks.answers import MEASURES, NEEDED, NOTHING, ROWS, Asked, Layout, context, difference, f1, prompt_item
from benchmarks.learned.judge import Judge
from benchmarks.papers._language_models import LanguageModel
from benchmarks.regimes_methods import DEFAULT, SIMILARITY
from shared_core.signals.language_models import Item, Scored

TEXTS = [("Rush", "Rush is a band from Toronto."), ("Neil Peart", "He played the drums in Rush.")]


def asked(answer: str, needed: int) -> Asked:
    """The default and the bound have ``needed`` texts, the other methods the second one only."""
    texts = dict.fromkeys(ROWS, TEXTS[1:]) | {NOTHING: [], DEFAULT: TEXTS[:needed], NEEDED: TEXTS[:needed]}
    found = {row: float(len(some) == needed) for row, some in texts.items()}
    return Asked(f"Who is {answer}?", answer, texts, found, dict.fromkeys(ROWS, np.nan) if answer == "yes" else found)


class Reader:
    """Writes the first word of the prompt's first text; a prompt is the more probable the more words it has."""

    name, limit, precision = "", None, ""

    def count_tokens(self, items: list[Item]) -> list[int]:
        return [len((item.context + item.answer).split()) + 2 for item in items]

    def score_batches(self, items: list[Item], _: int) -> Iterator[list[tuple[int, Scored]]]:
        for place, item in enumerate(items):
            yield [(place, Scored(-1 / len(item.context.split()), False, 2, False))]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LanguageModel:
    monkeypatch.setattr(answers, "FOLDER", tmp_path)
    monkeypatch.setattr(answers, "worked_examples", lambda: [("Is it?", "yes", TEXTS)])
    reader: Any = Reader()

    def write(prompts: list[str], _: int) -> list[str]:
        return [prompt.rsplit("\n\n", 1)[1].split()[0] for prompt in prompts]

    return LanguageModel("reader", "a reader.", "reader", reader, write)


def test_answers_are_compared_as_squad_does() -> None:
    assert answers.normalised("The  Beatles, a band!") == ["beatles", "band"]
    assert f1("the Beatles", "Beatles") == 1
    assert f1("Neil Peart of Rush", "Neil Ellwood Peart") == pytest.approx(2 * 2 / (4 + 3))
    assert f1("yes it is", "yes") == f1("", "Rush") == 0


def test_a_prompt_has_its_texts_cut_and_the_best_one_where_the_layout_says() -> None:
    last = prompt_item("Who?", "Rush", TEXTS, Layout(4, titles=True, best_last=True))
    assert last == {"question": "Neil Peart: He played\nRush: Rush is a\nQuestion: Who?\nAnswer:", "answer": "Rush"}
    first = prompt_item("Who?", "Rush", TEXTS, Layout(2, titles=False, best_last=False))
    assert first["question"].startswith("Rush is\nHe played\n")
    assert context(first, [last]).endswith("Answer:\nRush\n\nRush is\nHe played\nQuestion: Who?\nAnswer:\n")


def test_every_row_is_asked_and_judged(model: LanguageModel, tmp_path: Path) -> None:
    some = [asked("Rush", 2), asked("yes", 1)]
    layout = Layout(60, titles=False, best_last=False)
    figures = answers.ask(Judge(model, tmp_path / "v.jsonl", print), model, some, answers.Prompts(layout), "")
    exact, log = MEASURES.index("exact match"), MEASURES.index("log P")
    assert figures[DEFAULT][:, exact].tolist() == [100, 0]
    assert figures[SIMILARITY][:, exact].tolist() == [0, 0]
    # More texts make a longer prompt, which this model finds more probable.
    assert figures[DEFAULT][0, log] > figures[SIMILARITY][0, log] > figures[NOTHING][0, log]
    found = answers.groups({"films": some}, {"films": figures})
    assert list(found) == ["both sets", "films", "films, other answers", "films, yes or no"]
    row = f"| films, other answers: {DEFAULT} | 1 | 100.0 | 100.0 | 100.0 | 100.0 |"
    assert row in answers.figure_table(found)
    assert f"| films, yes or no: {DEFAULT} | 1 | 100.0 |  | 0.0 |" in answers.figure_table(found)
    assert f"- Not told apart: {DEFAULT} minus similarity, exact match" in answers.verdict(found)
    last = answers.text_table({"films": some}).splitlines()[-1]
    assert last.startswith("| films: answer in a text | 1 | 0.0 | 0.0 | 0.0 | 100.0 | +100.0 (")


def test_layouts_are_judged_by_log_p(model: LanguageModel, tmp_path: Path) -> None:
    tried = answers.try_layouts(Judge(model, tmp_path / "v.jsonl", print), [asked("Rush", 2)])
    assert tried.shape == (len(answers.LAYOUTS), len(answers.TRIED_WITH))
    lines = answers.layout_table(tried).splitlines()[2:]
    assert [line for line in lines if "**" in line] == [lines[answers.LAYOUTS.index(answers.LAYOUT)]]


def test_a_difference_is_paired_and_leaves_out_what_is_unknown() -> None:
    base = np.zeros((3, len(MEASURES)))
    other = base.copy()
    other[:, MEASURES.index("answer in a text")] = [100, 100, np.nan]
    found = difference({SIMILARITY: base, DEFAULT: other}, DEFAULT, "answer in a text")
    assert found == (100, 100, 100)
    assert answers.shown(found, "answer in a text") == "+100.0 (+100.0 to +100.0)"
