"""Quality from a language model: how probable an example's answer is, given its question."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .._validation import check_integer
from ..errors import InvalidInputError, quoted, warn
from .language_models import TEMPLATE, Item, LanguageModel, progress_bar, read_template


class LogPerplexityQuality:
    """Mean log-probability per token of an answer given its question (RAGSys, section 3.3.3).

    (1/|a|) Σ log p(a_i | q, a_<i) under a causal language model: minus the logarithm of the answer's perplexity. It
    estimates how often the model has met such an answer. Compute it once, offline, and store it with the examples.

    A token belongs to the answer if any of its characters does, so a token that spans the border counts. Special tokens
    at the end do not count.

    Parameters
    ----------
    model : LanguageModel
        Scores answers. A text that is longer than its limit is cut at the front of the question, with a warning.
    template : str
        Contains ``{question}`` once, and ends with ``{answer}``; other braces are plain text.
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
        self._head = read_template(template, "template")
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
            The lengths differ, or an item is not a pair of texts, has an answer that is blank or too long by itself, or
            gets no finite score; the message names the item.
        """
        pairs = _as_pairs(questions, answers)
        items: dict[tuple[str, str], Item] = {}
        for row, (question, answer) in enumerate(pairs):
            items.setdefault((question, answer), Item(row, self._head.replace("{question}", question), answer))
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
