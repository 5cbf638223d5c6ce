"""Which arguments have no effect without which others, or with which selector."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from ..errors import InvalidParameterError, argument_name, nearest_name, warn
from ..selectors.registry import Selector, capabilities_of, selector_names, selector_parameters

# An argument, and those of which it needs one. An interface may lack some of them.
NEEDS = {
    "relevance_scale": ("relevance", "relevance_column"),
    "costs": ("budget",),
    "sources": ("max_per_source", "texts", "neighbours"),
    "min_k": ("min_gain",),
    "extra_k": ("extra_retrievers", "keyword_search"),
    "prefer": ("drop_near_duplicates", "drop_duplicates", "texts"),
    **dict.fromkeys(("perspective_vector", "direction", "corpus"), ("perspective",)),
}
# An argument, and the capability that a selector needs to use it.
NEEDS_CAPABILITY = {
    "quality": "quality",
    **dict.fromkeys(("question", "words", "texts", "cover"), "words"),
    **dict.fromkeys(("references", "titles", "title", "identifiers", "identifier", "links", "follow"), "references"),
    "neighbours": "neighbours",
}


def warn_of_no_effect(selector: Selector, given: Collection[str], known: Collection[str]) -> None:
    """Warn of each argument that has no effect; see :func:`find_without_effect`."""
    for message in find_without_effect(selector, given, known):
        warn(message)


def find_without_effect(selector: Selector, given: Collection[str], known: Collection[str]) -> Iterator[str]:
    """A message for each argument that has no effect with this selector, or without another argument.

    ``given`` are the arguments that the caller has set, and ``known`` all arguments that the interface has.
    """
    capabilities = capabilities_of(selector)
    unused: dict[str, list[str]] = {}
    for name in given:
        capability = NEEDS_CAPABILITY.get(name)
        if capability is not None and not getattr(capabilities, capability):
            unused.setdefault("mmr" if capability == "quality" else "coverage", []).append(argument_name(name))
    for advice, names in unused.items():
        verb, them = ("have", "them") if len(names) > 1 else ("has", "it")
        yield f"{' and '.join(names)} {verb} no effect with {selector!r}; {advice!r} uses {them}"
    for name in given:
        needed = [argument_name(need) for need in NEEDS.get(name, ()) if need in known]
        if needed and not any(need in given for need in NEEDS[name]):
            yield f"{argument_name(name)} has no effect without {' or '.join(needed)}"


def refuse_unknown(
    owner: str, names: Iterable[str], known: Iterable[str], remedies: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise for the first name that ``owner`` does not know; ``remedies`` says what to do about some of them."""
    allowed = dict.fromkeys(known)
    for name in names:
        if name not in allowed:
            near = nearest_name(name, allowed)
            hint = f"it has {', '.join(allowed) or 'none'}" if near is None else f"did you mean {near!r}?"
            raise InvalidParameterError(f"{owner} has no argument {name!r}: {remedies.get(name, hint)}")


def refuse_unknown_parameters(function: Callable[..., object], parameters: Iterable[str]) -> None:
    """Refuse a keyword that is a parameter of no selector."""
    taken = (p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD)
    of_selectors = (p for selector in selector_names() for p in selector_parameters(selector))
    refuse_unknown(f"{function.__name__}()", parameters, (*taken, *of_selectors))
