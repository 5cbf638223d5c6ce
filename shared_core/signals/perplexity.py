"""Quality from a language model: how probable an example's answer is, given its question."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import Journal
from .._validation import check_integer
from ..errors import InvalidInputError, InvalidParameterError, SetSelectWarning
from .language_models import AnswerModel, EndpointModel, Item, TransformersModel, import_library, question_answer_pairs
from .quality import scale_quality

TEMPLATE = "{question}\n{answer}"

StrPath = str | os.PathLike[str]

_QUESTION, _ANSWER = "{question}", "{answer}"


class LogPerplexityQuality:
    """Mean log-probability per token of an answer given its question (RAGSys, section 3.3.3).

    (1/|a|) Σ log p(a_i | q, a_<i) under a causal language model: 0 at best, and minus the logarithm of the answer's
    perplexity. It is a proxy for how often the model has met such an answer. Compute it once, offline, and keep it
    with the examples. Made by :meth:`from_transformers` or :meth:`from_endpoint`.

    Where the tokens of the answer begin: a token belongs to the answer if any of its characters does. One that spans
    the border (a space of the question's end merged with the answer's first word) is the answer's, since without the
    answer it would not be there. Special tokens that a tokenizer puts at the end do not count. A tokenizer that
    cannot tell characters (one written in Python) is asked for the tokens of the question alone, and the answer
    begins where the two lists part.

    Parameters
    ----------
    model : AnswerModel
        What scores a batch.
    template : str
        Holds ``{question}`` once, and ends with ``{answer}``.
    batch_size : int
        Answers in one forward pass or request. It does not change a score but for rounding.
    model_id : str
        What tells this model's scores from another's in a ``resume`` file; "" where there is no such name.

    Raises
    ------
    InvalidParameterError
        The template or the batch size is not as above.

    Examples
    --------
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> quality = LogPerplexityQuality.from_transformers(GPT2LMHeadModel(config), ByT5Tokenizer())
    >>> quality.score(["Capital of France?", "Capital of Italy?"], ["Paris", "Rome"]).shape
    (2,)
    """

    def __init__(
        self, model: AnswerModel, *, template: str = TEMPLATE, batch_size: int = 8, model_id: str = ""
    ) -> None:
        head = template.removesuffix(_ANSWER)
        if head == template or head.count(_QUESTION) != 1 or _ANSWER in head:
            raise InvalidParameterError(
                f"template must hold {_QUESTION} once and end with {_ANSWER}, its only one; got {template!r}"
            )
        self.template = template
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self.model_id = model_id
        self._model = model

    @classmethod
    def from_transformers(
        cls,
        model: Any,
        tokenizer: Any = None,
        *,
        device: Any = None,
        batch_size: int = 8,
        template: str = TEMPLATE,
        max_length: int | None = None,
        model_id: str | None = None,
    ) -> LogPerplexityQuality:
        """With a model of Hugging Face ``transformers``, local or loaded by name (extra ``train``).

        Parameters
        ----------
        model : str, path or loaded causal language model
            Load it yourself for a precision or quantisation of your choice.
        tokenizer : str, path or loaded tokenizer, optional
            By default the one of the model's name.
        device : str or torch.device, optional
            By default where a loaded model is; for a name the GPU if there is one.
        max_length : int >= 2, optional
            The most tokens of question and answer together; by default what model and tokenizer say. Of longer
            texts the front is cut off, with a warning; a start-of-text token stays.
        batch_size, template, model_id
            See the class; ``model_id`` is by default the name that the model was loaded by.

        Raises
        ------
        ImportError
            torch or transformers is missing.
        InvalidParameterError
            A loaded model comes without a tokenizer, or a parameter is out of its range.
        """
        answers = TransformersModel(model, tokenizer, device, max_length)
        name = answers.name if model_id is None else model_id
        return cls(answers, template=template, batch_size=batch_size, model_id=name)

    @classmethod
    def from_endpoint(
        cls,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        batch_size: int = 8,
        template: str = TEMPLATE,
        timeout: float = 60.0,
        max_retries: int = 2,
        model_id: str | None = None,
    ) -> LogPerplexityQuality:
        """With an OpenAI-compatible ``/v1/completions`` that echoes log-probabilities (extra ``openai``).

        vLLM has one; chat models and llama.cpp's server have not. Texts that are too long are refused by the server.

        Parameters
        ----------
        base_url : str
            Up to and with ``/v1``.
        model : str
            The model's name there.
        api_key : str, optional
            Sent as it is. Without it no key is sent, not even that of the environment variable OPENAI_API_KEY.
        timeout, max_retries
            Seconds for a request, and how often the ``openai`` client tries again after a passing failure.
        batch_size, template, model_id
            See the class. ``model_id`` is by default the model's name.

        Raises
        ------
        ImportError
            openai is missing.
        """
        answers = EndpointModel(base_url, model, api_key, timeout, max_retries)
        name = model if model_id is None else model_id
        return cls(answers, template=template, batch_size=batch_size, model_id=name)

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
            Show a bar (tqdm).
        resume : path, optional
            A file of JSON lines to which the scores of each batch are added at once, and from which scores with the
            same model_id, template, length limit, question and answer are taken: after a crash only what is missing
            is computed. Use another file or ``model_id`` if the weights behind a name change.

        Returns
        -------
        ndarray, float64, shape (n,)
            Each at most 0.

        Raises
        ------
        InvalidInputError
            The lengths differ, something is no text, an answer is blank, too long by itself, or gets no finite
            score, or ``resume`` is some other file; the message names the item or line.
        InvalidParameterError
            ``resume`` for a model without a ``model_id``, or the endpoint does not echo log-probabilities.
        ImportError
            tqdm is missing.
        openai.OpenAIError
            The endpoint cannot be reached, or refuses.

        Warns
        -----
        SetSelectWarning
            The front of some questions was cut off.
        """
        return self._score(questions, answers, progress, resume)

    def annotate(
        self,
        examples: Iterable[Mapping[str, Any]],
        *,
        question: str = "question",
        answer: str = "answer",
        key: str = "quality",
        scale: str = "none",
        progress: bool = False,
        resume: StrPath | None = None,
    ) -> list[dict[str, Any]]:
        """Copies of examples or metadata, as dicts, with their quality under ``key``; what was there is replaced.

        Parameters
        ----------
        examples : iterable of mappings
            Few-shot examples, or the metadata of documents.
        question, answer : str
            Under which keys the texts are.
        scale : str
            See :func:`scale_quality`; ranks and the like are among these examples.
        progress, resume
            See :meth:`score`.

        Raises
        ------
        InvalidInputError
            An example has no such key, or as :meth:`score` raises it.
        """
        rows = list(examples)
        scores = self._score(_column(rows, question), _column(rows, answer), progress, resume)
        values = scale_quality(scores, scale)
        return [{**example, key: value} for example, value in zip(rows, values.tolist(), strict=True)]

    def __repr__(self) -> str:
        return f"LogPerplexityQuality(model_id={self.model_id!r}, template={self.template!r})"

    def _score(
        self, questions: Iterable[str], answers: Iterable[str], progress: bool, resume: StrPath | None
    ) -> NDArray[np.float64]:
        if resume is not None and not self.model_id:
            raise InvalidParameterError("resume needs to know whose scores these are: pass model_id= with the model")
        texts = question_answer_pairs(questions, answers)
        keys = [self._key(*pair) for pair in texts]
        journal = None if resume is None else Journal(resume, '{"key": "', "a score")
        known = {} if journal is None else _read_scores(journal)
        head = self.template.removesuffix(_ANSWER)
        missing: dict[str, Item] = {}
        for row, (key, (question, answer)) in enumerate(zip(keys, texts, strict=True)):
            if key not in known and key not in missing:
                missing[key] = Item(row, head.replace(_QUESTION, question), answer)
        # Texts of like length share a batch, and the longest come first: what memory it takes shows at once.
        order = sorted(missing, key=lambda key: -len(missing[key].context) - len(missing[key].answer))
        cut: list[int] = []
        with _bar(len(order), progress) as advance:
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                scored = self._model.score([missing[key] for key in batch])
                for key, found in zip(batch, scored, strict=True):
                    known[key] = found.mean
                    cut += [missing[key].row] * found.cut
                if journal is not None:
                    journal.append({"key": key, "log_probability": known[key]} for key in batch)
                advance(len(batch))
        if cut:
            warnings.warn(
                f"{len(cut)} of {len(texts)} texts are longer than {self._model.limit} tokens (item {min(cut)} is the "
                "first): the front of the question was cut off. Raise max_length if the model allows it",
                SetSelectWarning,
                stacklevel=3,
            )
        return np.array([known[key] for key in keys], dtype=np.float64)

    def _key(self, question: str, answer: str) -> str:
        content = json.dumps([self.model_id, self.template, self._model.limit, question, answer])
        return hashlib.sha256(content.encode()).hexdigest()


def _read_scores(journal: Journal) -> dict[str, float]:
    """The scores in a journal, by key; the journal is begun, so that a missing folder is found before the work."""
    known = {}
    for number, entry in journal.read():
        try:
            key, value = entry["key"], float(entry["log_probability"])
        except (ValueError, TypeError, KeyError):
            raise journal.error(number) from None
        if not isinstance(key, str) or not math.isfinite(value):
            raise journal.error(number)
        known[key] = value
    journal.begin()
    return known


def _column(examples: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    column = []
    for row, example in enumerate(examples):
        if name not in example:
            has = ", ".join(map(repr, example)) or "nothing"
            raise InvalidInputError(f"item {row} has no {name!r}; it has {has}. Pass question= and answer=")
        column.append(example[name])
    return column


@contextlib.contextmanager
def _bar(total: int, shown: bool) -> Iterator[Callable[[int], object]]:
    if not shown:
        yield lambda step: None
        return
    with import_library("tqdm", "train").tqdm(total=total, unit="answer") as bar:
        yield bar.update
