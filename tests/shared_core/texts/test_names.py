"""What a text is called, and the names that stand in a text. The doctests of the module show what a run of words is."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setselect import read_name
from shared_core.texts.names import capitalised_runs, find_names, list_names
from shared_core.texts.titles import as_key
from shared_core.texts.words import Text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("\n\nOpening hours\n\nWe open at nine.", "Opening hours"),
        ("北京大学\n北京大学创立于1898年。", "北京大学"),
        ("Ann Lee is\na director.", "Ann Lee"),
        ("We open at nine.\nThen we close.", ""),
        ("Opening hours", ""),
        ("Jeffrey Porcaro (April 1, 1954) was", "Jeffrey Porcaro"),
        ("Ludwig van Beethoven's works", "Ludwig van Beethoven"),
        ("In 1912, the Republic of China was founded", "Republic of China"),
        ("Élodie Yung, born in Paris", "Élodie Yung"),
        ("Dunia is a film by Ann Lee.", ""),
        ("He met Ann Lee.", ""),
        ("Die Straße nach Berlin", ""),
        ("北京大学创立于1898年。", ""),
        ("", ""),
        (" \n#\n", ""),
        ("A " * 1000, ""),
        # Front matter, and what is none.
        ("---\nauthor: Bob Ray\ntitle: Ann Lee\n---\n\nShe was born.", "Ann Lee"),
        ('\ufeff---\r\ntitle: "Ann Lee"\r\n---\r\nShe was born.', "Ann Lee"),
        ("+++\ntitle = 'Ann Lee'\n+++\nShe was born.", "Ann Lee"),
        ("---\nTitle: >-\n  Ann Lee\ntags: [a]\n---\n", "Ann Lee"),
        ("---\ntitle: Untitled\n---\n# Ann Lee\nShe was born.", "Ann Lee"),
        ("---\ntitle: Ann Lee\nsummary: " + "long " * 1000, "Ann Lee"),
        ("---\n\nAnn Lee was born.", "Ann Lee"),
        # HTML.
        ('<h1 class="x">Ann <em>Lee</em></h1>\n<p>She was born.</p>', "Ann Lee"),
        ("<p>She was born.</p><h1>Ann Lee</h1>", ""),
        # Lines that are marked in other ways.
        ("Single sign-on\n====\n\nYou log in once.", "Single sign-on"),
        ("Single sign-on\n---\nYou log in once.", "Single sign-on"),
        ("We open at nine.\n---\nThen we close.", ""),
        ("**Single sign-on**\n\nyou log in once.", "Single sign-on"),
        ("**Ann Lee** was born in Perth.", "Ann Lee"),
        ("**Note:**\n\nAnn Lee was born.", "Ann Lee"),
        ("## **3.2 Single sign-on** {#sso}\n\nYou log in once.", "Single sign-on"),
        ("Chapter 3: Links\n\nA link leads on.", "Links"),
        # What stands before.
        ("\ufeff# Ann Lee\n\nShe was born.", "Ann Lee"),
        ("<!-- image -->\n\n## Ann Lee\n\nShe was born.", "Ann Lee"),
        ("<!-- image -->\n\n<!-- image -->\n\nAnn Lee was born.", "Ann Lee"),
        ("![Logo](a.png)\n[![Build](b.svg)](https://x.org)\n\n# Ann Lee\nShe was born.", "Ann Lee"),
        ("#\n\n***\n\n# Ann Lee", "Ann Lee"),
        ("# Untitled\n\n# Ann Lee\n\nShe was born.", "Ann Lee"),
        ("# See also\n\nAnn Lee was born.", "Ann Lee"),
        ("\u200b \u00a0Ann Lee was born.", "Ann Lee"),
        # Markup in the first sentence.
        ("_Johan Earl_ was born in 1975.", "Johan Earl"),
        ("[Johan Earl](https://x.org/" + "x" * 300 + ") was born in 1975.", "Johan Earl"),
        ("> **Johan Earl**, an actor, was born in 1975.", "Johan Earl"),
        # Marks of direction, and other characters without a width.
        ("\u200f\u202bסדר יום\n\nהישיבה נפתחה.", "סדר יום"),
        ("\u2067جدول الأعمال\n\nافتتحت الجلسة.", "جدول الأعمال"),
        ("\u2060\u200e# Opening hours\n\nWe open.", "Opening hours"),
        ("\u200eAnn Lee was born.", "Ann Lee"),
        # A chunk that begins inside of a sentence, and a number.
        ("as the Data Retention Policy says, we keep it.", ""),
        ("and Ann Lee was born.", ""),
        ("Rule 4.5.1 does not apply.", ""),
        ("Apollo 13 was launched.", "Apollo 13"),
        ("Press Trust of India is an agency.", "Press Trust of India"),
        # Salutations and speakers.
        ("Hi Bob,\n\nlunch on Friday?", ""),
        ("Hello Ann Lee!\nlunch on Friday?", ""),
        ("Dear Ms. Lee,", ""),
        ("Liebe Frau Müller,\n\ndie Rechnung ist bezahlt.", ""),
        ("Bonjour Madame Petit,\r\nla facture est payée.", ""),
        ("Bob Roy: fine", ""),
        ("Bob Roy (10:32): fine", ""),
        ("**Bob Roy:** fine", ""),
        ("Bob Roy\n\nHe was born in 1962.", "Bob Roy"),
        ("Ann Lee, born in 1962, is a director.", "Ann Lee"),
        # White space before a text is no part of it.
        (" " * 2_500 + "Johan Earl was born in 1975.", "Johan Earl"),
        ("\n\u3000\ufeff" * 2_500 + "# Opening hours\n\nWe open at nine.", "Opening hours"),
        (" " * 2_500, ""),
    ],
)
def test_the_name_of_a_text(text: str, name: str) -> None:
    assert read_name(text) == name


def test_names_to_follow() -> None:
    texts = [
        "The film was made by Ann Lee's son in Perth on April 5, 1954. Later he met “Bob Ray” (in Rome).",
        "Ann Lee wrote A Tale of Two Cities—Dickens did not.\n\nBob Ray",
    ]
    assert find_names(texts, ["ann lee", "Rome (city)"]) == ["Perth", "Bob Ray", "A Tale of Two Cities", "Dickens"]
    assert find_names(texts, [], most=2) == ["Ann Lee", "Perth"]
    german = "Der Hund und das Haus an der Straße gehören der Kanzlerin Angela Merkel."
    assert find_names([german], []) == ["Kanzlerin Angela Merkel"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Then click on it, and see Bob Ray.", ["Bob Ray"]),
        ("Visit New York City.", ["Visit New York City"]),
        ("They use Open Society funds.", ["Open Society"]),
        ("It is by _Johan Earl_, not **Ann Lee**.", ["Johan Earl", "Ann Lee"]),
        ("It is by [Johan Earl](Other_Name.md), not <b>Ann Lee</b>.", ["Johan Earl", "Ann Lee"]),
        ("It is by Johan&nbsp;Earl.", ["Johan Earl"]),
    ],
)
def test_markup_in_texts_with_names_to_follow(text: str, names: list[str]) -> None:
    assert find_names([text], []) == names


@pytest.mark.parametrize(
    ("title", "text", "names"),
    [
        ("Hoosick, New York", "", ["Hoosick, New York", "Hoosick"]),
        ("Arsenal F.C.", "", ["Arsenal F.C.", "Arsenal"]),
        ("Robert Downey, Jr.", "", ["Robert Downey, Jr.", "Robert Downey"]),
        ("John, the king", "", ["John, the king"]),
        (" ", "Timothy James McVeigh was born in 1968.", ["Timothy James McVeigh", "Timothy McVeigh"]),
        (None, "Ludwig van Beethoven was born in 1770.", ["Ludwig van Beethoven"]),
    ],
)
def test_short_forms(title: str | None, text: str, names: list[str]) -> None:
    assert list_names([title], [Text(text)]) == [names]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Mercury (planet)", ("mercury",)),
        ("Perth (a) (b)", ("perth",)),
        ("Perth (a)（b） [c] ", ("perth",)),
        ("Perth (a) b", ("perth", "a", "b")),
        ("(1984)", ()),
        # Two letters are no name.
        ("Io", ()),
        ("李安", ()),
        ("U2", ()),
        ("max_per_source", ("max_per_source",)),
        ("a b c " * 4, tuple("abc" * 4)),
        ("a b c " * 5, ()),
        ("a" * 201, ()),
    ],
)
def test_the_words_by_which_names_are_compared(name: str, key: tuple[str, ...]) -> None:
    assert as_key(name) == key


# --- runs of capitalised words --------------------------------------------------------------------

PARTS = ["Ann", "St.", "U.S.", "of", "was", "4", "É", "大学", "’s", "'", "(", ".", "–", " ", "\n", "\n\n", "\u0301"]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(text=st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text(max_size=30))
def test_a_run_is_a_part_of_the_text(text: str) -> None:
    end = 0
    for place, _, words in capitalised_runs(text):
        assert place >= end
        assert words[0][0].isupper()
        assert not words[-1].islower()
        for word in words:
            end = text.index(word, max(place, end)) + len(word)


@pytest.mark.parametrize("capital", ["É", "Ж", "Ⅷ", "𝐀"])
def test_capitals_of_every_script_are_alike(capital: str) -> None:
    text = "Ab of A. and A.b. (Ab’s) b A-b\n\nAb"
    expected = [(place, opens, " ".join(run).replace("A", capital)) for place, opens, run in capitalised_runs(text)]
    runs = capitalised_runs(text.replace("A", capital))
    assert [(place, opens, " ".join(run)) for place, opens, run in runs] == expected
    assert len(expected) == 4


@pytest.mark.parametrize(
    "piece", ["#\n", "# None\n", "<!--", "<h1", "---\n", "![", "**", "__a", "=\n", "a\n---\n", "title:\n"]
)
@pytest.mark.parametrize("before", ["", "---\na: b\n", "# "])
def test_a_heading_is_looked_for_at_the_beginning_only(before: str, piece: str) -> None:
    start = process_time()
    assert len(read_name(before + piece * (1_000_000 // len(piece)))) <= 2_000
    # Quadratic in the length of the text: minutes.
    assert process_time() - start < 5


HOSTILE = ["A", "a", ".", "'", " ", "\n", "–", "A ", "A.", "A. ", "A of ", "\u0301", "U.S. ", "A.a", "\n.", "É "]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("before", ["", "A."])
def test_the_time_is_linear_in_the_length_of_a_text(before: str, piece: str) -> None:
    text = before + piece * (200_000 // len(piece))
    start = process_time()
    assert len(find_names([text], [])) <= 20
    # Linear: about 0.1 s. Quadratic: minutes.
    assert process_time() - start < 5
