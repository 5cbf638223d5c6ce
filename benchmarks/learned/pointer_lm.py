"""A small causal language model that can copy: Llama's layers, with a pointer beside the softmax over the vocabulary.

A few million tokens of training are too few for a plain model of this size to learn to look things up in its prompt.
Two things are built in that larger models learn: each place sees the two tokens before it (a token shift), and the
next token may be copied, either the token at a place of the context that is attended to, or the one that follows such
a place (an induction head). Pointer sentinel mixture models (Merity et al., 2016) and pointer-generators (See et al.,
2017) have the same output: a mixture of the three distributions, with weights from the hidden state.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, pad
from transformers import LlamaConfig, LlamaModel

SHIFTS = 2
POINTERS = 2


class PointerLM(nn.Module):
    """``width`` is a multiple of twice ``heads``; the weights come from torch's seed."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embed.weight, std=width**-0.5)
        self.shifts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(SHIFTS))
        # The trunk gets vectors: its own embedding is never used.
        config = LlamaConfig(
            vocab_size=1,
            hidden_size=width,
            intermediate_size=3 * width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            max_position_embeddings=8192,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )
        self.trunk: Any = LlamaModel(config)
        self.queries = nn.Linear(width, POINTERS * width, bias=False)
        self.keys = nn.Linear(width, POINTERS * width, bias=False)
        # Places with the same token after the same tokens attend to each other from the first step on.
        with torch.no_grad():
            self.keys.weight.copy_(self.queries.weight)
        self.mixture = nn.Linear(width, 1 + POINTERS)

    def asked(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states, (rows, length, width), and the places before the tokens that are wanted, (rows, most).

        In a row that wants fewer than the most, places where nothing is wanted come behind.
        """
        embedded = self.embed(ids)
        vectors = embedded
        for steps, shift in enumerate(self.shifts, 1):
            vectors = vectors + shift(pad(embedded, (0, 0, steps, 0))[:, : ids.shape[1]])
        hidden = self.trunk(inputs_embeds=vectors, use_cache=False).last_hidden_state
        most = int(wanted.sum(1).max())
        places = torch.argsort((~wanted[:, 1:]).to(torch.uint8), dim=1, stable=True)[:, :most]
        return hidden, places

    def parts(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What makes the next token's distribution at the places asked.

        Returns the places, (rows, most); the logarithms of the three shares, (rows, most, 3); the vocabulary's
        log-probabilities, (rows, most, vocabulary); the pointers' attention, (rows, most, 2, context).
        """
        hidden, places = self.asked(ids, wanted)
        rows, most = places.shape
        length = ids.shape[1]
        state = hidden.gather(1, places[:, :, None].expand(-1, -1, hidden.shape[2]))
        queries = self.queries(state).view(rows, most, POINTERS, -1)
        keys = self.keys(hidden).view(rows, length, POINTERS, -1)
        scores = torch.einsum("ramd,rcmd->ramc", queries, keys) * queries.shape[3] ** -0.5
        context = torch.arange(length)
        # The token itself may be copied up to this place; what follows a place, only from the places before it.
        last = torch.stack([places, (places - 1).clamp(min=0)], dim=2)
        scores = scores.masked_fill(context > last[:, :, :, None], float("-inf"))
        logits = state @ self.embed.weight.T
        return places, log_softmax(self.mixture(state), -1), log_softmax(logits, -1), scores.softmax(-1)

    def log_probs(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of each wanted token, and whether there is one (rows have fewer than the most); (rows, most).

        ``ids`` is (rows, length), padded behind; ``wanted``, of the same shape, is true for the tokens to score.
        """
        places, shares, words, pointers = self.parts(ids, wanted)
        target = ids.gather(1, places + 1)
        counts = wanted.sum(1)
        real = torch.arange(places.shape[1]) < counts[:, None]
        copied = (pointers * (self._sources(ids)[:, None] == target[:, :, None, None])).sum(-1)
        of_word = words.gather(2, target[:, :, None])
        every = torch.cat([of_word, copied.clamp(min=1e-20).log()], dim=2)
        return torch.logsumexp(shares + every, dim=2), real

    def distribution(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Places before the wanted tokens, (rows, most), and the next token's probabilities there."""
        places, shares, words, pointers = self.parts(ids, wanted)
        share = shares.exp()
        whole = words.exp() * share[:, :, :1]
        for kind, tokens in enumerate(self._sources(ids).unbind(1)):
            index = tokens[:, None].expand(-1, places.shape[1], -1)
            whole = whole.scatter_add(2, index, pointers[:, :, kind] * share[:, :, kind + 1, None])
        return places, whole

    @staticmethod
    def _sources(ids: Tensor) -> Tensor:
        """What each pointer copies from each place, (rows, 2, context): the token there, and the one after it."""
        return torch.stack([ids, torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)], dim=1)
