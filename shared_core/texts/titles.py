"""Titles and headings as people, sites, converters and scanners write them, and what of a title is the name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from .fold import strip_markup
from .identifiers import read_own
from .words import Text, keep, split_words

Key = tuple[str, ...]

# Words in lower case inside of a run of capitalised words, and further ones inside of a title.
JOINING = "of|the|and|de|del|da|di|du|la|von|van|der|den|in|for|e|y|und|et"
_SMALL = frozenset(f"{JOINING}|a|al|an|as|at|by|con|dem|des|el|en|from|las|le|les|los|on|or|per|sur|to|with".split("|"))
# A name has at most this many words and characters, and at least this many letters.
MOST_WORDS, LEAST_LETTERS, HEAD = 12, 3, 200
# "Mercury (planet)" is called "Mercury", and "Perth (city) (Australia)" "Perth".
_BRACKETS = re.compile(r"(?:[(\[（［][^()\[\]（）［］]*+[)\]）］]\s*+)++\Z")
# Longer titles are cut before they are read, so that the time does not depend on them.
LONGEST = 800
# A title that so many sources share, and so many of the candidates have, says nothing of each of them.
SOURCES, SHARE_OF_CANDIDATES = 3, 1 / 3

# Between a name and that of its site.
_SEPARATOR = re.compile(r" (?:[|·»•–—-]|::) ")

_APPLICATION = re.compile(r"\AMicrosoft (?:Word|PowerPoint|Excel) - ", re.IGNORECASE)
# Anchors and attributes behind a heading, and the sign of a link to it.
_ANCHOR = re.compile(r"(?: ?(?:\{[#.:][^{}]*\}|[¶\u200b])| #+)+\Z")
# Between a number and what is the name: "Chapter 3: Links", "3.2 Links", "IV. Links", but not "Section 8 Housing".
_BEHIND_NUMBER, _ROMAN = (
    re.compile(r"\s*[.:)–—-]+\s+(?=\w)|[\s:：、.]+(?=\w)"),
    re.compile(r"[IVX]{2,}[.)]\s+(?=[^\W\d_])"),
)
_NO_TITLE = re.compile(
    r"""
    (?: untitled | unnamed | unbenannt | sans\ titre | sin\ título | senza\ titolo | 無題 | 无标题 )
        (?: [\s_-]* (?: document | page | note | presentation | spreadsheet | dokument ) )? [\s_(-]* \d* \)?
    | none | nan | nat | null | nil | undefined | unknown | n/a | <na> | no\ title | title | tbd
    | (?: (?: powerpoint | microsoft ) [\s-]* )+ presentation | (?: new\ )? (?: microsoft\ word\ )? document
    | (?: document | dokument | doc | presentation | slide | folie | page | seite | sheet | tabelle | book | mappe
        | file | scan | image | photo | foto | screenshot | img | dsc[nf]? | pxl ) [\s_-]* (?=\d) [\d\s_.:,()-]*
        (?: at [\d\s_.:-]+ )? (?: [ap]m )?
    | see\ also | (?: table\ of\ )? contents | read\ more | click\ here | skip\ to\ (?:main\ )?content
    | [0-9a-f]{8} (?: -[0-9a-f]{4} ){3} -[0-9a-f]{12} | [0-9a-f]{32,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What the words of an identifier have: "rfft2", "max_tokens", "numpy.fft", "std::sort".
_OF_IDENTIFIER = re.compile(r"[\d_]|\w(?:\.|::)\w")
_SUFFIX = re.compile(r"\.(?:docx?|pptx?|xlsx?|pdf|odt|odp|txt|md|html?|jpe?g|png|tiff?|heic)\Z", re.IGNORECASE)
# A heading without marks is not longer, nor is what stands before a name.
LINE = 60
# So many headings that say nothing may stand before one that does.
EMPTY_HEADINGS = 3
# A line that ends like this is a sentence or leads to one, and no heading.
_SENTENCE_ENDS = tuple(".,;:!?。，；：！？،؛।")
# Blanks, and characters without a width.
_BLANKS = re.compile(r"[\s\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*+")
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
# The line under a heading of Markdown, and a line that is bold as a whole.
_UNDERLINE = re.compile(r"[^\S\n]*(?:={2,}|-{2,})[^\S\n]*(?:\n|\Z)")
_BOLD = re.compile(r"(\*\*|__)(?!\s)(?:(?!\1).)+(?<!\s)\1")


# A line that is a number with its kind: "Article 17".
_DIGITS, _NUMBERED = re.compile(r"\d+"), re.compile(r"\W*[^\W\d_]*\W*0[\W0]*")


# The titles of a corpus come back with each question.
@lru_cache(maxsize=2**12)
def is_title(title: str) -> bool:
    """Whether a title says something: it is not blank, no word for "none", and no name of a program or a scanner.

    >>> [title for title in ("Ann Lee", "untitled", "NaN", "Slide 1", "IMG_1234.jpg", "1984") if is_title(title)]
    ['Ann Lee', '1984']
    """
    title = _APPLICATION.sub("", title.strip()[:LONGEST].rstrip())
    return bool(title) and not _NO_TITLE.fullmatch(_SUFFIX.sub("", title))


@lru_cache(maxsize=2**12)
def clean_title(title: str) -> str:
    """The title without markup, its anchor, and the program that made it; empty if what is left is no title.

    >>> list(map(clean_title, ["**Single sign-on** {#sso}", "Microsoft Word - Report.doc", "[Docs](x.md)", "None"]))
    ['Single sign-on', 'Report', 'Docs', '']
    """
    title = _ANCHOR.sub("", " ".join(strip_markup(title.strip()[:LONGEST]).split()))
    if _APPLICATION.match(title):
        title = _SUFFIX.sub("", _APPLICATION.sub("", title))
    return title if is_title(title) else ""


def without_number(title: str) -> str:
    """A heading without its number, which has dots inside, a sign, or a word such as "Chapter".

    >>> list(map(without_number, ["3.2 Single sign-on", "§ 12 Fristen", "第3章 概要", "2001: A Space Odyssey", ""]))
    ['Single sign-on', 'Fristen', '概要', '2001: A Space Odyssey', '']
    """
    if not (number := read_own(title)):
        return _ROMAN.sub("", title, count=1)
    rest = _BEHIND_NUMBER.match(title, number.end)
    named = rest and (rest[0].strip() or not title[0].isalpha() or not title[0].isascii())
    return title[rest.end() :] if rest and named else title


def list_parts(titles: Sequence[str]) -> list[list[str]]:
    """What a site's name stands beside in each title: the site is the part between separators that three titles share.

    >>> list_parts(["Inception | FilmBase", "Heat | FilmBase", "FilmBase - Alien", "Paris | Texas"])
    [['Inception'], ['Heat'], ['Alien'], []]
    """
    parts = {title: _SEPARATOR.split(title) for title in titles}
    number = Counter(part for found in parts.values() for part in {*found})
    own = {title: [part for part in found if number[part] < SOURCES] for title, found in parts.items()}
    return [[*filter(is_title, own[title])] if len(own[title]) < len(parts[title]) else [] for title in titles]


def cut_running_header(texts: Sequence[str]) -> list[str]:
    """The texts without the first line, where it stands in many of them, digits apart, and is no number of its own.

    >>> cut_running_header(["ACME Inc. 2024\\nOne", "ACME Inc. 2024\\nTwo", "ACME Inc. 2025\\nThree", "Four"])
    ['One', 'Two', 'Three', 'Four']
    """
    lines = [text.lstrip()[:HEAD].partition("\n") for text in texts]
    keys = [_DIGITS.sub("0", line) if end and rest.strip() else "" for line, end, rest in lines]
    number = Counter(key for key, _ in {*zip(keys, texts, strict=True)} if key and not _NUMBERED.fullmatch(key))
    least = max(SOURCES, SHARE_OF_CANDIDATES * len(texts))
    return [
        text if number[key] < least else text.lstrip()[len(line[0]) + 1 :]
        for text, key, line in zip(texts, keys, lines, strict=True)
    ]


def as_key(name: str) -> Key:
    """The words by which names are compared; empty if it is too long or too short for a name."""
    return key_of_words(without_brackets(name)) if len(name) <= HEAD else ()


@lru_cache(maxsize=2**12)
def key_of_words(name: str) -> Key:
    """:func:`as_key` of a name without brackets at its end."""
    words = tuple(split_words(name)) if len(name) <= HEAD else ()
    characters = "".join(words)
    letters = len(characters) - characters.count("_") - sum(map(str.isdigit, characters))
    return words if letters >= LEAST_LETTERS and len(words) <= MOST_WORDS else ()


def is_proper(name: str) -> bool:
    """Whether each word, joining ones aside, has a capital, a digit, or a mark of identifiers: else it is a heading.

    Scripts without capitals have only such names.

    >>> list(filter(is_proper, ["Vincent van Gogh", "iPhone 15", "numpy.fft", "北京大学", "Model names", "overview"]))
    ['Vincent van Gogh', 'iPhone 15', 'numpy.fft', '北京大学']
    """
    telling = [word for word in name.split() if not is_joining(word)]
    # Georgian has small letters, but puts no capital at the beginning of a word.
    return bool(telling) and not any(
        word.islower() and word != word.title() and not _OF_IDENTIFIER.search(word) for word in telling
    )


def is_joining(word: str) -> bool:
    """Whether a title may have the word in lower case: "of", "van"."""
    return word.casefold() in _SMALL


def without_brackets(name: str) -> str:
    """``name`` without what stands in brackets at its end."""
    return _BRACKETS.sub("", name) or name


@keep
def split_heading(text: Text) -> tuple[str, str]:
    """The heading with its number; and the first characters of the text, from the heading or the first sentence on.

    The heading is empty if there is none that says something. Front matter, comments and pictures are left out.
    """
    head = _BLANKS.sub("", text.text, count=1)[: HEAD * 10]
    if block := _FRONT_MATTER.match(head):
        head = head[block.end() :]
        if (title := _TITLE_LINE.search(block["lines"])) and (name := clean_title(title[1].strip().strip("\"'"))):
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
