"""The texts of one selection's candidates, each split into words once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..candidates import REFERENCE_KINDS, Parts, References
from .identifiers import Identifier, list_identifiers
from .names import list_names
from .neighbours import add_neighbours
from .references import find_split_references
from .titles import as_key, is_proper
from .words import Text, Weigh, match_split_words


class NameCounts(NamedTuple):
    """How many candidates have a name, are named, linked to or cited by another one, and stand next to another one."""

    with_name: int
    named: int
    linked: int
    cited: int
    next_to: int

    @property
    def led_to(self) -> tuple[int, ...]:
        """How many another one leads to, in the order of ``REFERENCE_KINDS``."""
        return self[1:]


class Texts:
    """What the texts of n candidates say: their words, and which of them refer to which others.

    ``texts`` are what was embedded. ``bodies`` are the texts without what an index puts before them: they refer to each
    other, and two equal ones are copies unless they are empty. By default they are ``texts``. ``following`` has for
    each text the rows of those directly after it in its document. With ``refer=False`` there are no other references.
    ``weigh`` is that of :func:`match_split_words`. The other arguments are those of :func:`find_references`; they are
    checked already.
    """

    def __init__(
        self,
        texts: Sequence[str],
        titles: Sequence[str | None] | None = None,
        *,
        bodies: Sequence[str] | None = None,
        links: Sequence[Iterable[Hashable] | None] | None = None,
        keys: Sequence[Iterable[Hashable]] | None = None,
        identifiers: Sequence[Iterable[str]] | None = None,
        sources: Sequence[Hashable | None] | None = None,
        following: Sequence[Iterable[int]] | None = None,
        refer: bool = True,
        weigh: Weigh | None = None,
    ) -> None:
        self.bodies = texts if bodies is None else bodies
        self._texts = list(map(Text, texts))
        self._bodies = self._texts if bodies is None else list(map(Text, bodies))
        self._columns: dict[str, Any] = {"titles": titles, "links": links, "keys": keys, "sources": sources}
        self._identifiers, self._following = identifiers, following
        self._refer, self._weigh = refer, weigh
        self._matches: dict[tuple[str, ...], Parts] = {}
        self._with_neighbours: dict[bool, References] = {}
        self._taken: dict[tuple[int, ...], Texts] = {}

    def match_words(self, question: str | Sequence[str]) -> Parts:
        """How well each text covers each word of the question; see :func:`match_words`."""
        questions = (question,) if isinstance(question, str) else tuple(question)
        if questions not in self._matches:
            self._matches[questions] = match_split_words(questions, self._texts, self._weigh)
        return self._matches[questions]

    @cached_property
    def names(self) -> list[list[str]]:
        """The full name of each text, which may be empty, and its short forms."""
        return list_names(self._columns["titles"], self.bodies)

    @cached_property
    def identifiers(self) -> list[list[Identifier]]:
        """What each text is called by number or code."""
        return list_identifiers(self._identifiers, self._bodies)

    def find_title(self, row: int) -> str:
        """The title of a text as it is, or else its name; empty if it has none."""
        titles = self._columns["titles"]
        return (titles[row] if titles else "") or self.names[row][0]

    @cached_property
    def references(self) -> References | None:
        """Which texts refer to which others; None if they are not to be read, or if there is no text."""
        if not self._refer or not any(self.bodies):
            return None
        return find_split_references(self._bodies, self.names, identifiers=self.identifiers, **self._columns)

    def find_references(self, *, refer: bool = True, neighbours: bool = True) -> References | None:
        """The ``references``, and the neighbours; None if there are none, or if there is no text."""
        found = self.references if refer else None
        if not neighbours or self._following is None or not any(self.bodies):
            return found
        if refer not in self._with_neighbours:
            self._with_neighbours[refer] = add_neighbours(found, self.bodies, self._following)
        return self._with_neighbours[refer]

    @cached_property
    def name_counts(self) -> NameCounts | None:
        """How many texts have a name or are referred to; None if no references are read."""
        references = self.find_references()
        if references is None:
            return None
        strength, _, kinds = references
        refers = strength > 0
        of_kind = [int((refers & (kinds == kind)).any(axis=0).sum()) for kind in range(len(REFERENCE_KINDS))]
        return NameCounts(sum(bool(as_key(name)) and is_proper(name) for name, *_ in self.names), *of_kind)

    def take(self, rows: Sequence[int]) -> Texts:
        """The texts at these rows, which are not split again."""
        key = tuple(rows)
        if key not in self._taken:
            taken = Texts([], refer=self._refer, weigh=self._weigh)
            taken.bodies = [self.bodies[row] for row in key]
            taken._texts = [self._texts[row] for row in key]
            taken._bodies = taken._texts if self._bodies is self._texts else [self._bodies[row] for row in key]
            taken._columns = {
                name: None if column is None else [column[row] for row in key] for name, column in self._columns.items()
            }
            if self._refer:
                # What a site puts around its titles is seen best among all of them.
                taken.names = [self.names[row] for row in key]
                taken.identifiers = [self.identifiers[row] for row in key]
            if self._following is not None:
                new = {row: place for place, row in enumerate(key)}
                taken._following = [[new[after] for after in self._following[row] if after in new] for row in key]
            self._taken[key] = taken
        return self._taken[key]
