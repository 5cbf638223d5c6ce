"""The data of the learned kernel's tables: GeoQuery, MTOP and NL2Bash, each in three parts that share no question.

The seed splits a data set into the pool, from which kernels are learned and examples selected, and the test queries.
The spare part is the same for every seed. A table that needs more test queries takes them from it.

    python benchmarks/learned/data.py         # prints how many items of each file are kept, and the sizes of the parts
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.papers._common import records, require, table

Item = dict[str, str]

# The seed that draws the spare part, the same for every seed of the tables.
SPARE_SEED = 20_220_905
LONGEST = 300


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a data set, the key of its answers, and the sizes of its parts (``test`` None: the rest)."""

    file: str
    answer: str
    spare: int
    pool: int
    test: int | None
    lower: bool = False


# FunQL writes names of places in lower case. With questions in lower case a name is the same word in both.
SOURCES = {
    "geoquery": Source("geoquery/geoquery.jsonl", "funql", 200, 400, None, lower=True),
    "mtop": Source("mtop/mtop.jsonl", "logical_form", 4000, 2000, 400),
    "nl2bash": Source("nl2bash/nl2bash.jsonl", "bash", 4000, 2000, 400),
}
FILES = tuple(source.file for source in SOURCES.values())


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of a data set, each item as ``{"id", "question", "answer"}``."""

    spare: list[Item]
    pool: list[Item]
    test: list[Item]


@dataclass(frozen=True, slots=True)
class Kept:
    """The items of a file that are used, and how many are not: too long, or with a repeated question."""

    items: list[Item]
    too_long: int
    repeated: int


def load(name: str, seed: int) -> Split:
    """A data set's parts: ``spare`` is the same for every seed, the seed splits the rest into pool and test.

    No two items have the same question, ignoring case. ``KeyError`` for a name that is not in ``SOURCES``.
    """
    source = SOURCES[name]
    return split_items(kept(name).items, source.spare, source.pool, source.test, seed)


def kept(name: str) -> Kept:
    """The items of a data set that are short enough, each question once, in the order of the file."""
    source = SOURCES[name]
    return usable(
        [
            {
                "id": record["id"],
                "question": record["question"].lower() if source.lower else record["question"],
                "answer": record[source.answer],
            }
            for record in records(source.file)
        ]
    )


def usable(items: list[Item]) -> Kept:
    """Items with at most ``LONGEST`` characters in question and answer together; the first of each question.

    >>> texts = ("Who?", "who?", "W" * 400, "Why?")
    >>> found = usable([{"id": text[:4], "question": text, "answer": "me"} for text in texts])
    >>> [item["id"] for item in found.items], found.too_long, found.repeated
    (['Who?', 'Why?'], 1, 1)
    """
    short = [item for item in items if len(item["question"]) + len(item["answer"]) <= LONGEST]
    first: dict[str, Item] = {}
    for item in short:
        first.setdefault(item["question"].casefold(), item)
    return Kept(list(first.values()), len(items) - len(short), len(short) - len(first))


def split_items(items: list[Item], spare: int, pool: int, test: int | None, seed: int) -> Split:
    """Items in parts of these sizes, each in random order; without a size the test gets all remaining items."""
    if len(items) < spare + pool + (test or 1):
        raise ValueError(f"{len(items)} items are too few for parts of {spare}, {pool} and {test or 'at least 1'}")
    order = np.random.default_rng(SPARE_SEED).permutation(len(items))
    rest = np.random.default_rng(seed).permutation(order[spare:])
    end = len(rest) if test is None else pool + test
    return Split(*([items[row] for row in rows] for rows in (order[:spare], rest[:pool], rest[pool:end])))


def main() -> None:
    """Print how many items of each file are kept, and the sizes of the parts."""
    require(*FILES)
    rows = []
    for name in SOURCES:
        found, split = kept(name), load(name, 0)
        sizes = (len(found.items), found.too_long, found.repeated, *map(len, (split.spare, split.pool, split.test)))
        rows.append([name, *(f"{size:,}" for size in sizes)])
    head = ["data set", "kept", f"over {LONGEST} characters", "repeated question", "spare", "pool", "test"]
    print(table(head, rows), end="")


if __name__ == "__main__":
    main()
