"""What a word and a name are: how much each rule of reading texts adds to the default selection.

The tasks of benchmarks/regimes.py with all-MiniLM-L6-v2, whose vectors that script keeps in .cache/. All figures are of
the development half of the questions, because they chose the rules. A run takes a few minutes.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.development import MEANS, Measured, means_of, measure
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import Method, Search
from benchmarks.regimes_tasks import REGIMES, SEED, STORED_THREE_TIMES, Picks
from shared_core import Candidates, Coverage
from shared_core.candidates import Parts, References
from shared_core.texts.fold import bare_word, strip_markup
from shared_core.texts.names import _forms_of_title, list_names
from shared_core.texts.references import find_split_references
from shared_core.texts.words import K1, B, Text, split_identifier

TASKS = REGIMES | STORED_THREE_TIMES
PAGE = "words.md"
# The terms of a text: a word of the question counts as covered by the texts that have an equal term.
Split = Callable[[str], list[str]]
Match = Callable[[Search], Parts]

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_WORD = re.compile(r"[\w\u0300-\u036f\u0900-\u0dff]+")


# --- what a word is -------------------------------------------------------------------------------


def written_words(text: str) -> list[str]:
    """Letters, digits and underscores between other characters, and pairs of characters in unspaced scripts."""
    text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(
        _UNSPACED.sub(lambda run: f" {' '.join(map(str.__add__, run[0], run[0][1:])) or run[0]} ", text)
    )


def words(text: str) -> list[str]:
    """The split before the rules, but for marks that a word may be written with or without."""
    return [word.casefold() for word in written_words(text)]


def words_and_parts(text: str) -> list[str]:
    """The words, and the parts of identifiers: ``getUserById``, ``get_user_by_id``, ``HTTPServer``, ``rfft2``."""
    return [term for word in written_words(text) for term in (word.casefold(), *split_identifier(word))]


def without_accents(text: str) -> list[str]:
    return list(map(bare_word, words(text)))


def without_markup(text: str) -> list[str]:
    return words(strip_markup(text))


def terms(text: str) -> list[str]:
    """The terms of the package."""
    return Text(text).terms


def singular(word: str) -> str:
    """Without the s of an English plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


@cache
def stem(word: str) -> str:
    from snowballstemmer import stemmer

    return str(stemmer("english").stemWord(word))


def by_terms(split: Split, form: Callable[[str], str] = str, length: Split | None = None) -> Match:
    """:func:`shared_core.match_words` with another split. Words of the same ``form`` count as equal.

    The length of a text is the number of its terms, or of what ``length`` splits it into.
    """

    @cache
    def terms_of(text: str) -> tuple[list[str], int]:
        terms = [form(term) for term in split(text)]
        return terms, len(length(text) if length else terms) or 1

    def match(search: Search) -> Parts:
        column = {term: j for j, term in enumerate(dict.fromkeys(terms_of(search.question)[0]))}
        n, lengths = len(search.texts), np.array([terms_of(text)[1] for text in search.texts])
        f = np.zeros((n, len(column)))
        for row, text in enumerate(search.texts):
            for term in filter(column.__contains__, terms_of(text)[0]):
                f[row, column[term]] += 1
        m = np.count_nonzero(f, axis=0)
        weights = np.where((m == 0) | (m == n), 0.0, np.log1p((n - m + 0.5) / (m + 0.5)))
        return Parts(f / (f + K1 * (1 - B + B * lengths / lengths.mean())[:, None]), weights)

    return match


def by_words(search: Search) -> Parts:
    return search.words


# --- what a name is -------------------------------------------------------------------------------


def by_names(search: Search) -> References:
    return search.references


def by_titles_as_they_are(search: Search) -> References:
    """Names without the rules for titles: with their site, numbers, anchors and markup. Headings are the package's."""
    titles = search.names or [""] * len(search.texts)
    read = list_names(None, search.texts)
    names = [_forms_of_title(title) if title else forms for title, forms in zip(titles, read, strict=True)]
    return find_split_references(list(map(Text, search.texts)), names, titles, None, None)


# --- the rows -------------------------------------------------------------------------------------


class Reading(NamedTuple):
    """How the words of a question and the names of texts are read."""

    words: Match = by_words
    names: Callable[[Search], References] = by_names


PACKAGE, STEMS = "the package", "the package, stemmer of English"
READINGS: dict[str, Reading] = {
    "letters, digits, underscores": Reading(by_terms(words)),
    "… parts of identifiers": Reading(by_terms(words_and_parts, length=words)),
    "… parts count for the length": Reading(by_terms(words_and_parts)),
    "… without markup": Reading(by_terms(without_markup)),
    "… without accents": Reading(by_terms(without_accents)),
    PACKAGE: Reading(),
    "the package, titles as they are": Reading(names=by_titles_as_they_are),
    "the package, no plural s": Reading(by_terms(terms, singular)),
    "the package, first six letters": Reading(by_terms(terms, lambda word: word[:6])),
    "the package, first five letters": Reading(by_terms(terms, lambda word: word[:5])),
    STEMS: Reading(by_terms(terms, stem)),
}


# --- measuring ------------------------------------------------------------------------------------


def by_default(reading: Reading) -> Method:
    """The default with another reading of the texts."""

    def select(search: Search, k: int) -> Picks:
        candidates = Candidates(
            search.query, search.vectors, words=reading.words(search), references=reading.names(search)
        )
        return search.rows[Coverage().select(candidates, k).indices].tolist()

    return select


# --- the page -------------------------------------------------------------------------------------


def summary_table(measured: dict[str, Measured], readings: dict[str, Reading]) -> str:
    rows = [[reading, *means_of(measured, reading)] for reading in readings]
    return table(["words and names are", *MEANS], rows)


def task_table(measured: dict[str, Measured], readings: dict[str, Reading]) -> str:
    rows = [
        [name, f"{one.similarity:.1f}", *(f"{one.added[reading]:+.1f}" for reading in readings)]
        for name, one in measured.items()
    ]
    return table(["task", "similarity", *readings], rows)


def blocks(measured: dict[str, Measured], readings: dict[str, Reading]) -> Iterator[Block]:
    files = [file for name in measured for file in TASKS[name][1]]
    yield facts(files, ["numpy", *PACKAGES[MINILM]], SEED)
    yield summary_table(measured, readings)
    yield task_table(measured, readings)


def main() -> None:
    options = parser(__doc__, PAGE)
    options.add_argument("--tasks", nargs="*", choices=TASKS, help="only these tasks; no page is written")
    arguments = options.parse_args()
    readings = dict(READINGS)
    if find_spec("snowballstemmer") is None:
        skip(f"{STEMS}: make bench installs snowballstemmer")
        del readings[STEMS]
    if arguments.tasks:
        skip("the other tasks")
    measured, methods = {}, {name: by_default(reading) for name, reading in readings.items()}
    for name, (make, files) in TASKS.items():
        if name in (arguments.tasks or TASKS) and is_there(*files):
            measured[name] = measure(make(), methods)
            say(name)
    if measured:
        publish(PAGE, blocks(measured, readings), arguments.write)


if __name__ == "__main__":
    main()
