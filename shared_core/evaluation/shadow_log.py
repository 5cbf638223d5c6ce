"""A comparison from the log of the setting ``shadow``: what a running system returned, and what would be selected."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import SHADOW_LOG_VERSION
from .._validation import quoted
from ..errors import InvalidInputError
from .compare import conclude, need_extra
from .corpus import Document, Problem, Query, as_query, convert_all
from .judging import JudgedPicks, JudgedQuery, Matrix, with_texts_once
from .reading import json_lines
from .recommend import check_deciding
from .results import Claim, Comparison, CorpusFacts, Measure, Setting, counted, percent
from .summary import MeasureValues, allowed_measures, measure

_SETS = ("returned", "selected")
_KEYS = (
    *("queries", "k", "fetch_k", "candidates", "relevance", "redundancy", "sum_cosine", "copies", "milliseconds"),
    *("selector", "settings"),
)
# The queries that a claim names as those that change most.
_MOST = 5


class ShadowLog(NamedTuple):
    """The calls in a log, the problems of lines that could not be read, and the calls whose selection failed."""

    path: str
    calls: list[Mapping[str, Any]]
    problems: list[Problem]
    failures: list[Problem]


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
            what = record.problem or _find_fault(record.record)
            if what:
                problems.append(Problem(record.file, record.line, what))
            elif record.record["error"] is not None:
                failures.append(Problem(record.file, record.line, record.record["error"]))
            else:
                calls.append({"id": f"line {record.line}", **record.record})
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not calls:
        first = next((f"; the first problem: {problem}" for problem in [*failures, *problems]), "")
        raise InvalidInputError(f"{path} holds no selection{first}")
    return ShadowLog(str(path), calls, problems, failures)


def compare_log(
    log: ShadowLog | Path | str,
    queries: Iterable[str | Mapping[str, Any] | Query] | None = None,
    *,
    decide_by: str | None = None,
    title: str | None = None,
) -> Comparison:
    """Compare what a running system returned with what would have been selected, from the log of ``shadow=True``.

    Nothing is searched or embedded. The first setting, "returned", is the first ``k`` texts of the results. The second
    is the selection. If a question was asked several times, its last call counts. If the calls have different
    settings, those with the most frequent settings count.

    Parameters
    ----------
    log : path, or what :func:`read_log` returns
        The file that the logger ``setselect.shadow`` wrote.
    queries : iterable of str, mapping or Query, optional
        What is right for some of the questions: ``gold``, ``subtopics`` with ids, ``root``; see :func:`compare`. A
        query and a call belong together if they have the same text. Then only these calls count.
    decide_by, title
        See :func:`compare`.

    Returns
    -------
    Comparison
        ``values[1, "changed"]`` is the share of the returned texts that the selection would replace, and
        ``differences[1, "changed"].worse`` the share of the results that it would change. There are no views of
        queries, because the log has neither texts nor vectors.

    Raises
    ------
    InvalidInputError
        The file cannot be read, no line is a selection, or no call has the text of one of the ``queries``.
    InvalidParameterError
        ``decide_by`` is not a measure that the queries allow.
    ImportError
        The extra ``eval`` is not installed.

    Examples
    --------
    >>> import json, tempfile
    >>> figures = {name: {"returned": 0.9, "selected": 0.8} for name in ("relevance", "redundancy", "sum_cosine")}
    >>> line = {"version": 1, "query": "both?", "queries": [], "returned": ["a", "b"], "selected": ["a", "c"], "k": 2}
    >>> line |= {"fetch_k": 50, "candidates": 50, **figures, "copies": {}, "milliseconds": 2.0, "error": None}
    >>> line |= {"selector": "VRSD()", "settings": {"selector": "vrsd"}}
    >>> path = Path(tempfile.mkdtemp()) / "shadow.jsonl"
    >>> _ = path.write_text(json.dumps(line))
    >>> found = compare_log(path, [{"text": "both?", "gold": ["a", "c"]}])
    >>> found.values[0, "recall"].mean, found.values[1, "recall"].mean, found.values[1, "changed"].mean
    (0.5, 1.0, 0.5)
    """
    need_extra()
    check_deciding(decide_by)
    read = log if isinstance(log, ShadowLog) else read_log(log)
    [(conditions, _)] = Counter(map(_conditions, read.calls)).most_common(1)
    calls = [call for call in read.calls if _conditions(call) == conditions]
    last = calls[-1]
    asked = {call["query"].strip() or call["id"]: call for call in calls}
    notes = [*_notes_on(read, calls, len(calls) - len(asked))]
    known = {text: Query(text, text) for text in asked}
    if queries is not None:
        given = convert_all(queries, as_query, "queries")
        known = {query.text.strip(): query for query in given if query.text.strip() in asked}
        if not known:
            raise InvalidInputError(
                f"{read.path} has no call for any of {counted(len(given), 'query', 'queries')}: the first query is "
                f"{quoted(given[0].text)}, and the first call asks {quoted(next(iter(asked)))}"
            )
        notes += _notes_on_queries(given, known, asked)
    check_deciding(decide_by, allowed_measures([*known.values()], any(map(_subtopics, known.values()))))
    k = last["k"] or max(1, *(len(call[name]) for call in asked.values() for name in _SETS))
    outcomes = [_judge(query, asked[text], k) for text, query in known.items()]
    changed = _changed(outcomes, k)
    columns = [changed, *measure(outcomes, k)]
    if not any(column.measure.key == "relevance" for column in columns):
        raise InvalidInputError(
            f"{read.path}: no call has the cosines of what was returned, because nothing was found, or not among the "
            "candidates: raise fetch_k"
        )
    settings = (Setting("returned", "returned", None, "what was returned"), _setting(last))
    versions = {"python": platform.python_version(), "setselect": version("setselect")}
    facts = CorpusFacts(
        None,
        len(outcomes),
        len(outcomes),
        "the vectors of the store",
        k,
        last["fetch_k"] or max(call["candidates"] for call in calls),
        versions,
        bool(last["settings"].get("drop_duplicates", True)),
        sum(len(asked[text]["queries"]) for text in known),
    )
    found = conclude(
        title or f"Shadow mode: {Path(read.path).name}", facts, settings, outcomes, columns, decide_by=decide_by
    )
    claims = (*_claims(changed, found, k), *found.recommendation.claims)
    return replace(
        found,
        # More or fewer changes are neither better nor worse, so the tables do not have them.
        measures=found.measures[1:],
        recommendation=replace(found.recommendation, claims=claims),
        notes=tuple(notes),
    )


def _find_fault(record: Mapping[str, Any]) -> str | None:
    """Why a record is no line of the log that can be used; None if it is one."""
    if "version" not in record or "query" not in record or "error" not in record:
        return "this is no line of the log setselect.shadow: it needs 'version', 'query' and 'error'"
    if record["version"] != SHADOW_LOG_VERSION:
        return f"the line has version {record['version']}, and this setselect reads version {SHADOW_LOG_VERSION}"
    missing = [key for key in (*_SETS, *_KEYS) if key not in record]
    return f"there is no {quoted(missing[0])}" if missing and record["error"] is None else None


def _conditions(call: Mapping[str, Any]) -> str:
    """What must be the same in all calls that are compared."""
    return json.dumps([call[key] for key in ("k", "fetch_k", "selector", "settings")])


def _setting(call: Mapping[str, Any]) -> Setting:
    """The selection; its label has all settings that are not the default, of a function or another object the name."""
    name, *given = call["settings"].items()
    typed = [key if value is None else f"{key}={value}" for key, value in given]
    return Setting("selected", " ".join([name[1], *typed]), None, call["selector"], sub_questions=bool(call["queries"]))


def _subtopics(query: Query) -> dict[str, tuple[str, ...]]:
    """The subtopics with ids. The log does not have the labels that documents carry."""
    return {label: ids for label, ids in query.subtopics.items() if ids}


def _judge(query: Query, call: Mapping[str, Any], k: int) -> JudgedQuery:
    """Both sets. A gold id stands for every copy of its text, and a set finds a text once."""
    names = [call[name][:k] for name in _SETS]
    documents = [Document(name, name) for name in dict.fromkeys(name for of_set in names for name in of_set)]
    query, subtopics, distinct, place = with_texts_once(query, _subtopics(query), documents, call["copies"])
    named = {document.id: distinct[row].id for document, row in zip(documents, place, strict=True)}
    picks = [_with_copies_marked([named[name] for name in of_set]) for of_set in names]

    def figures(key: str) -> Matrix | None:
        of_sets = [call[key][name] for name in _SETS]
        return None if None in of_sets else np.array(of_sets)

    judged = JudgedPicks(
        picks,
        relevance=figures("relevance"),
        sum_cosine=figures("sum_cosine"),
        redundancy=figures("redundancy") if min(k, call["candidates"]) > 1 else None,
        answers=None,
        # The log does not have the texts. Only sizes, which a log has not, show their lengths.
        characters=np.zeros(len(_SETS)),
    )
    return JudgedQuery(query, subtopics, frozenset(named.values()), {k: judged})


def _with_copies_marked(names: Sequence[str]) -> list[str]:
    """The names, each once: another copy of a text is no further find.

    >>> _with_copies_marked(["a", "b", "a"])
    ['a', 'b', 'a (copy at 3)']
    """
    return [name if name not in names[:i] else f"{name} (copy at {i + 1})" for i, name in enumerate(names)]


def _changed(outcomes: Sequence[JudgedQuery], k: int) -> MeasureValues:
    """For each query the share of the returned texts that the selection would replace."""
    both = [judged.sizes[k].picks for judged in outcomes]
    shares = [sum(name not in after for name in before) / max(1, len(before)) for before, after in both]
    what = "share of the returned texts that the selection would replace"
    # With False the query that changes most is the one that ``Difference`` names.
    described = Measure(f"changed@{k}", "changed", what, False, "nothing")
    return MeasureValues(described, np.array([np.zeros(len(shares)), shares]), tuple(o.query.id for o in outcomes))


def _claims(changed: MeasureValues, found: Comparison, k: int) -> list[Claim]:
    """How often and how much the selection would change the results, and where most."""
    values, differences = found.values, found.differences
    share, replaced = values[1, "changed"], differences[1, "changed"].worse
    mean, low, high = (f"{k * value:.2f}" for value in (share.mean, share.low, share.high))
    said = (
        f"The selection would change {percent(replaced)} of the results. It would replace {mean} of {k} texts on "
        f"average (95 % interval {low} to {high})."
    )
    claims = [Claim(said)]
    of_what = {"relevance": "with the question", "redundancy": "between the texts"}
    for key, what in of_what.items():
        if (1, key) in values:
            before, after, to = values[0, key].mean, values[1, key].mean, differences[1, key]
            said = (
                f"The mean cosine {what} would change from {before:.3f} to {after:.3f}, by {to.mean:+.3f} "
                f"(95 % interval {to.low:+.3f} to {to.high:+.3f})."
            )
            claims.append(Claim(said, "values", 1))
    most = [i for i in np.argsort(-changed.values[1], kind="stable")[:_MOST].tolist() if changed.values[1, i]]
    if most:
        named = ", ".join(f"{quoted(changed.queries[i])} ({changed.values[1, i]:.0%})" for i in most)
        claims.append(Claim(f"It would change these most: {named}."))
    return claims


def _notes_on(read: ShadowLog, calls: Sequence[Mapping[str, Any]], repeated: int) -> Iterable[str]:
    """Notes on the lines that do not count, the time of the selection, and the costs."""
    k = calls[-1]["k"]
    first = "all texts" if k is None else f"the first {k} texts"
    yield f"'returned' is what the system returned, {first} of each result. The sentences call it similarity."
    yield "The selection is that of your own settings: to switch to it, leave out shadow=True."
    for problems, what in ((read.problems, "that could not be read"), (read.failures, "with a selection that failed")):
        if problems:
            yield f"Left out: {counted(len(problems), 'line')} of {read.path} {what}; the first: {problems[0]}"
    others = len(read.calls) - len(calls)
    if others:
        yield f"Left out: {counted(others, 'call')} with other settings. To compare these, copy their lines to a file."
    if repeated:
        yield f"Left out: {counted(repeated, 'call')} of a question that was asked again later. Its last call counts."
    times = [call["milliseconds"] for call in calls]
    yield (
        f"The selection, with its search, took {np.median(times):.1f} ms in the median, and at most "
        f"{np.percentile(times, 95):.1f} ms in 95 % of the calls."
    )
    costs = [[call["costs"][name] for name in _SETS] for call in calls if "costs" in call]
    if costs:
        before, after = np.mean(costs, axis=0)
        yield f"What was returned costs {before:,.1f} on average, and the selection {after:,.1f}."


def _notes_on_queries(given: Sequence[Query], known: Mapping[str, Query], asked: Mapping[str, Any]) -> Iterable[str]:
    """Notes on queries without a call, calls without a query, and what the log cannot judge."""
    if len(known) < len(given):
        others = counted(len(given) - len(known), "query", "queries")
        yield f"Left out: {others} of {len(given)}, not in the log or the same as another one."
    if len(known) < len(asked):
        yield f"Left out: {counted(len(asked) - len(known), 'question')} of the log that no query asks."
    labels = sum(len(query.subtopics) - len(_subtopics(query)) for query in known.values())
    if labels:
        yield f"Left out: {counted(labels, 'subtopic')} without ids. The log does not have the labels of documents."
    if any(query.answers for query in known.values()):
        yield "Answers cannot be judged: the log does not have the texts."
