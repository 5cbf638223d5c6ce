"""Texts that name each other: what counts as the name of another text, what it weighs, and hostile texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setselect import InvalidInputError, InvalidParameterError, find_references
from shared_core.candidates import REFERENCE_KINDS
from shared_core.texts import as_texts
from tests import oracles

quick = settings(deadline=None, derandomize=True, max_examples=60)
# Few words: names that stand in other names, and words that are written in two ways.
WORDS = ["New", "York", "City", "of", "new", "city", "CITY", "Rush", "rush", "fft_2", "is"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=10)
NAME = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)
CORPUS = st.lists(st.tuples(TEXT, NAME), min_size=1, max_size=7)


def refer(*arguments: Any, **named: Any) -> Any:
    """The array of :func:`find_references`."""
    return find_references(*arguments, **named).strength


def found(corpus: list[tuple[list[str], list[str]]]) -> Any:
    """The references of texts and names that are split."""
    return refer([", ".join(text) for text, _ in corpus], [" ".join(name) for _, name in corpus])


def names_it(text: str, name: str) -> bool:
    """Whether a text names another one, which only this text does."""
    return bool(refer([text, "–", "–", "–"], ["A text", name, "Another text", "A third one"])[0, 1])


# --- the numbers ----------------------------------------------------------------------------------


@quick
@given(corpus=CORPUS)
def test_the_numbers_are_those_of_the_definition(corpus: list[tuple[list[str], list[str]]]) -> None:
    expected = oracles.references([text for text, _ in corpus], [name for _, name in corpus])
    np.testing.assert_allclose(found(corpus), expected, rtol=1e-6)


@quick
@given(corpus=CORPUS, data=st.data())
def test_the_order_changes_nothing_and_copies_are_alike(
    corpus: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    references = found(corpus)
    order = data.draw(st.permutations(range(len(corpus))))
    np.testing.assert_array_equal(found([corpus[i] for i in order]), references[np.ix_(order, order)])
    twice, n = found(corpus * 2), len(corpus)
    np.testing.assert_array_equal(twice[:n], twice[n:])
    np.testing.assert_array_equal(twice[:, :n], twice[:, n:])


@quick
@given(corpus=CORPUS)
def test_a_text_that_names_itself_changes_nothing(corpus: list[tuple[list[str], list[str]]]) -> None:
    # A name in lower case would show that it is an ordinary word.
    itself = [([*text, "und", *name] if name[0][0].isupper() else text, name) for text, name in corpus]
    np.testing.assert_array_equal(found(itself), found(corpus))


@quick
@given(corpus=CORPUS)
def test_a_name_that_stands_in_every_text_changes_nothing(corpus: list[tuple[list[str], list[str]]]) -> None:
    product = "Acme Desk"
    texts, names = [" ".join(text) for text, _ in corpus], [" ".join(name) for _, name in corpus]
    before = refer([*texts, "About us"], [*names, product])
    after = refer([*(f"{text} is {product}." for text in texts), "About us"], [*names, product])
    np.testing.assert_array_equal(before, after)
    assert not after[:, -1].any()


@pytest.mark.parametrize(
    ("n", "naming", "weight"),
    [(2, 1, 0), (3, 1, 1), (3, 2, 0), (5, 1, 1), (5, 2, 0.58), (5, 3, 0.30), (5, 4, 0), (50, 5, 0.63), (50, 45, 0.03)],
)
def test_what_a_name_weighs(n: int, naming: int, weight: float) -> None:
    texts = ["Ann Lee acts"] * naming + [""] * (n - naming)
    references = refer(texts, [f"Text{i}" for i in range(n - 1)] + ["Ann Lee"])
    np.testing.assert_allclose(references[:naming, -1], weight, atol=0.005)
    assert not references[naming:].any()


# --- what is a name -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hemingway's novels", "Hemingway"),
        ("born in PARIS, raised on Mercury.", "Mercury (planet)"),
        ("the GREAT Gatsby", "The Great Gatsby"),
        ("the Great Gatsby", "THE GREAT GATSBY"),
        ("Paris, Emmanuel MACRON", "Emmanuel Macron"),
        ("near San Francisco", "SAN FRANCISCO"),
        ("a new iPhone 15", "iPhone 15"),
        ("sold by eBay", "eBay"),
        ("painted by van Gogh. Van Gogh died.", "van Gogh"),
        ("Vincent Van Gogh", "Vincent van Gogh"),
        ("met Charles de Gaulle", "Charles de Gaulle"),
        ("read Lord Of The Rings", "Lord of the Rings"),
        ("calls std::sort here", "std::sort"),
        ("and np.linalg norm_2", "np.linalg norm_2"),
        ("ნინო რამიშვილი ცეკვავდა", "ნინო რამიშვილი"),
        ("by J.K. Rowling", "J. K. Rowling"),
        ("in der Mozartstrasse 3", "Mozartstraße 3"),
        ("a hotel in Zu\u0308rich", "Zürich"),
        ("calls numpy.fft.rfft2(a)", "numpy.fft.rfft2"),
        ("calls rfft2", "rfft2"),
        ("set max_per_source=2", "max_per_source"),
        ("她毕业于北京大学。", "北京大学"),
        ("زار محمد القاهرة أمس", "القاهرة"),
        ("Она живёт в городе Санкт-Петербург", "Санкт-Петербург"),
        # Short forms.
        ("a town near Hoosick", "Hoosick, New York"),
        ("he joined Arsenal in 1922", "Arsenal F.C."),
        ("Robert Downey won", "Robert Downey, Jr."),
    ],
)
def test_a_text_names_another(text: str, name: str) -> None:
    assert names_it(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("An introduction. Introduction to it", "Introduction"),
        ("use numpy", "numpy"),
        # Headings, and names with other capitals.
        ("See Model names below", "Model names"),
        ("To get started, get started", "Get started"),
        ("Get Started", "get started"),
        ("to get started", "Get Started"),
        ("Single sign-on is on", "Single sign-on"),
        ("the great gatsby", "The Great Gatsby"),
        ("an apple pie", "APPLE PIE"),
        ("Iphone 15", "iPhone 15"),
        ("the the", "The The"),
        ("PARIS", "Paris"),
        ("Parisian", "Paris"),
        ("He saw U2 in 1984.", "U2"),
        ("He saw U2 in 1984.", "1984"),
        ("John was crowned", "John, King of England"),
        ("William the Conqueror", "William G."),
        ("word " * 13, "word " * 13),
        ("大学", "北京大学"),
        ("?!", "?!"),
        ("x", " " * 300 + "x"),
        # Other accents.
        ("ở Hã Nọi", "Hà Nội"),
        ("Lán Anh đến", "Làn Anh"),
        ("Mélanie Laurent", "Mèlanie Laurent"),
        ("born in zurich", "Zürich"),
        ("born in ZURICH", "Zürich"),
        ("हिन्दु में", "हिन्दी"),
        ("東京ばし", "東京はし"),
    ],
)
def test_what_is_no_name(text: str, name: str) -> None:
    assert not names_it(text, name)


def test_names_that_differ_by_their_accents_are_told_apart_where_the_text_has_them() -> None:
    names = ["A text", "Làn Anh", "Lán Anh", "Lan Anh", "Other"]
    for text, rows in (("gặp Lán Anh", [2, 3]), ("gặp Lạn Anh", [3]), ("she met Lan Anh", [1, 2, 3])):
        assert np.flatnonzero(refer([text, "–", "–", "–", "–"], names)[0]).tolist() == rows


def test_titles_of_a_site_are_named_without_it() -> None:
    texts = ["It was made after Heat.", "", "", "a"]
    names = ["Inception | FilmBase", "Heat | FilmBase", "Alien | FilmBase", "Paris | Texas"]
    assert np.argwhere(refer(texts, names)).tolist() == [[0, 1]]
    assert np.argwhere(refer(["See the page Heat | FilmBase", *texts[1:]], names)).tolist() == [[0, 1]]
    assert not refer(["Paris", "", "", "a"], names).any()


def test_the_longest_name_counts() -> None:
    texts = ["She left New York City.", "She left New York.", "", "", ""]
    references = refer(texts, ["One text", "Two texts", "New York", "New York City", "York City"])
    assert np.argwhere(references).tolist() == [[0, 3], [1, 2]]


def test_a_short_form_leads_to_the_text_that_has_it_as_its_name() -> None:
    texts = ["He sailed from Waterford.", "Waterford is a town", "Waterford is a port", ""]
    names = ["A sailor", "Waterford, New York", "Waterford", "Other"]
    assert np.argwhere(refer(texts, names)).tolist() == [[0, 2]]


def test_parts_of_one_document_do_not_name_each_other() -> None:
    texts = ["Ann Lee was born", "Ann Lee died", "a film by Ann Lee", "", ""]
    references = refer(texts, ["Ann Lee", "ANN LEE (director)", "Perth", "Rome", None])
    assert np.argwhere(references).tolist() == [[2, 0], [2, 1]]
    assert references[2, 0] == references[2, 1] == 1
    numbers = find_references(texts, ["Ann Lee", "ANN LEE (director)", "Perth", None, None]).documents[0]
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 4


def test_names_are_read_where_titles_are_missing() -> None:
    texts = ["Forbidden Ground is a film by Ann Lee.", "Ann Mary Lee (1962) is a director.", "a", "b"]
    for names in (None, [None, "", " ", None], ["Forbidden Ground", None, None, None]):
        assert np.argwhere(refer(texts, names)).tolist() == [[0, 1]]


# --- links ----------------------------------------------------------------------------------------


def test_links_replace_the_words() -> None:
    texts, names = ["Ann Lee", "Bob Ray", "Ann Lee", ""], ["A text", "Ann Lee", "Bob Ray", "Perth, Ontario"]
    links: list[Any] = [[7, "https://x.org/perth", "nowhere", ("a", 1)], ["ann lee", "perth"], None, []]
    keys: list[list[Any]] = [[], [("a", 1)], [7], ["https://x.org/perth"]]
    references = refer(texts, names, links=links, keys=keys)
    assert np.argwhere(references).tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 1]]
    # Without a list the words count.
    np.testing.assert_array_equal(refer(texts, names, links=[None] * 4), refer(texts, names))


@pytest.mark.parametrize("title", ["U2", "1984", "Up (film)", "word " * 30])
def test_a_link_may_be_a_title_that_is_not_looked_for_in_texts(title: str) -> None:
    references = refer([f"It names {title}", "", ""], ["A text", title, "Other"], links=[[title], [], []])
    assert np.argwhere(references).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("link", "key", "leads"),
    [
        ("https://x.org/a", "https://x.org/a/", True),
        ("https://x.org/a#part", "https://x.org/a", True),
        ("https://x.org/a/#part", "https://x.org/a#other", True),
        ("HTTPS://X.org/a", "https://x.ORG/a", True),
        ("https://x.org", "https://x.org/#top", True),
        ("https://x.org/a?b=1#c", "https://x.org/a?b=1", True),
        ("https://x.org/A", "https://x.org/a", False),
        ("https://x.org/a?b=1", "https://x.org/a", False),
        ("http://x.org/a", "https://x.org/a", False),
        ("a.md#1", "a.md#2", False),
        ("a/", "a", False),
        (7, "7", False),
        (("a", 1), ("a", 1), True),
    ],
)
def test_urls_are_compared_without_fragment_and_final_slash(link: Any, key: Any, leads: bool) -> None:
    references = refer(["", "", ""], [None] * 3, links=[[link], [], []], keys=[[], [key], []])
    assert np.argwhere(references).tolist() == [[0, 1]] * leads


def test_a_link_to_a_part_of_a_page_leads_to_it_or_else_to_the_page() -> None:
    keys = [[], ["https://x.org/a#one"], ["https://x.org/a#two"], []]
    for link, rows in (("https://x.org/a#two", [2]), ("https://x.org/a#three", [1, 2])):
        references = refer([""] * 4, [None] * 4, links=[[link], [], [], []], keys=keys)
        assert np.flatnonzero(references[0]).tolist() == rows


@pytest.mark.parametrize("link", ["Heat | FilmBase", "Heat", "heat", "**Heat**", "[Heat](x.md)"])
def test_a_link_may_be_a_title_with_its_site_or_without(link: str) -> None:
    names = ["Inception | FilmBase", "Heat | FilmBase", "Alien | FilmBase"]
    assert np.argwhere(refer([""] * 3, names, links=[[link], [], []])).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("See [[approval process]].", [1]),
        ("See [[Approval process|how to ask]] and [[Parental leave#Pay]].", [1, 2]),
        ("See [how to ask](https://wiki/x/approval).", [1]),
        ('See [how to ask](<https://wiki/x/approval> "Ask").', [1]),
        ("See [leave](https://wiki/x/leave_(parents)#pay).", [2]),
        ("See https://wiki/x/approval, or ask.", [1]),
        ("(https://WIKI/x/approval/)", [1]),
        ("Fixed by #17, see #4.", [3]),
        ("[![Badge](https://wiki/b.svg)](https://wiki/x/approval)", [1]),
        ("https://wiki/x/abroad#here and [[Working abroad]]", []),
        ("https://wiki/x/approvals, [[Approval]], #170, a#17, &#17; [approval process]", []),
    ],
)
def test_links_in_a_text_lead_to_what_they_call(text: str, rows: list[int]) -> None:
    names = ["Working abroad", "Approval process", "Parental leave", None, None]
    keys = [["https://wiki/x/abroad"], ["https://wiki/x/approval"], ["https://wiki/x/leave_(parents)"], [], []]
    found = find_references([text, "", "", "", ""], names, keys=keys, identifiers=[None, None, None, "17", "2.1"])
    assert np.flatnonzero(found.strength[0]).tolist() == rows
    assert found.kinds is not None
    assert (found.kinds[0, rows] == REFERENCE_KINDS.index("link")).all()


def test_of_several_versions_the_preferred_one_is_referred_to() -> None:
    texts = ["as the Leave Policy says, Section 4", "Thirty days.", "Twenty days.", "Ships.", "Doors."]
    titles = ["Handbook", "Leave Policy v2", "Leave Policy v1", "Harbour", "House"]
    read = as_texts(texts, titles, identifiers=["1", "4", "4", "8", "9"], sources=["a"] * 5, neighbours=[0, 1, 1, 3, 4])
    for prefer, row in (([0, 1, 2, 0, 0], 2), ([0, 2, 1, 0, 0], 1)):
        found = read.find_references(prefer=np.array(prefer))
        assert found is not None
        assert np.flatnonzero(found.strength[0]).tolist() == [row]
        assert np.flatnonzero(found.strength[:, row]).tolist() == [0]
    assert np.flatnonzero(read.find_references().strength[0]).tolist() == [1, 2]  # type: ignore[union-attr]


def test_a_document_does_not_link_to_itself() -> None:
    links, keys = [["b", "a"], [], ["a"]], [["a"], ["b"], []]
    assert not refer(["", "", ""], ["A Film", "A Film", "Perth"], links=links, keys=keys).any()
    assert refer(["", "", ""], ["A Film", "", "Perth"], links=links, keys=keys)[0, 1]


# --- large and hostile texts ----------------------------------------------------------------------

HOSTILE = ["A ", "A.", "A of ", "the ", "'", "“A” ", "(", "#", "\n", " ", "A-", "–", "e" + "\u0301" * 50, "Aa, ", "ß"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_time_that_is_quadratic_in_its_length(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    references = refer([text, "The The", "", ""], ["A text", text, "The " * 11, "the the the"])
    assert references.shape == (4, 4)
    assert refer([text, text]).shape == (2, 2)


def test_many_candidates() -> None:
    n = 2_000
    references = refer([f"It names Text Number{i + 1}." for i in range(n)], [f"Text Number{i}" for i in range(n)])
    np.testing.assert_array_equal(references, np.eye(n, k=1))


@quick
@given(texts=st.lists(st.text(max_size=60), max_size=5), data=st.data())
def test_any_text_gives_numbers_in_range(texts: list[str], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=len(texts), max_size=len(texts)))
    for references in (refer(texts, names), refer(texts)):
        assert references.shape == (len(texts), len(texts))
        assert ((references >= 0) & (references <= 1)).all()
        assert not references.diagonal().any()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"texts": ["a", None]}, "texts: row 1 .*None"),
        ({"texts": "ab"}, "texts .*'ab'"),
        ({"texts": ["a"], "titles": [3]}, "titles: row 0 .*3"),
        ({"texts": ["a"], "titles": ["a", "b"]}, "titles .*1 row.*got 2"),
        ({"texts": ["a"], "links": []}, "links .*1 row.*got 0"),
        ({"texts": ["a"], "keys": [[], []]}, "keys .*1 row.*got 2"),
    ],
)
def test_what_is_no_text_is_refused(arguments: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{says}"):
        find_references(**arguments)


def test_a_row_of_links_is_a_collection() -> None:
    with pytest.raises(InvalidParameterError, match=r"^links: row 1"):
        find_references(["a", "b"], links=[None, "ab"])
