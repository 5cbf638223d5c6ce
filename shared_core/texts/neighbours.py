"""Which texts stand next to each other in a document, and how clearly one leads to the other for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import read_only
from ..candidates import REFERENCE_KINDS, References
from ..facts import START, Facts

_NEIGHBOUR = REFERENCE_KINDS.index("neighbour")
# An overlap of two texts has at least this many characters, and at most so many are compared.
LEAST_OVERLAP, MOST_OVERLAP = 10, 10_000
# Splitters drop the separators and blanks between two chunks. This many characters may be missing.
MOST_BETWEEN = 10


class Neighbours(NamedTuple):
    """For each text the rows of the texts directly before it and directly after it in its document."""

    before: Sequence[Sequence[int]]
    after: Sequence[Sequence[int]]

    def find_runs(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows in runs of neighbours, each in reading order; a run stands where its first row stood.

        >>> Neighbours([[], [0], [], []], [[1], [], [], []]).find_runs([3, 1, 2, 0])
        [[3], [0, 1], [2]]
        """
        run_of = {row: [row] for row in rows}
        for row in rows:
            for other in self.after[row]:
                run, later = run_of[row], run_of.get(other, [])
                # Of copies in one place only one joins.
                if run[-1] == row and later[:1] == [other] and run is not later:
                    run += later
                    run_of.update(dict.fromkeys(later, run))
        return list({id(run): run for run in map(run_of.__getitem__, rows)}.values())


def find_neighbours(facts: Sequence[Facts], texts: Sequence[str], ranks: NDArray[np.int64] | None = None) -> Neighbours:
    """Which texts stand next to each other, by the ids that they say, else by their places.

    Two that contradict each other are no neighbours. Where different texts have one place, several documents have one
    name, and none of their texts has neighbours by its place, unless ``ranks`` say which version counts. A blank text
    stands for more than its text.
    """
    blank = [not text.strip() for text in texts]
    named = [(row, fact) for row, fact in enumerate(facts) if fact.id is not None and not blank[row]]
    rows = {str(fact.id): row for row, fact in reversed(named)}
    claims = list[tuple[int, int]]()
    documents: dict[tuple[Hashable, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, fact in enumerate(facts):
        if not blank[row]:
            before, after = fact.beside
            claims += [(rows[before], row)] if before in rows else []
            claims += [(row, rows[after])] if after in rows else []
            if fact.place is not None and fact.place.document is not None:
                documents[fact.place.document, fact.place.key][fact.place.number].append(row)
    pairs = [
        (row, other)
        for row, other in claims
        if row != other
        and facts[row].beside[1] in (None, str(facts[other].id))
        and facts[other].beside[0] in (None, str(facts[row].id))
    ]
    for (_, key), at in documents.items():
        if ranks is not None:
            at = {number: [row for row in rows if ranks[row] == max(ranks[rows])] for number, rows in at.items()}
        if any(texts[row] != texts[some[0]] for some in at.values() for row in some):
            continue
        for number, later in pairwise(sorted(at)):
            touch = later == number + 1
            if key == START:
                end = number + len(texts[at[number][0]])
                touch = later <= end + MOST_BETWEEN and later + len(texts[at[later][0]]) > end
            pairs += product(at[number], at[later]) if touch else ()
    beside: tuple[list[list[int]], list[list[int]]] = [[] for _ in facts], [[] for _ in facts]
    for row, other in dict.fromkeys(pairs):
        beside[1][row].append(other)
        beside[0][other].append(row)
    return Neighbours(*beside)


def refer_to_nothing(n: int) -> References:
    """The references among n texts that have none."""
    documents = np.tile(np.arange(n), (len(REFERENCE_KINDS), 1))
    return References(np.zeros((n, n), np.float32), documents, np.zeros((n, n), np.int8))


def add_neighbours(
    references: References | None, texts: Sequence[str], following: Sequence[Iterable[int]]
) -> References:
    """The references, and with them those from each text to its neighbours, where there is no other reference.

    ``following`` has for each text the rows of those directly after it in its document. A neighbour that adds the share
    s of its text to the other one has strength s²: what overlaps is known already. None: there are no other references.
    """
    references = references or refer_to_nothing(len(texts))
    strength, documents = references.strength.copy(), references.documents.copy()
    kinds = np.zeros(strength.shape, np.int8) if references.kinds is None else references.kinds.copy()
    # Each neighbour of a pick may follow, whatever else of its document is there.
    documents[_NEIGHBOUR] = np.arange(len(texts))
    for row, after in ((row, after) for row, rows in enumerate(following) for after in rows):
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
