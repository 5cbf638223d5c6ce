"""PIR, Tables 2 to 4: how well retrievers follow the perspective in a query, and the effect of projecting it out.

The data are the six subsets of the demo edition that the authors published. A query is searched in the 500 items of its
subset.
"""

import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.common import Block, facts, parser, publish, require, table
from benchmarks.models import MINILM
from benchmarks.papers._measures import p_recall_at_k, perspective_shares
from benchmarks.papers._paper_figures import PIR_TABLE_2, PIR_TABLE_3, PIR_TABLE_4
from benchmarks.papers._pir import (
    CUTS,
    FILES,
    MODES,
    PERSPECTIVES,
    SUBSETS,
    Subset,
    Vectors,
    apart,
    bm25_rankings,
    embed,
    load,
    ranked,
    rankings,
    successes,
)

LABELS = {"perspectrum": ("support", "undermine"), "allsides": ("left", "right", "center")}


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


def copies_table() -> str:
    """p-Recall@5 where copies of one text compete, in the order of the corpus and in the reverse order."""
    lines = []
    for order in ("first", "last"):
        for name, (mode, direction) in {"base": ("base", None), "PAP": MODES["PAP"]}.items():
            values = []
            for subset in load(apart):
                v = embed(subset)
                if order == "last":
                    last = len(subset.texts) - 1
                    subset = replace(subset, item_of={doc: last - place for doc, place in subset.item_of.items()})
                    v = replace(v, items=v.items[::-1])
                values.append(p_recall_at_k(successes(subset, rankings(v, mode, direction), 5), subset.roots))
            lines.append([f"{name}, the {order} copy first", *percent([*values, float(np.mean(values))])])
    return table(["scoring, p = perspective's text", *SUBSETS.values(), "mean"], lines)


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
    yield copies_table()


def main() -> None:
    options = parser(__doc__, "papers/pir.md").parse_args()
    require(*FILES)
    publish("papers/pir.md", blocks(), options.write)


if __name__ == "__main__":
    main()
