"""Candidates by words: what the default finds where the best texts by BM25 join the 50 nearest.

The tasks are those of benchmarks/regimes.py, with MiniLM and mpnet. How many texts join, and over which candidates the
relevance is standardised, was chosen on the development half with MiniLM; the other half checks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, best, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, MPNET, PACKAGES, is_installed
from benchmarks.regimes import Cell, by_regime, gain, interval, mean_gains, per_question
from benchmarks.regimes_methods import (
    DEFAULT,
    FETCH_K,
    HYBRID,
    METHODS,
    SIMILARITY,
    Search,
    hybrid,
    objective,
    reciprocal_ranks,
)
from benchmarks.regimes_tasks import COMPANIES, GROUPS, REGIMES, SEED, Picks, Regime, embed_regime, is_development
from shared_core.selection.sizes import DEFAULT_EXTRA_K
from shared_core.texts.word_index import WordIndex

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


def candidates_of(search: Search, rows: Sequence[int], regime: Regime, vectors: np.ndarray) -> Search:
    """``search`` with these rows of the corpus as its candidates."""
    names = [regime.names[row] for row in rows] if regime.names else None
    texts = [regime.texts[row] for row in rows]
    return replace(search, rows=np.asarray(rows), vectors=vectors[rows], texts=texts, names=names)


def select_all(search: Search, regime: Regime, vectors: np.ndarray) -> dict[str, Picks]:
    """The most texts that a k asks for, by each method. Each is greedy: the first k are the set of k."""
    k, select = max(regime.ks), METHODS[DEFAULT]
    near, by_words = search.rows, search.by_words
    nearest = replace(search, rows=near[:FETCH_K], vectors=vectors[near[:FETCH_K]])
    found = {SIMILARITY: near[:k].tolist(), HYBRID: hybrid(nearest, k)}
    for name, (size, more) in POOLS.items():
        rows = list(dict.fromkeys([*near[:size].tolist(), *by_words[:more].tolist()]))
        found[name] = select(candidates_of(search, rows, regime, vectors), k)
    rows = list(dict.fromkeys([*near[:FETCH_K].tolist(), *by_words[:DEFAULT_EXTRA_K].tolist()]))
    among = replace(candidates_of(search, rows, regime, vectors), near=min(FETCH_K, len(near)))
    found[NEAR_ALONE] = objective()(among, k)
    fused = list(reciprocal_ranks([nearest.rows.tolist(), by_words.tolist()]))[:FETCH_K]
    found[FUSED] = select(candidates_of(search, fused, regime, vectors), k)
    return found


def measure(name: str, regime: Regime, index: WordIndex, model: str) -> Cell:
    vectors, queries = embed_regime(regime, model)
    worth: dict[int, dict[str, list[float]]] = {k: {} for k in regime.ks}
    for case, query in zip(regime.cases, queries, strict=True):
        rows = case.rows(len(regime.texts))
        allowed = None if case.pool is None else set(rows.tolist()).__contains__
        by_words, _ = index.best_rows(case.question, MOST_BY_WORDS, allowed)
        near = rows[best(vectors[rows] @ query, 2 * FETCH_K)]
        search = Search(case.question, query, near, vectors[near], [], by_words)
        for method, picks in select_all(search, regime, vectors).items():
            for k in regime.ks:
                worth[k].setdefault(method, []).append(case.worth(picks[:k]))
    arrays = {k: {method: np.array(values) for method, values in one.items()} for k, one in worth.items()}
    return Cell(name, model, [case.question for case in regime.cases], arrays, {}, {})


def half(cell: Cell, development: bool) -> Cell:
    """The questions of one half."""
    some = [is_development(question) == development for question in cell.questions]
    worth = {k: {method: values[some] for method, values in one.items()} for k, one in cell.worth.items()}
    return cell._replace(questions=[q for q, kept in zip(cell.questions, some, strict=True) if kept], worth=worth)


def means(gains: Mapping[str, float]) -> list[str]:
    """The mean and the lowest of the documents of companies, and of the other tasks."""
    kinds = [[v for name, v in gains.items() if (name in COMPANIES) == kind] for kind in (True, False)]
    return [f"{of(values):+.1f}" if values else "" for values in kinds for of in (np.mean, min)]


def choice_table(cells: Sequence[Cell]) -> str:
    """Points over similarity on the development half, with MiniLM."""
    rows = [[name, *means(mean_gains(cells, name))] for name in next(iter(cells[0].worth.values()))]
    head = ["candidates, development half", "documents of companies", "lowest", "the other tasks", "lowest"]
    return table(head, [row for row in rows if row[0] != SIMILARITY])


def group_table(cells: Sequence[Cell]) -> str:
    """Points over similarity by kind of corpus and question: docs/keyword-search.md shows this table."""
    gains = {method: mean_gains(cells, method) for method in SHOWN}
    rows = []
    for group, names in GROUPS.items():
        there = [name for name in names if name in gains[DEFAULT]]
        if there:
            rows.append([group, *(f"{np.mean([gains[method][name] for name in there]):+.1f}" for method in SHOWN)])
    return table(["points more than similarity", *SHOWN], rows)


def difference_table(cells: Sequence[Cell]) -> str:
    """What the candidates by words add to the default, and to hybrid search, with intervals."""
    rows = []
    regimes = by_regime(cells)
    for group, names in GROUPS.items():
        there = [regimes[name] for name in names if name in regimes]
        if there:
            cell = [interval([gain(some, CHOSEN, method) for some in there]) for method in (DEFAULT, HYBRID)]
            rows.append([group, str(sum(len(some[0].questions) for some in there)), *cell])
    return table([f"{CHOSEN[2:]}, minus", "questions", DEFAULT, HYBRID], rows)


def task_table(cells: Sequence[Cell]) -> str:
    rows = []
    for name, some in by_regime(cells).items():
        base = per_question(some, lambda cell, k: cell.worth[k][SIMILARITY])[0].mean()
        gains = (f"{gain(some, method)[0].mean():+.1f}" for method in SHOWN)
        more = interval([gain(some, CHOSEN, DEFAULT)])
        rows.append([name, str(len(some[0].questions)), f"{base:.1f}", *gains, more])
    return table(["task", "questions", SIMILARITY, *SHOWN, "what they add"], rows)


def blocks(cells: Sequence[Cell]) -> Iterator[Block]:
    files = [file for name in by_regime(cells) for file in REGIMES[name][1]]
    yield facts(files, ["numpy", "bm25s", *(PACKAGES[model][0] for model in MODELS)], SEED)
    yield choice_table([half(cell, development=True) for cell in cells if cell.vectors == MINILM])
    others = [half(cell, development=False) for cell in cells]
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
    cells: list[Cell] = []
    for name, (make, needed) in REGIMES.items():
        if name in (options.tasks or REGIMES) and is_there(*needed):
            regime = make()
            index = WordIndex(regime.texts)
            cells += [measure(name, regime, index, model) for model in MODELS]
            say(name)
    if cells:
        publish(PAGE, blocks(cells), options.write)


if __name__ == "__main__":
    main()
