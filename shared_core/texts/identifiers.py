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
from itertools import chain, compress, count, filterfalse, pairwise
from typing import Any, NamedTuple

from . import kinds
from .fold import clean, fold
from .words import Text, keep, read_text, split_words

# The family of codes, which mean the same in every document; and of numbers whose kind is not known.
CODE, NUMBER = "code", ""
# The most numbers in a range. How many characters are looked at in the beginning of a text, and before a number.
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


_FAMILY = {
    fold(word): family
    for language in kinds.KIND_WORDS.values()
    for family, words in zip(kinds.FAMILIES, language.split("|"), strict=True)
    for word in words.split()
}
_NUMBER_SIGNS = {*kinds.NUMBER_SIGNS.split()}
# Japanese and Chinese numerals, and Roman ones, each with its value.
_HAN = {c: int(unicodedata.numeric(c)) for c in "〇零一二三四五六七八九十百千"} | {"两": 2}
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
# Letters of scripts with capitals; and what is no letter, § or vowel sign of scripts in which these are none to Python.
_CASED, _NUMERALS = "A-Za-z\u00c0-\u024f\u0370-\u052f", "".join(_HAN)
_NO_LETTER = re.compile(r"(?![^\W\d_])[^§\u0300-\u036f\u0590-\u06ff\u0900-\u109f\u1780-\u17ff]")
# Where a number may begin. The search is fast, because the pattern begins with characters, before the lookbehinds.
_START = re.compile(
    rf"[0-9A-Z{_NUMERALS}](?:(?<=\d)(?<![\d_$€£¥#=~^+{_CASED}].)(?<!\d[.,:].)|(?<=第.)"
    r"|(?<=[A-Z])(?<![\w./\\@-].)(?:(?=[A-Za-z./&-]{0,30}+\d)|(?:(?<=[IVXLC])[IVXLC]{1,5})?(?![\w'’])))"
)
# One level: "5", "5a", "5/A", "5º-A", "5 a §".
_LEVEL = rf"\d{{1,10}}+(?:(?:o?[-/](?=[A-Z])|[ ](?=[a-z][ ]?§))?[{_CASED}](?!\w))?"
_BRACKET = r"\([ ]?(?:\d{1,3}[a-z]?|[a-zA-Z]{1,2}|[ivx]{2,5})[ ]?\)"
# Before an inner level that has no brackets: "Abs. 2".
_INNER = rf"[ \u00a0]{{0,2}},?[ \u00a0]{{0,2}}(?:{kinds.INNER})\b\.?[ \u00a0]{{0,2}}"
_NUMBER = rf"""(?x:
    # The letters of a code, "SOP-QA-012". Only a code may have several numbers behind a dash, "CVE-2024-3094".
    (?: (?P<letters>[A-Z][A-Za-z]{{0,9}}+(?:[-./&][A-Z][A-Za-z]{{0,5}}+){{0,3}}) (?:(?P<dash>-)|\.?) (?=\d) )?
    (?P<number>
        (?: [{_NUMERALS}]{{1,9}}
          | (?:[IVXLC]{{1,6}}|[A-Z])(?![\w'’])
          | {_LEVEL} (?(dash)(?:-\d{{1,10}}+){{0,3}}) (?:[-\ ]?(?:{kinds.INSERTED})(?!\w|\s+\d))?
            (?:\.[A-Z]?{_LEVEL}){{0,11}} )
        (?: [.\ ]?{_BRACKET} | {_INNER}(?:\d{{1,3}}[a-z]?|[a-z]{{1,2}})\)?(?!\w) ){{0,6}} )
    (?! [\d%€$£°_{_CASED}] | [.:]\d | ,\d{{3}}(?!\d) | \s[%€°] )
    # What is joined to its end: a sign of a section, or letters of a script without capitals, as in "第5条の2第3項".
    (?: \.?\s?(?P<unit>§|部分|[条條章節节編编조장절편])(?:[の之의](?P<inserted>\d+|[{_NUMERALS}]+))?
      | (?=(?P<other>[^\W\d_{_CASED}]{{1,2}})) )? )"""
_FIRST = re.compile(rf"(?P<to>)(?P<bracket>){_NUMBER}")
# The next number of a series, or the next bracket: "(1)(a) and (b)". "Section 4, 2024" goes on with none.
_NEXT = re.compile(
    rf"(?:[ ]?\([^\W\d_][^()\n]{{2,80}}\))?\s*+(?:(?P<to>[-–—~〜～]|{kinds.TO_JOINED}|(?:{kinds.TO})(?![^\W\d_]))"
    rf"|,?\s*+(?:{kinds.AND})(?![^\W\d_])|[,;&、/])\s*+(?:§+|[第제])?\s*+(?!(?:19|20)\d\d\b(?!\.\d))"
    rf"(?:\((?P<bracket>\d{{1,3}}[a-z]?|[a-z]{{1,3}})\)|{_NUMBER})"
)
# The name of a document behind a number, after "of" (a case in Russian), or an abbreviation; and before a kind.
_CAPITAL = r"[A-ZÄÖÜÉÀÈÁΑ-ΩА-Я][\w&’'.-]{0,40}"
_NAME = rf"{_CAPITAL}(?:[ ](?:(?:{kinds.INSIDE})[ ](?:the[ ])?)?{_CAPITAL}){{0,7}}(?<!\W)"
_BEHIND = re.compile(
    rf"[ \u00a0]*,?[ \u00a0](?:(?:(?:{kinds.OF})[ \u00a0]+(?:(?:{kinds.THE})[ ’'])?|(?=[А-Я]))(?P<long>{_NAME})"
    r"|(?P<short>(?=\w*[A-Z]\w*[A-Z])[A-ZÄÖÜ][\w-]{1,12}))(?!\w)"
)
_BEFORE = re.compile(rf"(?:\A|[\s(\"“„«])(?:(?P<long>{_NAME})(?:,|[ ]\()[ ]?|(?P<short>[A-Z]{{2,12}})[ \u00a0]*)\Z")
# What separates the number of a text from its title.
_SEPARATOR = re.compile(r"\s*(?:\(|[.:|)–—-]+(?=\W|\Z)|\Z)")


@keep
def read_series(text: Text) -> list[Series]:
    """The numbers that stand in a text, of whatever kind."""
    found, end = list[Series](), 0
    for start in _START.finditer(text.plain):
        if start.start() >= end and (series := _read_series(text.plain, start.start())):
            found.append(series)
            end = series.end
    return found


def _read_series(text: str, start: int) -> Series | None:
    """The numbers from this place on, and the word before them."""
    first = _FIRST.match(text, start)
    if first and first["letters"] and not first["dash"] and fold(first["letters"]) in _FAMILY:
        # "Art.6"
        first = _FIRST.match(text, start := first.start("number"))
    if not first:
        return None
    word, place = _read_word(text, start)
    family, is_letter = _FAMILY.get(fold(word)), first["number"][0].isupper()
    if is_letter and not (word[:1].isupper() and family in kinds.LETTERED):
        return None
    # "enligt 3 §"
    word = "§" if first["unit"] == "§" and not family else word
    path, numbers, behind, end = Path(), list[tuple[Path, bool]](), "", start
    item: re.Match[str] | None = first
    while item:
        to, bracket, letters, _, number, unit, inserted, other = item.groups()
        if not bracket:
            if number[0].isupper() != is_letter or letters not in (None, first["letters"]):
                break
            path = _split_number(letters, number, inserted, is_letter and family in kinds.ROMAN)
        elif path[-1][0] == "(":
            path = (*path[:-1], f"({bracket.casefold()}")
        else:
            break
        numbers.append((path, bool(to)))
        behind, end = unit or other or behind, item.end()
        if not (word or behind or first["letters"]) and _find_family(path) is None:
            # Most numbers say nothing.
            return None if start else Series(0, end, "", "", tuple(numbers))
        item = _NEXT.match(text, end)
    return Series(place, end, word, behind, tuple(numbers))


def _read_word(text: str, end: int) -> tuple[str, int]:
    """The letters or sign before a place of a text, and where they begin; not the sign in "Article No. 5"."""
    before = text[max(0, end - _BACK) : end].rstrip(" \t\n\r\xa0.:°º")
    word = before.rsplit(None, 1)[-1] if before else ""
    word = word if word.isalpha() else _NO_LETTER.split(word)[-1]
    place = max(0, end - _BACK) + len(before) - len(word)
    earlier = _read_word(text, place) if word.lower() in _NUMBER_SIGNS else ("", 0)
    return earlier if earlier[0] else (word, place)


@lru_cache(maxsize=2**14)
def _split_number(letters: str | None, number: str, inserted: str | None, is_roman: bool) -> Path:
    """The levels of a number as it stands in a text: "AC-2 (1)(b)" as "ac2", "(1", "(b"."""
    joined = re.sub(r"(?<=\d)o|[/ -]+(?=[^\W\d])|[ )]", "", re.sub(_INNER, "(", number).casefold())
    first, *levels = re.findall(r"\(?[^.(]+", (letters or "").casefold() + joined)
    behind = f"-{_read_numeral(inserted)}" if inserted else ""
    return (_read_numeral(first, is_roman) + behind, *levels)


def _read_numeral(number: str, is_roman: bool = False) -> str:
    """ "一百零三" as "103", and Roman "iv" as "4"; other numbers as they are."""
    if is_roman and _ROMAN.keys() >= {*number}:
        return str(sum(-a if a < b else a for a, b in pairwise([*(_ROMAN[c] for c in number), 0])))
    if _HAN.keys() >= {*number}:
        parts = re.findall("(?=.)([^十百千]?)([十百千]?)", number)
        return str(sum(_HAN.get(digit, 1) * _HAN.get(power, 1) for digit, power in parts))
    return number


def count_levels(path: Path) -> int:
    """How many levels stand before the brackets."""
    return sum(level[0] != "(" for level in path)


def _letters_of(path: Path) -> str:
    """The letters with which a code begins."""
    return re.match(r"\D*(?=\d)|", path[0])[0]  # type: ignore[index]


@lru_cache(maxsize=2**14)
def _find_family(path: Path) -> str | None:
    """The family of a number that needs no kind: it has three levels, five digits, or letters and digits; else None."""
    levels, letters = count_levels(path), _letters_of(path)
    # "E1042" and "AC-2" mean the same in every document, but "A4" does not.
    if len(letters) > 1 or (letters and sum(map(str.isdecimal, path[0])) > 2):
        return CODE
    text = "".join(path[:levels])
    is_mixed = len(text) > 2 and (levels > 1 or text[0].isalpha()) and not text.isalpha()
    return NUMBER if levels > 2 or (len(text) > 4 if text.isdecimal() else is_mixed) else None


def _find_kind(words: Mapping[str, str], word: str, behind: str) -> str | None:
    """The family of the word before a number, and of what is joined to the number, "第#条"; None if it is not known."""
    word = fold(word)
    if word[-1:].islower():
        return words.get(word)
    # In scripts without capitals other words may be joined to it: "ตามมาตรา 5".
    joined = ["", *(f"#{behind[: end + 1]}" for end in range(len(behind)))]
    forms = (word[start:] + one for start in range(len(word), -1, -1) for one in joined)
    return next(filter(None, map(words.get, forms)), None)


@lru_cache(maxsize=2**14)
def parse_identifier(value: str) -> tuple[Identifier, ...]:
    """The identifiers in a value that a user or a loader gives a text: a number or a code.

    >>> [str(one) for value in ("4.5.1.(1)", "Art. 6", "Part 8.92") for one in parse_identifier(value)]
    ['4.5.1(1)', 'article 6', 'chapter 8.92', '92']
    """
    text = clean(value[:_HEAD]).strip(" \t\n.:#*")
    found = read_series(Text(text))
    found = found[:1] if text[:1].isdigit() else found
    # "Part 6.Chapter 1.70(1)", "§ 12 BGB"
    series = next((one for one in found[::-1] if one.end >= len(text) or one.start == 0), None)
    if not series:
        return ()
    rest = text[series.end :]
    # "1.2.1.Guidance.1": from a word on all levels are inner ones.
    inner = re.findall(r"[^\W_]+", rest.casefold()) if rest[:1] == "." and len(found) == 1 else []
    called = tuple(Identifier(family, (*path, *(f"({level}" for level in inner))) for family, path in _call(series))
    family, path = called[-1]
    # "4.5 Records", but not "3 ways"
    if not family and len(path) < 2 and rest[:1].isspace():
        return ()
    has_inner = len(path) > 1 and (family in (kinds.CHAPTER, kinds.ANNEX) or path[1][0].isalpha())
    return (*called, Identifier(NUMBER, path[1:])) if has_inner else called


def _call(series: Series) -> tuple[Identifier, ...]:
    """What a text is called by its own number: a word that is not known is its kind, and capitals begin a code."""
    family, word = _find_kind(_FAMILY, series.word, series.behind), fold(series.word)
    letters = word if family is None and len(word) > 1 and series.word.isupper() else ""
    if family is None:
        family = NUMBER if letters else f"{word}#{series.behind}" if series.behind else word
    paths = [(letters + path[0], *path[1:]) for path, _ in series.numbers]
    return tuple(Identifier(CODE if not family and _find_family(path) == CODE else family, path) for path in paths)


@keep
def read_identifiers(text: Text) -> list[Identifier]:
    """What a text is called by the number or code with which it begins.

    >>> [str(one) for text in ("4.5.1 A Person must", "§ 12 Fristen") for one in read_identifiers(Text(text))]
    ['4.5.1', 'section 12']
    """
    series = read_own(text.plain[: 2 * _HEAD].lstrip("\n\t #*_>=-")[:_HEAD].partition("\n")[0].rstrip())
    return [*_call(series)] if series else []


@lru_cache(maxsize=2**12)
def read_own(head: str) -> Series | None:
    """The number with which a text begins, if it is its own: no word of a sentence follows it.

    The kind of a number that no list has needs a separator behind the number, or the end of the line.
    """
    start = _START.search(head, 0, _BACK)
    series = _read_series(head, start.start()) if start else None
    if not series or series.start or not all(is_last for _, is_last in series.numbers[1:]):
        return None
    (family, path), *_ = _call(series)
    word, rest, levels, letters = fold(series.word), head[series.end :], count_levels(path), _letters_of(path)
    separated, following = bool(_SEPARATOR.match(rest)), next(filter(str.isalnum, rest), "")
    if letters and letters.startswith(word):
        is_long = levels > 1 or sum(map(str.isdecimal, path[0])) > 2 or "-" in head[: series.end]
        is_own = is_long and letters not in kinds.NO_CODES
    elif family == NUMBER:
        is_title = following.isalpha() and not following.islower() and rest.split()[0] not in kinds.UNITS.split()
        is_date = levels == 3 and 4 in (len(path[0]), len(path[2]))
        is_own = not is_date and (levels > 2 or (levels > 1 and is_title))
    else:
        # Where words are joined to a kind, a sentence begins: "ตามมาตรา 5". The first one of Arabic is an article.
        is_kind = word in _FAMILY or word.removeprefix("ال") in _FAMILY or (series.behind and len(word) < 2)
        first, is_known = series.word[:1], family in kinds.FAMILIES or bool(letters)
        is_new = not is_known and first == first.title() and (separated or first == first.lower())
        goes_on = _BEHIND.match(rest) or rest[:1].isalpha() or (following.islower() and not separated)
        is_own = bool(is_kind or is_new) and not goes_on
    return series if is_own else None


def find_identifiers(given: Iterable[str], text: Text, title: str) -> list[Identifier]:
    """What a text is called: what is given for it, or else what it or its title begins with."""
    called = [*dict.fromkeys(chain.from_iterable(map(parse_identifier, given)))] if given else []
    return called or read_identifiers(text) or read_identifiers(Text(title))


class Citations:
    """Who is called by which identifiers, and what texts cite; ``sources`` and ``titles`` are those of the documents.

    A number means a text of the same source. Another document has to be named beside it, by words of its source or of
    the title of one of its texts. Where it is not known which document is meant, there is no citation.
    """

    def __init__(
        self, called: Sequence[Sequence[Identifier]], sources: Sequence[Hashable | None], titles: Sequence[str]
    ) -> None:
        self._sources, self._titles, self._is_alone = sources, titles, len({*sources}) == 1
        # Rows and families by document, or ``CODE``, by whether they are called so or are parts of it, and by levels.
        self._rows: dict[Hashable, dict[Path, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
        # The next levels of all numbers by the levels before, and the sources of kinds that no list has.
        self._levels, self._sources_of = defaultdict[Path, set[str]](set), defaultdict[str, set[Hashable]](set)
        for row, identifiers in enumerate(called):
            for family, path in identifiers:
                document = CODE if family == CODE else sources[row]
                for depth, level in enumerate(path, start=1):
                    self._levels[path[: depth - 1]].add(level)
                    self._rows[document, depth == len(path)][path[:depth]].append((row, family))
                if family not in (*kinds.FAMILIES, CODE, NUMBER):
                    self._sources_of[family].add(sources[row])
        known = [(*path, level) for path, levels in self._levels.items() for level in levels]
        self._kinds = _FAMILY | {kind: kind for kind in self._sources_of}
        self._letters = set(map(_letters_of, known))
        # A text is read if it has a kind that numbers have, or the letters of a code, of which a word may be the end.
        self._codes = {_letters_of(path) for path in known if _find_family(path) is not None}
        families, deep = {family for own in called for family, _ in own}, any(len(path) > 1 for path in known)
        self._sought = {word for word, kind in self._kinds.items() if deep or NUMBER in families or kind in families}
        self._sought |= {letters[start:] for letters in self._codes for start in range(len(letters))}
        # In scripts without capitals other words may be joined to a kind.
        self._joined = [word.partition("#")[0] for word in self._sought if not word[-1].islower()]

    @cached_property
    def _words(self) -> list[tuple[Hashable, set[str]]]:
        """Each source, with its words and those of each title of one of its texts."""
        named = dict.fromkeys(zip(self._sources, self._titles, strict=True))
        return [(source, set(read_text(f"{source} {title}").terms)) for source, title in named]

    def find_cited(self, texts: Sequence[Text], skipped: Container[int] = ()) -> Iterator[tuple[int, list[int], float]]:
        """Each row that is not ``skipped``, rows that it cites, and how clearly: 1/m for m parts of a section."""
        for row, text in enumerate(texts):
            for (family, path), source in () if row in skipped else self._read(text, row):
                # The texts of one number may belong to several documents, if these are not known.
                if (exact := self._find_rows(source, family, path)) and (source is not None or len(exact) == 1):
                    yield row, exact, 1.0
                if parts := [part for part in self._find_rows(source, family, path, is_whole=False) if part != row]:
                    yield row, parts, 1 / len(parts)

    def find_uncited(self, text: Text, row: int) -> Iterator[tuple[Identifier, Hashable | None]]:
        """What a text cites and no text is called, each with its source; that of a code is the source of the row."""
        for cited, source in self._read(text, row):
            if cited.family != NUMBER and not self._find_rows(source, *cited):
                yield cited, self._sources[row] if cited.family == CODE else source

    def _find_rows(self, document: Hashable, family: str, path: Path, is_whole: bool = True) -> list[int]:
        """The rows of a document that are called so, or are parts of it, without those of another kind.

        Numbers of several levels agree whatever their kinds are, unless only one is of an annex.
        """
        deep = count_levels(path) > 1 and family != kinds.ANNEX
        rows = self._rows[document, is_whole].get(path, ())
        found = [row for row, kind in rows if not family or kind in (family, NUMBER) or (deep and kind != kinds.ANNEX)]
        # A paragraph that has no text of its own is in the text of its section.
        is_inside = not found and is_whole and path[-1][0] == "("
        return self._find_rows(document, family, path[:-1]) if is_inside else found

    def _read(self, text: Text, row: int) -> Iterable[tuple[Identifier, Hashable | None]]:
        """What the text at this row cites by number or code, each once, with its source; that of a code is ``CODE``."""
        series = read_series(text) if self._may_cite(text) else ()
        return dict.fromkeys(chain.from_iterable(self._cite(text.plain, row, one) for one in series))

    def _may_cite(self, text: Text) -> bool:
        """Whether a number or letter follows a word that is sought, or a word has both letters and digits."""
        words = text.words
        mixed = filterfalse(str.isdecimal, filterfalse(str.isalpha, words)) if self._codes else ()
        if "" in self._codes or any(word[0].isalpha() for word in mixed):
            return True
        places = () if self._sought.isdisjoint(words) else compress(count(1), map(self._sought.__contains__, words))
        for place in places:
            if self._kinds.get(words[place - 1]) in kinds.LETTERED or not "".join(words[place : place + 2]).isalpha():
                return True
        written = "" if not self._joined or text.text.isascii() else " ".join([text.plain, *words])
        return any(word in written for word in self._joined)

    def _cite(self, text: str, row: int, series: Series) -> Iterator[tuple[Identifier, Hashable | None]]:
        """The citations of numbers of a known kind, and of those that need none."""
        (first, _), *_ = numbers = series.numbers
        family = None if _find_family(first) == CODE else _find_kind(self._kinds, series.word, series.behind)
        if family is None and first[0][0].isdecimal() and series.word.isupper() and fold(series.word) in self._letters:
            # "SYSC 4.1.1R"
            numbers = tuple(((fold(series.word) + path[0], *path[1:]), is_last) for path, is_last in numbers)
        cited = list[Path]()
        for (before, _), (path, is_last) in pairwise([(Path(), False), *numbers]):
            cited += [*(self._list_between(before, path) if is_last else ()), path]
        if family is None:
            cited = [one for one in cited if _find_family(one) is not None and _letters_of(one) in self._letters]
        elif family == kinds.PARAGRAPH:
            cited = [path for path in cited if count_levels(path) > 1]
        documents = self._find_documents(text, row, series, family) if cited else ()
        for path in cited:
            if family is None and _find_family(path) == CODE:
                yield Identifier(CODE, path), CODE
            else:
                yield from ((Identifier(family or NUMBER, path), document) for document in documents)

    def _list_between(self, first: Path, last: Path) -> list[Path]:
        """The numbers between two that differ in their last level: whole numbers, and all that the texts have."""
        low, high = _order(first[-1]), _order(last[-1])
        if first[:-1] != last[:-1] or not low < high:
            return []
        between = {level for level in self._levels[first[:-1]] if low < _order(level) < high}
        if low[::2] == high[::2] and len(low) == 3:
            between |= {f"{low[0]}{number}{low[2]}" for number in range(low[1] + 1, high[1])[:_LONGEST_RANGE]}
        return [(*first[:-1], level) for level in sorted(between, key=_order)]

    def _find_documents(self, text: str, row: int, series: Series, family: str | None) -> list[Hashable | None]:
        """The documents with the name that stands beside a series; else the only one of its kind, or that of the row.

        A name that no document has leads nowhere. But behind a number that needs no kind it may be another word, and
        so may it in "§ 3 BGB" of the only document, which "the Agreement" means too.
        """
        behind, place = _BEHIND.match(text, series.end), series.start + (0 if family else len(series.word))
        before = _BEFORE.search(text, max(0, place - _BACK), place)
        named = [(behind["long"], True), (behind["short"], bool(family) and not self._is_alone)] if behind else []
        named += [(before["long"], False), (before["short"], bool(family))] if before else []
        # "SECTION 4 OF THE ACT"
        in_capitals = family is not None and len(series.word) > 1 and series.word.isupper()
        for name, is_sure in () if in_capitals else named:
            # "of Part 4"
            if name and fold(name.partition(" ")[0].rstrip(".")) not in _FAMILY:
                words = {*split_words(name)}.difference(kinds.NO_NAMES.split())
                found = [(source, own) for source, own in self._words if words and words <= own]
                if found or (is_sure and (words or not self._is_alone)):
                    near = {*split_words(text[series.end : series.end + 2 * _BACK])}
                    best = max((len(own & near) for _, own in found), default=0)
                    return [*dict.fromkeys(source for source, own in found if len(own & near) == best)]
        of_kind = self._sources_of.get(family or NUMBER, ())
        return [*of_kind] if len(of_kind) == 1 else [self._sources[row]]


def _order(level: str) -> list[Any]:
    """How levels are counted: what stands before their number, the number, and what stands behind it."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", level)]
