"""The splits of benchmarks/words.py, by hand, and its tables with figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import words
from benchmarks.regimes_methods import Search
from benchmarks.words import Measured
from shared_core import match_words

IDENTIFIERS = "getUserById HTTPServer2 MAX_RETRIES fft.rfft2 Plain"
PARTS = "getuserbyid get user by id httpserver2 http server max_retries max retries fft rfft2 rfft plain"


def test_splits() -> None:
    assert words.words(IDENTIFIERS) == IDENTIFIERS.casefold().replace(".", " ").split()
    assert words.words_and_parts(IDENTIFIERS) == PARTS.split()
    assert words.words("北京大学 Sí") == ["北京", "京大", "大学", "sí"]
    assert words.without_accents("Sí, café") == ["si", "cafe"]
    assert words.without_markup("_see_ [this](http://a.b) <br> max\\_tokens &amp;") == ["see", "this", "max_tokens"]
    assert list(map(words.singular, ["cats", "gas", "class", "status"])) == ["cat", "gas", "class", "status"]


def search(question: str, texts: list[str]) -> Search:
    vectors = np.eye(len(texts))
    return Search(question, vectors.sum(axis=0), np.arange(len(texts)), vectors, texts, np.arange(0))


def test_words_of_one_form_count_as_equal() -> None:
    texts = ["a cat and a dog", "two cats", "nothing"]
    plain, expected = words.by_terms(words.words)(search("cat", texts)), match_words("cat", texts)
    assert plain.covered == pytest.approx(expected.covered)
    assert plain.weights == pytest.approx(expected.weights)
    assert words.by_terms(words.words, words.singular)(search("cat", texts)).covered.astype(bool).tolist() == [
        [True],
        [True],
        [False],
    ]


def test_parts_may_be_left_out_of_the_length_of_a_text() -> None:
    texts = ["getUserById", "user"]
    of = [by(search("user", texts)).covered[:, 0] for by in (
        words.by_terms(words.words_and_parts), words.by_terms(words.words_and_parts, length=words.words),
    )]  # fmt: skip
    # Lengths 5 and 1, with the mean 3; lengths 1 and 1.
    assert of[0] == pytest.approx([1 / (1 + 1.2 * (0.25 + 0.75 * 5 / 3)), 1 / (1 + 1.2 * 0.5)])
    assert of[1] == pytest.approx([1 / 2.2, 1 / 2.2])


def test_each_family_counts_once_in_the_mean() -> None:
    tasks = {"MetaTool": 4.0, "PrivacyQA": 2.0, "PIR": -1.0}
    measured = {name: Measured(50.0, {"the package": added}) for name, added in tasks.items()}
    row = words.summary_table(measured, {words.PACKAGE: words.Reading()}).splitlines()[2]
    assert row == "| the package | +1.00 |  | -1.0: PIR |"
