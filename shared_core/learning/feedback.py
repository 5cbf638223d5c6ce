"""Feedback: a number for how well a subset of examples helps with a query's answer (NDPP paper, 4.2).

Either by coverage, the share of an answer's symbols that the examples contain, or by a language model's probability.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from .._validation import as_float, check_integer
from ..errors import InvalidInputError, InvalidParameterError, quoted, warn
from ..signals.language_models import TEMPLATE, LanguageModel, PromptTooLong, Scored, read_template
from ..signals.language_models import Item as ModelItem

Item = Mapping[str, Any]
Pair = tuple[Item, Sequence[Item]]
"""A query's item, and the items of a subset."""
Symbol = str | tuple[str, ...]

# A quote inside a word (coeur d'alene) does not open a string.
_CALLS = re.compile(
    r"""\\.|(?<!\w)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?P<open>(?:(?<![\w.:])[\w.:]+)?\()|(?P<close>\))""", re.S
)
# In Lisp an apostrophe does not open a string.
_LISP = re.compile(
    r"""\\.|"(?:[^"\\]|\\.)*"|(?P<open>\(\s*(?:[^\s()\[\]"',;\d][^\s()\[\]"',;]*)?)|(?P<close>\))""", re.S
)
_LABELS = re.compile(r"(?P<open>\[\s*(?:[^\W\d][^\s\[\]]*)?)|(?P<close>\])")
_LABELLED = re.compile(r"\s*\[\s*[^\W\d][\w:.-]*(?=[\s\[\]]|$)")


class Feedback(Protocol):
    """Any callable that returns a finite number for a query and a subset; a higher number is better.

    An object may also have ``score(pairs) -> list[float]``, for many pairs (item, items of a subset) in one call, and a
    text ``fingerprint`` that identifies the feedback in the files of :func:`label`.

    Examples
    --------
    >>> def share_of_known_words(query_item, subset_items):
    ...     words = set(query_item["answer"].split())
    ...     known = {word for item in subset_items for word in item["answer"].split()}
    ...     return len(words & known) / len(words)
    >>> share_of_known_words({"answer": "red fox"}, [{"answer": "red hat"}])
    0.5
    """

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        """The number for one query and one subset."""


def score_all(feedback: Feedback, pairs: Sequence[Pair], names: Sequence[str]) -> list[float]:
    """The feedback for each pair: by its method ``score`` if it has one, else by one call for each pair.

    An InvalidInputError names the pair whose number is not finite; an exception of the feedback gets a note.
    """
    if hasattr(feedback, "score"):
        values = list(feedback.score(pairs))
        if len(values) != len(pairs):
            raise InvalidInputError(f"{quoted(feedback)}: score returned {len(values)} results for {len(pairs)} pairs")
    else:
        values = []
        for pair, name in zip(pairs, names, strict=True):
            with noting(f"the feedback scored {name}"):
                values.append(feedback(*pair))
    numbers = list(map(as_float, values))
    for number, value, name in zip(numbers, values, names, strict=True):
        if not math.isfinite(number):
            raise InvalidInputError(f"the feedback for {name} is {quoted(value)}; it must be a finite number")
    return numbers


@contextmanager
def noting(what: str) -> Iterator[None]:
    """Add a note to whatever the user's own function raises: what it did at that moment."""
    try:
        yield
    except Exception as error:
        error.add_note(f"setselect: while {what}")
        raise


# --- coverage ---------------------------------------------------------------------------------------


def structural_symbols(text: str) -> frozenset[Symbol]:
    """The function names in a program or logical form, and the pairs of names that are nested directly.

    The first character decides how the text is read:

    - ``[IN:GET_ALARM [SL:ORDINAL next ] ]``: names are the labels after a bracket; plain words are not names.
    - ``(argmax (state all))``: names come after a parenthesis.
    - Anything else, such as ``answer(state(all))``: names come directly before a parenthesis.

    Quoted constants and bare arguments are not symbols. A parenthesis without a name does not change the nesting: in
    Prolog's ``answer(A, (state(A), loc(A, B)))``, ``state`` is inside ``answer``. Brackets need not match.

    Parameters
    ----------
    text : str
        An answer: a program, a query or a formula.

    Returns
    -------
    frozenset of str and (str, str)
        The names, and the pairs (outer, inner).

    Examples
    --------
    >>> sorted(map(str, structural_symbols("answer(state(next_to_2(stateid('ohio'))))")))[:4]
    ["('answer', 'state')", "('next_to_2', 'stateid')", "('state', 'next_to_2')", 'answer']
    >>> sorted(map(str, structural_symbols("[IN:GET_ALARM [SL:ORDINAL next ] ]")))
    ["('IN:GET_ALARM', 'SL:ORDINAL')", 'IN:GET_ALARM', 'SL:ORDINAL']
    """
    if _LABELLED.match(text):
        pattern, bracket = _LABELS, "["
    else:
        pattern, bracket = (_LISP if text.lstrip().startswith("(") else _CALLS), "("
    symbols: set[Symbol] = set()
    around = [""]
    for match in pattern.finditer(text):
        if match.lastgroup == "open":
            # In a method call, .mean(, the dot is not part of the name. A number before a parenthesis is not a call.
            name = match[0].strip(bracket + ".: \t\r\n")
            name = "" if name[:1].isdigit() else name
            outer = around[-1]
            if name:
                symbols.update({name, (outer, name)} if outer else {name})
            around.append(name or outer)
        elif match.lastgroup == "close" and len(around) > 1:
            around.pop()
    return frozenset(symbols)


class CoverageFeedback:
    """The share of the symbols of a query's answer that occur in the answers of the subset.

    It is a cheap estimate of whether a model could compose the query's answer from the examples.

    Parameters
    ----------
    answer : str
        The key of an item's answer.
    symbols : callable
        From an answer's text to its symbols, any hashable values: :func:`structural_symbols` for programs and logical
        forms, ``str.split`` for prose, or a function of your own. It is called once for each text, so its result must
        depend on the text alone.

    Examples
    --------
    >>> feedback = CoverageFeedback()
    >>> feedback({"answer": "answer(state(all))"}, [{"answer": "answer(city(all))"}, {"answer": "count(state(all))"}])
    0.6666666666666666
    """

    def __init__(self, answer: str = "answer", symbols: Callable[[str], Iterable[Any]] = structural_symbols) -> None:
        self.answer = answer
        self.symbols = symbols
        self._known: dict[str, frozenset[Any]] = {}

    @property
    def fingerprint(self) -> str:
        """A text that identifies this feedback."""
        return f"CoverageFeedback(symbols={self._symbols_name()}, answer={self.answer!r})"

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        """The share for one query and one subset; see :meth:`score`."""
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The share for each pair; an example whose answer has no symbols adds nothing.

        An :class:`InvalidInputError` names an item without an answer, and a query whose answer has no symbols.
        """
        shares = []
        for row, (query, subset) in enumerate(pairs):
            symbols = self._find_symbols(query, f"pair {row}, query item")
            if not symbols:
                raise InvalidInputError(
                    f"pair {row}, query item: its {self.answer!r}, {quoted(query[self.answer])}, has no symbols by "
                    f"{self._symbols_name()}, so it has no coverage: leave the item out, or use another function"
                )
            examples = [
                self._find_symbols(item, f"pair {row}, item {n} of the subset") for n, item in enumerate(subset)
            ]
            shares.append(len(symbols & frozenset().union(*examples)) / len(symbols))
        return shares

    def _find_symbols(self, item: Item, whose: str) -> frozenset[Any]:
        text = _read_text(item, self.answer, whose, "Name the key of its answer (answer=)")
        if text not in self._known:
            with noting(f"{self._symbols_name()} read {quoted(text)}, the {self.answer!r} of the {whose}"):
                self._known[text] = frozenset(self.symbols(text))
        return self._known[text]

    def _symbols_name(self) -> str:
        function = self.symbols if hasattr(self.symbols, "__qualname__") else type(self.symbols)
        return f"{getattr(function, '__module__', None) or 'builtins'}.{function.__qualname__}"


def _read_text(item: Item, key: str, whose: str, remedy: str) -> str:
    text = item.get(key)
    if not isinstance(text, str):
        raise InvalidInputError(
            f"{whose}: its {quoted(key)} is {quoted(text)}, not a text; it has the keys {quoted([*item])}. {remedy}"
        )
    return text


# --- a language model -------------------------------------------------------------------------------


@dataclass(slots=True)
class Prompt:
    """A prompt that can lose examples from the front."""

    row: int
    parts: list[str]
    """The instruction, the examples and the question."""
    answer: str
    separator: str
    dropped: int = 0

    def item(self) -> ModelItem:
        """The input of the model: the answer, and the text before it."""
        instruction, *examples = self.parts
        kept = examples[self.dropped :]
        return ModelItem(self.row, self.separator.join([instruction, *kept] if instruction else kept), self.answer)

    def drop(self, reason: str) -> None:
        """Remove the first example; a prompt without examples is an InvalidInputError."""
        if self.dropped == len(self.parts) - 2:
            raise InvalidInputError(
                f"pair {self.row}: instruction, question and answer are too long even without examples ({reason}): "
                "shorten them, leave the item out, or take a model with a longer context"
            )
        self.dropped += 1


@dataclass(frozen=True)
class PromptTemplate:
    """How items become a prompt: instruction, examples in their order and the question, with separators between them.

    See :class:`LanguageModelFeedback` for the parameters.

    >>> template = PromptTemplate("", "Q: {question} A: {answer}", " | ", "q", "a")
    >>> template.prompt(0, {"q": "2+2?", "a": "4"}, [{"q": "1+1?", "a": "2"}]).item()
    Item(row=0, context='Q: 1+1? A: 2 | Q: 2+2? A: ', answer='4')
    """

    instruction: str
    example: str
    separator: str
    question: str
    answer: str

    def __post_init__(self) -> None:
        read_template(self.example, "example")

    def prompt(self, row: int, query: Item, subset: Sequence[Item]) -> Prompt:
        """The prompt for one query and its examples; an InvalidInputError names what an item lacks."""
        examples = []
        for n, item in enumerate(subset):
            head, answer = self._fill(item, f"pair {row}, item {n} of the subset")
            examples.append(head + answer)
        whose = f"pair {row}, query item"
        head, answer = self._fill(query, whose)
        if not answer.strip():
            raise InvalidInputError(f"{whose}: its answer is {quoted(answer)}; leave out items without an answer")
        return Prompt(row, [self.instruction, *examples, head], answer, self.separator)

    def _fill(self, item: Item, whose: str) -> tuple[str, str]:
        """The example up to its answer, and its answer."""
        question = _read_text(item, self.question, whose, "Name the key of its question (question=)")
        answer = _read_text(item, self.answer, whose, "Name the key of its answer (answer=)")
        return read_template(self.example, "example").replace("{question}", question), answer


class LanguageModelFeedback:
    """Log-probability of the query's answer, with the subset as examples (NDPP paper, 4.2: the logarithm of s_ij).

    log P(answer | subset, question) is a sum over the answer's tokens; :class:`LogPerplexityQuality` says which tokens
    belong to the answer. When the examples do not fit into the model's context, whole examples are dropped from the
    front, with a warning. Only a server knows the length of its model: a prompt that it refuses is sent again with one
    example less.

    Parameters
    ----------
    model : LanguageModel
        Scores answers.
    instruction, separator : str
        The start of the prompt ("" for none), and the text between its parts.
    example : str
        Contains ``{question}`` once, and ends with ``{answer}``; other braces are plain text. The part before
        ``{answer}`` also formats the query.
    question, answer : str
        The keys of the items whose values these are.
    batch_size : int
        As in :class:`LogPerplexityQuality`.
    model_id : str, optional
        The model's name in the files of :func:`label`; default: its own.

    Examples
    --------
    >>> from shared_core import LanguageModel
    >>> from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(vocab_size=384, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1)
    >>> feedback = LanguageModelFeedback(LanguageModel(GPT2LMHeadModel(config), ByT5Tokenizer()))
    >>> paris = {"question": "Capital of France?", "answer": "Paris"}
    >>> feedback({"question": "Capital of Italy?", "answer": "Rome"}, [paris]) < 0
    True
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        instruction: str = "",
        example: str = TEMPLATE,
        separator: str = "\n\n",
        question: str = "question",
        answer: str = "answer",
        batch_size: int = 8,
        model_id: str | None = None,
    ) -> None:
        self.template = PromptTemplate(instruction, example, separator, question, answer)
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self.model_id = model.name if model_id is None else model_id
        self.remote = model.base_url is not None
        self._model = model

    @property
    def fingerprint(self) -> str:
        """A text that identifies this feedback."""
        if not self.model_id:
            raise InvalidParameterError("the model has no name that identifies its scores: pass model_id=")
        model = {"model": self.model_id, "limit": self._model.limit, "precision": self._model.precision}
        parts = {**model, **asdict(self.template), "endpoint": self._model.base_url}
        return f"LanguageModelFeedback({json.dumps(parts, ensure_ascii=False)})"

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        """The log-probability for one query and one subset; see :meth:`score`."""
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The log-probability of the answer for each pair; a subset may be empty.

        An :class:`InvalidInputError` names a pair that lacks a text, or whose query has an answer that is blank, too
        long even without examples, or gets no finite number.
        """
        prompts = [self.template.prompt(row, *pair) for row, pair in enumerate(pairs)]
        self._shorten(prompts)
        scores = [scored.mean * scored.tokens for scored in self._ask(prompts)]
        short = [prompt for prompt in prompts if prompt.dropped]
        if short:
            warn(
                f"the model's context was full: {sum(prompt.dropped for prompt in short)} examples were dropped from "
                f"the front of {len(short)} of {len(prompts)} prompts (pair {short[0].row} is the first). Take smaller "
                "subsets or shorter examples, or a longer context if the model allows it"
            )
        return scores

    def cost(self, pairs: Iterable[Pair]) -> str:
        """The size of all prompts, before examples are dropped, as a text; the model is not called."""
        # One by one, because all prompts together may fill the memory.
        counts = [self._model.count_tokens([self.template.prompt(0, *pair).item()])[0] for pair in pairs]
        return f"{len(counts):,} prompts, about {sum(counts):,} tokens"

    def _shorten(self, prompts: list[Prompt]) -> None:
        """Drop examples until each prompt fits into the model's limit, if the limit is known."""
        while prompts and self._model.limit is not None:
            counts = self._model.count_tokens([prompt.item() for prompt in prompts])
            prompts = [prompt for prompt, count in zip(prompts, counts, strict=True) if count > self._model.limit]
            for prompt in prompts:
                prompt.drop(f"the model takes {self._model.limit} tokens")

    def _ask(self, prompts: list[Prompt]) -> list[Scored]:
        """The result of each prompt; examples are dropped from those that a server finds too long."""
        scores: dict[int, Scored] = {}
        size = self.batch_size
        while left := [place for place in range(len(prompts)) if place not in scores]:
            try:
                for batch in self._model.score_batches([prompts[place].item() for place in left], size):
                    scores |= {left[place]: scored for place, scored in batch}
            except PromptTooLong as error:
                # The server does not say which prompt of a request is too long.
                if size > 1:
                    size = 1
                else:
                    prompts[left[error.place]].drop(str(error))
        return [scores[place] for place in range(len(prompts))]
