"""What a call returns: the selected items in order, with their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .joining import Joined, join
from .pool import ItemSelection
from .request import Request

T = TypeVar("T")


def new_scores(
    metadata: Mapping[str, Any],
    relevance: float,
    gain: float,
    reason: str,
    referred_by: str | None = None,
    serves: str | None = None,
    found_by: Sequence[str] | None = None,
) -> dict[str, Any]:
    """What ``scores`` adds to an item's metadata. A key that is there already keeps its value."""
    name = "selection_relevance" if "relevance_score" in metadata else "relevance_score"
    added: dict[str, Any] = {name: relevance, "selection_score": gain, "selection_reason": reason}
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
    """
    sign = 1 if order == "nearest_last" else -1
    ordered = [items[row] for row in sorted(range(len(items)), key=lambda row: sign * relevance[row])]
    return ordered[::2] + ordered[1::2][::-1] if order == "long_context" else ordered


def arrange(
    request: Request,
    selected: ItemSelection,
    make: Callable[[Any, float, dict[str, Any]], Any],
    make_joined: Callable[[list[Any], Joined], Any] | None = None,
) -> list[Any]:
    """``make(item, relevance, added)`` of each selected item, in the ``order`` of the settings.

    ``added`` is what ``scores`` adds to its metadata. ``make_joined`` makes one item of neighbours. Its relevance is
    the highest of theirs, and its gain the sum of theirs. With ``shadow``, the items that were returned before.
    """
    if selected.returned is not None:
        return selected.returned
    runs = selected.runs if make_joined is not None else [[at] for at in range(len(selected.items))]
    items, ids = list(selected.items), selected.ids
    if make_joined is not None:
        items = [make_joined(*_join(selected, ids, run)) if len(run) > 1 else items[run[0]] for run in runs]
    of_each: list[float] = selected.selection.relevance.tolist()
    relevance = [max(of_each[at] for at in run) for run in runs]
    added: list[dict[str, Any]] = [{} for _ in runs]
    if request.settings.scores:
        names = [None if row is None else _name(selected, row) for row in selected.referring]
        columns = selected.selection.gains.tolist(), selected.explain(), names, selected.serving, selected.found_by
        parts = [*zip(*columns, strict=True)]
        added = [
            new_scores(item.metadata, value, *_unite_scores([parts[at] for at in sorted(run)]))
            for item, value, run in zip(items, relevance, runs, strict=True)
        ]
    made, order = list(map(make, items, relevance, added)), request.settings.order
    return made if order == "selection" else sort_items(made, relevance, order)


def _join(selected: ItemSelection, ids: Sequence[Any], run: Sequence[int]) -> tuple[list[Any], Joined]:
    """The items at these positions, and what becomes one item."""
    items = [selected.items[at] for at in run]
    facts = [] if selected.texts is None else selected.texts.facts
    starts = [facts[selected.selection.indices[at]].start for at in run]
    texts, metadatas = list(map(selected.pool.body, items)), [item.metadata for item in items]
    return items, join([ids[at] for at in run], texts, metadatas, starts)


def _unite_scores(parts: Sequence[tuple[float, str, str | None, str | None, Sequence[str] | None]]) -> tuple[Any, ...]:
    """The scores of an item with these parts, in the order in which they were selected.

    The gain is the sum, and the reasons follow each other. The name is that of what refers to the first part to which
    something refers.
    """
    gains, reasons, names, serving, searches = zip(*parts, strict=True)
    found_by = dict.fromkeys(search for part in searches for search in part or ())
    reason = " / ".join(reasons)
    return sum(gains), reason, next((name for name in names if name is not None), None), serving[0], [*found_by] or None


def _name(selected: ItemSelection, row: int) -> str | None:
    """The title of an item, or the name in its text; its id if it has none."""
    name = selected.texts.find_title(row) if selected.texts is not None else ""
    item_id = selected.pool.ids[row]
    return name or (None if item_id is None else str(item_id))
