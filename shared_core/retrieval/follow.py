"""The search of ``follow``: for items to which selected ones lead by links, names, numbers or places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, compress, count, islice, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .._parsing import is_text
from ..facts import DOCUMENT_ID, IDENTIFIER_KEYS, START, write_identifier
from ..texts.identifiers import CODE, Citations, Identifier, count_levels, parse_identifier
from ..texts.names import find_names
from ..texts.neighbours import MOST_BETWEEN, find_neighbours
from ..texts.references import as_address, find_links
from ..texts.titles import HEAD, as_key
from ..texts.words import Weigh
from .events import LOGGER
from .extra import Store
from .flow import Flow, Step, together
from .inputs import EmbeddedQuery
from .pool import FOLLOW, Followed, ItemSelection, Pool, unite
from .request import Request

# The most searches of ``follow``, and for the neighbours of how many items it searches.
FOLLOWED, MOST_BESIDE = 20, 10
# How many items a search for a name returns, one for a citation, and one for the neighbours of an item.
FOLLOW_K, CITED_K, BESIDE_K = 2, 4, 6
# How much of a number is read, and what stands before the number of a paragraph: "4.5.1.(1)".
_LONGEST = 100
_PARAGRAPH, _BOUNDARY = re.compile(r"([. ]*)\("), re.compile(r"(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])")

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
    pairs = ((get(key), values) for key, values in where.items())
    # A number in an array is compared element by element.
    return all(isinstance(value, (str, int, float)) and value in values for value, values in pairs)


def follow(
    request: Request, selected: ItemSelection, queries: Sequence[EmbeddedQuery], store: Store, weigh: Weigh | None
) -> Flow[ItemSelection]:
    """The set that is selected when the documents to which the selected ones lead are candidates too.

    It is ``selected`` if they lead to no others. There is one round, with one batch of embeddings and at most
    ``FOLLOWED`` searches, whatever the texts say.
    """
    links, names = _find_unknown(selected)
    look_ups = [LookUp("link", link, [link]) for link in links]
    look_ups += _find_cited(request, selected) if store.find is not None else []
    look_ups += [one for one in _find_beside(request, selected) if one.ids or store.find is not None]
    look_ups = look_ups[:FOLLOWED]
    if any(one.kind == "citation" for one in look_ups):
        # Texts that cite by number are full of capitalised terms, and what these bring takes the place of the cited.
        names = []
    if not names and not look_ups:
        return selected
    found = yield from _look_up(request, selected, look_ups, queries[0], store)
    searches = [(one, pool) for one, pool in zip(look_ups, found, strict=True) if one.kind != "link" or pool.items]
    known = {one.name for one, _ in searches}
    # An address is no name, nor is a long text. A model may fail on what UTF-8 cannot hold.
    new = [link for link in links if link not in known and "://" not in link and len(link) <= HEAD and is_text(link)]
    names = (new + names)[: max(FOLLOWED - len(searches), 0)]
    vectors = np.asarray((yield from store.embed(names)), np.float64) if names else np.zeros((0, 0))
    # A model of words gives a vector of zeros for a name that it does not know.
    searched = [EmbeddedQuery(v, None, v.tolist(), name) for v, name in zip(vectors, names, strict=True) if v.any()]
    named = yield from together([store.search(query, FOLLOW_K) for query in searched])
    searches += [
        # A hybrid search of LlamaIndex returns as many as its hybrid_top_k says.
        (LookUp("link" if query.text in new else "name", query.text), pool.take(range(len(pool.items))[:FOLLOW_K]))
        for query, pool in zip(searched, named, strict=True)
    ]
    united, added = unite(selected.pool, [pool.found_by(FOLLOW) for _, pool in searches])
    if any(added):
        selected = yield Step(partial(request.select, united, queries, weigh))
    columns = zip(searches, added, strict=True)
    return selected._replace(followed=[Followed(one.kind, one.name, rows) for (one, _), rows in columns])


def _look_up(
    request: Request, selected: ItemSelection, look_ups: Sequence[LookUp], query: EmbeddedQuery, store: Store
) -> Flow[list[Pool]]:
    """What each of the ``look_ups`` leads to."""
    # A store that takes no title for an id may refuse all ids of the call.
    ids = {kind: [i for one in look_ups if one.kind == kind for i in one.ids] for kind in ("link", "neighbour")}
    fetches = {kind: store.fetch(some) for kind, some in ids.items() if some}
    finds = [_find(store, query, one) for one in look_ups if not one.ids]
    pools = yield from together([*fetches.values(), *finds])
    fetched, by_metadata = dict(zip(fetches, pools, strict=False)), iter(pools[len(fetches) :])
    found = [_take(fetched[one.kind], one.ids) if one.ids else next(by_metadata) for one in look_ups]
    return _keep_neighbours(request, selected, look_ups, found)


def _take(pool: Pool, ids: Sequence[str]) -> Pool:
    return pool.take([row for row, name in enumerate(pool.ids) if str(name) in ids])


def _find(store: Store, query: EmbeddedQuery, look_up: LookUp) -> Flow[Pool]:
    """What the metadata lead to. If the store fails, it is nothing, and the log says why."""
    assert store.find is not None
    try:
        pool = yield from store.find(query, look_up.where, CITED_K if look_up.kind == "citation" else BESIDE_K)
    # Many stores raise errors of their own for nested filters, and for keys or types of values that they do not know.
    except Exception:
        message = "follow: the look-up of a %s by metadata failed; the set is selected without it"
        LOGGER.warning(message, look_up.kind, exc_info=True)
        return ItemSelection.nothing().pool
    # A store may make a query of a value that it does not escape, and return other items too.
    return pool.take([row for row, item in enumerate(pool.items) if suits(look_up.where, _read_metadata(item).get)])


def _read_metadata(item: Any) -> dict[str, Any]:
    return {DOCUMENT_ID: getattr(getattr(item, "node", item), DOCUMENT_ID, None), **item.metadata}


def _find_unknown(selected: ItemSelection) -> tuple[list[str], list[str]]:
    """Links of the selected items that lead to no candidate, and names in their texts that no candidate has."""
    texts = selected.texts
    if texts is None:
        return [], []
    known = {*texts.titles, *chain(*texts.names)}
    rows = selected.selection.indices.tolist()
    keys = {as_address(key) for fact in texts.facts for key in fact.keys} | known
    targets = dict.fromkeys(link for row in rows for link in texts.links[row] or ())
    # Of the links that stand in a text those to notes, and to pages of the sites of which there are candidates.
    sites = {"/".join(key.split("/")[:3]) for key in map(str, keys) if "://" in key}
    for row in rows:
        for link in find_links(texts.read_body(row)) if texts.links[row] is None else ():
            if "/".join(link.split("/")[:3]) in sites or f"[[{link}" in texts.bodies[row]:
                targets[link] = None
    known_keys = set(map(as_key, known)) - {()}
    unknown = [link for link in targets if as_address(link) not in keys and as_key(link) not in known_keys]
    # A document with links refers to what they lead to, and to nothing else.
    searched = [texts.bodies[row] for row in rows if texts.links[row] is None]
    names = find_names(searched, [*known, *targets], FOLLOWED)
    if any(texts.identifiers):
        # "Rule 4.5.1" is looked up as a number. Its vector says little.
        names = [name for name in names if not parse_identifier(name)]
    return unknown[:FOLLOWED], names


def _find_cited(request: Request, selected: ItemSelection) -> list[LookUp]:
    """What the selected texts cite by number or code and no candidate is, as the candidates' metadata write it."""
    identifier, texts = request.settings.identifier, selected.texts
    keys = IDENTIFIER_KEYS if identifier is None else {identifier: "{}"} if isinstance(identifier, str) else {}
    numbers = _list_numbers(selected.pool.items, keys)
    if texts is None or not numbers:
        return []
    sources = texts.sources
    documents = dict(zip(sources, (fact.where for fact in texts.facts), strict=True))
    rows = [row for row in selected.selection.indices.tolist() if texts.links[row] is None]
    look_ups = list[list[LookUp]]()
    citations = Citations(texts.identifiers, sources, texts.titles)
    for row in rows:
        look_ups.append([])
        for citation, source in islice(citations.find_uncited(texts.read_body(row), row), FOLLOWED):
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
    identifier: Identifier


def _list_numbers(items: Sequence[Any], keys: Mapping[str, str]) -> list[_Number]:
    numbers = []
    for row, item in enumerate(items):
        for key, form in keys.items():
            value = item.metadata.get(key)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                text = value[:_LONGEST] if isinstance(value, str) else f"{value:g}"
                found = parse_identifier(write_identifier(form, text) or "")
                numbers += [_Number(row, key, value, text, one) for one in found]
    return numbers


def _write(citation: Identifier, numbers: Sequence[_Number]) -> dict[str, Sequence[Any]]:
    """The key under which items have a cited number or code, and how they write it; empty if that is not known.

    The key is the one that has the most numbers of the same kind. The form is that of the number under this key that
    shares the most levels with the cited one; of several, the first.
    """
    alike = [number for number in numbers if (number.identifier.family == CODE) == (citation.family == CODE)]
    same_kind = [number for number in alike if number.identifier.family == citation.family] or alike
    if not alike:
        return {}
    key = Counter(number.key for number in same_kind).most_common(1)[0][0]

    def count_shared(number: _Number) -> int:
        differ = (own != cited for own, cited in zip(number.identifier.path, citation.path, strict=False))
        return next(compress(count(), differ), len(number.identifier.path))

    nearest = max((number for number in alike if number.key == key), key=count_shared)
    # The levels, with what stands between letters and digits.
    path, depth = nearest.identifier.path, count_levels(citation.path)
    levels = _BOUNDARY.sub(r"\\W?", r"\.".join(map(re.escape, path[: count_levels(path)])))
    place = re.search(rf"(?<![A-Za-z0-9]){levels}(?![A-Za-z0-9])", nearest.text, re.IGNORECASE)
    if place is None:
        return {}
    behind, mark = nearest.text[place.end() :], re.search(r"[^\W\d](\W?)\d", place[0])
    if paragraph := _PARAGRAPH.match(behind):
        # A section in paragraphs begins with the first one.
        behind = "".join(f"{paragraph[1]}{level})" for level in citation.path[depth:] or ("(1",))
    number = _BOUNDARY.sub(mark[1] if mark else "", ".".join(citation.path[:depth]), count=1)
    written = f"{nearest.text[: place.start()]}{number.upper() if place[0].isupper() else number}{behind}"
    if isinstance(nearest.value, str):
        return {nearest.key: (written,)}
    return {nearest.key: (type(nearest.value)(written),)} if written.replace(".", "", 1).isdecimal() else {}


def _find_beside(request: Request, selected: ItemSelection) -> list[LookUp]:
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


def _keep_neighbours(
    request: Request, selected: ItemSelection, look_ups: Sequence[LookUp], found: Sequence[Pool]
) -> list[Pool]:
    """What was ``found``, without items that were looked up as neighbours and are none, or were found before."""
    beside = [pool for one, pool in zip(look_ups, found, strict=True) if one.kind == "neighbour"]
    if not beside:
        return [*found]
    united, added = unite(selected.pool, beside)
    known = find_neighbours(request.read_facts(united), list(map(united.body, united.items)))
    picks = selected.selection.indices.tolist()
    near = {other for row in picks for other in (*known.before[row], *known.after[row])}
    kept = iter([united.take([row for row in rows if row in near]) for rows in added])
    return [next(kept) if one.kind == "neighbour" else pool for one, pool in zip(look_ups, found, strict=True)]
