"""An index of words over many texts: which of them have the words of a question, ranked by BM25 (by bm25s)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import compress, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._libraries import import_library
from .words import Text, bare_word, check_strings, find_accented_forms

# ``track(texts)`` yields the texts that have to be split, and may show the progress.
Track = Callable[[Sequence[str]], Iterable[str]]


class WordIndex:
    """An index for BM25 in Lucene's variant, with k1 = 1.5 and b = 0.75, as bm25s has it. It never changes.

    The terms are those of :func:`match_words` but for English stop words, and each character of the scripts that are
    split into pairs. There is no stemming. Texts that an ``earlier`` index has are not split again.
    """

    def __init__(self, texts: Sequence[str], earlier: WordIndex | None = None, track: Track = iter) -> None:
        check_strings(texts, "texts")
        stop_words = import_library("bm25s.stopwords", "words").STOPWORDS_EN
        self.texts = tuple(texts)
        vocabulary: dict[str, int] = {} if earlier is None else dict(earlier._vocabulary)
        split = {} if earlier is None else dict(zip(earlier.texts, earlier._split(), strict=True))
        for text in track([text for text in dict.fromkeys(self.texts) if text not in split]):
            words = Text(text)
            terms = (term for term in (*words.terms, *words.characters) if term not in stop_words)
            split[text] = np.array([vocabulary.setdefault(term, len(vocabulary)) for term in terms], np.int32)
        rows = [split[text] for text in self.texts]
        self._ends = np.cumsum([*map(len, rows)], dtype=np.int64)
        ids = np.concatenate([np.empty(0, np.int32), *rows])
        # The terms that only texts of the earlier index have are left out.
        used = np.bincount(ids, minlength=len(vocabulary)) > 0
        self._ids = (np.cumsum(used, dtype=np.int32) - 1)[ids]
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
        text = Text(question)
        forms, has_accents = self._accents
        # A text with a word's accented form has the word, but not where the question has accents itself.
        scores = self._score([*text.terms, *(() if text.accented else map(forms.get, text.terms))])
        if text.accented:
            # Only texts without any accents may have a word of the question without its accents.
            scores += np.where(has_accents, np.float32(0), self._score(map(bare_word, text.accented)))
        return scores

    def score_texts(self, question: str, texts: Iterable[str]) -> NDArray[np.float32]:
        """The BM25 scores of these texts; 0 for one that the index does not have."""
        scores = np.append(self.score(question), np.float32(0))
        return scores[[self._row_of.get(text, -1) for text in texts]]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.texts)}

    def weigh(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """The inverse document frequency of each term in the corpus; 0 for a term that it does not have, a stop word.

        A term without accents that the corpus has only with accents is weighed in that form.
        """
        forms = self._accents[0]
        ids = [self._vocabulary.get(term, self._vocabulary.get(forms.get(term, ""), -1)) for term in terms]
        # The last number is that of unknown terms.
        holders = np.append(self._holders, len(self.texts))[ids].astype(np.float64)
        return np.where(np.array(ids) < 0, 0.0, np.log1p((len(self.texts) - holders + 0.5) / (holders + 0.5)))

    def prepare(self) -> Self:
        """The index itself, after it has made the matrix that the first search would make."""
        if self._vocabulary:
            _ = self._bm25
        return self

    def _score(self, terms: Iterable[str | None]) -> NDArray[np.float32]:
        """The sum over the terms, (n,). A term that occurs m times counts m times."""
        scores = np.zeros(len(self.texts), np.float32)
        by_times = defaultdict(list)
        for term, times in Counter(term for term in terms if term in self._vocabulary).items():
            by_times[times].append(term)
        for times, some in by_times.items():
            scores += np.float32(times) * self._bm25.get_scores(some)
        return scores

    @cached_property
    def _bm25(self) -> Any:
        """The matrix of scores. bm25s cannot make one without a word, and none is needed."""
        matrix = import_library("bm25s", "words").BM25()
        corpus = [ids.tolist() for ids in self._split()], self._vocabulary
        matrix.index(corpus, create_empty_token=False, show_progress=False)
        return matrix

    @cached_property
    def _accents(self) -> tuple[dict[str, str], NDArray[np.bool_]]:
        """The accented form of each word without accents that has one, and which texts have accents, (n,)."""
        accented = np.array([bare_word(term) != term for term in self._vocabulary], np.bool_)
        has_accents = np.zeros(len(self.texts), np.bool_)
        has_accents[np.searchsorted(self._ends, np.flatnonzero(accented[self._ids]), "right")] = True
        return find_accented_forms(compress(self._vocabulary, accented)), has_accents

    @cached_property
    def _holders(self) -> NDArray[np.int64]:
        """How many texts have each term."""
        return np.bincount(
            np.concatenate([np.empty(0, np.int32), *map(np.unique, self._split())]), minlength=len(self._vocabulary)
        )

    def _split(self) -> list[NDArray[np.int32]]:
        """The numbers of the terms of each text."""
        return np.split(self._ids, self._ends[:-1]) if self.texts else []

    def __getstate__(self) -> dict[str, Any]:
        # The matrix is made again: it is larger than all the rest.
        return {name: value for name, value in self.__dict__.items() if name != "_bm25"}
