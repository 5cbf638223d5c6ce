"""The text that a reader sees: without the marks of Markdown and HTML, with one form of each letter, and its spellings.

Every pattern takes time that is linear in the length of the text. The search is fastest where a pattern begins with the
characters that it looks for, so what must stand before them comes behind: "_(?<!x_)" is an underscore after no x.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

# The tags that converters to Markdown leave, and comments such as "<!-- image -->". Others may be code: "List<String>".
_TAG = re.compile(
    r"<(?:!--[^<>]*|/?(?:a|abbr|b|blockquote|br|center|cite|code|dd|del|details|div|dl|dt|em|figcaption|figure|font|"
    r"h[1-6]|hr|i|img|ins|kbd|li|mark|ol|p|pre|q|s|samp|section|small|span|strike|strong|sub|summary|sup|table|tbody|"
    r"td|tfoot|th|thead|tr|tt|u|ul|var|wbr)(?:\s[^<>]*)?/?)>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# "[text](target)" and "![text](target)", but not code: "handlers[name](request)".
_LINK = re.compile(r"\[(?<!\w\[)([^\[\]]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+[\"'][^\"'\n]*[\"'])?\)")
# The end of "[text][1]" is left: its target stands in a line of its own, "[1]: https://example.org".
_TARGET = re.compile(r"^ {0,3}\[[^\[\]\n]+\]:[ \t]*\S+.*$", re.MULTILINE)
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
# Marks between two letters or digits of ASCII are operators: "2*3".
_EMPHASIS = re.compile(r"[*`~](?:(?<![*`~A-Za-z0-9].)[*`~]*+|(?<![*`~].)[*`~]*+(?![A-Za-z0-9]))")
# Underscores around a word or several are emphasis. "__init__", "_files" and "snake_case" are identifiers.
_AT_END_OF_WORD = re.compile(r"_(?:(?<!\w_)|_*(?!\w))")
_UNDERSCORES = re.compile(
    r"(?P<identifier>(?<!\w)__[a-z][a-z0-9_]*?__(?!\w))"
    r"|(?<!\w)_+(?=[A-Z\d]|[^\x00-\x7f]|[a-z][^_\n]{0,200}(?<=\S)_+(?!\w))"
    r"|(?<=[^\W_])_+(?!\w)"
)
# The end of a line inside of a word: "retire-\nment".
_BROKEN = re.compile(r"[-\u2010\u00ad](?<=[^\W\d_].)[^\S\n]*\n[^\S\n]*(?=[^\W\d_])")
# Scripts that put no spaces between words: Thai to Khmer, Japanese and Chinese; Korean, which has particles there.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
)
_UNSPACED = re.compile(f"[{UNSPACED}]+")
# What a word may be written without: characters without a width, marks of Hebrew, Arabic and the Quran, tatweel; and
# the stress marks of Cyrillic. Letters that are an apostrophe; digits of other scripts; and the mark of a footnote
# behind a number or a word, which a unit has too: "m²".
_WITHOUT = (
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
)
_APOSTROPHES, _MARKS_OF_NOTES = "\u02b9\u02bb-\u02bf\ua78c", "²³¹⁰⁴-⁹"
_OPTIONAL = re.compile(rf"[{_WITHOUT}]+|[\u0300\u0301](?<=[\u0400-\u052f].)")
_APOSTROPHE, _DIGIT = re.compile(f"[{_APOSTROPHES}]"), re.compile(r"\d(?<![0-9])")
_FOOTNOTE = re.compile(rf"[{_MARKS_OF_NOTES}](?:(?<=\d.)|(?<=[^\W\d_]{{3}}.))[{_MARKS_OF_NOTES}]*")
_RARE = re.compile(rf"[{_WITHOUT}{_APOSTROPHES}{_MARKS_OF_NOTES}\u0300\u0301]|\d")
# More marks on one letter than any language has: the time of NFKC is quadratic in their number. The voiced marks of
# half-width katakana are letters to Python's \w, and marks after NFKC.
_MARKS = re.compile(r"((?:(?![\x00-\x7f])[\W\uff9e\uff9f]){30})(?:(?![\x00-\x7f])[\W\uff9e\uff9f])+")
# What stands between words outside of ASCII. The vowel signs of Indian scripts are no letters to Python's \w.
_BETWEEN = re.compile(r"[^\w\x00-\x7f\u0300-\u036f\u0900-\u0963\u0966-\u0dff]")
# The same for ASCII: what is no letter, digit or underscore becomes a space. The bytes of other characters stay.
_SPACED = bytes(c if c > 127 or chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))
_ASCII = bytes(range(128))
# Forms of one letter: of the Arabic alef, yeh, kaf and heh. Those that the bare form of a word has for another letter.
_ONE_FORM, _FORMS = str.maketrans("أإآٱیىکةہ", "اااايي\u0643هه"), re.compile("[\u0307أإآٱیىکةہ]")
_BARE = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"})
# A longer word is no identifier and has no accents that matter: it may be an encoded file.
LONG = 100


def strip_markup(text: str) -> str:
    r"""``text`` without emphasis, escapes, link targets, HTML tags and entities, and hyphens of broken words.

    >>> strip_markup(r"Set **max\_tokens** of _Johan Earl_, see [the &sect;](https://example.org/a_b).")
    'Set max_tokens of Johan Earl, see the §.'
    >>> strip_markup("retire-\nment, Jean-\nLuc, __init__, 2*3")
    'retirement, Jean-\nLuc, __init__, 2*3'
    """
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if "]" in text and "](" in text:
        # A link may stand around an image: "[![text](image)](target)".
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    if "]" in text and "]:" in text:
        text = _TARGET.sub("", text)
    if "\\" in text:
        text = _ESCAPE.sub("", text)
    if "*" in text or "`" in text or "~" in text:
        text = _EMPHASIS.sub("", text)
    if "_" in text and _AT_END_OF_WORD.search(text):
        text = _UNDERSCORES.sub(lambda marks: marks["identifier"] or "", text)
    # "Jean-\nLuc" is two words.
    return _BROKEN.sub(lambda end: end[0] if end.string[end.end()].isupper() else "", text) if "\n" in text else text


def bare_word(word: str) -> str:
    """The word without the accents of Latin and Greek letters and of ё.

    >>> [*map(bare_word, ["atlético", "łódź", "αθήνα", "ещё", "пустой", "மலை"])]
    ['atletico', 'lodz', 'αθηνα', 'еще', 'пустой', 'மலை']
    """
    return word if word.isascii() or len(word) > LONG else _without_accents(word)


@lru_cache(maxsize=2**14)
def _without_accents(word: str) -> str:
    letters, base = [], "-"
    for c in unicodedata.normalize("NFD", word):
        kind = unicodedata.combining(c)
        base = base if kind else c
        # Class 7 has the dots of Indian letters, nukta.
        is_accent = kind == 7 or base.isascii() or "\u0370" <= base <= "\u03ff" or (base, c) == ("е", "\u0308")
        letters += [] if kind and is_accent else [c]
    return unicodedata.normalize("NFC", "".join(letters)).translate(_BARE)


def group_accented(words: Iterable[str]) -> dict[str, list[str]]:
    """The words that have accents, by their forms without."""
    forms = defaultdict(list)
    for word in words:
        if (bare := bare_word(word)) != word:
            forms[bare].append(word)
    return forms


def list_spellings(word: str, accented: Mapping[str, Sequence[str]]) -> list[str]:
    """What texts whose ``accented`` words are grouped may write for a word that is sought.

    A word without accents may have them in a text. A word with accents may lack them all, and has no others.

    >>> accented = group_accented(["résumé", "resumé", "sí"])
    >>> list_spellings("resume", accented), list_spellings("résumé", accented)
    (['resume', 'résumé', 'resumé'], ['résumé', 'resume'])
    """
    bare = bare_word(word)
    return [word, bare] if bare != word else [word, *accented.get(word, ())]


def space_words(text: str) -> str:
    """The words of a text that is clean as they are written, between spaces."""
    others = _others(text)
    if others and _UNSPACED.search(others):
        text = _UNSPACED.sub(_pairs, text)
    # Texts have few of these characters. A search for each takes less time than one for all.
    for c in {*_BETWEEN.findall(others)}:
        text = text.replace(c, " ")
    return text.encode(errors="replace").translate(_SPACED).decode()


def clean(text: str) -> str:
    """The text without what a word or number may be written without, with one form of its characters and digits."""
    if text.isascii():
        return text
    has_rare = _RARE.search(_others(text))
    normal = normalise(_FOOTNOTE.sub("", text) if has_rare else text)
    if not has_rare and (normal is text or not _RARE.search(_others(normal))):
        return normal
    return _DIGIT.sub(_as_digit, _APOSTROPHE.sub("'", _OPTIONAL.sub("", normal)))


# A text is searched several times.
@lru_cache(maxsize=1)
def _others(text: str) -> str:
    """The characters outside of ASCII: a search in these few is faster than one in the text."""
    return "" if text.isascii() else text.encode(errors="replace").translate(None, _ASCII).decode()


def _as_digit(digit: re.Match[str]) -> str:
    return str(unicodedata.decimal(digit[0]))


def normalise(text: str) -> str:
    """NFKC: one form of each character, without full or half width, ligatures and circled digits."""
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", _MARKS.sub(r"\1", text))


def fold(text: str) -> str:
    """The text case-folded. İ leaves a dot behind an i, which is no letter."""
    folded = text.casefold()
    others = "" if folded.isascii() else folded
    return folded.replace("i\u0307", "i").translate(_ONE_FORM) if _FORMS.search(others) else folded


def find_unspaced(text: str) -> list[str]:
    """The characters of a text that are split into pairs."""
    return [*"".join(_UNSPACED.findall(text))]


def _pairs(run: re.Match[str]) -> str:
    """Each pair of neighbouring characters of a run, between spaces."""
    characters = run[0]
    return f" {' '.join(map(str.__add__, characters, characters[1:])) or characters} "
