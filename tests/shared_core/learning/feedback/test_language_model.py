from __future__ import annotations

import copy
from typing import Any

import numpy as np
import openai
import pytest
from transformers import ByT5Tokenizer

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import EndpointModel, InvalidInputError, InvalidParameterError, SetSelectWarning, TransformersModel
from shared_core.learning.feedback.language_model import LanguageModelFeedback
from shared_core.learning.feedback.prompts import Cost
from tests.shared_core.signals.completions_server import Completions, oracle, serving

pytestmark = pytest.mark.usefixtures("one_torch_thread")

ITEMS = [
    {"question": "What is the capital of France?", "answer": "Paris"},
    {"question": "", "answer": "It is the capital"},
    {"question": "Who wrote it? 😀", "answer": "😀 a poet"},
    {"question": "{answer} or {question}?", "answer": "{answer}"},
    {"question": "Why?  ", "answer": " because\n\nof it"},
]
PAIRS: list[Any] = [
    (ITEMS[0], []),
    (ITEMS[1], [ITEMS[0], ITEMS[3]]),
    (ITEMS[2], [ITEMS[4]]),
    (ITEMS[3], [ITEMS[0], ITEMS[1], ITEMS[2], ITEMS[4]]),
    (ITEMS[3], [ITEMS[4], ITEMS[2], ITEMS[1], ITEMS[0]]),
]
TEXTS = [text for item in ITEMS[:2] for text in item.values()]
TOKENIZER = tiny_tokenizer(TEXTS)
STARTING = tiny_tokenizer(TEXTS, adds_start=True)
BYTES = ByT5Tokenizer()
GPT2 = tiny_model(384, positions=400)
DROPPED = "context was full"


def head_of(query: Any, subset: Any) -> str:
    """The default template, written out."""
    return "".join(f"{item['question']}\n{item['answer']}\n\n" for item in subset) + query["question"] + "\n"


def expected(pairs: Any = PAIRS) -> list[float]:
    return [oracle(GPT2, TOKENIZER, head_of(*pair), pair[0]["answer"])[0] for pair in pairs]


def feedback(
    model: Any = GPT2, tokenizer: Any = TOKENIZER, max_length: int | None = None, **settings: Any
) -> LanguageModelFeedback:
    local = TransformersModel(model, tokenizer, max_length=max_length)
    return LanguageModelFeedback(local, **{"model_id": "tiny", **settings})


# --- transformers ---------------------------------------------------------------------------------


def test_a_score_is_the_sum_over_the_answers_tokens() -> None:
    scores = feedback(batch_size=2).score(PAIRS)
    np.testing.assert_allclose(scores, expected(), atol=2e-5)
    assert np.ptp(scores) > 1
    assert all(type(value) is float for value in scores)


def test_equal_prompts_are_scored_once_and_no_pairs_give_no_scores() -> None:
    twice = feedback(batch_size=100)
    seen: list[int] = []
    ask = twice._model.score_batches

    def counted(items: Any, batch_size: int) -> Any:
        seen.append(len(items))
        return ask(items, batch_size)

    twice._model.score_batches = counted  # type: ignore[method-assign]
    found = twice.score([*PAIRS, *PAIRS])
    assert seen == [5]
    assert found[:5] == found[5:]
    assert twice.score([]) == []


# --- full contexts --------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", [TOKENIZER, STARTING, BYTES], ids=["plain", "with a start token", "in Python"])
def test_whole_examples_are_dropped_from_the_front_with_one_warning(tokenizer: Any) -> None:
    limit = 75 if tokenizer is BYTES else 40
    with pytest.warns(SetSelectWarning, match=DROPPED) as caught:
        scores = feedback(tokenizer=tokenizer, max_length=limit, batch_size=2).score(PAIRS)
    kept, dropped = [], 0
    for query, subset in PAIRS:
        for skip in range(len(subset) + 1):
            value, _, tokens = oracle(GPT2, tokenizer, head_of(query, subset[skip:]), query["answer"])
            if tokens <= limit:
                break
        kept.append(value)
        dropped += skip
    np.testing.assert_allclose(scores, kept, atol=2e-5)
    assert dropped > 2
    assert len(caught) == 1
    assert f"{dropped} examples were dropped" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_context_that_is_just_full_loses_nothing_and_the_instruction_stays() -> None:
    query, subset = PAIRS[3]
    head = f"Do.\n\n{head_of(query, subset)}"
    value, _, tokens = oracle(GPT2, TOKENIZER, head, query["answer"])
    assert feedback(instruction="Do.", max_length=tokens)(query, subset) == pytest.approx(value, abs=2e-5)
    with pytest.warns(SetSelectWarning, match=r"1 examples .* of 1 of 1 prompts \(pair 0"):
        shorter = feedback(instruction="Do.", max_length=tokens - 1)(query, subset)
    head = f"Do.\n\n{head_of(query, subset[1:])}"
    assert shorter == pytest.approx(oracle(GPT2, TOKENIZER, head, query["answer"])[0], abs=2e-5)


def test_question_and_answer_that_do_not_fit_are_named() -> None:
    long = {"question": "xyz" * 40, "answer": "a"}
    with pytest.raises(InvalidInputError, match=r"pair 1: .* 40 tokens"):
        feedback(max_length=40).score([PAIRS[0], (long, [ITEMS[0]])])


# --- names, sizes and what is refused -------------------------------------------------------------


def test_fingerprints_differ_between_models_and_templates() -> None:
    made = [{}, {"model_id": "other"}, {"instruction": "x"}, {"example": "{answer}"}, {"separator": "x"}]
    made += [{"answer": "sql"}, {"question": "q"}, {"max_length": 100}]
    prints = [feedback(**settings).fingerprint for settings in made]
    assert len(set(prints)) == len(made)
    assert feedback(batch_size=3).fingerprint == prints[0]
    assert feedback(copy.deepcopy(GPT2).bfloat16()).fingerprint != prints[0]
    assert "LanguageModelFeedback" in prints[0]
    assert "tiny" in prints[0]
    assert "tiny" in repr(feedback())
    with pytest.raises(InvalidParameterError, match="model_id="):
        _ = feedback(model_id="").fingerprint


# --- endpoint -------------------------------------------------------------------------------------


@pytest.fixture
def completions(monkeypatch: pytest.MonkeyPatch) -> Completions:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Completions(GPT2, TOKENIZER)


def test_an_endpoint_agrees_with_the_oracle(completions: Completions) -> None:
    with serving(completions) as url:
        remote = LanguageModelFeedback(EndpointModel(url, "tiny"), batch_size=2, price=0.5)
        cost = remote.cost(PAIRS)
        assert completions.requests == []
        found = remote.score(PAIRS)
    np.testing.assert_allclose(found, expected(), atol=2e-5)
    assert remote.remote
    assert remote.model_id == "tiny"
    prompts = [prompt for request in completions.requests for prompt in request["prompt"]]
    assert [len(request["prompt"]) for request in completions.requests] == [2, 2, 1]
    assert [len(prompt) for prompt in prompts] == sorted(map(len, prompts), reverse=True)
    size = sum(map(len, prompts))
    assert cost == Cost(len(PAIRS), size, -(-size // 4), 0.5)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 40 tokens. However, you requested 55 tokens"),
        (400, "The decoder prompt (length 55) is longer than the maximum model length of 40."),
        (400, "the request exceeds the available context size, try increasing it"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 40. Given: 54 and 1"),
        (413, "prompt too long"),
    ],
)
def test_a_prompt_that_the_server_refuses_for_its_length_is_sent_again_with_fewer_examples(
    status: int, words: str, completions: Completions
) -> None:
    completions.limit, completions.status, completions.words = 40, status, words
    with serving(completions) as url, pytest.warns(SetSelectWarning, match=DROPPED) as caught:
        found = LanguageModelFeedback(EndpointModel(url, "tiny"), batch_size=3).score([*PAIRS, PAIRS[3]])
    with pytest.warns(SetSelectWarning) as local:
        np.testing.assert_allclose(found, feedback(max_length=40).score([*PAIRS, PAIRS[3]]), atol=2e-5)
    assert len(caught) == 1
    assert str(caught[0].message) == str(local[0].message)


def test_other_refusals_reach_the_caller(completions: Completions) -> None:
    completions.limit, completions.words = 0, "no such model"
    with serving(completions) as url:
        remote = LanguageModelFeedback(EndpointModel(url, "tiny"))
        with pytest.raises(openai.BadRequestError, match="no such model"):
            remote.score(PAIRS)
        assert len(completions.requests) == 1
        completions.words = "maximum context length"
        with pytest.raises(InvalidInputError, match=r"pair 2: .*maximum"):
            remote.score([PAIRS[0], PAIRS[0], PAIRS[2]])
