"""Feedback: a number for how well a subset of examples helps with a query's answer (NDPP paper, 4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..._validation import quoted
from ...errors import InvalidInputError
from .symbols import structural_symbols

Item = Mapping[str, Any]
Pair = tuple[Item, Sequence[Item]]
"""A query's item, and the items of a subset."""


class Feedback(Protocol):
    """Any callable that returns a finite number for a query and a subset; a higher number is better.

    An object may also have ``score(pairs) -> list[float]``, which scores many pairs in one call, and a text
    ``fingerprint`` that identifies the feedback; see :func:`score_all`.

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


def score_all(feedback: Feedback, pairs: Sequence[Pair], where: Sequence[str] | None = None) -> list[float]:
    """The feedback for each pair: by its method ``score`` if it has one, else by one call for each pair.

    Parameters
    ----------
    feedback : Feedback
        A function or an object.
    pairs : sequence of (item, sequence of items)
        Each item with its set of examples.
    where : sequence of str, optional
        Names of the pairs in messages; default: "pair 0", "pair 1", ....

    Returns
    -------
    list of n float
        All finite.

    Raises
    ------
    InvalidInputError
        A result is not a finite number (the message names the pair), or the number of results is wrong.
    Exception
        Any exception of the feedback; for a single call with a note that names the pair.

    Examples
    --------
    >>> score_all(lambda query, subset: len(subset) / 4, [({}, [{}]), ({}, [{}, {}])])
    [0.25, 0.5]
    """
    names = [f"pair {i}" for i in range(len(pairs))] if where is None else where
    if hasattr(feedback, "score"):
        values = list(feedback.score(pairs))
        if len(values) != len(pairs):
            raise InvalidInputError(f"{quoted(feedback)}: score returned {len(values)} results for {len(pairs)} pairs")
    else:
        values = []
        for pair, name in zip(pairs, names, strict=True):
            with noting(f"the feedback scored {name}"):
                values.append(feedback(*pair))
    return [_as_finite(value, name) for value, name in zip(values, names, strict=True)]


@contextmanager
def noting(what: str) -> Iterator[None]:
    """Add a note to whatever the user's own function raises: what it did at that moment."""
    try:
        yield
    except Exception as error:
        error.add_note(f"setselect: while {what}")
        raise


class CoverageFeedback:
    """The share of the symbols of a query's answer that occur in the answers of the subset.

    The share is a cheap estimate, without a model, of whether a model could compose the query's answer from the
    examples. It is 1 if each symbol occurs in some example, and 0 if no symbol does or the subset is empty.

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
        """A text that identifies this feedback: its class, the name of ``symbols``, and its key."""
        return f"CoverageFeedback(symbols={self._symbols_name()}, answer={self.answer!r})"

    def __call__(self, query_item: Item, subset_items: Sequence[Item], /) -> float:
        """The share for one query and one subset; see :meth:`score`."""
        return self.score([(query_item, subset_items)])[0]

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The share for each pair.

        Items are mappings with a text under the key ``answer``. An example whose answer has no symbols adds nothing.

        Raises
        ------
        InvalidInputError
            An item lacks the key or its value is not a text, or the answer of a query has no symbols.
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

    def __repr__(self) -> str:
        return self.fingerprint

    def _find_symbols(self, item: Item, whose: str) -> frozenset[Any]:
        text = item.get(self.answer)
        if not isinstance(text, str):
            raise InvalidInputError(
                f"{whose}: its {quoted(self.answer)} is {quoted(text)}, not a text; it has the keys {quoted([*item])}. "
                "Name the key of its answer (answer=)"
            )
        if text not in self._known:
            with noting(f"{self._symbols_name()} read {quoted(text)}, the {self.answer!r} of the {whose}"):
                self._known[text] = frozenset(self.symbols(text))
        return self._known[text]

    def _symbols_name(self) -> str:
        function = self.symbols if hasattr(self.symbols, "__qualname__") else type(self.symbols)
        return f"{getattr(function, '__module__', None) or 'builtins'}.{function.__qualname__}"


def _as_finite(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"the feedback for {name} is {quoted(value)}; it must be a finite number")
    return number
