"""What the log of the setting ``shadow`` says: how a selection would change the results of a running system."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import SHADOW_LOG_VERSION
from .._validation import as_float, printable, quoted
from ..errors import InvalidInputError
from .corpus import Problem
from .reading import json_lines
from .results import counted, number, percent

_CONDITIONS = ("k", "fetch_k", "selector", "settings")
# The questions that the summary names as those whose results change most.
_MOST = 5


_Check = Callable[[Any], bool]


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    # The sum of all numbers of a log must be finite too.
    return isinstance(value, (int, float)) and abs(as_float(value)) < 1e300


def _is_size(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_setting(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _object_of(check: _Check, *needed: str) -> _Check:
    return lambda value: isinstance(value, dict) and {*needed} <= value.keys() and all(map(check, value.values()))


_STRING, _STRINGS = (_is_string, "a string"), (_list_of(_is_string), "a list of strings")
_SIZE = _or_null(_is_size), "a whole number of at least 1, or null"
_PAIR = (
    _object_of(_or_null(_is_number), "returned", "selected"),
    "an object with 'returned' and 'selected', each a number or null",
)
_SETTINGS = _object_of(_is_setting, "selector"), "an object with 'selector' and no lists or objects in it"
# What retrieval/events.py writes for a call: each key, the check of its value, and what the value must be.
_NEEDED: dict[str, tuple[_Check, str]] = {
    "query": _STRING, "returned": _STRINGS, "selected": _STRINGS, "relevance": _PAIR, "redundancy": _PAIR,
    "milliseconds": (_is_number, "a number"), "k": _SIZE, "fetch_k": _SIZE, "selector": _STRING, "settings": _SETTINGS,
}  # fmt: skip
_KEYS = _NEEDED | {
    "time": _STRING, "queries": _STRINGS, "candidates": (_is_number, "a number"), "sum_cosine": _PAIR, "costs": _PAIR,
    "gains": (_list_of(_or_null(_is_number)), "a list of numbers and nulls"),
    "referred_by": (_list_of(_or_null(_is_string)), "a list of strings and nulls"),
    "copies": (_object_of(_is_string), "an object with strings"),
}  # fmt: skip


class ShadowLog(NamedTuple):
    """The calls in a log, the problems of lines that could not be read, and the calls whose selection failed."""

    path: str
    calls: list[Mapping[str, Any]]
    problems: list[Problem]
    failures: list[Problem]


class BeforeAndAfter(NamedTuple):
    """The mean of a figure over the calls that have it: of what was returned, and of what would be selected."""

    returned: float
    selected: float


@dataclass(frozen=True)
class LogSummary:
    """How a selection would change the results of a running system.

    Attributes
    ----------
    selector : str
        The selection, with its settings that are not the default.
    calls : int
        How many calls have these settings; the figures are means over them.
    changed : float in [0, 1]
        The share of the results whose texts would change. Another order is no change.
    replaced : float
        How many of the returned texts the selection would replace.
    overlap : float in [0, 1]
        The texts that both sets have, as a share of the texts that any of them has (Jaccard).
    relevance, redundancy, costs : BeforeAndAfter or None
        Mean cosine with the question, mean cosine between the texts, and sum of the costs. None if no call has it.
    median_milliseconds, slow_milliseconds : float
        Time of the selection with its search: the median, and what 95 % of the calls need at most.
    most_changed : tuple of (str, float)
        The questions whose results change most, each with the share of the returned texts that would be replaced.
    notes : tuple of str
        What was left out.
    """

    selector: str
    calls: int
    changed: float
    replaced: float
    overlap: float
    relevance: BeforeAndAfter | None
    redundancy: BeforeAndAfter | None
    costs: BeforeAndAfter | None
    median_milliseconds: float
    slow_milliseconds: float
    most_changed: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The figures and notes in sentences."""
        lines = [
            f"{self.selector}, {counted(self.calls, 'call')}: {percent(self.changed)} of the results would change, by "
            f"{number(self.replaced, 2)} texts on average. Both sets share {percent(self.overlap)} of their texts.",
            f"The selection, with its search, took {number(self.median_milliseconds, 1)} ms in the median, and at most "
            f"{number(self.slow_milliseconds, 1)} ms in 95 % of the calls.",
        ]
        for name, means in (("relevance", self.relevance), ("redundancy", self.redundancy), ("cost", self.costs)):
            if means is not None:
                lines.append(f"Mean {name}: {number(means.returned)} returned, {number(means.selected)} selected.")
        if self.most_changed:
            named = ", ".join(f"{quoted(question)} ({percent(share)})" for question, share in self.most_changed)
            lines.append(f"These would change most: {named}.")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def read_log(path: Path | str) -> ShadowLog:
    """Read a file of lines that the logger ``setselect.shadow`` wrote.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or no line of it is a selection in shadow.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "shadow.jsonl"
    >>> _ = path.write_text('{"version": 1, "query": "?", "error": "BudgetError: no costs"}')
    >>> read_log(path)
    Traceback (most recent call last):
    ...
    setselect.InvalidInputError: ...shadow.jsonl holds no selection; the first problem: ...
    """
    calls: list[Mapping[str, Any]] = []
    problems: list[Problem] = []
    failures: list[Problem] = []
    try:
        for record in json_lines(Path(path)):
            fault = record.problem or _find_fault(record.record)
            if fault:
                problems.append(Problem(record.file, record.line, fault))
            elif record.record["error"] is not None:
                failures.append(Problem(record.file, record.line, printable(record.record["error"])))
            else:
                calls.append(record.record)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not calls:
        first = next((f"; the first problem: {problem}" for problem in [*failures, *problems]), "")
        raise InvalidInputError(f"{path} holds no selection{first}")
    return ShadowLog(str(path), calls, problems, failures)


def compare_log(log: ShadowLog | Path | str) -> LogSummary:
    """Compare what a running system returned with what would have been selected, from the log of ``shadow=True``.

    Of what was returned, the first ``k`` texts count. If the calls have different settings, those with the most
    frequent settings count. Which of both sets is better, only :func:`~shared_core.evaluation.compare.compare` can
    tell, with queries that name the right texts.

    Parameters
    ----------
    log : path, or what :func:`read_log` returns
        The file that the logger ``setselect.shadow`` wrote.

    Returns
    -------
    LogSummary
        Its text has the figures in sentences.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or no line is a selection.

    Examples
    --------
    >>> import tempfile
    >>> figures = {name: {"returned": 0.9, "selected": 0.8} for name in ("relevance", "redundancy")}
    >>> line = {"version": 1, "query": "both?", "returned": ["a", "b"], "selected": ["a", "c"], "k": 2, "fetch_k": 50}
    >>> line |= {**figures, "milliseconds": 2.0, "error": None, "selector": "VRSD()", "settings": {"selector": "vrsd"}}
    >>> path = Path(tempfile.mkdtemp()) / "shadow.jsonl"
    >>> _ = path.write_text(json.dumps(line))
    >>> summary = compare_log(path)
    >>> summary.changed, summary.replaced, round(summary.overlap, 3)
    (1.0, 1.0, 0.333)
    """
    read = log if isinstance(log, ShadowLog) else read_log(log)
    [(conditions, _)] = Counter(map(_conditions, read.calls)).most_common(1)
    calls = [call for call in read.calls if _conditions(call) == conditions]
    sets = [({*call["returned"][: call["k"]]}, {*call["selected"]}) for call in calls]
    replaced = np.array([len(before - after) for before, after in sets])
    shares = replaced / [max(len(before), 1) for before, _ in sets]
    most = [i for i in np.argsort(-shares, kind="stable")[:_MOST].tolist() if shares[i]]
    times = np.array([call["milliseconds"] for call in calls], np.float64)
    settings = dict(calls[0]["settings"])
    name = settings.pop("selector")
    others = [key if value is None else f"{key}={value}" for key, value in settings.items()]
    return LogSummary(
        printable(" ".join([str(name), *others])),
        len(calls),
        float(np.mean([before != after for before, after in sets])),
        float(replaced.mean()),
        float(np.mean([len(before & after) / max(len(before | after), 1) for before, after in sets])),
        _before_and_after(calls, "relevance"),
        _before_and_after(calls, "redundancy"),
        _before_and_after(calls, "costs"),
        float(np.median(times)),
        float(np.percentile(times, 95)),
        tuple((calls[i]["query"], float(shares[i])) for i in most),
        tuple(_note_left_out(read, len(read.calls) - len(calls))),
    )


def _find_fault(record: Mapping[str, Any]) -> str | None:
    """Why a record is no line of the log that can be used; None if it is one."""
    if "version" not in record or "query" not in record or "error" not in record:
        return "this is no line of the log setselect.shadow: it needs 'version', 'query' and 'error'"
    if record["version"] != SHADOW_LOG_VERSION:
        return (
            f"the line has version {quoted(record['version'])}, and this setselect reads version {SHADOW_LOG_VERSION}"
        )
    if record["error"] is not None:
        return None if isinstance(record["error"], str) else "'error' must be a string or null"
    for key, (is_right, what) in _KEYS.items():
        if key not in record and key in _NEEDED:
            return f"there is no {quoted(key)}"
        if key in record and not is_right(record[key]):
            return f"{quoted(key)} must be {what}, got {quoted(record[key])}"
    return None


def _conditions(call: Mapping[str, Any]) -> str:
    """What must be the same in all calls that are compared."""
    return json.dumps([call[key] for key in _CONDITIONS])


def _before_and_after(calls: Sequence[Mapping[str, Any]], key: str) -> BeforeAndAfter | None:
    pairs = [(call[key]["returned"], call[key]["selected"]) for call in calls if key in call]
    known = [pair for pair in pairs if None not in pair]
    if not known:
        return None
    returned, selected = (float(np.mean(side, dtype=np.float64)) for side in zip(*known, strict=True))
    return BeforeAndAfter(returned, selected)


def _note_left_out(log: ShadowLog, others: int) -> Iterator[str]:
    for problems, which in ((log.problems, "that could not be read"), (log.failures, "with a selection that failed")):
        if problems:
            yield f"Left out: {counted(len(problems), 'line')} of {log.path} {which}; the first: {problems[0]}"
    if others:
        yield f"Left out: {counted(others, 'call')} with other settings. To compare these, copy their lines to a file."
