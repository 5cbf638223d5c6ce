"""Feedback of a language model: the probability of a query's answer, given the subset as examples."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from ..._validation import check_integer, check_number
from ...errors import InvalidParameterError, warn
from ...signals.language_models import AnswerModel, EndpointModel, Scored, TransformersModel, split_by_length
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
    next to the question), and the question.

    When the examples do not fit into the model's context, whole examples are dropped from the front, with a warning.
    Only a server knows the length of its model: a prompt that it refuses is sent again with one example less.

    Parameters
    ----------
    model : TransformersModel, EndpointModel or AnswerModel
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
    model_id : str, optional
        A name that identifies the model; default: the model's own name.
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
    >>> from setselect import TransformersModel
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> feedback = LanguageModelFeedback(TransformersModel(GPT2LMHeadModel(config), ByT5Tokenizer()))
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
        model_id: str | None = None,
        price: float | None = None,
    ) -> None:
        self.template = PromptTemplate(instruction, example, separator, question, answer)
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self.model_id = model.name if model_id is None else model_id
        self.price = None if price is None else check_number(price, "price", 0)
        self.remote = isinstance(model, EndpointModel)
        self._model = model

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
        return self.score([(query_item, subset_items)])[0]

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
        prompts = [self.template.prompt(row, *pair) for row, pair in enumerate(pairs)]
        if isinstance(self._model, TransformersModel) and self._model.limit is not None:
            _shorten(prompts, self._model, self._model.limit)
        groups: dict[tuple[str, str], list[Prompt]] = {}
        for prompt in prompts:
            groups.setdefault(prompt.item()[1:], []).append(prompt)
        equal_prompts = list(groups.values())
        scores = [math.nan] * len(prompts)
        for place, scored in self._score_each([group[0] for group in equal_prompts]):
            for prompt in equal_prompts[place]:
                scores[prompt.row] = scored.mean * scored.tokens
                prompt.dropped = equal_prompts[place][0].dropped
        short = [prompt for prompt in prompts if prompt.dropped]
        if short:
            warn(
                f"the model's context was full: {sum(prompt.dropped for prompt in short)} examples were dropped from "
                f"the front of {len(short)} of {len(prompts)} prompts (pair {short[0].row} is the first). Take smaller "
                "subsets or shorter examples, or a longer context if the model allows it"
            )
        return scores

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

    def _score_each(self, prompts: list[Prompt]) -> Iterator[tuple[int, Scored]]:
        """The result of each prompt with its place; examples are dropped from prompts that an endpoint refuses."""
        if not isinstance(self._model, EndpointModel):
            items = [prompt.item() for prompt in prompts]
            yield from itertools.chain.from_iterable(self._model.score_batches(items, self.batch_size))
            return
        for batch in split_by_length([prompt.item() for prompt in prompts], self.batch_size):
            yield from zip(batch, _ask(self._model, [prompts[place] for place in batch]), strict=True)


def _shorten(prompts: list[Prompt], model: TransformersModel, limit: int) -> None:
    """Drop examples until each prompt fits into the limit."""
    while prompts:
        counts = model.count_tokens([prompt.item() for prompt in prompts])
        prompts = [prompt for prompt, count in zip(prompts, counts, strict=True) if count > limit]
        for prompt in prompts:
            prompt.drop(f"the model takes {limit} tokens")


def _ask(endpoint: EndpointModel, prompts: list[Prompt]) -> list[Scored]:
    """The results of one request; examples are dropped from prompts that are too long for the server."""
    while True:
        try:
            return endpoint.score([prompt.item() for prompt in prompts])
        except endpoint.refusals as error:
            if not _is_too_long(error):
                raise
            if len(prompts) > 1:
                # The server does not say which prompt is too long, so each is scored by itself.
                return [scored for prompt in prompts for scored in _ask(endpoint, [prompt])]
            prompts[0].drop(f"the endpoint says: {error}")


def _is_too_long(error: Exception) -> bool:
    # Servers differ in status code and message.
    if getattr(error, "status_code", None) not in (400, 413, 422):
        return False
    return getattr(error, "code", None) == "context_length_exceeded" or _LENGTH.search(str(error)) is not None
