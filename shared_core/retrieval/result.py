"""What a call returns: the selected items in order, with their scores, and neighbours as one item."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from .._validation import as_finite
from .._values import as_plain, is_missing
from ..facts import START
from ..texts.neighbours import count_shared
from .pool import ItemSelection, name_of_text
from .request import Request

T = TypeVar("T")

# The metadata key under which a joined item has the ids of its parts, and by them the names of their texts.
JOINED = "selection_joined"
# The keys of LlamaIndex's SentenceWindowNodeParser, whose values are texts.
_TEXTS = ("window", "original_text")
# How the keys end under which rerankers leave their score.
_SCORE = "score"


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
    make: Callable[[Any, float, dict[str, Any]], Any] | None,
    make_joined: Callable[[list[Any], Joined], Any] | None = None,
) -> list[Any]:
    """``make(item, relevance, added)`` of each selected item, or the item itself, in the ``order`` of the settings.

    ``added`` is what ``scores`` adds to its metadata. ``make_joined`` makes one item of neighbours, whose relevance is
    the highest of theirs. With ``shadow``, the items that were there before.
    """
    if selected.returned is not None:
        return selected.returned
    runs = [[at] for at in range(len(selected.items))] if selected.neighbours is None else selected.runs
    items, of_each = [selected.items[run[0]] for run in runs], selected.selection.relevance.tolist()
    for place, run in enumerate(runs):
        if make_joined is not None and len(run) > 1:
            parts, ids = [selected.items[at] for at in run], [selected.ids[at] for at in run]
            facts = selected.texts.facts if selected.texts is not None else []
            starts = [facts[row].start for row in selected.selection.indices[run]]
            texts, metadatas = list(map(selected.pool.body, parts)), [part.metadata for part in parts]
            items[place] = make_joined(parts, join(ids, texts, metadatas, starts))
    relevance = [max(of_each[at] for at in run) for run in runs]
    added: list[dict[str, Any]] = [{} for _ in runs]
    if request.settings.scores:
        reasons, columns = selected.explain(), zip(items, relevance, runs, strict=True)
        added = [_list_scores(selected, reasons, sorted(run), item.metadata, value) for item, value, run in columns]
    made = items if make is None else list(map(make, items, relevance, added))
    order = request.settings.order
    return made if order == "selection" else sort_items(made, relevance, order)


def _list_scores(
    selected: ItemSelection, reasons: Sequence[str], parts: Sequence[int], metadata: Mapping[str, Any], relevance: float
) -> dict[str, Any]:
    """What ``scores`` adds to the metadata of an item, whose parts were selected at these positions.

    The gain is the sum of theirs, and the reasons follow each other. The name is that of what refers to the first part
    to which something refers. A key that is there already keeps its value.
    """
    texts, selection = selected.texts, selected.selection
    referring = selected.read_each(selection.referred_by, range(len(selected.pool.items)))
    rows = [referring[at] for at in parts if referring[at] is not None and texts is not None]
    names = [texts.find_title(row) or selected.pool.ids[row] for row in rows] if texts is not None else []
    gains = selection.gains.tolist()
    added = {
        "selection_relevance" if "relevance_score" in metadata else "relevance_score": relevance,
        "selection_score": sum(gains[at] for at in parts),
        "selection_reason": " / ".join(reasons[at] for at in parts),
        "selection_referred_by": next((str(name) for name in names if name is not None), None),
        "selection_serves": selected.read_each(selection.serves, selected.queries)[parts[0]],
    }
    return {key: value for key, value in added.items() if value is not None and key not in metadata}


class Joined(NamedTuple):
    """What an adapter makes the item of several neighbours from."""

    id: str | None
    text: str
    metadata: dict[str, Any]


def join(
    ids: Sequence[Hashable], texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]], starts: Sequence[int | None]
) -> Joined:
    """Neighbours as one, in reading order.

    The id holds the ids of the parts, so that it is not taken for that of one of them; it is None if one has no id. The
    metadata has under :data:`JOINED` the ids of the parts with the names of their texts; of a part without an id the
    name alone.
    """
    named = [(name_of_text(text), name) for name, text in zip(ids, texts, strict=True)]
    parts = {text if name is None else str(name): text for text, name in named}
    metadata = {**merge_metadata(metadatas), JOINED: parts}
    return Joined(None if None in ids else " + ".join(map(str, ids)), join_texts(texts, starts), metadata)


def join_texts(texts: Sequence[str], starts: Sequence[int | None]) -> str:
    """The texts as one; what the end of a text and the beginning of the next one share stands there once.

    ``starts`` says where the texts begin in their document. An overlap that it does not show, or for which it is not
    known, is the longest end of a text with which the next one begins.
    """
    parts = [*texts[:1]]
    for (text, begin), (following, start) in pairwise(zip(texts, starts, strict=True)):
        parts += _continue(text, following, None if begin is None or start is None else start - begin)
    return "".join(parts)


def _continue(text: str, following: str, offset: int | None) -> tuple[str, str]:
    """What separates ``following``, which begins ``offset`` characters after ``text``, and what it adds."""
    if offset is not None:
        between, end = offset - len(text), text[max(offset, 0) :]
        if between < 0 and offset >= 0 and (following.startswith(end) or end.startswith(following)):
            return "", following[len(end) :]
        # The characters between them are not known.
        if between >= 0:
            return ("", " ", "\n\n")[min(between, 2)], following
    if shared := count_shared(text, following):
        return "", following[shared:]
    apart = text[-1:].isspace() or following[:1].isspace()
    return "" if apart else "\n\n", following


def merge_metadata(metadatas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metadata of neighbours as one: equal values as they are, and different ones as a list in reading order.

    Missing values are left out. ``"start_index"`` is that of the first one, a score is the highest, and the texts of a
    sentence window are joined.
    """
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for metadata in metadatas for key in metadata):
        values = [metadata[key] for metadata in metadatas if not is_missing(metadata.get(key))]
        if key in _TEXTS and all(isinstance(value, str) for value in values):
            merged[key] = join_texts(values, [None] * len(values))
            continue
        numbers = [as_finite(as_plain(value)) for value in values]
        if values and str(key).endswith(_SCORE) and not any(map(math.isnan, numbers)):
            merged[key] = values[numbers.index(max(numbers))]
            continue
        different: list[Any] = []
        for value in values:
            if all(as_plain(value) != as_plain(other) for other in different):
                different.append(value)
        merged[key] = different if len(different) > 1 and key != START else next(iter(different), metadatas[0].get(key))
    return merged
