"""How often VRSD finds the best set: the set of k candidates whose sum has the highest cosine with the query.

Every set of k candidates is tried, so the pools are small. Embeddings are kept in .cache/.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table, with_interval
from benchmarks.models import MINILM, MPNET, PACKAGES, is_installed
from benchmarks.regimes_tasks import REGIMES, embed_regime, nearest
from shared_core import VRSD, Candidates

Floats = NDArray[np.float64]
Picks = list[int]
Worth = Callable[[Picks], float]

SEED = 0
DATA_SETS = (
    "OpenBookQA facts",
    "GeoQuery",
    "HotpotQA, paragraphs",
    "HotpotQA, overlapping windows",
    "Perspectrum",
    "SciFact",
)
QUERIES = 200  # of each data set
# Candidates and picks.
SETTINGS = ((20, 5), (20, 3), (15, 5))
TOLERANCE = 1e-9


@cache
def all_sets(n: int, k: int) -> NDArray[np.int64]:
    """Every set of ``k`` of ``n`` candidates, one a row."""
    return np.array(list(itertools.combinations(range(n), k)))


def cosines_of(relevance: Floats, dots: Floats, sets: NDArray[np.int64]) -> Floats:
    """cos(s, q) of the sum s of each set; ``relevance`` holds v·q, ``dots`` v·w for each v and w."""
    squares = dots[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2))
    return np.asarray(relevance[sets].sum(axis=1) / np.sqrt(squares))


def optimum(relevance: Floats, dots: Floats, k: int) -> tuple[Picks, Picks]:
    """The set with the highest cos(s, q) of all sets of ``k``, and of those that contain the nearest candidate."""
    sets = all_sets(len(relevance), k)
    cosines = cosines_of(relevance, dots, sets)
    with_nearest = np.where((sets == relevance.argmax()).any(axis=1), cosines, -np.inf)
    return sets[cosines.argmax()].tolist(), sets[with_nearest.argmax()].tolist()


GREEDY, REFINED = "VRSD", "VRSD refined"
METHODS = {GREEDY: VRSD(), REFINED: VRSD(refine=True)}
OPTIMUM, WITH_NEAREST = "the best set", "the best set with the nearest candidate"


class Found(NamedTuple):
    """What one method found: one value a query."""

    cosine: Floats
    worth: Floats  # for the task of the data set


def search(cases: Iterable[tuple[Floats, Floats, Worth]], k: int) -> dict[str, Found]:
    """What both methods, and each optimum, found for each query, its candidates and the worth of picks."""
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in (*METHODS, OPTIMUM, WITH_NEAREST)}
    for query, vectors, worth in cases:
        relevance, dots, candidates = vectors @ query, vectors @ vectors.T, Candidates(query, vectors)
        sets = [selector.select(candidates, k).indices.tolist() for selector in METHODS.values()]
        sets += optimum(relevance, dots, k)
        cosines = cosines_of(relevance, dots, np.array(sets))
        for name, picks, cosine in zip(values, sets, cosines, strict=True):
            values[name].append((cosine, worth(picks)))
    return {name: Found(*np.array(rows, dtype=np.float64).T) for name, rows in values.items()}


def cases_of(name: str, model: str, n: int) -> Iterator[tuple[Floats, Floats, Worth]]:
    """The queries of a data set, each with its ``n`` nearest texts."""
    regime = REGIMES[name][0]()
    texts, questions = map(unit, embed_regime(regime, model))
    for case, query in list(zip(regime.cases, questions, strict=True))[:QUERIES]:
        near = nearest(case, query, texts, n)
        yield query, texts[near], lambda picks, case=case, near=near: case.worth(near[picks].tolist())


def unit(vectors: NDArray[Any]) -> Floats:
    rows = vectors.astype(np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def reached(of: dict[str, Found], method: str, goal: str) -> float:
    """The share of the queries for which ``method`` finds a set as good as ``goal``."""
    return float((of[method].cosine >= of[goal].cosine - TOLERANCE).mean())


def shares(found: dict[str, dict[str, Found]]) -> str:
    """The share of queries for which each method finds the best set."""
    rows = [
        [method + more, *(f"{reached(of, method, goal):.1%}" for of in found.values())]
        for more, goal in (("", OPTIMUM), (", of the sets with the nearest", WITH_NEAREST))
        for method in METHODS
    ]
    return table(["method", *found], rows)


def spread(found: dict[str, dict[str, Found]]) -> str:
    """The lowest and the highest share of a data set, for each method."""
    texts = []
    for method in METHODS:
        of_sets = [reached(of, method, OPTIMUM) for of in found.values()]
        texts.append(f"{method} {min(of_sets):.0%} to {max(of_sets):.0%}")
    return ", ".join(texts)


def gaps(found: dict[str, dict[str, Found]]) -> str:
    rows = []
    for method in METHODS:
        means = [(of[OPTIMUM].cosine - of[method].cosine).mean() for of in found.values()]
        rows.append([method, *(f"{1e4 * abs(mean):.1f}" for mean in means)])
    return table(["method", *found], rows)


def worths(found: dict[str, dict[str, Found]]) -> str:
    """What the picks of VRSD and the best set are worth for the task, and the difference with its interval."""
    rows = []
    for name, of in found.items():
        row = [name, str(len(of[GREEDY].worth)), *(f"{of[m].worth.mean():.3f}" for m in (GREEDY, REFINED, OPTIMUM))]
        rows.append([*row, with_interval(of[OPTIMUM].worth - of[GREEDY].worth)])
    return table(["data set", "queries", GREEDY, REFINED, OPTIMUM, "the best set − VRSD, 95% interval"], rows)


def blocks(names: Sequence[str], models: Sequence[str]) -> Iterator[Block]:
    files = [file for name in names for file in REGIMES[name][1]]
    packages = ["setselect", "numpy", "torch", "sentence-transformers", *(PACKAGES[model][0] for model in models)]
    yield facts(files, packages, SEED)
    tables: list[str] = []
    summary = ""
    for model in models:
        for n, k in SETTINGS if model == MINILM else SETTINGS[:1]:
            found = {name: search(cases_of(name, model, n), k) for name in names}
            tables += [f"## {model}: {k} of {n}", shares(found)]
            summary += f"- {model}, {k} of {n}: {spread(found)}\n"
            if (n, k) == SETTINGS[0]:
                tables += [gaps(found), worths(found)]
            say(f"{model}, {k} of {n}: done")
    yield f"- {MINILM}, ", summary
    yield from tables


def main() -> None:
    options = parser(__doc__, "papers/vrsd_optimum.md").parse_args()
    names = [name for name in DATA_SETS if is_there(*REGIMES[name][1])]
    models = [model for model in (MINILM, MPNET) if is_installed(model)]
    if MPNET not in models:
        skip(f"{MPNET}: run make models")
    if names:
        publish("papers/vrsd_optimum.md", blocks(names, models), options.write)


if __name__ == "__main__":
    main()
