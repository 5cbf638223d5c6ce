"""The tasks, methods and tables of benchmarks/regimes.py, on small examples worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import regimes, regimes_methods
from benchmarks.regimes import Cell
from benchmarks.regimes_methods import METHODS, Search
from benchmarks.regimes_tasks import complete, share


def test_worth_of_picks() -> None:
    parts_of = [frozenset("a"), frozenset("b"), frozenset("ab"), frozenset()]
    case = share("question", parts_of, frozenset("ab"))
    assert [case.worth(picks) for picks in ([0, 3], [0, 1], [2], [3])] == [0.5, 1, 1, 0]
    assert [complete(case).worth(picks) for picks in ([0, 3], [0, 1])] == [0, 1]


def search(n: int = 30) -> Search:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, 16)) + 1
    query = rng.standard_normal(16) + 1
    vectors, query = vectors / np.linalg.norm(vectors, axis=1, keepdims=True), query / np.linalg.norm(query)
    words = ("alpha", "beta", "gamma", "of")
    texts = [" ".join(word for j, word in enumerate(words) if row % (j + 2) == 0) or "none" for row in range(n)]
    rows = np.argsort(-(vectors @ query))
    texts = [f"{texts[row]} Chapter {row * row % n}" for row in rows]
    names = [f"Chapter {row}" for row in rows]
    found = Search("alpha beta gamma", query, rows + 100, vectors[rows], texts, rows[::-1] + 100, names=names)
    return replace(found, joined=replace(found, bm25=np.arange(n) % 7.0))


def test_the_objective_of_the_search_is_that_of_the_selectors() -> None:
    found = search()
    assert regimes_methods.objective()(found, 10) == METHODS["setselect"](found, 10)
    assert regimes_methods.objective(b=0)(found, 10) == METHODS["… without references"](found, 10)
    assert regimes_methods.objective(b=0)(found, 10) != regimes_methods.objective()(found, 10)
    assert regimes_methods.objective(w=0, h=0, b=0, t=1, ridge=0.05)(found, 10) == METHODS["NDPP()"](found, 10)


def cell(regime: str, vectors: str, **worth: list[float]) -> Cell:
    """Two questions, k = 5."""
    values = {method: np.array(worth.get(method.split()[0], [0.5] * 2)) for method in METHODS}
    return Cell(regime, vectors, ["a", "b"], {5: values})


def test_summary_by_hand() -> None:
    cells = [
        cell("PIR", "one", setselect=[0.5, 1]),
        cell("PIR", "two", setselect=[0.5, 0.5]),
        cell("Ambient", "one", setselect=[0.4, 0.5]),
    ]
    # PIR: (+25 with the vectors one, 0 with two) / 2; Ambient: −5.
    assert regimes.mean_gains(cells, "setselect") == pytest.approx({"PIR": 12.5, "Ambient": -5})

    rows = [[text.strip(" *") for text in line.split("|")[1:-1]] for line in regimes.summary_table(cells).splitlines()]
    assert [row[:4] for row in rows[2:4]] == [
        ["one right document", "2", "5", "50.0"],
        ["several meanings or opinions", "2", "5", "50.0"],
    ]
    assert [row[-2].split()[0] for row in rows[2:]] == ["+12.5", "-5.0", "+3.8", "-5.0"], (
        "two kinds, their mean, the worst task"
    )
    assert regimes.interval([regimes.gain(cells[:1], "setselect")]) == "+25.0 (+0.0 to +50.0)"
    assert "Does not hold: setselect loses at most" in regimes.verdict(cells)
