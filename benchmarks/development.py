"""What methods add to similarity on the development half of the tasks, on which choices are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.models import MINILM
from benchmarks.regimes_methods import SIMILARITY, Method, search_for
from benchmarks.regimes_tasks import (
    COMPANIES,
    KINDS,
    STORED_THREE_TIMES,
    WINDOWS,
    Regime,
    embed_regime,
    is_development,
)

# The constants were chosen by the mean over these.
FAMILIES = (*KINDS.values(), WINDOWS, tuple(STORED_THREE_TIMES))
MEANS = ["mean of the families", "documents of companies", "the other tasks", "lowest"]


class Measured(NamedTuple):
    """Points, the mean over k and the questions of one half of a task: of similarity, and what each method adds."""

    similarity: float
    added: dict[str, float]


def measure(regime: Regime, methods: Mapping[str, Method], model: str = MINILM) -> Measured:
    regime = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    vectors, queries = embed_regime(regime, model)
    worth: dict[str, list[float]] = {name: [] for name in (SIMILARITY, *methods)}
    for case, query in zip(regime.cases, queries, strict=True):
        search = search_for(regime, case, query, vectors)
        for name, values in worth.items():
            picks = search.rows.tolist() if name == SIMILARITY else methods[name](search, max(regime.ks))
            # Every method is greedy: the first k of a larger set are the set of k.
            values.append(float(np.mean([case.worth(picks[:k]) for k in regime.ks])))
    means = {name: 100 * float(np.mean(values)) for name, values in worth.items()}
    base = means.pop(SIMILARITY)
    return Measured(base, {name: mean - base for name, mean in means.items()})


def means_of(measured: Mapping[str, Measured], method: str) -> list[str]:
    """The cells of MEANS: the mean over the kinds of corpora and questions, of two kinds, and the lowest figure."""
    added = {name: one.added[method] for name, one in measured.items()}
    families = [[added[name] for name in names if name in added] for names in FAMILIES]
    of_companies, others = ([v for name, v in added.items() if (name in COMPANIES) == kind] for kind in (True, False))
    means = [np.mean(values) for values in families if values]
    worst = min(added, key=added.__getitem__)
    figures = [f"{np.mean(values):+.2f}" if values else "" for values in (means, of_companies, others)]
    return [*figures, f"{added[worst]:+.1f}: {worst}"]
