from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import torch
from numpy.typing import NDArray
from transformers import ByT5Tokenizer

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import InvalidInputError, InvalidParameterError, SetSelectWarning
from shared_core.signals.perplexity import LogPerplexityQuality
from tests.shared_core.signals.completions_server import Completions, serving

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
# The tokenizer is not trained on the texts with multi-byte characters, so these characters take several tokens.
TOKENIZER = tiny_tokenizer([*QUESTIONS[:3], *ANSWERS[:3]])
STARTING = tiny_tokenizer([*QUESTIONS[:3], *ANSWERS[:3]], adds_start=True)
MODEL = tiny_model(len(TOKENIZER))
TEMPLATES = ["{question}\n{answer}", "Q: {question} A: {answer}", "{{question}} {answer}"]


def oracle(
    tokenizer: Any, head: str, answer: str, *, model: Any = MODEL, keep: int | None = None
) -> tuple[float, list[int]]:
    """RAGSys, section 3.3.3, token by token; the answer has the tokens that end after the head, counted in bytes."""
    ids = tokenizer(head + answer)["input_ids"]
    lead = int(ids[0] == tokenizer.bos_token_id)
    sizes = [0] * lead + [len(token) for token in tokenizer.convert_ids_to_tokens(ids[lead:])]
    first = next(i for i, end in enumerate(itertools.accumulate(sizes)) if end > len(head.encode()))
    if keep is not None:
        excess = max(len(ids) - keep, 0)
        ids, first = ids[:lead] + ids[lead + excess :], first - excess
    total = 0.0
    with torch.no_grad():
        for i in range(first, len(ids)):
            logits = model(torch.tensor([ids[:i]])).logits[0, -1].double()
            total += float(logits[ids[i]] - torch.logsumexp(logits, 0))
    return total / (len(ids) - first), ids


def expected(template: str = TEMPLATES[0], tokenizer: Any = TOKENIZER) -> NDArray[np.float64]:
    heads = [template.removesuffix("{answer}").replace("{question}", question) for question in QUESTIONS]
    return np.array([oracle(tokenizer, *pair)[0] for pair in zip(heads, ANSWERS, strict=True)])


def quality(**settings: Any) -> LogPerplexityQuality:
    return LogPerplexityQuality.from_transformers(MODEL, TOKENIZER, **{"model_id": "tiny", **settings})


# --- transformers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("tokenizer", [TOKENIZER, STARTING], ids=["plain", "with a start token"])
def test_agrees_with_the_oracle(template: str, tokenizer: Any) -> None:
    found = LogPerplexityQuality.from_transformers(MODEL, tokenizer, template=template).score(QUESTIONS, ANSWERS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected(template, tokenizer), atol=1e-6)
    assert np.ptp(found) > 0.5
    assert (found < 0).all()


def test_a_token_that_spans_the_border_belongs_to_the_answer() -> None:
    merging = tiny_tokenizer(["to the", "of the", "in the", "on the"] * 3)
    assert " the" in [merging.decode([i]) for i in range(len(merging))]
    model = tiny_model(len(merging))
    found = LogPerplexityQuality.from_transformers(model, merging, template="{question} {answer}")
    ids = merging("of the")["input_ids"]
    first = len(merging("of")["input_ids"])
    with torch.no_grad():
        logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    wanted = np.mean([float(logs[i - 1, ids[i]]) for i in range(first, len(ids))])
    np.testing.assert_allclose(found.score(["of"], ["the"]), [wanted], atol=1e-6)


def test_a_tokenizer_without_offsets_that_adds_an_end_token() -> None:
    tokenizer = ByT5Tokenizer()
    model = tiny_model(tokenizer.vocab_size + 125)
    assert not tokenizer.is_fast
    found = LogPerplexityQuality.from_transformers(model, tokenizer, batch_size=2).score(["é?", "so"], ["aß", "b"])
    for value, (head, answer) in zip(found, [("é?\n", "aß"), ("so\n", "b")], strict=True):
        ids = [byte + 3 for byte in (head + answer).encode()]
        with torch.no_grad():
            logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
        wanted = [float(logs[i - 1, ids[i]]) for i in range(len(head.encode()), len(ids))]
        assert value == pytest.approx(np.mean(wanted), abs=1e-6)


def test_dropout_is_off_and_each_part_of_the_model_keeps_its_mode() -> None:
    model = copy.deepcopy(MODEL).train()
    frozen = next(model.children()).eval()
    before = [part.training for part in model.modules()]
    found = LogPerplexityQuality.from_transformers(model, TOKENIZER).score(QUESTIONS, ANSWERS)
    np.testing.assert_allclose(found, expected(), atol=1e-6)
    assert [part.training for part in model.modules()] == before
    assert not frozen.training


def test_a_model_loaded_by_name_has_that_name_as_its_id(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    MODEL.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    capfd.readouterr()
    loaded = LogPerplexityQuality.from_transformers(tmp_path, device="cpu")
    assert loaded.model_id == str(tmp_path)
    assert str(tmp_path) in repr(loaded)
    # It may be in bfloat16.
    np.testing.assert_allclose(loaded.score(QUESTIONS, ANSWERS), expected(), atol=0.1)


@pytest.mark.parametrize("tokenizer", [TOKENIZER, STARTING], ids=["plain", "with a start token"])
def test_a_text_that_is_too_long_is_cut_at_the_front_of_the_question(
    tokenizer: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = 12
    long = LogPerplexityQuality.from_transformers(MODEL, tokenizer)
    questions = ["xyz" * 40 + "?", "a?"]
    with pytest.warns(SetSelectWarning, match=r"1 of 2 texts .* 12 tokens \(item 0") as caught:
        found = long.score(questions, ["b c", "d"])
    assert caught[0].filename == __file__
    wanted, ids = oracle(tokenizer, questions[0] + "\n", "b c", keep=12)
    assert len(ids) == 12
    assert found[0] == pytest.approx(wanted, abs=1e-6)
    assert found[1] == pytest.approx(oracle(tokenizer, "a?\n", "d")[0], abs=1e-6)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("answer", "fits"), [("bbb", True), ("bbbb", False)])
def test_one_token_must_stay_before_the_answer(answer: str, fits: bool) -> None:
    plain = tiny_tokenizer(["a"])
    short = LogPerplexityQuality.from_transformers(tiny_model(len(plain)), plain, max_length=4)
    if fits:
        with pytest.warns(SetSelectWarning):
            assert short.score(["q"], [answer]).shape == (1,)
    else:
        with pytest.raises(InvalidInputError, match="item 0 has 4 tokens, but the model takes 4"):
            short.score(["q"], [answer])


def test_a_start_token_is_enough_before_the_answer() -> None:
    bare = {"template": "{question}{answer}"}
    with pytest.raises(InvalidInputError, match="item 0 has nothing before it"):
        quality(**bare).score([""], ["Paris"])
    found = LogPerplexityQuality.from_transformers(MODEL, STARTING, **bare).score([""], ["Paris"])
    assert found[0] == pytest.approx(oracle(STARTING, "", "Paris")[0], abs=1e-6)


def test_a_model_that_overflows_is_an_error() -> None:
    broken = copy.deepcopy(MODEL)
    with torch.no_grad():
        broken.lm_head.weight.fill_(torch.nan)
    with pytest.raises(InvalidInputError, match=r"item 0 .* nan.*bfloat16"):
        LogPerplexityQuality.from_transformers(broken, TOKENIZER).score(["a"], ["b"])


# --- invalid input, and annotate ------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "template",
    ["{answer}", "{question}", "{answer} {question}", "{question}{answer}{answer}"],
)
def test_a_template_must_contain_the_question_and_end_with_the_answer(template: str) -> None:
    with pytest.raises(InvalidParameterError, match="template must contain"):
        quality(template=template)


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"max_length": 1}, {"batch_size": 1.5}])
def test_parameters_out_of_range_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        quality(**wrong)


def test_the_progress_bar_counts_the_computed_answers(capfd: pytest.CaptureFixture[str]) -> None:
    quality(batch_size=2).score([*QUESTIONS, QUESTIONS[0]], [*ANSWERS, ANSWERS[0]], progress=True)
    assert "7/7" in capfd.readouterr().err


def test_annotate_returns_copies() -> None:
    examples = [{"q": q, "a": a, "n": i} for i, (q, a) in enumerate(zip(QUESTIONS, ANSWERS, strict=True))]
    before = copy.deepcopy(examples)
    scored = quality().annotate(examples, question="q", answer="a")
    ranked = quality().annotate(examples, question="q", answer="a", key="rank", scale="rank")
    assert examples == before
    np.testing.assert_allclose([example.pop("quality") for example in scored], expected(), atol=1e-6)
    assert scored == before
    assert sorted(example["rank"] for example in ranked) == pytest.approx(np.linspace(0, 1, 7))
    assert json.loads(json.dumps(ranked)) == ranked
    with pytest.raises(InvalidInputError, match=r"item 0 has the keys \['q', 'a', 'n'\]"):
        quality().annotate(examples)


@pytest.mark.parametrize(("missing", "extra"), [("torch", "train"), ("openai", "openai")])
def test_importing_needs_only_numpy_and_a_missing_library_is_named(missing: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
from shared_core.signals.perplexity import LogPerplexityQuality as Q
assert not {{"torch", "transformers", "openai", "tqdm"}} & {{m for m, x in sys.modules.items() if x}}
try:
    Q.from_endpoint("http://127.0.0.1:9/v1", "m") if {missing!r} == "openai" else Q.from_transformers("m")
except ImportError as error:
    print(error)
"""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert f'needs {missing}: pip install "setselect[{extra}]"' in done.stdout


# --- resume ---------------------------------------------------------------------------------------


class Crash(Exception):
    pass


class Counting(LogPerplexityQuality):
    """Records the answers that it computes, and crashes before the batch after ``crash_after`` of them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.computed: list[str] = []
        self.crash_after = 10**9
        score_batches = self._model.score_batches

        def counted(items: Any, batch_size: int) -> Any:
            # One pass of this small model takes all texts of these tests.
            for start in range(0, len(items), batch_size):
                if len(self.computed) >= self.crash_after:
                    raise Crash
                batch = items[start : start + batch_size]
                self.computed += [item.answer for item in batch]
                yield [(start + place, one) for found in score_batches(batch, batch_size) for place, one in found]

        self._model.score_batches = counted  # type: ignore[method-assign]


def counting(**settings: Any) -> Counting:
    given = {"model_id": "tiny", "batch_size": 2, **settings}
    made = Counting.from_transformers(MODEL, TOKENIZER, **given)
    assert isinstance(made, Counting)
    return made


@pytest.mark.parametrize("torn", [0, 30])
def test_after_a_crash_only_missing_scores_are_computed(torn: int, tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    whole = counting().score(QUESTIONS, ANSWERS)
    first = counting()
    first.crash_after = 4
    with pytest.raises(Crash):
        first.score(QUESTIONS, ANSWERS, resume=file)
    lines = file.read_bytes()
    assert lines.count(b"\n") == 4
    file.write_bytes(lines + lines[:torn])
    second = counting()
    np.testing.assert_array_equal(second.score(QUESTIONS, ANSWERS, resume=file), whole)
    assert sorted(first.computed + second.computed) == sorted(ANSWERS)
    assert file.read_bytes().startswith(lines)
    assert [set(json.loads(line)) for line in file.read_text().splitlines()] == [{"key", "log_probability"}] * 7
    third = counting()
    np.testing.assert_array_equal(third.score(QUESTIONS, ANSWERS, resume=file), whole)
    assert third.computed == []


def test_equal_pairs_are_computed_once(tmp_path: Path) -> None:
    twice = counting()
    found = twice.score(QUESTIONS * 2, ANSWERS * 2)
    assert len(twice.computed) == 7
    np.testing.assert_array_equal(found[:7], found[7:])


@pytest.mark.parametrize("other", [{"model_id": "other"}, {"template": TEMPLATES[1]}, {"max_length": 50}, {}], ids=str)
def test_scores_are_reused_only_for_the_same_pair_model_and_settings(other: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "scores.jsonl"
    counting().score(QUESTIONS, ANSWERS, resume=file)
    again = counting(**other)
    again.score([*QUESTIONS, "new"], [*ANSWERS, "Paris"], resume=file)
    assert len(again.computed) == (8 if other else 1)


def test_resume_needs_a_name_for_the_model(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="model_id="):
        quality(model_id="").score(["a"], ["b"], resume=tmp_path / "scores.jsonl")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("not ours\n", 1),
        ('{"key": "a", "log_probability": -1.0}\n[]\n', 2),
        ("one line, no end", 1),
    ],
)
def test_a_file_of_another_kind_is_an_error_and_stays_unchanged(content: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "precious.json"
    file.write_text(content)
    with pytest.raises(InvalidInputError, match=f"precious.json: line {line} is not a score"):
        quality().score(["a"], ["b"], resume=file)
    assert file.read_text() == content


# --- endpoint -------------------------------------------------------------------------------------


@pytest.fixture
def completions(monkeypatch: pytest.MonkeyPatch) -> Completions:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "the user's own")
    return Completions(MODEL, TOKENIZER)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("start_token", ["", "<s>"])
def test_both_back_ends_agree(template: str, start_token: str, completions: Completions) -> None:
    completions.start_token, completions.shuffles = start_token, True
    with serving(completions) as url:
        found = LogPerplexityQuality.from_endpoint(url, "tiny", template=template, batch_size=3)
        scores = found.score(QUESTIONS, ANSWERS)
    np.testing.assert_allclose(scores, quality(template=template).score(QUESTIONS, ANSWERS), atol=1e-6)
    assert [len(request["prompt"]) for request in completions.requests] == [3, 3, 1]
    assert {request["model"] for request in completions.requests} == {"tiny"}
    assert found.model_id == "tiny"


def test_the_key_of_the_environment_is_not_sent(completions: Completions) -> None:
    with serving(completions) as url:
        LogPerplexityQuality.from_endpoint(url, "tiny").score(["a"], ["b"])
        LogPerplexityQuality.from_endpoint(url, "tiny", api_key="given").score(["a"], ["b"])
    assert completions.authorization == ["Bearer none", "Bearer given"]


def test_temporary_failures_are_retried_and_lasting_ones_lose_no_batch(
    completions: Completions, tmp_path: Path
) -> None:
    file = tmp_path / "scores.jsonl"
    with serving(completions) as url:
        patient = LogPerplexityQuality.from_endpoint(url, "tiny", batch_size=5, max_retries=1)
        completions.failures = 1
        whole = patient.score(QUESTIONS, ANSWERS, resume=file)
        assert len(completions.requests) == 3
        hasty = LogPerplexityQuality.from_endpoint(url, "tiny", max_retries=0)
        completions.failures = 1
        with pytest.raises(openai.InternalServerError) as caught:
            hasty.score([*QUESTIONS, "new"], [*ANSWERS, "Rome"], resume=file)
        assert "scored items 7" in caught.value.__notes__[0]
        np.testing.assert_array_equal(hasty.score(QUESTIONS, ANSWERS, resume=file), whole)


@pytest.mark.parametrize(
    ("fault", "words"),
    [({"echoes": False}, "does not echo"), ({"has_logprobs": False}, "no logprobs"), ({"drift": 2}, "does not fit")],
    ids=["no echo", "no logprobs", "places that do not fit"],
)
def test_a_server_without_the_needed_output_is_an_error(
    fault: dict[str, Any], words: str, completions: Completions
) -> None:
    vars(completions).update(fault)
    with serving(completions) as url, pytest.raises(InvalidParameterError, match=words):
        LogPerplexityQuality.from_endpoint(url, "tiny").score(["What is it?"], ["Paris"])


@pytest.mark.parametrize(
    "reply",
    [
        "a web page",
        {"choices": None},
        {"choices": [{"index": 0, "logprobs": {"tokens": [1], "text_offset": ["a"], "token_logprobs": ["b"]}}]},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_an_error(
    reply: Any, completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "answer", lambda request: reply)
    with serving(completions) as url:
        remote = LogPerplexityQuality.from_endpoint(url, "tiny")
        with pytest.raises(InvalidParameterError, match=f"model 'tiny' at {url} sent "):
            remote.score(["What is it?"], ["Paris"])
