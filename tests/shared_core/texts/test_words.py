"""The words of a question: how texts are split, and BM25's numbers against a slow reference."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setselect import InvalidInputError, match_words, select
from shared_core.texts.words import MOST_CLAUSES, Text, list_exact, split_clauses, split_words
from tests import oracles

quick = settings(deadline=None, derandomize=True, max_examples=60)
# Few words, so that texts share some of them, and some stand in all texts.
WORDS = st.lists(st.sampled_from(["a", "b", "c", "the", "fft", "x_1", "42"]), max_size=12)


def scores(question: str, texts: list[str]) -> Any:
    """What BM25 gives each text."""
    words = match_words(question, texts)
    return words.covered @ words.weights


# --- BM25 -----------------------------------------------------------------------------------------


@quick
@given(question=WORDS, texts=st.lists(WORDS, min_size=1, max_size=8))
def test_the_numbers_are_those_of_bm25(question: list[str], texts: list[list[str]]) -> None:
    found = match_words(" ".join(question), [", ".join(text).upper() for text in texts])
    covered, weights = oracles.bm25_words(question, texts)
    np.testing.assert_allclose(found.covered, covered, rtol=1e-12)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-12)


@quick
@given(question=WORDS, texts=st.lists(WORDS, min_size=1, max_size=8), data=st.data())
def test_the_order_of_the_question_and_a_repeated_word_change_nothing(
    question: list[str], texts: list[list[str]], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(question)) + question[:3]
    joined = [" ".join(text) for text in texts]
    np.testing.assert_allclose(scores(" ".join(other), joined), scores(" ".join(question), joined), rtol=1e-12)


@quick
@given(question=st.text(max_size=30), texts=st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_any_text_gives_numbers_in_range(question: str, texts: list[str]) -> None:
    found = match_words(question, texts)
    assert found.covered.shape == (len(texts), len(found.weights))
    assert ((found.covered >= 0) & (found.covered < 1)).all()
    assert (found.weights >= 0).all()
    in_texts = (found.covered > 0).sum(axis=0)
    assert not found.weights[(in_texts == 0) | (in_texts == len(texts))].any()


@pytest.mark.parametrize("question", ["", " \n", "?!... —", "\ud800"])
@pytest.mark.parametrize("texts", [["", "a b"], ["?", "!"], ["one"], []])
def test_a_question_without_words_and_texts_without_words(question: str, texts: list[str]) -> None:
    found = match_words(question, texts)
    assert found.covered.shape == (len(texts), 0)
    assert match_words("one", texts).covered.shape == (len(texts), 1)
    assert not match_words("one", texts).weights.any()


def test_an_empty_text_has_length_0() -> None:
    # l = 4, 0 and 2, with mean 2.
    covered = match_words("a river", ["river one two three", "", "one two"]).covered
    np.testing.assert_allclose(covered, [[0, 1 / (1 + 1.2 * (0.25 + 0.75 * 4 / 2))], [0, 0], [0, 0]], rtol=1e-12)


def test_many_texts_and_a_long_one() -> None:
    texts = ["a red apple"] * 9_999 + ["green " * 200_000 + "pear"]
    assert scores("a green pear", texts).argmax() == 9_999
    long_question = " ".join(map("".join, product("abcdefghijklmn", repeat=3)))
    assert match_words(long_question, ["abc cba"] * 2 + ["aaa"]).covered.shape == (3, 2_744)


def test_no_text_takes_time_that_is_quadratic_in_its_length() -> None:
    assert split_words("e" + "\u0301\u0323" * 100_000 + " Seine")[-1] == "seine"
    assert split_words("e" + "\u0301\uff9e" * 100_000 + " Seine")[-1] == "seine"
    assert split_words("—" * 100_000 + "Seine, " + "★" * 40 + "Loire") == ["seine", "loire"]


# --- languages and identifiers --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("numpy.fft.rfft2()", ["numpy", "fft", "rfft2"]),
        ("max_per_source=2", ["max_per_source", "2"]),
        ("v2.4.1", ["v2", "4", "1"]),
        ("don’t stop—now", ["don", "t", "stop", "now"]),
        ("\ud800lone\udfff surrogate", ["lone", "surrogate"]),
        ("हिन्दी में।", ["हिन्दी", "में"]),
        ("தமிழ், മലയാളം", ["தமிழ்", "മലയാളം"]),
        ("東京・大阪", ["東京", "大阪"]),
        ("人々", ["人々"]),
        ("茶 tea", ["茶", "tea"]),
        ("Pythonの関数fft", ["python", "の関", "関数", "fft"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "北京大学是哪一年创立的?",
            ["上海是中国的一座城市。", "清华大学位于北京。", "长城很长。", "北京大学创立于1898年。", "茶是一种饮料。"],
        ),
        ("東京タワーの高さは", ["大阪城の歴史", "富士山の高さ", "京都の寺", "東京タワーは333メートルの高さ", "名古屋"]),
        ("ประเทศไทยมีประชากรเท่าไร", ["แม่น้ำ", "ภูเขา", "อาหารญี่ปุ่น", "ประชากรของประเทศไทย", "ทะเล"]),
        ("How is fft.rfft2 normalised?", ["fft", "The fft.", "norm of rfft", "numpy.fft.rfft2(norm=None)", "a river"]),
        ("max_per_source?", ["max per source", "a source", "per", "set max_per_source=1", "max"]),
    ],
)
def test_the_words_alone_find_the_right_text(question: str, texts: list[str]) -> None:
    assert scores(question, texts).argmax() == 3
    # All vectors are equal.
    assert select([1.0, 0.0], [[1.0, 1.0]] * 5, 1, question=question, texts=texts).indices.tolist() == [3]


# --- what a question names exactly -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("Why E4711, and KB5034441?", ["e4711", "kb5034441"]),
        ("get_user, getUser or numpy.fft.rfft2()", ["get_user", "getuser", "rfft2"]),
        ("SOP-QA-012, COVID-19, X/12", ["sop qa 012", "covid 19", "x 12"]),
        ('the "Red Lamp" “Blaue Lampe” «la lampe» `a b`', ["red lamp", "blaue lampe", "la lampe", "a b"]),
        ("naïveName café_2", ["naïvename", "café_2"]),
        ('E1 and e1, "E1"', ["e1"]),
        ("the 20th get-together in 4K, 2020s, 12-month, 24/7, 3.5, and its 'end'", []),
        ('Plain Words don\'t, O\'Neil, HTTP, 北京大学, a 5" pipe, a 6" pipe, "", "?!"', []),
        ('他说"hello world"', ["hello world"]),
    ],
)
def test_identifiers_and_quoted_strings_are_named_exactly(question: str, phrases: list[str]) -> None:
    assert list_exact(Text(question)) == phrases
    exact = match_words(question, ["", *phrases, *(f"a{phrase} {phrase}0" for phrase in phrases)]).exact
    assert (exact is None) == (not phrases)
    if exact is not None:
        assert exact.tolist() == np.eye(2 * len(phrases) + 1, len(phrases), -1, bool).tolist()


def test_what_is_named_exactly_stands_word_by_word_in_a_text() -> None:
    texts = ["Error E4712.", "(E4711)", "an e 4711", "Out of the memory", "out-of\nMEMORY: E4711!", "memory, out of"]
    exact = match_words(["E4711?", 'Or "out of memory"?'], texts).exact
    assert exact is not None
    assert np.argwhere(exact).tolist() == [[1, 1], [4, 0], [4, 1]]
    assert not exact.flags.writeable
    assert match_words("「東京」", ["東京都", "京東"]).exact.tolist() == [[True], [False]]  # type: ignore[union-attr]
    assert match_words("E4711", []).exact.shape == (0, 1)  # type: ignore[union-attr]


# --- clauses of a request ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("", []),
        ("What is the weather in Oslo?", []),
        ("Compare two strings, parse a date, and pick a random element", [
            "Compare two strings", "parse a date", "pick a random element",
        ]),
        ("Book a flight to Rome and then, and also send it to Ann", ["Book a flight to Rome", "send it to Ann"]),
        ("I am in Rome. Where do I eat well? Thanks!", ["I am in Rome", "Where do I eat well"]),
        ("1. Find a hotel\n2.\tBook   a train\r\n", ["Find a hotel", "Book a train"]),
        ("Finde ein Hotel in Rom und buche einen Zug", ["Finde ein Hotel in Rom", "buche einen Zug"]),
        ("帮我查一下北京的天气，然后订一张机票。", ["帮我查一下北京的天气", "然后订一张机票"]),
        ("Salt and pepper and oil", []),
        ("Open the band of the land, please do it", ["Open the band of the land", "please do it"]),
    ],
)  # fmt: skip
def test_split_clauses(text: str, clauses: list[str]) -> None:
    assert split_clauses(text) == clauses


def test_the_beginning_and_the_end_of_a_long_text() -> None:
    numbers = [f"line number {i}" for i in range(20)]
    assert split_clauses("\n".join(numbers)) == numbers[:4] + numbers[-4:]


@pytest.mark.parametrize("piece", ["a b c, ", " and", " ", "\n", ". ", "。", "a" * 10, "a b c and "])
def test_the_time_is_linear_and_the_number_limited(piece: str) -> None:
    started = time.perf_counter()
    assert len(split_clauses(piece * 100_000)) in (0, MOST_CLAUSES)
    assert time.perf_counter() - started < 5


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "texts", "says"),
    [
        (None, ["a"], "question .*None"),
        (["a", None], ["a"], "question "),
        ("a", ["a", None], "texts: row 1 .*None"),
        ("a", ["a", b"b"], "texts: row 1 .*b'b'"),
        ("a", "ab", "texts .*'ab'"),
    ],
)
def test_what_is_no_text_is_refused(question: Any, texts: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{says}"):
        match_words(question, texts)
