"""What reading the texts of the candidates takes: the words of the question, and which text names which."""

from __future__ import annotations

import random

from benchmarks.racing.points import SEED
from benchmarks.racing.turns import Race, Run
from shared_core import find_references, match_words

SIZES = (50, 200)
LENGTH = 1000
WORDS, TITLED, UNTITLED = "words of the question", "references, titles known", "references, names read in the texts"
# The most milliseconds that find_references may take.
MOST = {50: 2.0, 200: 15.0}


def races() -> list[Race]:
    """A race for each number of texts."""
    return [Race(race_name(n), contenders(n)) for n in SIZES]


def race_name(n: int) -> str:
    """The name of the race with n texts."""
    return f"{n} texts of {LENGTH} characters"


def contenders(n: int) -> dict[str, Run]:
    """What reads n texts. A text begins with its name, a title of two words, and names five other candidates."""
    draw = random.Random(SEED)
    common = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(3000)]
    names = [f"{draw.choice(common)} {draw.choice(common)}".title() for _ in range(n)]
    texts = []
    for name in names:
        words = [*draw.choices(common, k=LENGTH // 4), *draw.choices(names, k=5)]
        draw.shuffle(words)
        texts.append(f"{name} {' '.join(words)}"[:LENGTH])
    question = " ".join(draw.choices(common, k=12))
    return {
        WORDS: lambda: match_words(question, texts),
        TITLED: lambda: find_references(texts, names),
        UNTITLED: lambda: find_references(texts),
    }
