"""The clauses of a request, which most often ask for one thing each; found without a model."""

from __future__ import annotations

import re
from itertools import islice

from .words import split_words

# A request with more clauses is a text that somebody pasted. A shorter clause says little by itself: "and then".
MOST_CLAUSES, FEWEST_WORDS = 8, 3
# Words between two clauses, in English, German, French, Spanish, Italian, Portuguese and Dutch.
_JOINING = (
    "as well as|and|then|also|plus|or|while|und|dann|sowie|oder|anschließend|et|puis|ou|ensuite|y|luego|e|poi|oppure|"
    "depois|en"
)
# White space is a single space, or a line end.
_BETWEEN = re.compile(
    rf"(?<=[.?!;:])[ ]|[。！？；，、]|\n|,[ ](?:(?:{_JOINING})[ ])*|[ ](?:(?:{_JOINING})[ ])+", re.IGNORECASE
)


def split_clauses(text: str) -> list[str]:
    """The clauses of at least three words, in their order and at most eight; none if there are fewer than two.

    >>> split_clauses("Find flights to Oslo, and tell me what the weather is there")
    ['Find flights to Oslo', 'tell me what the weather is there']
    >>> split_clauses("What is the weather in Oslo?")
    []
    """
    lines = "\n".join(" ".join(line.split()) for line in text.splitlines())
    parts = (part.strip(" ,.;:?!") for part in _BETWEEN.split(lines))
    clauses = [*islice((part for part in parts if len(split_words(part)) >= FEWEST_WORDS), MOST_CLAUSES)]
    return clauses if len(clauses) > 1 else []
