"""What the report embeds for looking at single queries: plain data for its script, within a budget of bytes."""

from __future__ import annotations

import json
from typing import Any

from ..results import Comparison, QueryView
from ._table import by_method
from ._text import clip, clip_middle

_BYTES = 1_150_000  # what is left of a file of 1.5 MB for these views, escapes included
_EXCERPTS = (600, 400, 280, 200, 140, 100, 70, 40)  # characters of a candidate's text, tried from the left
_ID, _QUERY = 120, 2000


def start(comparison: Comparison) -> list[int]:
    """The settings shown side by side at first: similarity, the recommended one or another method's, a third."""
    recommendation = comparison.recommendation
    firsts = [positions[0] for positions in by_method(comparison).values()]
    wanted = [0, recommendation.setting, recommendation.runner_up, *firsts]
    chosen: list[int] = []
    for position in wanted:
        if position is not None and position not in chosen and position < len(comparison.settings):
            chosen.append(position)
    return chosen[:3]


def _places(query: QueryView) -> list[tuple[float, float]]:
    """The query's and the candidates' places with the longer side of the map 1, the aspect kept."""
    xs = [query.x, *(candidate.x for candidate in query.candidates)]
    ys = [query.y, *(candidate.y for candidate in query.candidates)]
    left, bottom = min(xs), min(ys)
    side = max(max(xs) - left, max(ys) - bottom) or 1.0
    return [(round((x - left) / side, 4), round((y - bottom) / side, 4)) for x, y in zip(xs, ys, strict=True)]


def _data(comparison: Comparison, excerpt: int) -> dict[str, Any]:
    documents: dict[tuple[str, str], int] = {}
    queries = []
    for query in comparison.queries:
        gold = set(query.gold)
        places = _places(query)
        candidates = []
        for candidate, place in zip(query.candidates, places[1:], strict=True):
            document = (clip_middle(candidate.id, _ID), clip(candidate.text, excerpt))
            index = documents.setdefault(document, len(documents))
            candidates.append([index, round(candidate.cosine, 4), *place])
        queries.append(
            {
                "id": clip_middle(query.id, _ID),
                "text": clip(query.text, _QUERY),
                "place": places[0],
                "candidates": candidates,
                "gold": [i for i, candidate in enumerate(query.candidates) if candidate.id in gold],
                "goldTotal": len(gold),
                "picks": {str(setting): list(picks) for setting, picks in sorted(query.picks.items())},
            }
        )
    return {
        "settings": [{"label": setting.label, "method": setting.method} for setting in comparison.settings],
        "start": start(comparison),
        "documents": [list(document) for document in documents],
        "queries": queries,
    }


def embedded(comparison: Comparison) -> str:
    """The views as JSON that is safe inside a script element; long texts are cut until all of it fits."""
    for excerpt in _EXCERPTS:
        text = json.dumps(_data(comparison, excerpt), ensure_ascii=False, separators=(",", ":"))
        # Without "<" neither an end tag nor a comment can begin; "&" means nothing inside a script element.
        text = text.replace("<", "\\u003c").replace(">", "\\u003e")
        if len(text.encode("utf-8", "replace")) <= _BYTES:
            break
    return text
