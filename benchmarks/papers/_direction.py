"""Rules that select a direction for PAP before the search: their features, and how they are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from benchmarks.common import best
from benchmarks.papers._pir import Subset, Vectors, rankings, successes

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
