"""How often VRSD finds the best set: the set of k candidates whose sum has the highest cosine with the query.

Every set of k candidates is tried, so the pools are small. Embeddings are kept in .cache/.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.common import Block, best, facts, is_there, parser, publish, say, skip, table, with_interval
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
RANDOM, RANDOM_DIMENSIONS = "random vectors", 8
QUERIES = 200  # of each data set
# Candidates and picks.
SETTINGS = ((20, 5), (20, 3), (15, 5))
TOLERANCE = 1e-9


@dataclass
class Pool:
    """The candidates of one query, and how many sets' cosines have been computed."""

    relevance: Floats  # v·q
    dots: Floats  # v·w for each v and w
    computed: int = 0

    def cosine(self, picks: Picks) -> float:
        """cos(s, q) of the sum s of ``picks``."""
        return float(self.relevance[picks].sum() / np.sqrt(self.dots[np.ix_(picks, picks)].sum()))

    def cosine_with_each(self, picks: Picks) -> Floats:
        """cos(s + v, q) for each candidate v; -inf for a pick."""
        s_dot, squares = self.dots[picks].sum(axis=0), self.dots.diagonal()
        t_squared = s_dot[picks].sum() + 2 * s_dot + squares
        cosines = (self.relevance[picks].sum() + self.relevance) / np.sqrt(t_squared)
        cosines[picks] = -np.inf
        self.computed += len(cosines)
        return np.asarray(cosines)

    def cosine_without_each(self, picks: Picks, fixed: int) -> Floats:
        """(picks - fixed, n): cos(s - p + v, q) for each pick p but the first ``fixed``, and each candidate v."""
        cosines = np.array([self.cosine_with_each([*picks[:at], *picks[at + 1 :]]) for at in range(fixed, len(picks))])
        cosines[:, picks] = -np.inf
        return cosines

    def cosine_of(self, sets: NDArray[np.int64]) -> Floats:
        along = self.relevance[sets].sum(axis=1)
        squares = self.dots[sets[:, :, None], sets[:, None, :]].sum(axis=(1, 2))
        self.computed += len(sets)
        return np.asarray(along / np.sqrt(squares))


@cache
def all_sets(n: int, k: int) -> NDArray[np.int64]:
    """Every set of ``k`` of ``n`` candidates, one a row."""
    return np.array(list(itertools.combinations(range(n), k)))


def optimum(pool: Pool, k: int) -> tuple[Picks, Picks]:
    """The set with the highest cos(s, q) of all sets of ``k``, and of those that contain the nearest candidate."""
    sets = all_sets(len(pool.relevance), k)
    cosines = pool.cosine_of(sets)
    with_nearest = np.where((sets == pool.relevance.argmax()).any(axis=1), cosines, -np.inf)
    return sets[cosines.argmax()].tolist(), sets[with_nearest.argmax()].tolist()


def greedy(pool: Pool, k: int, start: Picks | None = None) -> Picks:
    """VRSD paper, Algorithm 1, from the picks of ``start``."""
    picks = list(start or [])
    while len(picks) < k:
        picks.append(int(pool.cosine_with_each(picks).argmax()))
    return picks


def exchange(pool: Pool, picks: Picks, fixed: int = 0) -> Picks:
    """Replace one pick by one candidate, the best exchange first, while the cosine rises; ``fixed`` picks stay."""
    picks = list(picks)
    while True:
        cosines = pool.cosine_without_each(picks, fixed)
        if cosines.max() <= pool.cosine(picks) + TOLERANCE:
            return picks
        at, newcomer = divmod(int(cosines.argmax()), cosines.shape[1])
        picks[fixed + at] = newcomer


def exchange_pairs(pool: Pool, picks: Picks) -> Picks:
    """Replace two picks by two candidates, the best exchange first, while the cosine rises."""
    picks = list(picks)
    while True:
        others = np.setdiff1d(np.arange(len(pool.relevance)), picks)
        pairs = others[all_sets(len(others), 2)]
        staying = np.array(list(itertools.combinations(picks, len(picks) - 2)))
        sets = np.hstack([np.repeat(staying, len(pairs), axis=0), np.tile(pairs, (len(staying), 1))])
        cosines = pool.cosine_of(sets)
        if cosines.max() <= pool.cosine(picks) + TOLERANCE:
            return picks
        picks = sets[cosines.argmax()].tolist()


def restarts(pool: Pool, k: int, count: int) -> list[Picks]:
    """The greedy sets that begin with each of the nearest ``count`` candidates."""
    return [greedy(pool, k, [int(first)]) for first in best(pool.relevance, count)]


def beam(pool: Pool, k: int, width: int) -> Picks:
    """Algorithm 1, but after each pick the best ``width`` sets are kept instead of one."""
    kept: list[Picks] = [[]]
    for _ in range(k):
        grown: dict[frozenset[int], tuple[float, Picks]] = {}
        for picks in kept:
            cosines = pool.cosine_with_each(picks)
            for v in best(cosines, min(width, len(cosines) - len(picks))):
                grown.setdefault(frozenset([*picks, int(v)]), (float(cosines[v]), [*picks, int(v)]))
        kept = [picks for _, picks in sorted(grown.values(), key=lambda found: -found[0])[:width]]
    return kept[0]


def best_of(pool: Pool, sets: Sequence[Picks]) -> Picks:
    """The set of the highest cosine, the first of equals."""
    return max(sets, key=pool.cosine)


GREEDY, REFINED, BEAM = "VRSD", "VRSD refined", "beam of 6"
# Their picks are the package's own. Only the cosines are counted here.
PACKAGE = {GREEDY: VRSD(), REFINED: VRSD(refine=True)}
METHODS: dict[str, Callable[[Pool, int], Picks]] = {
    GREEDY: greedy,
    REFINED: lambda pool, k: exchange(pool, greedy(pool, k), fixed=1),
    "refined, the first pick too": lambda pool, k: exchange(pool, greedy(pool, k)),
    "refined, then pairs": lambda pool, k: exchange_pairs(pool, exchange(pool, greedy(pool, k))),
    "5 restarts": lambda pool, k: best_of(pool, restarts(pool, k, 5)),
    "5 restarts, the best refined": lambda pool, k: exchange(pool, best_of(pool, restarts(pool, k, 5))),
    "5 restarts, each refined": lambda pool, k: best_of(pool, [exchange(pool, s) for s in restarts(pool, k, 5)]),
    "beam of 3": lambda pool, k: beam(pool, k, 3),
    BEAM: lambda pool, k: beam(pool, k, 6),
    "beam of 4, refined": lambda pool, k: exchange(pool, beam(pool, k, 4)),
}
OPTIMUM, WITH_NEAREST = "the best set", "the best set with the nearest candidate"


class Found(NamedTuple):
    """What one method found: one value a query."""

    cosine: Floats
    worth: Floats  # for the task of the data set
    computed: Floats


def search(cases: Iterable[tuple[Floats, Floats, Worth]], k: int) -> dict[str, Found]:
    """What every method, and each optimum, found for each query, its candidates and the worth of picks."""
    values: dict[str, list[tuple[float, float, int]]] = {name: [] for name in (*METHODS, OPTIMUM, WITH_NEAREST)}
    for query, vectors, worth in cases:
        relevance, dots = vectors @ query, vectors @ vectors.T
        for name, find in METHODS.items():
            pool = Pool(relevance, dots)
            picks = find(pool, k)
            if name in PACKAGE:
                picks = PACKAGE[name].select(Candidates(query, vectors), k).indices.tolist()
            values[name].append((pool.cosine(picks), worth(picks), pool.computed))
        for name, picks in zip((OPTIMUM, WITH_NEAREST), optimum(pool, k), strict=True):
            values[name].append((pool.cosine(picks), worth(picks), 0))
    return {name: Found(*np.array(rows, dtype=np.float64).T) for name, rows in values.items()}


def random_cases(n: int) -> Iterator[tuple[Floats, Floats, Worth]]:
    """Queries and candidates of independent normal components; their picks are worth nothing."""
    rng = np.random.default_rng(SEED)
    for _ in range(QUERIES):
        rows = unit(rng.normal(size=(n + 1, RANDOM_DIMENSIONS)))
        yield rows[0], rows[1:], lambda picks: 0.0


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
    """The share of queries for which each method finds the best set, and how many cosines it computes for that."""
    rows = []
    for method in METHODS:
        totals = [sum(of[name].computed.sum() for of in found.values()) for name in (method, GREEDY)]
        row = [method, *(f"{reached(of, method, OPTIMUM):.1%}" for of in found.values())]
        rows.append([*row, f"{totals[0] / totals[1]:.1f}"])
    for method in (GREEDY, REFINED):
        row = [f"{method}, of the sets with the nearest"]
        rows.append([*row, *(f"{reached(of, method, WITH_NEAREST):.1%}" for of in found.values()), ""])
    return table(["method", *found, "cosines, VRSD = 1"], rows)


def spread(found: dict[str, dict[str, Found]]) -> str:
    """The lowest and the highest share of a data set, for each of three methods."""
    texts = []
    for method in (GREEDY, REFINED, BEAM):
        of_sets = [reached(of, method, OPTIMUM) for name, of in found.items() if name != RANDOM]
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
        if name == RANDOM:
            continue
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
            if model == MINILM:
                found[RANDOM] = search(random_cases(n), k)
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
