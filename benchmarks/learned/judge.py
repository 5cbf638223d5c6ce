"""A language model as the judge of example sets: log P of the right answer, and whether the model writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers._language_models import LanguageModel
from shared_core.learning.feedback import PromptTemplate
from shared_core.signals.language_models import TEMPLATE

# Between the examples, and the end of an answer: after it the model would go on with the next question.
END = "\n\n"
Item = Mapping[str, Any]
Pair = tuple[Item, Sequence[Item]]


class Judge:
    """A feedback for ``label`` and ``fit``: log P(answer | examples, question) of a language model.

    A prompt has the form of ``setselect train``: the examples in the given order, each a question and its answer on two
    lines, then the question. The empty line after the answer is part of the answer. ``file`` keeps the scores.
    """

    def __init__(self, model: LanguageModel, file: Path) -> None:
        self.model, self.fingerprint, self._file = model, model.key, file
        self._template = PromptTemplate("", TEMPLATE, END, "question", "answer")

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        return [log for log, _ in self.verdicts(pairs)]

    def verdicts(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """For each query and its examples log P, and whether greedy decoding writes the right answer and its end."""
        prompts = [self._template.prompt(0, *pair).item() for pair in pairs]
        return self.model.verdicts([prompt._replace(answer=prompt.answer + END) for prompt in prompts], self._file)


class Recorder:
    """A feedback that only records what it is asked."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        self.pairs.append((query_item, subset_items))
        return 0.0
