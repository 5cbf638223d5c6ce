"""What a bonus for the chunk next to a pick adds to the default: a prototype on corpora whose chunks have an order.

The objective is that of ``benchmarks.regimes_methods.objective``. A candidate that stands directly before or after a
pick in its document gains ``weight``, times (1 − share)², where share is how much of its text the pick repeats. It
gains it once, and the rule that a name brings one bonus does not hold for it. Recall is the mean of k = 5 and 10, in
points. The 50 nearest texts by all-MiniLM-L6-v2 are the candidates, or these and the neighbours of the ten nearest.

    python benchmarks/neighbours.py [--half test] [privacy_qa ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import parser, records, say, table, with_interval
from benchmarks.regimes_methods import FETCH_K, Search, fused_relevance, standardised
from benchmarks.regimes_tasks import Picks, Regime, company, embed_regime, is_development, nearest, steps
from shared_core.retrieval.joining import join_texts
from shared_core.selectors.coverage import COVERED, REFERRED, WORDS_IN_RELEVANCE
from shared_core.selectors.ndpp import DEFAULT_RIDGE

WEIGHTS = (0.0, 0.5, 0.75, 1.0)
# So many of the nearest texts have their neighbours fetched.
FETCHED = 10
# ObliQA: questions with at least two right texts. Windows of two sentences, each of which shares one with the next.
CORPORA = ("privacy_qa", "anthropic_docs", "anthropic_code", "chunking", "obliqa", "hotpotqa", "hotpotqa_dev", "2wiki")
WINDOWS = CORPORA[-3:]


def read_corpus(folder: str) -> tuple[Regime, list[str]]:
    """The texts and questions, and the document of each text; the texts of a document are in its order."""
    if folder in WINDOWS:
        regime = steps(folder, windows=True)
        return regime, list(regime.names or ())
    regime = company(folder, 2 if folder == "obliqa" else 1)
    return regime, [one.get("source") or one["id"].rpartition(":")[0] for one in records(f"{folder}/docs.jsonl")]


def strength_of(rows: np.ndarray, texts: Sequence[str], documents: Sequence[str]) -> np.ndarray:
    """(n, n): how much of ``weight`` candidate j gains once candidate i is a pick."""
    strength, place = np.zeros((len(rows), len(rows))), {row: at for at, row in enumerate(rows.tolist())}
    for row, i in place.items():
        j = place.get(row + 1)
        if j is not None and documents[row] == documents[row + 1]:
            first, second = texts[row], texts[row + 1]
            shared = len(first) + len(second) - len(join_texts([first, second], [None, None]))
            for a, b, text in ((i, j, second), (j, i, first)):
                strength[a, b] = (1 - max(shared, 0) / len(text)) ** 2
    return strength


def select(search: Search, strength: np.ndarray, weight: float, k: int) -> Picks:
    """The greedy maximum of the default's objective with the bonus."""
    relevance = standardised(fused_relevance(search, WORDS_IN_RELEVANCE))
    parts, weights = search.words.covered, search.words.weights
    weights = COVERED * weights / max(weights.sum(), 1e-12)
    kernel = search.between + DEFAULT_RIDGE * np.eye(len(search.rows))
    references, names = search.references.strength, search.references.documents
    covered, beside, picks = np.zeros(len(weights)), np.zeros(len(relevance)), []
    for _ in range(min(k, len(relevance))):
        gain = relevance + np.log(kernel.diagonal().clip(1e-12)) + np.maximum(0, parts - covered) @ weights
        if picks:
            gain += REFERRED * references[picks].max(axis=0) * (names[:, None] != names[picks]).all(axis=1)
        gain += weight * beside
        gain[picks] = -np.inf
        p = int(gain.argmax())
        picks.append(p)
        kernel -= np.outer(kernel[:, p], kernel[p]) / max(kernel[p, p], 1e-12)
        covered, beside = np.maximum(covered, parts[p]), np.maximum(beside, strength[p])
    return search.rows[picks].tolist()


def measure(folder: str, half: str) -> list[str]:
    """A row of the table: similarity, the default over it, and what the weights add to the default."""
    regime, documents = read_corpus(folder)
    cases = [case for case in regime.cases if is_development(case.question) == (half == "development")]
    regime = regime._replace(cases=cases)
    vectors, queries = embed_regime(regime)
    worth: dict[object, list[float]] = {}
    for case, query in zip(regime.cases, queries, strict=True):
        near = nearest(case, query, vectors, FETCH_K)
        near_rows = near.tolist()
        beside = [
            row + step
            for row in near_rows[:FETCHED]
            for step in (-1, 1)
            if 0 <= row + step < len(documents) and documents[row + step] == documents[row]
        ]
        sets: dict[object, Picks] = {"similarity": near_rows}
        for fetched, rows in ((False, near), (True, np.array([*dict.fromkeys([*near_rows, *beside])]))):
            names = None if regime.names is None else [regime.names[row] for row in rows]
            texts = [regime.texts[row] for row in rows]
            search = Search(case.question, query, rows, vectors[rows], texts, rows[:0], names=names)
            strength = strength_of(rows, regime.texts, documents)
            for weight in WEIGHTS:
                sets[fetched, weight] = select(search, strength, weight, max(regime.ks))
        for name, picks in sets.items():
            values = worth.setdefault(name, [])
            values.append(100 * float(np.mean([case.worth(picks[:k]) for k in regime.ks])))
    means = {name: np.array(values) for name, values in worth.items()}
    base = means[False, 0.0]
    added = [means[fetched, weight] - base for fetched in (False, True) for weight in WEIGHTS if fetched or weight]
    similarity = means["similarity"]
    figures = [f"{similarity.mean():.1f}", f"{(base - similarity).mean():+.1f}"]
    return [folder, str(len(base)), *figures, *(with_interval(values, 1) for values in added)]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--half", choices=("development", "test"), default="development")
    arguments.add_argument("corpora", nargs="*", help=", ".join(CORPORA))
    given = arguments.parse_args()
    rows = []
    for folder in given.corpora or CORPORA:
        rows.append(measure(folder, given.half))
        say(" | ".join(rows[-1]))
    weights = [f"{weight}" for weight in WEIGHTS[1:]] + [f"{weight}, fetched" for weight in WEIGHTS]
    print(table([given.half, "questions", "similarity", "default over it", *weights], rows))


if __name__ == "__main__":
    main()
