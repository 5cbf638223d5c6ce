"""What the single settings of a request must be, and what stands for those that are not given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._validation import check_integer, check_number, check_one_of
from ..errors import BudgetError, InvalidParameterError, PerspectiveError
from ..perspective import DIRECTIONS, PAP
from ..selectors.base import Selector, resolve_selector

# LangChain's default, so that a move from as_retriever(search_type="mmr") changes the class and nothing else.
DEFAULT_LAMBDA_MULT = 0.5


def sizes(k: Any, fetch_k: Any, budget: Any) -> tuple[int | None, int]:
    """``k`` and ``fetch_k``, or what stands for them where they are not given."""
    if k is None and budget is None:
        k = 4
    if k is not None:
        k = check_integer(k, "k", 1)
    if fetch_k is None:
        return k, 50 if k is None else max(20, 5 * k)
    return k, check_integer(fetch_k, f"fetch_k (of which k={k or 1} are chosen)", k or 1)


def selector_of(wanted: Any, parameters: dict[str, Any]) -> Selector:
    """The selector, from a name and its parameters or as an object; VRSD where nothing is wanted."""
    if wanted is None:
        wanted = "vrsd"
    if wanted == "similarity_score_threshold":
        raise InvalidParameterError("for 'similarity_score_threshold' say 'similarity' and give score_threshold")
    if isinstance(wanted, str) and wanted == "mmr" and not {"lambda_mult", "lambda_d"} & parameters.keys():
        parameters = {**parameters, "lambda_mult": DEFAULT_LAMBDA_MULT}
    return resolve_selector(wanted, parameters)


def checked_perspective(perspective: Any, corpus: Any, direction: str) -> Any:
    """``perspective`` as given, if it can be projected on."""
    check_one_of(direction, "direction", DIRECTIONS)
    text = isinstance(perspective, str)
    if text and not perspective.strip():
        raise PerspectiveError("perspective is an empty text; None means no perspective")
    vector = perspective is not None and not text and not callable(perspective)
    # Any vector serves to have the other two checked.
    PAP(perspective if vector else [1.0], corpus=corpus, direction=direction)
    return perspective


def key_or_function(value: Any, what: str) -> Any:
    """``value`` if numbers or names of items can come from it."""
    if value is None or isinstance(value, (str, Mapping)) or callable(value):
        return value
    raise InvalidParameterError(
        f"{what} must be a metadata key, a mapping of ids or a function of the item, got {value!r}"
    )


def cosine(value: Any, what: str) -> float | None:
    """``value`` as a float in [-1, 1], or None."""
    return None if value is None else check_number(value, f"{what} (a cosine)", -1, 1)


def checked_budget(budget: Any, costs: Any) -> float | None:
    """``budget`` as a float, or None; with one there must be costs."""
    if budget is not None and costs is None:
        raise BudgetError("a budget needs costs: a metadata key, or a function such as one that counts tokens")
    return None if budget is None else check_number(budget, "budget")
