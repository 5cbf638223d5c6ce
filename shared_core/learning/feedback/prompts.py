"""A few-shot prompt made of items: an instruction, the examples, and the question whose answer is scored."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._argument_names import argument_name
from ..._validation import quoted
from ...errors import InvalidInputError, InvalidParameterError
from ...signals.language_models import Item

EXAMPLE = "{question}\n{answer}"


@dataclass(slots=True)
class Prompt:
    """A prompt that can lose examples from the front."""

    row: int
    instruction: str
    examples: list[str]
    question: str
    answer: str
    separator: str
    dropped: int = 0

    def item(self) -> Item:
        """The input of the model: the answer, and the text before it."""
        parts = [*([self.instruction] if self.instruction else []), *self.examples[self.dropped :], self.question]
        return Item(self.row, self.separator.join(parts), self.answer)

    def drop(self, reason: str) -> None:
        """Remove the first example; a prompt without examples is an InvalidInputError."""
        if self.dropped == len(self.examples):
            raise InvalidInputError(
                f"pair {self.row}: instruction, question and answer are too long even without examples ({reason}): "
                "shorten them, leave the item out, or take a model with a longer context"
            )
        self.dropped += 1


@dataclass(frozen=True, slots=True)
class Cost:
    """The size of all prompts for a model, before examples are dropped; ``price`` is that of a million tokens."""

    prompts: int
    characters: int
    tokens: int
    price: float | None = None

    def __str__(self) -> str:
        text = f"{self.prompts:,} prompts of {self.characters:,} characters, about {self.tokens:,} tokens"
        if self.price is None:
            return text
        return f"{text}, about {self.tokens * self.price / 1e6:,.2f} at {self.price:g} per million"


class PromptTemplate:
    """How items become a prompt: instruction, examples in their order and the question, with separators between them.

    See :class:`LanguageModelFeedback` for the parameters.

    >>> template = PromptTemplate("", "Q: {question} A: {answer}", " | ", "q", "a")
    >>> template.prompt(0, {"q": "2+2?", "a": "4"}, [{"q": "1+1?", "a": "2"}]).item()
    Item(row=0, context='Q: 1+1? A: 2 | Q: 2+2? A: ', answer='4')
    """

    def __init__(self, instruction: str, example: str, separator: str, question: str, answer: str) -> None:
        self._keys = {"question": question, "answer": answer}
        self.settings = {"instruction": instruction, "example": example, "separator": separator, **self._keys}
        self._parts = _parse_example(example)

    def prompt(self, row: int, query: Mapping[str, Any], subset: Sequence[Mapping[str, Any]]) -> Prompt:
        """The prompt for one query and its examples; an InvalidInputError names what an item lacks."""
        examples = [
            self._fill(item, f"pair {row}, item {n} of the subset", answered=True) for n, item in enumerate(subset)
        ]
        whose = f"pair {row}, query item"
        answer = self._text(query, "answer", whose)
        if not answer.strip():
            raise InvalidInputError(f"{whose}: its answer is {quoted(answer)}; leave out items without an answer")
        head = self._fill(query, whose, answered=False)
        return Prompt(row, self.settings["instruction"], examples, head, answer, self.settings["separator"])

    def _fill(self, item: Mapping[str, Any], whose: str, *, answered: bool) -> str:
        *fields, (literal, _) = self._parts
        text = "".join(before + self._text(item, name, whose) for before, name in fields) + literal
        return text + self._text(item, "answer", whose) if answered else text

    def _text(self, item: Mapping[str, Any], name: str, whose: str) -> str:
        key = self._keys.get(name, name)
        value = item.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and name not in self._keys:
            return str(value)
        remedy = f"name the key of its {name} ({name}=)" if name in self._keys else "the template names this key"
        raise InvalidInputError(
            f"{whose}: its {quoted(key)} is {quoted(value)}, not a text; it has the keys {quoted([*item])}: {remedy}"
        )


def _parse_example(example: str) -> list[tuple[str, str]]:
    """For each field the text before it, and its name."""
    wrong = InvalidParameterError(
        f"{argument_name('example')} must have plain fields such as {{question}}, and {{answer}} once and at its end; "
        f"a brace is written {{{{ or }}}}; got {quoted(example)}"
    )
    parts: list[tuple[str, str]] = []
    before = ""
    try:
        for literal, name, form, conversion in string.Formatter().parse(example):
            before += literal
            if name is not None:
                if not name.isidentifier() or form or conversion:
                    raise wrong
                parts.append((before, name))
                before = ""
    except ValueError:
        raise wrong from None
    names = [name for _, name in parts]
    if before or names.count("answer") != 1 or names[-1] != "answer":
        raise wrong
    return parts
