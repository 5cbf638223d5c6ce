"""Every method in every regime of search, by two kinds of vectors.

A regime is a task with a corpus: documents of companies, questions of several steps, corpora that repeat themselves,
questions with one right document, ambiguous queries, examples for a prompt. Questions are split once, by a hash of
their text: one half is for development, where every constant was chosen, and the published figures come from the other
half. A text that a corpus has several times counts once for every method, as in the adapters.

The first run embeds 110,000 texts (about two hours on two cores) and keeps the vectors in .cache/. all-mpnet-base-v2 is
installed by `make models`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.common import Block, facts, holds, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, MPNET, PACKAGES, is_installed
from benchmarks.regimes_methods import (
    DEFAULT,
    METHODS,
    OURS,
    PARTS,
    SHOWN,
    SIMILARITY,
    VECTORS_ALONE,
    WORDS,
    Corpus,
    search_for,
)
from benchmarks.regimes_tasks import (
    KINDS,
    REGIMES,
    SEED,
    Picks,
    Regime,
    embed_regime,
    test_half,
    without_copies,
)
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

PAGE = "regimes.md"
# The tables are of MiniLM. mpnet, which embeds 15 texts a second, has tables of its own, of small corpora.
MODELS = (MINILM, MPNET)
MOST_CHARACTERS = 430_000  # of a corpus that mpnet embeds: those of its different texts, of each the first 560
SUMMARY = "points more than similarity"  # README.md and docs/choosing.md show this table
LEAST_MEAN, MOST_LOSS, MOST_LOSS_BY_REFERENCES = 4.0, 1.0, 0.5  # what is asked of the default, in points
RESAMPLES = 2000


# --- measuring ------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """The worth of every question's picks, 0 to 1, in one regime with one kind of vectors."""

    regime: str
    vectors: str
    questions: list[str]
    worth: dict[int, dict[str, np.ndarray]]  # by k and method


def cell_of(name: str, regime: Regime, picks: Sequence[Mapping[str, Picks]], vectors: str = MINILM) -> Cell:
    """What the picks of each method are worth. Every method is greedy: the first k of a larger set are the set of k."""
    worth = {
        k: {
            method: np.array([case.worth(some[method][:k]) for case, some in zip(regime.cases, picks, strict=True)])
            for method in picks[0]
        }
        for k in regime.ks
    }
    return Cell(name, vectors, [case.question for case in regime.cases], worth)


def measure(name: str, regime: Regime, split: list[Text], index: WordIndex, model: str) -> Cell | None:
    size = sum(min(len(text), 560) for text in set(regime.texts))
    if not is_installed(model) or (model == MPNET and size > MOST_CHARACTERS):
        return None
    vectors, queries = embed_regime(regime, model)
    corpus = Corpus(regime, vectors, split, index)
    picks = []
    for case, query in zip(regime.cases, queries, strict=True):
        search = corpus.with_words(search_for(regime, case, query, vectors), case)
        picks.append({method: select(search, max(regime.ks)) for method, select in METHODS.items()})
    return cell_of(name, regime, picks, model)


# --- figures --------------------------------------------------------------------------------------

Questions = list[str]
# Per question: a figure in points, and the questions it belongs to.
Figures = tuple[np.ndarray, Questions]


def per_question(cells: Sequence[Cell], of: Callable[[Cell, int], np.ndarray]) -> Figures:
    """The mean over the cells of one regime, and over k, of a figure of every question."""
    values = np.mean([np.mean([of(cell, k) for k in cell.worth], axis=0) for cell in cells], axis=0)
    return 100 * values, cells[0].questions


def gain(cells: Sequence[Cell], method: str, base: str = SIMILARITY) -> Figures:
    return per_question(cells, lambda cell, k: cell.worth[k][method] - cell.worth[k][base])


def by_regime(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.regime, []).append(cell)
    return found


def interval(figures: Sequence[Figures], weights: Sequence[float] | None = None) -> str:
    """The mean over regimes of the means over their questions, with its 95 % bootstrap interval.

    Regimes with the same questions are resampled together. ``weights``: of each regime; None: all are equal.
    """
    means = []
    for values, questions in figures:
        seed = int.from_bytes(hashlib.sha256("\0".join(questions).encode()).digest()[:8])
        rows = np.random.default_rng([SEED, seed]).integers(len(values), size=(RESAMPLES, len(values)))
        means.append(values[rows].mean(axis=1))
    low, high = np.quantile(np.average(means, axis=0, weights=weights), [0.025, 0.975])
    mean = np.average([values.mean() for values, _ in figures], weights=weights)
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"


def mean_gains(cells: Sequence[Cell], method: str) -> dict[str, float]:
    """The gain over similarity in each regime: the mean over the kinds of vectors, k and questions."""
    return {name: gain(some, method)[0].mean() for name, some in by_regime(cells).items()}


# --- tables ---------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """The tasks of one kind of corpus and question. Each question has the same weight."""

    regimes: list[list[Cell]]

    @property
    def sizes(self) -> list[int]:
        return [len(some[0].questions) for some in self.regimes]

    def mean(self, of: Callable[[Cell, int], np.ndarray]) -> float:
        return float(np.concatenate([per_question(some, of)[0] for some in self.regimes]).mean())

    def gain(self, method: str) -> float:
        return self.mean(lambda cell, k: cell.worth[k][method] - cell.worth[k][SIMILARITY])

    def interval(self, method: str, base: str = SIMILARITY) -> str:
        return interval([gain(some, method, base) for some in self.regimes], self.sizes)


def kinds_of(cells: Sequence[Cell]) -> dict[str, Kind]:
    regimes = by_regime(cells)
    kinds = {kind: Kind([regimes[name] for name in names if name in regimes]) for kind, names in KINDS.items()}
    return {name: kind for name, kind in kinds.items() if kind.regimes}


def mean_of_kinds(kinds: Sequence[Kind], method: str, base: str = SIMILARITY) -> str:
    """The mean over the kinds, with its interval."""
    figures = [gain(some, method, base) for kind in kinds for some in kind.regimes]
    return interval(figures, [size / sum(kind.sizes) for kind in kinds for size in kind.sizes])


def summary_table(cells: Sequence[Cell]) -> str:
    """Points over similarity by kind of corpus and question: the table that the README shows."""
    kinds = kinds_of(cells)
    rows = []
    for name, kind in kinds.items():
        ks = ", ".join(map(str, kind.regimes[0][0].worth))
        found = f"{kind.mean(lambda cell, k: cell.worth[k][SIMILARITY]):.1f}"
        gains = [kind.interval(method) if method == DEFAULT else f"{kind.gain(method):+.1f}" for method in SHOWN]
        rows.append([name, str(sum(kind.sizes)), ks, found, *gains])
    means = [mean_of_kinds(list(kinds.values()), method) for method in SHOWN]
    means = [mean if method in OURS else mean.split(" (")[0] for method, mean in zip(SHOWN, means, strict=True)]
    rows.append(["**mean of the kinds**", "", "", "", *means])
    worst = [f"{min(mean_gains(cells, method).values()):+.1f}" for method in SHOWN]
    rows.append(["worst task", "", "", "", *worst])
    return table([SUMMARY, "questions", "k", SIMILARITY, *SHOWN], rows)


def verdict(cells: Sequence[Cell]) -> str:
    """Whether the default keeps what is asked of it, on the questions that chose nothing."""
    kinds = list(kinds_of(cells).values())
    means = {method: float(mean_of_kinds(kinds, method).split()[0]) for method in SHOWN}
    gains = mean_gains(cells, DEFAULT)
    worst = min(gains, key=gains.__getitem__)
    of_references = {name: gain(some, DEFAULT, WORDS)[0].mean() for name, some in by_regime(cells).items()}
    most_harmed = min(of_references, key=of_references.__getitem__)
    cell = min(cells, key=lambda cell: gain([cell], DEFAULT)[0].mean())
    lowest = gain([cell], DEFAULT)[0].mean()
    others = [method for method in SHOWN if method not in OURS]
    lines = [
        f"- {holds(means[DEFAULT] >= LEAST_MEAN)}: the mean gain of {DEFAULT} over similarity is at least "
        f"{LEAST_MEAN:.0f} points. It is {mean_of_kinds(kinds, DEFAULT)}.",
        f"- {holds(gains[worst] >= -MOST_LOSS)}: {DEFAULT} loses at most {MOST_LOSS:.1f} points to similarity in any "
        f"task, as the mean over the kinds of vectors. Its lowest figure: {gains[worst]:+.1f}, {worst}.",
        f"- {holds(lowest >= -MOST_LOSS)}: the same with each kind of vectors alone. Its lowest figure: "
        f"{interval([gain([cell], DEFAULT)])}, {cell.regime} with {cell.vectors}.",
        f"- {holds(of_references[most_harmed] >= -MOST_LOSS_BY_REFERENCES)}: the references lose at most "
        f"{MOST_LOSS_BY_REFERENCES:.1f} points to the words alone in any task. They add "
        f"{mean_of_kinds(kinds, DEFAULT, WORDS)}. The lowest figure: "
        f"{of_references[most_harmed]:+.1f}, {most_harmed}.",
        *(
            f"- {holds(all(means[ours] > means[method] for method in others))}: the mean of {ours} is above each "
            "of the others. The differences: "
            + "; ".join(f"{method} {mean_of_kinds(kinds, ours, method)}" for method in others)
            + "."
            for ours in OURS
        ),
    ]
    return "\n".join(lines) + "\n"


def kind_interval_table(cells: Sequence[Cell]) -> str:
    others = [SIMILARITY, *(method for method in SHOWN if method not in OURS), "MMR λ 0.8", VECTORS_ALONE]
    kinds = kinds_of(cells)
    rows = [[name, *(kind.interval(DEFAULT, method) for method in others)] for name, kind in kinds.items()]
    rows.append(["**mean of the kinds**", *(mean_of_kinds(list(kinds.values()), DEFAULT, method) for method in others)])
    return table([f"{DEFAULT} minus", *others], rows)


def gain_table(cells: Sequence[Cell]) -> str:
    """Each method's difference to similarity in each regime: the mean over the kinds of vectors."""
    gains = {method: mean_gains(cells, method) for method in METHODS if method != SIMILARITY}
    rows = []
    for name, some in by_regime(cells).items():
        base = per_question(some, lambda cell, k: cell.worth[k][SIMILARITY])[0].mean()
        rows.append([name, f"{base:.1f}", *(f"{gains[method][name]:+.1f}" for method in gains)])
    values = [list(gains[method].values()) for method in gains]
    rows.append(["**worst**", "", *(f"**{min(one):+.1f}**" for one in values)])
    return table(["regime", SIMILARITY, *gains], rows)


def part_table(cells: Sequence[Cell]) -> str:
    """What each part of the default adds to those above it, by kind of corpus and question."""
    kinds = kinds_of(cells)
    rows = []
    for before, (part, method) in zip([SIMILARITY, *PARTS.values()], PARTS.items(), strict=False):
        added = [
            kind.mean(lambda cell, k, a=method, b=before: cell.worth[k][a] - cell.worth[k][b])
            for kind in kinds.values()
        ]
        mean = mean_of_kinds(list(kinds.values()), method, before)
        rows.append([part, mean, *(f"{value:+.1f}" for value in added)])
    return table(["part of the default", "mean of the kinds", *kinds], rows)


def harm_table(cells: Sequence[Cell]) -> str:
    """The regimes with one kind of vectors where words or references harm, or the default loses to similarity."""
    rows = []
    for cell in sorted(cells, key=lambda cell: gain([cell], DEFAULT, VECTORS_ALONE)[0].mean()):
        words, references, total = (
            gain([cell], WORDS, VECTORS_ALONE),
            gain([cell], DEFAULT, WORDS),
            gain([cell], DEFAULT),
        )
        if min(words[0].mean(), references[0].mean(), total[0].mean()) < 0:
            without = f"{gain([cell], VECTORS_ALONE)[0].mean():+.1f}"
            rows.append(
                [f"{cell.regime}, {cell.vectors}", without, *(interval([one]) for one in (words, references, total))]
            )
    minus = ["NDPP() minus similarity", "what the words add", "what the references add", f"{DEFAULT} minus similarity"]
    return table(["regime and vectors", *minus], rows)


def value_table(cells: Sequence[Cell], measures: dict[str, str]) -> str:
    rows = []
    for cell in cells:
        for k, worth in cell.worth.items():
            values = [100 * worth[method].mean() for method in METHODS]
            best = max(round(value, 1) for value in values)
            shown = [f"**{value:.1f}**" if round(value, 1) == best else f"{value:.1f}" for value in values]
            rows.append([f"{cell.regime}: {measures[cell.regime]}", str(k), str(len(cell.questions)), *shown])
    return table(["regime", "k", "questions", *METHODS], rows)


# --- the page -------------------------------------------------------------------------------------


def blocks(cells: Sequence[Cell], measures: dict[str, str], files: Sequence[str]) -> Iterator[Block]:
    models = list(dict.fromkeys(cell.vectors for cell in cells))
    packages = ["numpy", "bm25s", "sentence-transformers", "torch", *(PACKAGES[model][0] for model in models)]
    yield facts(files, packages, SEED)
    main = [cell for cell in cells if cell.vectors == MINILM]
    yield summary_table(main)
    yield ": the mean gain of ", verdict(main)
    yield kind_interval_table(main)
    yield part_table(main)
    yield harm_table(cells)
    yield gain_table(main)
    for model in models:
        some = [cell for cell in cells if cell.vectors == model]
        yield from (f"## {model}", value_table(some, measures))


def main() -> None:
    options = parser(__doc__, PAGE).parse_args()
    for model in MODELS:
        if not is_installed(model):
            skip(f"{model}: run make models")
    cells: list[Cell] = []
    measures: dict[str, str] = {}
    files: list[str] = []
    for name, (make, needed) in REGIMES.items():
        if is_there(*needed):
            regime = without_copies(test_half(make()))
            measures[name] = regime.measure
            files += needed
            split, index = list(map(Text, regime.texts)), WordIndex(regime.texts)
            cells += [cell for model in MODELS if (cell := measure(name, regime, split, index, model))]
            say(name)
    if cells:
        publish(PAGE, blocks(cells, measures, files), options.write)


if __name__ == "__main__":
    main()
