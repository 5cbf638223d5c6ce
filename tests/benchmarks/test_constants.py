"""The table and the settings of benchmarks/constants.py, on figures and texts by hand."""

from __future__ import annotations

import numpy as np

from benchmarks import constants
from benchmarks.constants import BEFORE
from benchmarks.development import Measured
from benchmarks.regimes_methods import Search, objective

TEXTS = ["See Get Started and Ann Lee.", "One starts here.", "She was born in 1962.", "ships"]


def search(cosines: list[float], names: list[str] | None = None) -> Search:
    """The four texts with these cosines and orthogonal vectors."""
    query = np.array([*cosines, 1.0])
    return Search("?", query, np.arange(4), np.eye(5)[:4], TEXTS, np.arange(0), names=names)


def test_a_setting_breaks_the_rule_below_the_limit_and_below_the_figure_before() -> None:
    measured = {
        "PIR": Measured(50.0, {BEFORE: 1.0, "other": -0.6}),
        "ArgKP": Measured(50.0, {BEFORE: -3.0, "other": -2.9}),
        "MetaTool": Measured(50.0, {BEFORE: -3.0, "other": -3.1}),
        "SciFact": Measured(50.0, {BEFORE: 2.0, "other": -0.4}),
    }
    row = constants.summary_table(measured, ["other"]).splitlines()[2]
    # Two kinds of one task each, and one of two; no windows.
    assert row == "| other | -2.17 |  | -3.1: MetaTool | PIR, MetaTool |"


def test_irrelevant_texts_get_less_of_a_bonus() -> None:
    one = search([0.9, 0.0, 0.5, 0.5], ["A Text", "Get Started", "Born", "Ships"])
    assert objective(h=0, w=0, b=9, gate=0)(one, 2) == [0, 1]
    assert objective(h=0, w=0, b=9, gate=90)(one, 2) == [0, 2]
