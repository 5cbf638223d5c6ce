"""Quality from a language model: how probable an example's answer is, given its question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer, quoted
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..scaling import Scale, rescale
from .language_models import Item, LanguageModel
from .progress import progress_bar

TEMPLATE = "{question}\n{answer}"

_QUESTION, _ANSWER = "{question}", "{answer}"


class LogPerplexityQuality:
    """Mean log-probability per token of an answer given its question (RAGSys, section 3.3.3).

    (1/|a|) Σ log p(a_i | q, a_<i) under a causal language model. It is at most 0, and equals minus the logarithm of
    the answer's perplexity. It estimates how often the model has met such an answer. Compute it once, offline, and
    store it with the examples.

    A token belongs to the answer if any of its characters does, so a token that spans the border counts. Special tokens
    at the end do not count.

    Parameters
    ----------
    model : LanguageModel
        Scores answers. A text that is longer than its limit is cut at the front of the question, with a warning.
    template : str
        Contains ``{question}`` once, and ends with ``{answer}``.
    batch_size : int
        Answers in one request to an endpoint. A forward pass of a local model has room for ``batch_size`` · 256
        tokens, where a token of an answer counts as four. Apart from rounding the batch size does not change a score.

    Raises
    ------
    InvalidParameterError
        The template or the batch size is invalid.

    Examples
    --------
    >>> from setselect import LanguageModel
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> quality = LogPerplexityQuality(LanguageModel(GPT2LMHeadModel(config), ByT5Tokenizer()))
    >>> quality.score(["Capital of France?", "Capital of Italy?"], ["Paris", "Rome"]).shape
    (2,)
    """

    def __init__(self, model: LanguageModel, *, template: str = TEMPLATE, batch_size: int = 8) -> None:
        head = template.removesuffix(_ANSWER)
        if head == template or head.count(_QUESTION) != 1 or _ANSWER in head:
            raise InvalidParameterError(
                f"template must contain {_QUESTION} once and {_ANSWER} once, at its end; got {quoted(template)}"
            )
        self.template = template
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self._model = model

    def score(self, questions: Iterable[str], answers: Iterable[str], *, progress: bool = False) -> NDArray[np.float64]:
        """The mean log-probability of each answer given its question.

        Parameters
        ----------
        questions, answers : iterable of n str
            An answer must not be blank. Equal pairs are scored once.
        progress : bool
            Show a progress bar (tqdm).

        Returns
        -------
        ndarray, float64, shape (n,)
            Each at most 0.

        Raises
        ------
        InvalidInputError
            The lengths differ, something is not a string, an answer is blank, too long by itself, or gets no finite
            score; the message names the item.
        InvalidParameterError
            The endpoint does not echo log-probabilities.
        openai.OpenAIError
            The endpoint cannot be reached, or refuses the request.

        Warns
        -----
        SetSelectWarning
            Some questions were cut at the front.
        """
        pairs = _as_pairs(questions, answers)
        head = self.template.removesuffix(_ANSWER)
        items: dict[tuple[str, str], Item] = {}
        for row, (question, answer) in enumerate(pairs):
            items.setdefault((question, answer), Item(row, head.replace(_QUESTION, question), answer))
        distinct = list(items)
        scores: dict[tuple[str, str], float] = {}
        cut: list[int] = []
        with progress_bar(progress, len(items), "answer", "scoring") as advance:
            for batch in self._model.score_batches(list(items.values()), self.batch_size):
                scores |= {distinct[place]: scored.mean for place, scored in batch}
                cut += [items[distinct[place]].row for place, scored in batch if scored.cut]
                advance(len(batch))
        if cut:
            warn(
                f"{len(cut)} of {len(pairs)} texts are longer than {self._model.limit} tokens (item {min(cut)} is the "
                "first): the question was cut at the front. Raise max_length if the model allows it"
            )
        return np.array([scores[pair] for pair in pairs], dtype=np.float64)

    def annotate(
        self,
        examples: Iterable[Mapping[str, Any]],
        *,
        question: str = "question",
        answer: str = "answer",
        key: str = "quality",
        scale: Scale | None = None,
        progress: bool = False,
    ) -> list[dict[str, Any]]:
        """Copies of the examples, as dicts, with their quality under ``key``; an existing value is replaced.

        Parameters
        ----------
        examples : iterable of mappings
            Few-shot examples, or the metadata of documents.
        question, answer : str
            The keys of the two texts.
        scale : {"minmax", "rank", "sigmoid", "zscore"} or None
            See :func:`rescale`. The scale is computed over these examples.
        progress
            See :meth:`score`.

        Raises
        ------
        InvalidInputError
            An example lacks one of the keys; also what :meth:`score` raises.
        """
        rows = list(examples)
        for row, example in enumerate(rows):
            if question not in example or answer not in example:
                raise InvalidInputError(f"item {row} has the keys {quoted([*example])}: pass question= and answer=")
        questions, answers = ([example[name] for example in rows] for name in (question, answer))
        values = rescale(self.score(questions, answers, progress=progress), scale)
        return [{**example, key: value} for example, value in zip(rows, values.tolist(), strict=True)]


def _as_pairs(questions: Iterable[str], answers: Iterable[str]) -> list[tuple[str, str]]:
    columns = list(questions), list(answers)
    if len(columns[0]) != len(columns[1]):
        raise InvalidInputError(f"there are {len(columns[0])} questions, but {len(columns[1])} answers")
    pairs = list(zip(*columns, strict=True))
    for row, (question, answer) in enumerate(pairs):
        if not isinstance(question, str) or not isinstance(answer, str) or not answer.strip():
            raise InvalidInputError(
                f"item {row} must have a question and an answer that is not blank, got {quoted((question, answer))}; "
                "leave out examples without an answer"
            )
    return pairs
