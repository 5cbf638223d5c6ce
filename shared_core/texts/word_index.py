"""An index of words over many texts: which of them have the words of a question, ranked by BM25."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, compress, filterfalse, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import import_library
from .fold import group_accented, list_spellings
from .words import Text, check_strings


class WordIndex:
    """An index for BM25 in Lucene's variant, with k1 = 1.5 and b = 0.75, as bm25s has it. It never changes.

    The terms are those of :func:`match_words` but for English stop words, and each character of the scripts that are
    split into pairs. There is no stemming. Texts that an ``earlier`` index has are not split again.
    """

    def __init__(self, texts: Sequence[str], earlier: WordIndex | None = None) -> None:
        check_strings(texts, "texts")
        self._stop_words = frozenset(import_library("bm25s.stopwords", "words").STOPWORDS_EN)
        self.texts = tuple(texts)
        vocabulary: dict[str, int] = {} if earlier is None else dict(earlier._vocabulary)
        split = {} if earlier is None else dict(zip(earlier.texts, earlier._rows, strict=True))
        for text in [text for text in dict.fromkeys(self.texts) if text not in split]:
            words = Text(text)
            terms = (term for term in (*words.terms, *words.characters) if term not in self._stop_words)
            split[text] = np.array([vocabulary.setdefault(term, len(vocabulary)) for term in terms], np.int32)
        # The numbers of the terms of each text. The terms that only texts of the earlier index have are left out.
        rows = [split[text] for text in self.texts]
        used = np.zeros(len(vocabulary), np.bool_)
        used[np.concatenate([np.empty(0, np.int32), *rows])] = True
        number = np.cumsum(used, dtype=np.int32) - 1
        self._rows: list[NDArray[np.int32]] = [number[terms] for terms in rows]
        self._vocabulary: dict[str, int] = {term: i for i, term in enumerate(compress(vocabulary, used))}

    def best_rows(
        self, question: str, n: int, passes: Callable[[int], bool] | None = None
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The rows of at most ``n`` texts that have a word of the question and pass, the best first, and their scores.

        Ties go to the lower row. ``passes`` is called with the rows from the best on, until ``n`` have passed.
        """
        scores = self.score(question)
        least = np.partition(scores, -n)[-n] if passes is None and n < len(scores) else 0.0
        rows = np.flatnonzero((scores >= least) & (scores > 0))
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        if passes is not None:
            rows = np.array([*islice(filter(passes, rows.tolist()), n)], np.intp)
        return rows[:n], scores[rows[:n]]

    def score(self, question: str) -> NDArray[np.float32]:
        """The BM25 score of each text, (n,)."""
        return self._score(chain.from_iterable(map(self._find_forms, Text(question).terms)))

    def score_texts(self, question: str, texts: Iterable[str]) -> NDArray[np.float32]:
        """The BM25 scores of these texts; 0 for one that the index does not have."""
        scores = np.append(self.score(question), np.float32(0))
        return scores[[self._row_of.get(text, -1) for text in texts]]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.texts)}

    def weigh(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """The inverse document frequency of each term, in any of its spellings; 0 for one that no text has."""
        forms = [[self._vocabulary[form] for form in self._find_forms(term)] for term in terms]
        holders = np.array([self._holders[ids].sum() for ids in forms], np.float64).clip(max=len(self.texts))
        return np.where(holders > 0, np.log1p((len(self.texts) - holders + 0.5) / (holders + 0.5)), 0.0)

    def prepare(self) -> Self:
        """The index itself, after it has made the matrix that the first search would make."""
        _ = self._scores
        return self

    def _find_forms(self, term: str) -> list[str]:
        """What the texts write for a term of a question; nothing for a stop word."""
        forms = [] if term in self._stop_words else list_spellings(term, self._accented)
        return [form for form in forms if form in self._vocabulary]

    def _score(self, terms: Iterable[str]) -> NDArray[np.float32]:
        """The sum over the terms, (n,). A term that occurs m times counts m times."""
        scores = np.zeros(len(self.texts), np.float32)
        by_times = defaultdict(list)
        for term, times in Counter(terms).items():
            by_times[times].append(term)
        starts, rows, values = self._scores
        for times, some in by_times.items():
            # Sums of 32 bits in this order are those of bm25s.
            part = np.zeros(len(self.texts), np.float32)
            for number in map(self._vocabulary.__getitem__, some):
                holders = slice(starts[number], starts[number + 1])
                part[rows[holders]] += values[holders]
            scores += np.float32(times) * part
        return scores

    @cached_property
    def _scores(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Where the scores of each term begin, and the rows and scores of all. A loop of Python takes seconds."""
        n, sizes = len(self.texts), np.array([*map(len, self._rows)], np.int64)
        terms = np.concatenate([np.empty(0, np.int32), *self._rows]).astype(np.int64)
        pairs, counts = np.unique(terms * n + np.repeat(np.arange(n), sizes), return_counts=True)
        terms, rows = np.divmod(pairs, max(n, 1))
        holders = np.bincount(terms, minlength=len(self._vocabulary))
        idf = np.log(1 + (n - holders + 0.5) / (holders + 0.5)).astype(np.float32)
        lengths = 1.5 * (0.25 + 0.75 * sizes / (sizes.mean() if sizes.any() else 1))
        values = idf[terms] * (counts / (lengths[rows] + counts))
        return np.concatenate([[0], np.cumsum(holders)]), rows, values.astype(np.float32)

    @cached_property
    def _accented(self) -> dict[str, list[str]]:
        return group_accented(filterfalse(str.isascii, self._vocabulary))

    @cached_property
    def _holders(self) -> NDArray[np.int64]:
        """How many texts have each term."""
        return np.diff(self._scores[0])

    def __getstate__(self) -> dict[str, Any]:
        # The matrix is made again: it is larger than all the rest.
        return {name: value for name, value in self.__dict__.items() if name != "_scores"}
