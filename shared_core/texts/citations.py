"""Which texts cite which others by number or code: "Rule 4.5.1", "§ 12(2)", "RFC 7231", ``parse_header()``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice

from .identifiers import EVERYWHERE, FILE, NUMBER, SYMBOL, Citation, Identifier, count_levels, find_citations
from .words import Text, split_words

# Words that name no document: a text about a contract calls it "the Agreement".
_NO_NAMES = frozenset(
    split_words("the of and act law rules rulebook agreement contract policy gesetz vertrag loi contrat")
)

# The rows of texts by levels of an identifier, each with the kind of that identifier.
_Index = dict[tuple[str, ...], list[tuple[int, str]]]


def find_cited(
    texts: Sequence[Text],
    identifiers: Sequence[Sequence[Identifier]],
    sources: Sequence[Hashable | None],
    titles: Sequence[str],
    skipped: Container[int] = (),
) -> Iterator[tuple[int, list[int], float]]:
    """What each text, those at the ``skipped`` rows aside, cites: its row, the rows it leads to, and how clearly.

    A number means a text of the same source. Another document has to be named beside it, by words of its source or of
    the title of one of its texts. The paragraphs of a section are its parts: if a citation leads to m parts, it leads
    to each by 1/m, and so does one to a file in m pieces. If the sources are not known, the m texts of one number may
    belong to m documents: again 1/m.
    """
    bearers = _Bearers(identifiers, sources, titles)
    for row, text in enumerate(texts):
        if row not in skipped:
            for citation in find_citations(text, bearers.families, bearers.find_symbols(text, row)):
                for targets, strength in bearers.find(citation, row):
                    yield row, targets, strength


def find_uncited(
    rows: Sequence[int],
    texts: Sequence[str],
    identifiers: Sequence[Sequence[Identifier]],
    sources: Sequence[Hashable | None],
    titles: Sequence[str],
    most: int,
) -> Iterator[list[tuple[Citation, Hashable | None]]]:
    """For each of the ``rows`` the ``most`` first numbers and codes that its text cites and no text is called.

    With each comes the source that it belongs to. A code has the source of the text that cites it.
    """
    bearers = _Bearers(identifiers, sources, titles)
    for row in rows:
        uncited = (
            (citation, source)
            for citation in find_citations(Text(texts[row]), bearers.families - {FILE}, ())
            for source in bearers.find_lacking(citation, row)
        )
        yield [*islice(uncited, most)]


class _Bearers:
    """The rows of texts by their identifiers."""

    def __init__(
        self,
        identifiers: Sequence[Sequence[Identifier]],
        sources: Sequence[Hashable | None],
        titles: Sequence[str],
    ) -> None:
        self.sources = sources
        self.families = {family if family in EVERYWHERE else NUMBER for family, _ in chain(*identifiers)}
        # Whether paragraphs of a section are texts of their own.
        self.has_paragraphs = any(path[-1][0] == "(" for family, path in chain(*identifiers) if family != FILE)
        # The identifiers of each document, and those of each family that means the same everywhere; and the ends of
        # paths, by which files are called, and the beginnings of numbers, of which they are parts.
        self._exact: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        self._parts: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        for row, called in enumerate(identifiers):
            for family, path in called:
                document = family if family in EVERYWHERE else sources[row]
                self._exact[document][path].append((row, family))
                for place in range(1, len(path)):
                    part = path[place:] if family == FILE else path[:place]
                    self._parts[document][part].append((row, family))
        # The only row that defines a symbol, or None. The underscores at the ends of a word may be markup.
        self._symbols: dict[str, int | None] = {}
        for path, rows in self._exact[SYMBOL].items():
            name = path[0].casefold()
            for form in {name, name.strip("_"), name.lstrip("_"), name.rstrip("_")}:
                self._symbols[form] = None if form in self._symbols or len(rows) > 1 else rows[0][0]
        self._titles = dict.fromkeys(zip(sources, titles, strict=True))
        self._by_name: dict[str, list[Hashable]] = {}

    @cached_property
    def _words(self) -> list[tuple[Hashable, set[str]]]:
        """Each source, with its words and those of each title of one of its texts."""
        return [(source, set(split_words(f"{source} {title}"))) for source, title in self._titles]

    def find_symbols(self, text: Text, row: int) -> set[str]:
        """The symbols, case-folded, that may stand in the text at this row, but for those that only it defines."""
        return {word for word in self._symbols.keys() & text.words if self._symbols[word] != row}

    def find(self, citation: Citation, row: int) -> Iterator[tuple[list[int], float]]:
        """The rows that a citation in the text at this row leads to, and how clearly."""
        family, path, name = citation
        if family in EVERYWHERE:
            if found := self._find_everywhere(family, path):
                yield found, 1 / len(found) if family == FILE else 1.0
            return
        for source in self.find_documents(name, row):
            whole = path
            # A paragraph that has no text of its own is in the text of its section.
            while not (exact := _agreeing(self._exact[source], family, whole)) and whole[-1][0] == "(":
                whole = whole[:-1]
            if exact:
                yield exact, 1.0 if source is not None else 1 / len(exact)
            if parts := [part for part in _agreeing(self._parts[source], family, path) if part != row]:
                yield parts, 1 / len(parts)

    def find_lacking(self, citation: Citation, row: int) -> Iterator[Hashable]:
        """The sources that a citation in the text at this row means, and that have no text of the same identifier."""
        family, path, name = citation
        if family in EVERYWHERE:
            if not self._find_everywhere(family, path):
                yield self.sources[row]
            return
        if not self.has_paragraphs:
            path = path[: count_levels(path)]
        for source in self.find_documents(name, row):
            if not _agreeing(self._exact[source], family, path):
                yield source

    def _find_everywhere(self, family: str, path: tuple[str, ...]) -> list[int]:
        exact = self._exact[family]
        found = exact.get(path, []) + self._parts[family].get(path, [])
        while not found and family == FILE and len(path) > 1:
            path = path[1:]
            found = exact.get(path, [])
        return [row for row, _ in found]

    def find_documents(self, name: str, row: int) -> list[Hashable]:
        """The sources that have the words of a name in them, or in the title of one of their texts.

        Without a name it is that of the text at this row.
        """
        if not name:
            return [self.sources[row]]
        if name not in self._by_name:
            words = {word for word in split_words(name) if word not in _NO_NAMES}
            found = {source: None for source, own in self._words if words and words <= own}
            self._by_name[name] = [*found]
        return self._by_name[name]


def _agreeing(index: _Index, family: str, path: tuple[str, ...]) -> list[int]:
    """The rows in the index whose kind is not another one. Numbers of several levels are those of one sequence."""
    if not (rows := index.get(path)):
        return []
    several = count_levels(path) > 1
    return [
        row
        for row, other in rows
        if other in (family, NUMBER) or family == NUMBER or (several and "annex" not in (other, family))
    ]


def number_sections(identifiers: Sequence[Sequence[Identifier]], sources: Sequence[Hashable | None]) -> list[int]:
    """The same number for texts that belong to one section of one document, or that have one code; else different ones.

    >>> from .identifiers import parse_identifier
    >>> number_sections([*map(parse_identifier, ["4.5.1(1)", "4.5.1(2)", "4.5.2", "E10", ""])], [None] * 5)
    [0, 0, 2, 3, 4]
    """
    first: dict[Hashable, int] = {}
    sections: list[int] = []
    for row, called in enumerate(identifiers):
        place: Hashable = row
        if called:
            family, path = called[0]
            place = (family if family in EVERYWHERE else NUMBER, sources[row], path[: count_levels(path)])
        sections.append(first.setdefault(place, row))
    return sections
