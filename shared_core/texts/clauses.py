"""The clauses of a request, which most often ask for one thing each; found without a model."""

from __future__ import annotations

import re

from .words import split_words

# A request with more clauses holds a text that somebody pasted, before or behind what is asked. A shorter clause says
# little by itself: "and then".
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
    """The clauses of at least three words, in their order; none if there are fewer than two.

    Of more than eight only the first four and the last four.

    >>> split_clauses("Find flights to Oslo, and tell me what the weather is there")
    ['Find flights to Oslo', 'tell me what the weather is there']
    >>> split_clauses("What is the weather in Oslo?")
    []
    """
    lines = "\n".join(" ".join(line.split()) for line in text.splitlines())
    parts = (part.strip(" ,.;:?!") for part in _BETWEEN.split(lines))
    clauses = [part for part in parts if len(split_words(part)) >= FEWEST_WORDS]
    if len(clauses) > MOST_CLAUSES:
        half = MOST_CLAUSES // 2
        clauses = clauses[:half] + clauses[-half:]
    return clauses if len(clauses) > 1 else []
