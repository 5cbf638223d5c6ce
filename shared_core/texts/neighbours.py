"""Which texts stand next to each other in a document, and how clearly one leads to the other for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._validation import as_float, as_names, as_optional, as_plain, is_missing, quoted, read_only
from ..candidates import REFERENCE_KINDS, References
from ..errors import InvalidInputError

_NEIGHBOUR = REFERENCE_KINDS.index("neighbour")
# An overlap of two texts has at least this many characters, and at most so many are compared.
LEAST_OVERLAP, MOST_OVERLAP = 10, 10_000


def add_neighbours(
    references: References | None, texts: Sequence[str], following: Sequence[Iterable[int]]
) -> References:
    """The references, and with them those from each text to its neighbours, where there is no other reference.

    ``following`` has for each text the rows of those directly after it in its document. A neighbour that adds the share
    s of its text to the other one has strength s²: what overlaps is known already. None: there are no other references.
    """
    n = len(texts)
    pairs = [(row, after) for row, rows in enumerate(following) for after in rows]
    if references is None:
        references = References(np.zeros((n, n), np.float32), np.tile(np.arange(n), (len(REFERENCE_KINDS), 1)))
    elif not pairs:
        return references
    strength = references.strength.copy()
    kinds = np.zeros((n, n), np.int8) if references.kinds is None else references.kinds.copy()
    documents = references.documents.copy()
    # Each neighbour of a pick may follow, whatever else of its document is there.
    documents[_NEIGHBOUR] = np.arange(n)
    for row, after in pairs:
        shared = count_shared(texts[row], texts[after])
        for i, j in ((row, after), (after, row)):
            if not strength[i, j] and i != j:
                strength[i, j], kinds[i, j] = (1 - shared / max(len(texts[j]), 1)) ** 2, _NEIGHBOUR
    return References(read_only(strength), read_only(documents), read_only(kinds))


def count_shared(text: str, following: str) -> int:
    """How many characters the longest end of a text has with which the following one begins; 0 for a short one.

    >>> count_shared("One. Two is here.", "Two is here. Three."), count_shared("One.", "One.")
    (12, 0)
    """
    tail, head = text[-MOST_OVERLAP:], following[:LEAST_OVERLAP]
    at = tail.find(head) if len(head) == LEAST_OVERLAP else -1
    while at >= 0 and not following.startswith(tail[at:]):
        at = tail.find(head, at + 1)
    return len(tail) - at if at >= 0 else 0


def find_following(numbers: Sequence[Any], sources: Sequence[Hashable | None], texts: Sequence[str]) -> list[list[int]]:
    """For each text the rows with the next number in its source; numbers and sources may be missing.

    >>> find_following([0, 1, None, 1], ["a", "a", "a", "b"], ["One", "two", "three", "One"])
    [[1], [], [], []]
    """
    places: dict[Hashable, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, (number, source) in enumerate(zip(map(read_place, numbers), sources, strict=True)):
        if number is not None and source is not None:
            places[source][number].append(row)
    following: list[list[int]] = [[] for _ in texts]
    for at in places.values():
        for row, after in pair_successive(at, texts):
            following[row].append(after)
    return following


def check_neighbours(given: Sequence[Any], sources: Iterable[Hashable] | None, texts: Sequence[str]) -> list[list[int]]:
    """:func:`find_following` of the argument ``neighbours``, checked."""
    numbers = [as_plain(number) for number in given]
    for row, number in enumerate(numbers):
        if read_place(number) is None and not is_missing(number):
            raise InvalidInputError(
                f"neighbours: row {row} is {quoted(number)}; it must be the number of the text in its source, a whole "
                "number of at least 0"
            )
    if sources is None:
        raise InvalidInputError("sources is missing: neighbours are the numbers of the texts in their sources")
    return find_following(numbers, as_optional(as_names(sources, len(texts), "sources")), texts)


def read_place(value: Any) -> int | None:
    """A whole number of at least 0, also as a float or in a string; None for any other value.

    >>> [read_place(value) for value in (3, 3.0, "3", -1, 3.5, True, None)]
    [3, 3, 3, None, None, None, None]
    """
    number = as_float(as_plain(value))
    return int(number) if number >= 0 and number.is_integer() else None


def pair_successive(at: Mapping[int, Sequence[int]], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Each row and the row after it, of the rows ``at`` each number of one document; none if they contradict."""
    if contradict(at, texts):
        return []
    pairs = ((number, following) for number, following in pairwise(sorted(at)) if following == number + 1)
    return [(row, other) for number, following in pairs for row in at[number] for other in at[following]]


def contradict(at: Mapping[int, Sequence[int]], texts: Sequence[str]) -> bool:
    """Whether different texts have one place."""
    return any(texts[row] != texts[some[0]] for some in at.values() for row in some)
