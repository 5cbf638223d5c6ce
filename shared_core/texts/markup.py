"""The text that a reader sees: without the marks of Markdown and HTML, and with words that a line end broke joined.

Every pattern takes time that is linear in the length of the text. The search is fastest where a pattern begins with the
characters that it looks for, so what must stand before them comes behind: "_(?<!x_)" is an underscore after no x.
"""

from __future__ import annotations

import html
import re

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
_EMPHASIS = re.compile(r"[*`~]++")
# Underscores around a word or several are emphasis. "__init__", "_files" and "snake_case" are identifiers.
_AT_END_OF_WORD = re.compile(r"_(?:(?<!\w_)|_*(?!\w))")
_UNDERSCORES = re.compile(
    r"(?P<identifier>(?<!\w)__[a-z][a-z0-9_]*?__(?!\w))"
    r"|(?<!\w)_+(?=[A-Z\d]|[^\x00-\x7f]|[a-z][^_\n]{0,200}(?<=\S)_+(?!\w))"
    r"|(?<=[^\W_])_+(?!\w)"
)
# The end of a line inside of a word: "retire-\nment".
_BROKEN = re.compile(r"[-\u2010\u00ad](?<=[^\W\d_].)[^\S\n]*\n[^\S\n]*(?=[^\W\d_])")


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
    if "](" in text:
        # A link may stand around an image: "[![text](image)](target)".
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    if "]:" in text:
        text = _TARGET.sub("", text)
    if "\\" in text:
        text = _ESCAPE.sub("", text)
    if "*" in text or "`" in text or "~" in text:
        text = _EMPHASIS.sub(_keep_operator, text)
    if "_" in text and _AT_END_OF_WORD.search(text):
        text = _UNDERSCORES.sub(lambda marks: marks["identifier"] or "", text)
    return _BROKEN.sub(_keep_hyphen, text) if "\n" in text else text


def _keep_operator(marks: re.Match[str]) -> str:
    """Marks between two letters or digits of ASCII, such as "2*3", are kept."""
    text, start, end = marks.string, marks.start(), marks.end()
    around = text[start - 1 : start], text[end : end + 1]
    return marks[0] if all(c.isascii() and c.isalnum() for c in around) else ""


def _keep_hyphen(line_end: re.Match[str]) -> str:
    """ "Jean-\\nLuc" is two words."""
    return line_end[0] if line_end.string[line_end.end()].isupper() else ""
