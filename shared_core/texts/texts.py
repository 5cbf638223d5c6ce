"""The texts of one selection's candidates, each split into words once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property, lru_cache
from types import NoneType
from typing import Any, NamedTuple

from .._validation import as_names, as_optional
from ..candidates import REFERENCE_KINDS, Parts, References
from ..facts import Facts
from .identifiers import Identifier, check_identifiers, list_identifiers
from .names import list_names
from .neighbours import Neighbours, add_neighbours, check_places, find_neighbours
from .references import as_address, find_split_references
from .titles import as_key, clean_title, is_proper, is_title, replace_titles_of_many, split_heading
from .words import Text, Weigh, check_strings, match_split_words

_NOTHING = Facts()
# What stands between links in one string. A URL may hold a comma.
_COMMA, _COMMA_OF_URLS = re.compile(r"\s*,\s*"), re.compile(r"\s*,(?:\s+|(?=\w[\w+.-]*://))")
# The same texts come back with the next question. What is kept of one takes about twenty times its length in bytes.
_read, LONGEST_KEPT = lru_cache(maxsize=2**9)(Text), 10_000


class NameCounts(NamedTuple):
    """How many candidates have a name, are named, linked to or cited by another one, and stand next to another one."""

    with_name: int
    named: int
    linked: int
    cited: int
    next_to: int


class Texts:
    """What the texts of n candidates say: their words, and which of them refer to which others.

    ``texts`` are what was embedded, and ``facts`` what else is known of each. ``bodies`` are the texts without what an
    index puts before them: they refer to each other, and two equal ones are copies unless they are empty. By default
    they are ``texts``. With ``refer=False`` or ``neighbours=False`` there are no references of these kinds. ``weigh``
    is that of :func:`match_split_words`.
    """

    def __init__(
        self,
        texts: Sequence[str],
        facts: Sequence[Facts] | None = None,
        *,
        bodies: Sequence[str] | None = None,
        refer: bool = True,
        neighbours: bool = True,
        weigh: Weigh | None = None,
    ) -> None:
        self.bodies = texts if bodies is None else bodies
        self.facts = [_NOTHING] * len(texts) if facts is None else facts
        self._texts, self._bodies = (
            [_read(text) if len(text) <= LONGEST_KEPT else Text(text) for text in given]
            for given in (texts, self.bodies)
        )
        self._refer, self._adjoin, self._weigh = refer, neighbours, weigh
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
    def titles(self) -> list[str]:
        """The first title of each text that says something; empty if none does.

        In place of one that many files share, a text has its heading, if there is one.
        """
        titles = [next(filter(is_title, fact.titles), "") for fact in self.facts]
        return replace_titles_of_many(
            titles, lambda row: self.facts[row].file, lambda row: split_heading(self.bodies[row])[0]
        )

    @cached_property
    def links(self) -> list[tuple[str, ...] | None]:
        """What each text links to; None if it has no links. A string may be a title with a comma, or several links."""
        known: set[Hashable] = set()
        if any(isinstance(fact.links, str) for fact in self.facts):
            names = [*(key for fact in self.facts for key in fact.keys), *self.titles]
            known = {*names, *map(as_address, names), *map(as_key, map(clean_title, self.titles))} - {()}
        links: list[tuple[str, ...] | None] = []
        for given in (fact.links for fact in self.facts):
            if not isinstance(given, str):
                links.append(given)
            elif given in known or as_address(given) in known or as_key(given) in known:
                links.append((given,))
            else:
                parts = (_COMMA_OF_URLS if "://" in given else _COMMA).split(given)
                links.append(tuple(part for part in parts if part.strip()) or None)
        return links

    @cached_property
    def names(self) -> list[list[str]]:
        """The full name of each text, which may be empty, and its short forms."""
        return list_names(self.titles, self.bodies)

    @cached_property
    def identifiers(self) -> list[list[Identifier]]:
        """What each text is called by number or code."""
        return list_identifiers([fact.identifiers for fact in self.facts], self._bodies)

    @property
    def sources(self) -> list[Hashable]:
        """The document to which the numbers in each text belong; None if it is not known."""
        return [fact.source for fact in self.facts]

    @cached_property
    def neighbours(self) -> Neighbours:
        """Which texts stand next to each other."""
        return find_neighbours(self.facts, self.bodies)

    def find_title(self, row: int) -> str:
        """The title of a text as it is, or else its name; empty if it has none."""
        return self.titles[row] or self.names[row][0]

    @cached_property
    def references(self) -> References | None:
        """Which texts refer to which others; None if they are not to be read, or if there is no text."""
        if not self._refer or not any(self.bodies):
            return None
        links = None if all(own is None for own in self.links) else self.links
        keys = None if links is None else [fact.keys for fact in self.facts]
        called = self.identifiers
        return find_split_references(self._bodies, self.names, self.titles, links, keys, called, self.sources)

    def find_references(self, *, refer: bool = True, neighbours: bool = True) -> References | None:
        """The ``references``, and the neighbours; None if there are none, or if there is no text."""
        found = self.references if refer else None
        if not (neighbours and self._adjoin and any(self.neighbours.after)):
            return found
        if refer not in self._with_neighbours:
            self._with_neighbours[refer] = add_neighbours(found, self.bodies, self.neighbours.after)
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
            taken = Texts([], refer=self._refer, neighbours=self._adjoin, weigh=self._weigh)
            taken.bodies, taken.facts = [self.bodies[row] for row in key], [self.facts[row] for row in key]
            taken._texts, taken._bodies = ([column[row] for row in key] for column in (self._texts, self._bodies))
            if self._refer:
                # What a site puts around its titles is seen best among all of them.
                for name in ("titles", "links", "names", "identifiers"):
                    taken.__dict__[name] = [getattr(self, name)[row] for row in key]
            self._taken[key] = taken
        return self._taken[key]


def as_texts(
    texts: Sequence[str],
    titles: Sequence[str | None] | None = None,
    identifiers: Sequence[Any] | None = None,
    sources: Iterable[Hashable] | None = None,
    neighbours: Sequence[Any] | None = None,
    *,
    refer: bool = True,
) -> Texts:
    """The texts with what is known of each; the arguments are those of :func:`find_references`, and are checked."""
    check_strings(texts, "texts")
    n, missing = len(texts), [None] * len(texts)
    if titles is not None:
        titles = titles if isinstance(titles, str) else as_optional(titles)
        check_strings(titles, "titles", (str, NoneType))
    columns = (
        titles or missing,
        missing if identifiers is None else check_identifiers(identifiers),
        missing if sources is None else as_optional(as_names(sources, n, "sources")),
        missing if neighbours is None else check_places(neighbours, sources, n),
    )
    facts = [
        Facts(titles=(title,) if title else (), identifiers=called or (), source=source, place=place)
        for title, called, source, place in zip(*columns, strict=True)
    ]
    return Texts(texts, facts, refer=refer)
