"""What ``follow`` searches for: items to which selected ones lead by links, names, numbers or places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, compress, count, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

from ..facts import IDENTIFIER_KEYS, START, write_identifier
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
from ..texts.names import find_names
from ..texts.neighbours import MOST_BETWEEN, find_neighbours
from ..texts.references import as_address
from ..texts.titles import as_key
from ..texts.words import Text
from .pool import ItemSelection, Pool, unite
from .request import Request

# The most searches of ``follow``, and for the neighbours of how many items it searches.
FOLLOWED, MOST_BESIDE = 20, 10
# How many items a search for a name returns, one for a citation, and one for the neighbours of an item.
FOLLOW_K, CITED_K, BESIDE_K = 2, 4, 6
# How much of a number is read, and what stands before the number of a paragraph: "4.5.1.(1)".
_LONGEST = 100
_PARAGRAPH = re.compile(r"([. ]*)\(")

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


def find_unknown(selected: ItemSelection) -> tuple[list[str], list[str]]:
    """Links of the selected items that lead to no candidate, and names in their texts that no candidate has."""
    texts = selected.texts
    if texts is None:
        return [], []
    known = {*texts.titles, *(name for name, *_ in texts.names)}
    rows = selected.selection.indices.tolist()
    targets = dict.fromkeys(link for row in rows for link in texts.links[row] or ())
    keys = {as_address(key) for fact in texts.facts for key in fact.keys} | known
    known_keys = set(map(as_key, known)) - {()}
    unknown = [link for link in targets if as_address(link) not in keys and as_key(link) not in known_keys]
    # A document with links refers to what they lead to, and to nothing else.
    searched = [texts.bodies[row] for row in rows if texts.links[row] is None]
    names = find_names(searched, [*known, *targets], FOLLOWED)
    if any(texts.identifiers):
        # "Rule 4.5.1" is looked up as a number. Its vector says little.
        names = [name for name in names if not find_citations(Text(name))]
    return unknown[:FOLLOWED], names


def find_cited(request: Request, selected: ItemSelection) -> list[LookUp]:
    """What the selected texts cite by number or code and no candidate is, as the candidates' metadata write it."""
    identifier, texts = request.settings.identifier, selected.texts
    keys = IDENTIFIER_KEYS if identifier is None else {identifier: "{}"} if isinstance(identifier, str) else {}
    numbers = _list_numbers(selected.pool.items, keys)
    if texts is None or not numbers:
        return []
    sources, documents = texts.sources, {fact.source: fact.where for fact in texts.facts}
    rows = [row for row in selected.selection.indices.tolist() if texts.links[row] is None]
    look_ups = list[list[LookUp]]()
    for citations in find_uncited(rows, texts.bodies, texts.identifiers, sources, texts.titles, FOLLOWED):
        look_ups.append([])
        for citation, source in citations:
            of_source = [number for number in numbers if sources[number.row] == source]
            where = {} if citation.family == CODE else {key: (value,) for key, value in documents[source]}
            # Without a source, a number means the only document that there is.
            if citation.family == CODE or where or {*sources} == {None}:
                written = _write(citation, of_source or numbers)
                look_ups[-1] += [LookUp("citation", str(citation), where={**where, **written})] if written else []
    # What the best item cites first, then what the second one does, and so on.
    return [one for one in chain.from_iterable(zip_longest(*look_ups)) if one is not None]


class _Number(NamedTuple):
    """A number or code in the metadata of the item at this row, and the text that has it."""

    row: int
    key: str
    value: str | float
    text: str
    family: str
    path: tuple[str, ...]


def _list_numbers(items: Sequence[Any], keys: Mapping[str, str]) -> list[_Number]:
    numbers = []
    for row, item in enumerate(items):
        for key, form in keys.items():
            value = item.metadata.get(key)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                text = value[:_LONGEST] if isinstance(value, str) else f"{value:g}"
                found = parse_identifier(write_identifier(form, text)) if text else ()
                numbers += [_Number(row, key, value, text, *one) for one in found if one.family not in (FILE, SYMBOL)]
    return numbers


def _write(citation: Citation, numbers: Sequence[_Number]) -> dict[str, Sequence[Any]]:
    """The key under which items have a cited number or code, and how they write it; empty if that is not known.

    The key is the one that has the most numbers of the same kind. The form is that of the number under this key that
    shares the most levels with the cited one; of several, the first.
    """
    alike = [number for number in numbers if (number.family == CODE) == (citation.family == CODE)]
    same_kind = [number for number in alike if number.family == citation.family] or alike
    if not alike:
        return {}
    key = Counter(number.key for number in same_kind).most_common(1)[0][0]

    def count_shared(number: _Number) -> int:
        differ = (own != cited for own, cited in zip(number.path, citation.path, strict=False))
        return next(compress(count(), differ), len(number.path))

    nearest = max((number for number in alike if number.key == key), key=count_shared)
    # What stands between the letters and digits of a code; or the levels, which do not begin in the middle of a number.
    levels = r"\.".join(map(re.escape, nearest.path[: count_levels(nearest.path)]))
    form = r"(?<=\D)\W?(?=\d)" if citation.family == CODE else rf"(?<!\d){levels}(?![^\W_])"
    place = re.search(form, nearest.text, re.IGNORECASE)
    if place is None:
        return {}
    before, own, behind = nearest.text[: place.start()], place[0], nearest.text[place.end() :]
    if citation.family == CODE:
        letters = re.split(r"\d", citation.path[0], maxsplit=1)[0]
        written = own.join(filter(None, (letters, citation.path[0][len(letters) :])))
    else:
        depth = count_levels(citation.path)
        number = ".".join(citation.path[:depth])
        if mark := _PARAGRAPH.match(behind):
            # A section in paragraphs begins with the first one.
            behind = "".join(f"{mark[1]}{level})" for level in citation.path[depth:] or ("(1",))
        written = f"{before}{number.upper() if own.isupper() else number}{behind}"
    if isinstance(nearest.value, str):
        return {nearest.key: (written,)}
    return {nearest.key: (type(nearest.value)(written),)} if written.replace(".", "", 1).isdecimal() else {}


def find_beside(request: Request, selected: ItemSelection) -> list[LookUp]:
    """The neighbours of the first selected items that are no candidates."""
    texts, pool, look_ups = selected.texts, selected.pool, list[LookUp]()
    if not request.reads_neighbours or texts is None:
        return []
    longest, names = max(map(len, texts.bodies)), set(map(str, pool.ids))
    for row in selected.selection.indices.tolist()[:MOST_BESIDE]:
        place, body = texts.facts[row].place, texts.bodies[row]
        before, after = texts.neighbours.before[row], texts.neighbours.after[row]
        ids = [name for name in texts.facts[row].beside if name is not None and name not in names]
        numbers: Sequence[Any] = ()
        if place is not None and place.key == START:
            # A range. The text before begins no further away than the longest text is long.
            low = place.number + 1 if before else max(place.number - longest - MOST_BETWEEN, 0)
            numbers = range(low, place.number if after else place.number + len(body) + MOST_BETWEEN + 1)
        elif place is not None and place.key:
            kind = str if isinstance(pool.items[row].metadata.get(place.key), str) else int
            near = ((place.number - 1, before), (place.number + 1, after))
            numbers = [kind(number) for number, others in near if number >= 0 and not others]
        where = {}
        if place is not None and place.where and numbers and not (before and after):
            where = {**{key: (value,) for key, value in place.where}, place.key: numbers}
        if body.strip() and (ids or where):
            look_ups.append(LookUp("neighbour", str(pool.ids[row]), ids, where))
    return look_ups


def keep_neighbours(request: Request, selected: ItemSelection, found: Sequence[Pool]) -> list[Pool]:
    """The neighbours of selected items among what was found, each once."""
    united, added = unite(selected.pool, found)
    known = find_neighbours(request.read_facts(united), list(map(united.body, united.items)))
    rows = selected.selection.indices.tolist()
    beside = {other for row in rows for other in (*known.before[row], *known.after[row])}
    return [united.take([row for row in rows if row in beside]) for rows in added]
