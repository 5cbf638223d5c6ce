"""The result of a selection, the protocol of a selector, and the registry of selectors by name."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_integer, check_number, nearest_name, quoted, read_only
from ..candidates import CandidateBlock, Candidates, cosines_with_queries, standardise
from ..errors import InvalidInputError, InvalidParameterError, warn

# The selectors of this package, for editors.
SelectorName = Literal["coverage", "ndpp", "mmr", "vrsd", "similarity"]
# The selector of all functions, adapters and commands that are given none.
DEFAULT_SELECTOR = "coverage"
# The number of picks of all adapters, batches and commands that are given none.
DEFAULT_K = 4
# The number of picks that a set has in any case where ``min_gain`` ends it, chosen by benchmarks/min_gain.py.
DEFAULT_MIN_K = 2
# The repr of a selection shows at most this many picks.
MAX_SHOWN = 20


def default_fetch_k(k: int | None) -> int:
    """The number of nearest candidates to select ``k`` from, where none is given; k is None if a budget ends the set.

    benchmarks/fetch_k.py measures what other numbers find and cost.
    """
    return max(50, 5 * (k or 0))


def share_fetch_k(fetch_k: int, k: int | None, queries: int) -> int:
    """The number of nearest candidates to search for each of several queries: ``fetch_k`` shared out, at least k.

    >>> share_fetch_k(50, 5, 3), share_fetch_k(50, 20, 3)
    (17, 20)
    """
    return max(k or 1, -(-fetch_k // queries))


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
    """The selected set, in the order of the picks, with the gain of each pick.

    Attributes
    ----------
    indices : int64, shape (k,)
        Rows of the candidates, without repeats.
    gains : float64, shape (k,)
        What each pick added to the selector's own objective: a factor for :class:`NDPP`, a summand for the others.
        0 for a pick that was filled in.
    relevance : float64, shape (k,)
        Cosine of each pick with the query, or the relevance that was given. :func:`select`, batches and the adapters
        report a given relevance as it was before scaling.
    objective : float
        Value of the set by the selector's own measure: the sum of the gains (for :class:`NDPP` their product). If
        candidates were ``shown`` before, it is what the set adds to them.
    filled_from : int or None
        Position of the first pick that was filled in by relevance, because all further gains were 0.
        None if no pick was filled in.
    named_by : int64, shape (k,), or None
        The row of the earlier pick, or of the ``shown`` candidate, that names the pick and brought it a bonus; -1 where
        there is none. None if there were no ``references``, or the selector does not use them.
    serves : int64, shape (k,), or None
        With several queries: the row of the query that each pick serves best, by its cosine in standard deviations of
        all candidates. Of equal queries it is the first. None for one query.

    Examples
    --------
    >>> from setselect import select
    >>> s = select([1.0, 1.0], [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], k=2, selector="vrsd")
    >>> s
    Selection(k=2, indices=[1, 2], objective=0.9988)
    >>> s.relevance.round(3).tolist()
    [0.774, 0.707]
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: float
    filled_from: int | None = None
    named_by: NDArray[np.int64] | None = None
    serves: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        first = ", ".join(map(str, self.indices[:MAX_SHOWN].tolist()))
        more = ", ..." if len(self) > MAX_SHOWN else ""
        filled = "" if self.filled_from is None else f", filled_from={self.filled_from}"
        return f"Selection(k={len(self)}, indices=[{first}{more}], objective={self.objective:.4g}{filled})"

    def _repr_html_(self) -> str:
        """A table for notebooks: each pick with its relevance and its gain."""
        columns: dict[str, Iterable[Any]] = {
            "candidate": self.indices.tolist(),
            "relevance": map("{:.4f}".format, self.relevance),
            "gain": map("{:.4f}".format, self.gains),
        }
        if self.named_by is not None:
            columns["named by"] = ("" if name < 0 else name for name in self.named_by.tolist())
        if self.serves is not None:
            columns["serves"] = self.serves.tolist()
        rows = "".join(
            f"<tr><th>{pick}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for pick, cells in enumerate(islice(zip(*columns.values(), strict=True), MAX_SHOWN), 1)
        )
        head = f"<tr>{''.join(f'<th>{name}</th>' for name in ('pick', *columns))}</tr>"
        more = f" The first {MAX_SHOWN} are shown." if len(self) > MAX_SHOWN else ""
        caption = f"<caption>{len(self)} picks, objective {self.objective:.4g}.{more}</caption>"
        return f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>"


def best_query(candidates: Candidates) -> NDArray[np.int64]:
    """The row of the query that each candidate serves best, shape (n,): by its cosine in standard deviations."""
    best: NDArray[np.int64] = standardise(cosines_with_queries(candidates), candidates.dtype)[0].argmax(axis=0)
    return best


def at_rows(selection: Selection, rows: NDArray[np.int64]) -> Selection:
    """A selection among some rows, with the numbers that these rows have in a larger set."""
    named = selection.named_by
    # -1 stands for none.
    names = None if named is None else read_only(np.where(named < 0, -1, rows[named]))
    return dataclasses.replace(selection, indices=read_only(rows[selection.indices]), named_by=names)


def count_worthwhile(selection: Selection, selector: Selector, min_gain: float, min_k: int) -> int:
    """How many picks come before the first after ``min_k`` whose gain is below ``min_gain``; see :func:`select`.

    Gains that are logarithms are 0 for the most relevant candidate by itself. Other gains are divided by the first.
    """
    gains = selection.gains
    if getattr(selector, "gains_are_logs", False):
        worth = np.exp(np.minimum(gains, 0))
    elif len(gains) and gains[0] > 0:
        worth = gains / gains[0]
    else:
        return len(gains)
    below = np.flatnonzero(worth[min_k:] < min_gain)
    return min_k + int(below[0]) if len(below) else len(gains)


def check_worthwhile(min_gain: float | None, min_k: int) -> None:
    """Refuse a ``min_gain`` or ``min_k`` that is out of range."""
    if min_gain is not None:
        check_number(min_gain, "min_gain", 0, 1)
    check_integer(min_k, "min_k", 1)


def select_worthwhile(
    select_up_to: Callable[[int | None], Selection],
    k: int | None,
    selector: Selector,
    min_gain: float | None,
    min_k: int,
) -> tuple[Selection, bool]:
    """``select_up_to(k)``, or fewer picks if ``min_gain`` ends the set; and whether it does."""
    found = select_up_to(k)
    count = len(found) if min_gain is None else count_worthwhile(found, selector, min_gain, min_k)
    # The first picks of a larger set are not always the smaller set.
    return (select_up_to(count), True) if count < len(found) else (found, False)


@runtime_checkable
class Selector(Protocol):
    """An object that selects a set: one of the five selectors here, or your own (see :func:`register_selector`).

    Five attributes say what a selector can use, so that an argument without an effect is named: ``uses_quality``;
    ``uses_relevance`` for a relevance that is given in place of the cosine; ``uses_queries`` for several queries;
    ``uses_words`` for the words of the question and the parts of ``cover``; ``uses_references`` for the names in the
    texts. A selector without these attributes can use quality, relevance and several queries, but no words and no
    names. ``gains_are_logs`` says that a gain is a logarithm, for ``min_gain`` of :func:`select`.

    Examples
    --------
    >>> from setselect import MMR, Selector
    >>> isinstance(MMR(), Selector)
    True
    """

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select ``k`` candidates, or as many as fit into ``budget``, given those already ``shown``.

        Parameters
        ----------
        candidates : Candidates
            The n candidates of one query.
        k : int, optional
            The number of picks, 1..n. It may be left out if ``budget`` is given.
        budget : float, optional
            The sum of the candidates' costs that the set must not exceed.
        shown : iterable of int
            Rows of the candidates that the reader has seen already. They are not returned.

        Returns
        -------
        Selection
        """
        ...


def make_selection(
    candidates: Candidates,
    picks: list[int],
    gains: list[float],
    *,
    product: bool = False,
    filled_from: int | None = None,
    named_by: ArrayLike | None = None,
) -> Selection:
    """Make a read-only :class:`Selection` of picks and gains; for authors of selectors.

    Parameters
    ----------
    candidates : Candidates
        What was selected from.
    picks : list of k int
        Rows of the candidates, in the order of the picks.
    gains : list of k float
        What each pick added to the objective.
    product : bool
        Whether the objective is the product of the gains; by default it is their sum.
    filled_from : int >= 0, optional
        Position of the first pick that was filled in by relevance.
    named_by : array-like of k int, optional
        The row that names each pick; -1 for none.

    Raises
    ------
    InvalidInputError
        A pick is not a row of the candidates, or the numbers of picks and gains differ.

    Examples
    --------
    >>> from setselect import Candidates
    >>> c = Candidates([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]])
    >>> make_selection(c, [0], [1.0]).relevance.tolist()
    [1.0]
    """
    if len(picks) != len(gains) or (len(picks) and not 0 <= min(picks) <= max(picks) < len(candidates.vectors)):
        raise InvalidInputError(
            f"picks must be rows of the {len(candidates)} candidates, with one gain for each, got picks "
            f"{quoted(picks)} and gains {quoted(gains)}"
        )
    indices, values = np.array(picks, np.int64), np.array(gains, np.float64)
    relevance = candidates.relevance.take(indices).astype(np.float64)
    objective = float(math.prod(gains) if product else sum(gains))
    indices.flags.writeable = values.flags.writeable = relevance.flags.writeable = False
    names = None if named_by is None else read_only(np.array(named_by, np.int64))
    serves = read_only(best_query(candidates)[indices]) if len(candidates.queries) > 1 else None
    return Selection(indices, values, relevance, objective, filled_from, names, serves)


@dataclasses.dataclass(frozen=True, eq=False)
class Selections:
    """The selections of Q queries, read-only.

    Attributes
    ----------
    indices : int64, shape (Q, k)
        The rows of the picks of each query, in the order of the picks.
    gains, relevance : float64, shape (Q, k)
        What each pick added to the objective, and its relevance for the query.
    objective : float64, shape (Q,)
        What the selector maximised, for each query.
    filled_from : int64, shape (Q,)
        As in :class:`Selection`, with -1 for None.
    named_by : int64, shape (Q, k), or None
        As in :class:`Selection`.
    serves : int64, shape (Q, k), or None
        As in :class:`Selection`, with 0 for a question without sub-questions. None if no array of several was given.

    Examples
    --------
    >>> from setselect import select_many
    >>> many = select_many([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], k=1)
    >>> many
    Selections(queries=2, k=1, mean objective=0.04879)
    >>> many.indices.tolist(), many[1]
    ([[0], [1]], Selection(k=1, indices=[1], objective=0.04879))
    """

    indices: NDArray[np.int64]
    gains: NDArray[np.float64]
    relevance: NDArray[np.float64]
    objective: NDArray[np.float64]
    filled_from: NDArray[np.int64]
    named_by: NDArray[np.int64] | None = None
    serves: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        queries, k = self.indices.shape
        return f"Selections(queries={queries}, k={k}, mean objective={self.objective.mean():.4g})"

    def __getitem__(self, query: int) -> Selection:
        filled_from = int(self.filled_from[query])
        return Selection(
            self.indices[query],
            self.gains[query],
            self.relevance[query],
            float(self.objective[query]),
            None if filled_from < 0 else filled_from,
            None if self.named_by is None else self.named_by[query],
            None if self.serves is None else self.serves[query],
        )


def make_selections(
    block: CandidateBlock,
    picks: NDArray[np.int64],
    gains: NDArray[np.float64],
    objective: NDArray[np.float64],
    filled_from: NDArray[np.int64] | None = None,
) -> Selections:
    """Read-only :class:`Selections` of picks (b, k) and gains (b, k) for each query of a block."""
    relevance = np.take_along_axis(block.relevance, picks, axis=1).astype(np.float64)
    filled = np.full(len(picks), -1) if filled_from is None else filled_from
    columns: tuple[NDArray[Any], ...] = (picks, gains, relevance, objective, filled)
    return Selections(*map(read_only, columns))


_REGISTRY: dict[str, type[Any]] = {}

_S = TypeVar("_S", bound=type[Any])


def register_selector(name: str) -> Callable[[_S], _S]:
    """Class decorator: register a frozen dataclass with a ``select`` method under ``name``, for the adapters too.

    Raises
    ------
    InvalidParameterError
        The name is taken, the class has no ``select``, or it is not a frozen dataclass (selectors must be hashable
        and immutable).

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setselect import make_selector, register_selector, TopK
    >>> @register_selector("first_of_docs")
    ... @dataclass(frozen=True)
    ... class First:
    ...     def select(self, candidates, k=None, *, budget=None, shown=()):
    ...         return TopK().select(candidates, 1, budget=budget, shown=shown)
    >>> make_selector("first_of_docs")
    First()
    """

    def add(cls: _S) -> _S:
        known = _REGISTRY.get(name)
        # The same class is registered again when its module is reloaded, in a notebook for example.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidParameterError(f"selector name {quoted(name)} is taken by {known.__name__}")
        if not dataclasses.is_dataclass(cls) or not cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise InvalidParameterError(f"{cls.__name__} must be a frozen dataclass to be registered")
        if not callable(getattr(cls, "select", None)):
            raise InvalidParameterError(f"{cls.__name__} has no method select(candidates, k, *, budget, shown)")
        _REGISTRY[name] = cls
        return cls

    return add


def selector_names() -> tuple[str, ...]:
    """The names that :func:`make_selector` knows.

    >>> from setselect import selector_names
    >>> {"coverage", "similarity", "vrsd", "mmr", "ndpp"} <= set(selector_names())
    True
    """
    return tuple(_REGISTRY)


def selector_parameters(name: str) -> tuple[str, ...]:
    """The parameters of the selector of this name.

    Raises
    ------
    InvalidParameterError
        The name is unknown.

    Examples
    --------
    >>> from setselect import selector_parameters
    >>> selector_parameters("mmr")
    ('lambda_mult', 'lambda_b')
    """
    return tuple(field.name for field in dataclasses.fields(_REGISTRY[_known(name)]) if field.init)


def make_selector(name: str, **parameters: Any) -> Selector:
    """The selector of this name with these parameters.

    Raises
    ------
    InvalidParameterError
        The name or a parameter is unknown (the message lists what is allowed), or a value is out of range.

    Examples
    --------
    >>> from setselect import make_selector
    >>> make_selector("mmr", lambda_mult=0.5)
    MMR(lambda_mult=0.5, lambda_b=0.95)
    """
    allowed = selector_parameters(name)
    unknown = [p for p in parameters if p not in allowed]
    if unknown:
        owners = [quoted(other) for other in _REGISTRY if unknown[0] in selector_parameters(other)]
        near = nearest_name(unknown[0], allowed)
        hint = f" (a parameter of {' and '.join(owners)})" if owners else f": did you mean {near!r}?" if near else ""
        remedy = f". Leave it out, or select with {' or '.join(owners)}" if owners else ""
        raise InvalidParameterError(
            f"selector {quoted(name)} has no parameter {quoted(unknown[0])}{hint}; allowed: "
            f"{', '.join(allowed) or 'none'}{remedy}"
        )
    selector: Selector = _REGISTRY[name](**parameters)
    return selector


def resolve_selector(selector: str | Selector, parameters: dict[str, Any]) -> Selector:
    """The selector of this name with these parameters, or the object itself. An object takes no parameters."""
    if isinstance(selector, str):
        return make_selector(selector, **parameters)
    check_selector(selector)
    if parameters:
        raise InvalidParameterError(
            f"{quoted(selector)} is an object with parameters of its own: set {', '.join(parameters)} when you make it"
        )
    return selector


def check_selector(value: Any) -> None:
    """Refuse what is no object with a method ``select``."""
    if isinstance(value, type) or not callable(getattr(value, "select", None)):
        raise InvalidParameterError(
            f"selector must be one of {', '.join(_REGISTRY)} or an object with a method "
            f"select(candidates, k, *, budget, shown), got {quoted(value)}"
        )


def check_arguments(function: Callable[..., Any], parameters: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuse a keyword that is a parameter of no selector; the message names the nearest that ``function`` takes.

    ``more``: arguments of ``function`` that are not in its signature.
    """
    ours = dict.fromkeys(p for selector in _REGISTRY for p in selector_parameters(selector))
    for name in parameters:
        if name not in ours:
            taken = inspect.signature(function).parameters.values()
            known = (*(p.name for p in taken if p.kind is not p.VAR_KEYWORD), *more, *ours)
            near = nearest_name(name, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(known)}"
            raise InvalidParameterError(f"{function.__name__}() has no argument {name!r}: {hint}")


def uses_words(selector: Selector) -> bool:
    """Whether a selector uses the words of the question and the parts of ``cover``."""
    return getattr(selector, "uses_words", False)


def uses_queries(selector: Selector) -> bool:
    """Whether a selector can select for several queries."""
    return getattr(selector, "uses_queries", True)


def uses_references(selector: Selector) -> bool:
    """Whether a selector uses the names that stand in the candidates' texts."""
    return getattr(selector, "uses_references", False)


def warn_of_no_effect(
    selector: Selector,
    parameters: Iterable[str],
    *,
    quality: bool,
    words: str = "",
    without: Mapping[str, str | None],
    tell: Callable[[str], None] = warn,
) -> None:
    """Warn if a quality, words or another argument were given that the selector does not use.

    ``parameters`` are the names of what was given. ``words`` names the arguments that give words, names or parts.
    ``without`` has, for an argument, the other argument that it needs and that is missing, or None. ``tell`` gets each
    message.
    """
    # A selector without the attribute uses_quality may use quality.
    if quality and not getattr(selector, "uses_quality", True):
        tell(f"quality has no effect with {selector!r}; 'mmr' uses it")
    elif words and not uses_words(selector):
        tell(f"{words} {'have' if ' and ' in words else 'has'} no effect with {selector!r}; 'coverage' uses it")
    missing = {"lambda_b": None if quality else "quality", **without}
    for name in parameters:
        if missing.get(name) is not None:
            tell(f"{name} has no effect without {missing[name]}")


def _known(name: str) -> str:
    if name not in _REGISTRY:
        near = nearest_name(name, _REGISTRY)
        hint = "; known" if near is None else f": did you mean {near!r}? Known"
        raise InvalidParameterError(f"unknown selector {quoted(name)}{hint}: {', '.join(_REGISTRY)}")
    return name
