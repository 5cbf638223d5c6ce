"""What methods add to similarity on the development half of the tasks, on which choices are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.models import MINILM
from benchmarks.regimes_methods import SIMILARITY, Corpus, Method, search_for
from benchmarks.regimes_tasks import KINDS, WINDOWS, Regime, embed_regime, is_development
from shared_core.texts.word_index import WordIndex
from shared_core.texts.words import Text

MEANS = ["mean of the kinds", "overlapping windows", "lowest"]


class Measured(NamedTuple):
    """Points, the mean over k and the questions of one half of a task: of similarity, and what each method adds."""

    similarity: float
    added: dict[str, float]


def measure(
    regime: Regime, methods: Mapping[str, Method], split: Sequence[Text] | None = None, model: str = MINILM
) -> Measured:
    """Points of one half of a task. ``split``: its texts, split into words."""
    regime = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    vectors, queries = embed_regime(regime, model)
    corpus = Corpus(regime, vectors, list(split or map(Text, regime.texts)), WordIndex(regime.texts))
    worth: dict[str, list[float]] = {name: [] for name in (SIMILARITY, *methods)}
    for case, query in zip(regime.cases, queries, strict=True):
        search = corpus.with_words(search_for(regime, case, query, vectors), case)
        for name, values in worth.items():
            picks = search.rows.tolist() if name == SIMILARITY else methods[name](search, max(regime.ks))
            # Every method is greedy: the first k of a larger set are the set of k.
            values.append(float(np.mean([case.worth(picks[:k]) for k in regime.ks])))
    means = {name: 100 * float(np.mean(values)) for name, values in worth.items()}
    base = means.pop(SIMILARITY)
    return Measured(base, {name: mean - base for name, mean in means.items()})


def means_of(measured: Mapping[str, Measured], method: str) -> list[str]:
    """The cells of MEANS: the mean over the kinds of corpora and questions, that of windows, and the lowest figure."""
    added = {name: one.added[method] for name, one in measured.items()}
    kinds = [[added[name] for name in names if name in added] for names in (*KINDS.values(), WINDOWS)]
    *means, windows = (float(np.mean(values)) if values else None for values in kinds)
    worst = min(added, key=added.__getitem__)
    mean = np.mean([value for value in means if value is not None])
    return [f"{mean:+.2f}", "" if windows is None else f"{windows:+.2f}", f"{added[worst]:+.1f}: {worst}"]
