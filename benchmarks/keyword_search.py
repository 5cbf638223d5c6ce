"""How many candidates: what the default finds among the nearest texts, and where the best texts by BM25 join them.

The tasks are those of benchmarks/regimes.py, with all-MiniLM-L6-v2. The numbers were chosen on the development half,
and the other half checks, with the first 100 questions of each. A run takes ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, PACKAGES
from benchmarks.regimes import Cell, by_regime, cell_of, gain, kinds_of, mean_gains, mean_of_kinds, per_question
from benchmarks.regimes_methods import DEFAULT, FETCH_K, HYBRID, METHODS, SIMILARITY, SUM, Corpus, Search
from benchmarks.regimes_tasks import REGIMES, SEED, Picks, Regime, embed_regime, is_development, nearest, without_copies
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

PAGE = "keyword_search.md"
SUMMARY = "points more than similarity, other half"  # docs/choosing.md shows this table
QUESTIONS = 100  # of either half of a task
# How many of the nearest texts and how many of the best texts by words are the candidates.
POOLS = {
    f"{size} nearest" + (f" and {more} by words" if more else ""): (size, more)
    for size, more in (
        *((20, 0), (50, 0), (100, 0), (200, 0)),
        *((20, 25), (50, 10), (50, 25), (50, 50), (100, 25), (100, 50)),
    )
}
CHOSEN = f"{FETCH_K} nearest and {DEFAULT_EXTRA_K} by words"
SHOWN = (HYBRID, SUM, "50 nearest", CHOSEN, "100 nearest", "100 nearest and 50 by words")


def select(corpus: Corpus, method: str, search: Search, k: int) -> Picks:
    """The picks of one method; ``search`` has the nearest texts and the best ones by words."""
    if method in POOLS:
        size, more = POOLS[method]
        rows = list(dict.fromkeys([*search.rows[:size].tolist(), *search.by_words[:more].tolist()]))
        pool = replace(corpus.search(search, rows), weigh=corpus.index.weigh if more else None)
        return METHODS[DEFAULT](pool, k)
    near = search.rows[:FETCH_K]
    return METHODS[method](replace(search, rows=near, vectors=search.vectors[:FETCH_K]), k)


def measure(name: str, corpus: Corpus, queries: np.ndarray) -> Cell:
    picks, vectors = [], corpus.vectors
    for case, query in zip(corpus.regime.cases, queries, strict=True):
        near = nearest(case, query, vectors, max(size for size, _ in POOLS.values()))
        found = Search(case.question, query, near[:FETCH_K], vectors[near[:FETCH_K]], [], near[:0])
        search = replace(corpus.with_words(found, case), rows=near, vectors=vectors[near])
        methods = (SIMILARITY, HYBRID, SUM, *POOLS)
        picks.append({method: select(corpus, method, search, max(corpus.regime.ks)) for method in methods})
    return cell_of(name, corpus.regime, picks)


def cells_of(name: str, regime: Regime) -> tuple[Cell, Cell]:
    """The development half, and the other half."""
    index, split, cells = WordIndex(regime.texts), list(map(Text, regime.texts)), []
    for development in (True, False):
        cases = [one for one in regime.cases if is_development(one.question) == development]
        half = regime._replace(cases=cases[:QUESTIONS])
        vectors, queries = embed_regime(half, MINILM)
        cells.append(measure(name, Corpus(half, vectors, split, index), queries))
    return cells[0], cells[1]


def pool_table(cells: Sequence[Cell], heading: str) -> str:
    """Points over similarity by number of candidates: the mean of the kinds, its interval, and the lowest task."""
    kinds, rows = list(kinds_of(cells).values()), []
    for method in (HYBRID, SUM, *POOLS):
        gains = mean_gains(cells, method)
        worst = min(gains, key=gains.__getitem__)
        rows.append([method, mean_of_kinds(kinds, method), f"{gains[worst]:+.1f}: {worst}"])
    return table([heading, "mean of the kinds", "lowest task"], rows)


def task_table(cells: Sequence[Cell]) -> str:
    rows = []
    for name, some in by_regime(cells).items():
        base = per_question(some, lambda cell, k: cell.worth[k][SIMILARITY])[0].mean()
        gains = (f"{gain(some, method)[0].mean():+.1f}" for method in SHOWN)
        rows.append([name, str(len(some[0].questions)), f"{base:.1f}", *gains])
    return table(["task", "questions", SIMILARITY, *SHOWN], rows)


def blocks(development: Sequence[Cell], others: Sequence[Cell]) -> Iterator[Block]:
    files = [file for name in by_regime(others) for file in REGIMES[name][1]]
    yield facts(files, ["numpy", "bm25s", PACKAGES[MINILM][0]], SEED)
    yield pool_table(development, "points more than similarity, development half")
    yield pool_table(others, SUMMARY)
    yield task_table(others)


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--tasks", nargs="*", choices=REGIMES, help="only these tasks; no page is written")
    options = made.parse_args()
    if options.tasks:
        skip("the other tasks")
    cells: list[tuple[Cell, Cell]] = []
    for name, (make, needed) in REGIMES.items():
        if name in (options.tasks or REGIMES) and is_there(*needed):
            cells.append(cells_of(name, without_copies(make())))
            say(name)
    if cells:
        publish(PAGE, blocks([one for one, _ in cells], [other for _, other in cells]), options.write)


if __name__ == "__main__":
    main()
