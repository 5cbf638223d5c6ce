"""Which candidate's text names which other candidate: by its title, by the name its text begins with, or by links.

A question of two steps needs a text that resembles another text and not the question. Often that other text names it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import as_identifiers, quoted
from ..candidates import References
from ..errors import InvalidInputError
from .words import space_words, split_words

# A name has at most this many words and at least this many letters.
MOST_WORDS, LEAST_LETTERS = 12, 3
# read_name looks at this many characters of a text; the name begins among the first of them.
HEAD, BEGINNING = 400, 60
# "Mercury (planet)" is called "Mercury".
_BRACKETS = re.compile(r"[(\[（［][^()\[\]（）［］]*[)\]）］]\s*\Z")
# A line that ends like this is a sentence or leads to one, and no heading.
_SENTENCE_ENDS = tuple(".,;:!?。，；：！？،؛।")
# Pieces of a text, of which a dash is none; in a piece the word without quotes, brackets and full stops around it.
_PIECE, _WORD = re.compile(r"[^\s–—…/]+"), re.compile(r"\w(?:.*\w)?", re.DOTALL)
_JOINING = {
    *[
        "of",
        "the",
        "and",
        "de",
        "del",
        "da",
        "di",
        "du",
        "la",
        "von",
        "van",
        "der",
        "den",
        "in",
        "for",
        "e",
        "y",
        "und",
        "et",
    ]
}
# Words that begin a sentence with a capital and no name; in German the next noun has a capital too.
_OPENING = {
    *[
        "a",
        "an",
        "the",
        "this",
        "these",
        "in",
        "on",
        "at",
        "by",
        "for",
        "from",
        "as",
        "his",
        "her",
        "its",
        "their",
        "after",
        "when",
        "while",
        "during",
        "with",
    ],
    *[
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "einer",
        "im",
        "am",
        "den",
        "dem",
        "des",
        "zum",
        "zur",
        "mit",
        "bei",
        "für",
        "nach",
        "von",
        "vor",
        "seit",
        "diese",
        "dieser",
    ],
    *[
        "mein",
        "meine",
        "sein",
        "seine",
        "ihr",
        "ihre",
        "unser",
        "unsere",
        "alle",
        "viele",
        "jede",
        "jeder",
        "jedes",
        "keine",
        "une",
        "un",
        "les",
        "en",
        "à",
        "het",
        "een",
    ],
}
_MONTHS = {
    *[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ]
}
# Words that only German has so often, where every noun has a capital.
_GERMAN = {"und", "der", "das"}

Key = tuple[str, ...]


def find_references(
    texts: Sequence[str],
    names: Sequence[str | None] | None = None,
    *,
    links: Sequence[Iterable[Hashable] | None] | None = None,
    keys: Sequence[Iterable[Hashable]] | None = None,
) -> References:
    """How clearly the text of each candidate names each other candidate; for :class:`Candidates`.

    Names are compared word by word, as :func:`match_words` splits texts, without what stands in brackets at their end.
    At each place of a text the longest name counts: a text about New York City does not name New York. A name of
    several words counts in upper and lower case. A name of one word counts only as it is written, and not if it is
    an ordinary word: if it is written in lower case without digits or underscores, or if a text has it in lower case.
    Candidates with the same name are parts of one document and never name each other.

    A name that stands in many texts says little. If m of the n' candidates without a name contain it, it weighs
    log(1 + (n' − m + ½) / (m + ½)), divided by the value at m = 1: 1 for a name that stands in one text, 0 for a name
    that stands in all of them.

    Parameters
    ----------
    texts : sequence of n str
        The texts of the candidates.
    names : sequence of n str or None, optional
        Their titles. :func:`read_name` reads the name of a text without a title (None or empty).
    links : sequence of n iterables or None, optional
        What each text links to: ids, URLs or titles of other documents. A text with links refers to the candidates
        they lead to, and to no others: its words are not searched. None: the text has no such list.
    keys : sequence of n iterables, optional
        What links call each candidate besides its name: its id, its URL.

    Returns
    -------
    References
        ``named``, float32, shape (n, n), in [0, 1]: row i says how clearly text i names each candidate. The diagonal is
        0. ``names``, int64, shape (n,): candidates with the same name have the same number.

    Raises
    ------
    InvalidInputError
        A text or a name is not a string, or an argument has another number of rows than ``texts``.
    InvalidParameterError
        The links or the keys of a row are a single string, or hold what cannot be hashed.

    Examples
    --------
    >>> from setselect import find_references
    >>> texts = ["It was directed by Ann Lee.", "She was born in 1962.", "Ships sail to Perth.", "A port."]
    >>> find_references(texts, ["Forbidden Ground", "Ann Lee", "Ships", "Perth (harbour)"]).named
    array([[0., 1., 0., 0.],
           [0., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """
    n = len(texts)
    _check_strings(texts, "texts", n)
    if names is None:
        names = [None] * n
    _check_strings(names, "names", n, optional=True)
    called = [name if name and name.strip() else read_name(text) for name, text in zip(names, texts, strict=True)]
    own = list(map(_key, called))
    bearers: dict[Key, list[int]] = defaultdict(list)
    for row, key in enumerate(own):
        if key:
            bearers[key].append(row)
    linked = _follow_links(n, links, keys, bearers)
    references = np.zeros((n, n), np.float32)
    for row, named in _find_in_texts(texts, [text is None for text in linked], called, own):
        for key in named:
            references[row, bearers[key]] = 1
    for row, rows in enumerate(linked):
        references[row, list(rows or ())] = 1
    for row, key in enumerate(own):
        references[row, bearers[key] if key else row] = 0
    others = n - np.array([len(bearers[key]) if key else 1 for key in own], np.float64)
    references *= weigh(references.sum(axis=0), others).astype(np.float32)
    number: dict[Hashable, int] = {}
    bearer_of = [number.setdefault(key or row, len(number)) for row, key in enumerate(own)]
    return References(references, np.array(bearer_of, np.int64))


def weigh(m: NDArray[Any], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of names that stand in ``m`` of the ``others``, which do not bear them."""
    weights = np.log1p((others - m + 0.5) / (m + 0.5)) / np.log1p((others - 0.5) / 1.5)
    return np.where(m < others, weights.clip(0, 1), 0.0)


def read_name(text: str) -> str:
    """The name of a text that has no title: its heading, or the capitalised words that it begins with.

    The first line is a heading if it is a Markdown heading (``# Title``), or if it is short, does not end like a
    sentence, and further lines follow. Else the name is the first run of two or more capitalised words near the
    beginning of the text. A word such as "of" or "von" may stand inside of it. Articles and prepositions before it are
    left out. Scripts without capitals have names only in headings.

    Parameters
    ----------
    text : str
        The text. Only its first characters are read.

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
        and len(line) <= BEGINNING
        and not line.endswith(_SENTENCE_ENDS)
        and _key(line)
    ):
        return line
    for start, _, run in _capitalised(head):
        if start > BEGINNING:
            break
        while run and run[0].casefold() in _OPENING:
            run = run[1:]
        if len(run) > 1 and _key(name := " ".join(run)):
            return name
    return ""


def find_names(texts: Sequence[str], known: Iterable[str], most: int = 20) -> list[str]:
    """The names in the texts that none of ``known`` is, each once, in the order of the texts; at most ``most``.

    A name of one word counts inside of a sentence only, and not in German, where every noun has a capital.
    """
    seen, found = {_key(name) for name in known} | {()}, []
    for text in texts:
        words = text.split()
        german = 20 * sum(word in _GERMAN for word in words) > len(words)
        for _, opens, run in _capitalised(text):
            if opens and run[0].casefold() in _OPENING:
                run = run[1:]
            if len(run) < 2 and (german or opens or len("".join(run)) < 4):
                continue
            name = " ".join(run)
            if (key := _key(name)) not in seen and not all(word.isdigit() or word in _MONTHS for word in key):
                seen.add(key)
                found.append(name)
                if len(found) == most:
                    return found
    return found


def _check_strings(values: Sequence[Any], what: str, n: int, *, optional: bool = False) -> None:
    """Refuse what is not a list of n strings; ``optional``: None is allowed among them."""
    if isinstance(values, str) or len(values) != n:
        got = quoted(values) if isinstance(values, str) else f"{len(values)}"
        raise InvalidInputError(f"{what} must be {n} strings, one for each candidate, got {got}")
    for row, value in enumerate(values):
        if not isinstance(value, str) and not (optional and value is None):
            raise InvalidInputError(f"{what}: row {row} is {quoted(value)}, which is not a string")


def _key(name: str) -> Key:
    """The words by which names are compared; empty if ``name`` is too long or too short for a name."""
    if len(name) > HEAD:
        return ()
    name = name.strip()
    words = tuple(split_words(_BRACKETS.sub("", name) or name))
    letters = sum(not (character.isdigit() or character == "_") for word in words for character in word)
    return words if letters >= LEAST_LETTERS and len(words) <= MOST_WORDS else ()


def _follow_links(
    n: int,
    links: Sequence[Iterable[Hashable] | None] | None,
    keys: Sequence[Iterable[Hashable]] | None,
    bearers: dict[Key, list[int]],
) -> list[set[int] | None]:
    """For each text the rows that its links lead to, by key or by name; None for a text without a list of links."""
    links, keys = [None] * n if links is None else links, [()] * n if keys is None else keys
    for what, rows in (("links", links), ("keys", keys)):
        if len(rows) != n:
            raise InvalidInputError(f"{what} must have {n} rows, one for each candidate, got {len(rows)}")
    rows_of: dict[Hashable, list[int]] = defaultdict(list)
    for row, own in enumerate(keys):
        for name in as_identifiers(own, f"keys: row {row}"):
            rows_of[name].append(row)
    found: list[set[int] | None] = []
    for row, targets in enumerate(links):
        if targets is None:
            found.append(None)
            continue
        reached: set[int] = set()
        for target in as_identifiers(targets, f"links: row {row}"):
            reached.update(rows_of.get(target, ()), bearers.get(_key(target), ()) if isinstance(target, str) else ())
        found.append(reached)
    return found


def _find_in_texts(
    texts: Sequence[str], searched: Sequence[bool], called: Sequence[str], own: Sequence[Key]
) -> Iterator[tuple[int, set[Key]]]:
    """The row of each searched text with the names that stand in it.

    Names are looked up by their first word, longest first, so the time is linear in the texts.
    """
    lengths: dict[str, list[int]] = {}
    for length, first in sorted({(len(key), key[0]) for key in own if key}, reverse=True):
        lengths.setdefault(first, []).append(length)
    # How a name of one word is written, where that is more than a word in lower case.
    written: dict[str, set[str]] = defaultdict(set)
    for name, key in zip(called, own, strict=True):
        if len(key) == 1 and (not (form := _form(name)).islower() or re.search(r"[\d_]", form)):
            written[key[0]].add(form)
    known, ordinary, found = set(own), set(), []
    for row, text in enumerate(texts):
        spaced = space_words(text)
        words, forms = spaced.casefold().split(), None
        named, end = set(), 0
        for start in [place for place, word in enumerate(words) if word in lengths]:
            if start < end:
                continue
            for length in lengths[words[start]]:
                key = tuple(words[start : start + length])
                if key not in known:
                    continue
                if length == 1:
                    forms = spaced.split() if forms is None else forms
                    if forms[start] not in written[key[0]]:
                        if forms[start].islower():
                            ordinary.add(key)
                        continue
                named.add(key)
                end = start + length
                break
        found.append(named if searched[row] else set())
    return ((row, named - ordinary) for row, named in enumerate(found))


def _form(name: str) -> str:
    """A name of one word as it is written."""
    return space_words(_BRACKETS.sub("", name.strip()) or name).strip()


def _capitalised(text: str) -> Iterator[tuple[int, bool, list[str]]]:
    """Each run of capitalised words: its place, whether it begins a sentence, and its words as they are written.

    Words such as "of" may stand inside of a run. Every other mark than the full stop of an abbreviation ends it.
    """
    run: list[str] = []
    joining: list[str] = []
    place, end, opens, sentence = 0, 0, True, True
    for piece in [*_PIECE.finditer(text), None]:
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
        if word[0].isupper() or (word[0].isdigit() and run):
            if not run:
                place, opens = piece.start(), sentence
            # "J." and "U.S." go on.
            short = after.startswith(".") and (len(word) <= 2 or "." in word)
            run += [*joining, word + "." * short]
            joining, after = [], after[short:]
        elif run and word in _JOINING and len(joining) < 2:
            joining.append(word)
        elif run:
            yield place, opens, _without_possessive(run)
            run, joining = [], []
        sentence = any(mark in after for mark in ".!?:")
        if after and run:
            yield place, opens, _without_possessive(run)
            run, joining = [], []


def _without_possessive(run: list[str]) -> list[str]:
    """The words without the 's of the last one."""
    last = run[-1]
    return [*run[:-1], last[:-2] if last.endswith(("'s", "’s")) else last]
