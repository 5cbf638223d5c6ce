"""Quality from a language model: how probable an example's answer is, given its question."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import Journal, hold_lock
from .._validation import as_float, check_integer, quoted
from ..errors import InvalidInputError, InvalidParameterError, warn
from ..scaling import Scale, rescale
from .language_models import Item, LanguageModel
from .progress import progress_bar

TEMPLATE = "{question}\n{answer}"

StrPath = str | os.PathLike[str]
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
    model_id : str, optional
        Distinguishes the scores of this model from those of others in a ``resume`` file; default: the model's name.

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

    def __init__(
        self, model: LanguageModel, *, template: str = TEMPLATE, batch_size: int = 8, model_id: str | None = None
    ) -> None:
        head = template.removesuffix(_ANSWER)
        if head == template or head.count(_QUESTION) != 1 or _ANSWER in head:
            raise InvalidParameterError(
                f"template must contain {_QUESTION} once and {_ANSWER} once, at its end; got {quoted(template)}"
            )
        self.template = template
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self.model_id = model.name if model_id is None else model_id
        self._model = model

    def score(
        self,
        questions: Iterable[str],
        answers: Iterable[str],
        *,
        progress: bool = False,
        resume: StrPath | None = None,
    ) -> NDArray[np.float64]:
        """The mean log-probability of each answer given its question.

        Parameters
        ----------
        questions, answers : iterable of n str
            An answer must not be blank.
        progress : bool
            Show a progress bar (tqdm).
        resume : path, optional
            A file of JSON lines. The scores of each batch are appended to it at once. Scores in it that have the
            same model_id, precision, template, length limit, question and answer are not computed again, so a run
            that crashed continues where it stopped. Use another file or ``model_id`` if the weights behind a name
            change.

        Returns
        -------
        ndarray, float64, shape (n,)
            Each at most 0.

        Raises
        ------
        InvalidInputError
            The lengths differ, something is not a string, an answer is blank, too long by itself, or gets no finite
            score, or ``resume`` is a file of another kind; the message names the item or line.
        InvalidParameterError
            ``resume`` is given for a model without a ``model_id`` or is in use by another run, or the endpoint does
            not echo log-probabilities.
        openai.OpenAIError
            The endpoint cannot be reached, or refuses the request.

        Warns
        -----
        SetSelectWarning
            Some questions were cut at the front.
        """
        if resume is not None and not self.model_id:
            raise InvalidParameterError("resume needs a name for the model whose scores it keeps: pass model_id=")
        pairs = _as_pairs(questions, answers)
        keys = [self._key(*pair) for pair in pairs]
        head = self.template.removesuffix(_ANSWER)
        cut: list[int] = []
        with hold_lock(resume):
            journal = None if resume is None else Journal(resume, '{"key": "', "a score")
            scores_by_key = {} if journal is None else _read_scores(journal)
            missing: dict[str, Item] = {}
            for row, (key, (question, answer)) in enumerate(zip(keys, pairs, strict=True)):
                if key not in scores_by_key and key not in missing:
                    missing[key] = Item(row, head.replace(_QUESTION, question), answer)
            names, items = list(missing), list(missing.values())
            with progress_bar(progress, len(items), "answer", "scoring") as advance:
                for batch in self._model.score_batches(items, self.batch_size):
                    scores = {names[place]: scored.mean for place, scored in batch}
                    scores_by_key |= scores
                    cut += [items[place].row for place, scored in batch if scored.cut]
                    if journal is not None:
                        journal.append({"key": key, "log_probability": mean} for key, mean in scores.items())
                    advance(len(batch))
        if cut:
            warn(
                f"{len(cut)} of {len(pairs)} texts are longer than {self._model.limit} tokens (item {min(cut)} is the "
                "first): the question was cut at the front. Raise max_length if the model allows it"
            )
        return np.array([scores_by_key[key] for key in keys], dtype=np.float64)

    def annotate(
        self,
        examples: Iterable[Mapping[str, Any]],
        *,
        question: str = "question",
        answer: str = "answer",
        key: str = "quality",
        scale: Scale | None = None,
        progress: bool = False,
        resume: StrPath | None = None,
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
        progress, resume
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
        values = rescale(self.score(questions, answers, progress=progress, resume=resume), scale)
        return [{**example, key: value} for example, value in zip(rows, values.tolist(), strict=True)]

    def __repr__(self) -> str:
        return f"LogPerplexityQuality(model_id={self.model_id!r}, template={self.template!r})"

    def _key(self, question: str, answer: str) -> str:
        model = [self.model_id, self._model.limit, self._model.precision]
        content = json.dumps([*model, self.template, question, answer])
        return hashlib.sha256(content.encode()).hexdigest()


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


def _read_scores(journal: Journal) -> dict[str, float]:
    """The scores in a journal, by key. Beginning the journal finds a missing folder before the model runs."""
    scores: dict[str, float] = {}
    for number, entry in journal.read():
        try:
            key, score = entry["key"], as_float(entry["log_probability"])
        except (TypeError, KeyError):
            raise journal.error(number) from None
        if not isinstance(key, str) or math.isnan(score):
            raise journal.error(number)
        scores[key] = score
    journal.begin()
    return scores
