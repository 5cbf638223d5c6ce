"""The data of the learned kernel's tables: GeoQuery, MTOP and NL2Bash, each in three parts that share no question.

The seed splits a data set into the pool, from which kernels are learned and examples selected, and the test queries.
The spare part is the same for every seed. A table that needs more test queries takes them from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.common import records

Item = dict[str, str]

# The seed that draws the spare part, the same for every seed of the tables.
SPARE_SEED = 20_220_905
LONGEST = 300


class Source(NamedTuple):
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


class Split(NamedTuple):
    """The parts of a data set, each item as ``{"id", "question", "answer"}``."""

    spare: list[Item]
    pool: list[Item]
    test: list[Item]


def load(name: str, seed: int) -> Split:
    """A data set's parts: ``spare`` is the same for every seed, the seed splits the rest into pool and test."""
    source = SOURCES[name]
    items = [
        {
            "id": record["id"],
            "question": record["question"].lower() if source.lower else record["question"],
            "answer": record[source.answer],
        }
        for record in records(source.file)
    ]
    return split_items(usable(items), source.spare, source.pool, source.test, seed)


def usable(items: list[Item]) -> list[Item]:
    """Items with at most ``LONGEST`` characters in question and answer together; the first of each question.

    >>> texts = ("Who?", "who?", "W" * 400, "Why?")
    >>> [item["id"] for item in usable([{"id": text[:4], "question": text, "answer": "me"} for text in texts])]
    ['Who?', 'Why?']
    """
    first: dict[str, Item] = {}
    for item in items:
        if len(item["question"]) + len(item["answer"]) <= LONGEST:
            first.setdefault(item["question"].casefold(), item)
    return list(first.values())


def split_items(items: list[Item], spare: int, pool: int, test: int | None, seed: int) -> Split:
    """Items in parts of these sizes, each in random order; without a size the test gets all remaining items."""
    if len(items) < spare + pool + (test or 1):
        raise ValueError(f"{len(items)} items are too few for parts of {spare}, {pool} and {test or 'at least 1'}")
    order = np.random.default_rng(SPARE_SEED).permutation(len(items))
    rest = np.random.default_rng(seed).permutation(order[spare:])
    end = len(rest) if test is None else pool + test
    return Split(*([items[row] for row in rows] for rows in (order[:spare], rest[:pool], rest[pool:end])))
