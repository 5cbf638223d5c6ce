"""Which candidates refer to each other: by their names, by links, or by numbers and codes.

A question of two steps needs two texts, and the second one does not resemble the question. Often the first
one refers to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, count
from operator import contains

import numpy as np
from numpy.typing import NDArray

from .._validation import read_only
from ..candidates import REFERENCE_KINDS, References
from .fold import bare_word
from .identifiers import CODE, NUMBER, Citations, Identifier, count_levels
from .titles import Key, as_key, clean_title, is_joining, is_proper, key_of_words
from .words import Text, find_spellings, keep

# Which letters of a word are capitals.
Capitals = tuple[int, ...]

_CITATION = REFERENCE_KINDS.index("citation")
# Links in a text, each with a character that every one has: the search for this is fast.
_PART = r"(?:[^\s<>\"'()\[\]]|\([^()\s]{0,200}\)){1,500}"
_IN_TEXT = {
    "[": re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:[|#][^\[\]\n]{0,200})?\]\]"),
    "]": re.compile(rf"\]\(<?({_PART})"),
    "/": re.compile(rf"https?://{_PART}"),
    "#": re.compile(r"#(?<![\w#&/]#)(\d{1,9})\b"),
}
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)([^#]*)")


def find_split_references(
    texts: Sequence[Text],
    names: Sequence[Sequence[str]],
    titles: Sequence[str | None] | None,
    links: Sequence[Iterable[Hashable] | None] | None,
    keys: Sequence[Iterable[Hashable]] | None,
    identifiers: Sequence[Sequence[Identifier]] = (),
    sources: Sequence[Hashable | None] | None = None,
    ranks: NDArray[np.int64] | None = None,
) -> References:
    """:func:`find_references` for texts that are split, and named by :func:`list_names`; the arrays are read-only.

    ``identifiers`` are those of :func:`find_identifiers`; by default no citations are read. Of several versions of a
    text, references lead to the ones with the highest of the ``ranks``.
    """
    n = len(texts)

    def find_newest(rows: Collection[int]) -> list[int]:
        highest = 0 if ranks is None else max(ranks[[*rows]], default=0)
        return [row for row in rows if ranks is None or ranks[row] == highest]

    name_keys = [list(map(key_of_words, forms)) for forms in names]
    documents: dict[Key, list[int]] = defaultdict(list)
    for row, (key, *_) in enumerate(name_keys):
        documents[key].append(row)
    # A short form leads nowhere if it is the full name of another document.
    bearers: dict[Key, list[int]] = defaultdict(list, documents)
    for row, (_, *short) in enumerate(name_keys):
        for key in short:
            if key not in documents:
                bearers[key].append(row)
    bearers.pop((), None)
    own_titles = [title or "" for title in titles or [""] * n]
    linked = {row: targets for row, targets in enumerate(links or ()) if targets is not None}
    in_text = {row: own for row, text in enumerate(texts) if row not in linked and (own := find_links(text))}
    reached: dict[int, set[int]] = {}
    if linked or in_text:
        called = [filter(None, (title, *forms[:1])) for title, forms in zip(own_titles, names, strict=True)]
        reached = _follow_links({**linked, **in_text}, keys or [()] * n, called, bearers, identifiers, find_newest)
    # The kind counts where the strength is above 0. 0 is "name".
    strength, kinds = np.zeros((n, n), np.float32), np.zeros((n, n), np.int8)
    capitals = {key: forms for key, forms in _capitals_of(names, name_keys).items() if key in bearers}
    for row, named in _find_in_texts(texts, linked, capitals):
        for key in named.difference(name_keys[row]):
            strength[row, find_newest(bearers[key])] = 1
    for row, targets in reached.items():
        strength[row, list(targets)], kinds[row, list(targets)] = 1, REFERENCE_KINDS.index("link")
    same = [documents[key] if key else [row] for row, (key, *_) in enumerate(name_keys)]
    for row, rows in enumerate(same):
        strength[row, rows] = 0
    others = n - np.array(list(map(len, same)), np.float64)
    m = strength.sum(axis=0)
    weights = np.log1p((others - m + 0.5) / (m + 0.5)) / np.log1p((others - 0.5) / 1.5)
    strength *= np.where(m < others, weights.clip(0, 1), 0.0).astype(np.float32)
    documents_of = np.tile(np.array([rows[0] for rows in same], np.int64), (len(REFERENCE_KINDS), 1))
    if any(identifiers):
        known = [None] * n if sources is None else sources
        for row, cited, clearness in Citations(identifiers, known, own_titles).find_cited(texts, linked):
            for target in find_newest(cited):
                if target != row and clearness > strength[row, target]:
                    strength[row, target], kinds[row, target] = clearness, _CITATION
        documents_of[_CITATION] = _number_sections(identifiers, known)
    return References(read_only(strength), read_only(documents_of), read_only(kinds))


def _number_sections(called: Sequence[Sequence[Identifier]], sources: Sequence[Hashable | None]) -> list[int]:
    """The same number for texts that belong to one section of one document, or that have one code; else different ones.

    >>> _number_sections([[Identifier(NUMBER, ("4", level))] for level in ("(1", "(2", "5")], [None] * 3)
    [0, 0, 2]
    """
    first = dict[Hashable, int]()
    places = [
        (own[0].family == CODE, source, own[0].path[: count_levels(own[0].path)]) if own else row
        for row, (own, source) in enumerate(zip(called, sources, strict=True))
    ]
    return [first.setdefault(place, row) for row, place in enumerate(places)]


def as_address(link: Hashable) -> Hashable:
    """A URL as it is compared: without its fragment and final "/", its host in lower case. Other values as they are."""
    address = _ADDRESS.match(link) if isinstance(link, str) else None
    return link if address is None else address[1].lower() + address[2].rstrip("/")


def _capitals_of(names: Sequence[Sequence[str]], keys: Sequence[Sequence[Key]]) -> dict[Key, list[frozenset[Capitals]]]:
    """The capitals with which a text may write each word of each proper name."""
    capitals: dict[Key, list[frozenset[Capitals]]] = {}
    for name, key in zip(chain(*names), chain(*keys), strict=True):
        if key and (forms := _list_capitals(name)):
            capitals[key] = [one | other for one, other in zip(capitals.get(key, forms), forms, strict=True)]
    return capitals


# The titles of a corpus come back with each question.
@lru_cache(maxsize=2**12)
def _list_capitals(name: str) -> tuple[frozenset[Capitals], ...]:
    """The capitals of each word of a proper name; of several words also all capitals. Empty for a heading."""
    words = Text(name).written if is_proper(name) else []
    forms = [[word, word.upper(), word.title() if word.isupper() else word] for word in words]
    return tuple(frozenset(map(_find_capitals, some if len(words) > 1 else some[:1])) for some in forms)


@lru_cache(maxsize=2**14)
def _find_capitals(word: str) -> Capitals:
    """Which letters of a word are capitals; none of a joining word."""
    return () if is_joining(word) else tuple(compress(count(), map(str.isupper, word)))


@keep
def find_links(text: Text) -> list[str]:
    """What the links in a text lead to: "[[note]]", "[words](target)", a URL, and "#123" as "123"."""
    links = [link for sign, link in _IN_TEXT.items() if sign in text.text]
    return [target.strip().rstrip(".,;:!?") for link in links for target in link.findall(text.text)]


def _follow_links(
    links: Mapping[int, Iterable[Hashable]],
    keys: Sequence[Iterable[Hashable]],
    names: Sequence[Iterable[str]],
    bearers: Mapping[Key, list[int]],
    identifiers: Sequence[Sequence[Identifier]],
    find_newest: Callable[[Collection[int]], list[int]],
) -> dict[int, set[int]]:
    """For each text with links, the rows that they lead to, by key, title, name or number."""
    rows_of: dict[Hashable, set[int]] = defaultdict(set)
    numbers: dict[Hashable, list[int]] = defaultdict(list)
    for row, some in enumerate(identifiers):
        for family, path in some:
            numbers[path[0]] += [row] if family == NUMBER and len(path) == 1 else []
    for row, (own, called) in enumerate(zip(keys, names, strict=True)):
        # A link may also be a title that is too short or too long for a name that is found in texts.
        for name in (*own, *called):
            rows_of[name].add(row)
            rows_of[as_address(name)].add(row)
    reached = defaultdict[int, set[int]](set)
    for row, targets in links.items():
        for target in targets:
            by_name = bearers.get(as_key(clean_title(target)), []) if isinstance(target, str) else []
            # A link to a place in a page leads to the passage with this address, or else to the page.
            found = rows_of.get(target) or rows_of.get(as_address(target)) or set(numbers.get(target, ()))
            # A page that links to itself leads nowhere.
            reached[row].update(() if row in found else find_newest(found), find_newest(by_name))
    return reached


def _find_in_texts(
    texts: Sequence[Text], skipped: Container[int], capitals: Mapping[Key, Sequence[Container[Capitals]]]
) -> Iterator[tuple[int, set[Key]]]:
    """The row of each text with the names that stand in it, of those with ``capitals``.

    A name is looked up by its first two words without accents, the longest first. So the time is linear.
    """
    forms = find_spellings(set(chain(*capitals)), texts)
    called: dict[Key, list[Key]] = defaultdict(list)
    for name in capitals:
        called[tuple(map(bare_word, name))].append(name)
    lengths: dict[Key, list[int]] = defaultdict(list)
    for length, begin in sorted({(len(key), key[:2]) for key in called}, reverse=True):
        lengths[begin].append(length)
    firsts = {first for first, *_ in called}
    ordinary: set[Key] = set()
    found: dict[int, set[Key]] = {}
    for row, text in enumerate(texts):
        if row in skipped:
            continue
        words = text.words
        if text.accented:
            words = [bare_word(word) if word in text.accented else word for word in words]
        end, found[row] = 0, set()
        for start in compress(count(), map(firsts.__contains__, words)):
            if start < end:
                continue
            for length in (*lengths.get(tuple(words[start : start + 2]), ()), *lengths.get((words[start],), ())):
                for name in called.get(tuple(words[start : start + length]), ()):
                    written, folded = text.written[start : start + length], text.words[start : start + length]
                    if not all(map(contains, map(forms.__getitem__, name), folded)):
                        continue
                    if all(map(contains, capitals[name], map(_find_capitals, written))):
                        found[row].add(name)
                        end = start + length
                    elif length == 1 and written[0].islower():
                        ordinary.add(name)
                if end > start:
                    break
    return ((row, named - ordinary) for row, named in found.items())
