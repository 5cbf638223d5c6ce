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
from typing import NamedTuple

from . import kinds
from .fold import clean, fold
from .words import Text, keep, read_text, split_words

# The family of codes, which mean the same in every document; and of numbers whose kind is not known.
CODE, NUMBER = "code", ""
# The most numbers in a range ("Sections 4 to 6"), and levels of a number. How many characters are looked at in the
# beginning of a text, and before a number.
_LONGEST_RANGE, _MOST_LEVELS, _HEAD, _BACK = 100, 12, 200, 40

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
_NO_KINDS = {*kinds.FAMILIES, CODE, NUMBER, None}
_NUMBER_SIGNS, _NO_CODES, _UNITS, _NO_NAMES = (
    frozenset(words.split()) for words in (kinds.NUMBER_SIGNS, kinds.NO_CODES, kinds.UNITS, kinds.NO_NAMES)
)
# Japanese and Chinese numerals, each with its value.
_HAN = {c: int(unicodedata.numeric(c)) for c in "〇零一二三四五六七八九十百千"} | {"两": 2}
_IN_HAN = f"[{''.join(_HAN)}]"
_LETTERED = {word for word, family in _FAMILY.items() if family in kinds.LETTERED}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
# Letters and the vowel signs of scripts in which these are none to Python; and those of scripts with capitals.
_WORD = r"(?:[^\W\d_]|[\u0300-\u036f\u0590-\u06ff\u0900-\u109f\u1780-\u17ff])+"
_CASED = "A-Za-z\u00c0-\u024f\u0370-\u052f"
# The first digit of a number, or numeral behind 第; and letters that stand alone, which some kinds have in their place.
# Each begins with the character alone, before the lookbehinds: sre finds it far faster than a place that they suit.
_FIRST, _FIRST_HAN = re.compile(r"[0-9](?<![\d_$€£¥#=~^+].)(?<!\d[.,:].)"), re.compile(rf"{_IN_HAN}(?<=第.)")
_LETTER = re.compile(r"(?P<letters>)(?P<number>[IVXLC]{1,6}|[A-Z])(?![\w'’])")
_FIRST_LETTER = re.compile(r"[A-Z](?<=[ \n].)(?:(?<=[IVXLC])[IVXLC]{0,5})?(?![\w'’])")
_BRACKET = r"\([ ]?(?:\d{1,3}[a-z]?|[a-zA-Z]{1,2}|[ivx]{2,5})[ ]?\)"
# A number with its levels: "4.5.1(2)", "12a", "5-bis". Behind a join it may begin with letters: "A4.6.21".
_NUMBER = re.compile(
    rf"(?P<letters>[A-Z]{{1,4}}[-.]?(?=\d))?(?P<number>{_IN_HAN}{{1,9}}|\d{{1,10}}+(?:[A-Za-z](?!\w))?"
    rf"(?:[- ]?(?:{_any(kinds.INSERTED)})(?!\w|\s+\d))?(?:\.[A-Z]?\d{{1,5}}+(?:[A-Za-z](?!\w))?){{0,11}}"
    rf"(?:[. ]?{_BRACKET}){{0,6}})(?![\d%€$£°_{_CASED}]|[.:]\d|,\d{{3}}(?!\d)|\s[%€°])"
)
_DASHED = re.compile(r"(?:-\d{1,10}+){1,3}(?!\w)")
# What stands before a number: the letters of a code, or a word.
_LETTERS = re.compile(
    r"(?<![\w./\\@-])(?P<letters>[A-Z][A-Za-z]{0,9}+(?:[-./&][A-Z][A-Za-z]{0,5}+){0,3})(?P<mark>[-.]?)\Z"
)
_LAST = re.compile(rf"(?:{_WORD}|§*)\Z")
# What is joined to its end: a sign of a section, or letters of a script without capitals, as in "第5条の2第3項".
_BEHIND = re.compile(
    rf"\.?\s?(?P<sign>§)|(?P<unit>部分|[条條章節节編编조장절편])(?:[の之의](?P<inserted>\d+|{_IN_HAN}+))?"
    rf"|[^\W\d_{_CASED}]{{1,6}}"
)
# Further levels of a number: "Abs. 1", "lit. f"; further brackets behind those of a number: "(1)(a) and (b)".
_INNER = re.compile(
    rf"[ \u00a0]*,?[ \u00a0]*(?:{_any(kinds.INNER)})\b\.?[ \u00a0]*(?P<level>\d{{1,3}}[a-z]?|[a-z]{{1,2}})\)?(?!\w)"
)
_JOIN = re.compile(
    rf"(?:[ ]?\([^\W\d_][^()\n]{{2,80}}\))?\s*+(?:(?P<to>[-–—~〜～]|{kinds.TO_JOINED}|(?:{_any(kinds.TO)})(?![^\W\d_]))"
    rf"|,?\s*+(?:{_any(kinds.AND)})(?![^\W\d_])|[,;&、/])\s*+(?:§+|[第제])?\s*+"
)
_NEXT_BRACKET = re.compile(r"\((?P<level>\d{1,3}[a-z]?|[a-z]{1,3})\)")
# The name of a document beside a number: after "of", or an abbreviation ("DSGVO"); and one before the kind.
_OF_NAME = r"(?:[A-ZÄÖÜÉÀÈÁ][\w&’'.-]{0,40}\w|[A-Z])"
_BESIDE = re.compile(
    rf"[ \u00a0]*,?[ \u00a0](?:(?:{_any(kinds.OF)})[ \u00a0]+(?:(?:{_any(kinds.THE)})[ ’'])?"
    rf"(?P<long>{_OF_NAME}(?:[ ](?:(?:{_any(kinds.INSIDE)})[ ]){{0,2}}{_OF_NAME}){{0,7}})"
    r"|(?P<short>(?=\w*[A-Z]\w*[A-Z])[A-ZÄÖÜ][\w-]{1,12}))(?!\w)"
)
_ABBREVIATION = re.compile(r"(?:\A|[\s(])(?P<name>[A-Z]{2,8})\s*\Z")
_PARTS = re.compile(r"(\(?[^\W\d]*(?=\d)|\(?)(\d*)(.*)")
# The beginning of a text, and what separates its number from its title.
_MARKS, _SEPARATOR = re.compile(r"[\s#*_>=-]*"), re.compile(r"\s*(?:\(|[.:|)–—-]+(?=\W|\Z)|\Z)")
# The rows of texts by levels of an identifier, each with the family of that identifier.
_Index = dict[Path, list[tuple[int, str]]]


@keep
def read_series(text: Text) -> list[Series]:
    """The numbers that stand in a text, of whatever kind."""
    return [*_iterate_series(text.plain, not _LETTERED.isdisjoint(text.words), len(text.plain))]


def _iterate_series(plain: str, lettered: bool, end: int) -> Iterator[Series]:
    firsts = [_FIRST] + [_FIRST_HAN] * ("第" in plain) + [_FIRST_LETTER] * lettered
    starts, end = [match.start() for first in firsts for match in first.finditer(plain, 0, end)], 0
    for start in starts if len(firsts) == 1 else sorted(starts):
        if start >= end and (series := _read_series(plain, start)) is not None:
            yield series
            end = series.end


def _read_series(text: str, start: int) -> Series | None:
    """The numbers from this place on."""
    token = text[max(0, start - _BACK) : start]
    token = token[max(token.rfind(" "), token.rfind("\n")) + 1 :]
    code = _LETTERS.search(token) if token and token.isascii() else None
    if code and (code["mark"] == "-" or fold(code["letters"]) not in _FAMILY):
        # "Rule A4.3.2"
        word, gap, place = _read_word(text, start - len(token) + code.start())
        word, place = (word, place) if gap else ("", start - len(token) + code.start())
    else:
        word, gap, place = _read_word(text, start)
        # "v2"
        if word and not gap and not code and (word[-1].islower() or word[-1].isupper()):
            return None
        code = None
        if word.lower() in _NUMBER_SIGNS and (earlier := _read_word(text, place))[0]:
            word, _, place = earlier
    pattern = _LETTER if text[start].isupper() else _NUMBER
    if pattern is _LETTER and not (word[:1].isupper() and fold(word) in _LETTERED):
        return None
    number, is_last, paths, behind = pattern.match(text, start), False, list[tuple[Path, bool]](), ""
    if number is not None and not word and not code and text[number.end() : number.end() + 3].isascii():
        # Most numbers say nothing.
        path, end = split_number("", number["number"]), number.end()
        return Series(start, end, "", "", ((path, False),)) if not start or _is_telling(path) else None
    end = start
    while number is not None:
        level, letters, stop = number["number"], number["letters"] or "", number.end()
        if not paths and code:
            letters = code["letters"]
            if code["mark"] == "-" and (dashed := _DASHED.match(text, stop)):
                level, stop = level + dashed[0], dashed.end()
        path = split_number(letters, level)
        # "Section 4, 2024", "Section 4, E1042"
        is_year = len(path) == 1 and path[0].isdecimal() and 1900 <= int(path[0]) < 2100
        if paths and (is_year or (letters and not _letters_of(paths[0][0]))):
            break
        end = stop
        inner: re.Match[str] | None
        if not text[end : end + 3].isascii() and (joined := _BEHIND.match(text, end)):
            behind = joined["sign"] or joined["unit"] or joined[0]
            end = end if joined["sign"] == joined["unit"] else joined.end()
            path = (f"{path[0]}-{_read_han(joined['inserted'])}",) if joined["inserted"] else path
        while (inner := _INNER.match(text, end)) and len(path) < _MOST_LEVELS:
            path, end = (*path, f"({inner['level'].casefold()}"), inner.end()
        paths.append((path, is_last))
        join = _JOIN.match(text, end)
        while path[-1][0] == "(" and join and (inner := _NEXT_BRACKET.match(text, join.end())):
            path, end = (*path[:-1], f"({inner['level'].casefold()}"), inner.end()
            paths.append((path, join["to"] is not None))
            join = _JOIN.match(text, end)
        number = pattern.match(text, join.end()) if join else None
        is_last = join is not None and join["to"] is not None
    return Series(place, end, word, behind, tuple(paths)) if paths else None


def _read_word(text: str, end: int) -> tuple[str, str, int]:
    """The letters or sign before a place of a text, what stands between, and where they begin."""
    before = text[max(0, end - _BACK) : end]
    stripped = before.rstrip(" \t\n\r\xa0.:°º")
    word = stripped.rsplit(None, 1)[-1] if stripped else ""
    if not word.isalpha():
        word = _LAST.search(word)[0]  # type: ignore[index]
    return word, before[len(stripped) :], end - len(before) + len(stripped) - len(word)


class _Kinds:
    """The families of numbers by the word before them, and what is joined to them, "第#条".

    In scripts without capitals other words may be joined to this word: "ตามมาตรา 5".
    """

    def __init__(self, families: Mapping[str, str]) -> None:
        joined = sorted((kind for kind in families if "#" in kind or not kind[-1].islower()), key=len, reverse=True)
        self.words, self._joined = families, [(*kind.partition("#")[::2], families[kind]) for kind in joined]

    def find(self, series: Series) -> str | None:
        """What is numbered; None if that is not known."""
        word = fold(series.word)
        if not series.behind and (word in self.words or not word or word[-1].islower()):
            return self.words.get(word)
        fits = (
            kind for before, behind, kind in self._joined if word.endswith(before) and series.behind.startswith(behind)
        )
        return next(fits, None)


_KINDS = _Kinds(_FAMILY)


def _find_document(text: str, series: Series, family: str | None) -> str:
    """The name of a document that stands beside a series; empty if there is none, or where all is in capitals."""
    if len(series.word) > 1 and series.word.isupper():
        return "" if family else series.word
    if named := _ABBREVIATION.search(text, max(0, series.start - _BACK), series.start):
        return named["name"]
    beside = _BESIDE.match(text, series.end)
    name: str = (beside["long"] or beside["short"]) if beside else ""
    # "of this Chapter", "of Part 4"
    return "" if fold(name.partition(" ")[0].rstrip(".")) in _FAMILY else name


def _read_han(number: str) -> str:
    """ "一百零三" as "103"; other numbers as they are."""
    total, digit = 0, 0
    for value in map(_HAN.get, number):
        if value is None:
            return number
        total, digit = (total, value) if value < 10 else (total + (digit or 1) * value, 0)
    return str(total + digit)


@lru_cache(maxsize=2**14)
def split_number(letters: str, number: str) -> Path:
    """The levels of a number as it stands in a text, behind the letters of a code.

    >>> split_number("", "4.5.1 (2)(b)"), split_number("AC", "2(1)"), split_number("", "5-bis")
    (('4', '5', '1', '(2', '(b'), ('ac2', '(1'), ('5bis',))
    """
    plain, *bracketed = number.casefold().replace(")", "").split("(")
    plain = letters.casefold().rstrip(".-") + re.sub(r"[- ](?=[a-z]|\Z)", "", _read_han(plain))
    return (*filter(None, plain.split(".")), *(f"({level.strip()}" for level in bracketed))


def _as_path(family: str, path: Path) -> Path:
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
    return "" if path[0][0].isdecimal() or path[0].isalpha() else re.split(r"\d", path[0], maxsplit=1)[0]


def _is_code(path: Path) -> bool:
    """Whether a number with letters means the same in every document: "E1042" and "AC-2", but not "A4"."""
    letters = _letters_of(path)
    return len(letters) > 1 or (bool(letters) and sum(map(str.isdecimal, path[0])) > 2)


@lru_cache(maxsize=2**14)
def _is_telling(path: Path) -> bool:
    """Whether a number needs no kind: it has three levels, five digits, or letters and digits."""
    levels = count_levels(path)
    text = "".join(path[:levels])
    if text.isdecimal():
        return levels > 2 or len(text) > 4
    return levels > 2 or (len(text) > 2 and (levels > 1 or text[0].isalpha()) and not text.isalpha())


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
    family, paths, word = _KINDS.find(series), [path for path, _ in series.numbers], fold(series.word)
    if family is None and word.isalpha() and len(word) > 1 and series.word.isupper():
        family, paths = NUMBER, [(word + path[0], *path[1:]) for path in paths]
    elif family is None:
        family = f"{word}#{series.behind}" if series.behind else word
    return tuple(
        Identifier(CODE if not family and _is_code(path) else family, _as_path(family, path)) for path in paths
    )


@keep
def read_identifiers(text: Text) -> list[Identifier]:
    """What a text is called by the number or code with which it begins.

    >>> [*map(str, read_identifiers(Text("4.5.1 A Person must"))), *map(str, read_identifiers(Text("§ 12 Fristen")))]
    ['4.5.1', 'section 12']
    """
    head = _MARKS.sub("", text.plain[: 2 * _HEAD], count=1)[:_HEAD].partition("\n")[0].strip()
    series = _read_own(head)
    return [*_call(series)] if series else []


@lru_cache(maxsize=2**12)
def find_own_number(title: str) -> int:
    """Where the number ends with which a title begins; 0 if it has none."""
    series = _read_own(title[:_HEAD])
    return series.end if series else 0


def _read_own(head: str) -> Series | None:
    """The number with which a text begins, if it is its own."""
    series = next(_iterate_series(head, lettered=True, end=_BACK), None)
    return series if series is not None and series.start == 0 and _is_own(head, series) else None


def _is_own(head: str, series: Series) -> bool:
    """Whether the number with which a text begins is its own: no word of a sentence follows it.

    The kind of a number that no list has needs a separator behind the number, or the end of the line.
    """
    path, rest, family = series.numbers[0][0], head[series.end :], _KINDS.find(series)
    levels, separated, letters = count_levels(path), bool(_SEPARATOR.match(rest)), _letters_of(path)
    following = next(filter(str.isalnum, rest), "")
    if letters or (series.word.isupper() and len(series.word) > 1 and family is None):
        is_long = levels > 1 or sum(map(str.isdecimal, path[0])) > 2 or "-" in head[: series.end]
        return is_long and (letters or fold(series.word)) not in _NO_CODES
    if not series.word and not series.behind:
        is_title = following.isalpha() and not following.islower() and rest.split()[0] not in _UNITS
        is_date = levels == 3 and 4 in (len(path[0]), len(path[2]))
        return not is_date and (levels > 2 or (levels > 1 and is_title))
    if _find_document(head, series, family) or rest[:1].isalpha() or (following.islower() and not separated):
        return False
    # Where words are joined to a kind, a sentence begins: "ตามมาตรา 5". The first one of Arabic is an article.
    word, first = fold(series.word), series.word[:1]
    is_kind = word in _FAMILY or word.removeprefix("ال") in _FAMILY or (series.behind and len(word) < 2)
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
        # The rows by the identifiers of each document, and by those of codes; by the beginnings of numbers, of which
        # they are parts.
        self._exact: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        self._parts: dict[Hashable, _Index] = defaultdict(lambda: defaultdict(list))
        # The last levels of all numbers, and of what they are parts of, by the levels before; the sources of families.
        self._last: dict[Path, set[str]] = defaultdict(set)
        self._sources_of: dict[str, dict[Hashable, None]] = defaultdict(dict)
        own = {family for called in identifiers for family, _ in called}.difference(_NO_KINDS)
        joined = {family for family in own for kind in own if family != kind and family.endswith(kind)}
        for row, called in enumerate(identifiers):
            for family, path in called:
                if family not in joined:
                    document = CODE if family == CODE else sources[row]
                    self._exact[document][path].append((row, family))
                    self._sources_of[family][sources[row]] = None
                    for place, level in enumerate(path):
                        self._last[path[:place]].add(level)
                        if place:
                            self._parts[document][path[:place]].append((row, family))
        known = [(*path, level) for path, levels in self._last.items() for level in levels]
        self._has_paragraphs = any(path[-1][0] == "(" for path in known)
        self._letters = {letters for path in known if (letters := _letters_of(path))}
        self._kinds = _Kinds(_FAMILY | {kind: kind for kind in own - joined}) if own else _KINDS
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
                whole = path
                # A paragraph that has no text of its own is in the text of its section.
                while not (exact := _agreeing(self._exact[source], family, whole)) and whole[-1][0] == "(":
                    whole = whole[:-1]
                # The texts of one number may belong to several documents, if these are not known.
                if exact and (source is not None or len(exact) == 1):
                    yield row, exact, 1.0
                if parts := [part for part in _agreeing(self._parts[source], family, path) if part != row]:
                    yield row, parts, 1 / len(parts)

    def find_uncited(self, text: Text, row: int) -> Iterator[tuple[Identifier, Hashable | None]]:
        """The numbers and codes that the text at this row cites and no text is called, with their sources.

        A code has the source of the text that cites it.
        """
        for citation, source in self._read(text, row):
            family, path = citation
            path = path if self._has_paragraphs else path[: count_levels(path)]
            if family != NUMBER and not _agreeing(self._exact[source], family, path):
                yield citation, self._sources[row] if family == CODE else source

    def _read(self, text: Text, row: int) -> Iterable[tuple[Identifier, Hashable | None]]:
        """What the text at this row cites by number or code, each once, with its source; that of a code is ``CODE``."""
        reads_all = self._reads_all or not text.text.isascii()
        if not self._last or not (reads_all or not self._kinds.words.keys().isdisjoint(text.words)):
            return ()
        return dict.fromkeys(chain.from_iterable(self._read_series(text, row, one) for one in read_series(text)))

    def _read_series(self, text: Text, row: int, series: Series) -> Iterator[tuple[Identifier, Hashable | None]]:
        """The citations of numbers of a known kind, and of those that need none."""
        numbers, family = series.numbers, self._kinds.find(series)
        if _is_code(numbers[0][0]):
            family = None
        elif family is None and series.word.isupper() and (word := fold(series.word)) in self._letters:
            # "SYSC 4.1.1R"
            numbers = tuple(((word + path[0], *path[1:]), is_last) for path, is_last in numbers)
        sources, before = None, None
        for number, is_last in numbers:
            path = _as_path(family or NUMBER, number)
            for one in (*(self._list_between(before, path) if before and is_last else ()), path):
                levels = count_levels(one)
                is_known = _letters_of(one) in self._letters or one[levels - 1] in self._last.get(one[: levels - 1], ())
                if (is_known and _is_telling(one)) if family is None else (family != kinds.PARAGRAPH or levels > 1):
                    if family is None and _is_code(one):
                        yield Identifier(CODE, one), CODE
                    else:
                        sources = self._find_sources(text.plain, row, series, family) if sources is None else sources
                        yield from ((Identifier(family or NUMBER, one), source) for source in sources)
            before = path

    def _list_between(self, first: Path, last: Path) -> list[Path]:
        """The numbers between two that differ in their last level: whole numbers, and all that the texts have."""
        low, high = _order(first[-1]), _order(last[-1])
        if first[:-1] != last[:-1] or low[0] != high[0]:
            return []
        numbers = range(low[1] + 1, high[1])
        between = dict.fromkeys(f"{low[0]}{number}" for number in numbers) if len(numbers) <= _LONGEST_RANGE else {}
        known = sorted(level for level in self._last.get(first[:-1], ()) if low < _order(level) < high)
        between |= dict.fromkeys(known)
        return [(*first[:-1], level) for level in between]

    def _find_sources(self, text: str, row: int, series: Series, family: str | None) -> list[Hashable | None]:
        """The documents with the name that stands beside a series; else the only one of its kind, or that of the row.

        A name that no document has leads nowhere. But behind a number that needs no kind it may be another word, and
        so may it in "§ 3 BGB" of the only document.
        """
        if name := _find_document(text, series, family):
            words = {word for word in split_words(name) if word not in _NO_NAMES}
            found = dict.fromkeys(source for source, own in self._words if words and words <= own)
            behind = name == series.word or text[series.end : series.end + _BACK].lstrip(" ,\xa0").startswith(name)
            if found or not behind or (family and len({*self._sources}) > 1):
                return [*found]
        of_kind = self._sources_of.get(family or NUMBER, {}) if family not in _NO_KINDS else {}
        return [*of_kind] if len(of_kind) == 1 else [self._sources[row]]


def _order(level: str) -> tuple[str, int, str]:
    """How levels are counted: by the bracket or letters before their number, then by the number."""
    before, number, behind = _PARTS.match(level).groups()  # type: ignore[union-attr]
    return before, int(number or 0), behind


def _agreeing(index: _Index, family: str, path: Path) -> list[int]:
    """The rows with this path in the index, without those of another kind.

    Numbers of several levels agree whatever their kinds are, unless only one is of an annex.
    """
    if not (rows := index.get(path)):
        return []
    kin, several = {family, NUMBER}, count_levels(path) > 1 and family != kinds.ANNEX
    return [row for row, other in rows if other in kin or not family or (several and other != kinds.ANNEX)]


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
