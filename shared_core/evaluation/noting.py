"""What a reader of a comparison should know beside the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .judging import Judged
from .records import Query

UNASKED_SUBTOPICS = (
    "Documents carry subtopics, but no query says which of them it asks for, by its own subtopics or by gold "
    "documents: they are not measured."
)


def notes_on(outcomes: Sequence[Judged], empty: Sequence[str]) -> list[str]:
    """Notes on queries without candidates (``empty``, their ids), subtopics without documents, gold out of reach."""
    notes = []
    if empty:
        notes.append(f"No candidates were found for {_some(empty, 'query', 'queries')}.")
    lost = [label for outcome in outcomes for label in outcome.query.subtopics if label not in outcome.subtopics]
    if lost:
        notes.append(f"No document covers {_some(lost, 'subtopic', 'subtopics')} that queries ask for: left out.")
    return [*notes, *_ceiling(outcomes)]


def unknown_ids(queries: Sequence[Query], known: set[str]) -> list[str]:
    """A note on the ids that queries name and no document has, if there are any.

    >>> unknown_ids([Query("1", "?", gold=("a", "b"))], {"a"})
    ["No document has the id that queries name in 1 place ('b')."]
    """
    missing = [g for query in queries for ids in (query.gold, *query.subtopics.values()) for g in ids if g not in known]
    if not missing:
        return []
    return [f"No document has the id that queries name in {_some(missing, 'place', 'places')}."]


def without_unknown(query: Query, known: set[str]) -> Query:
    """The query without the ids that no document has.

    >>> without_unknown(Query("1", "?", gold=("a", "b")), {"a"}).gold
    ('a',)
    """
    named = {label: tuple(i for i in ids if i in known) for label, ids in query.subtopics.items()}
    # A label whose documents are all unknown must not turn into one that names none.
    kept = {label: ids for label, ids in named.items() if ids or not query.subtopics[label]}
    gold = tuple(i for i in query.gold if i in known)
    return Query(query.id, query.text, gold, kept, query.root, query.answers)


def _ceiling(outcomes: Sequence[Judged]) -> list[str]:
    judged = [outcome for outcome in outcomes if outcome.query.gold]
    if not judged:
        return []
    reach = np.mean([len(o.candidates.intersection(o.query.gold)) / len(o.query.gold) for o in judged])
    if reach > 1 - 1e-9:
        return []
    return [
        f"The candidates hold {reach:.1%} of the gold documents: no setting can find more. "
        "fetch_k sets that limit, unless there are no such documents."
    ]


def _some(names: Sequence[str], one: str, many: str) -> str:
    shown = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {one if len(names) == 1 else many} ({shown})"
