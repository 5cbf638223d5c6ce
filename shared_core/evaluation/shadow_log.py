"""What the log of the setting ``shadow`` says: how a selection would change the results of a running system."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import SHADOW_LOG_VERSION
from .._parsing import parse_object
from .._validation import as_float, printable, quoted
from ..errors import InvalidInputError
from .corpus import parse_lines
from .results import counted, number, percent

# The questions that the summary names as those whose results change most.
_MOST = 5
# What retrieval/events.py writes: the two sets, the figures of both, and the conditions of a call.
_SETS, _PAIRS = ("returned", "selected"), ("relevance", "redundancy", "costs")
_CONDITIONS = ("k", "fetch_k", "selector", "settings")


@dataclass(frozen=True)
class LogSummary:
    """How a selection would change the results of a running system.

    ``selector`` is the selection of these ``calls``, with its settings that are not the default; the figures are means
    over them. ``changed`` is the share of the results whose texts would change (another order is no change),
    ``replaced`` how many texts would be replaced, and ``overlap`` the texts of both sets as a share of those of any
    (Jaccard). ``means`` has ``relevance``, ``redundancy`` and ``costs`` of what was returned and of what would be
    selected, as far as they are known. 95 % of the selections took at most ``slow_milliseconds``. ``most_changed`` has
    the questions whose results change most, each with the share that would be replaced.
    """

    selector: str
    calls: int
    failures: int
    changed: float
    replaced: float
    overlap: float
    means: Mapping[str, tuple[float, float]]
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
        for name, (returned, selected) in self.means.items():
            lines.append(f"Mean {name}: {number(returned)} returned, {number(selected)} selected.")
        if self.most_changed:
            named = ", ".join(f"{quoted(question)} ({percent(share)})" for question, share in self.most_changed)
            lines.append(f"These would change most: {named}.")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def compare_log(path: Path | str) -> LogSummary:
    """Compare what a running system returned with what would have been selected, from the log of ``shadow=True``.

    Of what was returned, the first ``k`` texts count. If the calls have different settings, those with the most
    frequent settings count. An InvalidInputError if the file cannot be read, a line of it is none of this log, or no
    line is a selection.

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
    lines = list(parse_lines(Path(path), _read_line))
    every = [line for line in lines if line["error"] is None]
    failed = [line["error"] for line in lines if line["error"] is not None]
    if not every:
        first = f"; the first error: {printable(failed[0])}" if failed else ""
        raise InvalidInputError(f"{path} holds no selection{first}")
    [(conditions, _)] = Counter(map(_conditions, every)).most_common(1)
    calls = [call for call in every if _conditions(call) == conditions]
    sets = [({*call["returned"][: call["k"]]}, {*call["selected"]}) for call in calls]
    replaced = np.array([len(before - after) for before, after in sets])
    shares = replaced / [max(len(before), 1) for before, _ in sets]
    most = [i for i in np.argsort(-shares, kind="stable")[:_MOST].tolist() if shares[i]]
    times = np.array([call["milliseconds"] for call in calls], np.float64)
    settings = dict(calls[0]["settings"])
    others = [key if value is None else f"{key}={value}" for key, value in settings.items() if key != "selector"]
    notes = []
    if failed:
        notes.append(f"The selection failed in {counted(len(failed), 'call')}; the first error: {printable(failed[0])}")
    if left := len(every) - len(calls):
        notes.append(f"Left out: {counted(left, 'call')} with other settings. To compare them, copy them to a file.")
    return LogSummary(
        printable(" ".join([str(settings.get("selector")), *others])),
        len(calls),
        len(failed),
        float(np.mean([before != after for before, after in sets])),
        float(replaced.mean()),
        float(np.mean([len(before & after) / max(len(before | after), 1) for before, after in sets])),
        {key: mean for key in _PAIRS if (mean := _mean_pair(calls, key))},
        float(np.median(times)),
        float(np.percentile(times, 95)),
        tuple((calls[i]["query"], float(shares[i])) for i in most),
        tuple(notes),
    )


def _read_line(line: str) -> dict[str, Any]:
    """A line of the log; an InvalidInputError if it is none of this version."""
    record = parse_object(line)
    failed = isinstance(record.get("error"), str)
    figures = [record.get("milliseconds"), *(f for key in _PAIRS for f in _pair(record, key) if f is not None)]
    if record.get("version") != SHADOW_LOG_VERSION or not isinstance(record.get("query"), str) or "error" not in record:
        raise InvalidInputError(f"no line of the log setselect.shadow, version {SHADOW_LOG_VERSION}")
    if not failed and not (
        record["error"] is None
        and {*_CONDITIONS, *_SETS} <= record.keys()
        and isinstance(record["settings"], dict)
        and (record["k"] is None or type(record["k"]) is int)
        and all(isinstance(record[key], list) and all(isinstance(i, str) for i in record[key]) for key in _SETS)
        # The sum of all numbers of a log must be finite too.
        and all(isinstance(one, (int, float)) and abs(as_float(one)) < 1e300 for one in figures)
    ):
        raise InvalidInputError(f"no call of the log setselect.shadow: it needs {', '.join((*_SETS, *_CONDITIONS))}")
    return record


def _pair(record: Mapping[str, Any], key: str) -> list[Any]:
    """A figure of what was returned, and of what would be selected; two Nones if it is not known."""
    pair = record.get(key)
    return [pair.get(name) for name in _SETS] if isinstance(pair, dict) else [None, None]


def _conditions(call: Mapping[str, Any]) -> str:
    """What must be the same in all calls that are compared."""
    return json.dumps([call[key] for key in _CONDITIONS])


def _mean_pair(calls: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float] | None:
    known = [pair for call in calls if None not in (pair := _pair(call, key))]
    return (float(np.mean([a for a, _ in known])), float(np.mean([b for _, b in known]))) if known else None
