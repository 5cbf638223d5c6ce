"""The texts of one selection's candidates, each split into words once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

from ..candidates import Parts, References
from .references import find_split_references
from .words import Text, match_split_words


class Texts:
    """What the texts of n candidates say: their words, and which of them refer to which others.

    ``texts`` are what was embedded. ``bodies`` are the texts without what an index puts before them: they refer to each
    other, and two equal ones are copies unless they are empty. By default they are ``texts``. With ``refer=False`` no
    references are read. The other arguments are those of :func:`find_references`; they are checked already.
    """

    def __init__(
        self,
        texts: Sequence[str],
        titles: Sequence[str | None] | None = None,
        *,
        bodies: Sequence[str] | None = None,
        links: Sequence[Iterable[Hashable] | None] | None = None,
        keys: Sequence[Iterable[Hashable]] | None = None,
        refer: bool = True,
    ) -> None:
        self.bodies = texts if bodies is None else bodies
        self._texts = list(map(Text, texts))
        self._bodies = self._texts if bodies is None else list(map(Text, bodies))
        self._more: dict[str, Any] = {"titles": titles, "links": links, "keys": keys}
        self._refer = refer
        self._matches: dict[tuple[str, ...], Parts] = {}
        self._taken: dict[tuple[int, ...], Texts] = {}

    def match_words(self, question: str | Sequence[str]) -> Parts:
        """How well each text covers each word of the question; see :func:`match_words`."""
        questions = (question,) if isinstance(question, str) else tuple(question)
        if questions not in self._matches:
            self._matches[questions] = match_split_words(questions, self._texts)
        return self._matches[questions]

    @cached_property
    def references(self) -> References | None:
        """Which texts refer to which others; None if they are not to be read, or if there is no text."""
        if not self._refer or not any(self.bodies):
            return None
        return find_split_references(self._bodies, **self._more)

    def take(self, rows: Sequence[int]) -> Texts:
        """The texts at these rows, which are not split again."""
        key = tuple(rows)
        if key not in self._taken:
            taken = Texts([], refer=self._refer)
            taken.bodies = [self.bodies[row] for row in key]
            taken._texts = [self._texts[row] for row in key]
            taken._bodies = taken._texts if self._bodies is self._texts else [self._bodies[row] for row in key]
            taken._more = {
                name: None if column is None else [column[row] for row in key] for name, column in self._more.items()
            }
            self._taken[key] = taken
        return self._taken[key]
