"""Labels as a fit is given them: checked, parted into trained and held out, and told from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import InvalidInputError
from ..neighbours import Neighbours
from .labelling import LabelledSubset


def checked_labels(labels: Iterable[LabelledSubset], n: int) -> list[LabelledSubset]:
    """The labels as a list.

    Raises
    ------
    InvalidInputError
        One is no LabelledSubset of different rows of n items, or its score is not finite; the message has its number.

    Examples
    --------
    >>> len(checked_labels([LabelledSubset(0, (1, 2), 0.5)], 3))
    1
    """
    known = list(labels)
    for place, entry in enumerate(known):
        if not isinstance(entry, LabelledSubset):
            raise InvalidInputError(f"labels: number {place} is {entry!r}, no LabelledSubset")
        rows = (entry.query, *entry.subset)
        sound = all(_is_number(row, int, np.integer) and 0 <= row < n for row in rows)
        if not sound or not entry.subset or len(set(rows)) < len(rows):
            raise InvalidInputError(
                f"labels: number {place}, {entry}, must hold different rows of the {n} items, the query not among them"
            )
        if not _is_number(entry.score, int, np.integer, float, np.floating) or not np.isfinite(entry.score):
            raise InvalidInputError(f"labels: the score of number {place}, {entry}, is no finite number")
    return known


def _is_number(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def split_labels(
    labels: list[LabelledSubset], neighbours: Neighbours, share: float, seed: int
) -> tuple[list[LabelledSubset], list[int]]:
    """Labels to train on, and the rows of the items that are held out; copies of an item stay together.

    Raises
    ------
    InvalidInputError
        There are fewer than two different items.

    Examples
    --------
    >>> pool = Neighbours([{"a": n} for n in range(3)], np.eye(3))
    >>> trained, back = split_labels([LabelledSubset(n, ((n + 1) % 3,), 0.5) for n in range(3)], pool, 0.4, 0)
    >>> len(trained), len(back)
    (2, 1)
    """
    queries = sorted({entry.query for entry in labels})
    groups = neighbours.groups(queries) if queries else []
    if len(groups) < 2:
        raise InvalidInputError(
            f"labels are of {len(queries)} items, {len(groups)} of them different; at least 2 are needed, one to be "
            "held out"
        )
    # A copy of a held-out item must not be trained on.
    count = min(max(1, round(share * len(groups))), len(groups) - 1)
    chosen = np.random.default_rng([seed, 0]).permutation(len(groups))[:count]
    back = {query for place in chosen for query in groups[place]}
    return [entry for entry in labels if entry.query not in back], sorted(back)


def digest_of(labels: Iterable[LabelledSubset]) -> str:
    """What tells these labels from others, whatever types their numbers have.

    >>> digest_of([LabelledSubset(0, (1,), 1.0)]) == digest_of([LabelledSubset(0, (1,), np.float64(1))])
    True
    """
    digest = hashlib.sha256()
    for entry in labels:
        rows = (int(entry.query), *map(int, entry.subset))
        digest.update(f"{rows} {float(entry.score)!r}\n".encode())
    return digest.hexdigest()
