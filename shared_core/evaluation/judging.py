"""One query under every setting: what each picks from the same candidates, and what that is worth by the vectors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..candidates import Candidates
from ..errors import SetSelectError
from ..selectors.base import Selector
from ..selectors.choose import choose
from .measures._inputs import unit_rows
from .measures.metrics import mean_pairwise_cosine, sum_cosine
from .records import Document, Query
from .results import CandidateView, QueryView

Matrix = NDArray[np.float64]
EXCERPT = 240
# Stands for whatever documents beyond the candidates cover a subtopic; no store has such an id.
BEYOND = "\0beyond the candidates"
# Places on the map: finer than a pixel, coarse enough to hide the last bits, in which machines differ.
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Found:
    """The candidates for a query.

    Attributes
    ----------
    vector : array-like, shape (d,)
        The query's.
    documents : sequence of n Document
    vectors : array-like, shape (n, d)
    subtopics : mapping, optional
        From the labels of what the query asks for to the ids of all documents that cover them; by default worked out
        from the query and the labels of ``documents``, a subtopic that none of them covers counting as missed.
    """

    vector: ArrayLike
    documents: Sequence[Document]
    vectors: ArrayLike
    subtopics: Mapping[str, Collection[str]] | None = None


@dataclass(frozen=True, eq=False)
class Judged:
    """One query's outcome: arrays have one entry for each setting.

    ``redundancy`` is None where a single text was picked, ``answered`` where the query has no answers.
    """

    query: Query
    subtopics: Mapping[str, Collection[str]]
    candidates: frozenset[str]
    picks: list[list[str]]
    relevance: Matrix
    together: Matrix
    redundancy: Matrix | None
    answered: Matrix | None
    view: QueryView | None


def judge(query: Query, found: Found, selectors: Sequence[Selector], k: int, *, view: bool) -> Judged:
    """Let every selector pick ``k`` (or as many as there are) of the candidates.

    Raises
    ------
    SetSelectError
        A vector is not what it should be, or a selector refuses; the message names the query.
    """
    try:
        candidates = Candidates(found.vector, found.vectors, ids=[document.id for document in found.documents])
        # In this order whatever store they come from, so that ties fall alike.
        order = np.argsort(-candidates.relevance, kind="stable")
        candidates = candidates.take(order)
        picks = [choose(candidates, selector, k).indices.tolist() for selector in selectors]
    except SetSelectError as error:
        error.args = (f"query {query.id!r}: {error}",)
        raise
    documents = [found.documents[i] for i in order]
    unit = unit_rows(candidates.vectors, "vectors")
    asked = unit_rows(candidates.query[None, :], "query")[0]
    cosines = unit @ asked
    ids = [document.id for document in documents]
    labels = subtopics_of(query, documents) if found.subtopics is None else found.subtopics
    if found.subtopics is None:
        # A store may well hold documents on what none of the candidates covers: that is a miss, not a void question.
        labels = dict.fromkeys(query.subtopics, (BEYOND,)) | dict(labels)
        if not query.subtopics and not set(query.gold) <= set(ids):
            # What the gold that was not found is about is not known either.
            labels = {}
    held = _answers_in([document.text for document in documents], query.answers)
    return Judged(
        query,
        labels,
        frozenset(ids),
        [[ids[i] for i in picked] for picked in picks],
        relevance=np.array([cosines[picked].mean() for picked in picks]),
        together=np.array([sum_cosine(asked, unit[picked]) for picked in picks]),
        redundancy=np.array([mean_pairwise_cosine(unit[p]) for p in picks]) if min(k, len(ids)) > 1 else None,
        answered=np.array([held[picked].any(axis=0).mean() for picked in picks]) if query.answers else None,
        view=_view(query, documents, cosines, unit, asked, picks) if view else None,
    )


def subtopics_of(query: Query, documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
    """For each subtopic that the query asks for the ids of the documents that cover it.

    The query names its subtopics, with ids of documents or without; or they are those of its gold documents. A query
    that has neither has no subtopics: labels of documents alone do not say what is asked.

    >>> documents = [Document("a", "A", ("x",)), Document("b", "B", ("x", "y"))]
    >>> subtopics_of(Query("1", "?", gold=("a",)), documents), subtopics_of(Query("1", "?"), documents)
    ({'x': ('a', 'b')}, {})
    """
    return subtopics_in(query, carriers_of(documents), {document.id: document.subtopics for document in documents})


def carriers_of(documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
    """The ids of the documents that carry each label.

    >>> carriers_of([Document("a", "A", ("x",)), Document("b", "B", ("x", "y"))])
    {'x': ('a', 'b'), 'y': ('b',)}
    """
    carriers: dict[str, list[str]] = {}
    for document in documents:
        for label in document.subtopics:
            carriers.setdefault(label, []).append(document.id)
    return {label: tuple(ids) for label, ids in carriers.items()}


def subtopics_in(
    query: Query, carriers: Mapping[str, tuple[str, ...]], labels: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """As :func:`subtopics_of`, from what :func:`carriers_of` gave and the labels of each id."""
    if query.subtopics:
        wanted = {label: ids or carriers.get(label, ()) for label, ids in query.subtopics.items()}
    else:
        of_gold = dict.fromkeys(label for gold in query.gold for label in labels.get(gold, ()))
        wanted = {label: carriers[label] for label in of_gold}
    return {label: ids for label, ids in wanted.items() if ids}


def _answers_in(texts: list[str], answers: Sequence[str]) -> NDArray[np.bool_]:
    """(n, answers): whether a text holds an answer, as whole words, whatever the case and the spaces."""
    patterns = [re.compile(_bounded(_plain(answer))) for answer in answers]
    plain = [_plain(text) for text in texts] if patterns else []
    return np.array([[bool(pattern.search(text)) for pattern in patterns] for text in plain], dtype=np.bool_)


def _bounded(answer: str) -> str:
    # Han, Kana, Thai, Lao and Khmer put no spaces between words.
    unspaced = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
    before = "" if unspaced.match(answer[:1]) else r"(?<!\w)"
    after = "" if unspaced.match(answer[-1:]) else r"(?!\w)"
    return before + re.escape(answer) + after


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _view(
    query: Query, documents: list[Document], cosines: Matrix, unit: Matrix, asked: Matrix, picks: list[list[int]]
) -> QueryView:
    places = places_of(np.vstack([asked, unit]))
    (x, y), *others = places.round(_DIGITS).tolist()
    return QueryView(
        query.id,
        query.text,
        query.gold,
        x,
        y,
        tuple(
            CandidateView(document.id, _excerpt(document.text), round(float(cosine), _DIGITS), *place)
            for document, cosine, place in zip(documents, cosines, others, strict=True)
        ),
        {setting: tuple(picked) for setting, picked in enumerate(picks)},
    )


def places_of(vectors: Matrix) -> Matrix:
    """Places on a map, shape (n, 2): the first two principal components of ``vectors`` (n, d), turned so that the
    first row has no negative coordinate.

    >>> places_of(np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])).round(6).tolist()
    [[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]
    """
    centred = vectors - vectors.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    places: Matrix = np.zeros((len(vectors), 2))
    width = min(2, len(scale))
    places[:, :width] = left[:, :width] * scale[:width]
    # What is left of a component that is not there is rounding, in which no direction should show.
    places[:, np.abs(places).max(axis=0) < 1e-9] = 0.0
    for column in places.T:
        # Where the first row says nothing of the sign, the one farthest out does.
        decides = column[0] if abs(column[0]) > 1e-9 else column[np.abs(column).argmax()]
        if decides < 0:
            column *= -1
    return places + 0.0


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else flat[: EXCERPT - 1].rstrip() + "…"
