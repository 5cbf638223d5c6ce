"""A tiny causal language model with random weights, and its log-probability of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

START = "<s>"
SIZES = {
    "vocab_size": 400,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 1024,
}
TEXTS = [f"Q: What is {thing} good for?\nA: {thing} keeps us well" for thing in ("tea", "rain")]


def saved(folder: Path) -> Path:
    """The folder of a model whose answers differ in probability by several units."""
    torch.manual_seed(0)
    tokenizer = tokenizer_of(TEXTS * 24)
    config = transformers.LlamaConfig(
        **SIZES, initializer_range=0.5, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=0
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tokenizer_of(texts: Sequence[str]) -> Any:
    """Byte-level BPE with merges learned from ``texts``; each text gets a start token in front."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZES["vocab_size"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[START],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(f"{START} $A", special_tokens=[(START, 0)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=START, eos_token=START, pad_token=START
    )


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
