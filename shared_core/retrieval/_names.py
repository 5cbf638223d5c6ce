"""The names of a request's settings, and what is most likely one of them, misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..errors import InvalidParameterError
from ..selectors.base import selector_names, selector_parameters

CHOICE_KEYS = (
    "k",
    "fetch_k",
    "score_threshold",
    "shown",
    "budget",
    "costs",
    "quality",
    "source",
    "max_per_source",
    "drop_near_duplicates",
    "perspective",
    "perspective_vector",
    "direction",
    "corpus",
    "selector",
)


def all_parameters() -> dict[str, None]:
    """Names of all selectors' parameters, in a fixed order."""
    return dict.fromkeys(p for name in selector_names() for p in selector_parameters(name))


def refuse_near_misses(names: Iterable[str]) -> None:
    """Raise for a name that is most likely one of ours, misspelt.

    Raises
    ------
    InvalidParameterError
        The message says which name it is close to.

    Examples
    --------
    >>> refuse_near_misses(["filter"])
    """
    ours = [*CHOICE_KEYS, *all_parameters()]
    for name in names:
        close = difflib.get_close_matches(name, ours, n=1, cutoff=0.8)
        if close:
            raise InvalidParameterError(f"there is no {name!r}: did you mean {close[0]!r}?")
