from __future__ import annotations

from typing import Any

import numpy as np
import openai
import pytest
from numpy.typing import NDArray

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import InvalidInputError, LanguageModel, SetSelectWarning
from shared_core.signals.perplexity import LogPerplexityQuality
from tests.shared_core.signals.completions_server import Completions, oracle, serving

pytestmark = pytest.mark.usefixtures("one_torch_thread")

QUESTIONS = [
    "What is the capital of France?",
    "",
    "Why?  ",
    "Who wrote it? 😀",
    "What is the capital of France?",
    "Wie heißt der Fluß?",
    "{answer} or {question}?",
]
ANSWERS = [
    "Paris",
    "It is the capital",
    " because\n\nof it",
    "😀 a poet",
    "It is Lyon, the capital",
    "Elbe é",
    "{answer}",
]
TOKENIZER = tiny_tokenizer([*QUESTIONS[:3], *ANSWERS[:3]])
MODEL = tiny_model(len(TOKENIZER))
TEMPLATES = ["{question}\n{answer}", "Q: {question} A: {answer}", "{{question}} {answer}"]


def expected(template: str = TEMPLATES[0]) -> NDArray[np.float64]:
    """RAGSys, section 3.3.3."""
    heads = [template.removesuffix("{answer}").replace("{question}", question) for question in QUESTIONS]
    sums = [oracle(MODEL, TOKENIZER, *pair) for pair in zip(heads, ANSWERS, strict=True)]
    return np.array([total / tokens for total, tokens, _ in sums])


def quality(max_length: int | None = None, **settings: Any) -> LogPerplexityQuality:
    model = LanguageModel(MODEL, TOKENIZER, max_length=max_length)
    return LogPerplexityQuality(model, **settings)


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_score_is_the_mean_log_probability_of_the_answers_tokens(template: str) -> None:
    scores = quality(template=template).score(QUESTIONS, ANSWERS)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected(template), atol=1e-6)
    assert np.ptp(scores) > 0.5


def test_questions_that_are_too_long_are_cut_with_a_warning() -> None:
    with pytest.warns(SetSelectWarning, match=r"1 of 2 texts .* 12 tokens \(item 1") as caught:
        scores = quality(12).score(["a?", "xyz" * 40 + "?"], ["d", "b c"])
    assert caught[0].filename == __file__
    total, tokens, _ = oracle(MODEL, TOKENIZER, "xyz" * 40 + "?\n", "b c", keep=12)
    assert scores[1] == pytest.approx(total / tokens, abs=1e-6)


@pytest.mark.parametrize(
    ("questions", "answers", "words"),
    [
        (["a", "b"], ["c"], "2 questions, but 1 answers"),
        (["a", "b"], [" \n", "c"], "item 0"),
        (["a", None], ["c", "d"], "item 1"),
        (["a"], [3], "item 0"),
    ],
)
def test_an_item_that_is_not_a_text_is_named(questions: Any, answers: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        quality().score(questions, answers)


def test_temporary_failures_are_retried_and_lasting_ones_name_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    completions = Completions(MODEL, TOKENIZER)
    with serving(completions) as url:
        completions.failures = 1
        patient = LogPerplexityQuality(LanguageModel("tiny", base_url=url, max_retries=1), batch_size=5)
        np.testing.assert_allclose(patient.score(QUESTIONS, ANSWERS), expected(), atol=1e-6)
        assert len(completions.requests) == 3
        completions.failures = 1
        hasty = LogPerplexityQuality(LanguageModel("tiny", base_url=url, max_retries=0))
        with pytest.raises(openai.InternalServerError) as caught:
            hasty.score(["new"], ["Rome"])
    assert "scored items 0" in caught.value.__notes__[0]
