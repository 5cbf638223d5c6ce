"""Text without the marks of Markdown and HTML."""

from __future__ import annotations

import html
import re
import unicodedata

_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]{0,300}>", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_MARKS = re.compile(r"\\(?=[_*\[\]#`~-])|[*`]+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")


def strip_markup(text: str) -> str:
    """The text without marks of emphasis, targets of links, tags and entities."""
    if "<" in text:
        text = _TAG.sub("", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return html.unescape(_MARKS.sub("", text))


def bare_word(word: str) -> str:
    """The case-folded word without accents."""
    word = word.casefold()
    if word.isascii():
        return word
    bare = ""
    for character in unicodedata.normalize("NFD", word):
        if not (
            "\u0300" <= character <= "\u036f" and bare and unicodedata.name(bare[-1], "")[:5] in ("LATIN", "GREEK")
        ):
            bare += character
    return unicodedata.normalize("NFC", bare).replace("ё", "е")
