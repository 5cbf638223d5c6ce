"""Labels kept in a journal while they are made, so that a crash costs at most the current item."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._files import Journal
from ..._validation import quoted
from ...errors import InvalidParameterError

FORMAT = "setselect labels"
VERSION = 1

Scored = list[tuple[tuple[int, ...], float]]
"""The subsets of one item, rows of the pool, each with its score."""


class LabelFile:
    """A journal with a header that holds the settings, then a line for each labelled item.

    The constructor reads and checks the file and changes nothing; ``begin`` makes it ready to append. ``settings`` is
    everything that makes the labels of one run differ from another's, as plain values: among them ``k``, the size of
    the largest subset, and ``subsets``, the number of subsets of an item (None: any). ``pool`` is the number of items.
    ``known`` has the subsets and scores of the items in the file, by the item's row.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], pool: int) -> None:
        self._settings, self._pool = dict(settings), pool
        header = {"format": FORMAT, "version": VERSION, "settings": self._settings}
        self._journal = Journal(path, '{"query": ', f"a label for a pool of {pool} items", header)
        self.known: dict[int, Scored] = {}
        for number, entry in self._journal.read():
            if number == 1:
                self._check_header(entry)
                continue
            query, scored = self._parse(entry, number)
            if query in self.known:
                raise self._journal.error(
                    number,
                    f"labels item {query} a second time; perhaps two runs wrote at the same time. Remove one of "
                    "the two lines",
                )
            self.known[query] = scored

    def begin(self) -> None:
        """Create the file, or remove a torn last line."""
        self._journal.begin()

    def append(self, query: int, scored: Sequence[tuple[Sequence[int], float]]) -> None:
        """Add an item's subsets and scores, and wait until they are on the disk."""
        subsets, scores = [list(subset) for subset, _ in scored], [score for _, score in scored]
        self._journal.append([{"query": query, "subsets": subsets, "scores": scores}])

    def _check_header(self, header: Any) -> None:
        path = self._journal.path
        try:
            kind, version, settings = header["format"], header["version"], header["settings"]
        except (TypeError, KeyError):
            kind, version, settings = None, None, None
        if kind != FORMAT or type(version) is not int or not isinstance(settings, dict):
            raise self._journal.error(1, "is not the header of a file of labels; name another file")
        if version != VERSION:
            raise InvalidParameterError(
                f"{path}: the labels have format version {version}, this setselect reads version {VERSION}; use the "
                "version of setselect that wrote them, or name another file"
            )
        differing = [
            f"{name} = {quoted(settings.get(name))} there, {quoted(self._settings.get(name))} here"
            for name in {**self._settings, **settings}
            if settings.get(name) != self._settings.get(name)
        ]
        if differing:
            raise InvalidParameterError(
                f"{path}: the labels were made with other settings: {'; '.join(differing)}. Use the settings of the "
                "file, or name another file"
            )

    def _parse(self, entry: Any, number: int) -> tuple[int, Scored]:
        try:
            query, subsets, scores = entry["query"], entry["subsets"], entry["scores"]
            finite = [type(score) in (int, float) and math.isfinite(score) for score in scores]
            sound = len(subsets) == len(scores) > 0 and all(finite) and self._is_row(query)
            sound = sound and all(self._is_subset(subset, query) for subset in subsets)
        except (TypeError, KeyError, OverflowError):
            sound = False
        if not sound or self._settings.get("subsets") not in (None, len(subsets)):
            raise self._journal.error(number)
        return query, [(tuple(subset), float(score)) for subset, score in zip(subsets, scores, strict=True)]

    def _is_row(self, value: Any) -> bool:
        return type(value) is int and 0 <= value < self._pool

    def _is_subset(self, subset: Any, query: int) -> bool:
        right_size = 0 < len(subset) == len(set(subset)) <= self._settings["k"]
        return right_size and query not in subset and all(map(self._is_row, subset))


def describe_callable(value: Any) -> str:
    """A text that identifies a feedback or a draw; it is the same after the program is restarted.

    The text is its ``fingerprint`` (a string, or a method that returns one), else the name of a function or class, else
    its ``repr`` without addresses.
    """
    if isinstance(value, str):
        return value
    own = getattr(value, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
