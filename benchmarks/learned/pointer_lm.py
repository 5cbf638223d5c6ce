"""A small causal language model that can copy: Llama's layers, with pointers beside the softmax over the vocabulary.

With a few million training tokens, a plain model of this size does not learn to look things up in its prompt. Two
mechanisms that larger models learn are therefore built in. A token shift: each position sees the two tokens before it.
Pointers: the next token may be copied, either the token at an attended position of the context or the token after it
(an induction head). The output is a mixture of the three distributions with weights from the hidden state, as in
pointer sentinel mixture models (Merity et al., 2016) and pointer-generators (See et al., 2017).
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
    """``width`` is a multiple of twice ``heads``; torch's seed decides the weights."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embed.weight, std=width**-0.5)
        self.shifts = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(SHIFTS))
        # The trunk gets vectors, so its own embedding is never used.
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
        # Equal keys and queries: positions in equal contexts attend to each other from the first step on.
        with torch.no_grad():
            self.keys.weight.copy_(self.queries.weight)
        self.mixture = nn.Linear(width, 1 + POINTERS)

    def states(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states, (rows, length, width), and the positions before the wanted tokens, (rows, most).

        A row with fewer than ``most`` wanted tokens is filled with other positions at its end.
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
        """The parts of the next token's distribution at the positions before the wanted tokens.

        Returns the positions, (rows, most); the logarithms of the three shares, (rows, most, 3); the vocabulary's
        log-probabilities, (rows, most, vocabulary); the pointers' attention, (rows, most, 2, context).
        """
        hidden, places = self.states(ids, wanted)
        rows, most = places.shape
        length = ids.shape[1]
        state = hidden.gather(1, places[:, :, None].expand(-1, -1, hidden.shape[2]))
        queries = self.queries(state).view(rows, most, POINTERS, -1)
        keys = self.keys(hidden).view(rows, length, POINTERS, -1)
        scores = torch.einsum("ramd,rcmd->ramc", queries, keys) * queries.shape[3] ** -0.5
        context = torch.arange(length)
        # A token may be copied up to this position; the token after a position only from earlier positions.
        last = torch.stack([places, (places - 1).clamp(min=0)], dim=2)
        scores = scores.masked_fill(context > last[:, :, :, None], float("-inf"))
        logits = state @ self.embed.weight.T
        return places, log_softmax(self.mixture(state), -1), log_softmax(logits, -1), scores.softmax(-1)

    def log_probs(self, ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability of each wanted token, and whether there is one in a filled row; both (rows, most).

        ``ids`` is (rows, length), padded at the end; ``wanted``, of the same shape, is true for the tokens to score.
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
        """Positions before the wanted tokens, (rows, most), and the next token's probabilities there."""
        places, shares, words, pointers = self.parts(ids, wanted)
        share = shares.exp()
        whole = words.exp() * share[:, :, :1]
        for kind, tokens in enumerate(self._sources(ids).unbind(1)):
            index = tokens[:, None].expand(-1, places.shape[1], -1)
            whole = whole.scatter_add(2, index, pointers[:, :, kind] * share[:, :, kind + 1, None])
        return places, whole

    @staticmethod
    def _sources(ids: Tensor) -> Tensor:
        """The token that each pointer copies from each position, (rows, 2, context): that token, and the next one."""
        return torch.stack([ids, torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)], dim=1)
