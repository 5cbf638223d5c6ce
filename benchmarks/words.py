"""What a word is: how much each rule of splitting texts adds to the default selection.

The tasks of benchmarks/regimes.py with all-MiniLM-L6-v2, whose vectors that script keeps in .cache/. All figures are of
the development half of the questions, because they chose the rules. A run takes a few minutes.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes_methods import Search, search_for
from benchmarks.regimes_tasks import COMPANIES, GROUPS, REGIMES, SEED, Regime, embed_regime, is_development
from shared_core import Candidates, Coverage
from shared_core.candidates import Parts
from shared_core.texts.words import K1, B

PAGE = "words.md"
# A text's terms: a word of the question is covered by the texts that have an equal term.
Split = Callable[[str], list[str]]

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
# A run of capitals before a capital that begins a word, a word, a run of capitals, a number: HTTP, Server, MAX, 2.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MARKUP = re.compile(r"\]\([^()\s]*\)|<[^<>\n]{1,200}>|&[a-z]{2,8};|\\(?=[^\w\s])|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")


# --- what a word is -------------------------------------------------------------------------------


def plain_words(text: str) -> list[str]:
    """Letters, digits and underscores between other characters, as they are written: the rule until version 0.4."""
    text = unicodedata.normalize("NFKC", text)
    pairs = _UNSPACED.sub(lambda run: f" {' '.join(map(str.__add__, run[0], run[0][1:])) or run[0]} ", text)
    return re.findall(r"[\w\u0300-\u036f\u0900-\u0dff]+", pairs)


def casefolded(text: str) -> list[str]:
    return [word.casefold() for word in plain_words(text)]


def with_parts(text: str) -> list[str]:
    """Each word, and after an identifier its parts: ``getUserById``, ``get_user_by_id``."""
    found = []
    for word in plain_words(text):
        found.append(word.casefold())
        if "_" in word or re.search("[a-z][A-Z]", word):
            parts = _PART.findall(word)
            found += [part.casefold() for part in parts] if len(parts) > 1 else []
    return found


def without_accents(text: str) -> list[str]:
    return with_parts("".join(c for c in unicodedata.normalize("NFD", text) if not "\u0300" <= c <= "\u036f"))


def without_markup(text: str) -> list[str]:
    """:func:`with_parts` without the targets of links, tags, entities, backslashes, and underscores of emphasis."""
    return with_parts(_MARKUP.sub(" ", text))


def by(form: Callable[[str], str]) -> Split:
    """:func:`with_parts`, with one form for the words that are to count as equal."""
    return lambda text: list(map(form, with_parts(text)))


def singular(word: str) -> str:
    """Without the s of an English plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


@cache
def stem(word: str) -> str:
    from snowballstemmer import stemmer

    return str(stemmer("english").stemWord(word))


BEFORE, PARTS, STEMS = "letters, digits, underscores", "+ parts of identifiers", "stemmer of English"
SPLITS: dict[str, Split] = {
    BEFORE: casefolded,
    PARTS: with_parts,
    "without markup": without_markup,
    "without accents": without_accents,
    "plural s": by(singular),
    "first six letters": by(lambda word: word[:6]),
    "first five letters": by(lambda word: word[:5]),
    STEMS: by(stem),
}


def match_terms(question: Sequence[str], texts: Sequence[Sequence[str]]) -> Parts:
    """:func:`shared_core.match_words` for a question and texts that have been split."""
    column = {term: j for j, term in enumerate(dict.fromkeys(question))}
    f = np.zeros((len(texts), len(column)))
    for row, terms in enumerate(texts):
        for term in filter(column.__contains__, terms):
            f[row, column[term]] += 1
    lengths, n, m = np.array([len(terms) or 1 for terms in texts]), len(texts), np.count_nonzero(f, axis=0)
    weights = np.where((m == 0) | (m == n), 0.0, np.log1p((n - m + 0.5) / (m + 0.5)))
    return Parts(f / (f + K1 * (1 - B + B * lengths / lengths.mean())[:, None]), weights)


# --- measuring ------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """Points, the mean over k and the questions of one half of a task: of similarity, and what each split adds."""

    similarity: float
    added: dict[str, float]


def measure(regime: Regime, splits: dict[str, Split]) -> Measured:
    regime = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    vectors, queries = embed_regime(regime)
    cached = {name: cache(split) for name, split in splits.items()}
    worth: dict[str, list[float]] = {name: [] for name in ("similarity", *splits)}
    for case, query in zip(regime.cases, queries, strict=True):
        search = search_for(regime, case, query, vectors)
        # Similarity and the default are greedy: the first k of a larger set are the set of k.
        picks = {"similarity": search.rows[: max(regime.ks)].tolist()}
        for name, split in cached.items():
            picks[name] = select_by_default(search, split, max(regime.ks))
        for name, rows in picks.items():
            worth[name].append(float(np.mean([case.worth(rows[:k]) for k in regime.ks])))
    means = {name: 100 * float(np.mean(values)) for name, values in worth.items()}
    base = means.pop("similarity")
    return Measured(base, {name: mean - base for name, mean in means.items()})


def select_by_default(search: Search, split: Split, k: int) -> list[int]:
    words = match_terms(split(search.question), [split(text) for text in search.texts])
    candidates = Candidates(search.query, search.vectors, words=words, references=search.references)
    rows: list[int] = search.rows[Coverage().select(candidates, k).indices].tolist()
    return rows


# --- the page -------------------------------------------------------------------------------------


def summary_table(measured: dict[str, Measured], splits: dict[str, Split]) -> str:
    """For each split the mean over the kinds of corpora and questions, and the lowest figure of a task."""
    families = [[name for name in names if name in measured] for names in GROUPS.values()]
    companies = [name for name in COMPANIES if name in measured]
    rows = []
    for split in splits:
        added = {name: one.added[split] for name, one in measured.items()}
        means = [np.mean([added[name] for name in names]) for names in families if names]
        of_companies = [added[name] for name in companies]
        others = [value for name, value in added.items() if name not in companies]
        worst = min(added, key=added.__getitem__)
        figures = (np.mean(means), np.mean(of_companies), np.mean(others))
        rows.append([split, *(f"{figure:+.2f}" for figure in figures), f"{added[worst]:+.1f}: {worst}"])
    return table(["a word is", "mean of the families", "documents of companies", "the other tasks", "lowest"], rows)


def task_table(measured: dict[str, Measured], splits: dict[str, Split]) -> str:
    rows = [
        [name, f"{one.similarity:.1f}", *(f"{one.added[split]:+.1f}" for split in splits)]
        for name, one in measured.items()
    ]
    return table(["task", "similarity", *splits], rows)


def blocks(measured: dict[str, Measured], splits: dict[str, Split]) -> Iterator[Block]:
    files = [file for name in measured for file in REGIMES[name][1]]
    yield facts(files, ["numpy", *PACKAGES[MINILM]], SEED)
    yield summary_table(measured, splits)
    yield task_table(measured, splits)


def main() -> None:
    options = parser(__doc__, PAGE)
    options.add_argument("--tasks", nargs="*", choices=REGIMES, help="only these tasks; no page is written")
    options = options.parse_args()
    splits = dict(SPLITS)
    if find_spec("snowballstemmer") is None:
        skip(f"{STEMS}: pip install snowballstemmer")
        del splits[STEMS]
    if options.tasks:
        skip("the other tasks")
    measured = {}
    for name, (make, files) in REGIMES.items():
        if name in (options.tasks or REGIMES) and is_there(*files):
            measured[name] = measure(make(), splits)
            say(name)
    if measured:
        publish(PAGE, blocks(measured, splits), options.write)


if __name__ == "__main__":
    main()
