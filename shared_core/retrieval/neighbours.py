"""Which candidates stand next to each other in a document, as splitters, loaders and node parsers write it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, pairwise
from typing import Any, NamedTuple

from .._validation import as_plain, is_missing, quoted
from ..errors import InvalidInputError, warn
from ..texts.keys import PLACE_KEYS
from ..texts.neighbours import contradict, pair_successive, read_place
from .names import find_source_key, read_source
from .values import ItemName, describe_item, itself, read_some

# The key under which LangChain's splitters write where a chunk begins, in characters.
START = "start_index"
# The keys under which a chunk has its page, as loaders of LangChain and LlamaIndex and Unstructured write it.
PAGES = ("page", "page_number", "page_label")
# Splitters drop the separators and blanks between two chunks. This many characters may be missing.
MOST_BETWEEN = 10
_PLACES = (START, *PLACE_KEYS, *PAGES)
# A place that the setting ``neighbours`` gives.
_GIVEN = "neighbours"
# The ids of the previous and the next item.
_Pair = tuple[str | None, str | None]


class Neighbours(NamedTuple):
    """For each candidate the rows of the candidates directly before it and directly after it in its document.

    Several rows on one side are copies. ``starts`` holds where the text of a candidate begins in its document, in
    characters; None where this is not known.
    """

    before: Sequence[Sequence[int]]
    after: Sequence[Sequence[int]]
    starts: Sequence[int | None]

    def find_runs(self, rows: Sequence[int]) -> list[list[int]]:
        """The rows in runs of neighbours, each in reading order; a run stands where its first row stood.

        >>> Neighbours([[], [0], [], []], [[1], [], [], []], [None] * 4).find_runs([3, 1, 2, 0])
        [[3], [0, 1], [2]]
        """
        chosen = {*rows}
        following: dict[int, int] = {}
        preceding: dict[int, int] = {}
        for row in rows:
            free = (other for other in self.after[row] if other in chosen and other not in preceding)
            other = next(free, None)
            if other is not None:
                following[row], preceding[other] = other, row
        runs, done = [], set[int]()
        for row in rows:
            head, run = row, list[int]()
            while head in preceding and head not in done:
                head = preceding[head]
                # A cycle begins with the row that was selected first.
                if head == row:
                    break
            while head not in done:
                run.append(head)
                done.add(head)
                head = following.get(head, head)
            if run:
                runs.append(run)
        return runs


class _Place(NamedTuple):
    """Where a candidate stands: the key that says it, the page or None, and the number."""

    key: str
    page: Hashable | None
    number: int


def read_neighbours(
    items: Sequence[Any],
    ids: Sequence[Hashable],
    given: ItemName | None = None,
    source: ItemName | None = None,
    view: Callable[[Any], Any] = itself,
    body: Callable[[Any], str] = str,
) -> Neighbours:
    """Which items stand next to each other.

    By default LlamaIndex's nodes say their previous and next node. An item that says neither has its place in its
    document from its metadata, by the first of these keys that has a number of at least 0:

    - ``"start_index"``, which LangChain's splitters write with ``add_start_index=True``: the next item begins where the
      text of this one ends, or before. If the items have pages, it counts from the beginning of the page;
    - ``"chunk_index"``, ``"chunk"`` or ``"seq_num"``: the next item has the next number. Numbers that begin anew on
      each page count within the page;
    - ``"page"``, ``"page_number"`` or ``"page_label"``: the next page.

    The setting ``given`` takes the place of all of these. Its value is a number, as of ``"chunk_index"``, or a pair
    with the ids of the previous and the next item, either of which may be missing.

    A document is the file or URL in the metadata, else what ``source`` says. Where two different texts have the same
    place, the items are of several documents with one source, and none of these has neighbours. Two texts of one page
    show that pages were split, and then no item has neighbours by its page.
    """
    n, texts, documents = len(items), list(map(body, items)), _read_documents(items, source, view)
    stated, places = _read_claims(items, given, view)
    if given is not None and any(places) and all(document is None for document in documents):
        warn(
            "neighbours gives numbers, but no candidate has a source, so it is not known which of them are of one "
            "document: set source=, or give the ids of the previous and the next document as a pair"
        )
    # An item without a text stands for more than its text.
    blank = [row for row, text in enumerate(texts) if not text.strip()]
    names = [*ids]
    for row in blank:
        names[row], stated[row], places[row] = None, (None, None), None
    pairs = _pair_by_id(names, stated, documents if given is None else [None] * n)
    groups: dict[Hashable, list[tuple[int, _Place]]] = defaultdict(list)
    for row, (place, document) in enumerate(zip(places, documents, strict=True)):
        if place is not None and document is not None:
            groups[document, place.key, place.page if place.key == START else None].append((row, place))
    of_pages = [rows[0][1].key in PAGES for rows in groups.values()]
    # Who splits the pages of one document splits those of all.
    are_split = any(compress((contradict(_rows_at(rows), texts) for rows in groups.values()), of_pages))
    for rows, is_by_page in zip(groups.values(), of_pages, strict=True):
        pairs += [] if is_by_page and are_split else _pair_by_place(rows, texts)
    before, after = ([list[int]() for _ in range(n)] for _ in range(2))
    for row, other in dict.fromkeys(pairs):
        after[row].append(other)
        before[other].append(row)
    return Neighbours(before, after, list(map(_read_start, items)))


def _read_claims(
    items: Sequence[Any], given: ItemName | None, view: Callable[[Any], Any]
) -> tuple[list[_Pair], list[_Place | None]]:
    """For each item the ids of the previous and the next one, and its place; either may be missing."""
    if given is None:
        stated = list(map(_read_relations, items))
        return stated, [
            None if any(pair) else _read_place(item.metadata) for item, pair in zip(items, stated, strict=True)
        ]
    values = [as_plain(value) for value in read_some(items, given, _GIVEN, view)]
    stated = [_read_pair(value) or (None, None) for value in values]
    return stated, [_read_given(describe_item(items[row], row), value) for row, value in enumerate(values)]


def _read_documents(items: Sequence[Any], source: ItemName | None, view: Callable[[Any], Any]) -> list[Hashable]:
    """The document of which each item is a part; None if that is not known."""
    files = list(map(read_source, items))
    others: Sequence[Any] = [None] * len(items)
    if isinstance(source, str):
        others = [as_plain(item.metadata.get(source)) for item in items]
    elif source is not None and None in files:
        others = read_some(items, source, "source", view)
    documents: list[Hashable] = []
    for file, other in zip(files, others, strict=True):
        try:
            hash(other)
        except TypeError:
            other = None
        documents.append(file if file is not None else None if is_missing(other) else other)
    return documents


def _read_relations(item: Any) -> _Pair:
    """The ids of the previous and the next node that LlamaIndex's node says."""
    node, ids = getattr(item, "node", item), []
    for name in ("prev_node", "next_node"):
        related = None
        # A list of nodes in the place of one.
        with suppress(ValueError):
            related = getattr(node, name, None)
        ids.append(None if related is None else str(related.node_id))
    return ids[0], ids[1]


def _read_place(metadata: Mapping[str, Any]) -> _Place | None:
    if metadata.keys().isdisjoint(_PLACES):
        return None
    page = next((value for key in PAGES if not is_missing(value := as_plain(metadata.get(key)))), None)
    if page is not None:
        page = str(page) if (number := read_place(page)) is None else number
    for key in filter(metadata.__contains__, _PLACES):
        # LangChain's splitters write -1 for a chunk that they do not find in the document again.
        if (number := read_place(metadata.get(key))) is not None:
            return _Place(key, page, number)
    return None


def _read_pair(value: Any) -> _Pair | None:
    """The ids of the previous and the next item; None if the value is no pair."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    previous, following = (None if is_missing(one) else str(one) for one in value)
    return previous, following


def _read_given(name: str, value: Any) -> _Place | None:
    """The place that the setting ``neighbours`` gives; None if the value is missing or a pair."""
    number = read_place(value)
    if number is None and not is_missing(value) and _read_pair(value) is None:
        raise InvalidInputError(
            f"neighbours of {name} is {quoted(value)}: it must be the number of the text in its document, a whole "
            "number of at least 0, or a pair with the ids of the previous and the next text"
        )
    return None if number is None else _Place(_GIVEN, None, number)


def _read_start(item: Any) -> int | None:
    """Where the text of an item begins in its document or page, in characters."""
    start = read_place(item.metadata[START]) if START in item.metadata else None
    if start is None and (index := getattr(getattr(item, "node", item), "start_char_idx", None)) is not None:
        return read_place(index)
    return start


def _pair_by_id(
    ids: Sequence[Hashable], stated: Sequence[_Pair], documents: Sequence[Hashable]
) -> list[tuple[int, int]]:
    """Each row and the row after it. Items that contradict each other, or are of two documents, are no neighbours."""
    rows = {str(name): row for row, name in reversed([*enumerate(ids)]) if name is not None}
    claims = []
    for row, (previous, following) in enumerate(stated):
        claims += [(rows[previous], row)] if previous in rows else []
        claims += [(row, rows[following])] if following in rows else []
    pairs = []
    for row, other in claims:
        says, told = stated[row][1], stated[other][0]
        agree = says in (None, str(ids[other])) and told in (None, str(ids[row]))
        apart = None not in (documents[row], documents[other]) and documents[row] != documents[other]
        if agree and not apart and row != other:
            pairs.append((row, other))
    return pairs


def _pair_by_place(rows: Sequence[tuple[int, _Place]], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Each row and the row after it, of the rows of one document, whose places are by the same key."""
    key = rows[0][1].key
    if key in PLACE_KEYS and _restarts([place for _, place in rows]):
        by_page: dict[Hashable, list[tuple[int, _Place]]] = defaultdict(list)
        for row, place in rows:
            by_page[place.page].append((row, place._replace(page=None)))
        return [pair for some in by_page.values() for pair in _pair_by_place(some, texts)]
    at = _rows_at(rows)
    if key != START:
        return pair_successive(at, texts)
    if contradict(at, texts):
        return []
    pairs = []
    for start, following in pairwise(sorted(at)):
        end = start + len(texts[at[start][0]])
        if following <= end + MOST_BETWEEN and following + len(texts[at[following][0]]) > end:
            pairs += [(row, other) for row in at[start] for other in at[following]]
    return pairs


def _rows_at(rows: Sequence[tuple[int, _Place]]) -> dict[int, list[int]]:
    """The rows at each number."""
    at: dict[int, list[int]] = defaultdict(list)
    for row, place in rows:
        at[place.number].append(row)
    return at


def _restarts(places: Sequence[_Place]) -> bool:
    """Whether numbers begin anew on each page: a higher number stands on an earlier page, or one number on two."""
    pages = [(place.number, place.page) for place in places if isinstance(place.page, int)]
    return any(page > later or (number == other and page != later)
               for (number, page), (other, later) in pairwise(sorted(pages)))  # fmt: skip


class Beside(NamedTuple):
    """Which items stand next to the item at this row: their ids, or the values that their metadata have under keys."""

    row: int
    ids: Sequence[str]
    where: Mapping[str, Sequence[Any]]


def find_missing(
    items: Sequence[Any],
    ids: Sequence[Hashable],
    rows: Sequence[int],
    given: ItemName | None = None,
    source: ItemName | None = None,
    view: Callable[[Any], Any] = itself,
    body: Callable[[Any], str] = str,
) -> Iterator[Beside]:
    """What leads to those neighbours of the items at these ``rows`` that are no items; see :func:`read_neighbours`."""
    known = read_neighbours(items, ids, given, source, view, body)
    (stated, places), names = _read_claims(items, given, view), set(map(str, ids))
    texts = list(map(body, items))
    longest = max(map(len, texts), default=0)
    pages = {(place, read_source(item)): text for place, item, text in zip(places, items, texts, strict=True)}
    are_split = any(
        place is not None and place.key in PAGES and pages[place, read_source(item)] != text
        for place, item, text in zip(places, items, texts, strict=True)
    )
    for row in rows:
        item, place, before, after = items[row], places[row], known.before[row], known.after[row]
        claimed = [name for name in stated[row] if name is not None and name not in names]
        if not texts[row].strip():
            continue
        if claimed:
            yield Beside(row, claimed, {})
        if place is None or (before and after) or (place.key in PAGES and are_split):
            continue
        key = given if place.key == _GIVEN else place.key
        document = find_source_key(item, source)
        if document is None or not isinstance(key, str):
            continue
        where: dict[str, Sequence[Any]] = {document[0]: (document[1],)}
        if key == START:
            # A range. The text before begins no further away than the longest text is long.
            low = place.number + 1 if before else max(place.number - longest - MOST_BETWEEN, 0)
            high = place.number if after else place.number + len(texts[row]) + MOST_BETWEEN + 1
            if place.page is not None:
                page = next(page for page in PAGES if not is_missing(as_plain(item.metadata.get(page))))
                where[page] = (as_plain(item.metadata[page]),)
            where[key] = range(low, high)
        else:
            numbers = [
                number for number, others in ((place.number - 1, before), (place.number + 1, after)) if not others
            ]
            kind = str if isinstance(item.metadata.get(key), str) else int
            where[key] = tuple(kind(number) for number in numbers if number >= 0)
        if where[key]:
            yield Beside(row, (), where)
