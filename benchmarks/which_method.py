"""Which method when: every selector on three tasks with public data, with one embedding model (all-MiniLM-L6-v2).

Data is read from SETSELECT_DATA (default: ../shared/data beside the project) and never copied. A task without its data
is skipped. A second run on the same kind of processor prints the same figures.

    python benchmarks/which_method.py            # prints the table
    python benchmarks/which_method.py --write    # and writes benchmarks/results/which_method.md
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.papers._common import DATA, ROOT, records, table
from shared_core import select

RESULT = ROOT / "benchmarks" / "results" / "which_method.md"
SEED = 0
METHODS: dict[str, dict[str, object]] = {
    "similarity": {"selector": "similarity"},
    "MMR λ 0.75": {"selector": "mmr", "lambda_mult": 0.75},
    "MMR λ 0.5": {"selector": "mmr", "lambda_mult": 0.5},
    "MMR λ 0.25": {"selector": "mmr", "lambda_mult": 0.25},
    "VRSD": {"selector": "vrsd"},
    "VRSD refined": {"selector": "vrsd", "refine": True},
    "NDPP, linear": {"selector": "ndpp"},
    "NDPP, exponential 0.1": {"selector": "ndpp", "relevance": "exponential", "temperature": 0.1},
    "NDPP, exponential 0.5": {"selector": "ndpp", "relevance": "exponential", "temperature": 0.5},
}
# The embeddings of a query and of its candidates, and the value of a list of picks.
Case = tuple[np.ndarray, np.ndarray, Callable[[list[int]], float]]


def embedded(texts: list[str]) -> np.ndarray:
    from _minilm import minilm

    return np.asarray(minilm().embed_documents(texts), dtype=np.float32)


def ambient() -> Iterator[Case]:
    """Ambiguous one-word queries: the share of the meanings in 100 search results that the picks show."""
    documents = records("ambient/documents.jsonl")
    vectors = embedded([f"{d['title']}. {d['snippet']}" for d in documents])
    topics = records("ambient/topics.jsonl")
    for topic, query in zip(topics, embedded([t["query"] for t in topics]), strict=True):
        rows = [row for row, d in enumerate(documents) if d["topic_id"] == topic["id"]]
        meanings = [set(documents[row]["subtopics"]) for row in rows]
        found = set().union(*meanings)
        yield query, vectors[rows], lambda picks, m=meanings, f=found: len(set().union(*(m[i] for i in picks))) / len(f)


def geoquery() -> Iterator[Case]:
    """Few-shot examples: the share of a program's functions and nestings that the examples' programs contain."""
    items = records("geoquery/geoquery.jsonl")
    vectors = embedded([item["question"] for item in items])
    symbols = [funql_symbols(item["funql"]) for item in items]
    for row in np.random.default_rng(SEED).choice(len(items), 200, replace=False):
        others = np.array([i for i, item in enumerate(items) if item["question"] != items[row]["question"]])
        pool = others[np.argsort(-(vectors[others] @ vectors[row]), kind="stable")[:100]]
        wanted = symbols[row]
        yield (
            vectors[row],
            vectors[pool],
            lambda picks, p=pool, w=wanted: len(w & set().union(*(symbols[p[i]] for i in picks))) / len(w),
        )


def openbookqa() -> Iterator[Case]:
    """Examples for a question: cos(sum of the picks, question), the measure of VRSD's Table 1."""
    items = [q for q in records("openbookqa/questions.jsonl") if q["split"] != "train"]
    vectors = embedded([f"{q['question']} {q['answer']}" for q in items])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    questions = np.random.default_rng(SEED).choice(len(items), len(items) // 5, replace=False)
    others = np.setdiff1d(np.arange(len(items)), questions)
    for row in questions:
        pool = others[np.argsort(-(vectors[others] @ vectors[row]), kind="stable")[:20]]
        candidates, query = vectors[pool], vectors[row]
        yield query, candidates, lambda picks, c=candidates, q=query: cosine(c[picks].sum(axis=0), q)


def funql_symbols(program: str) -> set[object]:
    found: set[object] = set()
    open_calls: list[str] = []
    for name, bracket in re.findall(r"([a-z_0-9]+)\(|(\))", program):
        if bracket:
            open_calls.pop()
            continue
        found |= {name} | ({(open_calls[-1], name)} if open_calls else set())
        open_calls.append(name)
    return found


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


TASKS = {
    "Ambient, 5 of 100: meanings found": ("ambient", ambient, 5),
    "Ambient, 10 of 100: meanings found": ("ambient", ambient, 10),
    "GeoQuery, 2 of 100: program covered": ("geoquery", geoquery, 2),
    "GeoQuery, 4 of 100: program covered": ("geoquery", geoquery, 4),
    "OpenBookQA, 4 of 20: cos(sum, question)": ("openbookqa", openbookqa, 4),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    write = parser.parse_args().write
    rows = []
    for title, (folder, task, k) in TASKS.items():
        if not (DATA / folder).is_dir():
            print(f"skipped {title}: no {DATA / folder}; set SETSELECT_DATA")
            continue
        cases = list(task())
        values = {
            name: np.mean([worth(select(q, c, k, **how).indices.tolist()) for q, c, worth in cases])  # type: ignore[arg-type]
            for name, how in METHODS.items()
        }
        best = max(round(value, 3) for value in values.values())
        cells = [f"**{value:.3f}**" if round(value, 3) == best else f"{value:.3f}" for value in values.values()]
        rows.append([f"{title} ({len(cases)} queries)", *cells])
        print(" | ".join(rows[-1]), flush=True)
    if write:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(
            f"# Which method when\n\nWritten by `benchmarks/which_method.py --write`, seed {SEED}, "
            "all-MiniLM-L6-v2. Higher is better; the best figure of each row is bold.\n\n"
            + table(["task", *METHODS], rows),
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
