"""Candidates by words: what the default finds where the best texts by BM25 join the 50 nearest.

The tasks are those of benchmarks/regimes.py, with MiniLM and mpnet. How many texts join, and over which candidates the
relevance is standardised, was chosen on the development half with MiniLM; the other half checks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, MPNET, PACKAGES, is_installed
from benchmarks.regimes import Cell, by_regime, gain, interval, kinds_of, mean_gains, mean_of_kinds, per_question
from benchmarks.regimes_methods import (
    DEFAULT,
    FETCH_K,
    HYBRID,
    METHODS,
    SIMILARITY,
    Corpus,
    Search,
    objective,
    reciprocal_ranks,
)
from benchmarks.regimes_tasks import (
    COMPANIES,
    REGIMES,
    SEED,
    Picks,
    Regime,
    embed_regime,
    is_development,
    nearest,
    test_half,
    without_copies,
)
from shared_core.selection.sizes import DEFAULT_EXTRA_K
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

PAGE = "keyword_search.md"
MODELS = (MINILM, MPNET)
MOST_BY_WORDS = 50
CHOSEN = f"… and {DEFAULT_EXTRA_K} by words"
# How many of the nearest texts and how many of the best texts by words are the candidates.
POOLS = {
    DEFAULT: (FETCH_K, 0),
    "… and 10 by words": (FETCH_K, 10),
    CHOSEN: (FETCH_K, DEFAULT_EXTRA_K),
    "… and 50 by words": (FETCH_K, 50),
    "100 nearest": (2 * FETCH_K, 0),
    "100 nearest and 25 by words": (2 * FETCH_K, DEFAULT_EXTRA_K),
}
FUSED, NEAR_ALONE = "the 50 of hybrid search", "… 25, relevance over the nearest alone"
SHOWN = (HYBRID, DEFAULT, CHOSEN)


def select(corpus: Corpus, method: str, search: Search, k: int) -> Picks:
    """The picks of one method; ``search`` has the nearest texts and the best ones by words."""
    near, by_words = search.rows.tolist(), search.by_words.tolist()
    if method == SIMILARITY:
        return near[:k]
    fused = list(reciprocal_ranks([near[:FETCH_K], by_words]))
    if method == HYBRID:
        return fused[:k]
    if method == FUSED:
        return METHODS[DEFAULT](corpus.search(search, fused[:FETCH_K]), k)
    size, more = POOLS.get(method, POOLS[CHOSEN])
    rows = list(dict.fromkeys([*near[:size], *by_words[:more]]))
    if method == NEAR_ALONE:
        return objective()(corpus.search(search, rows, near=len(near[:size])), k)
    return METHODS[DEFAULT](corpus.search(search, rows), k)


def measure(name: str, corpus: Corpus, queries: np.ndarray, model: str, methods: Iterable[str]) -> Cell:
    regime, vectors = corpus.regime, corpus.vectors
    worth: dict[int, dict[str, list[float]]] = {k: {method: [] for method in methods} for k in regime.ks}
    for case, query in zip(regime.cases, queries, strict=True):
        near = nearest(case, query, vectors, 2 * FETCH_K)
        by_words = corpus.best_by_words(case, MOST_BY_WORDS)
        search = Search(case.question, query, near, vectors[near], [], by_words)
        for method in methods:
            # Each method is greedy: the first k of a larger set are the set of k.
            picks = select(corpus, method, search, max(regime.ks))
            for k in regime.ks:
                worth[k][method].append(case.worth(picks[:k]))
    arrays = {k: {method: np.array(values) for method, values in one.items()} for k, one in worth.items()}
    return Cell(name, model, [case.question for case in regime.cases], arrays, {}, {})


def cells_of(name: str, regime: Regime) -> Iterator[Cell]:
    """The development half with MiniLM and every method, and the other half with each kind of vectors."""
    index = WordIndex(regime.texts)
    split = list(map(Text, regime.texts))
    development = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    for half, model, methods in (
        (development, MINILM, (SIMILARITY, HYBRID, *POOLS, NEAR_ALONE, FUSED)),
        *((test_half(regime), model, (SIMILARITY, *SHOWN)) for model in MODELS),
    ):
        vectors, queries = embed_regime(half, model)
        yield measure(name, Corpus(half, vectors, split, index), queries, model, methods)


def means(gains: Mapping[str, float]) -> list[str]:
    """The mean and the lowest of the documents of companies, and of the other tasks."""
    kinds = [[v for name, v in gains.items() if (name in COMPANIES) == kind] for kind in (True, False)]
    return [f"{of(values):+.1f}" if values else "" for values in kinds for of in (np.mean, min)]


def choice_table(cells: Sequence[Cell]) -> str:
    """Points over similarity on the development half."""
    methods = [method for method in next(iter(cells[0].worth.values())) if method != SIMILARITY]
    head = ["candidates, development half", "documents of companies", "lowest", "the other tasks", "lowest"]
    return table(head, [[method, *means(mean_gains(cells, method))] for method in methods])


def group_table(cells: Sequence[Cell]) -> str:
    """Points over similarity by kind of corpus and question: docs/keyword-search.md shows this table."""
    kinds = kinds_of(cells)
    rows = [
        [name, str(sum(kind.sizes)), *(f"{kind.gain(method):+.1f}" for method in SHOWN)] for name, kind in kinds.items()
    ]
    means = [mean_of_kinds(list(kinds.values()), method).split()[0] for method in SHOWN]
    rows.append(["**mean of the kinds**", "", *(f"**{mean}**" for mean in means)])
    return table(["points more than similarity", "questions", *SHOWN], rows)


def difference_table(cells: Sequence[Cell]) -> str:
    """What the candidates by words add to the default, and to hybrid search, with intervals."""
    rows = [
        [name, str(sum(kind.sizes)), *(kind.interval(CHOSEN, method) for method in (DEFAULT, HYBRID))]
        for name, kind in kinds_of(cells).items()
    ]
    return table([f"{CHOSEN[2:]}, minus", "questions", DEFAULT, HYBRID], rows)


def task_table(cells: Sequence[Cell]) -> str:
    rows = []
    for name, some in by_regime(cells).items():
        base = per_question(some, lambda cell, k: cell.worth[k][SIMILARITY])[0].mean()
        gains = (f"{gain(some, method)[0].mean():+.1f}" for method in SHOWN)
        more = interval([gain(some, CHOSEN, DEFAULT)])
        rows.append([name, str(len(some[0].questions)), f"{base:.1f}", *gains, more])
    return table(["task", "questions", SIMILARITY, *SHOWN, "what they add"], rows)


def blocks(development: Sequence[Cell], others: Sequence[Cell]) -> Iterator[Block]:
    files = [file for name in by_regime(others) for file in REGIMES[name][1]]
    yield facts(files, ["numpy", "bm25s", *(PACKAGES[model][0] for model in MODELS)], SEED)
    yield choice_table(development)
    yield group_table(others)
    yield difference_table(others)
    for model in MODELS:
        some = [cell for cell in others if cell.vectors == model]
        yield from (f"## {model}", group_table(some), task_table(some))


def main() -> None:
    made = parser(__doc__, PAGE)
    made.add_argument("--tasks", nargs="*", choices=REGIMES, help="only these tasks; no page is written")
    options = made.parse_args()
    if options.tasks:
        skip("the other tasks")
    for model in MODELS:
        if not is_installed(model):
            sys.exit(f"{model} is not installed: run make models")
    development: list[Cell] = []
    others: list[Cell] = []
    for name, (make, needed) in REGIMES.items():
        if name in (options.tasks or REGIMES) and is_there(*needed):
            first, *more = cells_of(name, without_copies(make()))
            development.append(first)
            others += more
            say(name)
    if others:
        publish(PAGE, blocks(development, others), options.write)


if __name__ == "__main__":
    main()
