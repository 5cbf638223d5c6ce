"""What a selector is and can use, and the selectors by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from ..candidates import CONSTRAINTS, Candidates
from ..errors import InvalidParameterError, nearest_name, quoted
from .selection import Selection

# The selectors of this package, for editors.
SelectorName = Literal["coverage", "ndpp", "mmr", "vrsd", "similarity"]

# The selector of all functions, adapters and commands that are given none.
DEFAULT_SELECTOR = "coverage"


@dataclasses.dataclass(frozen=True)
class Capabilities:
    """What a selector can use; a selector says it in its attribute ``capabilities``.

    A selector without this attribute has the defaults. An argument that a selector cannot use is refused, or a warning
    says that it has no effect.

    Parameters
    ----------
    relevance : bool
        A relevance that is given in place of the cosine.
    quality : bool
        The quality of each candidate.
    sub_questions : bool
        Several questions for one set.
    words : bool
        The words of the question, and the parts of ``cover``.
    references : bool
        Which candidates refer to which others, by name, link, number or code.
    neighbours : bool
        Which candidates stand next to each other in a document; they come in the ``references``.
    log_gains : bool
        Whether a gain is a logarithm, for ``min_gain`` of :func:`select`.
    constraints : bool
        Whether its picks keep to ``budget``, ``max_per_source``, ``drop_near_duplicates`` and ``shown``, as those of
        :func:`select_greedily` do.
    """

    relevance: bool = True
    quality: bool = True
    sub_questions: bool = True
    words: bool = False
    references: bool = False
    neighbours: bool = False
    log_gains: bool = False
    constraints: bool = False


_DEFAULT_CAPABILITIES = Capabilities()

# What is refused if a selector lacks the capability, and what to do.
_OTHERS = "use 'coverage', 'ndpp', 'mmr' or 'similarity', or leave"
_REFUSED = {
    "relevance": f"cannot use a given relevance: {_OTHERS} it out",
    "sub_questions": f"cannot select for several queries: {_OTHERS} out the sub-questions",
    "constraints": f"does not say that it keeps to budget, {', '.join(CONSTRAINTS)} and shown: leave them out, or let "
    "it pick with select_greedily and say Capabilities(constraints=True)",
}


def capabilities_of(selector: Selector) -> Capabilities:
    """What a selector can use."""
    capabilities: Capabilities = getattr(selector, "capabilities", _DEFAULT_CAPABILITIES)
    return capabilities


def check_capability(selector: Selector, capability: Literal["relevance", "sub_questions", "constraints"]) -> None:
    """Refuse what the selector cannot use."""
    if not getattr(capabilities_of(selector), capability):
        raise InvalidParameterError(f"{quoted(selector)} {_REFUSED[capability]}")


def check_usable(
    selector: Selector, candidates: Candidates, budget: float | None = None, shown: Sequence[int] = ()
) -> Capabilities:
    """What the selector can use. Refuses a given relevance, several queries, or limits of the picks that it cannot."""
    if candidates.relevance_given:
        check_capability(selector, "relevance")
    if len(candidates.questions) > 1:
        check_capability(selector, "sub_questions")
    limited = candidates.max_per_source is not None or candidates.drop_near_duplicates is not None
    if limited or budget is not None or shown:
        check_capability(selector, "constraints")
    return capabilities_of(selector)


@runtime_checkable
class Selector(Protocol):
    """An object that selects a set: one of the five selectors here, or your own (see :func:`register_selector`).

    Its attribute ``capabilities``, if it has one, says what it can use: see :class:`Capabilities`.
    """

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """Select ``k`` candidates, or as many as fit into ``budget``, given those already ``shown``.

        The last three are the arguments of :func:`select`.
        """
        ...


_REGISTRY: dict[str, Any] = {}

_S = TypeVar("_S", bound=type[Any])


def register_selector(name: str) -> Callable[[_S], _S]:
    """Class decorator: register a frozen dataclass with a ``select`` method under ``name``, for the adapters too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setselect import make_selector, register_selector, select_greedily
    >>> @register_selector("last_of_docs")
    ... @dataclass(frozen=True)
    ... class Last:
    ...     def select(self, candidates, k=None, *, budget=None, shown=()):
    ...         return select_greedily(candidates, lambda picks: range(len(candidates)), k, budget=budget, shown=shown)
    >>> make_selector("last_of_docs")
    Last()
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


def selector_class(name: str) -> Any:
    """The class of the selector of this name; the error of an unknown one lists the known ones."""
    if name not in _REGISTRY:
        near = nearest_name(name, _REGISTRY)
        hint = "; known" if near is None else f": did you mean {near!r}? Known"
        raise InvalidParameterError(f"unknown selector {quoted(name)}{hint}: {', '.join(_REGISTRY)}")
    return _REGISTRY[name]


def selector_parameters(name: str) -> tuple[str, ...]:
    """The parameters of the selector of this name.

    >>> selector_parameters("mmr")
    ('lambda_mult', 'lambda_b')
    """
    return tuple(field.name for field in dataclasses.fields(selector_class(name)) if field.init)


def make_selector(name: str, **parameters: Any) -> Selector:
    """The selector of this name with these parameters; the error of an unknown one lists what is allowed.

    >>> make_selector("mmr", lambda_mult=0.5)
    MMR(lambda_mult=0.5, lambda_b=0.95)
    """
    kind = selector_class(name)
    try:
        selector: Selector = kind(**parameters)
    except TypeError:
        allowed = selector_parameters(name)
        unknown = [p for p in parameters if p not in allowed]
        if not unknown:
            raise
        owners = " or ".join(quoted(other) for other in _REGISTRY if unknown[0] in selector_parameters(other))
        near = nearest_name(unknown[0], allowed)
        remedy = f": did you mean {near!r}?" if near else f"; allowed: {', '.join(allowed) or 'none'}"
        if owners:
            remedy = f" (a parameter of {owners}). Leave it out, or select with {owners}"
        raise InvalidParameterError(f"selector {quoted(name)} has no parameter {quoted(unknown[0])}{remedy}") from None
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
