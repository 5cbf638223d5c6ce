"""Titles as sites, converters and scanners write them: what is left of them, and which ones are none."""

from __future__ import annotations

import pytest

from shared_core.facts import Facts
from shared_core.texts import Texts
from shared_core.texts.names import list_names
from shared_core.texts.titles import (
    as_key,
    clean_title,
    cut_running_header,
    is_title,
    list_parts,
    without_number,
)
from shared_core.texts.words import Text

SITE = ["Inception | FilmBase", "Heat | FilmBase", "Alien | FilmBase"]


@pytest.mark.parametrize("title", [
    "untitled", "Untitled Document", "Untitled (2)", "Unbenannt 1", "None", "nan", "<NA>", "null", "N/A", " ",
    "PowerPoint Presentation", "Microsoft PowerPoint Presentation", "New Microsoft Word Document", "Document1",
    "Dokument 3.docx", "Slide 1", "Folie 12", "scan_20240101", "Scan 001.pdf", "IMG_1234", "DSC0001.JPG",
    "PXL_20240101_101112", "Screenshot 2024-01-01 at 10.00.00 PM.png", "123e4567-e89b-12d3-a456-426614174000",
    "See also", "Table of contents",
])  # fmt: skip
def test_a_title_that_says_nothing_is_none(title: str) -> None:
    assert not is_title(title)
    assert list_names([title], [Text("# Opening hours\n\nWe open at nine.")]) == [["Opening hours"]]


@pytest.mark.parametrize("title", [
    "Untitled Goose Game", "Null Island", "None Shall Escape", "Nan Goldin", "Page", "Slide", "Scan Lines",
    "Document Foundation", "1984", "3M", "U2", "Image of Doctor Fu", "Unknown Pleasures", "Photo 51 and its story",
    "北京",
])  # fmt: skip
def test_a_title_that_resembles_one_that_says_nothing_is_one(title: str) -> None:
    assert is_title(title)
    assert clean_title(title) == title


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("_Johan Earl_", "Johan Earl"),
        ("**Johan Earl**", "Johan Earl"),
        ("[Johan Earl](x.md)", "Johan Earl"),
        ("  Johan\n Earl ", "Johan Earl"),
        ("Single sign-on {#sso}", "Single sign-on"),
        ("Single sign-on {: #sso .wide }", "Single sign-on"),
        ("Single sign-on ¶", "Single sign-on"),
        ("[Single sign-on](#sso) #", "Single sign-on"),
        ("Microsoft Word - Annual report.doc", "Annual report"),
        ("Microsoft Word - Document1.docx", ""),
        ("**Untitled**", ""),
        ("C#", "C#"),
        ("Sets {a, b}", "Sets {a, b}"),
        ("A [draft]", "A [draft]"),
        (" " * 900 + "Single sign-on", "Single sign-on"),
    ],
)
def test_marks_of_converters_are_no_part_of_a_title(title: str, name: str) -> None:
    assert clean_title(title) == name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("3.2 Single sign-on", "Single sign-on"),
        ("Chapter 3: Single sign-on", "Single sign-on"),
        ("CHAPTER IV — The Return", "The Return"),
        ("Appendix B. Licenses", "Licenses"),
        ("Kapitel 2: Fristen", "Fristen"),
        ("§ 12 Fristen", "Fristen"),
        ("§§ 12-14 Fristen", "Fristen"),
        ("第3章 概要", "概要"),
        ("제3장 개요", "개요"),
        ("IV. Results", "Results"),
    ],
)
def test_the_number_of_a_heading_is_no_part_of_a_name(title: str, name: str) -> None:
    assert without_number(title) == name


@pytest.mark.parametrize("title", [
    "2001: A Space Odyssey", "1984", "3M", "7 Up", "24 Hours", "3.5 mm jack", "1. FC Köln", "12.05.2020 Protokoll",
    "Chapter 27", "Part of Me", "Section 8 Housing", "第二次世界大戦", "V. S. Naipaul", "Mr. Bean", "3 Results",
    "Apollo 13",
])  # fmt: skip
def test_a_number_that_is_a_part_of_a_name_stays(title: str) -> None:
    assert without_number(title) == title


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (SITE, ["Inception", "Heat", "Alien"]),
        ([*SITE, "Paris | Texas", ""], ["Inception", "Heat", "Alien", "", ""]),
        (["A1 » Shop", "B1 » Shop", "C1 » Shop"], ["A1", "B1", "C1"]),
        (["#7 · o/r · GitHub", "#8 · o/r · GitHub", "#9 · o/r · GitHub"], ["#7", "#8", "#9"]),
        (["std :: Rust", "core :: Rust", "alloc :: Rust"], ["std", "core", "alloc"]),
        (
            [f"{name} - Python documentation" for name in ("Lists", "Sets", "Dicts")],
            ["Lists", "Sets", "Dicts"],
        ),
        (
            [
                *(f"{name} - Python 3" for name in ("Lists", "Sets", "Dicts")),
                *(f"{x} — NumPy" for x in ("a", "b", "c")),
            ],
            ["Lists", "Sets", "Dicts", "a", "b", "c"],
        ),
        (["FilmBase – Heat", "FilmBase – Alien", "FilmBase – Up"], ["Heat", "Alien", "Up"]),
        # The same page with its site and without it.
        ([*SITE, "Heat"], ["Inception", "Heat", "Alien", ""]),
    ],
)
def test_what_a_site_puts_around_its_titles_goes(titles: list[str], names: list[str]) -> None:
    assert [" ".join(parts) for parts in list_parts(titles)] == names


@pytest.mark.parametrize(
    "titles",
    [
        SITE[:2],
        ["Paris | Texas"] * 5,
        ["Star Trek: Nemesis", "Star Trek: Picard", "Star Trek: Lost", "Alien", "Heat"],
        ["Home | FilmBase", "Home | BookBase"],
        ["Alien-Heat", "Up-Heat", "Lost-Heat"],
    ],
)
def test_parts_of_names_are_no_site(titles: list[str]) -> None:
    assert not any(list_parts(titles))


def test_a_part_that_says_nothing_is_no_name() -> None:
    texts = ["", "", "# Opening hours\n\nx"]
    titles = ["Heat | FilmBase", "Alien | FilmBase", "Untitled | FilmBase"]
    assert [forms[1:] for forms in list_names(titles, list(map(Text, texts)))] == [["Heat"], ["Alien"], []]


@pytest.mark.parametrize(
    ("titles", "sources", "names"),
    [
        ("DDDA", "abcd", "xyzA"),
        # Parts of one document, or of two, or of an unknown number.
        ("DDDA", "aaad", "DDDA"),
        ("DDDA", "aabd", "DDDA"),
        ("DDDA", [None] * 4, "DDDA"),
        ("DDDA", ["a", None, "b", None], "DDDA"),
        # Not so many of the candidates.
        ("DDDABCEFGH", "abcdefghij", "DDDABCEFGH"),
        ("DDDAAABC", "abcabcab", "xyzuvwBC"),
        ("   ", "abc", "   "),
    ],
)
def test_a_title_that_many_sources_share_gives_way_to_the_headings(
    titles: str, sources: list[str | None], names: str
) -> None:
    headings = [f"# {heading}".strip(" #") and f"# {heading}" for heading in "xyzuvw    "]
    facts = [Facts(titles=(title.strip(),), file=source) for title, source in zip(titles, sources, strict=True)]
    assert Texts(headings[: len(titles)], facts).titles == [name.strip() for name in names]


@pytest.mark.parametrize(
    "title",
    [
        "Leave Policy.docx", "Leave Policy.PDF", "Leave Policy v2.1", "Leave Policy V3", "Leave Policy - version 2",
        "Leave Policy – DRAFT", "Leave Policy_final", "Leave Policy_v4_final.docx", "Copy of Leave Policy",
        "Kopie von Leave Policy", "Leave Policy 2024", "Leave Policy (2)", "Leave Policy 草稿", "4.2 Leave Policy.docx",
    ],
)  # fmt: skip
def test_copies_and_drafts_of_a_document_have_its_name(title: str) -> None:
    assert "Leave Policy" in [name.strip() for name in list_names([title], [Text("")])[0]]


@pytest.mark.parametrize(
    "title", ["Blade 2049", "Rocky v", "Final", "Draft", "node.js", "Euro 2024", "A Final Draft Day"]
)
def test_a_name_that_looks_like_a_draft_stays(title: str) -> None:
    assert list_names([title], [Text("")])[0][0] == title
    assert all(len(name.split()) > 1 or name == title for name in list_names([title], [Text("")])[0])


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (["ACME Inc. 2024\nOne.", "ACME Inc. 2024\nTwo.", "ACME Inc. 2025\nSix."], ["One.", "Two.", "Six."]),
        (["\n Page 1 of 9\nOne", "Page 2 of 9\nTwo", "Page 3 of 9\nThree"], ["One", "Two", "Three"]),
        (["社外秘 株式 1\nいち", "社外秘 株式 2\nに", "社外秘 株式 3\nさん", "四"], ["いち", "に", "さん", "四"]),
        # Copies, numbers of their own, what two texts share, and a text that is nothing else.
        (["A b\nOne"] * 3, ["A b\nOne"] * 3),
        (["Article 1\nx", "Article 2\ny", "Article 3\nz"], ["Article 1\nx", "Article 2\ny", "Article 3\nz"]),
        (["§ 1\nx", "§ 2\ny", "§ 3\nz"], ["§ 1\nx", "§ 2\ny", "§ 3\nz"]),
        (["A b\nx", "A b\ny", "z"], ["A b\nx", "A b\ny", "z"]),
        (["A b", "A b\n", "A b\n\n", ""], ["A b", "A b\n", "A b\n\n", ""]),
        (["A\nx", "A\ny", "A\nz", *"bcdefgh"], ["A\nx", "A\ny", "A\nz", *"bcdefgh"]),
    ],
)
def test_a_first_line_that_many_texts_share_is_a_running_header(texts: list[str], cut: list[str]) -> None:
    assert cut_running_header(texts) == cut


@pytest.mark.parametrize(
    "piece", ["|", " | ", " - ", ": ", "{", "[", "(", "1.", "第", " ", "_", "<a ", "§ ", "\u0301", "#"]
)
def test_a_title_of_any_length_is_read_at_once(piece: str) -> None:
    title = piece * (1_000_000 // len(piece))
    assert len(list_names([title] * 3 + [title + "x", None], list(map(Text, [""] * 4 + [title])))) == 5
    assert as_key(title) == ()
