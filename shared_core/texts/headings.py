"""The heading of a text, as people, converters and loaders write it."""

from __future__ import annotations

import re

from .markup import strip_markup
from .titles import HEAD, as_key, clean_title

# A heading without marks is not longer, nor is what stands before a name.
LINE = 60
# So many headings that say nothing may stand before one that does.
EMPTY_HEADINGS = 3
# A line that ends like this is a sentence or leads to one, and no heading.
_SENTENCE_ENDS = tuple(".,;:!?。，；：！？،؛।")
# Blanks; the byte order mark and the space of no width are some that str.strip leaves.
_BLANKS = re.compile(r"[\s\ufeff\u200b]*+")
# What may stand before the first line of a text: blanks, comments ("<!-- image -->"), pictures and rules.
_NOTHING = re.compile(
    r"(?: [\s\ufeff\u200b]++ | <!--.*?--> | !\[[^\[\]]*\]\([^()]*\) | \[!\[[^\[\]]*\]\([^()]*\)\]\([^()]*\)"
    r" | (?:-{3,}|\*{3,}|_{3,}|={3,})[^\S\n]*\n | \#+[^\S\n]*\n )*+",
    re.VERBOSE | re.DOTALL,
)
_FRONT_MATTER = re.compile(
    r"[\s\ufeff]*(?P<fence>---|\+\+\+)[^\S\n]*\n(?P<lines>(?:\#.*?\n)*[\w\"'-]+[^\S\n]*[:=].*?)(?:\n(?P=fence)[^\S\n]*(?:\n|\Z)|\Z)",
    re.DOTALL,
)
_TITLE_LINE = re.compile(
    r"^[\"']?title[\"']?[^\S\n]*[:=][^\S\n]*(?:[|>][+-]?[^\S\n]*\n)?[^\S\n]*([^\s].*)$", re.MULTILINE | re.IGNORECASE
)
# The heading of a page, before which only markup stands.
_HEADING_ELEMENT = re.compile(
    r"(?: [\s\ufeff]++ | <!--.*?--> | <(script|style)\b.*?</\1\s*> | <(?!h1\b|title\b)[^<>]*> )*+"
    r"<(h1|title)\b[^<>]*> (.*?) </\2\s*>",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# The line under a heading of Markdown, and a line that is bold as a whole.
_UNDERLINE = re.compile(r"[^\S\n]*(?:={2,}|-{2,})[^\S\n]*(?:\n|\Z)")
_BOLD = re.compile(r"(\*\*|__)(?!\s)(?:(?!\1).)+(?<!\s)\1")


def split_heading(text: str) -> tuple[str, str]:
    """The heading with its number, and the first characters of the text behind what comes before its first sentence.

    The heading is empty if there is none that says something.
    """
    head = _BLANKS.sub("", text, count=1)[: HEAD * 10]
    if block := _FRONT_MATTER.match(head):
        head = head[block.end() :]
        if (title := _TITLE_LINE.search(block["lines"])) and (name := clean_title(title[1].strip().strip("\"'"))):
            return name, head
    if (element := _HEADING_ELEMENT.match(head)) and (name := clean_title(element[3])):
        return name, head
    for _ in range(EMPTY_HEADINGS):
        head = head[_NOTHING.match(head).end() :]  # type: ignore[union-attr]
        line, _, rest = head.partition("\n")
        line, marked = line.strip(), line.startswith("#")
        if not marked and not _UNDERLINE.match(rest) and not _BOLD.fullmatch(line):
            break
        name = clean_title(line.lstrip("#"))
        if name and (marked or not name.endswith(_SENTENCE_ENDS)):
            return name, head
        head = rest
    # The target of a link may be longer than the text around it.
    long = "](" in head[:HEAD] or "<" in head[:HEAD]
    plain = _BLANKS.sub("", strip_markup(head[: HEAD * 4 if long else HEAD]), count=1)[:HEAD]
    line, _, rest = plain.partition("\n")
    line, following = line.strip(), rest.lstrip()
    # A text with fixed line lengths goes on in lower case.
    if (
        following
        and not following[0].islower()
        and line[0].isalnum()
        and len(line) <= LINE
        and not line.endswith(_SENTENCE_ENDS)
        and as_key(line)
        and (name := clean_title(line))
    ):
        return name, plain
    return "", plain
