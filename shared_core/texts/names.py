"""What a text is called, and the names that stand in a text: runs of capitalised words.

No model and no list of names is used, so this works in every language that has capitals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from .words import split_words

# A name has at most this many words and at least this many letters.
MOST_WORDS, LEAST_LETTERS = 12, 3
# read_name looks at this many characters of a text. A heading, and what stands before a name, are not longer than LINE.
HEAD, LINE = 200, 60
# "Mercury (planet)" is called "Mercury".
_BRACKETS = re.compile(r"[(\[（［][^()\[\]（）［］]*[)\]）］]\s*\Z")
# A line that ends like this is a sentence or leads to one, and no heading.
_SENTENCE_ENDS = tuple(".,;:!?。，；：！？،؛।")
# Words that begin a sentence with a capital and no name. In German the next noun has a capital too.
_OPENING = frozenset(
    split_words(
        "a an the this these in on at by for from as his her its their after when while during with "
        "der die das ein eine einer im am den dem des zum zur mit bei für nach von vor seit diese dieser "
        "mein meine sein seine ihr ihre unser unsere alle viele jede jeder jedes keine une un les en à het een"
    )
)
_MONTHS = frozenset(
    split_words("january february march april may june july august september october november december")
)
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
_JOINING = "of|the|and|de|del|da|di|du|la|von|van|der|den|in|for|e|y|und|et"
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
          {_SPACE} (?: (?: {_JOINING} ) (?=\s) {_SPACE} ){{0,2}}
          (?=[A-Z\d]) (?: {_ABBREVIATION} | {_WORD} )
        ){{0,999}}
      )
      | (?P<other> {_WORD} )                    # a word that begins no run
      | \Z
    )
    """,
    re.VERBOSE,
)
# A sentence begins after a mark at the end of the word before, and in a new paragraph.
_NEW_SENTENCE = re.compile(rf"\A{_PIECE}[.!?:]|\n[{_GAP}]*\n")

Key = tuple[str, ...]


def read_name(text: str) -> str:
    """The name of a text that has no title: its heading, or the capitalised words that it begins with.

    The first line is a heading if it is a Markdown heading (``# Title``), or if it is short, does not end like a
    sentence, and further lines follow. Else the name is the run of two or more capitalised words with which the text
    begins. A word such as "of" or "von" may stand inside of it. Articles and prepositions before it are left out, and
    so is a number with which the text begins. Scripts without capitals have names only in headings.

    Parameters
    ----------
    text : str
        The text. Only its first 200 characters, without white space before them, are read.

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
    head = text[: HEAD * 10].lstrip()[:HEAD]
    line, _, rest = head.partition("\n")
    line, marked = line.strip(), line.startswith("#")
    if marked and (name := line.strip("# \t")):
        return name
    following = rest.lstrip()
    # A text with fixed line lengths goes on in lower case.
    if (
        following
        and not following[0].islower()
        and line[0].isalnum()
        and len(line) <= LINE
        and not line.endswith(_SENTENCE_ENDS)
        and as_key(line)
    ):
        return line
    # Saves the search in texts without capitals.
    if not any(map(str.isupper, head[: LINE + 1])):
        return ""
    for start, _, run in capitalised_runs(head):
        before = split_words(head[: min(start, LINE)])
        if start > LINE or not all(word in _OPENING or word.isdigit() for word in before):
            break
        while run and (run[0].casefold() in _OPENING or (run[0].isdigit() and len(run) < 2)):
            run = run[1:]
        if run:
            name = " ".join(run)
            return name if len(run) > 1 and as_key(name) else ""
    return ""


def find_names(texts: Sequence[str], known: Iterable[str], most: int = 20) -> list[str]:
    """The names in the texts that none of ``known`` is, each once, in the order of the texts; at most ``most``.

    A name of one word counts inside of a sentence only, and not in German, where every noun has a capital.
    """
    seen, found = {as_key(name) for name in known} | {()}, []
    for text in texts:
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

    Every mark ends a run, but for the full stop of an abbreviation:

    >>> def runs(text):
    ...     return list(capitalised_runs(text))
    >>> runs("St. Mary's of the U.S. Navy: Ann")
    [(0, True, ['St.', "Mary's", 'of', 'the', 'U.S.', 'Navy']), (29, True, ['Ann'])]
    >>> runs("by J. K. Rowling, Ph.D. and Dr. No. Yes. No")
    [(3, False, ['J.', 'K.', 'Rowling']), (18, False, ['Ph.D.', 'and', 'Dr.', 'No.', 'Yes']), (41, True, ['No'])]
    >>> runs('He saw "Ann Lee" (Perth)')
    [(0, True, ['He']), (7, False, ['Ann', 'Lee']), (17, False, ['Perth'])]

    So do a dash, a slash and three dots. A hyphen does not:

    >>> runs("Ann–Bob / Jean-Luc … Eve")
    [(0, True, ['Ann']), (4, False, ['Bob']), (10, False, ['Jean-Luc']), (21, False, ['Eve'])]

    At most two joining words stand inside of a run, and none at its end. The 's of the last word is left out:

    >>> runs("Lord of the Rings of the von Trapp's")
    [(0, True, ['Lord', 'of', 'the', 'Rings']), (29, False, ['Trapp'])]
    >>> runs("Ann and, Bob’s")
    [(0, True, ['Ann']), (9, False, ['Bob'])]

    A run may go on in the next line. A new paragraph begins a sentence:

    >>> runs("of New\\nYork\\n\\nAnn went. Then Bob")
    [(3, False, ['New', 'York']), (13, True, ['Ann']), (23, True, ['Then', 'Bob'])]

    The first character of a word decides. A digit does not begin a run:

    >>> runs("4 Henry 4th, Apollo 11 iPhone x-Ray")
    [(2, False, ['Henry', '4th']), (13, False, ['Apollo', '11'])]

    Every script with capitals counts, and no other one:

    >>> runs("Город Москва, Élodie, 北京大学 A")
    [(0, True, ['Город', 'Москва']), (14, False, ['Élodie']), (27, False, ['A'])]
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


def as_key(name: str) -> Key:
    """The words by which names are compared; empty if ``name`` is too long or too short for a name."""
    return key_of_words(_without_brackets(name)) if len(name) <= HEAD else ()


def key_of_words(name: str) -> Key:
    """:func:`as_key` of a name without brackets at its end."""
    words = tuple(split_words(name)) if len(name) <= HEAD else ()
    characters = "".join(words)
    letters = len(characters) - characters.count("_") - sum(map(str.isdigit, characters))
    return words if letters >= LEAST_LETTERS and len(words) <= MOST_WORDS else ()


def _without_brackets(name: str) -> str:
    """``name`` without what stands in brackets at its end."""
    return _BRACKETS.sub("", name) or name


def list_names(title: str | None, text: str) -> list[str]:
    """The full name of a text, and the short forms of it that other texts may use.

    "Hoosick, New York" is called "Hoosick", "Arsenal F.C." "Arsenal", and "Timothy James McVeigh", where it is read in
    the text, "Timothy McVeigh".
    """
    if not title or not title.strip():
        name = _without_brackets(read_name(text))
        words = name.split()
        capitals = len(words) > 2 and all(word[0].isupper() for word in words)
        return [name, f"{words[0]} {words[-1]}"] if capitals else [name]
    name = _without_brackets(title.strip()[: HEAD + 1])
    place, *further = name.split(", ")
    if len(further) == 1 and all(word[0].isupper() for word in further[0].split()):
        return [name, place]
    *words, last = name.split()
    return [name, " ".join(words).rstrip(",")] if words and last.endswith(".") and len(last) > 2 else [name]
