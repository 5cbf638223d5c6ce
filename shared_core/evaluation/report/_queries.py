"""The data of single queries for the report's script: JSON within a limit of bytes."""

from __future__ import annotations

import json
from typing import Any

from ..results import Comparison, clip, number
from ._methods import by_method, clip_middle, method_of

_BYTES = 1_150_000  # the limit for this data, so that the whole file stays below 1.5 MB
# Characters of a candidate's text; the first that fits is used.
_EXCERPTS = (1200, 900, 600, 400, 280, 200, 140, 100, 70, 40)
_ID, _QUERY = 120, 2000  # the most characters of an id or name, and of a query's text


def query_data(comparison: Comparison) -> str:
    """The views as JSON that is safe inside a script element; the texts of candidates are cut until the JSON fits."""
    for excerpt in _EXCERPTS:
        text = json.dumps(_data(comparison, excerpt), ensure_ascii=False, separators=(",", ":"))
        # Without "<" neither an end tag nor a comment can begin. "&" has no meaning inside a script element.
        text = text.replace("<", "\\u003c").replace(">", "\\u003e")
        if len(text.encode()) <= _BYTES:
            break
    return text


def _data(comparison: Comparison, excerpt: int) -> dict[str, Any]:
    advice = comparison.recommendation
    documents: dict[tuple[str, str, str], int] = {}
    changes = {
        one.query: [number(one.similarity), number(one.setting), one.setting < one.similarity]
        for one in comparison.changes
    }
    queries = []
    for query in comparison.queries:
        gold = set(query.gold)
        candidates = []
        for candidate in query.candidates:
            document = (clip_middle(candidate.id, _ID), clip(candidate.text, excerpt), clip(candidate.name, _ID))
            index = documents.setdefault(document, len(documents))
            served = [] if candidate.serves is None else [candidate.serves]
            candidates.append([index, round(candidate.cosine, 4), *served])
        queries.append(
            {
                "id": clip_middle(query.id, _ID),
                "text": clip(query.text, _QUERY),
                "subQuestions": [clip(text, _QUERY) for text in query.sub_questions],
                "candidates": candidates,
                "parts": [clip(part, _ID) for part in query.parts],
                "covers": {str(i): view.parts for i, view in enumerate(query.candidates) if view.parts},
                "words": [clip(word, _ID) for word in query.words],
                "has": {
                    str(i): view.words for i, view in enumerate(query.candidates) if view.words and i in query.cosines
                },
                # In hundredths, to save bytes.
                "near": {str(i): [round(100 * cosine) for cosine in row] for i, row in query.cosines.items()},
                "gold": [i for i, candidate in enumerate(query.candidates) if candidate.id in gold],
                "goldTotal": len(gold),
                "beyond": [i for i, candidate in enumerate(query.candidates) if candidate.beyond],
                "picks": {str(setting): list(picks) for setting, picks in sorted(query.picks.items())},
                "reasons": {str(setting): list(reasons) for setting, reasons in sorted(query.reasons.items())},
                "change": changes.get(query.id),
            }
        )
    return {
        "settings": [{"label": setting.label, "method": method_of(setting)} for setting in comparison.settings],
        "measure": changed_by(comparison),
        "changed": advice.best_other,
        "start": _first_settings(comparison),
        "documents": [list(document) for document in documents],
        "queries": queries,
    }


def changed_by(comparison: Comparison) -> str | None:
    """The name of the measure of ``comparison.changes``."""
    key = comparison.recommendation.measure_of_changes
    return next((one.name for one in comparison.measures if one.key == key), None)


def _first_settings(comparison: Comparison) -> list[int]:
    """Up to three settings to show first: similarity, the recommended one, the runner-up, then one of each method."""
    advice = comparison.recommendation
    wanted = [0, advice.setting, advice.runner_up, *(positions[0] for positions in by_method(comparison).values())]
    return list(dict.fromkeys(position for position in wanted if position is not None))[:3]
