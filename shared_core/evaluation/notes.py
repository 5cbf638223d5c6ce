"""The notes of a comparison: what was left out, and what limits the figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from .._validation import quoted
from ..errors import InvalidInputError
from .corpus import Query
from .judging import BEYOND, JudgedQuery
from .results import Setting, counted
from .sentences import SUBTOPICS_EXAMPLE
from .settings import Settings, as_adapted


def note_left_out(settings: Sequence[Setting]) -> Iterator[str]:
    """A note on settings that would select from candidates by words, where there are none."""
    if settings:
        labels = ", ".join(setting.label for setting in settings)
        yield f"There is no search by words here, so {labels} is left out. compare(documents, ...) has such a search."


def note_settings(tried: Settings, rows: Sequence[Setting], outcomes: Sequence[JudgedQuery], k: int) -> Iterator[str]:
    """Notes on settings that get the question alone, select by scores, lack sources, or pick fewer texts."""
    alone = [setting.label for setting, selector in tried if as_adapted(selector).by_question]
    if alone:
        yield f"The question without its sub-questions is the query of {', '.join(alone)}."
    by_scores = [setting.label for setting, selector in tried if as_adapted(selector).by_scores]
    unscored = sum(outcome.unscored for outcome in outcomes)
    if by_scores and unscored:
        yield (
            f"Without a score: {counted(unscored, 'candidate')}. {' and '.join(by_scores)} select only from the others."
        )
    capped = [setting.label for setting, selector in tried if as_adapted(selector).max_per_source is not None]
    if capped and not any(outcome.sourced for outcome in outcomes):
        yield f"No document has a source, so max_per_source has no effect on {', '.join(capped)}."
    numbers = np.array([[len(picked) for picked in outcome.sizes[k].picks] for outcome in outcomes])
    fewer = [
        f"{setting.label} {of_setting.mean():.1f}"
        for setting, of_setting in zip(rows, numbers.T, strict=True)
        if (of_setting < numbers[:, 0]).any()
    ]
    if fewer:
        nothing = " A query for which a setting picks nothing has 0 in each measure." if not numbers.all() else ""
        means = ", ".join(fewer)
        yield f"Some settings pick fewer than {counted(k, 'text')}. The mean number of texts is {means}.{nothing}"


def note_queries(
    outcomes: Sequence[JudgedQuery], without_candidates: Sequence[str], k: int, drop_duplicates: bool
) -> Iterator[str]:
    """Notes on repeated texts, unhelpful words, no candidates, subtopics without documents, and gold out of reach."""
    repeated = sum(outcome.repeated for outcome in outcomes)
    total = sum(len(outcome.candidates) for outcome in outcomes) + (repeated if drop_duplicates else 0)
    if repeated:
        counts = "A text counts once, as in the retrievers" if drop_duplicates else "Every copy counts"
        repeat = "repeats" if repeated == 1 else "repeat"
        yield f"{repeated:,} of {total:,} candidates {repeat} the text of another candidate of their query. {counts}."
    short = [outcome.query.text for outcome in outcomes if outcome.repeated and len(outcome.candidates) < k]
    if short and drop_duplicates:
        yield (
            f"The candidates of {_count(short, 'query', 'queries')} have fewer than {k} different texts, so fewer are "
            "picked. Fetching more candidates can help."
        )
    alone = [outcome.query.text for outcome in outcomes if outcome.only_vectors]
    if alone:
        yield (
            f"The words of {_count(alone, 'query', 'queries')} tell none of the candidates from another, so only the "
            "vectors count there."
        )
    names = [outcome.names for outcome in outcomes if outcome.names is not None]
    if names:
        yield (
            f"{sum(one.with_name for one in names):,} of {total:,} candidates have a name, and "
            f"{sum(one.named for one in names):,} are named by another candidate of their query."
        )
    if without_candidates:
        yield f"No candidates were found for {_count(without_candidates, 'query', 'queries')}."
    lost = [label for outcome in outcomes for label in outcome.query.subtopics if label not in outcome.subtopics]
    if lost and any(outcome.subtopics for outcome in outcomes):
        count = _count(lost, "subtopic", "subtopics")
        yield f"No document covers {count} of the queries. The measures leave these out."
    reach = gold_in_reach(outcomes)
    if reach == 0:
        one = next(outcome for outcome in outcomes if outcome.query.gold)
        yield (
            f"No gold document is among the candidates. The query {quoted(one.query.text)} has the gold id "
            f"{quoted(one.query.gold[0])}, and a "
            f"candidate has the id {quoted(min(one.candidates))}. If these are ids of one kind, fetch more candidates."
        )
    elif reach is not None and reach < 1:
        with_words = gold_in_reach(outcomes, by_words=True)
        yield (
            f"The candidates hold {reach:.1%} of the gold documents: no setting that selects from them can "
            "find more. Fetching more candidates can raise that limit."
            + ("" if with_words == reach else f" Together with the candidates by words, they hold {with_words:.1%}.")
        )


def gold_in_reach(outcomes: Sequence[JudgedQuery], *, by_words: bool = False) -> float | None:
    """The mean share of a query's gold documents that are among the nearest, or ``by_words``; None without gold."""
    with_gold = [outcome for outcome in outcomes if outcome.query.gold]
    shares = [
        len((one.candidates | ((by_words and one.by_words) or set())).intersection(one.query.gold))
        / len(one.query.gold)
        for one in with_gold
    ]
    return float(np.mean(shares)) if shares else None


def check_subtopics(outcomes: list[JudgedQuery]) -> tuple[list[JudgedQuery], str | None]:
    """The outcomes, without subtopics that nothing covers in any of them; and what the files lack for subtopics."""
    covering = [ids for outcome in outcomes for ids in outcome.subtopics.values()]
    if any(set(ids) != {BEYOND} for ids in covering):
        return outcomes, None
    if any(outcome.query.subtopics for outcome in outcomes):
        return [replace(outcome, subtopics={}) for outcome in outcomes], (
            "The queries have subtopics, but nothing says which documents cover them. Write the ids of these documents "
            f"into the query, {SUBTOPICS_EXAMPLE}, or write the labels into the documents, "
            '{"id": "a", "text": "...", "subtopics": ["reset"]}.'
        )
    if any(outcome.labelled for outcome in outcomes):
        return outcomes, (
            "The documents carry subtopics, but no query asks for one. Write the labels that each query asks for into "
            'the query, {"subtopics": ["reset", "disk"]}, or write its gold ids: their labels are then its subtopics.'
        )
    return outcomes, None


def without_unknown_ids(queries: Sequence[Query], known: Collection[str]) -> tuple[list[Query], list[str]]:
    """The queries without ids that no document has, and notes on these; an error if no document has any of them."""
    notes = []
    gold = [name for query in queries for name in query.gold]
    covering = [name for query in queries for names in query.subtopics.values() for name in names]
    scored = [name for query in queries for name in query.scores]
    for what, ids in (("gold ids", gold), ("ids under subtopics", covering), ("ids under scores", scored)):
        missing = [name for name in ids if name not in known]
        if missing and len(missing) == len(ids):
            raise InvalidInputError(
                f"none of the {what} of the queries is the id of a document: a query has {quoted(missing[0])}, and the "
                f"first document has the id {quoted(next(iter(known)))}. Write the documents' own ids into the queries"
            )
        if missing:
            notes.append(f"No document has {len(missing)} of the {len(ids)} {what} ({_some(missing)}).")
    cleaned = []
    for query in queries:
        subtopics = {label: tuple(i for i in ids if i in known) for label, ids in query.subtopics.items()}
        # A label whose ids are all unknown is dropped: without ids it would mean the documents that carry the label.
        kept = {label: ids for label, ids in subtopics.items() if ids or not query.subtopics[label]}
        cleaned.append(replace(query, gold=tuple(i for i in query.gold if i in known), subtopics=kept))
    return cleaned, notes


def _count(names: Sequence[str], one: str, many: str) -> str:
    return f"{counted(len(names), one, many)} ({_some(names)})"


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:3])) + (", ..." if len(names) > 3 else "")
