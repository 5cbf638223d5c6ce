"""benchmarks/nothing_new.py with figures by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.nothing_new import CALLS, Calls, K, ask
from benchmarks.regimes_tasks import Case, Regime


def test_a_rule_leaves_out_the_calls_below_its_limit() -> None:
    number = np.array([0, 1, 2, 0, 1])
    useful = np.array([False, True, False, True, False])
    figures = np.array([[0.1], [0.3], [0.2], [0.1], [0.4]])
    later = Calls(number, useful, figures).later()
    assert later.number.tolist() == [1, 2, 1]
    assert [later.stopped(0, limit) for limit in (0.2, 0.25, 0.35, 0.5)] == [(0, 0), (0, 50), (100, 50), (100, 100)]


def test_a_call_is_useful_if_it_finds_something_new_that_is_right() -> None:
    vectors = np.eye(24) + 0.5
    # The texts are nearest to the query in their order.
    query = np.linspace(1, 0.9, 24)
    regime = Regime([f"text {i}" for i in range(24)], [], "")
    case = Case("text", None, lambda picks: len({0, 1, 23} & {*picks}))
    calls = [*ask(regime, case, query, vectors)]
    assert len(calls) == CALLS == 24 / K
    useful = [useful for useful, _ in calls]
    assert (useful[0], useful[-1], sum(useful)) == (True, True, 2)
    cosines = [figures[0] for _, figures in calls]
    assert cosines == sorted(cosines, reverse=True)
    assert calls[0][1][1] == 1
