"""Which candidates refer to each other: by their titles, by the names with which their texts begin, or by links.

A question of two steps needs two texts, and the second one does not resemble the question. Often the first
one refers to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, count
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import as_identifiers
from ..candidates import REFERENCE_KINDS, References
from ..errors import InvalidInputError
from .names import Key, as_key, key_of_words, list_names
from .words import Text, check_strings, space_words


def find_references(
    texts: Sequence[str],
    titles: Sequence[str | None] | None = None,
    *,
    links: Sequence[Iterable[Hashable] | None] | None = None,
    keys: Sequence[Iterable[Hashable]] | None = None,
) -> References:
    """How clearly the text of each candidate refers to each other candidate; for :class:`Candidates`.

    Names are compared word by word, as :func:`match_words` splits texts. Brackets at the end of a name are left out. At
    each place of a text the longest name counts: a text about New York City does not name New York. A name of several
    words may be written in upper or lower case. A name of one word counts only with the capitals that it has. It does
    not count if it is an ordinary word: if it is in lower case, without digits or underscores, or if a text has it in
    lower case. Candidates with the same name are parts of one document and never refer to each other.

    A name that stands in many texts says little. Let n' candidates have other names, and let m of them contain the
    name. Then it weighs log(1 + (n' − m + 0.5) / (m + 0.5)), divided by the value at m = 1. The weight is 1 for a name
    that stands in one text, and 0 for a name that stands in all n' texts.

    Parameters
    ----------
    texts : sequence of n str
        The texts of the candidates.
    titles : sequence of n str or None, optional
        Their names. :func:`read_name` reads the name of a text without a title (None or empty).
    links : sequence of n iterables or None, optional
        What each text links to: ids, URLs or titles of other documents. A text with a list of links refers to the
        candidates that they lead to, and to no others: it is not searched for names. None: the text has no such list.
    keys : sequence of n iterables, optional
        What else links may call each candidate: its id, its URL.

    Returns
    -------
    References
        ``strength``, float32, shape (n, n), in [0, 1]: row i says how clearly text i refers to each candidate. The
        diagonal is 0. ``documents``, int64, shape (n,): candidates with the same name have the same number. ``kinds``,
        int8, shape (n, n): the indices of ``REFERENCE_KINDS``.

    Raises
    ------
    InvalidInputError
        A text or a title is not a string, or an argument has another number of rows than ``texts``.
    InvalidParameterError
        The links or the keys of a row are a single string, or contain a value that cannot be hashed.

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
    for what, column in (("titles", titles), ("links", links), ("keys", keys)):
        if column is not None and len(column) != len(texts):
            raise InvalidInputError(f"{what} must have {len(texts)} rows, one for each candidate, got {len(column)}")
    return find_split_references(list(map(Text, texts)), titles, links, keys)


def find_split_references(
    texts: Sequence[Text],
    titles: Sequence[str | None] | None,
    links: Sequence[Iterable[Hashable] | None] | None,
    keys: Sequence[Iterable[Hashable]] | None,
) -> References:
    """:func:`find_references` for texts that may have been split already; the arrays are read-only."""
    n = len(texts)
    titles = [None] * n if titles is None else titles
    names = [list_names(title, text.text) for title, text in zip(titles, texts, strict=True)]
    name_keys = [list(map(key_of_words, forms)) for forms in names]
    documents: dict[Key, list[int]] = defaultdict(list)
    for row, (key, *_) in enumerate(name_keys):
        documents[key].append(row)
    # A short form leads nowhere if it is the full name of another document.
    bearers = {key: list(rows) for key, rows in documents.items()}
    for row, (_, *short) in enumerate(name_keys):
        for key in short:
            if key not in documents:
                bearers.setdefault(key, []).append(row)
    bearers.pop((), None)
    linked = {} if links is None else _follow_links(links, [()] * n if keys is None else keys, titles, bearers)
    # The kind counts where the strength is above 0. 0 is "name".
    strength, kinds = np.zeros((n, n), np.float32), np.zeros((n, n), np.int8)
    for row, in_text in _find_in_texts(texts, linked, bearers, _written_forms(names, name_keys)):
        for key in in_text.difference(name_keys[row]):
            strength[row, bearers[key]] = 1
    for row, targets in linked.items():
        strength[row, list(targets)], kinds[row] = 1, REFERENCE_KINDS.index("link")
    same = [documents[key] if key else [row] for row, (key, *_) in enumerate(name_keys)]
    for row, rows in enumerate(same):
        strength[row, rows] = 0
    others = n - np.array(list(map(len, same)), np.float64)
    strength *= weigh(strength.sum(axis=0), others).astype(np.float32)
    numbers: dict[Hashable, int] = {}
    document_of = [numbers.setdefault(key or row, len(numbers)) for row, (key, *_) in enumerate(name_keys)]
    references = References(strength, np.array(document_of, np.int64), kinds)
    for array in (references.strength, references.documents, kinds):
        array.flags.writeable = False
    return references


def weigh(m: NDArray[Any], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of names that stand in ``m`` of the ``others``, the texts that have other names."""
    weights = np.log1p((others - m + 0.5) / (m + 0.5)) / np.log1p((others - 0.5) / 1.5)
    return np.where(m < others, weights.clip(0, 1), 0.0)


def _written_forms(called: Sequence[Sequence[str]], own: Sequence[Sequence[Key]]) -> dict[str, set[str]]:
    """How names of one word are written. A word in lower case is none, if it has no digit or underscore."""
    written: dict[str, set[str]] = defaultdict(set)
    for name, key in zip(chain(*called), chain(*own), strict=True):
        if len(key) == 1:
            form = space_words(name).strip()
            if not form.islower() or re.search(r"[\d_]", form):
                written[key[0]].add(form)
    return written


def _follow_links(
    links: Sequence[Iterable[Hashable] | None],
    keys: Sequence[Iterable[Hashable]],
    titles: Sequence[str | None],
    bearers: Mapping[Key, list[int]],
) -> dict[int, set[int]]:
    """For each text with a list of links, the rows that they lead to, by key, title or name."""
    rows_of: dict[Hashable, list[int]] = defaultdict(list)
    for row, (own, title) in enumerate(zip(keys, titles, strict=True)):
        # A link may also be a title that is too short or too long for a name that is found in texts.
        for name in (*as_identifiers(own, f"keys: row {row}"), *([title] if title else [])):
            rows_of[name].append(row)
    reached: dict[int, set[int]] = {}
    for row, targets in enumerate(links):
        if targets is not None:
            reached[row] = set()
            for target in as_identifiers(targets, f"links: row {row}"):
                by_name = bearers.get(as_key(target), []) if isinstance(target, str) else []
                reached[row].update(rows_of.get(target, ()), by_name)
    return reached


def _find_in_texts(
    texts: Sequence[Text], skipped: Container[int], sought: Iterable[Key], written: Mapping[str, set[str]]
) -> Iterator[tuple[int, set[Key]]]:
    """The row of each text with the sought names that stand in it.

    Names are looked up by their first two words, longest first. So the time is linear in the length of the texts.
    """
    sought = set(sought)
    lengths: dict[str, list[int]] = {}
    for length, first in sorted({(len(key), key[0]) for key in sought}, reverse=True):
        lengths.setdefault(first, []).append(length)
    pairs = {key[:2] for key in sought}
    ordinary: set[Key] = set()
    found: dict[int, set[Key]] = {}
    for row, text in enumerate(texts):
        if row in skipped:
            continue
        words = text.words
        named, end = set(), 0
        for start in compress(count(), map(lengths.__contains__, words)):
            first = words[start]
            # Many texts have the first word of a name, such as "the", without its second one.
            if start < end or ((first, *words[start + 1 : start + 2]) not in pairs and (first,) not in pairs):
                continue
            for length in lengths[first]:
                # Shorter than ``length`` at the end of the text.
                key = tuple(words[start : start + length])
                if key not in sought:
                    continue
                if len(key) == 1 and text.written[start] not in written[first]:
                    if text.written[start].islower():
                        ordinary.add(key)
                    continue
                named.add(key)
                end = start + len(key)
                break
        found[row] = named
    return ((row, named - ordinary) for row, named in found.items())
