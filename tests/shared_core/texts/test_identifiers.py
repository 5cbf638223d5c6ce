"""What a text is called by number or code, and which identifiers and texts it cites. All values are written by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from shared_core import REFERENCE_KINDS, InvalidInputError, find_references, select
from shared_core.texts.identifiers import Citations, Identifier, parse_identifier, read_identifiers
from shared_core.texts.references import find_links
from shared_core.texts.words import Text

NUMBERS = [str(number) for number in range(2, 10)]


def cited(texts: Sequence[str], identifiers: Sequence[Any], sources: Sequence[Any] | None = None) -> dict[Any, float]:
    """How clearly each row cites another one."""
    strength, _, kinds = find_references(texts, identifiers=identifiers, sources=sources)
    assert kinds is not None
    rows = zip(*strength.nonzero(), strict=True)
    return {
        (int(i), int(j)): float(strength[i, j]) for i, j in rows if kinds[i, j] == REFERENCE_KINDS.index("citation")
    }


def find_cited(text: str, called: Sequence[Any], others: Sequence[str] = ()) -> list[Any]:
    """What a text of the same document as all others cites of what they are called."""
    texts = [text, *(others or ["–"] * len(called))]
    found = cited(texts, ["1", *called], ["s"] * len(texts))
    return [called[row - 1] for first, row in sorted(found) if first == 0]


# --- a kind, and the series behind it ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Subject to Rules 4, 6 and 7, a person may act.", "467"),
        ("Clauses 3 (Fees), 4 (Term) and 6 (Notices) survive.", "346"),
        ("Articles 3/4/6 apply.", "346"),
        ("see sections 3 through 5", "345"),
        ("Sections 3,4, and 8", "348"),
        ("section 3 & 4; section 8", "348"),
        ("Notwithstanding Rule 8 to 9, the Regulator", "89"),
        ("as Art. 6(1)(b) and (c) says", "6"),
        ("Article No. 5", "5"),
        ("Section 4\nof this part", "4"),
        ("(Section 4) in \u200bSection \u200e6", "46"),
        ("Section 4, 2024 edition", "4"),
        ("gemäß § 3 Abs. 2 und § 5", "35"),
        ("nach den §§ 3 bis 5, 8 ff.", "3458"),
        ("in Kapitel 3 bis 5 und Anlage 7 Nr. 2", "3457"),
        ("aux articles 3 à 5 et 7", "3457"),
        ("en los artículos 3, 4 y 6", "346"),
        ("gli articoli 3 e 4", "34"),
        ("artikelen 3 tot en met 5", "345"),
        ("согласно статьям и статье 7", "7"),
        ("وفقا للمادتين 3 و4 من", "34"),
        ("المواد ٣ و ٥", "35"),
        ("根据第三条至第五条和第8条", "3458"),
        ("第３条及び第５条に基づき", "35"),
        ("제3조 및 제5조부터 제7조까지", "3567"),
        ("enligt 3 § och 5 §", "35"),
        # No number of a kind that is cited.
        ("Section 4% of all, Section 4.2, Section 44, Sect 4m", ""),
        ("a section of 4 people; the parts cost 4 dollars", ""),
        ("Schedule a meeting, Annex a building", ""),
        ("paragraph 4 of the letter", ""),
        ("at 4:30 on page 4, $4, -4, +4, 4.5, 1,004 and v4", ""),
        ("Section 4 of the Banking Act, Section 7 of MIR, Art. 5 TFEU, Section 8 of the Agreement", "58"),
    ],
)
def test_a_series_behind_a_kind(text: str, numbers: str) -> None:
    assert find_cited(text, NUMBERS) == list(numbers)


@pytest.mark.parametrize("heading", [
    "Madde 3: Ücret", "Rozdział 3. Opłaty", "Kifungu 3 – Ada", "Άρθρο 3: Τέλη", "סעיף 3. אגרות", "धारा ३: शुल्क",
    "มาตรา ๓ ค่าธรรมเนียม", "Điều 3. Phí", "მუხლი 3. საფასური", "Հոդված 3. Վճարներ", "ধারা ৩। ফি", "பிரிவு 3: கட்டணம்",
    "មាត្រា ៣៖ ថ្លៃ", "አንቀጽ 3፦ ክፍያ", "Pasal 3: Biaya", "Стаття 3. Збори", "Článek 3 (Poplatky)", "Principle 3 – Skill",
    "Requirement 3\nKeep it safe", "## Box 3: Terms",
])  # fmt: skip
def test_the_word_with_which_a_text_writes_its_own_number_is_a_kind(heading: str) -> None:
    other = heading.translate({ord(old): new for old, new in zip("3३๓៣৩", "5५๕៥৫", strict=True)})
    kind = heading.lstrip("#").split()[0]
    texts = [f"– {kind} 3.", heading, other, "3 people", f"– {kind} 3, 5 –"]
    assert set(cited(texts, [None] * 5, ["s"] * 5)) == {(0, 1), (4, 1), (4, 2)}


def test_a_kind_that_one_document_has_means_this_document() -> None:
    texts = ["as Requirement 3 says", "Requirement 3: Logs", "Section 3", "see Section 3"]
    assert cited(texts, [None] * 4, ["letter", "book", "law", "letter"]) == {(0, 1): 1}


# --- the right one of two: a text, what it cites, and what it does not ---------------------------------


@pytest.mark.parametrize(("text", "called", "others"), [
    # The mark of a footnote is no digit.
    ("in Section 5³ above", "5", "53"), ("§ 7¹² gilt", "§ 7", "§ 712"), ("Madde 3² uyarınca", "Madde 3", "Madde 32"),
    ("第5条³に", "第5条", "第53条"), ("المادة ٣² من", "المادة 3", "المادة 32"), ("มาตรา ๕²", "มาตรา 5", "มาตรา 52"),
    ("AC-2³ fails", "AC-2", "AC-23"), ("Sections 3¹ and 5²", "3|5", "31|52"),
    ("Άρθρο 3⁴ ορίζει", "Άρθρο 3", "Άρθρο 34"), ("제3조¹에", "제3조", "제31조"),
    # An article that was inserted later is another one.
    ("Articolo 5-quater", "Articolo 5-quater", "Articolo 5"), ("l'article 5 bis", "Article 5 bis", "Article 5"),
    ("see § 5a", "§ 5a", "§ 5"), ("第5条の3に", "第5条の3", "第5条"), ("依第五条之一", "第5条之一", "第5条"),
    ("제5조의2에", "제5조의2", "제5조"), ("o art. 5º-A da lei", "Art. 5º-A", "Art. 5"),
    ("art. 5º", "Art. 5", "Art. 5-A"), ("Madde 5/A gereği", "Madde 5/A", "Madde 5"),
    ("Άρθρο 5Α ορίζει", "Άρθρο 5Α", "Άρθρο 5"), ("enligt 5 a § och", "5 a §", "5 §"),
    ("статьи 5.1 и", "Статья 5.1", "Статья 5"),
    # A range leads to what lies in it.
    ("Articles 4 to 6", "5-bis", "6a|7"), ("AC-2 to AC-5", "AC-3", "AC-6"), ("Rule 4.5(a) to (c)", "4.5(b)", "4.5(d)"),
    ("第三条至第六条", "第5条", "第7条"), ("제3조부터 제6조까지", "제4조", "제7조"),
    ("Parts II to V", "Part IV", "Part VI"), ("Điều 3–6", "Điều 4", "Điều 7"),
    ("Madde 3-6 uyarınca", "Madde 4", "Madde 7"), ("มาตรา ๓-๖", "มาตรา 4", "มาตรา 7"),
    ("4.1.1 to 4.1.4", "4.1.2", "4.1.5"), ("धारा ३ से ६", "धारा 4", "धारा 7"),
    ("المواد 3 إلى 6", "المادة 4", "المادة 7"),
    # A series goes on behind what stands in brackets.
    ("Rule 4.5(1)(a) and (b)", "4.5(1)(a)|4.5(1)(b)", "4.5(1)(c)"), ("第3条（定義）及び第5条", "第3条|第5条", "第4条"),
    ("Article 6(1)(b), (c) and (f)", "6(1)(b)|6(1)(c)|6(1)(f)", "6(1)(d)"),
    ("제3조(목적) 및 제5조", "제3조|제5조", "제4조"), ("Madde 3(1), 5(2)", "Madde 3|Madde 5", "Madde 2"),
    ("Άρθρο 3 (Τέλη), 4 (Όροι)", "Άρθρο 3|Άρθρο 4", "Άρθρο 5"),
    ("AC-2(1), (3) and AC-3", "AC-2(1)|AC-2(3)|AC-3", "AC-2(2)"),
    ("धारा 3 (शुल्क), 4 (अवधि)", "धारा 3|धारा 4", "धारा 5"), ("статьи 3 (Цель), 4 (Срок) и 6", "3|4|6", "5"),
])  # fmt: skip
def test_the_right_one_of_two(text: str, called: str, others: str) -> None:
    wanted = called.split("|")
    assert find_cited(text, [*others.split("|"), *wanted]) == wanted


@pytest.mark.parametrize("source", ["{}.pdf", "https://x.org/{}.aspx", ""])
@pytest.mark.parametrize(("text", "documents", "named"), [
    ("see Section 4", "Travel-Law Leave-Law", [0]), ("Section 4 of the Leave Law", "Travel-Law Leave-Law", [1]),
    ("Section 4 of the Travel Law", "Travel-Law Leave-Law", [0]), ("Section 4 of the Canteen Rules", "Leave Fees", []),
    ("the Leave Law (Section 4)", "Travel-Law Leave-Law", [1]), ("Fees, Section 4 (Pay)", "Leave Fees", [1]),
    ("GDPR Article 4", "DPA GDPR", [1]), ("Artikel 4 DSGVO", "BDSG DSGVO", [1]),
    ("art. 4 KPA stosuje się", "KPC KPA", [1]), ("nach § 4 der Reiseordnung", "Urlaubsordnung Reiseordnung", [1]),
    ("l'article 4 du Code du travail", "Code-civil Code-du-travail", [1]), ("статья 4 Трудового кодекса", "ГК ТК", []),
    ("enligt 4 § LAS", "MBL LAS", [1]),
])  # fmt: skip
def test_a_document_that_is_named_beside(text: str, documents: str, named: list[int], source: str) -> None:
    """Files, URLs or titles tell documents apart. The text is in the first one."""
    names = documents.split()
    sources = [source.format(name) if source else number for number, name in enumerate(names)]
    titles = ["" if source else name.replace("-", " ") for name in names]
    citations = Citations([[], *[parse_identifier("4")] * 2], [sources[0], *sources], [titles[0], *titles])
    assert [row - 1 for _, rows, _ in citations.find_cited([Text(text)]) for row in rows] == named


# --- values that need no kind -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written", "others"),
    [
        ("A.8.24", "control A.8.24.", ["A.8.2", "A.8"]),
        ("SC-7(5)", "It needs SC-7(5), and", ["SC-7(4)", "SC-8"]),
        ("COBS 9.2.1R", "by COBS 9.2.1R or", ["COBS 9.2.2R", "SYSC 9.2.1R"]),
        ("12.10.4", "See 12.10.4.", ["12.10", "12.10.5"]),
        ("164.508", "45 CFR 164.508", ["164.512", "164.5"]),
        ("ID.AM-3", "(ID.AM-3)", ["ID.AM-4", "PR.AM-3"]),
        ("REQ-4.7.1", "REQ-4.7.1: yes", ["REQ-4.7", "REQ-4.7.2"]),
        ("WI-LAB-007", "per WI-LAB-007", ["WI-LAB-008", "WI-QA-007"]),
        ("T1566.002", "T1566.002 was seen", ["T1566.001", "T1567"]),
        ("CC7.2", "CC7.2 fails", ["CC7.3", "CC6.2"]),
        ("KB5034441", "install KB5034441 first", ["KB5034442"]),
        ("RFC 9110", "RFC-9110 and RFC9110", ["RFC 9111"]),
        ("ISO/IEC 27001", "as ISO/IEC 27001 says", ["ISO 9001"]),
        ("CVE-2024-3094", "about CVE-2024-3094", ["CVE-2024-3095", "CVE-2024"]),
        ("48213", "case 48213", ["48214"]),
    ],
)
def test_a_value_with_letters_or_three_levels_is_found_wherever_it_stands(
    value: str, written: str, others: list[str]
) -> None:
    assert find_cited(f"A stay abroad {written}", [*others, value]) == [value]


@pytest.mark.parametrize("text", [
    "12", "3.5", "It costs 12 euros.", "an increase of 3.5 percent", "on 12.03.2024 at 10:30", "see 192.168.10.17",
    "Version 4.5.2 is out.", "5 Main Street, London SW1A 1AA", "call +49 30 1234567", "$1,250.00 or €3.5 million",
    "EUR500 in FY2024", "https://example.org/docs/io.py", "mail me at a@io.py", "the person(s) and Kund(en)",
    "for (i in x) while (true) return (1)", "A4 paper and a B 12 vitamin", "He won 6-4, 7-5.", "am 3. Mai um 12 Uhr",
    "2024年5月12日", "共12人", "E1042a", "xE1042", "4.5.10", "e.g. and i.e. and U.S.", "12a", "load a page", "",
])  # fmt: skip
def test_a_text_cites_nothing(text: str) -> None:
    called = ["3", "4.5.1", "4", "5", "6", "7", "12", "3.5", "10", "E1042", "io.py", "load()", "12a", "A4"]
    assert find_cited(text, called) == []


# --- what a text is called ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("4.5.1 A Relevant Person must", ["4.5.1"]),
        ("\u200e4.5.1 A Relevant Person must", ["4.5.1"]),
        ("## 4.2 Limits\n\nNo more than two.", ["4.2"]),
        ("§ 12 Fristen", ["section 12"]),
        ("Art. 6 Lawfulness", ["article 6"]),
        ("**Article 17**\nRight to erasure", ["article 17"]),
        ("Part IV. Appeals", ["chapter 4"]),
        ("第5条 個人情報", ["article 5"]),
        ("제12조(목적) 이 법은", ["article 12"]),
        ("المادة ١٢: الرسوم", ["article 12"]),
        ("E1042: no space left on device", ["code e1042"]),
        ("RFC 7231 describes", ["code rfc7231"]),
        ("Article 5-bis. Fees", ["article 5bis"]),
        # A number of something else.
        ("3.5 million people live here", []),
        ("3.5 Millionen Menschen", []),
        ("12.03.2024 Meeting", []),
        ("In 1912, the Republic was founded", []),
        ("The function of it is a class action (first)", []),
        ("USD 500 was paid", []),
        ("", []),
    ],
)
def test_what_a_text_is_called(text: str, called: list[str]) -> None:
    assert [*map(str, read_identifiers(Text(text)))] == called


@pytest.mark.parametrize("text", [
    "Rule 4.5.1 does not apply to a person", "Section 12 of this Act is repealed.", "Article 6 GDPR forbids it.",
    "§ 12 gilt nicht für Erben.", "Requirement 8.3 must be met.", "Box 3 of the form", "第5条に基づき行う。",
    "根据第5条 的规定", "بالمادة 12 من القانون", "ta'rixi 5 may", "Madde 3 uyarınca yapılır",
    "Άρθρο 3 του νόμου ορίζει", "Kifungu 3 cha sheria", "Điều 3 của luật này", "제5조에 따라 정한다.",
    "Pasal 3 ayat (2) berlaku", "Articles 5 and 6 apply", "4.5.1 and 4.5.2 apply", "Rule A4.3.2 does not apply",
    "The PHQ-9 scale was used", "§ 12, so the court",
])  # fmt: skip
def test_a_chunk_that_begins_inside_of_a_sentence_has_no_number(text: str) -> None:
    assert read_identifiers(Text(text)) == []


def test_a_chunk_that_begins_inside_of_a_sentence_does_not_take_the_place_of_a_section() -> None:
    sections = ["Rule 4.5.1 does not apply on Sundays.", "4.5.1 Records are kept.", "Ships leave at nine."]
    assert cited(["follow Rule 4.5.1 at all times", *sections], [None] * 4, ["s"] * 4) == {(0, 2): 1, (1, 2): 1}
    thai = ["ตามมาตรา 5 ต้อง", "มาตรา 5 ค่าธรรมเนียม", "มาตรา 7 อื่น"]
    assert cited(thai, [None] * 3, ["s"] * 3) == {(0, 1): 1}


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
        ("OPS-412", ["code ops412"]),
        ("Introduction", []),
        ("3 ways to win", []),
        ("3f2a1b2c-77aa", []),
        (" ", []),
    ],
)
def test_what_a_value_means(value: str, called: list[str]) -> None:
    assert [*map(str, parse_identifier(value))] == called


# --- which texts cite which others ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "identifiers", "sources", "expected"),
    [
        # A cycle, and a text that cites itself.
        (["see Rule 1.2", "see Rule 1.1 and Rule 1.2"], ["1.1", "1.2"], "aa", {(0, 1): 1, (1, 0): 1}),
        # Numbers that begin with each other.
        (["see Rule 1.1", "", ""], ["3", "1.10", "1.1"], "aaa", {(0, 2): 1}),
        # Another source, and a source that is named.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], "aba", {(0, 2): 1}),
        (["see COBS 1.1.1", "", ""], ["3", "1.1.1", "1.1.1"], ["AML", "COBS", "AML"], {(0, 1): 1}),
        # Two parts of a section, one that is cited by its own number, and one that is in the text of its section.
        (["see Rule 1.1", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 1): 0.5, (0, 2): 0.5}),
        (["see Rule 1.1(2)", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 2): 1}),
        (["see Rule 1.1(2)(b)", "", ""], ["3", "1.1", "1.2"], "aaa", {(0, 1): 1}),
        # Sources that are not known: only one number may be meant.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], None, {}),
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.2"], None, {(0, 1): 1}),
        # Another kind, where the number has one level.
        (["see Article 6 and Section 7", "", ""], ["3", "§ 6", "Section 7"], "aaa", {(0, 2): 1}),
        # Codes and files mean the same in every document.
        (["error E10 is E1042", "", ""], ["3", "E1042", "E10"], "aab", {(0, 1): 1}),
    ],
)
def test_what_is_cited(texts: list[str], identifiers: list[Any], sources: Any, expected: dict[Any, float]) -> None:
    assert cited(texts, identifiers, None if sources is None else list(sources)) == expected


def test_the_numbers_that_no_text_is_called() -> None:
    called = [[Identifier("", ("3", "1"))], [Identifier("section", ("4", "2"))], [Identifier("code", ("e1042",))]]
    citations = Citations(called, ["a", "a", "b"], [""] * 3)
    text = Text("Rules 4.1 to 4.3, Section 3.1(2), E1043, X1043, 4.5.6 and Rule 9 of MIR. Box 7.")
    found = [(str(one), source) for one, source in citations.find_uncited(text, 0)]
    assert found == [("section 4.1", "a"), ("section 4.3", "a"), ("code e1043", "a")]


def test_a_section_brings_one_bonus_though_all_texts_have_one_title() -> None:
    texts = ["bread: see Rule 1.1", "bread and butter", "a", "b"]
    vectors = [[1, 0, 0, 0], [0.9, 0.5, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 0, 1]]
    columns: dict[str, Any] = {"texts": texts, "identifiers": ["2", "3", "1.1(1)", "1.1(2)"], "sources": ["a"] * 4}
    found = select([1, 0.1, 0, 0], vectors, 4, question="what", titles=["Book"] * 4, **columns)
    assert found.reference_kinds is not None
    assert sorted(found.reference_kinds.tolist()) == [-1, -1, -1, REFERENCE_KINDS.index("citation")]


UNITS = ["1", "(", ")", "(1", ".", "1.", "1.1 ", "Section 1, ", "Section ", "Rules 1 to ", "see ", "§ ", "§", "第"]
UNITS += ["第1条", "제1조", "a.py", "/", "a/", ".py", "E1042 ", "E1", "error #", "#"]
UNITS += ["\u200e", "é", "1-", "1/", "1, ", "A-", "A ", "Annex A, ", "1 (Ab), ", "5²", "Section 1(a) and (b) to "]


@pytest.mark.parametrize("unit", UNITS)
def test_many_characters_of_one_kind(unit: str) -> None:
    """A quadratic reader would take minutes: 100,000 characters are 10 billion steps then."""
    text = Text((unit * (10**5 // len(unit) + 1))[: 10**5])
    called = [[], [*parse_identifier("4.5.1")], [*parse_identifier("Annex B")]]
    start = time.process_time()
    [*Citations(called, [None] * 3, [""] * 3).find_cited([text])]
    find_links(text)
    read_identifiers(text)
    assert time.process_time() - start < 6


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
