from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    ByT5Tokenizer,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core.signals.language_models import EndpointModel, Item, Scored, TransformersModel
from tests.shared_core.signals.completions_server import Completions, serving

pytestmark = pytest.mark.usefixtures("one_torch_thread")

BYTES = ByT5Tokenizer()
WINDOW = 24
SHAPE: dict[str, Any] = {
    "vocab_size": 384,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.3,
    "max_position_embeddings": 2000,
    "bos_token_id": 1,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
LAYERS = ["sliding_attention", "full_attention"]


def gemma() -> Any:
    """Gemma 3 with few weights: one layer that sees 24 tokens, and one that sees all."""
    torch.manual_seed(0)
    few: dict[str, Any] = {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": WINDOW, "layer_types": LAYERS}
    return Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, **few)).eval()


def llama(**more: Any) -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SHAPE, num_key_value_heads=1, **more)).eval()


def mistral() -> Any:
    torch.manual_seed(0)
    return MistralForCausalLM(MistralConfig(**SHAPE, num_key_value_heads=1, sliding_window=WINDOW)).eval()


def mamba() -> Any:
    torch.manual_seed(0)
    return MambaForCausalLM(MambaConfig(vocab_size=384, hidden_size=32, num_hidden_layers=2)).eval()


MODELS = {
    "Gemma 3": gemma(),
    "Mistral": mistral(),
    "Llama": llama(),
    "GPT-2": tiny_model(384, positions=400),
    "recurrent": mamba(),
    "rotations that depend on the length": llama(rope_parameters={"rope_type": "dynamic", "factor": 2.0}),
}
LONG, OTHER = "Q: Who wrote it? A: a poet. " * 5, "Capital of France? Paris. " * 7
# Shared contexts shorter and longer than the window, one that goes on after another, and texts that share nothing.
ITEMS = [
    Item(row, *texts)
    for row, texts in enumerate(
        [
            (LONG, "yes"),
            ("It is. ", "so it is"),
            (OTHER, "Lyon, I think, and not another"),
            (LONG, "no, never"),
            (f"{LONG}Why? ", "because"),
            (OTHER, "Rome"),
            ("It is. ", "not"),
            (f"{LONG}Why? ", "I do not know"),
            ("x", "y"),
            (LONG, "yes"),
        ]
    )
]


def oracle(model: Any, item: Item) -> Scored:
    """One pass over the whole text, without padding and without a cache."""
    context, answer = list(item.context.encode()), list(item.answer.encode())
    ids = torch.tensor([byte + 3 for byte in context + answer])
    with torch.inference_mode():
        logs = torch.log_softmax(model(input_ids=ids[None], use_cache=False).logits[0].double(), -1)[len(context) - 1 :]
    picked = [float(logs[place, token]) for place, token in enumerate(ids[len(context) :])]
    best = logs.argmax(-1)[: len(answer)].tolist()
    return Scored(float(np.mean(picked)), False, len(answer), best == ids[len(context) :].tolist())


def watch(model: Any) -> tuple[Any, list[tuple[int, int]], list[int]]:
    """A copy of the model, the shapes of the texts it reads, and the number of tokens that it makes logits for."""
    model = copy.deepcopy(model)
    shapes: list[tuple[int, int]] = []
    rows: list[int] = []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    model.get_output_embeddings().register_forward_hook(lambda module, args, out: rows.append(out[..., 0].numel()))
    return model, shapes, rows


def score(model: Any, items: Sequence[Item] = ITEMS, batch_size: int = 8) -> list[Scored]:
    return TransformersModel(model, BYTES, None, None).score(items, batch_size)


@pytest.fixture
def short_starts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts that are too short to save time are shared, too."""
    monkeypatch.setattr("shared_core.signals.language_models._MIN_PREFIX", 8)
    monkeypatch.setattr("shared_core.signals.language_models._MIN_SAVED", 8)


@pytest.mark.usefixtures("short_starts_too")
@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("name", MODELS)
def test_sharing_contexts_and_padding_change_nothing(name: str, batch_size: int) -> None:
    wanted = [oracle(MODELS[name], item) for item in ITEMS]
    for order in (ITEMS, ITEMS[::-1]):
        found = score(MODELS[name], order, batch_size)
        for item, one in zip(order, found, strict=True):
            assert one.mean == pytest.approx(wanted[item.row].mean, abs=2e-5)
            assert one[1:] == wanted[item.row][1:]


@pytest.mark.usefixtures("short_starts_too")
@pytest.mark.parametrize("length", [WINDOW - 12, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
def test_a_context_of_any_length_beside_the_window_is_shared(length: int) -> None:
    items = [Item(row, (LONG * 2)[:length], answer) for row, answer in enumerate(["a", "bcd efg", "hij klmno pqrst"])]
    model, shapes, _ = watch(MODELS["Gemma 3"])
    found = score(model, items)
    assert (1, length - 1) in shapes
    for one, item in zip(found, items, strict=True):
        assert one.mean == pytest.approx(oracle(MODELS["Gemma 3"], item).mean, abs=2e-5)


@pytest.mark.parametrize("name", ["Gemma 3", "Mistral", "Llama", "GPT-2"])
def test_a_context_that_several_answers_share_is_read_once(name: str) -> None:
    model, shapes, _ = watch(MODELS[name])
    score(model, [Item(row, LONG, "abcdefgh"[row] * 4) for row in range(8)])
    assert sum(rows * width for rows, width in shapes if width > 1) == len(LONG) - 1 + 8 * 5
    shapes.clear()
    score(model, [Item(row, "Short. ", "abcdefgh"[row] * 4) for row in range(8)])
    assert sum(rows * width for rows, width in shapes if width > 1) == 8 * len("Short. aaaa")


def test_what_prompts_begin_with_is_read_once_for_all_batches() -> None:
    model, shapes, _ = watch(MODELS["Llama"])
    items = [Item(row, f"{LONG}{row:03d} is ", "odd" if row % 2 else "even") for row in range(70)]
    found = score(model, items, batch_size=2)
    assert sum(rows for rows, width in shapes if width >= len(LONG)) == 1
    assert len(shapes) > 10
    for one, item in zip(found[:5], items, strict=False):
        assert one.mean == pytest.approx(oracle(MODELS["Llama"], item).mean, abs=2e-5)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_batch_has_256_tokens_for_each_text_of_the_batch_size(batch_size: int) -> None:
    model, shapes, _ = watch(MODELS["Llama"])
    items = [Item(row, chr(48 + row) * (8 + 9 * row) + " ", "yes") for row in range(60)]
    score(model, items, batch_size)
    passes = [shape for shape in shapes if shape[1] > 1]
    assert sum(rows for rows, _ in passes) == 60
    assert all(rows == 1 or rows * width <= 256 * batch_size for rows, width in passes)
    assert max(rows for rows, _ in passes) > 1.5 * batch_size
    # The longest come first, so that a lack of memory shows at once.
    assert [width for _, width in passes] == sorted((width for _, width in passes), reverse=True)


def test_logits_are_made_for_the_answers_tokens_only() -> None:
    model, shapes, rows = watch(MODELS["Gemma 3"])
    items = [Item(row, "abcdefgh"[row] * 40, "x" * (1 + 3 * row)) for row in range(8)]
    score(model, items)
    assert sum(rows) - sum(width == 1 for _, width in shapes) == sum(len(item.answer) for item in items)


# --- greedy ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writing() -> Any:
    """A model that writes letters only, so that what it writes can be given as a text."""
    model = llama(tie_word_embeddings=False)
    with torch.no_grad():
        for head in (model.lm_head.weight,):
            letters = head[97 + 3 : 122 + 3].clone() * 4
            head.zero_()
            head[97 + 3 : 122 + 3] = letters
    return model


def test_an_answer_that_the_model_would_write_is_greedy(writing: Any) -> None:
    items = []
    for context in (LONG, "It is. "):
        ids = torch.tensor([[byte + 3 for byte in context.encode()]])
        for _ in range(6):
            ids = torch.cat([ids, writing(input_ids=ids).logits[:, -1:].argmax(-1)], dim=1)
        answer = bytes(ids[0, len(context) :].sub(3).tolist()).decode()
        items += [Item(0, context, answer), Item(0, context, answer[:2])]
        for place in range(6):
            other = "a" if answer[place] != "a" else "b"
            items.append(Item(0, context, answer[:place] + other + answer[place + 1 :]))
    found = score(writing, items)
    assert [one.greedy for one in found] == ([True] * 2 + [False] * 6) * 2


def test_an_endpoint_says_whether_an_answer_is_greedy_or_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    tokenizer = tiny_tokenizer(["a poet"])
    model = tiny_model(len(tokenizer))
    items = []
    for number in range(30):
        context = f"It is {number}"
        best = tokenizer.decode(model(torch.tensor([tokenizer(context)["input_ids"]])).logits[0, -1].argmax())
        items += [Item(0, context, answer) for answer in (best, "q", "no") if answer.isalnum()]
    completions = Completions(model, tokenizer)
    with serving(completions) as url:
        endpoint = EndpointModel(url, "tiny", None, 60.0, 0)
        assert {one.greedy for one in endpoint.score(items)} == {None}
        completions.tells_best = True
        found = [one.greedy for one in endpoint.score(items)]
    local = TransformersModel(model, tokenizer, None, None).score(items)
    assert found == [one.greedy for one in local]
    assert set(found) == {True, False}


# --- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("has", "wanted"), [(True, "bfloat16"), (False, "float32")])
@pytest.mark.parametrize("stored", [torch.float32, torch.float16])
def test_a_model_given_by_folder_is_loaded_in_bfloat16_where_the_processor_has_it(
    has: bool, wanted: str, stored: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has, "amx_bf16": False})
    tokenizer = tiny_tokenizer(["a poet"])
    tiny_model(len(tokenizer)).to(stored).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = TransformersModel(tmp_path, None, "cpu", None)
    assert loaded.precision == wanted
    assert loaded.score([Item(0, "It is ", "a poet")])[0].mean < 0


def test_a_loaded_model_keeps_its_precision() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        model = copy.deepcopy(MODELS["Gemma 3"]).to(dtype)
        loaded = TransformersModel(model, BYTES, None, None)
        assert loaded.precision == str(dtype).removeprefix("torch.")
        found = loaded.score(ITEMS)
        assert {weight.dtype for weight in model.parameters()} == {dtype}
        for one, item in zip(found, ITEMS, strict=True):
            close = 0.2 if dtype == torch.bfloat16 else 2e-5
            assert one.mean == pytest.approx(oracle(MODELS["Gemma 3"], item).mean, abs=close)
