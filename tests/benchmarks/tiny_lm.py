"""A tiny causal language model, trained by the code of the small one, and its log-probability of an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.papers import small_lm

SIZES = {
    "vocab_size": 400,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 1024,
}


def trained(folder: Path) -> Path:
    """The folder of a model that was trained for four steps on a few examples."""
    texts = [small_lm.plain(f"What is {thing} good for?", f"{thing} keeps us well") for thing in ("tea", "rain")] * 24
    small_lm.train(texts, 4, {4: folder}, SIZES)
    return folder


def loaded(folder: Path) -> tuple[Any, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval(), tokenizer


def total(model: Any, tokenizer: Any, prompt: str, answer: str) -> float:
    """log p of the answer's tokens after the prompt, in float64, with one forward pass a token."""
    ids = tokenizer(prompt + answer)["input_ids"]
    first = len(tokenizer(prompt)["input_ids"])
    assert ids[:first] == tokenizer(prompt)["input_ids"]
    logs = 0.0
    for place in range(first, len(ids)):
        with torch.no_grad():
            logs += float(torch.log_softmax(model(torch.tensor([ids[:place]])).logits[0, -1].double(), -1)[ids[place]])
    return logs
