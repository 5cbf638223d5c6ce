"""What gives an answer its log-probability: a causal language model at hand, or one behind an endpoint."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._validation import check_integer
from ..errors import InvalidInputError, InvalidParameterError
from ._prefix_cache import WORTH_SHARING, Start, can_go_on, common_start


class Item(NamedTuple):
    """One answer, the text that stands before it, and its row in the caller's lists, for messages."""

    row: int
    context: str
    answer: str


class Scored(NamedTuple):
    """Mean log-probability of an answer's tokens, whether the front of its context was cut off, and their number."""

    mean: float
    cut: bool
    tokens: int


class AnswerModel(Protocol):
    """Anything that scores a batch of answers."""

    limit: int | None
    """The most tokens of context and answer together; it belongs to what makes two scores comparable."""

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """One result for each item, in their order."""


class TransformersModel:
    """A causal language model of ``transformers``; see ``LogPerplexityQuality.from_transformers``."""

    def __init__(self, model: Any, tokenizer: Any, device: Any, max_length: int | None) -> None:
        torch = library("torch", "train")
        if isinstance(model, (str, os.PathLike)):
            transformers = library("transformers", "train")
            tokenizer = model if tokenizer is None else tokenizer
            model = transformers.AutoModelForCausalLM.from_pretrained(model)
            device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        if tokenizer is None:
            raise InvalidParameterError("a loaded model needs its tokenizer: pass tokenizer=, loaded or by name")
        if isinstance(tokenizer, (str, os.PathLike)):
            tokenizer = library("transformers", "train").AutoTokenizer.from_pretrained(tokenizer)
        self._torch, self._tokenizer = torch, tokenizer
        self._model = model if device is None else model.to(device)
        self.name = str(getattr(model, "name_or_path", "") or "")
        self.limit = _limit(model, tokenizer) if max_length is None else check_integer(max_length, "max_length", 2)
        # Over a long prompt most of the logits, which are a row of the vocabulary each, are nobody's.
        self._keeps = "logits_to_keep" in inspect.signature(model.forward).parameters

    def count(self, items: Sequence[Item]) -> list[int]:
        """How many tokens each item takes, up to the answer's last."""
        return [len(ids) for ids, _, _ in self._encode(items)]

    def start(self, items: Sequence[Item]) -> Start | None:
        """What all items begin with, for :meth:`score`; None where to compute it once does not pay, or is not safe."""
        shared = common_start([ids[: max(first - 1, 0)] for ids, first, _ in self._encode(items)])
        if len(items) < 2 or len(shared) < WORTH_SHARING:
            return None
        options = {"logits_to_keep": 1} if self._keeps else {}
        with self._still() as model:
            found = model(input_ids=self._torch.tensor([shared], device=model.device), use_cache=True, **options)
        cache = getattr(found, "past_key_values", None)
        return Start(shared, cache) if can_go_on(cache, model.config) else None

    def score(self, items: Sequence[Item], start: Start | None = None) -> list[Scored]:
        """Mean log-probabilities, from one forward pass over the batch, padded on the right."""
        encoded = [self._fit(item, *tokens) for item, tokens in zip(items, self._encode(items), strict=True)]
        done: list[int] = [] if start is None else start.ids
        if any(first <= len(done) or ids[: len(done)] != done for ids, first, _ in encoded):
            start, done = None, []
        longest = max(len(ids) for ids, _, _ in encoded)
        inputs = self._torch.tensor([ids + [0] * (longest - len(ids)) for ids, _, _ in encoded])
        mask = self._torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _, _ in encoded])
        options: dict[str, Any] = {"use_cache": start is not None}
        if self._keeps:
            options["logits_to_keep"] = longest - min(first for _, first, _ in encoded) + 1
        with self._still() as model:
            if start is not None:
                options["past_key_values"] = start.copies(len(items))
            inputs, mask = inputs[:, len(done) :].to(model.device), mask.to(model.device)
            logits = model(input_ids=inputs, attention_mask=mask, **options).logits
            lacking = longest - logits.shape[1]
            means = [
                self._mean(logits[row, first - 1 - lacking : len(ids) - 1 - lacking], ids[first:])
                for row, (ids, first, _) in enumerate(encoded)
            ]
        return [
            Scored(_finite(mean, item), cut, len(ids) - first)
            for mean, item, (ids, first, cut) in zip(means, items, encoded, strict=True)
        ]

    @contextlib.contextmanager
    def _still(self) -> Iterator[Any]:
        training = self._model.training
        # Dropout would make a score a matter of chance; the caller's model goes back as it came.
        self._model.eval()
        try:
            with self._torch.inference_mode():
                yield self._model
        finally:
            self._model.train(training)

    def _mean(self, logits: Any, ids: list[int]) -> float:
        # One row at a time: the batch's log-probabilities over the whole vocabulary are gigabytes.
        logs = self._torch.log_softmax(logits.float(), dim=-1)
        picked = logs.gather(1, self._torch.tensor(ids, device=logs.device)[:, None])
        return float(picked.cpu().double().mean())

    def _encode(self, items: Sequence[Item]) -> list[tuple[list[int], int, int]]:
        """For each item its tokens up to the answer's last, where the answer's begin, and how many are special."""
        tokenizer = self._tokenizer
        fast = bool(getattr(tokenizer, "is_fast", False))
        full = tokenizer(
            [item.context + item.answer for item in items],
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
            # Texts beyond the model's length are dealt with here; the tokenizer would log about them.
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
                alike = [mine == other for mine, other in zip(ids, heads[row], strict=False)]
                first = (*alike, False).index(False)
                places = [place for place in range(first, len(ids)) if not special[place]]
            if not places:
                raise InvalidInputError(f"answer of item {item.row}, {item.answer!r}, has no token of its own")
            lead = next((place for place, is_special in enumerate(special) if not is_special), 0)
            encoded.append((ids[: places[-1] + 1], places[0], lead))
        return encoded

    def _fit(self, item: Item, ids: list[int], first: int, lead: int) -> tuple[list[int], int, bool]:
        if first == 0:
            raise InvalidInputError(_nothing_before(item))
        excess = 0 if self.limit is None else len(ids) - self.limit
        if excess <= 0:
            return ids, first, False
        # What the tokenizer puts in front (a start-of-text token) stays, and something must stand before the answer.
        if lead + excess > first - (lead == 0):
            raise InvalidInputError(
                f"answer of item {item.row} has {len(ids) - first} tokens, but the model takes {self.limit} in all, "
                "one of them before the answer: shorten the answer, or take a model with a longer context"
            )
        return ids[:lead] + ids[lead + excess :], first - excess, True


class EndpointModel:
    """A model behind an OpenAI-compatible endpoint; see ``LogPerplexityQuality.from_endpoint``."""

    limit: int | None = None

    def __init__(self, base_url: str, model: str, api_key: str | None, timeout: float, max_retries: int) -> None:
        self._openai = library("openai", "openai")
        # Left to itself the client would send the key of the environment to whatever server stands at base_url.
        key = "none" if api_key is None else api_key
        self._client = self._openai.OpenAI(base_url=base_url, api_key=key, timeout=timeout, max_retries=max_retries)
        self._where = f"model {model!r} at {base_url}"
        self.base_url = base_url
        self._name = model

    def score(self, items: Sequence[Item]) -> list[Scored]:
        """Mean log-probabilities, from one request for the batch."""
        try:
            answer = self._client.completions.create(
                model=self._name,
                prompt=[item.context + item.answer for item in items],
                echo=True,
                logprobs=1,
                # Some servers refuse 0; the token they add is told apart by its place.
                max_tokens=1,
                temperature=0,
            )
        except self._openai.OpenAIError as error:
            error.add_note(f"setselect: while {self._where} scored items {', '.join(str(i.row) for i in items)}")
            raise
        choices = sorted(answer.choices, key=lambda choice: choice.index)
        if len(choices) != len(items):
            raise InvalidParameterError(f"{self._where} sent {len(choices)} choices for {len(items)} prompts")
        return [self._scored(item, choice) for item, choice in zip(items, choices, strict=True)]

    def _scored(self, item: Item, choice: Any) -> Scored:
        found = choice.logprobs
        tokens, starts, logs = (getattr(found, name, None) for name in ("tokens", "text_offset", "token_logprobs"))
        if not (tokens and starts and logs and len(tokens) == len(starts) == len(logs)):
            raise InvalidParameterError(
                f"{self._where} sent no logprobs with tokens, text_offset and token_logprobs: it needs the form of "
                "/v1/completions; vLLM has it, chat-only servers do not. Or use from_transformers"
            )
        prompt = item.context + item.answer
        # A start-of-text token is no text of ours, but some servers count its characters.
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
            raise InvalidInputError(_nothing_before(item))
        return Scored(_finite(float(np.mean([logs[place] for place in places])), item), False, len(places))


def library(name: str, extra: str) -> Any:
    """The module of this name, imported now.

    Raises
    ------
    ImportError
        It is not installed; the message names the extra that brings it.

    Examples
    --------
    >>> library("json", "train").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'this needs {name}: pip install "setselect[{extra}]"') from error


def question_answer_pairs(questions: Iterable[str], answers: Iterable[str]) -> list[tuple[str, str]]:
    """Each question with its answer.

    Raises
    ------
    InvalidInputError
        The lengths differ, something is no text, or an answer is blank; the message names the item.

    Examples
    --------
    >>> question_answer_pairs(["Capital of France?"], ["Paris"])
    [('Capital of France?', 'Paris')]
    """
    asked, answered = _texts(questions, "questions"), _texts(answers, "answers")
    if len(asked) != len(answered):
        raise InvalidInputError(f"there are {len(asked)} questions, but {len(answered)} answers")
    for row, text in enumerate(answered):
        if not text.strip():
            raise InvalidInputError(f"answers: item {row} is {text!r}; leave out examples without an answer")
    return list(zip(asked, answered, strict=True))


def _texts(texts: Iterable[str], what: str) -> list[str]:
    if isinstance(texts, str):
        raise InvalidInputError(f"{what} must be a list of texts, not one text: [{texts!r}]")
    column = list(texts)
    for row, text in enumerate(column):
        if not isinstance(text, str):
            raise InvalidInputError(f"{what}: item {row} is {text!r}, not a text")
    return column


def _finite(mean: float, item: Item) -> float:
    if not math.isfinite(mean):
        raise InvalidInputError(
            f"the answer of item {item.row} gets log-probability {mean}: the model's numbers overflow, so load it in "
            "bfloat16 or float32; or leave the item out"
        )
    return mean


def _limit(model: Any, tokenizer: Any) -> int | None:
    config = model.config.get_text_config()
    known = (getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None))
    # Tokenizers that know no limit say 1e30.
    return min((length for length in known if isinstance(length, int) and 1 < length < 10**9), default=None)


def _nothing_before(item: Item) -> str:
    return (
        f"the first token of the answer of item {item.row} has nothing before it, so the model gives it no "
        "probability: put some text before {answer} in the template"
    )
