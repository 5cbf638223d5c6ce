"""Can a rule select PAP's direction (remove, emphasize or leave alone) from what is known before the search?

Every rule is fitted on one part of PIR's queries and judged on another part: on halves of the root queries of each
subset, and on one subset that was left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.common import Block, best, facts, parser, publish, require, table
from benchmarks.papers._pir import FILES, PERSPECTIVES, SUBSETS, Subset, Vectors, embed, load, rankings, successes
from shared_core.evaluation.measures import bootstrap_interval

ACTIONS = ("leave", "remove", "emphasize")
LEAVE, REMOVE, EMPHASIZE = range(3)
CANDIDATES = 20
# The cost of changing a query: a rule changes queries only where it gains more than this on average.
COST = 0.01
# A rule may lose at most this on a subset on which it is fitted.
MOST_LOST = 0.01
RIDGE = 1e-3
QUANTILES = np.linspace(0.1, 0.9, 9)
FEATURES = (
    "cos(q, root)",
    "cos(q, p)",
    "cos(root, p)",
    "cos(q − root, p)",
    "candidates' mean cos(c, p)",
    "their spread of cos(c, p)",
    "their mean cos(c, p) − cos(root, p)",
    "their mean cos(c, root)",
    "their correlation of cos(c, p) with cos(c, root)",
)


@dataclass(frozen=True)
class Cases:
    """One row a query: features (n, 9), success under each action (n, 3), subset (n,) and root query (n,)."""

    features: np.ndarray
    success: np.ndarray
    subset: np.ndarray
    root: np.ndarray

    def take(self, rows: np.ndarray) -> Cases:
        return Cases(self.features[rows], self.success[rows], self.subset[rows], self.root[rows])

    @property
    def weights(self) -> np.ndarray:
        """The weight of each query in the mean of the subsets' p-Recall; the weights sum to 1."""
        subsets = len(np.unique(self.subset))
        roots = np.array([len(np.unique(self.root[self.subset == s])) for s in self.subset])
        queries = np.array([(self.root == r).sum() for r in self.root])
        return 1 / (subsets * roots * queries)

    def recall(self, actions: np.ndarray) -> dict[int, float]:
        """p-Recall of each subset when query i is searched with ``actions[i]``."""
        value = self.success[np.arange(len(actions)), actions] * self.weights
        scale = len(np.unique(self.subset))
        return {int(s): float(value[self.subset == s].sum() * scale) for s in np.unique(self.subset)}


def features(q: np.ndarray, r: np.ndarray, p: np.ndarray, items: np.ndarray) -> list[float]:
    """The nine features of a query; ``items`` are the candidates of the plain search. Only p may have any length."""
    p = p / np.linalg.norm(p)
    difference = q - r
    length = np.linalg.norm(difference)
    with_p, with_root = items @ p, items @ r
    spread = with_p.std() * with_root.std()
    together = np.mean((with_p - with_p.mean()) * (with_root - with_root.mean())) / spread if spread > 1e-12 else 0.0
    return [
        float(q @ r),
        float(q @ p),
        float(r @ p),
        float(difference @ p / length) if length > 1e-6 else 0.0,
        float(with_p.mean()),
        float(with_p.std()),
        float(with_p.mean() - r @ p),
        float(with_root.mean()),
        float(together),
    ]


def cases(subsets: Sequence[Subset], vectors: Sequence[Vectors], source: str, k: int = 5) -> Cases:
    """All queries; p is the embedding of the perspective (``"text"``) or q − root (``"difference"``)."""
    rows, success, subset_of, root_of = [], [], [], []
    modes = (("base", None), ("pap", "remove"), ("pap", "emphasize"))
    for index, (subset, v) in enumerate(zip(subsets, vectors, strict=True)):
        found = [successes(subset, rankings(v, mode, direction, source), k) for mode, direction in modes]
        success += np.transpose(found).tolist()
        perspectives = v.perspective(source)
        for q, r, p, root in zip(v.query, v.root, perspectives, subset.roots, strict=True):
            first = best(v.items @ q, CANDIDATES)
            rows.append(features(q, r, p, v.items[first]))
            subset_of.append(index)
            root_of.append(f"{index} {root}")
    # Rounded, so that no threshold and no fit depends on the last bits of a dot product.
    return Cases(np.round(rows, 6), np.array(success), np.array(subset_of), np.unique(root_of, return_inverse=True)[1])


@dataclass(frozen=True)
class Threshold:
    """One feature, two thresholds: the action ``below`` the lower one and ``above`` the upper one; otherwise none."""

    feature: int
    low: float
    high: float
    below: int
    above: int

    def actions(self, x: np.ndarray) -> np.ndarray:
        values = x[:, self.feature]
        return np.where(values < self.low, self.below, np.where(values > self.high, self.above, LEAVE))

    def __str__(self) -> str:
        name = FEATURES[self.feature]
        if np.inf in (self.low, -self.high):
            return f"{ACTIONS[self.below if self.low == np.inf else self.above]} everywhere"
        parts = [(self.below, "<", self.low), (self.above, ">", self.high)]
        said = [f"{ACTIONS[act]} where {name} {sign} {at:.2f}" for act, sign, at in parts if act != LEAVE]
        return ", ".join(said) or f"{ACTIONS[LEAVE]} everywhere"


BOTH_WAYS = ((REMOVE, EMPHASIZE), (EMPHASIZE, REMOVE))
REMOVE_ONLY = ((REMOVE, LEAVE), (LEAVE, REMOVE))


def fit_threshold(
    train: Cases, allowed: Sequence[int] = range(len(FEATURES)), sides: Sequence[tuple[int, int]] = BOTH_WAYS
) -> Threshold:
    """The rule with the largest gain minus cost, the first of equals.

    A rule that loses more than ``MOST_LOST`` on a subset of ``train`` is rejected. ``allowed`` are the features that a
    rule may use, ``sides`` the actions that it may take below the lower and above the upper threshold.
    """
    weights, gain = train.weights, train.success - train.success[:, [LEAVE]] - COST
    gain[:, LEAVE] = 0
    base = train.recall(np.full(len(weights), LEAVE))
    best, most = Threshold(0, -np.inf, np.inf, LEAVE, LEAVE), 0.0
    for feature in allowed:
        cuts = [-np.inf, *np.unique(np.quantile(train.features[:, feature], QUANTILES)), np.inf]
        for (low, high), (below, above) in product(combinations_with_replacement(cuts, 2), sides):
            below, above = (below if low > -np.inf else LEAVE), (above if high < np.inf else LEAVE)
            rule = Threshold(feature, float(low), float(high), below, above)
            actions = rule.actions(train.features)
            worth = float(weights @ gain[np.arange(len(actions)), actions])
            if worth > most + 1e-9:
                recall = train.recall(actions)
                if all(recall[s] >= base[s] - MOST_LOST for s in base):
                    best, most = rule, worth
    return best


@dataclass(frozen=True)
class Logistic:
    """A softmax over the actions, linear in the standardised features; the most probable action is taken."""

    mean: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray

    def actions(self, x: np.ndarray) -> np.ndarray:
        return _standard(x, self.mean, self.scale).dot(self.coefficients).argmax(axis=1)


def fit_logistic(train: Cases) -> Logistic:
    """The softmax with the largest expected gain minus cost and ridge penalty; it starts from equal probabilities."""
    from scipy.optimize import minimize
    from scipy.special import softmax

    weights, gain = train.weights, train.success - train.success[:, [LEAVE]] - COST
    gain[:, LEAVE] = 0
    mean, scale = train.features.mean(axis=0), train.features.std(axis=0)
    x = _standard(train.features, mean, scale)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients = flat.reshape(x.shape[1], len(ACTIONS))
        odds = softmax(x @ coefficients, axis=1)
        expected = (odds * gain).sum(axis=1, keepdims=True)
        slope = -x.T @ (weights[:, None] * odds * (gain - expected)) + 2 * RIDGE * coefficients
        return float(-weights @ expected[:, 0] + RIDGE * (coefficients**2).sum()), slope.ravel()

    fitted = minimize(loss, np.zeros(x.shape[1] * len(ACTIONS)), jac=True, method="L-BFGS-B")
    return Logistic(mean, scale, np.round(fitted.x.reshape(x.shape[1], len(ACTIONS)), 4))


def _standard(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    # A feature that never varies (cos(q − root, p) where p is that difference) carries no information.
    z = np.divide(x - mean, scale, out=np.zeros_like(x), where=scale > 1e-5)
    return np.column_stack([z, np.ones(len(x))])


# --- the tables -----------------------------------------------------------------------------------


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
