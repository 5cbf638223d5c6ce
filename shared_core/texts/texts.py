"""The texts of one selection's candidates, each split into words once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._values import as_identifiers, as_names, as_optional, as_plain
from ..candidates import Parts, References
from ..errors import InvalidInputError, quoted
from ..facts import FILE, Facts, Place, read_place
from .identifiers import Identifier, find_identifiers
from .names import list_names
from .neighbours import Neighbours, add_neighbours, find_neighbours, refer_to_nothing
from .references import find_split_references
from .titles import SHARE_OF_CANDIDATES, SOURCES, cut_running_header, is_title, split_heading
from .words import Text, Weigh, check_strings, match_split_words, read_text

_NOTHING = Facts()


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
        # What each text links to; None if it has no links.
        self.links = [fact.links for fact in self.facts]
        self._texts, self._bodies = list(map(read_text, texts)), list(map(read_text, self.bodies))
        self._refer, self._adjoin, self._weigh = refer, neighbours, weigh
        self._matches: dict[tuple[str, ...], Parts] = {}
        self._found: dict[tuple[bool, bool, bytes | None], References | None] = {}
        self._taken: dict[tuple[int, ...], Texts] = {}

    def match_words(self, question: str | Sequence[str]) -> Parts:
        """How well each text covers each word of the question; see :func:`match_words`."""
        questions = (question,) if isinstance(question, str) else tuple(question)
        if questions not in self._matches:
            self._matches[questions] = match_split_words(questions, self._texts, self._weigh)
        return self._matches[questions]

    @cached_property
    def titles(self) -> list[str]:
        """The heading of each text that a splitter wrote, else its first title that says something; it may be empty.

        In place of a title that many files share, a text has the heading with which it begins, if there is one.
        """
        titles = [next(filter(is_title, fact.titles), "") for fact in self.facts]
        named = {(title, fact.file) for title, fact in zip(titles, self.facts, strict=True)}
        files = Counter(title for title, file in named if file)
        shared = max(SOURCES, SHARE_OF_CANDIDATES * len(titles))
        for row, fact in enumerate(self.facts):
            if titles[row] and files[titles[row]] >= shared:
                titles[row] = split_heading(self._heads[row])[0].strip() or titles[row]
            if is_title(fact.heading):
                # LlamaIndex leaves the heading of a text in it, and says those before it.
                own = split_heading(self._heads[row])[0] if self.bodies[row].lstrip().startswith("#") else ""
                titles[row] = own or fact.heading
        return titles

    @cached_property
    def _heads(self) -> list[Text]:
        """The texts without a running header."""
        heads = zip(cut_running_header(self.bodies), self._bodies, strict=True)
        return [body if head is body.text else read_text(head) for head, body in heads]

    @cached_property
    def names(self) -> list[list[str]]:
        """The full name of each text, which may be empty, and its short forms."""
        return list_names(self.titles, self._heads)

    @cached_property
    def identifiers(self) -> list[list[Identifier]]:
        """What each text is called by number or code."""
        columns = zip(self.facts, self._heads, self.titles, strict=True)
        return [find_identifiers(fact.identifiers, head, title) for fact, head, title in columns]

    @cached_property
    def sources(self) -> list[Hashable]:
        """The document to which the numbers in each text belong; None if it is not known.

        A source that is no file may hold several documents, which their files tell apart, or titles that several texts
        share. Such a title also stands for a source that is not known.
        """
        titles = [next(filter(is_title, fact.titles), "") for fact in self.facts]
        shared = {title for title, number in Counter(titles).items() if title and number > 1}
        of_titles = defaultdict[Hashable, set[str]](set)
        for fact, title in zip(self.facts, titles, strict=True):
            of_titles[fact.source].add(title)
        sources: list[Hashable] = []
        for fact, title in zip(self.facts, titles, strict=True):
            source: Hashable = fact.source
            if source is None:
                source = title if title in shared else None
            elif not (isinstance(source, str) and FILE.search(source)):
                parts = of_titles[source]
                if fact.file not in (None, source):
                    source = source, fact.file
                elif len(parts) > 1 and not shared.isdisjoint(parts):
                    source = source, title
            sources.append(source)
        return sources

    @cached_property
    def neighbours(self) -> Neighbours:
        """Which texts stand next to each other."""
        return find_neighbours(self.facts, self.bodies)

    def read_body(self, row: int) -> Text:
        """What the text says, without what an index puts before it."""
        return self._bodies[row]

    def find_title(self, row: int) -> str:
        """The title of a text as it is, or else its name; empty if it has none."""
        return self.titles[row] or self.names[row][0]

    @property
    def references(self) -> References | None:
        """Which texts refer to which others; None if they are not to be read, or if there is no text."""
        return self.find_references(neighbours=False)

    def find_references(
        self, *, refer: bool = True, neighbours: bool = True, prefer: NDArray[np.int64] | None = None
    ) -> References | None:
        """The references of these kinds; None if there are none, or if there is no text.

        Of several versions of a text they lead to the ones with the highest rank that ``prefer`` gives.
        """
        key = refer, neighbours, None if prefer is None else prefer.tobytes()
        if key not in self._found:
            found, links = None, None if all(own is None for own in self.links) else self.links
            if refer and neighbours:
                found = self.find_references(neighbours=False, prefer=prefer)
            elif refer and self._refer and (links is not None or any(self.bodies)):
                keys, read = [fact.keys for fact in self.facts], (self.identifiers, self.sources, prefer)
                found = find_split_references(self._bodies, self.names, self.titles, links, keys, *read)
            if neighbours and self._adjoin:
                beside = self.neighbours if prefer is None else find_neighbours(self.facts, self.bodies, prefer)
                found = add_neighbours(found, self.bodies, beside.after) if any(beside.after) else found
            self._found[key] = found
        return self._found[key]

    def take(self, rows: Sequence[int]) -> Texts:
        """The texts at these rows, which are not split again."""
        key = tuple(rows)
        if key not in self._taken:
            taken = Texts([], refer=self._refer, neighbours=self._adjoin, weigh=self._weigh)
            taken.bodies, taken.facts = [self.bodies[row] for row in key], [self.facts[row] for row in key]
            taken.links = [self.links[row] for row in key]
            taken._texts, taken._bodies = ([column[row] for row in key] for column in (self._texts, self._bodies))
            if self._refer:
                # What a site puts around its titles is seen best among all of them.
                for name in ("titles", "names", "identifiers"):
                    taken.__dict__[name] = [getattr(self, name)[row] for row in key]
            self._taken[key] = taken
        return self._taken[key]


def find_references(
    texts: Sequence[str],
    titles: Sequence[str | None] | None = None,
    *,
    links: Sequence[Iterable[Hashable] | None] | None = None,
    keys: Sequence[Iterable[Hashable]] | None = None,
    identifiers: Sequence[str | Iterable[str] | None] | None = None,
    sources: Sequence[Hashable | None] | None = None,
    neighbours: Sequence[int | None] | None = None,
) -> References:
    """How clearly the text of each candidate refers to each other candidate; for :class:`Candidates`.

    The guide "Texts that lead to each other" says what counts as a name, a link and a citation.

    A name that stands in many texts says little. If m of the n' candidates with other names contain it, it weighs
    log(1 + (n' − m + 0.5) / (m + 0.5)), divided by the value at m = 1. A citation that leads to m parts of a section
    leads to each by 1/m. A text that does not refer to the next or previous text of its source in another way leads to
    it by s², where s is the share of that text that does not overlap with its own.

    Parameters
    ----------
    texts : sequence of n str
        The texts of the candidates.
    titles : sequence of n str or None, optional
        Their names. :func:`read_name` reads the name of a text without a title that says something.
    links : sequence of n iterables or None, optional
        What each text links to: ids, URLs or titles. A text with a list of links refers to the candidates that they
        lead to, and to no others. None: it has no list, and the links in the text count.
    keys : sequence of n iterables, optional
        What else links may call each candidate: its id, its URL.
    identifiers : sequence of n str, iterables of str, or None, optional
        The number or code of each candidate, or several: "4.5.1(2)", "Art. 6", "E1042". If a row has none, it is the
        one with which its text or title begins ("4.5.1 A person must").
    sources : sequence of n hashables or None, optional
        The document that each candidate is a part of. Missing values are not known.
    neighbours : sequence of n int or None, optional
        The number of each text in its source, at least 0: texts with successive numbers are neighbours.

    Returns
    -------
    References
        ``strength``, float32, shape (n, n), in [0, 1]: row i says how clearly text i refers to each candidate.
        ``documents``, int64, shape (m, n) for the m kinds of references: candidates with the same name, or for
        citations of the same section, have the same number. ``kinds``, int8, shape (n, n): the indices of
        ``REFERENCE_KINDS``.

    Examples
    --------
    >>> from setselect import find_references
    >>> texts = ["It was directed by Ann Lee.", "She was born in 1962.", "Ships sail to Perth.", "A port."]
    >>> find_references(texts, ["Forbidden Ground", "Ann Lee", "Ships", "Perth (harbour)"]).strength
    array([[0., 1., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    found = as_texts(texts, titles, identifiers, sources, neighbours, links, keys).find_references()
    return refer_to_nothing(len(texts)) if found is None else found


def _as_strings(row: int, value: Any) -> tuple[str, ...]:
    """The identifiers of a row, checked."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    strings = tuple(value) if several else () if value is None else (value,)
    check_strings(strings, f"identifiers: row {row}")
    return strings


def as_texts(
    texts: Sequence[str],
    titles: Sequence[str | None] | None = None,
    identifiers: Sequence[Any] | None = None,
    sources: Iterable[Hashable] | None = None,
    neighbours: Sequence[Any] | None = None,
    links: Sequence[Iterable[Hashable] | None] | None = None,
    keys: Sequence[Iterable[Hashable]] | None = None,
    *,
    refer: bool = True,
) -> Texts:
    """The texts with what is known of each; the arguments are those of :func:`find_references`, and are checked."""
    check_strings(texts, "texts")
    n, columns = len(texts), list[Sequence[Any]]()
    given = {"titles": titles, "identifiers": identifiers, "neighbours": neighbours, "links": links, "keys": keys}
    for what, column in given.items():
        if column is not None and len(column) != n:
            raise InvalidInputError(f"{what} must have {n} rows, one for each candidate, got {len(column)}")
        check_strings(column or (), what, (object,))
        columns.append([None] * n if column is None else as_optional(column))
    check_strings(columns[0], "titles", (str, NoneType))
    documents = [None] * n if sources is None else as_optional(as_names(sources, n, "sources"))
    if neighbours is not None and sources is None:
        raise InvalidInputError("sources is missing: neighbours are the numbers of the texts in their sources")
    facts = []
    for row, (source, title, called, number, linked, names) in enumerate(zip(documents, *columns, strict=True)):
        place = read_place(number)
        if place is None and number is not None:
            raise InvalidInputError(
                f"neighbours: row {row} is {quoted(as_plain(number))}; it must be the number of the text in its "
                "source, a whole number of at least 0"
            )
        facts.append(
            Facts(
                titles=(title,) if title else (),
                identifiers=_as_strings(row, called),
                source=source,
                links=None if linked is None else as_identifiers(linked, f"links: row {row}"),
                keys=as_identifiers(names, f"keys: row {row}"),
                place=None if place is None else Place(source, "", place),
            )
        )
    return Texts(texts, facts, refer=refer)
