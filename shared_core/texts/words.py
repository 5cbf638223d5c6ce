"""What a word is, and how well each text covers each word of a question: BM25's term frequency, without an index.

The formulas are those of Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond",
section 3. The candidates of one search take the place of the corpus.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache, wraps
from itertools import chain, filterfalse
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import read_only
from ..candidates import Parts
from ..errors import InvalidInputError, quoted
from .fold import LONG, bare_word, clean, find_unspaced, fold, group_accented, list_spellings, space_words, strip_markup

# The constants of BM25: how fast further occurrences of a word count less, and how much the length of a text counts.
K1, B = 1.2, 0.75
# The parts of an identifier: those of camel case, a plural such as "IDs", and numbers.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z]{2})|[A-Z]?[a-z](?:\d*[a-z])*|[A-Z](?:\d*[A-Z])*s?|\d+")
# What a question names exactly: what stands in quotes, and identifiers. An identifier is a word with a letter before a
# digit, with "_" between its parts, or with a capital behind a small letter; or a code of joined words: "SOP-QA-012".
_QUOTED = re.compile(
    r'(?<![0-9A-Za-z])"([^"\n]{2,80})"|“([^”\n]{2,80})”|«([^»\n]{2,80})»|「([^」\n]{1,80})」|`([^`\n]{2,80})`'
)
_JOINED = re.compile(r"\w+(?:[-._/:]\w+)*")
_IDENTIFIER = re.compile(r"[^\W_]_[^\W_]|[a-z][A-Z]|[^\W\d_]\d")
_CODE = re.compile(r"(?=.*[A-Z]).*[^\W\d_][-._/:]?\d")
# Each letter of ASCII becomes "a" or "A", each digit "0". These are in a text with words that have parts.
_SHAPES = bytes(
    ord("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c) for c in map(chr, range(128))
) + bytes(128)
_WITH_PARTS = re.compile(rb"A(?:(?<=aA)|(?=Aaa))|0(?:(?<=[aA]0)|(?=[aA]))|_")
# A request with more clauses holds a text that somebody pasted, before or behind what is asked. A shorter clause says
# little by itself: "and then".
MOST_CLAUSES, FEWEST_WORDS = 8, 3
# Words between two clauses, in English, German, French, Spanish, Italian, Portuguese and Dutch.
_JOINING = (
    "as well as|and|then|also|plus|or|while|und|dann|sowie|oder|anschließend|et|puis|ou|ensuite|y|luego|e|poi|oppure|"
    "depois|en"
)
# White space is a single space, or a line end.
_BETWEEN_CLAUSES = re.compile(
    rf"(?<=[.?!;:])[ ]|[。！？；，、]|\n|,[ ](?:(?:{_JOINING})[ ])*|[ ](?:(?:{_JOINING})[ ])+", re.IGNORECASE
)

T = TypeVar("T")
# The inverse document frequency of each term in a corpus.
Weigh = Callable[[Sequence[str]], NDArray[np.float64]]


class Text:
    """A text that is split into words once, when they are first needed; ``kept`` is what else was read of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Without markup, with one form of its characters and digits.
        self.plain = clean(strip_markup(text))
        self.kept: dict[Callable[[Text], Any], Any] = {}

    @cached_property
    def written(self) -> list[str]:
        """The words in their order, as they are written."""
        return self._spaced.split()

    @cached_property
    def words(self) -> list[str]:
        """The words in their order, case-folded."""
        return fold(self._spaced).split()

    @cached_property
    def terms(self) -> list[str]:
        """The words, and the parts of identifiers among them."""
        # Most texts have no word with parts, and most words consist of letters, all or all but the first in lower case.
        shape = self._spaced.encode("ascii", "replace").translate(_SHAPES)
        words = self.written if _WITH_PARTS.search(shape) else []
        letters = filterfalse(str.istitle, filterfalse(str.islower, filter(str.isalpha, words)))
        mixed = chain(filterfalse(str.isalpha, words), letters)
        parts = [*chain.from_iterable(map(split_identifier, mixed))]
        return self.words + parts if parts else self.words

    @cached_property
    def characters(self) -> list[str]:
        """Each character of the runs that are split into pairs."""
        return [] if self.text.isascii() else find_unspaced(self.plain)

    @cached_property
    def accented(self) -> set[str]:
        """The terms that have accents."""
        others = () if self._spaced.isascii() else filterfalse(str.isascii, self.terms)
        return {term for term in others if bare_word(term) != term}

    @cached_property
    def _spaced(self) -> str:
        return space_words(self.plain)


# The same texts come back with the next question. What is kept of one takes about twenty times its length in bytes.
_read, LONGEST_KEPT = lru_cache(maxsize=2**10)(Text), 10_000


def read_text(text: str) -> Text:
    """The text, with what was read of it before."""
    return _read(text) if len(text) <= LONGEST_KEPT else Text(text)


def keep(read: Callable[[Text], T]) -> Callable[[Text], T]:
    """``read``, which reads each text once."""

    @wraps(read)
    def read_once(text: Text) -> T:
        if read not in text.kept:
            text.kept[read] = read(text)
        found: T = text.kept[read]
        return found

    return read_once


def split_words(text: str) -> list[str]:
    """The words of a text without markup, case-folded: letters, digits and underscores between other characters.

    Scripts that put no spaces between words, such as Chinese, are split into pairs of neighbouring characters.

    >>> split_words("The *FFT*: numpy.fft.rfft2, max\\\\_tokens")
    ['the', 'fft', 'numpy', 'fft', 'rfft2', 'max_tokens']
    >>> split_words("北京大学 2024")
    ['北京', '京大', '大学', '2024']
    """
    return Text(text).words


@lru_cache(maxsize=2**14)
def split_identifier(word: str) -> tuple[str, ...]:
    """The parts of an identifier, case-folded and of two characters or more; none if the word has no parts.

    >>> [*map(split_identifier, ["getUserById", "MAX_RETRIES", "HTTPServer", "KB5034441", "PDFs", "H2O"])]
    [('get', 'user', 'by', 'id'), ('max', 'retries'), ('http', 'server'), ('kb', '5034441'), (), ()]
    """
    if len(word) > LONG:
        return ()
    found = (part for part in _PART.finditer(_as_shape(word)) if len(part[0]) > 1)
    parts = tuple([fold(word[part.start() : part.end()]) for part in found])
    return () if parts == (fold(word),) else parts


def _as_shape(text: str) -> str:
    """The text with "a" and "A" in place of other letters in lower case and other capitals."""
    others = () if text.isascii() else filterfalse(str.isascii, set(text))
    return text.translate({ord(c): "A" if c.isupper() else "a" for c in others if c.isupper() or c.islower()})


def match_words(question: str | Sequence[str], texts: Sequence[str]) -> Parts:
    """The words of the question as parts that a set of texts has to cover; for :class:`Candidates`.

    How well a text covers a word is BM25's saturated term frequency f / (f + K1 (1 − B + B l / l̄)), in [0, 1): f
    counts the word in the text, l is the number of words of the text, l̄ is its mean over the texts. The weight of a
    word is its inverse document frequency log(1 + (n − m + ½) / (m + ½)), where m of the n texts contain the word; or 0
    if none or all do. So no list of stop words is needed. An identifier counts by its parts too, which do not add to l.

    Parameters
    ----------
    question : str, or sequence of str
        The query in words; several, such as a question and its sub-questions, count as one with the words of all.
    texts : sequence of n str
        The texts of the candidates.

    Returns
    -------
    Parts
        With one part for each different word of the question. ``exact`` is about what the question names exactly, word
        by word: what stands in quotes (" " “ ” « » 「 」 and backticks), and identifiers such as E4711, ``get_user``,
        ``getUser`` and SOP-QA-012. None if it names nothing so.

    Examples
    --------
    >>> from setselect import match_words
    >>> texts = ["Hanoi lies on the Red River.", "The Nile is a river."]
    >>> words = match_words("Which river flows through Hanoi?", texts)
    >>> words.covered.round(2).tolist()
    [[0.0, 0.44, 0.0, 0.0, 0.44], [0.0, 0.47, 0.0, 0.0, 0.0]]
    >>> words.weights.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.69]
    """
    check_strings(texts, "texts")
    return match_split_words(as_questions(question), list(map(Text, texts)))


def match_split_words(questions: Sequence[str], texts: Sequence[Text], weigh: Weigh | None = None) -> Parts:
    """:func:`match_words` for texts that may have been split already; the arrays are read-only.

    ``weigh`` gives the inverse document frequencies of terms in the corpus, by which their weights are multiplied.
    """
    question = Text(" ".join(questions))
    column = {term: j for j, term in enumerate(list_terms(question))}
    n, m = len(texts), len(column)
    columns: dict[str, list[int]] = defaultdict(list)
    for term, forms in find_spellings(column, texts).items():
        for form in forms:
            columns[form].append(column[term])
    lengths, places = np.zeros(n), []
    for row, text in enumerate(texts):
        lengths[row] = len(text.words)
        places += [row * m + j for term in filter(columns.__contains__, text.terms) for j in columns[term]]
    f = np.bincount(np.array(places, np.int64), minlength=n * m).reshape(n, m).astype(np.float64)
    for term in set(column).intersection(question.characters):
        f[:, column[term]] = [text.characters.count(term) for text in texts]
    in_texts = np.count_nonzero(f, axis=0)
    weights = np.log1p((n - in_texts + 0.5) / (in_texts + 0.5))
    weights[(in_texts == 0) | (in_texts == n)] = 0.0
    if weigh is not None:
        weights *= weigh(list(column))
    # If all texts are empty, the mean is 0, and so is f.
    mean_length = lengths.sum() / max(n, 1) or 1.0
    covered = f / (f + K1 * (1 - B + B * lengths / mean_length)[:, None])
    parts = Parts(read_only(covered), read_only(weights))
    if not (phrases := list_exact(question)):
        return parts
    spaced = [f" {' '.join(text.words)} " for text in texts]
    exact = np.array([f" {phrase} " in text for text in spaced for phrase in phrases], np.bool_)
    return parts._replace(exact=read_only(exact.reshape(n, len(phrases))))


def find_spellings(words: Iterable[str], texts: Iterable[Text]) -> dict[str, list[str]]:
    """What the texts may write for each word."""
    accented = group_accented(set().union(*(text.accented for text in texts)))
    return {word: list_spellings(word, accented) for word in words}


def list_exact(question: Text) -> list[str]:
    """What a question names exactly, in the words of a text: identifiers and quoted strings.

    >>> list_exact(Text('Do E4711 and get_user fail with "out of memory" since the 2020s, as in SOP-QA-012?'))
    ['out of memory', 'e4711', 'get_user', 'sop qa 012']
    """
    named = [next(filter(None, found)) for found in _QUOTED.findall(question.text)]
    for found in _JOINED.findall(question.text):
        named += [found] if _CODE.match(found) else filter(_IDENTIFIER.search, re.findall(r"\w+", found))
    return [phrase for phrase in dict.fromkeys(" ".join(split_words(name)) for name in named) if phrase]


def list_terms(question: Text) -> list[str]:
    """The different terms of a question, in the order of the parts of :func:`match_words`."""
    return list(dict.fromkeys(question.terms))


def as_questions(question: str | Sequence[str]) -> tuple[str, ...]:
    """The question and its sub-questions, checked."""
    questions = [question] if isinstance(question, str) else question
    if not isinstance(questions, Sequence) or not all(isinstance(text, str) for text in questions):
        raise InvalidInputError(f"question must be a string or a list of strings, got {quoted(question)}")
    return tuple(questions)


def check_strings(values: Sequence[Any], what: str, allowed: tuple[type, ...] = (str,)) -> None:
    """Refuse one string in place of several, and a row that is none."""
    if isinstance(values, str):
        raise InvalidInputError(f"{what} must be a sequence of strings, one for each candidate, got {quoted(values)}")
    for row, value in enumerate(values):
        if not isinstance(value, allowed):
            raise InvalidInputError(f"{what}: row {row} is {quoted(value)}, which is not a string")


def split_clauses(text: str) -> list[str]:
    """The clauses of at least three words, in their order; none if there are fewer than two.

    Of more than eight only the first four and the last four.

    >>> split_clauses("Find flights to Oslo, and tell me what the weather is there")
    ['Find flights to Oslo', 'tell me what the weather is there']
    >>> split_clauses("What is the weather in Oslo?")
    []
    """
    lines = "\n".join(" ".join(line.split()) for line in text.splitlines())
    parts = (part.strip(" ,.;:?!") for part in _BETWEEN_CLAUSES.split(lines))
    clauses = [part for part in parts if len(split_words(part)) >= FEWEST_WORDS]
    if len(clauses) > MOST_CLAUSES:
        half = MOST_CLAUSES // 2
        clauses = clauses[:half] + clauses[-half:]
    return clauses if len(clauses) > 1 else []
