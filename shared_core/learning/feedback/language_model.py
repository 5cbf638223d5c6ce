"""Feedback of a language model: the probability of a query's answer, given the subset as examples."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..._validation import check_integer, check_number
from ...errors import InvalidParameterError, warn
from ...signals.language_models import AnswerModel, EndpointModel, Scored, TransformersModel
from .coverage import Item, Pair
from .prompts import EXAMPLE, Cost, Prompt, PromptTemplate

# The error messages of OpenAI and vLLM, newer vLLM, llama.cpp, SGLang and TGI for a prompt that is too long.
_LENGTH = re.compile(
    r"context.?(length|size|window)|maximum (model )?length|too long|tokens.{0,80}must be <=", re.IGNORECASE | re.DOTALL
)


class LanguageModelFeedback:
    """Log-probability of the query's answer, with the subset as examples (NDPP paper, 4.2: the logarithm of s_ij).

    log P(answer | subset, question) is a sum over the answer's tokens and at most 0; :class:`LogPerplexityQuality` says
    which tokens belong to the answer. The prompt has the instruction, the examples in the given order (the last is
    next to the question), and the question. :meth:`from_transformers` and :meth:`from_endpoint` make instances.

    When the examples do not fit into the model's context, whole examples are dropped from the front, with a warning.

    Parameters
    ----------
    model : AnswerModel
        Scores answers.
    instruction, separator : str
        The start of the prompt ("" for none), and the text between its parts.
    example : str
        A format string that ends with ``{answer}``. ``{question}`` and ``{answer}`` stand for the item's values under
        the keys ``question`` and ``answer``, other names for the values under those names; ``{{`` is a brace. The part
        before ``{answer}`` also formats the query.
    question, answer : str
        The keys of the items.
    batch_size : int
        Prompts in one request to an endpoint; for a local model see :class:`LogPerplexityQuality`. It changes scores by
        rounding only.
    model_id : str
        A name that identifies the model; "" if it has none.
    price : float, optional
        Price of a million tokens that the model reads, for :meth:`cost`.

    Attributes
    ----------
    remote : bool
        Whether prompts are sent to an endpoint, which may cost money.

    Raises
    ------
    InvalidParameterError
        A template, the batch size or the price is wrong.

    Examples
    --------
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> feedback = LanguageModelFeedback.from_transformers(GPT2LMHeadModel(config), ByT5Tokenizer())
    >>> paris = {"question": "Capital of France?", "answer": "Paris"}
    >>> feedback({"question": "Capital of Italy?", "answer": "Rome"}, [paris]) < 0
    True
    """

    def __init__(
        self,
        model: AnswerModel,
        *,
        instruction: str = "",
        example: str = EXAMPLE,
        separator: str = "\n\n",
        question: str = "question",
        answer: str = "answer",
        batch_size: int = 8,
        model_id: str = "",
        price: float | None = None,
    ) -> None:
        self.template = PromptTemplate(instruction, example, separator, question, answer)
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self.model_id = model_id
        self.price = None if price is None else check_number(price, "price", 0)
        self.remote = isinstance(model, EndpointModel)
        self._model = model

    @classmethod
    def from_transformers(
        cls,
        model: Any,
        tokenizer: Any = None,
        *,
        device: Any = None,
        max_length: int | None = None,
        model_id: str | None = None,
        **settings: Any,
    ) -> LanguageModelFeedback:
        """Use a model of Hugging Face ``transformers``, loaded or by name (extra ``train``).

        Parameters
        ----------
        model, tokenizer, device, max_length, model_id
            See :meth:`LogPerplexityQuality.from_transformers`. ``max_length`` counts a prompt with its answer.
        **settings
            ``batch_size`` and the parts of the template: see the class.
        """
        local = TransformersModel(model, tokenizer, device, max_length)
        return cls(local, model_id=local.name if model_id is None else model_id, **settings)

    @classmethod
    def from_endpoint(
        cls,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        model_id: str | None = None,
        **settings: Any,
    ) -> LanguageModelFeedback:
        """Use an OpenAI-compatible ``/v1/completions`` that echoes log-probabilities, such as vLLM (extra ``openai``).

        Only the server knows its model's length: a prompt that it refuses is sent again with one example less.

        Parameters
        ----------
        base_url, model, api_key, timeout, max_retries, model_id
            See :meth:`LogPerplexityQuality.from_endpoint`. No other key than this ``api_key`` is sent.
        **settings
            ``batch_size``, ``price`` and the parts of the template: see the class.
        """
        endpoint = EndpointModel(base_url, model, api_key, timeout, max_retries)
        return cls(endpoint, model_id=model if model_id is None else model_id, **settings)

    @property
    def fingerprint(self) -> str:
        """A text that identifies this feedback: model, precision, length limit, template and keys."""
        if not self.model_id:
            raise InvalidParameterError("the model has no name that identifies its scores: pass model_id=")
        model = {"model": self.model_id, "limit": self._model.limit, "precision": self._model.precision}
        parts = {**model, **self.template.settings}
        if isinstance(self._model, EndpointModel):
            parts["endpoint"] = self._model.base_url
        return f"LanguageModelFeedback({json.dumps(parts, ensure_ascii=False)})"

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        """The log-probability for one query and one subset; see :meth:`score`."""
        return self._score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The log-probability of the answer for each pair.

        Items are mappings with texts under the keys that the template names; a subset may be empty.

        Raises
        ------
        InvalidInputError
            An item lacks a text, or a query's answer is blank, too long even without examples, or gets a number that is
            not finite; the message names the pair.
        openai.OpenAIError
            The endpoint cannot be reached, or refuses the request for a reason other than its length.
        """
        return self._score(pairs)

    def cost(self, pairs: Iterable[Pair]) -> Cost:
        """The size of all prompts; the model is not called. Without a tokenizer four characters count as a token."""
        seen: set[int] = set()
        characters = tokens = 0
        for row, pair in enumerate(pairs):
            item = self.template.prompt(row, *pair).item()
            # A hash in place of the texts, which may fill the memory.
            name = hash((item.context, item.answer))
            if name not in seen:
                seen.add(name)
                characters += len(item.context) + len(item.answer)
                if isinstance(self._model, TransformersModel):
                    tokens += self._model.count_tokens([item])[0]
        return Cost(len(seen), characters, tokens or math.ceil(characters / 4), self.price)

    def __repr__(self) -> str:
        return f"LanguageModelFeedback(model_id={self.model_id!r}, remote={self.remote})"

    def _score(self, pairs: Sequence[Pair]) -> list[float]:
        prompts = [self.template.prompt(row, *pair) for row, pair in enumerate(pairs)]
        model = self._model
        if isinstance(model, TransformersModel) and model.limit is not None:
            self._shorten(prompts, model, model.limit)
        alike: dict[tuple[str, str], list[Prompt]] = {}
        for prompt in prompts:
            alike.setdefault(prompt.item()[1:], []).append(prompt)
        groups = list(alike.values())
        found = [math.nan] * len(prompts)
        for place, scored in self._score_each([group[0] for group in groups]):
            for prompt in groups[place]:
                found[prompt.row] = scored.mean * scored.tokens
                prompt.dropped = groups[place][0].dropped
        short = [prompt for prompt in prompts if prompt.dropped]
        if short:
            warn(
                f"the model's context was full: {sum(prompt.dropped for prompt in short)} examples were dropped from "
                f"the front of {len(short)} of {len(prompts)} prompts (pair {short[0].row} is the first). Take smaller "
                "subsets or shorter examples, or a longer context if the model allows it"
            )
        return found

    def _shorten(self, prompts: list[Prompt], model: TransformersModel, limit: int) -> None:
        while prompts:
            counts = model.count_tokens([prompt.item() for prompt in prompts])
            prompts = [prompt for prompt, count in zip(prompts, counts, strict=True) if count > limit]
            for prompt in prompts:
                prompt.drop(f"the model takes {limit} tokens")

    def _score_each(self, prompts: list[Prompt]) -> Iterator[tuple[int, Scored]]:
        """The result of each prompt with its place; examples are dropped from prompts that an endpoint refuses."""
        if not isinstance(self._model, EndpointModel):
            items = [prompt.item() for prompt in prompts]
            yield from itertools.chain.from_iterable(self._model.score_batches(items, self.batch_size))
            return
        # Prompts of similar length share a request.
        order = sorted(range(len(prompts)), key=lambda place: -sum(map(len, prompts[place].item()[1:])))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            yield from zip(batch, self._ask(self._model, [prompts[place] for place in batch]), strict=True)

    def _ask(self, endpoint: EndpointModel, prompts: list[Prompt]) -> list[Scored]:
        while True:
            try:
                return endpoint.score([prompt.item() for prompt in prompts])
            except endpoint.refusals as error:
                if not _is_too_long(error):
                    raise
                if len(prompts) == 1:
                    prompts[0].drop(f"the endpoint says: {error}")
                    continue
            # The server does not say which prompt is too long, so each is scored by itself.
            return [scored for prompt in prompts for scored in self._ask(endpoint, [prompt])]


def _is_too_long(error: Exception) -> bool:
    # Servers differ in status code and message.
    if getattr(error, "status_code", None) not in (400, 413, 422):
        return False
    return getattr(error, "code", None) == "context_length_exceeded" or _LENGTH.search(str(error)) is not None
