"""benchmarks/reranker.py on a corpus made up here, and with a language model of few weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from benchmarks import reranker
from benchmarks.reranker import likelihood

BOS = 1


def encode(texts: str | list[str], add_special_tokens: bool = True, max_length: int | None = None, **_: Any) -> Any:
    """A token for each character, after one for the start."""
    if isinstance(texts, str):
        return {"input_ids": encode([texts], add_special_tokens)["input_ids"][0]}
    rows = [[BOS] * add_special_tokens + [ord(letter) % 90 + 2 for letter in text] for text in texts]
    return {"input_ids": [row[:max_length] for row in rows]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        vocab_size=92, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    made: Any = Gemma3ForCausalLM(config)
    made.eval()
    monkeypatch.setattr(reranker, "load_gemma", lambda: (made, encode, made.get_output_embeddings().weight))
    return made


def test_the_likelihood_is_that_of_the_question_after_its_text(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of several texts, and of one with several questions.
    monkeypatch.setattr(reranker, "BATCH_TOKENS", 60)
    monkeypatch.setattr(reranker, "LOGITS", 7)
    monkeypatch.setattr(reranker, "MOST_TOKENS", 40)
    texts, questions = ["a lamp", "the red chair", "b" * 70], ["lamp?", "where is a chair?"]
    pairs = [(question, text) for question in questions for text in texts]
    for pair, found in zip(pairs, likelihood(pairs), strict=True):
        before = [
            *encode([f"Passage: {pair[1]}"], max_length=40)["input_ids"][0],
            *encode("\nQuestion:", False)["input_ids"],
        ]
        after = encode(f" {pair[0]}", False)["input_ids"]
        with torch.inference_mode():
            logs = model(torch.tensor([before + after])).logits[0].log_softmax(-1)
        expected = np.mean([logs[len(before) + place - 1, token] for place, token in enumerate(after)])
        assert found == pytest.approx(expected, abs=1e-5)
