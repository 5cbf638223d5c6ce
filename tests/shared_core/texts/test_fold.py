"""Texts without their markup. What the words and names of such texts are is tested in test_spellings.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.texts.fold import strip_markup
from shared_core.texts.words import Text

SIZE = 100_000
# Each would take minutes if any pattern took time that is quadratic in the length.
HOSTILE = [
    *"*_`~[](<&\\-\n",
    *("](", "<b ", "<!--", "a*", "a_", "_a ", "__a", "a-\n", "-\n", "[a]:", "\n[a]:", "[a](", "[a](b 'c", "&#1", "x`"),
    *("_ab cd ", "a-" + " " * 999, "aB", "A1", "é_", "İ", "e\u0301\u0323", "京", "強a", "<a href=", "\\_", "̈", "ё"),
]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2*3 and a*b", "2*3 and a*b"),
        ("**bold** text, *so*", "bold text, so"),
        ("un**frigging**believable", "un**frigging**believable"),
        ("**北京**大学", "北京大学"),
        ("`x = 1`", "x = 1"),
        ("_one_ and __Two__, _three four_", "one and Two, three four"),
        ("_files, __all__, a_b, a__b_", "_files, __all__, a_b, a__b"),
        ("vector<int> x; a < b and c > d", "vector<int> x; a < b and c > d"),
        ("a<br/>b<!-- c -->d", "a b d"),
        ("&lt;b&gt; &amp;amp; &#65; &unknown; &copy=1", "<b> &amp; A &unknown; &copy=1"),
        ('[a](b "c") ![d](<e>) [f](g(h)i)', "a !d f"),
        ("cells[i](x) and [j] (k)", "cells[i](x) and [j] (k)"),
        ("a\\_b \\*c\\* C:\\dir \\n", "a_b c C:\\dir \\n"),
        ("see [a][1]\n\n[1]: https://b.c/d\n\nend", "see [a][1]\n\n\n\nend"),
        ("# Title\n\n- item", "# Title\n\n- item"),
    ],
)
def test_a_text_as_a_reader_sees_it(text: str, plain: str) -> None:
    assert strip_markup(text) == plain


def test_a_line_end_inside_of_a_word() -> None:
    assert strip_markup("**Fen-**\n**wick** <u>Lu-</u>\n<u>men</u>").split() == ["Fenwick", "Lumen"]
    text = "The retire-\nment of Jean-\nLuc, twenty-\n  first; 1-\n2, end -\nof"
    assert strip_markup(text) == "The retirement of Jean-\nLuc, twentyfirst; 1-\n2, end -\nof"


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_time_that_is_quadratic_in_its_length(piece: str) -> None:
    text = Text(piece * (SIZE // len(piece)))
    assert len(text.words) <= SIZE
    assert len(text.terms) <= 4 * SIZE


@settings(deadline=None, derandomize=True, max_examples=200)
@given(text=st.text(alphabet=st.sampled_from("ab_AB1*`~[]()<>&;#\\-\n é京"), max_size=60))
def test_markup_adds_no_words(text: str) -> None:
    """Every word without markup is made of letters that the text has, in their order."""
    remaining = iter(text.casefold())
    for letter in "".join(Text(text).plain.split()).casefold():
        if letter.isalnum() and not ("&" in text and ";" in text):
            assert letter in remaining
