"""PIR, Tables 2 to 4: how well retrievers follow the perspective in a query, and the effect of projecting it out.

The data are the six subsets of the demo edition that the authors published, with copies of one text as one item. A
query is searched in the 500 items of its subset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.common import Block, best, bm25_scores, facts, parser, publish, records, require, table
from benchmarks.models import MINILM, unit_vectors
from benchmarks.papers._paper_figures import PIR_TABLE_2, PIR_TABLE_3, PIR_TABLE_4
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
LABELS = {"perspectrum": ("support", "undermine"), "allsides": ("left", "right", "center")}
Vector = NDArray[np.float64]
PERSPECTIVE_MODES = ("base", "add", "concat", "cast", "cast+", "dual-sum", "tri-sum", "pap", "pap+")


# --- measures -------------------------------------------------------------------------------------


def success_at_k(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> bool:
    """Whether a gold document is among the first k."""
    return not set(gold).isdisjoint(ranked[:k])


def p_recall_at_k(success: ArrayLike, root_of: Sequence[Hashable]) -> float:
    """p-Recall@k: mean over root queries of the mean success of their perspectives (PIR 2.3, equation 1)."""
    of_root: dict[Hashable, list[float]] = {}
    for root, value in zip(root_of, np.asarray(success, float).tolist(), strict=True):
        of_root.setdefault(root, []).append(value)
    return float(np.mean([np.mean(successes) for successes in of_root.values()]))


def perspective_shares(
    ranked: Sequence[Sequence[Hashable]], gold: Sequence[Mapping[str, Collection[Hashable]]], k: int
) -> dict[str, float]:
    """Share of each perspective among the gold documents that root queries find, summing to 1 (PIR 2.5, Table 3).

    The counts of all root queries are added and divided by their total. (The paper's 27.9, 44.3 and 27.9 percent are
    17, 27 and 17 of 61.) They show a bias only if each perspective has equally many gold documents.
    """
    found: Counter[str] = Counter()
    for ids, of_perspective in zip(ranked, gold, strict=True):
        for perspective, documents in of_perspective.items():
            found[perspective] += len({*ids[:k]} & {*documents})
    return {perspective: count / found.total() for perspective, count in found.items()}


# --- the modes of Table 4 -------------------------------------------------------------------------


def perspective_scores(mode: str, query: Vector, root: Vector, perspective: Vector, vectors: Vector) -> Vector:
    """Score each row of ``vectors``, shape (n, d), by a mode; (n,). The others have shape (d,).

    With q the query, r the root (the query without its perspective), p the perspective and c a candidate:
    ``"base"`` cos(q, c); ``"add"`` cos(r + p, c); ``"concat"`` cos([r; p], [c; c]), which always ranks like
    ``"add"``; ``"cast"`` cos(q − p, c); ``"cast+"`` cos(q − p, c − p); ``"dual-sum"`` cos(r, c) + cos(p, c);
    ``"tri-sum"`` cos(q, c) + cos(r, c) + cos(p, c); ``"pap"`` and ``"pap+"`` see ``PAP``. Vectors are used as given,
    without scaling, because sums and differences depend on their lengths. A cosine with a zero vector is 0.
    """
    q, r, p, c = query, root, perspective, vectors
    if mode in ("pap", "pap+"):
        return PAP(p, corpus=mode == "pap+").apply(Candidates(q, c)).relevance.astype(np.float64)
    terms: dict[str, list[tuple[Vector, Vector]]] = {
        "base": [(q, c)],
        "add": [(r + p, c)],
        "concat": [(np.concatenate([r, p]), np.hstack([c, c]))],
        "cast": [(q - p, c)],
        "cast+": [(q - p, c - p)],
        "dual-sum": [(r, c), (p, c)],
        "tri-sum": [(q, c), (r, c), (p, c)],
    }
    scores: Vector = np.sum([_cosines(vector, rows) for vector, rows in terms[mode]], axis=0)
    return scores


def _cosines(vector: Vector, rows: Vector) -> Vector:
    lengths = np.sqrt(np.vecdot(rows, rows)) * np.sqrt(vector.dot(vector))
    cosines: Vector = np.divide(rows.dot(vector), lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return cosines


# --- data and rankings ----------------------------------------------------------------------------


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


def load() -> list[Subset]:
    """The six subsets, in the order of the paper's Table 2."""
    queries, corpus = (records(name) for name in FILES)
    return [
        Subset(name, [q for q in queries if q["subset"] == name], *merged(d for d in corpus if d["subset"] == name))
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


# --- tables ---------------------------------------------------------------------------------------


def percent(values: Iterable[float]) -> list[str]:
    return [f"{100 * value:.1f}" for value in values]


def measure(subsets: list[Subset], vectors: list[Vectors]) -> dict[str, list[list[list[int]]]]:
    rows = {"BM25": [bm25_rankings(s.texts, [q["query"] for q in s.queries]) for s in subsets]}
    rows["base"] = [rankings(v) for v in vectors]
    for source in PERSPECTIVES:
        for name, (mode, direction) in MODES.items():
            rows[f"{name}|{source}"] = [rankings(v, mode, direction, source) for v in vectors]
    return rows


def root_shares(subset: Subset, found_by_root: dict[str, Sequence[int]], k: int) -> list[float]:
    """Table 3: the share of each label among the gold items that root queries find in their first ``k``."""
    gold: dict[str, dict[Hashable, set[int]]] = {root: {} for root in found_by_root}
    for query in subset.queries:
        if query["label"] in LABELS[subset.name]:
            gold[query["root_query"]].setdefault(query["label"], set()).update(subset.gold(query))
    shares = perspective_shares(list(found_by_root.values()), [gold[root] for root in found_by_root], k)
    return [shares.get(label, 0.0) for label in LABELS[subset.name]]


def table_3(subsets: list[Subset], vectors: list[Vectors]) -> str:
    """The share of each perspective in the results of root queries, ours and the paper's."""
    ours: dict[str, list[str]] = {}
    for subset, v in zip(subsets, vectors, strict=True):
        if subset.name not in LABELS:
            continue
        roots = list(dict.fromkeys(subset.roots))
        searches = {
            "BM25": bm25_rankings(subset.texts, roots),
            MINILM: [ranked(v.items @ v.root[subset.roots.index(root)], max(CUTS)) for root in roots],
        }
        for k in (1, 5):
            for name, found in searches.items():
                shares = root_shares(subset, dict(zip(roots, found, strict=True)), k)
                ours.setdefault(f"{name}, ours, first {k}", []).extend(percent(shares))
        everything = dict.fromkeys(roots, range(len(subset.texts)))
        ours.setdefault("all gold items", []).extend(percent(root_shares(subset, everything, len(subset.texts))))
    head = ["retriever", *(f"{SUBSETS[name]}: {label}" for name, labels in LABELS.items() for label in labels)]
    theirs = [[f"{name}, paper", *map(str, figures)] for name, figures in PIR_TABLE_3.items()]
    return table(head, [[name, *cells] for name, cells in ours.items()] + theirs)


def recall_table(subsets: list[Subset], rows: dict[str, list[list[list[int]]]], k: int) -> str:
    lines = []
    for key, found in rows.items():
        name, _, source = key.partition("|")
        values = [p_recall_at_k(successes(s, f, k), s.roots) for s, f in zip(subsets, found, strict=True)]
        lines.append([name, PERSPECTIVES.get(source, "none"), *percent([*values, float(np.mean(values))])])
    return table(["scoring", "perspective", *SUBSETS.values(), "mean"], lines)


def summary_table(subsets: list[Subset], rows: dict[str, list[list[list[int]]]]) -> str:
    """p-Recall@k and success@k at each cut, means of the six subsets, and p-Recall@5 against the plain search."""
    lines, base = [], 0.0
    for key, found in rows.items():
        name, _, source = key.partition("|")
        hits = {k: [successes(s, f, k) for s, f in zip(subsets, found, strict=True)] for k in CUTS}
        recall = {
            k: float(np.mean([p_recall_at_k(h, s.roots) for h, s in zip(hits[k], subsets, strict=True)])) for k in CUTS
        }
        success = [float(np.mean([np.mean(h) for h in hits[k]])) for k in CUTS]
        base = recall[5] if name == "base" else base
        change = "" if name == "BM25" else f"{100 * (recall[5] - base):+.1f}"
        theirs = PIR_TABLE_4.get(name)
        reported = (
            "" if theirs is None or source == "difference" else f"{theirs:.1f} ({theirs - PIR_TABLE_4['base']:+.1f})"
        )
        cells = [*percent(recall.values()), *percent(success), change, reported]
        lines.append([name, PERSPECTIVES.get(source, "none"), *cells])
    head = ["scoring", "perspective", *(f"p-Recall@{k}" for k in CUTS), *(f"success@{k}" for k in CUTS)]
    return table([*head, "p-Recall@5 against base", "paper, SimCSE-sup (against its base)"], lines)


def table_2(subsets: list[Subset], rows: dict[str, list[list[list[int]]]]) -> str:
    lines = []
    for key, name in {"BM25": "BM25, ours", "base": f"{MINILM}, ours"}.items():
        values = [p_recall_at_k(successes(s, f, 5), s.roots) for s, f in zip(subsets, rows[key], strict=True)]
        lines.append([name, *percent([*values, float(np.mean(values))])])
    theirs = [[f"{name}, paper", *map(str, figures)] for name, figures in PIR_TABLE_2.items()]
    return table(["retriever", *SUBSETS.values(), "mean"], lines + theirs)


def blocks() -> Iterator[Block]:
    yield facts(FILES, ("numpy", "bm25s", "sentence-transformers", "torch"))
    subsets = load()
    vectors = [embed(subset) for subset in subsets]
    rows = measure(subsets, vectors)
    yield table_2(subsets, rows)
    yield table_3(subsets, vectors)
    yield summary_table(subsets, rows)
    for k in (5, 1, 10):
        yield recall_table(subsets, rows, k)


def main() -> None:
    options = parser(__doc__, "papers/pir.md").parse_args()
    require(*FILES)
    publish("papers/pir.md", blocks(), options.write)


if __name__ == "__main__":
    main()
