"""The constants of the default: what each of them adds on the development half of the tasks of benchmarks/regimes.py.

The rule, written before the search: the highest mean over the families of tasks of what the default adds to
similarity, and no task below −0.5 unless it was below before. A run takes half an hour.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Block, facts, is_there, parser, publish, say, skip, table
from benchmarks.models import MINILM, MPNET, PACKAGES
from benchmarks.regimes_methods import DEFAULT, METHODS, Method, Search, objective, search_for
from benchmarks.regimes_tasks import COMPANIES, GROUPS, REGIMES, SEED, Regime, embed_regime, is_development
from shared_core.texts.references import find_references

PAGE = "constants.md"
# A task may lose this much, or what it lost before.
LEAST = -0.5


def with_headings(search: Search) -> Search:
    """Headings such as "Get started" count as names."""
    other = replace(search)
    with patch("shared_core.texts.references.is_proper", bool):
        other.__dict__["references"] = find_references(search.texts, search.names)
    return other


def of_headings(method: Method) -> Method:
    return lambda search, k: method(with_headings(search), k)


def settings() -> dict[str, Method]:
    """The default's constants, other settings, and each constant alone changed; the first row is the setting before."""
    more: dict[str, dict[str, Any]] = {
        "words by their reliability in the coverage too": {"in_coverage": 1},
        "… h = 0.5, w = 6, b = 3": {"in_coverage": 1, "h": 0.5, "w": 6, "b": 3},
        "… h = 0.35, w = 7, b = 3.5": {"in_coverage": 1, "h": 0.35, "w": 7, "b": 3.5},
        "… in the coverage alone": {"in_coverage": 1, "in_relevance": 0},
        "in neither": {"in_relevance": 0},
        "the square of the reliability": {"in_relevance": 2},
        "bonus by the relevance of its text": {"gate": 2},
        "a bonus for two picks at most": {"most": 2},
        **{f"h = {h}": {"h": h} for h in (0.25, 0.3, 0.35, 0.45, 0.5, 0.6)},
        **{f"w = {w}": {"w": w} for w in (6, 7, 9, 10)},
        **{f"b = {b}": {"b": b} for b in (0, 3, 3.5, 4.5, 5)},
        **{f"T = {t}": {"t": t} for t in (0.8, 0.9, 1.1, 1.25)},
    }
    return {
        BEFORE: of_headings(objective(h=0.25, in_relevance=0)),
        CHOSEN: METHODS[DEFAULT],
        "headings are names": of_headings(objective()),
        **{label: objective(**constants) for label, constants in more.items()},
    }


BEFORE, CHOSEN = "before: h = 0.25, no reliability, headings are names", "the default: h = 0.4, w = 8, b = 4, T = 1"


class Measured(NamedTuple):
    """Points, the mean over k and the questions of one half of a task: of similarity, and what each setting adds."""

    similarity: float
    added: dict[str, float]


def measure(regime: Regime, model: str, methods: dict[str, Method]) -> Measured:
    regime = regime._replace(cases=[case for case in regime.cases if is_development(case.question)])
    vectors, queries = embed_regime(regime, model)
    worth: dict[str, list[float]] = {name: [] for name in ("", *methods)}
    for case, query in zip(regime.cases, queries, strict=True):
        search = search_for(regime, case, query, vectors)
        for name, values in worth.items():
            # Every method is greedy: the first k of a larger set are the set of k.
            picks = methods[name](search, max(regime.ks)) if name else search.rows.tolist()
            values.append(float(np.mean([case.worth(picks[:k]) for k in regime.ks])))
    means = {name: 100 * float(np.mean(values)) for name, values in worth.items()}
    base = means.pop("")
    return Measured(base, {name: mean - base for name, mean in means.items()})


def summary_table(first: str, measured: dict[str, Measured], methods: dict[str, Method]) -> str:
    """For each setting the mean over the families, and the tasks that break the rule."""
    families = [[name for name in names if name in measured] for names in GROUPS.values()]
    rows = []
    for setting in methods:
        added = {name: one.added[setting] for name, one in measured.items()}
        means = [np.mean([added[name] for name in names]) for names in families if names]
        of_companies, others = (
            [v for name, v in added.items() if (name in COMPANIES) == kind] for kind in (True, False)
        )
        figures = [f"{np.mean(values):+.2f}" if values else "" for values in (means, of_companies, others)]
        worst = min(added, key=added.__getitem__)
        breaks = [name for name, v in added.items() if v < min(LEAST, measured[name].added[BEFORE]) - 1e-9]
        rows.append([setting, *figures, f"{added[worst]:+.1f}: {worst}", ", ".join(breaks)])
    head = ["mean of the families", "documents of companies", "the other tasks", "lowest", "breaks the rule"]
    return table([first, *head], rows)


def blocks(found: dict[str, dict[str, Measured]], methods: dict[str, Method]) -> Iterator[Block]:
    files = [file for name in found[MINILM] for file in REGIMES[name][1]]
    yield facts(files, ["numpy", *PACKAGES[MINILM], *PACKAGES[MPNET]], SEED)
    yield summary_table("setting", found[MINILM], methods)
    yield table(
        ["task", "similarity", "before", "the default"],
        [
            [name, f"{one.similarity:.1f}", *(f"{one.added[setting]:+.1f}" for setting in (BEFORE, CHOSEN))]
            for name, one in found[MINILM].items()
        ],
    )
    if found.get(MPNET):
        yield summary_table("with all-mpnet-base-v2", found[MPNET], methods)


def main() -> None:
    options = parser(__doc__, PAGE)
    options.add_argument("--tasks", nargs="*", choices=REGIMES, help="only these tasks; no page is written")
    options.add_argument("--models", nargs="*", default=[MINILM, MPNET], help="without both no page is written")
    arguments = options.parse_args()
    if arguments.tasks or len(arguments.models) < 2:
        skip("the other tasks or models")
    methods, found = settings(), {}
    for model in arguments.models:
        found[model] = {}
        for name, (make, files) in REGIMES.items():
            if name in (arguments.tasks or REGIMES) and is_there(*files):
                found[model][name] = measure(make(), model, methods)
                say(f"{model}, {name}")
    publish(PAGE, blocks(found, methods), arguments.write)


if __name__ == "__main__":
    main()
