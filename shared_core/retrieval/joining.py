"""The setting ``join_neighbours``: neighbouring picks become one text, in reading order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .._validation import as_finite, as_plain, is_missing
from ..facts import START
from ..texts.neighbours import count_shared
from .memory import name_of_text

# The metadata key under which a joined item has the names of its parts, which ``shown`` recognises.
JOINED = "selection_joined"
# The keys of LlamaIndex's SentenceWindowNodeParser, whose values are texts.
_TEXTS = ("window", "original_text")
# How the keys end under which rerankers leave their score.
_SCORE = "score"


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
    metadata has under :data:`JOINED` the ids of the parts; for one without an id, the name of its text.
    """
    named = [name_of_text(text) if name is None else str(name) for name, text in zip(ids, texts, strict=True)]
    metadata = {**merge_metadata(metadatas), JOINED: named}
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
