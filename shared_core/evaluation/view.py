"""The view of one query for the report: excerpts of its candidates, and what they cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..texts.words import join_questions, list_terms, match_words
from .corpus import Document, Query
from .results import CandidateView, QueryView, clip

# Characters of the text of a candidate that a view keeps: of those that are gold or picked, and of the others.
EXCERPT, SHORT_EXCERPT = 1200, 120
# Decimals of cosines: coarse enough that all machines agree.
_DIGITS = 6


class PickedSet(NamedTuple):
    """What one setting picked: numbers of texts, and for each the text that refers to it or -1.

    ``explain`` says why each is there; it says nothing where its place by the cosine is all that there is to say.
    """

    picks: list[int]
    referred_by: list[int]
    explain: Callable[[], list[str]] = list


def view_query(
    query: Query,
    documents: Sequence[Document],
    names: Sequence[str],
    texts: Sequence[str],
    parts: Mapping[str, NDArray[np.bool_]],
    served: Mapping[int, int | None],
    cosines: FloatArray,
    sets: Sequence[PickedSet],
) -> QueryView:
    """The view of a query; all numbers of texts are positions in ``documents``.

    ``names`` are those of the documents. ``texts`` were embedded, with these ``cosines``. ``parts`` says which cover
    each part of the query. ``served`` maps those that are candidates to the query that each serves. ``sets`` has the
    picks of each setting.
    """
    # The candidates, and what rankings picked besides.
    shown = sorted({*served, *(row for one in sets for row in one.picks)})
    position = {row: i for i, row in enumerate(shown)} | {-1: -1}
    words = _rare_words(query, [texts[row] for row in shown], [position[row] for row in served])
    long = {row for row in shown if documents[row].id in query.gold or any(row in one.picks for one in sets)}
    views = tuple(
        CandidateView(
            documents[row].id,
            _excerpt(documents[row].text, EXCERPT if row in long else SHORT_EXCERPT),
            round(float(cosines[row]), _DIGITS),
            _excerpt(names[row], SHORT_EXCERPT),
            served.get(row),
            row not in served,
            tuple(part for part, covering in enumerate(parts.values()) if covering[row]),
        )
        for row in shown
    )
    picks, naming = (
        {setting: tuple(position[row] for row in rows) for setting, rows in enumerate(column)}
        for column in ([one.picks for one in sets], [one.referred_by for one in sets])
    )
    reasons = {setting: tuple(said) for setting, one in enumerate(sets) if (said := one.explain())}
    asked = query.id, query.text, query.gold
    return QueryView(*asked, views, picks, naming, query.sub_questions, tuple(parts), tuple(words), reasons)


def _rare_words(query: Query, texts: Sequence[str], candidates: Sequence[int]) -> list[str]:
    """The words of the query that at most half of the candidates have, the rarest first.

    ``candidates`` are positions in ``texts``.
    """
    words = list_terms(join_questions(query.questions))
    counts = (match_words(query.questions, texts).covered > 0)[candidates].sum(axis=0)
    rare = [j for j in np.argsort(counts, kind="stable").tolist() if 0 < counts[j] <= len(candidates) / 2]
    return [words[j] for j in rare]


def _excerpt(text: str, most: int) -> str:
    return clip(" ".join(text.split()), most)
