"""What a word is, and how well each text covers each word of a question: BM25's term frequency, without an index.

The formulas are those of Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond",
section 3. The candidates of one search take the place of the corpus.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._validation import quoted
from ..candidates import Parts
from ..errors import InvalidInputError

# The constants of BM25: how fast further occurrences of a word count less, and how much the length of a text counts.
K1, B = 1.2, 0.75
# Thai, Lao, Burmese and Khmer; Japanese and Chinese: scripts that put no spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
# What a word may be written with or without: soft hyphens, invisible joiners, Hebrew and Arabic vowel points, tatweel.
_OPTIONAL = re.compile(
    "[\u00ad\u200c\u200d\ufeff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+"
)
# More marks on one letter than any language has. The time of NFKC is quadratic in their number.
_MARKS = re.compile(r"([^\w\x00-\x7f]{30})[^\w\x00-\x7f]+")
# What stands between words outside of ASCII. The vowel signs of Indian scripts are no letters to Python's \w.
_BETWEEN = re.compile(r"[^\w\x00-\x7f\u0300-\u036f\u0900-\u0963\u0966-\u0dff]+")
# The same for ASCII: what is no letter, digit or underscore becomes a space. The bytes of other characters stay.
_SPACED = bytes(c if c > 127 or chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))
_ASCII = bytes(range(128))


class Text:
    """A text that is split into words once, when they are first needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """The words, case-folded."""
        return self._spaced.casefold().split()

    @cached_property
    def written(self) -> list[str]:
        """The words as they are written."""
        return self._spaced.split()

    @cached_property
    def _spaced(self) -> str:
        return space_words(self.text)


def split_words(text: str) -> list[str]:
    """The words of a text, case-folded: letters, digits and underscores between other characters.

    Scripts that put no spaces between words, such as Chinese, are split into pairs of neighbouring characters, as
    search engines do.

    >>> split_words("The FFT: numpy.fft.rfft2")
    ['the', 'fft', 'numpy', 'fft', 'rfft2']
    >>> split_words("北京大学 2024")
    ['北京', '京大', '大学', '2024']
    """
    return space_words(text).casefold().split()


def space_words(text: str) -> str:
    """The words of a text as they are written, between spaces; :func:`split_words` case-folds and splits them."""
    if not text.isascii():
        if not unicodedata.is_normalized("NFKC", text):
            text = unicodedata.normalize("NFKC", _MARKS.sub(r"\1", text))
        # A search in the few characters outside of ASCII is faster than one in the text.
        others = text.encode(errors="replace").translate(None, _ASCII).decode()
        for pattern, replacement in ((_OPTIONAL, ""), (_UNSPACED, _pairs), (_BETWEEN, " ")):
            if pattern.search(others):
                text = pattern.sub(replacement, text)
    return text.encode(errors="replace").translate(_SPACED).decode()


def _pairs(run: re.Match[str]) -> str:
    """Each pair of neighbouring characters of a run, between spaces."""
    characters = run[0]
    return f" {' '.join(map(str.__add__, characters, characters[1:])) or characters} "


def match_words(question: str | Sequence[str], texts: Sequence[str]) -> Parts:
    """The words of the question as parts that a set of texts has to cover; for :class:`Candidates`.

    How well a text covers a word is BM25's saturated term frequency f / (f + K1 (1 − B + B l / l̄)), in [0, 1): f
    counts the word in the text, l is the number of words of the text, l̄ is its mean over the texts. The weight of a
    word is its inverse document frequency log(1 + (n − m + ½) / (m + ½)), where m of the n texts contain the word. A
    word that stands in no text, or in all of them, tells no text from another: its weight is 0. So no list of stop
    words is needed.

    Parameters
    ----------
    question : str, or sequence of str
        The query in words; several, such as a question and its sub-questions, count as one with the words of all.
    texts : sequence of n str
        The texts of the candidates.

    Returns
    -------
    Parts
        With one part for each different word of the question.

    Raises
    ------
    InvalidInputError
        A question or a text is not a string; the message names the row of the text. ``texts`` is one string.

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


def match_split_words(questions: Sequence[str], texts: Sequence[Text]) -> Parts:
    """:func:`match_words` for texts that may have been split already; the arrays are read-only."""
    column = {word: j for j, word in enumerate(dict.fromkeys(split_words(" ".join(questions))))}
    n, m = len(texts), len(column)
    lengths, places = np.ones(n), []
    is_of_question = column.__contains__
    for row, text in enumerate(texts):
        lengths[row] = len(text.words) or 1
        places += [row * m + column[word] for word in filter(is_of_question, text.words)]
    f = np.bincount(np.array(places, np.int64), minlength=n * m).reshape(n, m).astype(np.float64)
    in_texts = np.count_nonzero(f, axis=0)
    weights = np.log1p((n - in_texts + 0.5) / (in_texts + 0.5))
    weights[(in_texts == 0) | (in_texts == n)] = 0.0
    covered = f / (f + K1 * (1 - B + B * lengths / (lengths.sum() / max(n, 1)))[:, None])
    covered.flags.writeable = weights.flags.writeable = False
    return Parts(covered, weights)


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
