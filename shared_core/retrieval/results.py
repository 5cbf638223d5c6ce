"""What a call returns: the selected items in order, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .pool import ItemSelection
from .request import Request

T = TypeVar("T")


def new_scores(
    metadata: Mapping[str, Any],
    relevance: float,
    gain: float,
    referred_by: str | None,
    serves: str | None = None,
    found_by: Sequence[str] | None = None,
) -> dict[str, Any]:
    """What ``scores`` adds to an item's metadata. A key that is there already keeps its value.

    >>> new_scores({"relevance_score": 7.5}, 0.5, 0.25, "Forbidden Ground")
    {'selection_relevance': 0.5, 'selection_score': 0.25, 'selection_referred_by': 'Forbidden Ground'}
    """
    name = "selection_relevance" if "relevance_score" in metadata else "relevance_score"
    added: dict[str, Any] = {name: relevance, "selection_score": gain}
    if referred_by is not None:
        added["selection_referred_by"] = referred_by
    if serves is not None:
        added["selection_serves"] = serves
    if found_by is not None:
        added["selection_found_by"] = ", ".join(found_by)
    return {key: value for key, value in added.items() if key not in metadata}


def sort_items(items: Sequence[T], relevance: Sequence[float], order: str) -> list[T]:
    """Selected items in the ``order`` of the settings.

    The most relevant first; the most relevant last; or the most relevant at both ends, because language
    models use the middle of a long prompt least.

    >>> sort_items("abc", [0.2, 0.9, 0.5], "nearest_last")
    ['a', 'c', 'b']
    >>> sort_items("12345", [0.5, 0.4, 0.3, 0.2, 0.1], "long_context")
    ['1', '3', '5', '4', '2']
    """
    sign = 1 if order == "nearest_last" else -1
    ordered = [items[row] for row in sorted(range(len(items)), key=lambda row: sign * relevance[row])]
    return ordered[::2] + ordered[1::2][::-1] if order == "long_context" else ordered


def arrange(request: Request, selected: ItemSelection, make: Callable[[Any, float, dict[str, Any]], Any]) -> list[Any]:
    """``make(item, relevance, added)`` of each selected item, in the ``order`` of the settings.

    ``added`` is what ``scores`` adds to its metadata. With ``shadow``, the items that were returned before.
    """
    if selected.returned is not None:
        return selected.returned
    relevance = selected.selection.relevance.tolist()
    added: list[dict[str, Any]] = [{} for _ in relevance]
    if request.settings.scores:
        names = [None if row is None else _name(selected, row) for row in selected.referring]
        gains = selected.selection.gains.tolist()
        columns = selected.items, relevance, gains, names, selected.serving, selected.found_by
        added = [new_scores(item.metadata, *row) for item, *row in zip(*columns, strict=True)]
    made, order = list(map(make, selected.items, relevance, added)), request.settings.order
    return made if order == "selection" else sort_items(made, relevance, order)


def _name(selected: ItemSelection, row: int) -> str | None:
    """The title of an item, or the name in its text; its id if it has none."""
    name = selected.texts.find_title(row) if selected.texts is not None else ""
    item_id = selected.pool.ids[row]
    return name or (None if item_id is None else str(item_id))
