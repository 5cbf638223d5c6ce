"""What a text is called, and the names that stand in a text: runs of capitalised words.

No model and no list of names is used, so this works in every language that has capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .fold import strip_markup
from .identifiers import parse_identifier
from .kinds import EDITION_BEFORE, EDITION_BEHIND, FAMILIES
from .titles import (
    HEAD,
    JOINING,
    LINE,
    as_key,
    clean_title,
    list_parts,
    split_heading,
    without_brackets,
    without_number,
)
from .words import Text, keep, read_text, split_words


def _words(text: str) -> frozenset[str]:
    return frozenset(split_words(text))


# Words that begin a sentence with a capital and no name. In German the next noun has a capital too.
_OPENING = _words(
    "a an the this these in on at by for from as his her its their after when while during with "
    "der die das ein eine einer im am den dem des zum zur mit bei für nach von vor seit diese dieser "
    "mein meine sein seine ihr ihre unser unsere alle viele jede jeder jedes keine une un les en à het een"
)
_MONTHS = _words("january february march april may june july august september october november december")
# Words that only German has so often, where every noun has a capital.
_GERMAN = frozenset(("und", "der", "das"))

# The classes of which the pattern of runs is made. A gap stands between two pieces; a piece holds at most one word.
_GAP = r"\s–—…/"
_PIECE = rf"[^{_GAP}]*"
# From the first letter or digit of a piece to its last one: "Navy", "O'Neil", "4th".
_WORD = rf"\w (?: {_PIECE} \w )?"
# With its full stop: a word of one or two letters, "J.", "St."; a word with a full stop inside, "U.S.".
_ABBREVIATION = rf"\w \w? \. (?! {_PIECE} \w ) | (?> \w [^{_GAP}.]* \. {_PIECE} \w ) \."
# White space that begins no new paragraph.
_SPACE = r"[^\S\n]*+ \n? [^\S\n]*+"
# Each match is the next word of a text or the next run. No part of it takes time that is quadratic in the length of a
# text. Without a limit for the words of a run, 10 MB of capitals would take 4 GB of memory.
_NEXT = re.compile(
    rf"""
    (?P<between> (?: \W* [{_GAP}] )? )          # what stands between the word before and this piece
    (?P<marks> [^\w{_GAP}]*+ )                  # quotes and brackets before the word
    (?:
      (?P<run>
        (?=[A-Z]) (?: {_ABBREVIATION} | {_WORD} )
        (?:                                     # and further words with a capital or a digit
          {_SPACE} (?: (?: {JOINING} ) (?=\s) {_SPACE} ){{0,2}}
          (?=[A-Z\d]) (?: {_ABBREVIATION} | {_WORD} )
        ){{0,999}}
      )
      | (?P<other> {_WORD} )                    # a word that begins no run
      | \Z
    )
    """,
    re.VERBOSE,
)
# What files and editions of one document are called besides its name.
_EDITION = re.compile(
    rf"\A(?:{EDITION_BEFORE}) +|(?:[\s_–—-]+(?:{EDITION_BEHIND}|v(?:er|ersion)?\.?[ _]?\d+(?:\.\d+)*|(?:19|20)\d\d)"
    r"|\.(?:docx?|pptx?|xlsx?|pdf|odt|odp|txt|md|html?))+\Z",
    re.IGNORECASE,
)
# A salutation ends its line, and a colon follows a speaker: "Hi Bob,", "Bob Roy (10:32): fine".
_SPOKEN = re.compile(r"\s*(?:[(\[][^()\[\]\n]*[)\]]\s*)?(?:[:：](?!\S{2})|[,，!！](?=\s*(?:\n|\Z)))")
# A sentence begins after a mark at the end of the word before, and in a new paragraph.
_NEW_SENTENCE = re.compile(rf"\A{_PIECE}[.!?:]|\n[{_GAP}]*\n")


def read_name(text: str) -> str:
    """The name of a text that has no title: its heading, or the capitalised words that it begins with.

    The heading is the ``title`` in the front matter, or the first line, if it is marked as a heading or bold, or if it
    is short, does not end like a sentence, and further lines follow. It loses its markup and its number. Else the name
    is the run of two or more capitalised words with which the text begins, behind articles, prepositions and numbers,
    but no salutation ("Hi Bob,") or speaker ("Bob Roy:").

    Parameters
    ----------
    text : str
        The text. A heading is looked for in its first 2,000 characters, other names in its first 200.

    Returns
    -------
    str
        The name as it is written; empty if there is none.

    Examples
    --------
    >>> from setselect import read_name
    >>> read_name("# Opening hours\\n\\nWe open at nine.")
    'Opening hours'
    >>> read_name("Ernest Hemingway (1899-1961) was an American writer.")
    'Ernest Hemingway'
    >>> read_name("The river is long.")
    ''
    """
    return without_number(_read_name(read_text(text)))


@keep
def _read_name(text: Text) -> str:
    """:func:`read_name` with the number of a heading."""
    heading, head = split_heading(text)
    # Saves the search in texts without capitals. A text that begins in lower case begins inside of a sentence.
    if heading or head[:1].islower() or not any(map(str.isupper, head[: LINE + 1])):
        return heading
    for start, _, run in capitalised_runs(head):
        before, end = split_words(head[: min(start, LINE)]), start
        for word in run:
            end = head.index(word, end) + len(word)
        if _SPOKEN.match(head, end) or start > LINE or not all(word in _OPENING or word.isdigit() for word in before):
            return ""
        while run and (run[0].casefold() in _OPENING or (run[0].isdigit() and len(run) < 2)):
            run = run[1:]
        if run:
            name = " ".join(run)
            has_digit = any(map(str.isdigit, name))
            numbered = has_digit and any(one.family in FAMILIES for one in parse_identifier(name))
            return name if len(run) > 1 and not numbered and as_key(name) else ""
    return ""


def find_names(texts: Sequence[str], known: Iterable[str], most: int = 20) -> list[str]:
    """The names in the texts that none of ``known`` is, each once, in the order of the texts; at most ``most``.

    A name of one word counts inside of a sentence only, and not in German, where every noun has a capital.
    """
    seen, found = {as_key(name) for name in known} | {()}, []
    for text in map(strip_markup, texts):
        words = text.split()
        german = 20 * sum(word in _GERMAN for word in words) > len(words)
        for _, opens, run in capitalised_runs(text):
            if opens and run[0].casefold() in _OPENING:
                run = run[1:]
            if len(run) < 2 and (german or opens or len("".join(run)) < 4):
                continue
            name = " ".join(run)
            if (key := as_key(name)) not in seen and not all(word.isdigit() or word in _MONTHS for word in key):
                seen.add(key)
                found.append(name)
                if len(found) == most:
                    return found
    return found


def capitalised_runs(text: str) -> Iterator[tuple[int, bool, list[str]]]:
    """Each run of capitalised words: its place, whether it begins a sentence, and its words as they are written.

    Every mark ends a run, but for hyphens and the full stop of an abbreviation. At most two joining words stand inside
    of a run. It may go on in the next line. The first character of a word decides; a digit does not begin a run.

    >>> [*capitalised_runs("St. Mary's of the U.S. Navy: Ann–Jean-Luc’s")]
    [(0, True, ['St.', "Mary's", 'of', 'the', 'U.S.', 'Navy']), (29, True, ['Ann']), (33, False, ['Jean-Luc'])]
    >>> [*capitalised_runs("4 Henry 4th, of New\\nYork and\\n\\nÉlodie")]
    [(2, False, ['Henry', '4th']), (16, False, ['New', 'York']), (30, True, ['Élodie'])]
    """
    shape = text
    if not text.isascii():
        # The pattern knows the capitals of ASCII only. "A" takes the place of each other one.
        others = "".join([piece for piece in text.split() if not (piece.isascii() or piece.islower())])
        for letter in filter(str.isupper, set(others)):
            shape = shape.replace(letter, "A") if letter.isalnum() else shape
    for word in _NEXT.finditer(shape):
        if word["run"]:
            run = text[slice(*word.span("run"))]
            run = run[:-2] if run.endswith(("'s", "’s")) else run
            opens = word.start() == 0 or bool(_NEW_SENTENCE.search(word["between"]))
            yield word.start("marks"), opens, run.split()


def list_names(titles: Sequence[str | None] | None, texts: Sequence[Text]) -> list[list[str]]:
    """The full name of each text, and the short forms of it that other texts may use; the name may be empty.

    It is the title, without what its site and its numbering put around it. Without a title that says something it is
    the name that :func:`read_name` reads.
    """
    cleaned = [without_number(clean_title(title)) if title else "" for title in titles or [""] * len(texts)]
    return [
        [*_forms_of_title(title), *parts] if title else _forms_of_read(without_number(_read_name(text)))
        for title, parts, text in zip(cleaned, list_parts(cleaned), texts, strict=True)
    ]


def _forms_of_title(title: str) -> list[str]:
    """ "Hoosick, New York" is called "Hoosick", and "Arsenal F.C." "Arsenal"."""
    name = without_brackets(title[: HEAD + 1])
    if (short := _EDITION.sub("", name)) != name and short and (len(short.split()) > 1 or not name[-1].isdigit()):
        return [name, short]
    place, *further = name.split(", ")
    if len(further) == 1 and all(word[0].isupper() for word in further[0].split()):
        return [name, place]
    *words, last = name.split()
    return [name, " ".join(words).rstrip(",")] if words and last.endswith(".") and len(last) > 2 else [name]


def _forms_of_read(name: str) -> list[str]:
    """ "Timothy James McVeigh", where it is read in the text, is called "Timothy McVeigh"."""
    name = without_brackets(name)
    words = name.split()
    capitals = len(words) > 2 and all(word[0].isupper() for word in words)
    return [name, f"{words[0]} {words[-1]}"] if capitals else [name]
