"""A causal language model that is small enough to build in an example: a byte-level GPT-2 of some thousand weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

# Hugging Face libraries read this variable on import. Nothing here comes from a hub.
os.environ["HF_HUB_OFFLINE"] = "1"

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel, PreTrainedTokenizerFast

START = "<s>"


def tiny_tokenizer(texts: Sequence[str], *, adds_start: bool = False) -> PreTrainedTokenizerFast:
    """Byte-pair encoding with merges learned from ``texts``; it encodes any text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + 100, initial_alphabet=alphabet, special_tokens=[START], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    if adds_start:
        tokenizer.post_processor = processors.TemplateProcessing(f"{START} $A", special_tokens=[(START, 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=START)


def tiny_model(vocabulary: int, *, positions: int = 64, width: int = 16, spread: float = 0.3) -> GPT2LMHeadModel:
    """A model with random weights; a spread of 0.3 makes some tokens much more probable than others."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=positions,
        n_embd=width,
        n_layer=2,
        n_head=2,
        initializer_range=spread,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config).eval()


def read(model: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], steps: int = 200) -> None:
    """Train the model on these texts until it reproduces them."""
    import torch

    # With tensors this small, synchronising threads takes longer than the computation.
    torch.set_num_threads(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    encoded = [torch.tensor(tokenizer(text)["input_ids"]) for text in texts]
    # A causal model does not read later tokens, so padding on the right changes nothing. The loss ignores -100.
    inputs, targets = (torch.nn.utils.rnn.pad_sequence(encoded, True, padding) for padding in (0, -100))
    for _ in range(steps):
        optimizer.zero_grad()
        logits = model(input_ids=inputs).logits
        torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten()).backward()
        optimizer.step()
