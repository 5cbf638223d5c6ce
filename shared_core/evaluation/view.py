"""The view of one query for the report: excerpts of its candidates, what they cover, and a map of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..texts.names import read_name
from ..texts.words import split_words
from .corpus import Document, Query
from .results import CandidateView, QueryView

# Characters of the text of a candidate that a view keeps: of those that are gold or picked, and of the others.
EXCERPT, SHORT_EXCERPT = 1200, 120
# Decimals of places on the map and of cosines: finer than a pixel, and coarse enough that all machines agree.
_DIGITS = 6


def view_query(
    query: Query,
    documents: Sequence[Document],
    texts: Sequence[str],
    parts: Mapping[str, NDArray[np.bool_]],
    served: Mapping[int, int | None],
    vectors: NDArray[np.float64],
    found: Sequence[tuple[list[int], list[int]]],
) -> QueryView:
    """The view of a query; all numbers of texts are positions in ``documents``.

    ``texts`` were embedded, and ``vectors`` are the unit vectors of the query and of them, (1 + n, d). ``parts`` says
    which of them cover each part of the query. ``served`` maps those that are candidates to the query that each serves.
    ``found`` has the picks of each setting, and the pick that names each or -1.
    """
    cosines = vectors[1:] @ vectors[0]
    # The candidates, and what rankings picked besides.
    shown = sorted({*served, *(row for picked, _ in found for row in picked)})
    position = {row: i for i, row in enumerate(shown)} | {-1: -1}
    shown_vectors = vectors[[0, *(1 + row for row in shown)]]
    on_map = project_to_map(shown_vectors)
    variance = ((shown_vectors - shown_vectors.mean(axis=0)) ** 2).sum()
    (x, y), *places = on_map.round(_DIGITS).tolist()
    words, held = _rare_words(query, [texts[row] for row in shown], [position[row] for row in served])
    long = [i for i, row in enumerate(shown) if documents[row].id in query.gold or any(row in p for p, _ in found)]
    unit = shown_vectors[[1 + i for i in long]]
    views = tuple(
        CandidateView(
            documents[row].id,
            _excerpt(documents[row].text, EXCERPT if i in long else SHORT_EXCERPT),
            round(float(cosines[row]), _DIGITS),
            place[0],
            place[1],
            _excerpt(documents[row].title or read_name(documents[row].text), SHORT_EXCERPT),
            served.get(row),
            row not in served,
            tuple(part for part, covering in enumerate(parts.values()) if covering[row]),
            tuple(np.flatnonzero(held[i]).tolist()),
        )
        for i, (row, place) in enumerate(zip(shown, places, strict=True))
    )
    picks, names = (
        {setting: tuple(position[row] for row in of_setting[part]) for setting, of_setting in enumerate(found)}
        for part in (0, 1)
    )
    cosines_between = (unit @ unit.T).round(_DIGITS).tolist()
    return QueryView(
        query.id,
        query.text,
        query.gold,
        x,
        y,
        views,
        picks,
        names,
        query.queries,
        tuple(parts),
        tuple(words),
        {i: tuple(row) for i, row in zip(long, cosines_between, strict=True)},
        round(float((on_map**2).sum() / variance), _DIGITS) if variance > 1e-9 else 1.0,
    )


def _rare_words(query: Query, texts: Sequence[str], candidates: Sequence[int]) -> tuple[list[str], NDArray[np.bool_]]:
    """The words of the query that at most half of the candidates have, and which texts have them, (texts, words).

    ``candidates`` are positions in ``texts``. The rarest words come first, as Coverage weighs them.
    """
    words = list(dict.fromkeys(split_words(" ".join([query.text, *query.queries]))))
    held = np.array([[word in of_text for word in words] for of_text in map(set, map(split_words, texts))], np.bool_)
    counts = held[candidates].sum(axis=0)
    rare = [j for j in np.argsort(counts, kind="stable").tolist() if 0 < counts[j] <= len(candidates) / 2]
    return [words[j] for j in rare], held[:, rare]


def project_to_map(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places on a map, shape (n, 2): the first two principal components of ``vectors`` (n, d).

    The signs are chosen so that the first row has no negative coordinate.
    """
    left, scale, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    places: NDArray[np.float64] = np.zeros((len(vectors), 2))
    width = min(2, len(scale))
    places[:, :width] = left[:, :width] * scale[:width]
    # A component that does not exist holds rounding errors, which must not show as a direction.
    places[:, np.abs(places).max(axis=0) < 1e-9] = 0.0
    for column in places.T:
        # If the first row lies on the axis, the row farthest from it decides the sign.
        decides = column[0] if abs(column[0]) > 1e-9 else column[np.abs(column).argmax()]
        if decides < 0:
            column *= -1
    return places + 0.0


def _excerpt(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"
