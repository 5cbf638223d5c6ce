"""Which candidates refer to each other: by their names, by links, or by numbers and codes.

A question of two steps needs two texts, and the second one does not resemble the question. Often the first
one refers to it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, count
from operator import contains
from types import NoneType

import numpy as np

from .._validation import as_identifiers, as_names, as_optional, read_only
from ..candidates import REFERENCE_KINDS, References
from ..errors import InvalidInputError
from .fold import bare_word, group_accented, list_spellings
from .identifiers import Identifier, check_identifiers, find_cited, list_identifiers, number_sections
from .names import list_names
from .neighbours import add_neighbours, check_neighbours
from .titles import Key, as_key, clean_title, is_joining, is_proper, key_of_words
from .words import Text, check_strings

# Which letters of a word are capitals.
Capitals = tuple[int, ...]

_CITATION = REFERENCE_KINDS.index("citation")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)([^#]*)")


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

    Names are compared word by word, as :func:`match_words` splits texts. Brackets at the end of a name are left out. At
    each place of a text the longest name counts: a text about New York City does not name New York. Candidates with the
    same name are parts of one document and never refer to each other.

    A title is a name if each of its words, joining ones such as "of" aside, has a capital, a digit, or a mark as in
    ``max_tokens`` and ``numpy.fft``. So "Model names" is a heading and no name. In scripts without capitals every title
    is a name. A text names it by writing it with the same capitals. A name of several words may also have words all in
    capitals, in the text ("Ann LEE") or in the title. A name of one word does not count if a text has it in lower case.
    A text may write a name without its accents, and with accents a name that has none.

    A name that stands in many texts says little. If m of the n' candidates with other names contain it, it weighs
    log(1 + (n' − m + 0.5) / (m + 0.5)), divided by the value at m = 1: 1 for a name that stands in one text, 0 for one
    that stands in all of them.

    A text also refers to what it cites by a number ("Rule 4.5.1", "§ 12 Abs. 2", "第5条"), a code ("RFC 7231", "error
    E1042"), a file (``utils/io.py``) or a symbol (``parse_header()``). A number means a text of the same source, unless
    another document is named beside it ("Art. 6 GDPR"). It needs its kind ("Rule"), or three levels and a word such as
    "see". A citation that leads to m parts of a section leads to each by 1/m, and so does one to m texts of the same
    number whose sources are not known.

    A text that does not refer to the next or previous text of its source in another way leads to it by s², where s is
    the share of that text that does not overlap with its own.

    Parameters
    ----------
    texts : sequence of n str
        The texts of the candidates.
    titles : sequence of n str or None, optional
        Their names. What a site puts around its titles (" | FilmBase") does not count, nor do the numbers of headings
        ("3.2", "Chapter 3:"). :func:`read_name` reads the name of a text without a title: None, empty, or one that says
        nothing ("Untitled", "Document1").
    links : sequence of n iterables or None, optional
        What each text links to: ids, URLs or titles of other documents. URLs are compared without their fragment and
        their final "/". A text with a list of links refers to the candidates that they lead to, and to no others: it is
        not searched for names. None: the text has no such list.
    keys : sequence of n iterables, optional
        What else links may call each candidate: its id, its URL.
    identifiers : sequence of n str, iterables of str, or None, optional
        The number or code of each candidate, or several: "4.5.1(2)", "Art. 6", "E1042", "src/io.py". If a row has none,
        its identifier is the number or code with which its text begins ("4.5.1 A person must"), or what its code
        defines.
    sources : sequence of n hashables or None, optional
        The document that each candidate is a part of. Missing values are not known.
    neighbours : sequence of n int or None, optional
        The number of each text in its source, at least 0: texts with successive numbers are neighbours. They need
        ``sources``.

    Returns
    -------
    References
        ``strength``, float32, shape (n, n), in [0, 1]: row i says how clearly text i refers to each candidate. The
        diagonal is 0. ``documents``, int64, shape (m, n) for the m kinds of references: candidates with the same name,
        or for citations of the same section, have the same number. ``kinds``, int8, shape (n, n): the indices of
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
    check_strings(texts, "texts")
    if titles is not None:
        check_strings(titles, "titles", (str, NoneType))
    columns = {"titles": titles, "links": links, "keys": keys, "identifiers": identifiers, "sources": sources}
    columns["neighbours"] = neighbours
    for what, column in columns.items():
        if column is not None and len(column) != len(texts):
            raise InvalidInputError(f"{what} must have {len(texts)} rows, one for each candidate, got {len(column)}")
    split = list(map(Text, texts))
    called = list_identifiers(None if identifiers is None else check_identifiers(identifiers), split)
    known = None if sources is None else as_optional(as_names(sources, len(texts), "sources"))
    found = find_split_references(split, list_names(titles, texts), titles, links, keys, called, known)
    return found if neighbours is None else add_neighbours(found, texts, check_neighbours(neighbours, sources, texts))


def find_split_references(
    texts: Sequence[Text],
    names: Sequence[Sequence[str]],
    titles: Sequence[str | None] | None,
    links: Sequence[Iterable[Hashable] | None] | None,
    keys: Sequence[Iterable[Hashable]] | None,
    identifiers: Sequence[Sequence[Identifier]] = (),
    sources: Sequence[Hashable | None] | None = None,
) -> References:
    """:func:`find_references` for texts that are split, and named by :func:`list_names`; the arrays are read-only.

    ``identifiers`` are those of :func:`list_identifiers`; by default no citations are read.
    """
    n = len(texts)
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
    linked: dict[int, set[int]] = {}
    if links is not None:
        called = [filter(None, (title, *forms[:1])) for title, forms in zip(own_titles, names, strict=True)]
        linked = _follow_links(links, [()] * n if keys is None else keys, called, bearers)
    # The kind counts where the strength is above 0. 0 is "name".
    strength, kinds = np.zeros((n, n), np.float32), np.zeros((n, n), np.int8)
    capitals = {key: forms for key, forms in _capitals_of(names, name_keys).items() if key in bearers}
    for row, in_text in _find_in_texts(texts, linked, capitals):
        for key in in_text.difference(name_keys[row]):
            strength[row, bearers[key]] = 1
    for row, targets in linked.items():
        strength[row, list(targets)], kinds[row] = 1, REFERENCE_KINDS.index("link")
    same = [documents[key] if key else [row] for row, (key, *_) in enumerate(name_keys)]
    for row, rows in enumerate(same):
        strength[row, rows] = 0
    others = n - np.array(list(map(len, same)), np.float64)
    m = strength.sum(axis=0)
    weights = np.log1p((others - m + 0.5) / (m + 0.5)) / np.log1p((others - 0.5) / 1.5)
    strength *= np.where(m < others, weights.clip(0, 1), 0.0).astype(np.float32)
    documents_of = np.tile(np.array([rows[0] for rows in same], np.int64), (len(REFERENCE_KINDS), 1))
    if any(identifiers):
        # Texts of no known source that share a title are parts of one document.
        shared = {title for title, number in Counter(own_titles).items() if title and number > 1}
        given = zip([None] * n if sources is None else sources, own_titles, strict=True)
        known = [title if source is None and title in shared else source for source, title in given]
        for row, cited, clearness in find_cited(texts, identifiers, known, own_titles, linked):
            for target in cited:
                if target != row and clearness > strength[row, target]:
                    strength[row, target], kinds[row, target] = clearness, _CITATION
        documents_of[_CITATION] = number_sections(identifiers, known)
    return References(read_only(strength), read_only(documents_of), read_only(kinds))


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
    return () if is_joining(word) else tuple(place for place, letter in enumerate(word) if letter.isupper())


def _follow_links(
    links: Sequence[Iterable[Hashable] | None],
    keys: Sequence[Iterable[Hashable]],
    names: Sequence[Iterable[str]],
    bearers: Mapping[Key, list[int]],
) -> dict[int, set[int]]:
    """For each text with a list of links, the rows that they lead to, by key, title or name."""
    rows_of: dict[Hashable, set[int]] = defaultdict(set)
    for row, (own, called) in enumerate(zip(keys, names, strict=True)):
        # A link may also be a title that is too short or too long for a name that is found in texts.
        for name in (*as_identifiers(own, f"keys: row {row}"), *called):
            rows_of[name].add(row)
            rows_of[as_address(name)].add(row)
    reached: dict[int, set[int]] = {row: set() for row, targets in enumerate(links) if targets is not None}
    for row, rows in reached.items():
        for target in as_identifiers(links[row], f"links: row {row}"):
            by_name = bearers.get(as_key(clean_title(target)), []) if isinstance(target, str) else []
            # A link to a place in a page leads to the passage with this address, or else to the page.
            rows.update(rows_of.get(target) or rows_of.get(as_address(target)) or (), by_name)
    return reached


def _find_in_texts(
    texts: Sequence[Text], skipped: Container[int], capitals: Mapping[Key, Sequence[Container[Capitals]]]
) -> Iterator[tuple[int, set[Key]]]:
    """The row of each text with the names that stand in it, of those with ``capitals``.

    A name is looked up by its first two words without accents, the longest first. So the time is linear.
    """
    accented = group_accented(set().union(*(text.accented for text in texts)))
    forms = {word: list_spellings(word, accented) for word in set(chain(*capitals))}
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
