"""benchmarks/answers.py with a model made up here, and figures by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import answers
from benchmarks.answers import MEASURES, NEEDED, NOTHING, ROWS, Asked, context, prompt_item
from benchmarks.learned.judge import Judge
from benchmarks.papers._language_models import LanguageModel
from benchmarks.regimes_methods import DEFAULT, SIMILARITY
from shared_core.signals.language_models import Item, Scored

TEXTS = [("Rush", "Rush is a band from Toronto."), ("Neil Peart", "He played the drums in Rush.")]


def asked(answer: str, needed: int) -> Asked:
    """The default and the bound have ``needed`` texts, the other methods the second one only."""
    texts = dict.fromkeys(ROWS, TEXTS[1:]) | {NOTHING: [], DEFAULT: TEXTS[:needed], NEEDED: TEXTS[:needed]}
    return Asked(f"Who is {answer}?", answer, texts, {row: float(len(some) == needed) for row, some in texts.items()})


class Reader:
    """Writes the first word of the prompt's last text; a prompt is the more probable the more words it has."""

    name, limit, precision = "", None, ""

    def score_batches(self, items: list[Item], _: int) -> Iterator[list[tuple[int, Scored]]]:
        for place, item in enumerate(items):
            yield [(place, Scored(-1 / len(item.context.split()), False, 2, False))]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LanguageModel:
    monkeypatch.setattr(answers, "FOLDER", tmp_path)
    monkeypatch.setattr(answers, "worked_examples", lambda: [("Is it?", "yes", TEXTS)])
    reader: Any = Reader()

    def write(prompts: list[str], _: int) -> list[str]:
        texts = [["", *prompt.rsplit("\n\n", 1)[1].splitlines()[:-2]] for prompt in prompts]
        return [" ".join(some[-1].split()[:1]) for some in texts]

    return LanguageModel("reader", "a reader.", "reader", reader, write)


def test_answers_are_compared_as_squad_does() -> None:
    assert answers.normalised("The  Beatles, a band!") == ["beatles", "band"]


def test_a_prompt_has_the_best_text_next_to_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "WORDS", 2)
    item = prompt_item("Who?", "Rush", TEXTS)
    assert item == {"question": "He played\nRush is\nQuestion: Who?\nAnswer:", "answer": "Rush"}
    assert context(item, [item]).endswith("Answer:\nRush\n\nHe played\nRush is\nQuestion: Who?\nAnswer:\n")


def test_every_row_is_asked_and_judged(model: LanguageModel, tmp_path: Path) -> None:
    some = [asked("Rush", 2), asked("yes", 1)]
    figures = answers.ask(Judge(model, tmp_path / "v.jsonl"), model, some, answers.Prompts())
    exact, log = MEASURES.index("exact match"), MEASURES.index("log P")
    assert figures[DEFAULT][:, exact].tolist() == [100, 0]
    assert figures[SIMILARITY][:, exact].tolist() == [0, 0]
    # More texts make a longer prompt, which this model finds more probable.
    assert figures[DEFAULT][0, log] > figures[SIMILARITY][0, log] > figures[NOTHING][0, log]
    assert f"| films: {DEFAULT} | 2 | 100.0 | 50.0 |" in answers.figure_table({"films": figures})
    assert f"- Not told apart: {DEFAULT} minus similarity, exact match" in answers.verdict(figures)
