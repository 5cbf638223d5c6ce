"""Local models and endpoints give each answer the log-probability that a loop over its tokens gives."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import ByT5Tokenizer, Gemma3ForCausalLM, Gemma3TextConfig

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import InvalidInputError, InvalidParameterError, LanguageModel
from shared_core.signals.language_models import Item, Scored
from tests.shared_core.signals.completions_server import Completions, oracle, serving

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# The tokenizers are not trained on the texts with multi-byte characters, so these characters take several tokens.
TEXTS = ["What is the capital of France?", "Why?  ", "Paris", "It is the capital", " because\n\nof it"]
PLAIN, STARTING, BYTES = tiny_tokenizer(TEXTS), tiny_tokenizer(TEXTS, adds_start=True), ByT5Tokenizer()
TOKENIZERS = {"plain": PLAIN, "with a start token": STARTING, "without offsets": BYTES}
ITEMS = [
    Item(row, *texts)
    for row, texts in enumerate(
        [
            ("What is the capital of France?\n", "Paris"),
            ("\n", "It is the capital"),
            ("Who wrote it? 😀 A: ", "😀 a poet"),
            ("What is the capital of France? " * 4, "It is Lyon, the capital"),
            ("Wie heißt der Fluß? ", "Elbe é"),
            ("x", "y"),
        ]
    )
]


def gemma() -> Any:
    """Gemma 3 with few weights: one layer that sees 24 tokens, and one that sees all."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "head_dim": 16}
    layers: dict[str, Any] = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    config = Gemma3TextConfig(
        vocab_size=384, num_key_value_heads=1, initializer_range=0.3, sliding_window=24, **shape, **layers
    )
    return Gemma3ForCausalLM(config).eval()


MODELS = {"GPT-2": tiny_model(384, positions=400), "Gemma 3": gemma()}
GPT2 = MODELS["GPT-2"]


def score(model: LanguageModel, items: Sequence[Item] = ITEMS, batch_size: int = 8) -> list[Scored]:
    scores = dict(itertools.chain.from_iterable(model.score_batches(items, batch_size)))
    return [scores[place] for place in range(len(items))]


# --- transformers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_a_score_is_that_of_one_token_after_the_other(name: str, tokenizer: Any) -> None:
    model = MODELS[name]
    expected = [oracle(model, tokenizer, item.context, item.answer) for item in ITEMS]
    for batch_size in (1, 100):
        for scored, (total, tokens, _) in zip(
            score(LanguageModel(model, tokenizer), ITEMS, batch_size), expected, strict=True
        ):
            assert scored.mean == pytest.approx(total / tokens, abs=2e-5)
            assert (scored.tokens, scored.cut) == (tokens, False)
    assert LanguageModel(model, tokenizer).count_tokens(ITEMS) == [whole for _, _, whole in expected]


def test_a_token_that_spans_the_border_belongs_to_the_answer() -> None:
    merging = tiny_tokenizer(["to the", "of the", "in the", "on the"] * 3)
    assert " the" in [merging.decode([i]) for i in range(len(merging))]
    (scored,) = score(LanguageModel(GPT2, merging), [Item(0, "of ", "the")])
    total, tokens, _ = oracle(GPT2, merging, "of ", "the")
    assert scored.mean == pytest.approx(total / tokens, abs=1e-6)
    assert tokens == len(merging("of the")["input_ids"]) - len(merging("of")["input_ids"])


def test_an_answer_that_the_model_would_write_is_greedy() -> None:
    items, greedy = [], []
    for number in range(30):
        ids = torch.tensor([PLAIN(f"It is {number}")["input_ids"]])
        best = PLAIN.decode(GPT2(ids).logits[0, -1].argmax())
        for answer in {best, "q"} if best.isalnum() else ():
            items.append(Item(0, f"It is {number}", answer))
            greedy.append(answer == best)
    assert [scored.greedy for scored in score(LanguageModel(GPT2, PLAIN), items)] == greedy
    assert set(greedy) == {True, False}


def test_dropout_is_off_and_the_model_keeps_its_mode() -> None:
    model = copy.deepcopy(GPT2).train()
    assert score(LanguageModel(model, PLAIN)) == score(LanguageModel(GPT2, PLAIN))
    assert all(part.training for part in model.modules())


@pytest.mark.parametrize("tokenizer", [PLAIN, STARTING], ids=["plain", "with a start token"])
def test_a_text_that_is_too_long_is_cut_at_its_front(tokenizer: Any, capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = 12
    model = LanguageModel(GPT2, tokenizer)
    assert model.limit == 12
    long, short = score(model, [Item(0, "xyz" * 40 + "?", "b c"), Item(1, "a?\n", "d")])
    total, tokens, whole = oracle(GPT2, tokenizer, "xyz" * 40 + "?", "b c", keep=12)
    assert whole == 12
    assert long.mean == pytest.approx(total / tokens, abs=1e-6)
    assert (long.cut, short.cut) == (True, False)
    assert capfd.readouterr().err == ""


def test_one_token_must_stay_before_the_answer() -> None:
    short = LanguageModel(GPT2, BYTES, max_length=4)
    assert score(short, [Item(0, "qqq", "bbb")])[0].cut
    with pytest.raises(InvalidInputError, match=r"item 0 .*4 tokens.* 4"):
        score(short, [Item(0, "qqq", "bbbb")])
    with pytest.raises(InvalidInputError, match="item 0 "):
        score(LanguageModel(GPT2, PLAIN), [Item(0, "", "Paris")])
    (scored,) = score(LanguageModel(GPT2, STARTING), [Item(0, "", "Paris")])
    assert scored.mean * scored.tokens == pytest.approx(oracle(GPT2, STARTING, "", "Paris")[0], abs=1e-5)


def test_a_model_that_overflows_is_an_error() -> None:
    broken = copy.deepcopy(GPT2)
    with torch.no_grad():
        broken.lm_head.weight.fill_(torch.nan)
    with pytest.raises(InvalidInputError, match=r"item 3 .* nan.*bfloat16"):
        score(LanguageModel(broken, PLAIN), ITEMS[3:])


@pytest.mark.parametrize(
    ("has", "wanted", "stored"), [(True, "bfloat16", torch.float32), (False, "float32", torch.float16)]
)
def test_a_model_given_by_folder_is_loaded_in_bfloat16_where_the_processor_has_it(
    has: bool, wanted: str, stored: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has, "amx_bf16": False})
    tiny_model(len(PLAIN)).to(stored).save_pretrained(tmp_path)
    PLAIN.save_pretrained(tmp_path)
    loaded = LanguageModel(tmp_path, device="cpu")
    assert (loaded.precision, loaded.name) == (wanted, str(tmp_path))
    assert score(loaded, ITEMS[:1])[0].mean < 0


# --- endpoint -------------------------------------------------------------------------------------


@pytest.fixture
def completions(monkeypatch: pytest.MonkeyPatch) -> Completions:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "the user's own")
    return Completions(GPT2, PLAIN)


@pytest.mark.parametrize("start_token", ["", "<s>"])
def test_an_endpoint_agrees_with_the_local_model(start_token: str, completions: Completions) -> None:
    completions.start_token, completions.shuffles = start_token, True
    with serving(completions) as url:
        endpoint = LanguageModel("tiny", base_url=url)
        remote = score(endpoint, batch_size=4)
        score(LanguageModel("tiny", base_url=url, api_key="mine"), ITEMS[:1])
    for scored, local in zip(remote, score(LanguageModel(GPT2, PLAIN)), strict=True):
        assert scored.mean == pytest.approx(local.mean, abs=1e-5)
        assert (scored.tokens, scored.greedy) == (local.tokens, None)
    assert [len(request["prompt"]) for request in completions.requests] == [4, 2, 1]
    assert {request["model"] for request in completions.requests} == {endpoint.name} == {"tiny"}
    # The key of the environment is not sent.
    assert completions.authorization == ["Bearer none"] * 2 + ["Bearer mine"]


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
        score(LanguageModel("tiny", base_url=url))
