from __future__ import annotations

import ast
import copy
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from transformers import ByT5Tokenizer

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import InvalidInputError, InvalidParameterError, LanguageModel, SetSelectWarning
from shared_core.errors import quoted
from shared_core.learning import CoverageFeedback, LanguageModelFeedback, structural_symbols
from shared_core.learning.feedback import PromptTemplate, score_all
from shared_core.signals.language_models import TEMPLATE
from tests.shared_core.signals.completions_server import Completions, oracle, serving

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# --- symbols --------------------------------------------------------------------------------------

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))


def texts(name: str, key: str) -> list[str]:
    file = DATA / name
    if not file.is_file():
        pytest.skip(f"no {name} under {DATA}; set SETSELECT_DATA")
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line)[key] for line in lines]


def parsed(text: str) -> set[Any]:
    """By Python's parser, whose calls look like FunQL's and Prolog's; what it groups alone is passed through."""
    found: set[Any] = set()

    def visit(node: ast.AST, outer: str) -> None:
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            found.update({node.func.id} | ({(outer, node.func.id)} if outer else set()))
            outer = node.func.id
        for child in ast.iter_child_nodes(node):
            visit(child, outer)

    visit(ast.parse(text, mode="eval"), "")
    return found


@pytest.mark.parametrize("key", ["funql", "prolog"])
def test_geoquery_as_pythons_parser_reads_it(key: str) -> None:
    for text in texts("geoquery/geoquery.jsonl", key):
        # Prolog's not is a keyword in Python.
        readable = text.replace("not(", "is_not(")
        assert structural_symbols(readable) == parsed(readable), text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("answer(state(all))", {"answer", "state", ("answer", "state")}),
        ("f(g(x), h(g(y)))", {"f", "g", "h", ("f", "g"), ("f", "h"), ("h", "g")}),
        ("f('g(x)', \"h(y)\", 'it''s k(z)')", {"f"}),
        (r"f('it\'s g(x)', h(x))", {"f", "h", ("f", "h")}),
        ("f(cityid(coeur d'alene), g(d'x))", {"f", "cityid", "g", ("f", "cityid"), ("f", "g")}),
        ("f(2(x), 3)", {"f"}),
        ("np.sum(x).mean(f(y))", {"np.sum", "mean", "f", ("mean", "f")}),
        ("größe(fläche(x))", {"größe", "fläche", ("größe", "fläche")}),
        ("(argmax (state all) (size))", {"argmax", "state", "size", ("argmax", "state"), ("argmax", "size")}),
        ('(f \'x (g "(h y)") ((k) z))', {"f", "g", "k", ("f", "g"), ("f", "k")}),
        ("(> (state:t $0) 3)", {">", "state:t", (">", "state:t")}),
        ("[IN:A b(c) [SL:B x's ] d ]", {"IN:A", "SL:B", ("IN:A", "SL:B")}),
        ("Paris", {}),
        ("f(g(x", {"f", "g", ("f", "g")}),
        ("f(x)))) g(h(y))", {"f", "g", "h", ("g", "h")}),
        ("[IN:A [SL:B x", {"IN:A", "SL:B", ("IN:A", "SL:B")}),
        ("[IN:A ] ] ] [IN:B ]", {"IN:A", "IN:B"}),
        ("f('g(x)", {"f", "g", ("f", "g")}),
    ],
)
def test_forms_with_brackets_too_few_or_too_many(text: str, wanted: set[Any]) -> None:
    assert structural_symbols(text) == frozenset(wanted)


@pytest.mark.parametrize("piece", ["f(", "[A ", "'", "\\"])
def test_the_time_for_long_and_odd_texts_is_linear_in_their_length(piece: str) -> None:
    assert len(structural_symbols(piece * 20_000)) <= 2


# --- coverage -------------------------------------------------------------------------------------

F, G, H = ({"answer": text} for text in ("f(g(x))", "g(h(x))", "h(f(x), g(y))"))
WORDS = {"answer": "Paris"}


def length(text: str) -> list[str]:
    return [text[:i] for i in range(len(text))]


@pytest.mark.parametrize(
    ("query", "subset", "share"),
    [
        (F, [], 0.0),
        (F, [G], 1 / 3),
        (F, [G, {"answer": "f(g(y), z)"}], 1.0),
        (H, [F, G], 3 / 5),
        (H, [F, F, WORDS], 2 / 5),
    ],
)
def test_the_share_counted_by_hand(query: Any, subset: Any, share: float) -> None:
    assert CoverageFeedback()(query, subset) == pytest.approx(share, abs=1e-15)


def test_one_call_for_many_pairs_equals_single_calls_and_the_input_is_unchanged() -> None:
    pairs = [(F, [G]), (G, [F, H]), (H, (F, G)), (F, [])]
    before = copy.deepcopy(pairs)
    feedback = CoverageFeedback()
    found = feedback.score(pairs)
    assert found == [CoverageFeedback()(*pair) for pair in pairs] == score_all(feedback, pairs, ["", "", "", ""])
    assert all(type(value) is float for value in found)
    assert pairs == before


def test_key_and_function_may_be_the_users_and_a_text_is_read_once() -> None:
    seen: list[str] = []

    def words(text: str) -> list[str]:
        seen.append(text)
        return text.split()

    feedback = CoverageFeedback("reply", words)
    pairs = [({"reply": "a b c d"}, [{"reply": "d a"}, {"reply": "a"}])] * 3
    assert feedback.score(pairs) == [0.5] * 3
    assert seen == ["a b c d", "d a", "a"]


def test_fingerprints_differ_between_functions_and_keys() -> None:
    prints = [f.fingerprint for f in (CoverageFeedback(), CoverageFeedback("bash"), CoverageFeedback(symbols=length))]
    assert len(set(prints)) == 3
    assert prints[0] == CoverageFeedback().fingerprint


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        ((WORDS, [F]), "no symbols"),
        (({"q": 1}, [F]), "query item: its 'answer' is None"),
        ((F, [F, {}]), "item 1 of the subset"),
        ((F, [{"answer": ["f(x)"]}]), "not a text"),
    ],
)
def test_what_cannot_be_scored_is_named(pair: Any, word: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"pair 1, .*{word}"):
        CoverageFeedback().score([(F, [G]), pair])


# --- score_all ------------------------------------------------------------------------------------

NUMBERED: list[Any] = [({"n": 1}, [{}]), ({"n": 2}, [{}, {}])]
NAMES = ["item 3", "item 7"]


class Batched:
    def __init__(self, values: Any) -> None:
        self.values = values

    def __call__(self, query: Any, subset: Any, /) -> float:
        raise AssertionError("one by one")

    def score(self, pairs: Any) -> Any:
        return self.values


@pytest.mark.parametrize("value", [np.nan, -np.inf, None, [1.0], 10**400], ids=quoted)
def test_a_result_that_is_not_a_finite_number_is_named(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"feedback for item 7 is .* finite number"):
        score_all(Batched([1, value]), NUMBERED, NAMES)
    with pytest.raises(InvalidInputError, match="feedback for item 7 is"):
        score_all(lambda query, subset: value if query["n"] == 2 else 1, NUMBERED, NAMES)


def test_all_pairs_are_scored_in_one_call_if_the_feedback_can() -> None:
    assert score_all(Batched(np.array([0.5, 2])), NUMBERED, NAMES) == [0.5, 2.0]
    with pytest.raises(InvalidInputError, match="3 results for 2 pairs"):
        score_all(Batched([1, 2, 3]), NUMBERED, NAMES)


# --- prompts --------------------------------------------------------------------------------------

BRACES = {"question": "{answer}? {0} {", "answer": "{question}"}
PLAIN = {"question": "Why?", "answer": "So.", "topic": "all"}


def context(query: Any, subset: Any, **settings: Any) -> str:
    given = {"instruction": "", "example": TEMPLATE, "separator": "\n\n", "question": "question", "answer": "answer"}
    return PromptTemplate(**{**given, **settings}).prompt(4, query, subset).item().context


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "Why?\nSo.\n\n{answer}? {0} {\n"),
        ({"instruction": "Do {x}.", "separator": "|"}, "Do {x}.|Why?\nSo.|{answer}? {0} {\n"),
        ({"example": "{{topic} {question}{answer}", "separator": ""}, "{{topic} Why?So.{{topic} {answer}? {0} {"),
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
    ["", "{question}", "{answer}", "{question}{answer} ", "{question}{answer}{answer}", "{question}{question}{answer}"],
)
def test_invalid_templates_are_refused(example: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"^example "):
        context(PLAIN, [], example=example)


# --- a language model -----------------------------------------------------------------------------

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
    local = LanguageModel(model, tokenizer, max_length=max_length)
    return LanguageModelFeedback(local, **{"model_id": "tiny", **settings})


def test_a_score_is_the_sum_over_the_answers_tokens() -> None:
    scores = feedback(batch_size=2).score(PAIRS)
    np.testing.assert_allclose(scores, expected(), atol=2e-5)
    assert np.ptp(scores) > 1
    assert all(type(value) is float for value in scores)


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


def test_question_and_answer_that_do_not_fit_are_named() -> None:
    long = {"question": "xyz" * 40, "answer": "a"}
    with pytest.raises(InvalidInputError, match=r"pair 1: .* 40 tokens"):
        feedback(max_length=40).score([PAIRS[0], (long, [ITEMS[0]])])


def test_fingerprints_differ_between_models_and_templates() -> None:
    made = [{}, {"model_id": "other"}, {"instruction": "x"}, {"example": "{question}{answer}"}, {"separator": "x"}]
    made += [{"answer": "sql"}, {"question": "q"}, {"max_length": 100}, {"model": copy.deepcopy(GPT2).bfloat16()}]
    prints = [feedback(**settings).fingerprint for settings in made]
    assert len(set(prints)) == len(made)
    assert feedback(batch_size=3).fingerprint == prints[0]
    with pytest.raises(InvalidParameterError, match="model_id="):
        _ = feedback(model_id="").fingerprint


@pytest.fixture
def completions(monkeypatch: pytest.MonkeyPatch) -> Completions:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Completions(GPT2, TOKENIZER)


def test_an_endpoint_agrees_with_the_oracle(completions: Completions) -> None:
    with serving(completions) as url:
        remote = LanguageModelFeedback(LanguageModel("tiny", base_url=url), batch_size=2)
        cost = remote.cost(PAIRS)
        assert completions.requests == []
        found = remote.score(PAIRS)
    np.testing.assert_allclose(found, expected(), atol=2e-5)
    prompts = [prompt for request in completions.requests for prompt in request["prompt"]]
    assert [len(request["prompt"]) for request in completions.requests] == [2, 2, 1]
    assert [len(prompt) for prompt in prompts] == sorted(map(len, prompts), reverse=True)
    tokens = sum(-(-len(prompt) // 4) for prompt in prompts)
    assert cost == f"5 prompts, about {tokens} tokens"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 40 tokens. However, you requested 55 tokens"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 40. Given: 54 and 1"),
        (413, "prompt too long"),
    ],
)
def test_a_prompt_that_the_server_refuses_for_its_length_is_sent_again_with_fewer_examples(
    status: int, words: str, completions: Completions
) -> None:
    completions.limit, completions.status, completions.words = 40, status, words
    with serving(completions) as url, pytest.warns(SetSelectWarning, match=DROPPED) as caught:
        found = LanguageModelFeedback(LanguageModel("tiny", base_url=url), batch_size=3).score([*PAIRS, PAIRS[3]])
    with pytest.warns(SetSelectWarning):
        np.testing.assert_allclose(found, feedback(max_length=40).score([*PAIRS, PAIRS[3]]), atol=2e-5)
    assert len(caught) == 1


def test_other_refusals_reach_the_caller(completions: Completions) -> None:
    completions.limit, completions.words = 0, "no such model"
    with serving(completions) as url:
        remote = LanguageModelFeedback(LanguageModel("tiny", base_url=url))
        with pytest.raises(openai.BadRequestError, match="no such model"):
            remote.score(PAIRS)
        assert len(completions.requests) == 1
        completions.words = "maximum context length"
        with pytest.raises(InvalidInputError, match=r"pair 0: .*maximum"):
            remote.score([PAIRS[0], PAIRS[2]])
