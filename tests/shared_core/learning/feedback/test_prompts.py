from __future__ import annotations

from typing import Any

import pytest

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.learning.feedback.prompts import EXAMPLE, PromptTemplate

BRACES = {"question": "{answer}? {0} {", "answer": "{question}", "topic": "}{", "year": 1990}
PLAIN = {"question": "Why?", "answer": "So.", "topic": "all", "year": 2.5}


def context(query: Any, subset: Any, **settings: Any) -> str:
    given = {"instruction": "", "example": EXAMPLE, "separator": "\n\n", "question": "question", "answer": "answer"}
    return PromptTemplate(**{**given, **settings}).prompt(4, query, subset).item().context


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "Why?\nSo.\n\n{answer}? {0} {\n"),
        ({"instruction": "Do {x}.", "separator": "|"}, "Do {x}.|Why?\nSo.|{answer}? {0} {\n"),
        ({"example": "{{{topic}}} {year}: {answer}"}, "{all} 2.5: So.\n\n{}{} 1990: "),
        ({"example": "{question}{answer}", "separator": ""}, "Why?So.{answer}? {0} {"),
        ({"example": "{answer}", "answer": "topic"}, "all\n\n"),
    ],
)
def test_texts_enter_the_prompt_unchanged(settings: dict[str, str], text: str) -> None:
    assert context(BRACES, [PLAIN], **settings) == text


def test_the_keys_name_question_and_answer_and_examples_are_dropped_from_the_front() -> None:
    template = PromptTemplate("I", "{question}={answer}", "|", "q", "sql")
    items = [{"q": f"q{i}", "sql": f"s{i}", "answer": "no"} for i in range(3)]
    prompt = template.prompt(4, items[2], items[:2])
    assert prompt.item() == (4, "I|q0=s0|q1=s1|q2=", "s2")
    prompt.drop("x")
    assert prompt.item().context == "I|q1=s1|q2="
    prompt.drop("x")
    assert prompt.item().context == "I|q2="
    with pytest.raises(InvalidInputError, match=r"pair 4: .*\(x\)"):
        prompt.drop("x")


@pytest.mark.parametrize(
    "example",
    ["", "{question}", "{answer} ", "{answer}{answer}", "{question} {answer", "{question!r} {answer}", "{} {answer}",
     "{question:>9} {answer}", "{question.a} {answer}", "{question[0]} {answer}", "{answer:s}", "}{answer}"],
)  # fmt: skip
def test_invalid_templates_are_refused(example: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^example "):
        context(PLAIN, [], example=example)
