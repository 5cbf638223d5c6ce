"""PIR: its data with copies of one text as one item, and the rankings under each mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import best, bm25_scores, records
from benchmarks.models import unit_vectors
from benchmarks.papers._measures import success_at_k
from benchmarks.papers._modes import perspective_scores
from shared_core import PAP, Candidates, PerspectiveError

FILES = ("pir/queries.jsonl", "pir/corpus.jsonl")
SUBSETS = {
    "agnews": "AGNews",
    "story": "Story",
    "perspectrum": "Perspectrum",
    "ambigqa": "AmbigQA",
    "allsides": "AllSides",
    "exfever": "Ex-FEVER",
}
CUTS = (1, 5, 10)
# Scores are rounded to so many digits, since rounding errors differ between machines. Ties go to the earlier item.
DIGITS = 9
PERSPECTIVES = {"text": "p = perspective's text", "difference": "p = q − root"}
# The modes of Table 4, and PAP and PAP+ with the opposite sign (emphasize).
MODES = {
    **{name: (name, None) for name in ("add", "concat", "cast", "cast+", "dual-sum", "tri-sum")},
    "PAP": ("pap", "remove"),
    "PAP+": ("pap+", "remove"),
    "PAP, emphasize": ("pap", "emphasize"),
    "PAP+, emphasize": ("pap+", "emphasize"),
}


@dataclass(frozen=True)
class Subset:
    """The queries of one subset, and its distinct texts with the item that each corpus id stands for."""

    name: str
    queries: list[dict[str, Any]]
    texts: list[str]
    item_of: dict[str, int]

    def gold(self, query: dict[str, Any]) -> list[int]:
        return sorted({self.item_of[doc] for doc in query["gold"]})

    @property
    def roots(self) -> list[str]:
        return [query["root_query"] for query in self.queries]


@dataclass(frozen=True)
class Vectors:
    """Embeddings of a subset, float64: items (n, d); queries, roots and perspectives (Q, d)."""

    items: np.ndarray
    query: np.ndarray
    root: np.ndarray
    text: np.ndarray

    def perspective(self, source: str) -> np.ndarray:
        return self.text if source == "text" else self.query - self.root


def merged(corpus: Iterable[dict[str, Any]]) -> tuple[list[str], dict[str, int]]:
    """The distinct texts in order, and for each id the index of its text: copies are one item."""
    index: dict[str, int] = {}
    item_of = {doc["id"]: index.setdefault(doc["text"], len(index)) for doc in corpus}
    return list(index), item_of


def apart(corpus: Iterable[dict[str, Any]]) -> tuple[list[str], dict[str, int]]:
    """All texts, and for each id its position: copies compete with one another."""
    docs = list(corpus)
    return [doc["text"] for doc in docs], {doc["id"]: place for place, doc in enumerate(docs)}


def load(items: Callable[[Iterable[dict[str, Any]]], tuple[list[str], dict[str, int]]] = merged) -> list[Subset]:
    """The six subsets, in the order of the paper's Table 2."""
    queries, corpus = (records(name) for name in FILES)
    return [
        Subset(name, [q for q in queries if q["subset"] == name], *items(d for d in corpus if d["subset"] == name))
        for name in SUBSETS
    ]


def embed(subset: Subset) -> Vectors:
    fields = ([q[field] for q in subset.queries] for field in ("query", "root_query", "perspective"))
    return Vectors(*map(unit_vectors, (subset.texts, *fields)))


def scores(
    mode: str, direction: str | None, query: np.ndarray, root: np.ndarray, perspective: np.ndarray, items: np.ndarray
) -> np.ndarray | None:
    """Each item's score; None where the mode leaves nothing of the query, so no order is defined."""
    if mode.startswith("cast") and np.allclose(query, perspective, atol=1e-6):
        return None
    try:
        if direction == "emphasize":
            pap = PAP(perspective, corpus=mode == "pap+", direction=direction)
            return pap.apply(Candidates(query, items)).relevance
        return perspective_scores(mode, query, root, perspective, items)
    except PerspectiveError:
        return None


def ranked(values: np.ndarray, k: int) -> list[int]:
    """Indices of the ``k`` highest, the earlier of equals first."""
    return best(np.round(values, DIGITS), k).tolist()


def rankings(
    vectors: Vectors, mode: str = "base", direction: str | None = None, source: str = "text"
) -> list[list[int]]:
    """The first items of each query under a mode; the plain search where the mode is undefined."""
    found = []
    perspectives = vectors.perspective(source)
    for query, root, perspective in zip(vectors.query, vectors.root, perspectives, strict=True):
        values = scores(mode, direction, query, root, perspective, vectors.items)
        found.append(ranked(vectors.items @ query if values is None else values, max(CUTS)))
    return found


def bm25_rankings(texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """The first items by BM25; only items with a query word count."""
    return [[i for i in ranked(v, max(CUTS)) if v[i] > 0] for v in bm25_scores(texts, queries)]


def successes(subset: Subset, found: Sequence[Sequence[int]], k: int) -> list[float]:
    """Per query: 1 if one of its gold items is among the first ``k``, else 0."""
    pairs = zip(subset.queries, found, strict=True)
    return [float(success_at_k(ranking, subset.gold(query), k)) for query, ranking in pairs]
