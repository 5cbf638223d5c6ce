"""What a text is called by number or code, and which identifiers and texts it cites. All values are written by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from shared_core import REFERENCE_KINDS, InvalidInputError, find_references, select
from shared_core.texts.identifiers import find_citations, parse_identifier, read_identifiers
from shared_core.texts.words import Text

CITED = [
    # --- English
    ("Subject to Rule 4.5.1, a Person may act.", ["section 4.5.1"]),
    ("referred to in Rule \u200e4.5.1.", ["section 4.5.1"]),
    ("under Rule \u200b\u200e1.3.3 as being responsible", ["section 1.3.3"]),
    ("(Rule 4.5.1(2))", ["section 4.5.1(2)"]),
    ("Rules 4.5.1(2)(b) and 4.5.3", ["section 4.5.1(2)(b)", "section 4.5.3"]),
    ("Rule 4.5.1.(1) applies", ["section 4.5.1(1)"]),
    ("Notwithstanding Rule 8.1.1 and 8.1.2, the Regulator", ["section 8.1.1", "section 8.1.2"]),
    ("by Rule 6.2.7 to 6.2.9; and", ["section 6.2.7", "section 6.2.8", "section 6.2.9"]),
    ("Sections 4 to 6", ["section 4", "section 5", "section 6"]),
    ("Sections 12, 14 and 16 apply.", ["section 12", "section 14", "section 16"]),
    ("section 70(1) of the FSMR", ["section 70(1) of FSMR"]),
    ("in accordance with PRU Rule 5.7.1.", ["section 5.7.1 of PRU"]),
    ("powers under section 206(1)(b) and (c) of FSMR", ["section 206(1)(b) of FSMR", "section 206(1)(c) of FSMR"]),
    ("Section 5 of the Financial Services Act", ["section 5 of Financial Services Act"]),
    ("Rule 4.5.1 of these Rules", ["section 4.5.1"]),
    ("point (a) of Article 6(1)", ["article 6(1)"]),
    ("Article 17 (3) of the Treaty", ["article 17(3) of Treaty"]),
    ("as chapter 3 of the manual says", ["chapter 3"]),
    ("Chapters 7 to 9 deal with customers.", ["chapter 7", "chapter 8", "chapter 9"]),
    ("Part IV and Schedule 2", ["chapter 4", "annex 2"]),
    ("see Annex B and Appendix 3", ["annex b", "annex 3"]),
    ("Rules A4.3.2 to A4.3.4", ["section a4.3.2", "section a4.3.3", "section a4.3.4"]),
    ("Clause 12.4(a)(ii) survives.", ["section 12.4(a)(ii)"]),
    ("reg. 14(2)", ["section 14(2)"]),
    ("Art. 6", ["article 6"]),
    ("Article No. 5", ["article 5"]),
    ("see 4.5.1 for details", ["4.5.1"]),
    ("subject to 4.5.1 and 4.5.2", ["4.5.1", "4.5.2"]),
    ("Section 4\nof this part", ["section 4"]),
    # --- German
    ("nach § 12 Abs. 2 Satz 1", ["section 12(2)(1)"]),
    ("gemäß § 823 BGB", ["section 823 of BGB"]),
    ("§§ 12 und 13", ["section 12", "section 13"]),
    ("§ 12(2)", ["section 12(2)"]),
    ("Art. 6 Abs. 1 lit. f DSGVO", ["article 6(1)(f) of DSGVO"]),
    ("Kapitel 4 und Anhang 2", ["chapter 4", "annex 2"]),
    ("Anlage 3 Nr. 2", ["annex 3(2)"]),
    ("Teil II", ["chapter 2"]),
    ("des § 5 des Gesetzes", ["section 5 of Gesetzes"]),
    ("Ziffer 3.2 gilt nicht", ["paragraph 3.2"]),
    # --- French
    ("l’article 12, alinéa 2", ["article 12(2)"]),
    ("les articles 4 à 6", ["article 4", "article 5", "article 6"]),
    ("l'annexe 2 du RGPD", ["annex 2 of RGPD"]),
    ("aux articles 5 et 9 du Code", ["article 5 of Code", "article 9 of Code"]),
    # --- Spanish
    ("los artículos 3 y 4", ["article 3", "article 4"]),
    ("la cláusula 12.4", ["section 12.4"]),
    ("el capítulo 2 y el anexo 1", ["chapter 2", "annex 1"]),
    # --- Italian
    ("articolo 7, comma 2", ["article 7(2)"]),
    ("gli articoli 3 e 4", ["article 3", "article 4"]),
    # --- Chinese and Japanese
    ("根据第5条第2款", ["article 5(2)"]),
    ("第５条第２項に基づき", ["article 5(2)"]),
    ("依照第十二条的规定", ["article 12"]),
    ("第2節を参照", ["section 2"]),
    ("第二十条和第二十一条", ["article 20", "article 21"]),
    # --- Russian
    ("согласно статье 12", ["article 12"]),
    ("в разделе 3.2", ["section 3.2"]),
    # --- codes
    ("It fails with error E1042.", ["code E1042"]),
    ("install KB5034441 first", ["code KB5034441"]),
    ("as RFC 7231 says", ["code RFC7231"]),
    ("RFC-7231 and RFC7230", ["code RFC7231", "code RFC7230"]),
    ("see ticket OPS-412", ["code OPS412"]),
    ("ISO 27001 and ISO/IEC 17025", ["code ISO27001", "code ISO/IEC17025"]),
    ("ticket #4711 is open", ["code 4711"]),
    ("Fehler 1042 tritt auf", ["code 1042"]),
    ("the error 404 means", ["code 404"]),
    # --- files and symbols
    ("It is in `utils/io.py`.", ["file utils/io.py"]),
    ("look at src/main.rs:42", ["file src/main.rs"]),
    (r"open docs\setup.md", ["file docs/setup.md"]),
    ("call parse_header() first", ["symbol parse_header"]),
    ("x = Foo(1) + self.bar(2)", ["symbol Foo", "symbol bar"]),
    ("the class `HeaderParser` reads", ["symbol HeaderParser"]),
    ("use `io.parse_header` there", ["symbol parse_header"]),
]
NOT_CITED = [
    "12", "3.5", "4.5.1", "It costs 12 euros.", "an increase of 3.5 percent", "on 12.03.2024 at 10:30",
    "see 12.03.2024", "Version 4.5.1 is out.", "upgrade to 4.5.1", "Python 3.12.1 and numpy 2.4.6",
    "see 192.168.10.17", "10.0.0.1", "5 Main Street, London SW1A 1AA", "call +49 30 1234567",
    "$1,250.00 or €3.5 million", "EUR500 in FY2024", "the sections of the book", "a rule of thumb",
    "Section 4% of all", "article by A. Smith", "in part a success", "Chapter and verse",
    "https://example.org/docs/io.py", "mail me at a@b.py", "the person(s) and Kund(en)",
    "for (i in x) while (true) return (1)", "print(x)", "paragraph 2 of the letter", "A4 paper and a B 12 vitamin",
    "He won 6-4, 7-5.", "am 3. Mai um 12 Uhr", "il 5 maggio, alle 10.30", "le 14 juillet 1789",
    "el 15 de mayo de 2024", "2024年5月12日", "共12人", "e.g. and i.e. and U.S.", "1984 was a year.",
    "Schedule a meeting", "Annex a building", "",
]  # fmt: skip


@pytest.mark.parametrize(("text", "cited"), CITED)
def test_a_text_cites(text: str, cited: list[str]) -> None:
    assert [*map(str, find_citations(Text(text)))] == cited


@pytest.mark.parametrize("text", NOT_CITED)
def test_a_text_cites_nothing(text: str) -> None:
    assert find_citations(Text(text)) == []


def test_the_second_number_belongs_to_the_first_where_the_kind_is_a_plural() -> None:
    assert [*map(str, find_citations(Text("Section 4 and 12 people")))] == ["section 4"]
    assert [*map(str, find_citations(Text("Sections 4 and 12")))] == ["section 4", "section 12"]


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("4.5.1 A Relevant Person must", ["4.5.1"]),
        ("\u200e4.5.1 A Relevant Person must", ["4.5.1"]),
        ("## 4.2 Limits\n\nNo more than two.", ["4.2"]),
        ("§ 12 Fristen", ["section 12"]),
        ("Art. 6 Lawfulness", ["article 6"]),
        ("Article 17\nRight to erasure", ["article 17"]),
        ("第5条 個人情報", ["article 5"]),
        ("E1042: no space left on device", ["code E1042"]),
        ("RFC 7231 describes", ["code RFC7231"]),
        ("def parse_header(line):\n    return line", ["symbol parse_header"]),
        ("import re\n\nclass Foo:\n    def bar(self): ...", ["symbol Foo", "symbol bar"]),
        ("export async function load(x) {}", ["symbol load"]),
        ("pub fn run<T>(x: T) {}", ["symbol run"]),
        ("func (s *Server) Start() error {", ["symbol Start"]),
        ("3.5 million people live here", []),
        ("3.5 Millionen Menschen", []),
        ("12.03.2024 Meeting", []),
        ("The function of it is a class action (first)", []),
        ("This is § 12", []),
        ("", []),
    ],
)
def test_what_a_text_is_called(text: str, called: list[str]) -> None:
    assert [*map(str, read_identifiers(Text(text)))] == called


@pytest.mark.parametrize(
    ("value", "called"),
    [
        ("4.5.1.(1)", ["4.5.1(1)"]),
        ("4.5 Records", ["4.5"]),
        ("12", ["12"]),
        ("128)", ["128"]),
        ("16A.2.3", ["16a.2.3"]),
        ("1.2.1.Guidance.1.", ["1.2.1(guidance)(1)"]),
        ("§ 12a BGB", ["section 12a"]),
        ("Section 3.2: Limits", ["section 3.2"]),
        ("Part 6.Chapter 1.70.(1)", ["chapter 1.70(1)", "70(1)"]),
        ("APP4.A4.6.21", ["annex 4.a4.6.21", "a4.6.21"]),
        ("第5条", ["article 5"]),
        ("src/io.py", ["file src/io.py"]),
        ("OPS-412", ["code OPS412"]),
        ("parse_header", ["symbol parse_header"]),
        ("Foo.bar()", ["symbol bar"]),
        ("Introduction", []),
        ("3 ways to win", []),
        ("3f2a1b2c-77aa", []),
        (" ", []),
    ],
)
def test_what_a_value_means(value: str, called: list[str]) -> None:
    assert [*map(str, parse_identifier(value))] == called


UNITS = ["1", "(", ")", "(1", ".", "1.", "1.1 ", "Section 1, ", "Section ", "Rules 1 to ", "see ", "§ ", "§", "第"]
UNITS += ["第1条", "`", "`a", "f(", "a.py", "/", "a/", ".py", "E1042 ", "E1", "error #", "def ", "def f(", "class \n"]
UNITS += ["\u200e", "é", "#"]


@pytest.mark.parametrize("unit", UNITS)
def test_many_characters_of_one_kind(unit: str) -> None:
    """A quadratic reader would take minutes: 100,000 characters are 10 billion steps then."""
    text = Text((unit * (10**5 // len(unit) + 1))[: 10**5])
    start = time.process_time()
    find_citations(text)
    read_identifiers(text)
    assert time.process_time() - start < 6


def test_ten_thousand_identifiers_in_one_text() -> None:
    text = ", ".join(f"Rule {i // 100}.{i % 100}.1" for i in range(10_000))
    assert len(find_citations(Text(text))) == 10_000


# --- which texts cite which others ------------------------------------------------------------------


def cited(texts: Sequence[str], identifiers: Sequence[Any], sources: Sequence[Any] | None = None) -> dict[Any, float]:
    """How clearly each row cites another one."""
    strength, _, kinds = find_references(texts, identifiers=identifiers, sources=sources)
    assert kinds is not None
    rows = zip(*strength.nonzero(), strict=True)
    return {
        (int(i), int(j)): float(strength[i, j]) for i, j in rows if kinds[i, j] == REFERENCE_KINDS.index("citation")
    }


@pytest.mark.parametrize(
    ("texts", "identifiers", "sources", "expected"),
    [
        # A cycle, and a text that cites itself.
        (["see Rule 1.2", "see Rule 1.1 and Rule 1.2"], ["1.1", "1.2"], "aa", {(0, 1): 1, (1, 0): 1}),
        # Numbers that begin with each other.
        (["see Rule 1.1", "", ""], ["3", "1.10", "1.1"], "aaa", {(0, 2): 1}),
        # Another source, and a source that is named.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], "aba", {(0, 2): 1}),
        (["see Rule 1.1 of COBS", "", ""], ["3", "1.1", "1.1"], ["AML", "COBS", "AML"], {(0, 1): 1}),
        (["see Rule 1.1 of MIR", ""], ["3", "1.1"], "aa", {}),
        # Two parts of a section, one that is cited by its own number, and one that is in the text of its section.
        (["see Rule 1.1", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 1): 0.5, (0, 2): 0.5}),
        (["see Rule 1.1(2)", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 2): 1}),
        (["see Rule 1.1(2)(b)", "", ""], ["3", "1.1", "1.2"], "aaa", {(0, 1): 1}),
        # Sources that are not known.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], None, {(0, 1): 0.5, (0, 2): 0.5}),
        # Another kind, where the number has one level.
        (["see Article 6 and Section 7", "", ""], ["3", "§ 6", "Section 7"], "aaa", {(0, 2): 1}),
        # Codes and files mean the same in every document.
        (["error E10 is E1042", "", ""], ["3", "E1042", "E10"], "aab", {(0, 1): 1}),
        (["open io.py", "", ""], ["3", "src/io.py", "src/rio.py"], "abc", {(0, 1): 1}),
        (["call parse_it(1)", "def parse_it(x):"], [None, None], "ab", {(0, 1): 1}),
    ],
)
def test_what_is_cited(texts: list[str], identifiers: list[Any], sources: Any, expected: dict[Any, float]) -> None:
    assert cited(texts, identifiers, None if sources is None else list(sources)) == expected


def test_many_identifiers_in_one_text() -> None:
    texts = [", ".join(f"Rule {i}.1" for i in range(1, 10_001)), ""]
    assert cited(texts, [None, "9.1"]) == {(0, 1): 1}


def test_a_section_brings_one_bonus_though_all_texts_have_one_title() -> None:
    texts = ["bread: see Rule 1.1", "bread and butter", "a", "b"]
    vectors = [[1, 0, 0, 0], [0.9, 0.5, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 0, 1]]
    columns: dict[str, Any] = {"texts": texts, "identifiers": ["2", "3", "1.1(1)", "1.1(2)"], "sources": ["a"] * 4}
    found = select([1, 0.1, 0, 0], vectors, 4, question="what", titles=["Book"] * 4, **columns)
    assert found.reference_kinds is not None
    assert sorted(found.reference_kinds.tolist()) == [-1, -1, -1, REFERENCE_KINDS.index("citation")]


@pytest.mark.parametrize(
    ("identifiers", "sources", "message"),
    [
        ("ab", None, "identifiers"),
        (["a", 5], None, "row 1.*5"),
        (["a", [5]], None, "row 1"),
        (["a"], None, "2 rows.*got 1"),
    ],
)
def test_identifiers_that_are_refused(identifiers: Any, sources: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_references(["a", "b"], identifiers=identifiers, sources=sources)
