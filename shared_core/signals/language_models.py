"""Language models that give answers their log-probability: a local one, or one behind an endpoint."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._validation import check_integer, quoted
from ..errors import InvalidInputError, InvalidParameterError

# Keys and values are copied for each batch, so a short prefix saves nothing. Measured with a small Llama on one core
# (16 few-shot prompts of about 280 tokens, batches of 8): 64 shared tokens save nothing, 256 save a quarter of the
# time, 768 save half of it.
_MIN_PREFIX = 128


class Item(NamedTuple):
    """One answer, the text before it, and its row in the caller's lists (for messages)."""

    row: int
    context: str
    answer: str


class Scored(NamedTuple):
    """The mean log-probability of an answer's tokens, whether its context was cut at the front, and the token count."""

    mean: float
    cut: bool
    tokens: int


class SharedPrefix(NamedTuple):
    """Tokens that several prompts begin with, and the model's keys and values for them."""

    ids: list[int]
    cache: Any

    def copy_cache(self, count: int) -> Any:
        """A copy of the cache for a batch of ``count`` prompts. The model writes into the cache that it gets."""
        cache = copy.deepcopy(self.cache)
        cache.batch_repeat_interleave(count)
        return cache


class AnswerModel(Protocol):
    """A model that scores a batch of answers. :class:`LogPerplexityQuality` takes any object of this form."""

    limit: int | None
    """The most tokens of context and answer together. Scores with different limits are not comparable."""

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """One result for each item, in the same order."""


class TransformersModel:
    """A causal language model of ``transformers``; see :meth:`LogPerplexityQuality.from_transformers`."""

    def __init__(self, model: Any, tokenizer: Any, device: Any, max_length: int | None) -> None:
        torch = import_library("torch", "train")
        if isinstance(model, (str, os.PathLike)):
            tokenizer = model if tokenizer is None else tokenizer
            model = import_library("transformers", "train").AutoModelForCausalLM.from_pretrained(model)
            device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if tokenizer is None:
            raise InvalidParameterError("a loaded model needs its tokenizer: pass tokenizer=, loaded or by name")
        if isinstance(tokenizer, (str, os.PathLike)):
            tokenizer = import_library("transformers", "train").AutoTokenizer.from_pretrained(tokenizer)
        self._torch, self._tokenizer = torch, tokenizer
        self._model = model if device is None else model.to(device)
        self.name = str(getattr(model, "name_or_path", "") or "")
        self.limit = _read_limit(model, tokenizer) if max_length is None else check_integer(max_length, "max_length", 2)
        # Each token has one row of logits over the vocabulary. The rows of the context are not needed.
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters

    def count_tokens(self, items: Sequence[Item]) -> list[int]:
        """How many tokens each item takes, up to the last one of the answer."""
        return [len(ids) for ids, _, _ in self._encode(items)]

    def read_prefix(self, items: Sequence[Item]) -> SharedPrefix | None:
        """What all items begin with, read once for :meth:`score`; None if this saves no time or changes scores."""
        shared = _common_start(*(ids[: max(first - 1, 0)] for ids, first, _ in self._encode(items)))
        if len(items) < 2 or len(shared) < _MIN_PREFIX:
            return None
        options = {"logits_to_keep": 1} if self._keeps else {}
        with self._inference_mode() as model:
            found = model(input_ids=self._torch.tensor([shared], device=model.device), use_cache=True, **options)
        cache = getattr(found, "past_key_values", None)
        return SharedPrefix(shared, cache) if _can_continue(cache, model.config) else None

    def score(self, items: Sequence[Item], prefix: SharedPrefix | None = None) -> list[Scored]:
        """Mean log-probabilities from one forward pass over the batch, which is padded on the right."""
        encoded = [self._fit(item, *tokens) for item, tokens in zip(items, self._encode(items), strict=True)]
        done: list[int] = [] if prefix is None else prefix.ids
        if any(first <= len(done) or ids[: len(done)] != done for ids, first, _ in encoded):
            prefix, done = None, []
        longest = max(len(ids) for ids, _, _ in encoded)
        inputs = self._torch.tensor([ids + [0] * (longest - len(ids)) for ids, _, _ in encoded])
        mask = self._torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _, _ in encoded])
        options: dict[str, Any] = {"use_cache": prefix is not None}
        if self._keeps:
            options["logits_to_keep"] = longest - min(first for _, first, _ in encoded) + 1
        with self._inference_mode() as model:
            if prefix is not None:
                options["past_key_values"] = prefix.copy_cache(len(items))
            inputs, mask = inputs[:, len(done) :].to(model.device), mask.to(model.device)
            logits = model(input_ids=inputs, attention_mask=mask, **options).logits
            skipped = longest - logits.shape[1]
            means = [
                self._mean(logits[row, first - 1 - skipped : len(ids) - 1 - skipped], ids[first:])
                for row, (ids, first, _) in enumerate(encoded)
            ]
        return [
            Scored(_check_finite(mean, item), cut, len(ids) - first)
            for mean, item, (ids, first, cut) in zip(means, items, encoded, strict=True)
        ]

    @contextlib.contextmanager
    def _inference_mode(self) -> Iterator[Any]:
        trained = [part for part in self._model.modules() if part.training]
        # Dropout would make scores random. Each part of the caller's model gets its own mode back.
        self._model.eval()
        try:
            with self._torch.inference_mode():
                yield self._model
        finally:
            for part in trained:
                part.training = True

    def _mean(self, logits: Any, ids: list[int]) -> float:
        # Row by row: the log-probabilities of a whole batch over the vocabulary take gigabytes.
        logs = self._torch.log_softmax(logits.float(), dim=-1)
        picked = logs.gather(1, self._torch.tensor(ids, device=logs.device)[:, None])
        return float(picked.cpu().double().mean())

    def _encode(self, items: Sequence[Item]) -> list[tuple[list[int], int, int]]:
        """For each item: tokens up to the answer's last, the place of its first, and how many special ones lead."""
        tokenizer = self._tokenizer
        fast = bool(getattr(tokenizer, "is_fast", False))
        full = tokenizer(
            [item.context + item.answer for item in items],
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
            # _fit shortens texts that are too long; the tokenizer would only log about them.
            verbose=False,
        )
        heads = None if fast else tokenizer([item.context for item in items], verbose=False)["input_ids"]
        encoded = []
        for row, item in enumerate(items):
            ids, special = full["input_ids"][row], full["special_tokens_mask"][row]
            if heads is None:
                ends = [end for _, end in full["offset_mapping"][row]]
                places = [place for place, end in enumerate(ends) if end > len(item.context)]
            else:
                first = len(_common_start(ids, heads[row]))
                places = [place for place in range(first, len(ids)) if not special[place]]
            if not places:
                raise InvalidInputError(f"answer of item {item.row}, {quoted(item.answer)}, has no token of its own")
            lead = next((place for place, is_special in enumerate(special) if not is_special), 0)
            encoded.append((ids[: places[-1] + 1], places[0], lead))
        return encoded

    def _fit(self, item: Item, ids: list[int], first: int, lead: int) -> tuple[list[int], int, bool]:
        """Tokens that fit into the limit, the place of the answer's first, and whether the context was cut in front."""
        if first == 0:
            raise InvalidInputError(_describe_missing_context(item))
        excess = 0 if self.limit is None else len(ids) - self.limit
        if excess <= 0:
            return ids, first, False
        # Special tokens at the front (a start-of-text token) stay, and at least one token stays before the answer.
        if lead + excess > first - (lead == 0):
            raise InvalidInputError(
                f"answer of item {item.row} has {len(ids) - first} tokens, but the model takes {self.limit} in all, "
                "one of them before the answer: shorten the answer, or take a model with a longer context"
            )
        return ids[:lead] + ids[lead + excess :], first - excess, True


class EndpointModel:
    """A model behind an OpenAI-compatible endpoint; see :meth:`LogPerplexityQuality.from_endpoint`."""

    limit: int | None = None

    def __init__(self, base_url: str, model: str, api_key: str | None, timeout: float, max_retries: int) -> None:
        self._openai = import_library("openai", "openai")
        # Without a key the client would send OPENAI_API_KEY of the environment to any server at base_url.
        key = "none" if api_key is None else api_key
        self._client = self._openai.OpenAI(base_url=base_url, api_key=key, timeout=timeout, max_retries=max_retries)
        self._where = f"model {model!r} at {base_url}"
        self.base_url = base_url
        self._name = model

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Mean log-probabilities from one request for the whole batch."""
        try:
            answer = self._client.completions.create(
                model=self._name,
                prompt=[item.context + item.answer for item in items],
                echo=True,
                logprobs=1,
                # Some servers refuse max_tokens=0. _read ignores the token that they add.
                max_tokens=1,
                temperature=0,
            )
        except self._openai.OpenAIError as error:
            error.add_note(f"setselect: while {self._where} scored items {', '.join(str(i.row) for i in items)}")
            raise
        # The client does not check what a server sends.
        try:
            replies = sorted(answer.choices, key=lambda reply: reply.index)
            if len(replies) != len(items):
                raise InvalidParameterError(f"{self._where} sent {len(replies)} choices for {len(items)} prompts")
            return [self._read(item, reply) for item, reply in zip(items, replies, strict=True)]
        except (AttributeError, TypeError, IndexError) as error:
            raise InvalidParameterError(
                f"{self._where} sent no completions, but {quoted(answer)}: check the URL"
            ) from error

    def _read(self, item: Item, reply: Any) -> Scored:
        """The score of one answer, from the server's log-probabilities of the echoed prompt."""
        found = reply.logprobs
        tokens, starts, logs = (getattr(found, name, None) for name in ("tokens", "text_offset", "token_logprobs"))
        if not (tokens and starts and logs and len(tokens) == len(starts) == len(logs)):
            raise InvalidParameterError(
                f"{self._where} sent no logprobs with tokens, text_offset and token_logprobs: use a server that "
                "implements /v1/completions in full, such as vLLM (chat-only servers do not), or use from_transformers"
            )
        prompt = item.context + item.answer
        # A start-of-text token is not part of the prompt, but some servers count its characters.
        origin = starts[1] if len(starts) > 1 and not prompt.startswith(tokens[0]) else 0
        begin, end = origin + len(item.context), origin + len(prompt)
        ends = [*starts[1:], starts[-1] + len(tokens[-1])]
        count = next((place for place, start in enumerate(starts) if start >= end), len(starts))
        if ends[count - 1] != end:
            raise InvalidParameterError(
                f"{self._where} does not echo the prompt of item {item.row}, or its text_offset does not fit it: the "
                f"prompt has {len(prompt)} characters, its tokens end at {ends[count - 1] - origin}. Use a server with "
                "echo (vLLM; not llama.cpp's), or from_transformers"
            )
        places = [place for place in range(count) if starts[place] >= begin or ends[place] > begin]
        if places[0] == 0 or logs[places[0]] is None:
            raise InvalidInputError(_describe_missing_context(item))
        return Scored(_check_finite(float(np.mean([logs[place] for place in places])), item), False, len(places))


def import_library(name: str, extra: str) -> Any:
    """The module ``name``, imported now; the ImportError names the extra of setselect that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'this needs {name}: pip install "setselect[{extra}]"') from error


def _common_start(*rows: list[int]) -> list[int]:
    """The tokens that all rows begin with."""
    alike = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))
    return [column[0] for column in alike]


def _can_continue(cache: Any, config: Any) -> bool:
    """Whether a model gives the same scores from this cache as from one pass over the whole text."""
    # Plain keys and values do. Sliding windows forget the front, states of recurrent layers include the padding, and
    # rotary embeddings of the kinds "dynamic" and "longrope" depend on the length of the text.
    layers = getattr(cache, "layers", None) or []
    plain = len(layers) > 0 and all(type(layer).__name__ == "DynamicLayer" for layer in layers)
    rotations = str([getattr(config, name, None) for name in ("rope_parameters", "rope_scaling")])
    return plain and "dynamic" not in rotations and "longrope" not in rotations


def _check_finite(mean: float, item: Item) -> float:
    if not math.isfinite(mean):
        raise InvalidInputError(
            f"the answer of item {item.row} gets log-probability {mean}: the model's numbers overflow. Load it in "
            "bfloat16 or float32, or leave the item out"
        )
    return mean


def _read_limit(model: Any, tokenizer: Any) -> int | None:
    config = model.config.get_text_config()
    known = (getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None))
    # A tokenizer without a limit reports 1e30.
    return min((length for length in known if isinstance(length, int) and 1 < length < 10**9), default=None)


def _describe_missing_context(item: Item) -> str:
    return (
        f"the first token of the answer of item {item.row} has nothing before it, so the model gives it no "
        "probability: put some text before {answer} in the template"
    )
