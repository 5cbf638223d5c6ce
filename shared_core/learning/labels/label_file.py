"""Labels kept in a journal while they are made, so that a crash costs at most the current item."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from ..._files import Journal
from ..._validation import as_float, quoted
from ...errors import InvalidParameterError
from ..settings import describe_differences

FORMAT = "setselect labels"
VERSION = 1

Scored = list[tuple[tuple[int, ...], float]]
"""The subsets of one item, rows of the pool, each with its score."""


class LabelFile:
    """A ``journal`` with a header that holds the settings, then a line for each labelled item of a ``pool`` of items.

    The constructor reads and checks the file; ``known`` has what is in it, by the item's row.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any], pool: int) -> None:
        self._settings, self._pool = dict(settings), pool
        header = {"format": FORMAT, "version": VERSION, "settings": self._settings}
        self.journal = Journal(path, '{"query": ', f"a label for a pool of {pool} items", header)
        self.known: dict[int, Scored] = {}
        for number, entry in self.journal.read():
            if number == 1:
                self._check_header(entry)
                continue
            query, scored = self._parse(entry, number)
            if query in self.known:
                raise self.journal.error(number, f"labels item {query} a second time: remove one of the two lines")
            self.known[query] = scored

    def append(self, query: int, scored: Sequence[tuple[Sequence[int], float]]) -> None:
        """Add an item's subsets and scores, and wait until they are on the disk."""
        subsets, scores = [list(subset) for subset, _ in scored], [score for _, score in scored]
        self.journal.append([{"query": query, "subsets": subsets, "scores": scores}])

    def _check_header(self, header: Any) -> None:
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self.journal.error(1, "is not the header of a file of labels; name another file")
        path, version = self.journal.path, header.get("version")
        if version != VERSION or not isinstance(header.get("settings"), dict):
            raise InvalidParameterError(
                f"{path}: the labels have format version {quoted(version)}, this setselect reads version {VERSION}; "
                "use the version of setselect that wrote them, or name another file"
            )
        differing = describe_differences(header["settings"], self._settings)
        if differing:
            raise InvalidParameterError(
                f"{path}: the labels were made with other settings: {differing}. Use the settings of the file, or name "
                "another file"
            )

    def _parse(self, entry: Any, number: int) -> tuple[int, Scored]:
        try:
            query = entry["query"]
            pairs = zip(entry["subsets"], entry["scores"], strict=True)
            scored = [(tuple(subset), as_float(score)) for subset, score in pairs]
            sound = len(scored) > 0 and all(self._is_sound(query, subset, score) for subset, score in scored)
        except (TypeError, KeyError, ValueError):
            sound = False
        if not sound or self._settings.get("subsets") not in (None, len(scored)):
            raise self.journal.error(number)
        return query, scored

    def _is_sound(self, query: int, subset: tuple[int, ...], score: float) -> bool:
        rows = {query, *subset}
        in_pool = all(type(row) is int and 0 <= row < self._pool for row in rows)
        return in_pool and 0 < len(subset) == len(rows) - 1 and len(subset) <= self._settings["k"] and isfinite(score)


def describe_callable(value: Any) -> str:
    """A text that identifies a feedback or a draw, also after a restart: its fingerprint, else its name or ``repr``."""
    if isinstance(value, str):
        return value
    fingerprint = getattr(value, "fingerprint", None)
    if fingerprint is not None:
        return str(fingerprint() if callable(fingerprint) else fingerprint)
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
