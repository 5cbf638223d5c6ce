"""A language model as the judge of example sets: log P of the right answer, and whether the model writes that answer.

Each prompt is scored once. Scores are kept in a file, so an interrupted run resumes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.papers._language_models import LanguageModel
from shared_core.learning.feedback.prompts import EXAMPLE, PromptTemplate
from shared_core.signals.language_models import Item as Prompt

# Between the examples, and the end of an answer: after it the model would go on with the next question.
END = "\n\n"
Item = Mapping[str, Any]
Pair = tuple[Item, Sequence[Item]]


class Verdict(NamedTuple):
    """log P of the right answer, and whether greedy decoding writes it and then ends it."""

    log: float
    exact: bool


class Judge:
    """A feedback for ``label`` and ``fit``: log P(answer | examples, question) of a language model.

    A prompt has the form of ``setselect train``: the examples in the given order, each a question and its answer on two
    lines, then the question. The empty line after the answer is part of the answer. ``file`` keeps the scores.
    """

    def __init__(self, model: LanguageModel, file: Path, say: Callable[[str], object]) -> None:
        self.model = model
        self.fingerprint = model.key
        self._file, self._say = file, say
        self._template = PromptTemplate("", EXAMPLE, END, "question", "answer")
        self._known: dict[str, Verdict] = {}
        self.tokens, self.seconds = 0, 0.0
        if file.exists():
            content = file.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                # A run that was killed left a part of a line.
                file.write_bytes(whole)
            for line in whole.splitlines():
                self._learn(json.loads(line))

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """log P for each query and its examples."""
        return [found.log for found in self.verdicts(pairs)]

    def verdicts(self, pairs: Iterable[Pair], about: str = "") -> list[Verdict]:
        """The verdict for each query and its examples; with ``about`` the judge says how many tokens it has to read."""
        prompts = [self._prompt(*pair) for pair in pairs]
        keys = [_key(prompt) for prompt in prompts]
        missing = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._known}
        names, items = list(missing), list(missing.values())
        answers: Any = self.model.answers
        counts = answers.count_tokens(items) if items else []
        if about:
            self._say(
                f"{about}: {len(set(keys)):,} prompts, {len(items):,} of them new; {sum(counts):,} tokens to read"
            )
        began = time.perf_counter()
        for batch in answers.score_batches(items, self.model.batch_size) if items else ():
            now = time.perf_counter()
            found = {names[place]: [one.mean * one.tokens, one.greedy] for place, one in batch}
            read = sum(counts[place] for place, _ in batch)
            self._keep({"verdicts": found, "tokens": read, "seconds": round(now - began, 3)})
            began = now
        return [self._known[key] for key in keys]

    def _keep(self, entry: dict[str, Any]) -> None:
        self._learn(entry)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def _prompt(self, query: Item, examples: Sequence[Item]) -> Prompt:
        prompt = self._template.prompt(0, query, examples).item()
        return prompt._replace(answer=prompt.answer + END)

    def _learn(self, entry: dict[str, Any]) -> None:
        self._known |= {key: Verdict(log, exact) for key, (log, exact) in entry["verdicts"].items()}
        self.tokens += entry["tokens"]
        self.seconds += entry["seconds"]


class Recorder:
    """A feedback that only records what it is asked."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        self.pairs.append((query_item, subset_items))
        return 0.0


def _key(prompt: Prompt) -> str:
    return hashlib.sha256(f"{len(prompt.context)} {prompt.context}{prompt.answer}".encode()).hexdigest()[:32]
