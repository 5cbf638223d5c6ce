"""What ``follow`` searches for: items to which selected ones lead by links, names, numbers or places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

from ..texts.identifiers import (
    CODE,
    FILE,
    SYMBOL,
    Citation,
    count_levels,
    find_citations,
    find_uncited,
    parse_identifier,
)
from ..texts.keys import IDENTIFIER_KEYS, write_identifier
from ..texts.names import find_names
from ..texts.references import as_address
from ..texts.titles import as_key
from ..texts.words import Text
from .names import find_source_key, read_keys, read_links, read_sources, read_titles
from .neighbours import find_missing, read_neighbours
from .pool import ItemSelection, Pool, unite
from .request import Request

# The most searches of ``follow``, and for the neighbours of how many items it searches.
FOLLOWED, MOST_BESIDE = 20, 10
# How many items a search for a name returns, one for a citation, and one for the neighbours of an item.
FOLLOW_K, CITED_K, BESIDE_K = 2, 4, 6
# How many ways of writing a number are tried, how many ends of other numbers, and how much of a number is read.
_MOST_FORMS, _MOST_ENDS, _LONGEST = 60, 24, 100
_JOINTS = ("", "-", " ")

# Under each key the values that an item may have. A ``range`` is that of a number.
Where = Mapping[str, Sequence[Any]]


class LookUp(NamedTuple):
    """Items that are looked up by their ids or by their metadata; what led to them, and the name of that."""

    kind: str
    name: str
    ids: Sequence[str] = ()
    where: Where = MappingProxyType({})


def suits(where: Where, get: Callable[[str], Any]) -> bool:
    """Whether metadata, of which ``get`` gives the value of a key, have the values."""
    for key, values in where.items():
        value = get(key)
        # A number in an array is compared element by element.
        if not isinstance(value, (str, int, float)):
            return False
        if type(values) is range:
            if isinstance(value, str) or not values.start <= value < values.stop:
                return False
        elif value not in values:
            return False
    return True


def find_unknown(request: Request, selected: ItemSelection) -> tuple[list[str], list[str]]:
    """Links of the selected items that lead to no candidate, and names in their texts that no candidate has."""
    pool = selected.pool
    if selected.texts is None:
        return [], []
    titles = read_titles(pool.items, request.settings.title, request.view, pool.body)
    known = {*titles, *(name for name, *_ in selected.texts.names)}
    links = _read_own_links(request, selected, titles)
    targets = dict.fromkeys(link for row in links for link in row or ())
    keys = {as_address(key) for item in pool.items for key in read_keys(item)} | known
    known_keys = set(map(as_key, known)) - {()}
    unknown = [link for link in targets if as_address(link) not in keys and as_key(link) not in known_keys]
    # A document with links refers to what they lead to, and to nothing else.
    searched = [pool.body(item) for item, row in zip(selected.items, links, strict=True) if row is None]
    names = find_names(searched, [*known, *targets], FOLLOWED)
    if any(selected.texts.identifiers):
        # "Rule 4.5.1" is looked up as a number. Its vector says little.
        names = [name for name in names if not find_citations(Text(name))]
    return unknown[:FOLLOWED], names


def _read_own_links(request: Request, selected: ItemSelection, titles: Sequence[str]) -> list[tuple[str, ...] | None]:
    """The links of each selected item; None for one without."""
    if request.settings.links is None:
        return [None] * len(selected.items)
    every = read_links(selected.pool.items, request.settings.links, request.view, titles)
    return [every[row] for row in selected.selection.indices.tolist()]


def find_cited(request: Request, selected: ItemSelection) -> list[LookUp]:
    """What the selected texts cite by number or code and no candidate is, as the candidates' metadata write it."""
    settings, items = request.settings, selected.pool.items
    keys = IDENTIFIER_KEYS if settings.identifier is None else {settings.identifier: "{}"}
    numbers = _read_numbers(items, keys) if all(isinstance(key, str) for key in keys) else []
    if selected.texts is None or not numbers:
        return []
    titles = read_titles(items, settings.title, request.view, selected.pool.body)
    sources = read_sources(items, settings.source, request.view)
    documents: dict[Hashable, tuple[str, str | int] | None] = {
        source: find_source_key(item, settings.source) for item, source in zip(items, sources, strict=True)
    }
    links = _read_own_links(request, selected, titles)
    rows = [row for row, own in zip(selected.selection.indices.tolist(), links, strict=True) if own is None]
    texts, look_ups = selected.texts, list[list[LookUp]]()
    for citations in find_uncited(rows, texts.bodies, texts.identifiers, sources, titles, FOLLOWED):
        look_ups.append([])
        for citation, source in citations:
            of_source = [number for number in numbers if sources[number.row] == source]
            where, document = _write(citation, of_source or numbers), documents[source]
            if where and citation.family != CODE:
                # Without a source, a number means the only document that there is.
                is_known = document is not None or {*sources} == {None}
                where = {**({} if document is None else {document[0]: (document[1],)}), **where} if is_known else {}
            if where:
                look_ups[-1].append(LookUp("citation", str(citation), where=where))
    # What the best item cites first, then what the second one does, and so on.
    return [one for one in chain.from_iterable(zip_longest(*look_ups)) if one is not None]


class _Style(NamedTuple):
    """How a number is written: its kind, its first level, and what stands before its levels and behind them."""

    family: str
    first: str
    before: str
    behind: str


class _Number(NamedTuple):
    """A number or code in the metadata of the item at this row, and how it is written."""

    row: int
    key: str
    value: str | float
    styles: tuple[_Style, ...]


def _read_numbers(items: Sequence[Any], keys: Mapping[Any, str]) -> list[_Number]:
    numbers = []
    for row, item in enumerate(items):
        for key, form in keys.items():
            value = item.metadata.get(key)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                text = value[:_LONGEST] if isinstance(value, str) else f"{value:g}"
                numbers += [_Number(row, key, value, styles) for styles in [_read_styles(text, form)] if styles]
    return numbers


@lru_cache(maxsize=2**14)
def _read_styles(text: str, form: str) -> tuple[_Style, ...]:
    """How the identifiers in a value are written.

    >>> [style[1:] for style in _read_styles("Part 8.92.(1)", "{}")]
    [('8', 'Part ', '.(1)'), ('92', 'Part 8.', '.(1)')]
    """
    styles, start = [], 0
    for family, path in parse_identifier(write_identifier(form, text)) if text else ():
        if family == CODE:
            styles.append(_Style(CODE, "", "", ""))
        elif family not in (FILE, SYMBOL):
            levels = ".".join(path[: count_levels(path)])
            start = _find_levels(text.casefold(), levels, start)
            if start >= 0:
                styles.append(_Style(family, path[0], text[:start], text[start + len(levels) :]))
            # A number inside this one begins behind its first level.
            start += len(path[0]) if start >= 0 else 1
    return tuple(styles)


def _find_levels(text: str, levels: str, start: int) -> int:
    """Where the levels of a number stand in a text, and not in the middle of a number; -1 if nowhere."""
    place = text.find(levels, start)
    while place >= 0:
        end = place + len(levels)
        if not text[max(place - 1, 0) : place].isdigit() and not text[end : end + 1].isalnum():
            break
        place = text.find(levels, place + 1)
    return place


def _write(citation: Citation, numbers: Sequence[_Number]) -> dict[str, Sequence[Any]]:
    """The key under which items have a cited number or code, and the values that it may have there; empty if unknown.

    ``numbers`` are those of the candidates, which show the key and how numbers are written.
    """
    is_code = citation.family == CODE
    alike = [(number, style) for number in numbers for style in number.styles if (style.family == CODE) == is_code]
    same_kind = [number.key for number, style in alike if style.family == citation.family]
    if not alike:
        return {}
    key = Counter(same_kind or [number.key for number, _ in alike]).most_common(1)[0][0]
    alike = [(number, style) for number, style in alike if number.key == key]
    forms = _write_code(citation.path[0]) if is_code else _write_number(citation.path, [style for _, style in alike])
    values: tuple[str | float, ...] = tuple(forms)
    if not any(isinstance(number.value, str) for number, _ in alike):
        kind = int if all(isinstance(number.value, int) for number, _ in alike) else float
        values = tuple(kind(form) for form in forms if form.replace(".", "", int(kind is float)).isdecimal())
    return {key: values} if values else {}


def _write_code(code: str) -> list[str]:
    start = next((place for place, c in enumerate(code) if c.isdigit()), len(code))
    letters, digits = code[:start], code[start:]
    return [letters + joint + digits for joint in (_JOINTS if letters and digits else ("",))]


def _write_number(path: tuple[str, ...], styles: Sequence[_Style]) -> list[str]:
    """A number as items may write it, with what stands behind the numbers of other items: "4.5.1", "4.5.1.(1)".

    >>> styles = [_Style("", "4", "", ""), _Style("", "4", "", ".(7)")]
    >>> _write_number(("4", "5"), styles)[:4], _write_number(("4", "5", "(2"), styles)
    (['4.5', '4.5.(7)', '4.5.(1)', '4.5.(2)'], ['4.5.(2)', '4.5'])
    """
    levels = ".".join(path[: count_levels(path)])
    inner = path[count_levels(path) :]
    # "16.4" stands in "PART 5.16.4.6" if another number of its chapter does.
    before = Counter(style.before for style in styles if style.first == path[0]) or Counter(
        style.before for style in styles
    )
    ends = Counter(style.behind for style in styles)
    marks = list(dict.fromkeys(end.partition("(")[0] for end in ends if "(" in end and end[0] in "(. ")) or [""]
    plain = [end for end in ends if end in ("", ".")] or [""]
    if inner:
        behind = ["".join(f"{mark}{level})" for level in inner) + end for mark in marks for end in plain] + plain
    else:
        behind = [end for end, _ in ends.most_common(_MOST_ENDS)]
        if any("(" in end for end in ends):
            behind += [f"{mark}({number})" for mark in marks for number in range(1, 10)]
    forms = [
        f"{start}{number}{end}"
        for start, _ in before.most_common(2)
        for number in dict.fromkeys((levels, levels.upper()))
        for end in dict.fromkeys(behind)
    ]
    return list(dict.fromkeys(forms))[:_MOST_FORMS]


def find_neighbours(request: Request, selected: ItemSelection) -> list[LookUp]:
    """The neighbours of the first selected items that are no candidates."""
    settings, pool = request.settings, selected.pool
    if not request.reads_neighbours:
        return []
    rows = selected.selection.indices.tolist()[:MOST_BESIDE]
    missing = find_missing(pool.items, pool.ids, rows, settings.neighbours, settings.source, request.view, pool.body)
    return [LookUp("neighbour", str(pool.ids[one.row]), one.ids, one.where) for one in missing]


def keep_neighbours(request: Request, selected: ItemSelection, found: Sequence[Pool]) -> list[Pool]:
    """The neighbours of selected items among what was found, each once."""
    if not found:
        return []
    settings, (united, added) = request.settings, unite(selected.pool, found)
    known = read_neighbours(united.items, united.ids, settings.neighbours, settings.source, request.view, united.body)
    rows = selected.selection.indices.tolist()
    beside = {other for row in rows for other in (*known.before[row], *known.after[row])}
    return [united.take([row for row in rows if row in beside]) for rows in added]
