"""Summaries of logs of shadow mode: the figures by hand, which lines count, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from setselect import InvalidInputError
from shared_core._files import SHADOW_LOG_VERSION
from shared_core.evaluation.shadow_log import compare_log


def call(query: str, returned: str, selected: str, **more: Any) -> dict[str, Any]:
    """A line of the log; each letter is an id."""
    figures = {name: {"returned": 0.75, "selected": 0.5} for name in ("relevance", "redundancy")}
    line = {"query": query, "returned": [*returned], "selected": [*selected], "error": None}
    line |= {"version": SHADOW_LOG_VERSION, "k": 4, "fetch_k": 50, "milliseconds": 2.0}
    return line | figures | {"selector": "Coverage()", "settings": {"selector": "coverage"}} | more


@pytest.fixture
def log(tmp_path: Path) -> Any:
    def write(*records: Any) -> Path:
        path = tmp_path / "shadow.jsonl"
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
        return path

    return write


def test_how_often_and_how_much_the_results_would_change(log: Any) -> None:
    unknown = {"relevance": {"returned": None, "selected": 0.1}, "costs": {"returned": 8, "selected": 4}}
    summary = compare_log(
        log(
            call("one", "abcdef", "abcd", milliseconds=1.0),
            call("two", "abcd", "dcba", **unknown),
            call("three", "abcd", "aexy"),
            call("four", "abcd", "abcx", milliseconds=9.0),
        )
    )
    # Of six returned texts the first k count, and another order is no change.
    assert (summary.calls, summary.changed, summary.replaced) == (4, 0.5, 1.0)
    assert summary.overlap == pytest.approx((1 + 1 + 1 / 7 + 3 / 5) / 4)
    # An item that is no candidate has no cosine.
    assert summary.means == {"relevance": (0.75, 0.5), "redundancy": (0.75, 0.5), "costs": (8, 4)}
    assert summary.median_milliseconds == 2.0 < summary.slow_milliseconds < 9.0
    assert summary.most_changed == (("three", 0.75), ("four", 0.25))
    assert all(fact in str(summary) for fact in ("coverage", "4 calls", "50 %", "1.00", "0.750", "'three' (75 %)"))


def test_the_most_frequent_settings_count(log: Any) -> None:
    other = {"settings": {"selector": "mmr", "lambda_mult": 0.5, "quality": None}, "selector": "MMR()"}
    records = [call("one", "abcd", "abcd", **other), call("one", "abcd", "efgh"), call("two", "abcd", "abce")]
    summary = compare_log(log(*records))
    assert (summary.selector, summary.calls, summary.replaced) == ("coverage", 2, 2.5)
    [note] = summary.notes
    assert "1 call " in note
    assert compare_log(log(*records, *records[:1] * 2)).selector == "mmr lambda_mult=0.5 quality"


def test_calls_without_a_limit_or_a_text(log: Any) -> None:
    # A budget ends the selection.
    summary = compare_log(log(call("one", "abcdef", "ab", k=None), call("two", "", "", k=None)))
    assert (summary.changed, summary.replaced, summary.overlap) == (0.5, 2.0, pytest.approx(1 / 6))


def test_failures_are_counted_and_a_line_of_something_else_is_named(log: Any) -> None:
    failed = {"version": SHADOW_LOG_VERSION, "query": "two", "error": "BudgetError: no costs"}
    summary = compare_log(log(call("one", "abcd", "abce"), failed))
    assert (summary.calls, summary.failures) == (1, 1)
    assert "1 call; the first error: BudgetError" in summary.notes[0]
    lacking = call("three", "abcd", "abcd")
    del lacking["milliseconds"]
    for bad in ("oops", call("two", "ab", "ab", version=7), lacking, {"a": 1}):
        with pytest.raises(InvalidInputError, match=r"shadow\.jsonl:2: "):
            compare_log(log(call("one", "abcd", "abce"), bad))
    with pytest.raises(InvalidInputError, match=r"shadow\.jsonl holds no selection.*BudgetError"):
        compare_log(log(failed))
    with pytest.raises(InvalidInputError, match="none"):
        compare_log(log(failed).with_name("none"))
