"""Which candidates refer to each other: by their titles, by the names with which their texts begin, or by links.

A question of two steps needs two texts, and the second one does not resemble the question. Often the first
one names it.
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
from .words import Text, as_split_texts, check_strings, space_words, split_words

# A name has at most this many words and at least this many letters.
MOST_WORDS, LEAST_LETTERS = 12, 3
# read_name looks at this many characters of a text. A heading, and what stands before a name, are not longer than LINE.
HEAD, LINE = 200, 60
# "Mercury (planet)" is called "Mercury".
_BRACKETS = re.compile(r"[(\[（［][^()\[\]（）［］]*[)\]）］]\s*\Z")
# A line that ends like this is a sentence or leads to one, and no heading.
_SENTENCE_ENDS = tuple(".,;:!?。，；：！？،؛।")
# Pieces of a text, of which a dash is none; in a piece the word without quotes, brackets and full stops around it.
_PIECE, _WORD = re.compile(r"[^\s–—…/]+"), re.compile(r"\w(?:.*\w)?", re.DOTALL)
_JOINING = frozenset(split_words("of the and de del da di du la von van der den in for e y und et"))
# Words that begin a sentence with a capital and no name. In German the next noun has a capital too.
_OPENING = frozenset(
    split_words(
        "a an the this these in on at by for from as his her its their after when while during with "
        "der die das ein eine einer im am den dem des zum zur mit bei für nach von vor seit diese dieser "
        "mein meine sein seine ihr ihre unser unsere alle viele jede jeder jedes keine une un les en à het een"
    )
)
_MONTHS = frozenset(
    split_words("january february march april may june july august september october november december")
)
# Words that only German has so often, where every noun has a capital.
_GERMAN = frozenset(("und", "der", "das"))

Key = tuple[str, ...]


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
    lower case. Candidates with the same name are parts of one document and never name each other.

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
    split = as_split_texts(texts, "texts")
    if titles is not None:
        check_strings(titles, "titles", (str, NoneType))
    for what, column in (("titles", titles), ("links", links), ("keys", keys)):
        if column is not None and len(column) != len(split):
            raise InvalidInputError(f"{what} must have {len(split)} rows, one for each candidate, got {len(column)}")
    return find_split_references(split, titles, links, keys)


def find_split_references(
    texts: Sequence[Text],
    titles: Sequence[str | None] | None,
    links: Sequence[Iterable[Hashable] | None] | None,
    keys: Sequence[Iterable[Hashable]] | None,
) -> References:
    """:func:`find_references` for texts that may have been split already."""
    n = len(texts)
    titles = [None] * n if titles is None else titles
    names = [_list_names(title, text.text) for title, text in zip(titles, texts, strict=True)]
    name_keys = [list(map(as_key, forms)) for forms in names]
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
    return References(strength, np.array(document_of, np.int64), kinds)


def weigh(m: NDArray[Any], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of names that stand in ``m`` of the ``others``, the texts that have other names."""
    weights = np.log1p((others - m + 0.5) / (m + 0.5)) / np.log1p((others - 0.5) / 1.5)
    return np.where(m < others, weights.clip(0, 1), 0.0)


def read_name(text: str) -> str:
    """The name of a text that has no title: its heading, or the capitalised words that it begins with.

    The first line is a heading if it is a Markdown heading (``# Title``), or if it is short, does not end like a
    sentence, and further lines follow. Else the name is the run of two or more capitalised words with which the text
    begins. A word such as "of" or "von" may stand inside of it. Articles and prepositions before it are left out, and
    so is a number with which the text begins. Scripts without capitals have names only in headings.

    Parameters
    ----------
    text : str
        The text. Only its first 200 characters, without white space before them, are read.

    Returns
    -------
    str
        The name as it is written; empty if there is none.

    Examples
    --------
    >>> from setselect import read_name
    >>> read_name("# Opening hours\\n\\nWe open at nine.")
    'Opening hours'
    >>> read_name("Ernest Hemingway (1899-1961) was an American writer.")
    'Ernest Hemingway'
    >>> read_name("The river is long.")
    ''
    """
    head = text[: HEAD * 10].lstrip()[:HEAD]
    line, _, rest = head.partition("\n")
    line, marked = line.strip(), line.startswith("#")
    if marked and (name := line.strip("# \t")):
        return name
    following = rest.lstrip()
    # A text with fixed line lengths goes on in lower case.
    if (
        following
        and not following[0].islower()
        and line[0].isalnum()
        and len(line) <= LINE
        and not line.endswith(_SENTENCE_ENDS)
        and as_key(line)
    ):
        return line
    # Saves the search in texts without capitals.
    if head[: LINE + 1].islower():
        return ""
    for start, _, run in _capitalised(head):
        before = split_words(head[: min(start, LINE)])
        if start > LINE or not all(word in _OPENING or word.isdigit() for word in before):
            break
        while run and (run[0].casefold() in _OPENING or (run[0].isdigit() and len(run) < 2)):
            run = run[1:]
        if run:
            name = " ".join(run)
            return name if len(run) > 1 and as_key(name) else ""
    return ""


def find_names(texts: Sequence[str], known: Iterable[str], most: int = 20) -> list[str]:
    """The names in the texts that none of ``known`` is, each once, in the order of the texts; at most ``most``.

    A name of one word counts inside of a sentence only, and not in German, where every noun has a capital.
    """
    seen, found = {as_key(name) for name in known} | {()}, []
    for text in texts:
        words = text.split()
        german = 20 * sum(word in _GERMAN for word in words) > len(words)
        for _, opens, run in _capitalised(text):
            if opens and run[0].casefold() in _OPENING:
                run = run[1:]
            if len(run) < 2 and (german or opens or len("".join(run)) < 4):
                continue
            name = " ".join(run)
            if (key := as_key(name)) not in seen and not all(word.isdigit() or word in _MONTHS for word in key):
                seen.add(key)
                found.append(name)
                if len(found) == most:
                    return found
    return found


def as_key(name: str) -> Key:
    """The words by which names are compared; empty if ``name`` is too long or too short for a name."""
    if len(name) > HEAD:
        return ()
    words = tuple(split_words(_without_brackets(name)))
    characters = "".join(words)
    letters = len(characters) - characters.count("_") - sum(map(str.isdigit, characters))
    return words if letters >= LEAST_LETTERS and len(words) <= MOST_WORDS else ()


def _without_brackets(name: str) -> str:
    """``name`` without what stands in brackets at its end."""
    return _BRACKETS.sub("", name) or name


def _list_names(title: str | None, text: str) -> list[str]:
    """The full name of a text, and the short forms of it that other texts may use.

    "Hoosick, New York" is called "Hoosick", "Arsenal F.C." "Arsenal", and "Timothy James McVeigh", where it is read in
    the text, "Timothy McVeigh".
    """
    if not title or not title.strip():
        name = _without_brackets(read_name(text))
        words = name.split()
        capitals = len(words) > 2 and all(word[0].isupper() for word in words)
        return [name, f"{words[0]} {words[-1]}"] if capitals else [name]
    name = _without_brackets(title.strip()[: HEAD + 1])
    place, *further = name.split(", ")
    if len(further) == 1 and all(word[0].isupper() for word in further[0].split()):
        return [name, place]
    *words, last = name.split()
    return [name, " ".join(words).rstrip(",")] if words and last.endswith(".") and len(last) > 2 else [name]


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

    Names are looked up by their first word, longest first. So the time is linear in the length of the texts.
    """
    sought = set(sought)
    lengths: dict[str, list[int]] = {}
    for length, first in sorted({(len(key), key[0]) for key in sought}, reverse=True):
        lengths.setdefault(first, []).append(length)
    ordinary: set[Key] = set()
    found: dict[int, set[Key]] = {}
    for row, text in enumerate(texts):
        if row in skipped:
            continue
        words = text.words
        as_written: list[str] = []
        named, end = set(), 0
        for start in compress(count(), map(lengths.__contains__, words)):
            for length in lengths[words[start]] if start >= end else ():
                # Shorter than ``length`` at the end of the text.
                key = tuple(words[start : start + length])
                if key not in sought:
                    continue
                if len(key) == 1:
                    as_written = as_written or text.spaced.split()
                    if as_written[start] not in written[key[0]]:
                        if as_written[start].islower():
                            ordinary.add(key)
                        continue
                named.add(key)
                end = start + len(key)
                break
        found[row] = named
    return ((row, named - ordinary) for row, named in found.items())


def _capitalised(text: str) -> Iterator[tuple[int, bool, list[str]]]:
    """Each run of capitalised words: its place, whether it begins a sentence, and its words as they are written.

    Words such as "of" may stand inside of a run. Every other mark than the full stop of an abbreviation ends it.
    """
    run: list[str] = []
    joining: list[str] = []
    place, end, opens, sentence = 0, 0, True, True
    for piece in chain(_PIECE.finditer(text), [None]):
        found = piece and _WORD.search(piece[0])
        gap = text[end : piece.start()] if piece else "\n\n"
        if piece is None or found is None or found.start() or gap.strip() or gap.count("\n") > 1:
            if run:
                yield place, opens, _without_possessive(run)
            run, joining = [], []
        if gap.count("\n") > 1:
            sentence = True
        if piece is None:
            return
        end = piece.end()
        if found is None:
            continue
        word, after = found[0], piece[0][found.end() :]
        continues = word[0].isupper() or (word[0].isdigit() and run)
        joins = not continues and run and word in _JOINING and len(joining) < 2
        if continues:
            if not run:
                place, opens = piece.start(), sentence
            # "J." and "U.S." go on.
            short = after.startswith(".") and (len(word) <= 2 or "." in word)
            run += [*joining, word + "." * short]
            joining, after = [], after[short:]
        elif joins:
            joining.append(word)
        sentence = any(mark in after for mark in ".!?:")
        if run and (after or not (continues or joins)):
            yield place, opens, _without_possessive(run)
            run, joining = [], []


def _without_possessive(run: list[str]) -> list[str]:
    """The words without the 's of the last one."""
    last = run[-1]
    return [*run[:-1], last[:-2] if last.endswith(("'s", "’s")) else last]
