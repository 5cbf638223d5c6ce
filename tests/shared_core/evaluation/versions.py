"""A corpus in versions: answers of several products, each stored in several versions, and questions of two parts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PRODUCTS = ("norvik", "halden", "tarvos", "mirela", "oslund", "pelora")
PARTS = ("reset", "disk", "invoice", "network", "filter")


class Corpus(NamedTuple):
    """Documents, and queries whose ``subtopics`` are the parts; every version of a part covers it."""

    documents: list[dict[str, Any]]
    queries: list[dict[str, Any]]

    def asking(self, key: str) -> list[dict[str, Any]]:
        """The queries with their subtopics, or with all these documents as gold."""
        if key == "subtopics":
            return self.queries
        return [
            {"id": one["id"], "text": one["text"], "gold": [name for ids in one["subtopics"].values() for name in ids]}
            for one in self.queries
        ]


def corpus_in_versions(seed: int = 0) -> Corpus:
    """Versions of an answer differ in one word. A question has more words of its first part than of its second."""
    rng = np.random.default_rng(seed)
    answers = {(product, part): [f"{part}{i}" for i in range(14)] for product in PRODUCTS for part in PARTS}
    documents, covering = [], {}
    for (product, part), words in answers.items():
        count = int(rng.integers(3, 8))
        covering[product, part] = [f"{product}-{part}-{version}" for version in range(count)]
        for version, name in enumerate(covering[product, part]):
            text = " ".join([product, *rng.permutation(words), f"release {version}"])
            documents.append({"id": name, "text": text})
    queries = [
        {
            "id": f"{product}-{first}-{second}",
            "text": " ".join([product, *answers[product, first][:4], *answers[product, second][4:6]]),
            "subtopics": {part: covering[product, part] for part in (first, second)},
        }
        for product in PRODUCTS
        for first in PARTS
        for second in PARTS
        if first != second
    ]
    return Corpus(documents, queries)
