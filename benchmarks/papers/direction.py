"""Can a rule select PAP's direction (remove, emphasize or leave alone) from what is known before the search?

Every rule is fitted on one part of PIR's queries and judged on another part: on halves of the root queries of each
subset, and on one subset that was left out.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.common import Block, facts, parser, publish, require, table
from benchmarks.papers._direction import (
    EMPHASIZE,
    LEAVE,
    MOST_LOST,
    REMOVE,
    REMOVE_ONLY,
    Cases,
    Logistic,
    Threshold,
    cases,
    fit_logistic,
    fit_threshold,
)
from benchmarks.papers._pir import FILES, PERSPECTIVES, SUBSETS, embed, load
from shared_core.evaluation.measures.statistics import bootstrap_interval

SEED = 0
SPLITS = 10
NEVER = "never (leave alone)"
CONSTANT = {NEVER: LEAVE, "always remove": REMOVE, "always emphasize": EMPHASIZE}
RULES: dict[str, Callable[[Cases], Threshold | Logistic]] = {
    "thresholds on cos(q, root)": partial(fit_threshold, allowed=[0]),
    "the same, never emphasizing": partial(fit_threshold, allowed=[0], sides=REMOVE_ONLY),
    "thresholds on one of nine features": fit_threshold,
    "logistic over nine features": fit_logistic,
}
VALIDATIONS = {"halves": "halves of the root queries", "left out": "one subset left out"}
# A row of a table: p-Recall@5 per subset.
Recall = dict[int, float]


def halves(data: Cases) -> Iterator[tuple[Cases, Cases]]:
    """Parts to fit on and to judge: random halves of each subset's root queries, each half once in each role."""
    for split in range(SPLITS):
        rng = np.random.default_rng([SEED, split])
        first = np.zeros(len(data.root), dtype=bool)
        for subset in np.unique(data.subset):
            roots = rng.permutation(np.unique(data.root[data.subset == subset]))
            first |= np.isin(data.root, roots[: len(roots) // 2])
        yield data.take(first), data.take(~first)
        yield data.take(~first), data.take(first)


def left_out(data: Cases) -> Iterator[tuple[Cases, Cases]]:
    """Parts to fit on and to judge: five subsets and the sixth."""
    for subset in np.unique(data.subset):
        yield data.take(data.subset != subset), data.take(data.subset == subset)


def mean_recall(rows: list[Recall]) -> Recall:
    """Per subset the mean over the rows that have it."""
    return {s: float(np.mean([row[s] for row in rows if s in row])) for s in range(len(SUBSETS))}


def judged(parts: list[tuple[Cases, Cases]]) -> dict[str, list[Recall]]:
    """p-Recall@5 of each constant action and of each rule on the parts that are judged."""
    rows = {
        name: [test.recall(np.full(len(test.root), action)) for _, test in parts] for name, action in CONSTANT.items()
    }
    for name, fit in RULES.items():
        rows[name] = [test.recall(fit(train).actions(test.features)) for train, test in parts]
    return rows


def overall(recall: Recall) -> float:
    return float(np.mean(list(recall.values())))


def worst_change(recall: Recall, base: Recall) -> float:
    """The smallest gain over the plain search on any subset; negative where a subset loses."""
    return min(recall[s] - base[s] for s in base)


def passes(name: str, rows: dict[str, Recall]) -> bool:
    """Whether a rule beats the three constants on average, and loses at most one point on any subset."""
    beaten = all(overall(rows[name]) > overall(rows[constant]) + 1e-9 for constant in CONSTANT)
    return beaten and worst_change(rows[name], rows[NEVER]) >= -MOST_LOST - 1e-9


def recall_table(rows: dict[str, list[Recall]], data: Cases) -> str:
    """p-Recall@5 per subset; where each part holds all subsets, also the range over the parts."""
    base = mean_recall(rows[NEVER])
    whole = all(len(part) == len(SUBSETS) for part in rows[NEVER])
    rows = rows | {"in hindsight": [data.recall(data.success.argmax(axis=1))]}
    lines = []
    for name, parts in rows.items():
        recall = mean_recall(parts)
        cells = [*(f"{100 * value:.1f}" for value in recall.values()), f"{100 * overall(recall):.1f}"]
        cells += [f"{100 * change:+.1f}" for change in (overall(recall) - overall(base), worst_change(recall, base))]
        if whole and name in RULES:
            changes = [overall(one) - overall(plain) for one, plain in zip(parts, rows[NEVER], strict=True)]
            cells += [f"{100 * min(changes):+.1f} to {100 * max(changes):+.1f}"]
        lines.append([name, *cells, *([""] if whole and name not in RULES else [])])
    head = ["on the part not fitted on", *SUBSETS.values(), "mean", "against never", "worst subset"]
    return table([*head, *(["against never, over the splits"] if whole else [])], lines)


def verdict_table(results: dict[tuple[str, str], dict[str, Recall]]) -> str:
    lines = []
    for source, meaning in PERSPECTIVES.items():
        for name in RULES:
            both = [passes(name, results[source, how]) for how in VALIDATIONS]
            lines.append([name, meaning, *("yes" if one else "no" for one in [*both, all(both)])])
    return table(["rule", "perspective", *VALIDATIONS.values(), "both"], lines)


def verdict(results: dict[tuple[str, str], dict[str, Recall]]) -> str:
    """How many rules pass, and which rule is nearest: the one whose worst subset loses least."""
    rules = [(source, name) for source in PERSPECTIVES for name in RULES]
    passed = [rule for rule in rules if all(passes(rule[1], results[rule[0], how]) for how in VALIDATIONS)]
    worst = {
        (source, name): min(
            worst_change(results[source, how][name], results[source, how][NEVER]) for how in VALIDATIONS
        )
        for source, name in rules
    }
    source, name = max(rules, key=worst.__getitem__)
    changes = []
    for how, title in VALIDATIONS.items():
        recall, base = results[source, how][name], results[source, how][NEVER]
        lowest = min(base, key=lambda s: recall[s] - base[s])
        changes.append(
            f"{title}: {100 * (overall(recall) - overall(base)):+.2f} on average, "
            f"{100 * (recall[lowest] - base[lowest]):+.2f} on {list(SUBSETS.values())[lowest]}, its worst subset"
        )
    return (
        f"**{len(passed)} of the {len(rules)} rules below meet this in both validations.** The rule whose worst subset "
        f"loses least is *{name}*, {PERSPECTIVES[source]} ({'; '.join(changes)}).\n"
    )


def interval_table(data: dict[str, Cases]) -> str:
    """The gain of each rule per root query of the left-out subsets, with an interval over root queries."""
    lines = []
    for source, meaning in PERSPECTIVES.items():
        for name, fit in RULES.items():
            gains: list[float] = []
            for train, test in left_out(data[source]):
                actions = fit(train).actions(test.features)
                gain = test.success[np.arange(len(actions)), actions] - test.success[:, LEAVE]
                gains += [float(gain[test.root == root].mean()) for root in np.unique(test.root)]
            low, high = bootstrap_interval(gains, seed=SEED)
            cells = (f"{100 * value:+.1f}" for value in (float(np.mean(gains)), low, high))
            lines.append([name, meaning, *cells])
    return table(["rule", "perspective", "gain per root query", "95 % from", "to"], lines)


def fitted_table(data: dict[str, Cases]) -> str:
    """The threshold rules in words, fitted on all data; the first of them also with each subset left out."""
    lines = []
    for (source, meaning), name in product(PERSPECTIVES.items(), RULES):
        fits = {"nothing": data[source]}
        if name == next(iter(RULES)):
            fits |= {title: train for title, (train, _) in zip(SUBSETS.values(), left_out(data[source]), strict=True)}
        for title, train in fits.items():
            if isinstance(rule := RULES[name](train), Threshold):
                lines.append([name, meaning, title, str(rule)])
    return table(["rule", "perspective", "left out", "fitted"], lines)


def blocks(data: dict[str, Cases]) -> Iterator[Block]:
    ways = {"halves": halves, "left out": left_out}
    parts = {(source, how): judged(list(ways[how](data[source]))) for source in data for how in VALIDATIONS}
    means = {key: {name: mean_recall(recalls) for name, recalls in rows.items()} for key, rows in parts.items()}
    yield facts(FILES, ("numpy", "scipy", "sentence-transformers", "torch"), SEED)
    yield " rules below meet this in both validations", verdict(means)
    yield verdict_table(means)
    for source, how in product(PERSPECTIVES, VALIDATIONS):
        yield recall_table(parts[source, how], data[source])
    yield interval_table(data)
    yield fitted_table(data)


def main() -> None:
    options = parser(__doc__, "papers/direction.md").parse_args()
    require(*FILES)
    subsets = load()
    vectors = [embed(subset) for subset in subsets]
    data = {source: cases(subsets, vectors, source) for source in PERSPECTIVES}
    publish("papers/direction.md", blocks(data), options.write)


if __name__ == "__main__":
    main()
