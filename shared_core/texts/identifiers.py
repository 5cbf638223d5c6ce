"""What a text is called by number or code, and which of the candidates' numbers another text cites.

Citations are looked up. A number of one or two levels needs its kind before it, "Rule 4.5": a word of ``kinds.py``, or
the one with which a candidate writes its own number. A longer number ("4.5.1") and one with letters ("AC-2") are found
wherever they stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from . import kinds
from .fold import clean, fold
from .words import Text, keep, read_text, split_words

# The family of codes, which mean the same in every document; and of numbers whose kind is not known.
CODE, NUMBER = "code", ""
# The most numbers in a range ("Sections 4 to 6"). How many characters are looked at in the beginning of a text, and
# before a number.
_LONGEST_RANGE, _HEAD, _BACK = 100, 200, 40

Path = tuple[str, ...]


class Identifier(NamedTuple):
    """What a text is called: the family of its kind, or the kind itself, and the levels, outermost first.

    The levels of "4.5.1(2)(b)" are "4", "5", "1", "(2", "(b", and those of "SYSC 4.1R" are "sysc4", "1r".
    """

    family: str
    path: Path

    def __str__(self) -> str:
        levels = "".join(f"{level})" if level[0] == "(" else f".{level}" for level in self.path)
        return f"{self.family} {levels.lstrip('.')}".strip()


class Series(NamedTuple):
    """Numbers that stand in a text, "Sections 4, 5(2) and 7 to 9", with the word before them and where they end.

    ``behind`` is what is joined to a number that has something on both sides, "第5条". Each number has its levels, and
    whether it is the last one of a range.
    """

    start: int
    end: int
    word: str
    behind: str
    numbers: tuple[tuple[Path, bool], ...]


def _any(words: str) -> str:
    return "|".join(word.replace("_", " ") for word in words.split())


_FAMILY = {
    fold(word): family
    for language in kinds.KIND_WORDS.values()
    for family, words in zip(kinds.FAMILIES, language.split("|"), strict=True)
    for word in words.split()
}
# Families that are no words with which texts write their own numbers.
_NO_KINDS = {*kinds.FAMILIES, CODE, NUMBER}
_NUMBER_SIGNS, _NO_CODES, _UNITS, _NO_NAMES = (
    frozenset(words.split()) for words in (kinds.NUMBER_SIGNS, kinds.NO_CODES, kinds.UNITS, kinds.NO_NAMES)
)
_LETTERED = {word for word, family in _FAMILY.items() if family in kinds.LETTERED}
# Japanese and Chinese numerals, and Roman ones, each with its value.
_HAN = {c: int(unicodedata.numeric(c)) for c in "〇零一二三四五六七八九十百千"} | {"两": 2}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}

# Letters of scripts with capitals; and letters, with the vowel signs of scripts in which these are none to Python.
_CASED, _IN_HAN = "A-Za-z\u00c0-\u024f\u0370-\u052f", f"[{''.join(_HAN)}]"
_LAST_WORD = re.compile(r"(?:(?:[^\W\d_]|[\u0300-\u036f\u0590-\u06ff\u0900-\u109f\u1780-\u17ff])+|§*)\Z")
# The letters of a code, "SOP-QA-012"; letters that stand alone, which some kinds have in place of a number.
_LETTERS = r"(?P<letters>[A-Z][A-Za-z]{0,9}+(?:[-./&][A-Z][A-Za-z]{0,5}+){0,3})(?:(?P<dash>-)|\.?)(?=\d)"
_LETTER = r"(?P<letter>[IVXLC]{1,6}|[A-Z])(?![\w'’])"
# One level, "12a"; further ones in brackets, or behind a word: "Abs. 2".
_LEVEL = r"\d{1,10}+(?:[A-Za-z](?!\w))?"
_BRACKET = r"\([ ]?(?:\d{1,3}[a-z]?|[a-zA-Z]{1,2}|[ivx]{2,5})[ ]?\)"
_INNER = rf"[ \u00a0]{{0,2}},?[ \u00a0]{{0,2}}(?:{_any(kinds.INNER)})\b\.?[ \u00a0]{{0,2}}"
_INNER_WORD = re.compile(_INNER)
_NUMBER = rf"""
    (?:{_LETTERS})?
    (?P<number>
        (?: {_IN_HAN}{{1,9}}
          | {_LEVEL} (?(dash) (?:-\d{{1,10}}+){{0,3}})      # "CVE-2024-3094"
            (?: [-\ ]?(?:{_any(kinds.INSERTED)})(?!\w|\s+\d) )?
            (?: \.[A-Z]?{_LEVEL} ){{0,11}} )
        (?: [.\ ]?{_BRACKET} | {_INNER}(?:\d{{1,3}}[a-z]?|[a-z]{{1,2}})\)?(?!\w) ){{0,6}}
    )
    (?! [\d%€$£°_{_CASED}] | [.:]\d | ,\d{{3}}(?!\d) | \s[%€°] )
    # What is joined to its end: a sign of a section, or letters of a script without capitals, as in "第5条の2第3項".
    (?: \.?\s?(?P<unit>§|部分|[条條章節节編编조장절편])(?:[の之의](?P<inserted>\d+|{_IN_HAN}+))?
      | (?=(?P<other>[^\W\d_{_CASED}]{{1,6}})) )?
    | {_LETTER}
"""
# Where a number may begin. The search is fast, because the pattern begins with characters, before the lookbehinds.
_START = re.compile(
    rf"(?:[0-9A-Z]|{_IN_HAN})(?:(?<=\d)(?<![\d_$€£¥#=~^+{_CASED}].)(?<!\d[.,:].)|(?<=第.)"
    rf"|(?<=[A-Z])(?<![\w./\\@-].)(?:(?=[A-Za-z./&-]{{0,30}}\d)|(?<=[IVXLC])[IVXLC]{{0,5}}(?![\w'’])|(?![\w'’])))"
)
_FIRST = re.compile(rf"(?P<to>)(?P<bracket>)(?x:{_NUMBER})")
# The next number of a series, or the next bracket: "(1)(a) and (b)". "Section 4, 2024" goes on with none.
_NEXT = re.compile(
    rf"(?:[ ]?\([^\W\d_][^()\n]{{2,80}}\))?\s*+(?:(?P<to>[-–—~〜～]|{kinds.TO_JOINED}|(?:{_any(kinds.TO)})(?![^\W\d_]))"
    rf"|,?\s*+(?:{_any(kinds.AND)})(?![^\W\d_])|[,;&、/])\s*+(?:§+|[第제])?\s*+(?!(?:19|20)\d\d\b(?!\.\d))"
    rf"(?:\((?P<bracket>\d{{1,3}}[a-z]?|[a-z]{{1,3}})\)|(?x:{_NUMBER}))"
)
# The name of a document beside a number: after "of", or an abbreviation ("DSGVO"); and one before the kind.
_OF_NAME = r"(?:[A-ZÄÖÜÉÀÈÁ][\w&’'.-]{0,40}\w|[A-Z])"
_BESIDE = re.compile(
    rf"[ \u00a0]*,?[ \u00a0](?:(?:{_any(kinds.OF)})[ \u00a0]+(?:(?:{_any(kinds.THE)})[ ’'])?"
    rf"(?P<long>{_OF_NAME}(?:[ ](?:(?:{_any(kinds.INSIDE)})[ ]){{0,2}}{_OF_NAME}){{0,7}})"
    r"|(?P<short>(?=\w*[A-Z]\w*[A-Z])[A-ZÄÖÜ][\w-]{1,12}))(?!\w)"
)
_BEFORE = re.compile(r"(?:\A|[\s(])([A-Z]{2,12})[ \u00a0]*\Z")
# What separates the number of a text from its title.
_SEPARATOR = re.compile(r"\s*(?:\(|[.:|)–—-]+(?=\W|\Z)|\Z)")


@keep
def read_series(text: Text) -> list[Series]:
    """The numbers that stand in a text, of whatever kind."""
    found, end = list[Series](), 0
    while start := _START.search(text.plain, end):
        series = _read_series(text.plain, start.start())
        found += [series] if series else []
        end = series.end if series else start.end()
    return found


def _read_series(text: str, start: int) -> Series | None:
    """The numbers from this place on, and the word before them."""
    first = _FIRST.match(text, start)
    if first and first["letters"] and not first["dash"] and fold(first["letters"]) in _FAMILY:
        # "Art.6"
        start = first.start("number")
        first = _FIRST.match(text, start)
    if not first:
        return None
    word, place = _read_word(text, start)
    if first["letter"] and not (word[:1].isupper() and fold(word) in _LETTERED):
        return None
    path = split_number(first["letters"], first["letter"] or first["number"], first["inserted"])
    if not (word or first["letters"] or first["unit"] or first["other"]):
        # Most numbers say nothing.
        return Series(start, first.end(), "", "", ((path, False),)) if not start or _is_telling(path) else None
    numbers, behind, end = list[tuple[Path, bool]](), "", start
    item: re.Match[str] | None = first
    while item:
        if not item["bracket"]:
            if bool(item["letter"]) != bool(first["letter"]) or item["letters"] not in (None, first["letters"]):
                break
            path = split_number(item["letters"], item["letter"] or item["number"], item["inserted"])
        elif path[-1][0] == "(":
            path = (*path[:-1], f"({item['bracket'].casefold()}")
        else:
            break
        numbers.append((path, bool(item["to"])))
        behind, end = item["unit"] or item["other"] or behind, item.end()
        item = _NEXT.match(text, end)
    return Series(place, end, word, behind, tuple(numbers))


def _read_word(text: str, end: int) -> tuple[str, int]:
    """The letters or sign before a place of a text, and where they begin; not the sign in "Article No. 5"."""
    before = text[max(0, end - _BACK) : end].rstrip(" \t\n\r\xa0.:°º")
    word = before.rsplit(None, 1)[-1] if before else ""
    if not word.isalpha():
        word = _LAST_WORD.search(word)[0]  # type: ignore[index]
    place = max(0, end - _BACK) + len(before) - len(word)
    earlier = _read_word(text, place) if word.lower() in _NUMBER_SIGNS else ("", 0)
    return earlier if earlier[0] else (word, place)


def _find_kind(words: Mapping[str, str], series: Series) -> str | None:
    """What is numbered, by the word before and what is joined to the number, "第#条"; None if that is not known.

    In scripts without capitals other words may be joined to this word: "ตามมาตรา 5".
    """
    word, behind = fold(series.word), series.behind
    starts = (0, len(word)) if word[-1:].islower() else range(len(word) + 1)
    forms = (f"{word[a:]}#{behind[:b]}" if b else word[a:] for b in range(len(behind), -1, -1) for a in starts)
    return next(filter(None, map(words.get, forms)), None)


@lru_cache(maxsize=2**14)
def split_number(letters: str | None, number: str, inserted: str | None = None) -> Path:
    """The levels of a number as it stands in a text, behind the letters of a code.

    >>> split_number(None, "4.5.1 (2)(b)"), split_number("AC", "2(1)"), split_number(None, "5-bis")
    (('4', '5', '1', '(2', '(b'), ('ac2', '(1'), ('5bis',))
    """
    joined = re.sub(r"[- ](?=[a-z])|[ )]", "", _INNER_WORD.sub("(", number).casefold())
    first, *levels = re.findall(r"\(?[^.(]+", (letters or "").casefold() + joined)
    return (_read_han(first) + (f"-{_read_han(inserted)}" if inserted else ""), *levels)


def _read_han(number: str) -> str:
    """ "一百零三" as "103"; other numbers as they are."""
    total, digit = 0, 0
    for value in map(_HAN.get, number):
        if value is None:
            return number
        total, digit = (total, value) if value < 10 else (total + (digit or 1) * value, 0)
    return str(total + digit)


def _read_roman(family: str | None, path: Path) -> Path:
    """The levels, with a Roman number of some kinds as a number."""
    digits = [_ROMAN.get(c, 0) for c in path[0]]
    if family not in kinds.ROMAN or 0 in digits:
        return path
    return (str(sum(-a if a < b else a for a, b in zip(digits, [*digits[1:], 0], strict=True))), *path[1:])


def count_levels(path: Path) -> int:
    """How many levels stand before the brackets."""
    return sum(level[0] != "(" for level in path)


def _letters_of(path: Path) -> str:
    """The letters with which a code begins."""
    return re.match(r"\D*(?=\d)|", path[0])[0]  # type: ignore[index]


def _is_code(path: Path) -> bool:
    """Whether a number with letters means the same in every document: "E1042" and "AC-2", but not "A4"."""
    letters = _letters_of(path)
    return len(letters) > 1 or (bool(letters) and sum(map(str.isdecimal, path[0])) > 2)


@lru_cache(maxsize=2**14)
def _is_telling(path: Path) -> bool:
    """Whether a number needs no kind: it has three levels, five digits, or letters and digits."""
    levels = count_levels(path)
    text = "".join(path[:levels])
    has_letters = len(text) > 2 and (levels > 1 or text[0].isalpha()) and not text.isalpha()
    return levels > 2 or (len(text) > 4 if text.isdecimal() else has_letters)


@lru_cache(maxsize=2**14)
def parse_identifier(value: str) -> tuple[Identifier, ...]:
    """The identifiers in a value that a user or a loader gives a text: a number or a code.

    >>> [*map(str, parse_identifier("4.5.1.(1)"))], [*map(str, parse_identifier("Art. 6"))]
    (['4.5.1(1)'], ['article 6'])
    >>> [*map(str, parse_identifier("Part 8.92"))]
    ['chapter 8.92', '92']
    """
    text = clean(value[:_HEAD]).strip(" \t\n.:#*")
    found = read_series(Text(text))
    found = found[:1] if text[:1].isdigit() else found
    # "Part 6.Chapter 1.70(1)", "§ 12 BGB"
    series = next((one for one in found[::-1] if one.end >= len(text) or one.start == 0), None)
    if not series:
        return ()
    called, rest = _call(series), text[series.end :]
    family, path = called[-1]
    # "1.2.1.Guidance.1": from a word on all levels are inner ones.
    if rest[:1] == "." and len(found) == 1:
        path += tuple(f"({level}" for level in re.findall(r"[^\W_]+", rest.casefold()))
        called = (Identifier(family, path),)
    # "4.5 Records", but not "3 ways"
    if not family and len(path) < 2 and rest[:1].isspace():
        return ()
    has_inner = len(path) > 1 and (family in (kinds.CHAPTER, kinds.ANNEX) or path[1][0].isalpha())
    return (*called, Identifier(NUMBER, path[1:])) if has_inner else called


def _call(series: Series) -> tuple[Identifier, ...]:
    """What a text is called by its own number: a word that is not known is its kind, and capitals begin a code."""
    family, paths, word = _find_kind(_FAMILY, series), [path for path, _ in series.numbers], fold(series.word)
    if family is None and len(word) > 1 and series.word.isupper():
        family, paths = NUMBER, [(word + path[0], *path[1:]) for path in paths]
    elif family is None:
        family = f"{word}#{series.behind}" if series.behind else word
    return tuple(
        Identifier(CODE if not family and _is_code(path) else family, _read_roman(family, path)) for path in paths
    )


@keep
def read_identifiers(text: Text) -> list[Identifier]:
    """What a text is called by the number or code with which it begins.

    >>> [*map(str, read_identifiers(Text("4.5.1 A Person must"))), *map(str, read_identifiers(Text("§ 12 Fristen")))]
    ['4.5.1', 'section 12']
    """
    series = _read_own(text.plain[: 2 * _HEAD].lstrip("\n\t #*_>=-")[:_HEAD].partition("\n")[0].rstrip())
    return [*_call(series)] if series else []


@lru_cache(maxsize=2**12)
def find_own_number(title: str) -> int:
    """Where the number ends with which a title begins; 0 if it has none."""
    series = _read_own(title[:_HEAD])
    return series.end if series else 0


def _read_own(head: str) -> Series | None:
    """The number with which a text begins, if it is its own: no word of a sentence follows it.

    The kind of a number that no list has needs a separator behind the number, or the end of the line.
    """
    start = _START.search(head, 0, _BACK)
    series = _read_series(head, start.start()) if start else None
    return series if series and series.start == 0 and _is_own(head, series) else None


def _is_own(head: str, series: Series) -> bool:
    path, rest, family, word = series.numbers[0][0], head[series.end :], _find_kind(_FAMILY, series), series.word
    levels, separated, letters = count_levels(path), bool(_SEPARATOR.match(rest)), _letters_of(path)
    following = next(filter(str.isalnum, rest), "")
    if letters or (word.isupper() and len(word) > 1 and family is None):
        is_long = levels > 1 or sum(map(str.isdecimal, path[0])) > 2 or "-" in head[: series.end]
        return is_long and (letters or fold(word)) not in _NO_CODES
    if not word and not series.behind:
        is_title = following.isalpha() and not following.islower() and rest.split()[0] not in _UNITS
        is_date = levels == 3 and 4 in (len(path[0]), len(path[2]))
        return not is_date and (levels > 2 or (levels > 1 and is_title))
    if _BESIDE.match(rest) or rest[:1].isalpha() or (following.islower() and not separated):
        return False
    # Where words are joined to a kind, a sentence begins: "ตามมาตรา 5". The first one of Arabic is an article.
    folded, first = fold(word), word[:1]
    is_kind = folded in _FAMILY or folded.removeprefix("ال") in _FAMILY or (series.behind and len(word) < 2)
    return bool(is_kind) or (family is None and first == first.title() and (separated or first == first.lower()))


def list_identifiers(
    given: Sequence[Iterable[str]] | None, texts: Sequence[Text], titles: Sequence[str] | None = None
) -> list[list[Identifier]]:
    """What each text is called: what is given for it, or else what it or its title begins with."""
    return [
        [*dict.fromkeys(chain.from_iterable(map(parse_identifier, values)))]
        or read_identifiers(text)
        or read_identifiers(read_text(title))
        for values, text, title in zip(given or [()] * len(texts), texts, titles or [""] * len(texts), strict=True)
    ]


class Citations:
    """Who is called by which identifiers, and what texts cite; ``sources`` and ``titles`` are those of the documents.

    A number means a text of the same source. Another document has to be named beside it, by words of its source or of
    the title of one of its texts. Where it is not known which document is meant, there is no citation.
    """

    def __init__(
        self,
        identifiers: Sequence[Sequence[Identifier]],
        sources: Sequence[Hashable | None],
        titles: Sequence[str],
    ) -> None:
        self._sources, self._titles = sources, titles
        # For each document, and for codes: by identifiers and what they are parts of, each row that has one, its
        # family, and whether it is the whole identifier.
        self._rows: dict[Hashable, dict[Path, list[tuple[int, str, bool]]]] = defaultdict(lambda: defaultdict(list))
        # The last levels of all numbers, and of what they are parts of, by the levels before; the sources of families.
        self._levels: dict[Path, set[str]] = defaultdict(set)
        self._sources_of: dict[str, dict[Hashable, None]] = defaultdict(dict)
        own = {family for called in identifiers for family, _ in called} - _NO_KINDS
        # A word to which another kind is joined begins a sentence.
        joined = {family for family in own for kind in own if family != kind and family.endswith(kind)}
        self._kinds = _FAMILY | {kind: kind for kind in own - joined}
        for row, called in enumerate(identifiers):
            for family, path in called:
                if family in joined:
                    continue
                self._sources_of[family][sources[row]] = None
                rows = self._rows[CODE if family == CODE else sources[row]]
                for depth, level in enumerate(path):
                    self._levels[path[:depth]].add(level)
                    rows[path[: depth + 1]].append((row, family, depth + 1 == len(path)))
        known = [(*path, level) for path, levels in self._levels.items() for level in levels]
        self._has_paragraphs = any(path[-1][0] == "(" for path in known)
        self._letters = set(map(_letters_of, known))
        # A text without a kind has no citation, unless there are numbers that need none.
        self._reads_all = any(map(_is_telling, known))

    @cached_property
    def _words(self) -> list[tuple[Hashable, set[str]]]:
        """Each source, with its words and those of each title of one of its texts."""
        named = dict.fromkeys(zip(self._sources, self._titles, strict=True))
        return [(source, set(split_words(f"{source} {title}"))) for source, title in named]

    def find_cited(self, texts: Sequence[Text], skipped: Container[int] = ()) -> Iterator[tuple[int, list[int], float]]:
        """What each text cites, but for the ``skipped`` rows: its row, the rows it leads to, and how clearly.

        A citation leads to the m parts of a section by 1/m each.
        """
        for row, text in enumerate(texts):
            for (family, path), source in () if row in skipped else self._read(text, row):
                exact, parts = self._find_rows(source, family, path)
                # A paragraph that has no text of its own is in the text of its section.
                whole = path
                while not exact and whole[-1][0] == "(":
                    whole = whole[:-1]
                    exact, _ = self._find_rows(source, family, whole)
                # The texts of one number may belong to several documents, if these are not known.
                if exact and (source is not None or len(exact) == 1):
                    yield row, exact, 1.0
                if parts := [part for part in parts if part != row]:
                    yield row, parts, 1 / len(parts)

    def find_uncited(self, text: Text, row: int) -> Iterator[tuple[Identifier, Hashable | None]]:
        """The numbers and codes that the text at this row cites and no text is called, with their sources.

        A code has the source of the text that cites it.
        """
        for citation, source in self._read(text, row):
            family, path = citation
            path = path if self._has_paragraphs else path[: count_levels(path)]
            if family != NUMBER and not self._find_rows(source, family, path)[0]:
                yield citation, self._sources[row] if family == CODE else source

    def _find_rows(self, document: Hashable, family: str, path: Path) -> tuple[list[int], list[int]]:
        """The rows of a document that are called so, and those of its parts, without those of another kind.

        Numbers of several levels agree whatever their kinds are, unless only one is of an annex.
        """
        several = count_levels(path) > 1 and family != kinds.ANNEX
        found = [
            (row, is_whole)
            for row, other, is_whole in self._rows[document].get(path, ())
            if not family or other in (family, NUMBER) or (several and other != kinds.ANNEX)
        ]
        return [row for row, is_whole in found if is_whole], [row for row, is_whole in found if not is_whole]

    def _read(self, text: Text, row: int) -> Iterable[tuple[Identifier, Hashable | None]]:
        """What the text at this row cites by number or code, each once, with its source; that of a code is ``CODE``."""
        reads_all = self._reads_all or not text.text.isascii()
        if not self._levels or not (reads_all or not self._kinds.keys().isdisjoint(text.words)):
            return ()
        return dict.fromkeys(chain.from_iterable(self._cite(text, row, series) for series in read_series(text)))

    def _cite(self, text: Text, row: int, series: Series) -> Iterator[tuple[Identifier, Hashable | None]]:
        """The citations of numbers of a known kind, and of those that need none."""
        family, word = _find_kind(self._kinds, series), fold(series.word)
        if _is_code(series.numbers[0][0]):
            family, word = None, ""
        # "SYSC 4.1.1R"
        letters = word if family is None and series.word.isupper() and word in self._letters else ""
        cited, before = list[Path](), Path()
        for number, is_last in series.numbers:
            path = _read_roman(family, (letters + number[0], *number[1:]))
            cited += [*(self._list_between(before, path) if is_last else ()), path]
            before = path
        if family is None:
            cited = [path for path in cited if _is_telling(path) and _letters_of(path) in self._letters]
        elif family == kinds.PARAGRAPH:
            cited = [path for path in cited if count_levels(path) > 1]
        documents = self._find_documents(text.plain, row, series, family) if cited else ()
        for path in cited:
            if family is None and _is_code(path):
                yield Identifier(CODE, path), CODE
            else:
                yield from ((Identifier(family or NUMBER, path), document) for document in documents)

    def _list_between(self, first: Path, last: Path) -> list[Path]:
        """The numbers between two that differ in their last level: whole numbers, and all that the texts have."""
        low, high = _order(first[-1]), _order(last[-1])
        if first[:-1] != last[:-1]:
            return []
        numbers = range(low[1] + 1, high[1]) if len(low) == len(high) == 3 and low[0] == high[0] else range(0)
        between = {f"{low[0]}{number}" for number in numbers[:_LONGEST_RANGE]}
        between |= {level for level in self._levels[first[:-1]] if low < _order(level) < high}
        return [(*first[:-1], level) for level in sorted(between, key=_order)]

    def _find_documents(self, text: str, row: int, series: Series, family: str | None) -> list[Hashable | None]:
        """The documents with the name that stands beside a series; else the only one of its kind, or that of the row.

        A name that no document has leads nowhere. But behind a number that needs no kind it may be another word, and
        so may it in "§ 3 BGB" of the only document.
        """
        before = _BEFORE.search(text, max(0, series.start - _BACK), series.start + (0 if family else len(series.word)))
        beside = _BESIDE.match(text, series.end)
        name = before[1] if before else (beside["long"] or beside["short"]) if beside else ""
        # "SECTION 4 OF THE ACT", "of Part 4"
        in_capitals = family is not None and len(series.word) > 1 and series.word.isupper()
        if name and not in_capitals and fold(name.partition(" ")[0].rstrip(".")) not in _FAMILY:
            words = {word for word in split_words(name) if word not in _NO_NAMES}
            found = dict.fromkeys(source for source, own in self._words if words and words <= own)
            is_sure = family if before else beside and beside["long"]
            if found or is_sure or (family and len({*self._sources}) > 1):
                return [*found]
        of_kind = self._sources_of.get(family or NUMBER, {}) if family not in _NO_KINDS else {}
        return [*of_kind] if len(of_kind) == 1 else [self._sources[row]]


def _order(level: str) -> list[Any]:
    """How levels are counted: what stands before their number, the number, and what stands behind it."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", level)]


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
            place = (family if family == CODE else NUMBER, sources[row], path[: count_levels(path)])
        sections.append(first.setdefault(place, row))
    return sections
