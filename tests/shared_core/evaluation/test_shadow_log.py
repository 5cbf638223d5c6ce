"""Comparisons from logs of shadow mode: which lines count, what is left out and said, and copies of gold documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from setselect import InvalidInputError, InvalidParameterError, write_report
from shared_core._files import SHADOW_LOG_VERSION
from shared_core.evaluation.shadow_log import compare_log, read_log


def call(query: str, returned: str, selected: str, **more: Any) -> dict[str, Any]:
    """A line of the log; each letter is an id."""
    figures = {name: {"returned": 0.75, "selected": 0.5} for name in ("relevance", "redundancy", "sum_cosine")}
    line = {"query": query, "queries": [], "returned": [*returned], "selected": [*selected], "error": None}
    line |= {"version": SHADOW_LOG_VERSION, "k": 4, "fetch_k": 50, "candidates": 50, "copies": {}, "milliseconds": 2.0}
    return line | figures | {"selector": "Coverage()", "settings": {"selector": "coverage"}} | more


@pytest.fixture
def log(tmp_path: Path) -> Any:
    def write(*records: Any) -> Path:
        path = tmp_path / "shadow.jsonl"
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
        return path

    return write


def test_how_often_and_how_much_the_results_would_change(log: Any, tmp_path: Path) -> None:
    records = (
        call("one", "abcd", "abcd"),
        call("two", "abcd", "dcba"),
        call("three", "abcd", "aexy"),
        call("", "abcd", "abcx"),
    )
    found = compare_log(log(*records))
    changed = found.values[1, "changed"]
    assert (changed.mean, changed.queries, found.values[0, "changed"].mean) == (0.25, 4, 0.0)
    assert (found.differences[1, "changed"].worse, found.differences[1, "changed"].worst_query) == (0.5, "three")
    assert (found.relevance, found.redundancy) == ((0.75, 0.5), (0.75, 0.5))
    assert found.recommendation.setting is None
    assert found.recommendation.text.startswith(
        "The selection would change 50 % of the results. It would replace 1.00 of 4"
    )
    assert "'three' (75%), 'line 4' (25%)" in found.recommendation.text
    write_report(found, tmp_path / "report.html")
    assert "three" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_last_call_of_a_question_and_the_most_frequent_settings_count(log: Any) -> None:
    other = {"settings": {"selector": "mmr", "lambda_mult": 0.5}, "selector": "MMR()"}
    records = [call("one", "abcd", "abcd", **other), call("one", "abcd", "efgh"), call(" one ", "abcd", "abce")]
    found = compare_log(log(*records))
    assert (found.values[1, "changed"].mean, found.corpus.queries) == (0.25, 1)
    assert any("Left out: 1 call with other settings" in note for note in found.notes)
    assert any("Left out: 1 call of a question that was asked again" in note for note in found.notes)
    assert compare_log(log(*records, *records[:1] * 2)).settings[1].label == "mmr lambda_mult=0.5"


def test_lines_that_cannot_be_read_and_failures_are_counted(log: Any) -> None:
    failed = {"version": SHADOW_LOG_VERSION, "query": "two", "error": "BudgetError: no costs"}
    lacking = call("three", "abcd", "abcd")
    del lacking["copies"]
    path = log("oops", call("one", "abcd", "abce"), failed, call("two", "ab", "ab", version=7), lacking, {"a": 1})
    read = read_log(path)
    assert [problem.line for problem in read.problems] == [1, 4, 5, 6]
    assert [str(failure) for failure in read.failures] == [f"{path}:3: BudgetError: no costs"]
    notes = " ".join(compare_log(read).notes)
    assert f"Left out: 4 lines of {path} that could not be read; the first: {path}:1: not JSON" in notes
    assert f"Left out: 1 line of {path} with a selection that failed" in notes
    with pytest.raises(InvalidInputError, match=r"holds no selection; the first problem: .*:1: BudgetError"):
        read_log(log(failed))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_log(path.with_name("none"))


def test_with_gold_documents_a_setting_is_recommended(log: Any, tmp_path: Path) -> None:
    records = [call(f"question {i}", "abcd", "axyz" if i % 4 else "abcd") for i in range(20)]
    queries: list[dict[str, Any]] = [{"text": f"question {i}", "id": f"q{i}", "gold": ["x", "y"]} for i in range(19)]
    queries[1]["gold"] = ["b"]
    queries += [{"text": "another", "gold": ["a"]}]
    found = compare_log(log(*records), queries)
    assert found.recommendation.setting == 1
    assert found.values[1, "recall"].mean == pytest.approx(13 / 19)
    assert found.differences[1, "changed"].worst_query == "q1"
    assert [(one.similarity, one.setting) for one in found.changes] == [(1.0, 0.0), *[(0.0, 1.0)] * 5]
    write_report(found, tmp_path / "report.html")
    assert "q1" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert {
        "Left out: 1 query of 20, not in the log or the same as another one.",
        "Left out: 1 question of the log that no query asks.",
    } <= set(found.notes)
    with pytest.raises(InvalidInputError, match="no call for any of 1 query:"):
        compare_log(log(*records), ["another"])
    with pytest.raises(InvalidParameterError, match="decide_by"):
        compare_log(log(*records), decide_by="recall")


def test_a_gold_document_is_found_by_its_copies_once(log: Any) -> None:
    # b and c repeat the text of a.
    copies = {"b": "a", "c": "a"}
    query = {"text": "one", "gold": ["c", "e"], "subtopics": {"first": ["b"], "second": ["e"], "label": []}}
    found = compare_log(log(call("one", "abde", "aefg", copies=copies)), [query])
    for setting in (0, 1):
        assert found.values[setting, "recall"].mean == found.values[setting, "subtopic_recall"].mean == 1.0
    assert any("Left out: 1 subtopic without ids" in note for note in found.notes)
    # Without copies, which is what the log has with drop_duplicates=False, only the document itself counts.
    found = compare_log(log(call("one", "abde", "aefg")), [query])
    assert found.values[0, "recall"].mean == 0.5


def test_calls_of_different_sizes_and_without_cosines(log: Any) -> None:
    # A budget ends the selection, and an approximate search returned what is not among the candidates.
    unknown = {"relevance": {"returned": None, "selected": 0.5}}
    records = [
        call("one", "abcdef", "ab", k=None, fetch_k=None),
        call("two", "ab", "abcd", k=None, fetch_k=None, **unknown),
    ]
    found = compare_log(log(*records))
    assert (found.corpus.k, found.values[1, "relevance"].queries, found.values[1, "changed"].queries) == (6, 1, 2)
    assert found.values[1, "changed"].mean == pytest.approx(1 / 3)
    with pytest.raises(InvalidInputError, match="raise fetch_k"):
        compare_log(log(records[1]))
    nothing = call("one", "", "", k=None, candidates=0)
    assert compare_log(log(nothing), [{"text": "one", "gold": ["a"]}]).values[1, "recall"].mean == 0.0
