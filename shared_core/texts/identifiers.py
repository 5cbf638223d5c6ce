"""What a text is called by number or code, and which identifiers it cites: "4.5.1", "§ 12(2)", "E1042", ``io.py``.

An identifier is a number of a document ("Rule 4.5.1", local to its document), a code ("RFC 7231"), a file or a symbol
of code. A number by itself is no citation: it needs its kind ("Rule", "§", "Kapitel") or a word such as "see".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple

from .._validation import as_optional, quoted
from ..errors import InvalidInputError
from .fold import normalise
from .words import Text, check_strings, keep, split_words

# Families of identifiers that are not numbers of a document: they mean the same in every document.
CODE, FILE, SYMBOL = "code", "file", "symbol"
EVERYWHERE = (CODE, FILE, SYMBOL)
# A number whose kind is not known.
NUMBER = ""
# The most numbers in a range ("Sections 4 to 6"), levels of a number, and characters of the beginning of a text.
_LONGEST_RANGE, _MOST_LEVELS, _HEAD = 100, 12, 200


class Identifier(NamedTuple):
    """What a text is called: the kind, of ``_KINDS``, ``EVERYWHERE`` or ``NUMBER``, and the levels, outermost first.

    The levels of "4.5.1(2)(b)" are "4", "5", "1", "(2", "(b".
    """

    family: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        text = "/".join(self.path)
        if self.family not in EVERYWHERE:
            text = "".join(f"{level})" if level[0] == "(" else f".{level}" for level in self.path).lstrip(".")
        return f"{self.family} {text}".strip()


class Citation(NamedTuple):
    """An identifier that a text cites, and the name of the document that stands beside it, as it is written."""

    family: str
    path: tuple[str, ...]
    document: str = ""

    def __str__(self) -> str:
        return f"{Identifier(*self[:2])}{' of ' if self.document else ''}{self.document}"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The kinds of numbers. The words of a language that also stand before other numbers ("number 5", "page 7") are none.
# In "Section 4 and 12 others" a second number belongs to the first only if the word is a plural or used as one: "+".
_KINDS = {
    "section": (
        "section sections+ sec secs+ sect §+ §§+ rule rules+ clause clauses+ cl regulation regulations+ reg regs+ "
        "abschnitt abschnitte+ abschnitts abschnitten+ klausel klauseln+ règle règles+ sección secciones+ cláusula "
        "cláusulas+ regla reglas+ sezione sezioni+ clausola clausole+ regola regole+ seção seções+ sectie paragraaf "
        "раздел раздела разделе разделы+"
    ),
    "article": (
        "article articles+ art+ arts+ artikel+ artikels artikeln+ artículo artículos+ articolo articoli+ artigo "
        "artigos+ статья статьи+ статье статьей ст+"
    ),
    "chapter": (
        "chapter chapters+ chap chaps+ kapitel+ kapitels kapiteln+ chapitre chapitres+ capítulo capítulos+ capitolo "
        "capitoli+ hoofdstuk part parts+ teil teile+ teils partie parties+ parte partes+ parti глава главы главе "
        "titel título titolo titre"
    ),
    "annex": (
        "annex annexes+ appendix appendices+ app apps+ schedule schedules+ sch exhibit exhibits+ anhang anhangs "
        "anlage anlagen+ annexe anexo anexos+ allegato allegati+ bijlage приложение приложения приложении"
    ),
    # Most of these count the parts of one section, so only numbers with several levels are citations.
    "paragraph": (
        "paragraph paragraphs+ para paras+ item step ziffer ziffern+ ziff punkt punkte+ nr nummer point points+ "
        "paragraphe paragraphes+ párrafo párrafos+ apartado apartados+ punto puntos+ punti+ paragrafo paragrafi+ "
        "пункт пункта пункте п"
    ),
}
_FAMILY = {word.rstrip("+"): family for family, words in _KINDS.items() for word in words.split()}
_PLURAL = frozenset(word[:-1] for words in _KINDS.values() for word in words.split() if word.endswith("+"))
# Words after which a number of three levels is a citation without its kind.
_LEADING = _words(
    "see under per cf pursuant siehe s gemäß gemäss nach laut vgl voir selon cf véase según ver vedi secondo conforme "
    "zie volgens см согласно"
)
_LEADING_PAIRS = ("subject to", "pursuant to", "according to", "refer to", "accordance with")
_NUMBER_SIGN = _words("no nr n number num nummer nos número numéro numero")
# Before the number of an error or a ticket.
_COUNTED = _words(
    "error errors ticket tickets issue issues bug incident case code status fehler fehlercode fehlernummer störung "
    "erreur código errore errorcode ошибка ошибки"
)
# Letters before digits that make an amount or a year.
_NO_CODES = _words("FY CY HY EUR USD GBP CHF JPY CNY INR AUD CAD AED RMB")
# Kinds that are counted by letters or Roman numbers too: "Annex B", "Part IV".
LETTERED = ("chapter", "annex", "article")
# One of these words stands before the first number of a series, or else a sign.
_BEFORE_NUMBER = frozenset(_FAMILY) | _LEADING | {pair.split()[0] for pair in _LEADING_PAIRS}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_HAN = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_CJK_KIND = {"条": "article", "條": "article", "章": "chapter", "編": "chapter", "编": "chapter", "部分": "chapter"}
_CJK_KIND |= {"節": "section", "节": "section"}

# Characters without a width, which PDFs leave before numbers.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_BRACKETED = r"\([ ]?(?:\d{1,3}[a-z]?|[a-zA-Z]{1,2}|[ivx]{2,5})[ ]?\)"
_LEVELS = rf"(?:\.[A-Z]?\d{{1,4}}[A-Za-z]?(?!\w)){{0,11}}(?:\.?{_BRACKETED}|[ ]{_BRACKETED}){{0,6}}"
# A number with its levels: "4.5.1(2)", "12a", "A4.6.21", "IV", "B". What stands before it makes it a citation.
# Its first character stands alone before the lookbehinds: sre finds it far faster than a place that they suit.
_FIRST = r"(?<![\w,:/$€£¥+#~=^-][0-9A-Z])(?<!\d\.[0-9A-Z])"
_END = r"(?![%€$£°]|[.,:/]\d|[-–]?\d|\s?[%€°])"
_DIGITS = rf"\d{{0,3}}[A-Za-z]?(?!\w){_LEVELS}"
# Most capitals begin a word: the next letter is the cheapest test.
_NUMBER = re.compile(
    rf"(?P<number>[0-9A-Z](?![a-z](?<=[A-Z].)){_FIRST}(?:(?<=\d){_DIGITS}|(?<=[A-Z])[A-Z]?\d{_DIGITS}"
    rf"|(?<=[IVXLC])[IVXLC]{{0,5}}(?!\w)|(?<=[A-Z])(?!\w))){_END}"
)
# How many characters before a number are looked at.
_BACK = 40
# What stands between a word and its number: "Art. 6", "No.: 5".
_MARKS_BEHIND = " \t\n\r.:°º"
_NO_LETTERS = re.compile(r"[\W\d_]+")
# Further levels of the number before: "Abs. 1", "lit. f".
_SUB = re.compile(
    r"[ \u00a0]*,?[ \u00a0]*(?:(?:Abs|Absatz|Satz|Unterabs|lit|Buchst|Buchstabe|Nr|Nummer|Ziff|Ziffer|al|alinéa|apdo|"
    r"apartado|letra|comma|co|lett|lettera|lid|onder|paragraphe?|para|point|ч|часть|п|пункт)\b\.?"
    r"[ \u00a0]*)(?P<level>\d{1,3}[a-z]?|[a-z]{1,2})\)?(?!\w)"
)
# Further brackets after those of the number: "(1)(a) and (b)".
_AND_BRACKET = re.compile(r"\s*(?:,|and|or|und|oder|et|ou|y|e|o)\s*\((?P<level>\d{1,3}|[a-z]{1,3})\)")
_JOIN = re.compile(
    r"\s*+(?:(?P<to>[-–—]|(?:to|through|bis|à|a|al|tot|по)\b)|,?\s*+(?:and|or|und|oder|sowie|et|ou|y|o|e|en|of|и)\b"
    r"|[,;&、])\s*+§*\s*+"
)
# The name of a document beside a number: after "of", or an abbreviation ("DSGVO").
_WORD_OF_NAME = r"(?:[A-ZÄÖÜÉÀÈÁ][\w&’'.-]{0,40}\w|[A-Z])"
_BESIDE = re.compile(
    rf"[ \u00a0]*,?[ \u00a0](?:(?:(?:of|in|under|to|des|der|du|de|del|della|dell|do|da|van)[ \u00a0]+)"
    rf"(?:(?:the|la|las|los|el|l|het|de)[ ’'])?"
    rf"(?P<long>{_WORD_OF_NAME}(?:[ ](?:(?:of|and|the|on|for|des|der|de)[ ]){{0,2}}{_WORD_OF_NAME}){{0,7}})"
    r"|(?P<short>(?=\w*[A-Z]\w*[A-Z])[A-ZÄÖÜ][\w-]{1,12}))(?!\w)"
)
_BEFORE_KIND = re.compile(r"(?:\A|[\s(])(?P<name>[A-Z]{2,8})\Z")
_NO_NAME = re.compile(
    r"\A(?:Rule|Section|Article|Chapter|Part|Schedule|Annex|Appendix|Clause|Art|App|Abs|Regulation)s?\b"
)
_CJK_NUMBER = r"第\s*(\d{1,4}|[〇零一二两三四五六七八九十百千]{1,9})\s*"
_CJK = re.compile(rf"{_CJK_NUMBER}(条|條|章|節|节|編|编|部分)((?:{_CJK_NUMBER}[項项款号號])*)")
# They may stand apart from their number: "RFC 7231".
_STANDARDS = _words(
    "RFC ISO IEC ISO/IEC DIN EN PEP JEP IEEE NIST ITU ASTM ANSI JIS GB BIP EIP ERC KB IFRS IAS NFPA VDE GOST ГОСТ"
)
_CODE = re.compile(
    r"[A-ZГ](?<![\w./-][A-ZГ])(?P<letters>(?<=[A-ZГ])[A-ZОСТ0-9]{0,9}(?:/[A-Z]{2,5})?)"
    r"(?P<mark>[ \u00a0-]?)(?P<digits>\d{1,10}(?:-\d{1,8}){0,5})(?![\w%]|-\w|\.\d)"
)
_COUNTED_CODE = re.compile(r"[ #№](?P<n>0x[0-9A-Fa-f]{1,16}|\d{1,8})(?![\w%]|[.,:/]\d)")
_SUFFIXES = (
    "py pyi ipynb js jsx mjs ts tsx vue java kt scala go rs rb php c h cc cpp hpp cs swift m sql sh bash ps1 lua r jl "
    "pl html css scss json yaml yml toml ini cfg conf xml md mdx rst txt proto tf gradle ex exs erl hs clj dart"
)
_SUFFIX = re.compile(rf"\.(?:{'|'.join(_SUFFIXES.split())})(?![\w/\\@-]|\.\w)")
_OUTSIDE_OF_PATH = re.compile(r"[^\w.@/\\:-]+")
_LONGEST_PATH = 200
_NAME = re.compile(r"[^\W\d]\w{1,79}")
# "parse_header(x)", but not "person(s)": there the brackets hold the end of a word.
_SYMBOL = re.compile(
    rf"(?<!\w)(?P<called>{_NAME.pattern})\((?!(?:s|es|n|en|r|in|innen)\))|`(?P<quoted>[^\W\d][\w.:]{{1,159}})`"
)
_WORDS_OF_CODE = _words(
    "def class function fn func if for while switch return and or not in print len str int float list dict set super "
    "catch sizeof typeof await assert range isinstance self"
)
_DEFINING = _words("def class function fn func interface struct enum trait")
_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|inline|virtual)[ \t]+){0,4}"
    r"(?:def|class|function|fn|func|interface|struct|enum|trait)[ \t]+(?:\([^()\n]{0,80}\)[ \t]*)?"
    r"(?P<name>[^\W\d]\w{1,79})(?=[ \t]*(?:[(:{<\[;]|extends\b|implements\b))",
    re.MULTILINE,
)
# What separates the number of a value from its title, and how such a number begins.
_BEFORE_TITLE = re.compile(r"[\s:]+(?=[^\W\d])")
_GLUED = re.compile(r"(?<=[A-Za-z]{3})(?=\d)")
_FIRST_LEVEL = re.compile(r"[A-Za-z]{0,3}\d{1,4}[A-Za-z]?(?!\w)")
_LEVEL = re.compile(r"([(]?)([^\W_]+)")
# The beginning of a text: marks of Markdown, then its identifier.
_MARKS = re.compile(r"[\s#*_>=\ufeff-]*")
_FIRST_WORD = re.compile(r"[^\W\d_]*")
_OWN_NUMBER = re.compile(rf"(?P<number>\d{{1,4}}[A-Za-z]?(?!\w){_LEVELS})\.?[ \t\u00a0*_:–—-]+(?P<next>[^\W\d_]\S*)")
_UNITS = _words("Million Millionen Milliarden Milliarde Billion Mio Mrd Euro Prozent Liter Meter Percent Dollar Uhr")
# Words that name no document: a text about a contract calls it "the Agreement".
_NO_NAMES = frozenset(
    split_words("the of and act law rules rulebook agreement contract policy gesetz vertrag loi contrat")
)

# The rows of texts by levels of an identifier, each with the kind of that identifier.
_Index = dict[tuple[str, ...], list[tuple[int, str]]]


@keep
def read_identifiers(text: Text) -> list[Identifier]:
    """What a text is called by the number or code with which it begins, or by what it defines, if it is code.

    >>> [*map(str, read_identifiers(Text("4.5.1 A Person must"))), *map(str, read_identifiers(Text("§ 12 Fristen")))]
    ['4.5.1', 'section 12']
    >>> [*map(str, read_identifiers(Text("E1042: no space left"))), *map(str, read_identifiers(Text("class Foo:")))]
    ['code E1042', 'symbol Foo']
    """
    start = _MARKS.match(text.text, 0, _HEAD).end()  # type: ignore[union-attr]
    head = clean(text.text[start : start + _HEAD].partition("\n")[0]).lstrip()
    first = head[:1]
    if first.isdigit():
        if not (own := _OWN_NUMBER.match(head)):
            return []
        path = _split_number(own["number"])
        levels = count_levels(path)
        is_heading = levels > 2 or (levels == 2 and own["next"][0].isupper() and own["next"] not in _UNITS)
        return [Identifier(NUMBER, path)] if is_heading and not _is_date(path) else []
    if first and (first in "§第" or _FIRST_WORD.match(head)[0].casefold() in _FAMILY):  # type: ignore[index]
        citation = next((citation for start, _, citation in _find_numbers(head) if start == 0), None)
        return [Identifier(*citation[:2])] if citation is not None and not citation.document else []
    if (code := _CODE.match(head)) and (path := _path_of_code(code)):
        return [Identifier(CODE, path)]
    return [Identifier(SYMBOL, (name,)) for name in _find_defined(text)]


def _find_defined(text: Text) -> list[str]:
    """The names of the functions and classes that a text defines, each once."""
    if _DEFINING.isdisjoint(text.words):
        return []
    names = dict.fromkeys(match["name"] for match in _DEFINITION.finditer(text.text))
    return [name for name in names if name not in _WORDS_OF_CODE]


def check_identifiers(given: Sequence[Any]) -> list[tuple[str, ...]]:
    """The identifiers that are given for each row, checked; none for a missing value."""
    check_strings(given, "identifiers", (object,))
    rows = []
    for row, value in enumerate(as_optional(given)):
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, Iterable | None):
            raise InvalidInputError(f"identifiers: row {row} is {quoted(value)}; pass a string, or a list of strings")
        rows.append(tuple(values or ()))
        check_strings(rows[-1], f"identifiers: row {row}")
    return rows


def list_identifiers(given: Sequence[Iterable[str]] | None, texts: Sequence[Text]) -> list[list[Identifier]]:
    """What each text is called: what is given for it, or else what it begins with; last comes its file."""
    called: list[list[Identifier]] = []
    for values, text in zip([()] * len(texts) if given is None else given, texts, strict=True):
        parsed = dict.fromkeys(chain.from_iterable(map(parse_identifier, values)))
        others = [identifier for identifier in parsed if identifier.family != FILE]
        called.append((others or read_identifiers(text)) + [one for one in parsed if one.family == FILE])
    return called


@lru_cache(maxsize=2**14)
def parse_identifier(value: str) -> tuple[Identifier, ...]:
    """The identifiers in a value that a user or a loader gives a text: a number, a code, a path or a symbol.

    >>> [*map(str, parse_identifier("4.5.1.(1)"))], [*map(str, parse_identifier("Art. 6"))]
    (['4.5.1(1)'], ['article 6'])
    >>> [*map(str, parse_identifier("src/io.py"))], [*map(str, parse_identifier("Part 8.92"))]
    (['file src/io.py'], ['chapter 8.92', '92'])
    """
    text = clean(value[:_HEAD]).strip(" \t\n.:#*")
    if not text:
        return ()
    if len(files := [*_find_files(text)]) == 1 and " " not in text:
        return (Identifier(FILE, files[0]),)
    if (code := _CODE.fullmatch(text)) and (path := _path_of_code(code)):
        return (Identifier(CODE, path),)
    # "APP4.A4.6"
    cited = [*_find_numbers(_GLUED.sub(" ", text))]
    # "Part 6.Chapter 1.70(1)", "§ 12 BGB"
    if whole := [one for _, end, one in cited if end >= len(text)] or [one for start, _, one in cited if not start]:
        kind, path, _ = whole[-1]
        inner = [Identifier(NUMBER, path[1:])] if kind in ("chapter", "annex") and len(path) > 1 else []
        return (Identifier(kind, path), *inner)
    # "4.5 Records", but not "3 ways"
    number, *title = _BEFORE_TITLE.split(text, maxsplit=1)
    if _FIRST_LEVEL.match(number) and ("." in number or not title):
        return (Identifier(NUMBER, _split_value(number)),)
    name = re.split("[.:]", text.removesuffix("()"))[-1] if text.endswith("()") else text
    if _NAME.fullmatch(name) and (name != text or "_" in name or not (name.istitle() or name.islower())):
        return (Identifier(SYMBOL, (name,)),)
    return ()


def find_citations(
    text: Text, families: Collection[str] = (NUMBER, CODE, FILE), symbols: Collection[str] | None = None
) -> list[Citation]:
    """The identifiers that a text cites, each once; of some ``families`` and of all ``symbols``, or some, case-folded.

    >>> [*map(str, find_citations(Text("Subject to Rules 4.5.1 and 4.5.2(1), see RFC 7231 and `utils/io.py`.")))]
    ['section 4.5.1', 'section 4.5.2(1)', 'code RFC7231', 'file utils/io.py']
    >>> [*map(str, find_citations(Text("Art. 6 Abs. 1 lit. f DSGVO, version 4.5.1 of 12.03.2024, 3.5 km")))]
    ['article 6(1)(f) of DSGVO']
    """
    plain = clean(text.text)
    found: list[Citation] = []
    if NUMBER in families and ("§" in plain or "第" in plain or not _BEFORE_NUMBER.isdisjoint(text.words)):
        found += [citation for _, _, citation in _find_numbers(plain)]
    if CODE in families:
        found += [Citation(CODE, path) for match in _CODE.finditer(plain) if (path := _path_of_code(match))]
        if not _COUNTED.isdisjoint(text.words):
            counted = (m for m in _COUNTED_CODE.finditer(plain) if _read_before(plain, m, _COUNTED)[1] in _COUNTED)
            found += [Citation(CODE, (match["n"].upper(),)) for match in counted]
    if FILE in families:
        found += [Citation(FILE, path) for path in _find_files(plain)]
    if symbols is None or symbols:
        found += [Citation(SYMBOL, (name,)) for name in _find_symbols(plain, symbols)]
    return list(dict.fromkeys(found))


def clean(text: str) -> str:
    """The text without invisible characters, in one form of each character."""
    return text if text.isascii() else normalise(_INVISIBLE.sub("", text))


def _find_numbers(text: str) -> Iterator[tuple[int, int, Citation]]:
    """The numbers of documents that a text cites, with the places where their series begins and ends."""
    if "第" in text:
        yield from _find_chinese(text)
    end = 0
    for match in _NUMBER.finditer(text):
        if match.start() < end or (kind := _read_kind(text, match)) is None:
            continue
        start, family, plural, document = kind
        paths, end = _read_series(text, match, family, plural)
        beside = _BESIDE.match(text, end) if document == "" else None
        if beside is not None:
            document = _NO_NAME.split(beside["long"] or beside["short"], maxsplit=1)[0]
        for path in paths:
            if family != "paragraph" or count_levels(path) > 1:
                yield start, end, Citation(family, path, document or "")


def _read_kind(text: str, match: re.Match[str]) -> tuple[int, str, bool, str | None] | None:
    """What makes a number a citation: its place, kind, whether a plural, and the document named before it.

    The document is None where none can be told, since all words are in capitals.
    """
    before, word = _read_before(text, match, _FAMILY)
    number = match["number"]
    if (family := _FAMILY.get(word)) is None:
        if number.count(".") < 2 or (word not in _LEADING and not before.casefold().rstrip().endswith(_LEADING_PAIRS)):
            return None
        # "see 4.5.1", but no date. A version or an address of the internet has more such levels.
        path = _split_number(number)
        levels = count_levels(path)
        is_address = levels == 4 and any(len(level) > 2 for level in path)
        is_number = levels > 2 and not _is_date(path) and "0" not in path and not is_address
        return (match.start(), NUMBER, True, "") if is_number else None
    # Counted from the end: "ß" is longer when it is case-folded.
    folded = before.casefold()
    written = before[folded.rfind(word) - len(folded) :]
    if number.isalpha() and (family not in LETTERED or not written[0].isupper()):
        return None
    rest = before[: -len(written)].rstrip()
    named = _BEFORE_KIND.search(rest) if rest[-1:].isupper() else None
    document = None if written.rstrip(" .:").isupper() else named["name"] if named else ""
    return match.start() - len(written), family, word in _PLURAL, document


def _read_series(text: str, number: re.Match[str], family: str, plural: bool) -> tuple[list[tuple[str, ...]], int]:
    """The numbers that share a kind, "Sections 4, 5(2) and 7 to 9", and where the last one ends."""
    paths: list[tuple[str, ...]] = []
    following: re.Match[str] | None = number
    is_range = False
    while following is not None:
        number = following
        path, end = _split_number(number["number"], family), number.end("number")
        while (sub := _SUB.match(text, end)) and len(path) < _MOST_LEVELS:
            path, end = (*path, f"({sub['level'].casefold()}"), sub.end()
        paths += [*_list_between(paths[-1], path), path] if is_range else [path]
        while path[-1][0] == "(" and (bracket := _AND_BRACKET.match(text, end)):
            paths.append((*path[:-1], f"({bracket['level'].casefold()}"))
            end = bracket.end()
        join = _JOIN.match(text, end)
        following = _NUMBER.match(text, join.end()) if join is not None else None
        is_range = join is not None and join["to"] is not None
        # "Sections 4 and A to Z": a letter goes on a series of letters only.
        if following is not None and following["number"].isalpha() and not number["number"].isalpha():
            break
        if following is not None and not (plural or "." in following["number"]):
            break
    return paths, end


def _list_between(first: tuple[str, ...], last: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The numbers between two that differ in their last level, as far as they are counted."""
    low, high = first[-1].lstrip("("), last[-1].lstrip("(")
    if len(first) != len(last) or first[:-1] != last[:-1] or not (low.isdecimal() and high.isdecimal()):
        return []
    mark = "(" if first[-1][0] == "(" else ""
    numbers = range(int(low) + 1, int(high))
    return [(*first[:-1], f"{mark}{number}") for number in numbers] if len(numbers) <= _LONGEST_RANGE else []


def _find_chinese(text: str) -> Iterator[tuple[int, int, Citation]]:
    """ "第5条第2項", "第三章": the number of an article or a chapter, with its paragraphs."""
    for match in _CJK.finditer(text):
        inner = (f"({_read_han(number)}" for number in re.findall(_CJK_NUMBER, match[3]))
        yield match.start(), match.end(), Citation(_CJK_KIND[match[2]], (_read_han(match[1]), *inner))


def _read_han(number: str) -> str:
    """ "一百零三" as "103"."""
    if number.isdecimal():
        return str(int(number))
    total, digit = 0, 0
    for c in number:
        unit = _HAN_UNITS.get(c, 0)
        total, digit = total + (digit or 1) * unit, 0 if unit else _HAN[c]
    return str(total + digit)


@lru_cache(maxsize=2**14)
def _split_number(number: str, family: str = NUMBER) -> tuple[str, ...]:
    """The levels of a number as it stands in a text: "4.5.1(2)" has "4", "5", "1" and "(2".

    >>> _split_number("4.5.1 (2)(b)"), _split_number("IV", "chapter"), _split_number("C", "annex")
    (('4', '5', '1', '(2', '(b'), ('4',), ('c',))
    """
    if family in ("chapter", "article") and (roman := _read_roman(number)):
        return (roman,)
    plain, *bracketed = number.replace(" ", "").casefold().replace(")", "").split("(")
    return (*filter(None, plain.split(".")), *(f"({level}" for level in bracketed))


def _split_value(value: str) -> tuple[str, ...]:
    """The levels of a number in metadata. From a word on all levels are inner ones: "1.2.Guidance" has "(guidance"."""
    path: list[str] = []
    inner = False
    for mark, level in _LEVEL.findall(value):
        inner = inner or mark == "(" or (bool(path) and len(level) > 2 and level.isalpha())
        path.append("(" * (inner and bool(path)) + level.casefold())
    return tuple(path[:_MOST_LEVELS])


def _read_roman(number: str) -> str:
    """ "XIV" as "14"; empty if it is no Roman number."""
    digits = [_ROMAN.get(c, 0) for c in number.casefold()]
    if not number.isupper() or 0 in digits:
        return ""
    return str(sum(-a if a < b else a for a, b in zip(digits, [*digits[1:], 0], strict=True)))


def count_levels(path: tuple[str, ...]) -> int:
    """How many levels stand before the brackets."""
    return sum(level[0] != "(" for level in path)


def _is_date(path: tuple[str, ...]) -> bool:
    """Whether the levels of a number are those of a date: "12.03.2024"."""
    return len(path) == 3 and (len(path[2]) == 4 or len(path[0]) == 4)


def _path_of_code(match: re.Match[str]) -> tuple[str, ...]:
    """A code without what may stand between its letters and digits; empty for an amount, a year or another number."""
    letters, digits = match[0][: match.end("letters") - match.start()], match["digits"]
    code = letters + digits
    # "E1042" and "OPS-412", but neither "A4" nor "B 12".
    if match["mark"] == "-":
        is_code = len(letters) > 1
    else:
        letters = code.rstrip("0123456789-")
        is_code = not match["mark"] and letters.isalpha() and "-" not in digits and len(code) - len(letters) > 2
    return (code,) if letters in _STANDARDS or (is_code and letters not in _NO_CODES) else ()


def _find_files(text: str) -> Iterator[tuple[str, ...]]:
    """The paths of files, and the names of files, without addresses of the internet."""
    for match in _SUFFIX.finditer(text):
        path = _OUTSIDE_OF_PATH.split(text[max(0, match.start() - _LONGEST_PATH) : match.end()])[-1]
        if "://" not in path and "@" not in path and path[0] != ".":
            parts = re.split(r"[\\/]", path.rpartition(":")[2])
            yield tuple([part for part in parts if part not in ("", ".", "..")])


def _find_symbols(text: str, known: Collection[str] | None) -> Iterator[str]:
    """The names of what is called, or stands between backticks; only those that are ``known``, if they are given."""
    for match in _SYMBOL.finditer(text):
        name = re.split("[.:]", match["called"] or match["quoted"])[-1]
        if name and name not in _WORDS_OF_CODE and (known is None or name.casefold() in known):
            yield name


def _read_before(text: str, match: re.Match[str], kinds: Container[str]) -> tuple[str, str]:
    """The text before a number, and its last word, case-folded; of "Article No. 5" the one of these kinds."""
    before = text[max(0, match.start() - _BACK) : match.start()]
    word = _last_word(before)
    kind = _last_word(before.rstrip(_MARKS_BEHIND)[: -len(word)]) if word in _NUMBER_SIGN else ""
    return before, kind if kind in kinds else word


def _last_word(text: str) -> str:
    """The letters at the end of a text, case-folded, or the sign of a section; marks after them do not count."""
    text = text.rstrip(_MARKS_BEHIND)
    if text.endswith("§"):
        return text[-2:] if text.endswith("§§") else "§"
    last = text[text.rfind(" ") + 1 :]
    return (last if last.isalpha() else _NO_LETTERS.split(last)[-1]).casefold()


def find_cited(
    texts: Sequence[Text],
    identifiers: Sequence[Sequence[Identifier]],
    sources: Sequence[Hashable | None],
    titles: Sequence[str],
    skipped: Container[int] = (),
) -> Iterator[tuple[int, list[int], float]]:
    """What each text, those at the ``skipped`` rows aside, cites: its row, the rows it leads to, and how clearly.

    A number means a text of the same source. Another document has to be named beside it, by words of its source or of
    the title of one of its texts. A citation leads to the m parts of a section, or to the m pieces of a file, by 1/m
    each. If the sources are not known, the m texts of one number may belong to m documents: again 1/m.
    """
    bearers = _Bearers(identifiers, sources, titles)
    for row, text in enumerate(texts):
        if row not in skipped:
            for citation in find_citations(text, bearers.families, bearers.find_symbols(text, row)):
                for targets, strength in bearers.find(citation, row):
                    yield row, targets, strength


def find_uncited(
    rows: Sequence[int],
    texts: Sequence[str],
    identifiers: Sequence[Sequence[Identifier]],
    sources: Sequence[Hashable | None],
    titles: Sequence[str],
    most: int,
) -> Iterator[list[tuple[Citation, Hashable | None]]]:
    """For each of the ``rows`` the ``most`` first numbers and codes that its text cites and no text is called.

    With each comes the source that it belongs to. A code has the source of the text that cites it.
    """
    bearers = _Bearers(identifiers, sources, titles)
    for row in rows:
        uncited = (
            (citation, source)
            for citation in find_citations(Text(texts[row]), bearers.families - {FILE}, ())
            for source in bearers.find_lacking(citation, row)
        )
        yield [*islice(uncited, most)]


class _Bearers:
    """The rows of texts by their identifiers."""

    def __init__(
        self,
        identifiers: Sequence[Sequence[Identifier]],
        sources: Sequence[Hashable | None],
        titles: Sequence[str],
    ) -> None:
        self.sources = sources
        self.families = {family if family in EVERYWHERE else NUMBER for family, _ in chain(*identifiers)}
        # Whether paragraphs of a section are texts of their own.
        self.has_paragraphs = any(path[-1][0] == "(" for family, path in chain(*identifiers) if family != FILE)
        # The identifiers of each document, and those of each family that means the same everywhere; and the ends of
        # paths, by which files are called, and the beginnings of numbers, of which they are parts.
        self._exact: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        self._parts: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        for row, called in enumerate(identifiers):
            for family, path in called:
                document = family if family in EVERYWHERE else sources[row]
                self._exact[document][path].append((row, family))
                for place in range(1, len(path)):
                    part = path[place:] if family == FILE else path[:place]
                    self._parts[document][part].append((row, family))
        # The only row that defines a symbol, or None. The underscores at the ends of a word may be markup.
        self._symbols: dict[str, int | None] = {}
        for path, rows in self._exact[SYMBOL].items():
            name = path[0].casefold()
            for form in {name, name.strip("_"), name.lstrip("_"), name.rstrip("_")}:
                self._symbols[form] = None if form in self._symbols or len(rows) > 1 else rows[0][0]
        self._titles = dict.fromkeys(zip(sources, titles, strict=True))

    @cached_property
    def _words(self) -> list[tuple[Hashable, set[str]]]:
        """Each source, with its words and those of each title of one of its texts."""
        return [(source, set(split_words(f"{source} {title}"))) for source, title in self._titles]

    def find_symbols(self, text: Text, row: int) -> set[str]:
        """The symbols, case-folded, that may stand in the text at this row, but for those that only it defines."""
        return {word for word in self._symbols.keys() & text.words if self._symbols[word] != row}

    def find(self, citation: Citation, row: int) -> Iterator[tuple[list[int], float]]:
        """The rows that a citation in the text at this row leads to, and how clearly."""
        family, path, name = citation
        if family in EVERYWHERE:
            if found := self._find_everywhere(family, path):
                yield found, 1 / len(found) if family == FILE else 1.0
            return
        for source in self.find_documents(name, row):
            whole = path
            # A paragraph that has no text of its own is in the text of its section.
            while not (exact := _agreeing(self._exact[source], family, whole)) and whole[-1][0] == "(":
                whole = whole[:-1]
            if exact:
                yield exact, 1.0 if source is not None else 1 / len(exact)
            if parts := [part for part in _agreeing(self._parts[source], family, path) if part != row]:
                yield parts, 1 / len(parts)

    def find_lacking(self, citation: Citation, row: int) -> Iterator[Hashable]:
        """The sources that a citation in the text at this row means, and that have no text of the same identifier."""
        family, path, name = citation
        if family in EVERYWHERE:
            if not self._find_everywhere(family, path):
                yield self.sources[row]
            return
        if not self.has_paragraphs:
            path = path[: count_levels(path)]
        for source in self.find_documents(name, row):
            if not _agreeing(self._exact[source], family, path):
                yield source

    def _find_everywhere(self, family: str, path: tuple[str, ...]) -> list[int]:
        exact = self._exact[family]
        found = exact.get(path, []) + self._parts[family].get(path, [])
        while not found and family == FILE and len(path) > 1:
            path = path[1:]
            found = exact.get(path, [])
        return [row for row, _ in found]

    def find_documents(self, name: str, row: int) -> list[Hashable]:
        """The sources with the words of a name in them or a title of their texts; without a name that of this row."""
        if not name:
            return [self.sources[row]]
        words = {word for word in split_words(name) if word not in _NO_NAMES}
        return list(dict.fromkeys(source for source, own in self._words if words and words <= own))


def _agreeing(index: _Index, family: str, path: tuple[str, ...]) -> list[int]:
    """The rows with this path in the index, without those of another kind.

    Numbers of several levels agree whatever their kinds are, unless only one is of an annex.
    """
    if not (rows := index.get(path)):
        return []
    several = count_levels(path) > 1
    return [
        row
        for row, other in rows
        if other in (family, NUMBER) or family == NUMBER or (several and "annex" not in (other, family))
    ]


def number_sections(identifiers: Sequence[Sequence[Identifier]], sources: Sequence[Hashable | None]) -> list[int]:
    """The same number for texts that belong to one section of one document, or that have one code; else different ones.

    >>> number_sections([*map(parse_identifier, ["4.5.1(1)", "4.5.1(2)", "4.5.2", "E10", ""])], [None] * 5)
    [0, 0, 2, 3, 4]
    """
    first: dict[Hashable, int] = {}
    sections: list[int] = []
    for row, called in enumerate(identifiers):
        place: Hashable = row
        if called:
            family, path = called[0]
            place = (family if family in EVERYWHERE else NUMBER, sources[row], path[: count_levels(path)])
        sections.append(first.setdefault(place, row))
    return sections
