"""What a corpus gives the settings to act on: repetition, sources, names and references. Nothing says what is right."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import is_missing
from ..candidates import REFERENCE_KINDS, as_unit_rows
from ..errors import InvalidInputError
from ..signals.embedding_models import Track, without_progress
from ..texts import Texts
from .corpus import Document
from .results import Diagnosis, Finding, Verdict, counted, number, percent

# How many texts of the corpus are searched with, as if each were a question.
TYPICAL = 200
# Two texts nearly repeat each other above this cosine. A text is repeated if so many others nearly repeat it.
NEAR, REPEATED_BY = 0.9, 5
# If the mean cosine of two texts is above this, the model gives all texts a high one, and their mean is subtracted.
NARROW = 0.5
# A share below the first number is nothing to act on, and one below the second is little.
_NOTHING, _LITTLE = 0.005, 0.05
# What is read to draw the typical texts from: so many searches in random directions, each of so many texts.
_DIRECTIONS, _WIDE = 8, 2_500
# For each kind of reference: what a text does that leads to another one, and the settings that act on it.
_LEADS = {
    "name": ("names another one", ("reference_weight", "follow")),
    "link": ("links to another one", ("links", "follow")),
    "citation": ("cites another one by its number or code", ("reference_weight", "follow")),
    "neighbour": ("stands next to another one", ("neighbour_weight", "join_neighbours", "follow")),
}


class Found(NamedTuple):
    """What a search found, the nearest first: texts without what an index puts before them, vectors, and sources.

    ``read_texts`` gives the texts with their words and references. It is called only for the candidates of a text.
    """

    bodies: Sequence[str]
    vectors: ArrayLike
    sources: Sequence[Hashable | None]
    read_texts: Callable[[], Texts]


# ``search(vector, k)``: the k nearest texts.
SearchByVector = Callable[[NDArray[np.float64], int], Found]


class Neighbourhood(NamedTuple):
    """The candidates of a question, or of a text of the corpus without this text itself: unit vectors and texts.

    ``centre`` is the unit vector of the question or text, and ``body`` its text.
    """

    centre: NDArray[np.float64]
    body: str
    vectors: NDArray[np.float64]
    bodies: Sequence[str]
    sources: Sequence[Hashable | None]
    texts: Texts

    @property
    def different(self) -> NDArray[np.float64]:
        """The vectors of one candidate of each text, without copies of the text itself: the adapters drop copies."""
        first = {body: row for row, body in reversed([*enumerate(self.bodies)]) if body and body != self.body}
        return self.vectors[[row for row, body in enumerate(self.bodies) if not body or first.get(body) == row]]


def diagnose(
    search: SearchByVector,
    dimension: int,
    questions: Sequence[tuple[str, ArrayLike]] = (),
    *,
    title: str,
    documents: int | None,
    k: int,
    fetch_k: int,
    widest: int = _WIDE,
    track: Track = without_progress,
) -> Diagnosis:
    """What a corpus gives the settings to act on, from searches for typical texts of it and for questions.

    Each question has a text and a vector; the first 200 are searched for. What concerns the ``k`` nearest and the
    candidates is counted for the questions, if there are some. ``dimension`` is the length of the vectors, ``widest``
    the most texts that a search returns, and ``documents`` the number of all texts, if it is known. An
    InvalidInputError if the corpus holds no texts.
    """
    typical = _look_around(search, dimension, fetch_k, widest, track)
    asked = []
    for text, vector in questions[:TYPICAL]:
        found = search(np.asarray(vector, np.float64), fetch_k)
        if found.bodies:
            asked.append(_as_neighbourhood(found, vector, text, range(len(found.bodies))))
    centres = np.array([one.centre for one in typical])
    spread, notes = _mean_cosine(centres), []
    mean = centres.mean(axis=0) if spread > NARROW else np.zeros(dimension)
    if spread > NARROW:
        notes.append(
            f"Two texts have a cosine of {number(spread, 2)} on average. So the mean vector was subtracted before the "
            "texts were compared."
        )
    if documents is None or len(typical) < documents:
        notes.append(
            f"{counted(len(typical), 'text')} were drawn. Their shares are uncertain by up to "
            f"{100 / np.sqrt(len(typical)):.0f} points."
        )
    findings = _find(typical, asked or typical, mean, k, "question" if asked else "text")
    return Diagnosis(title, documents, len(typical), len(asked), k, fetch_k, tuple(findings), tuple(notes))


def search_documents(documents: Sequence[Document], rows: NDArray[np.floating]) -> SearchByVector:
    """Exact search by the cosine among documents with these vectors, shape (n, d)."""
    unit = as_unit_rows(rows)

    def search(vector: NDArray[np.float64], k: int) -> Found:
        nearest = np.argsort(-(unit @ vector.astype(unit.dtype)), kind="stable")[:k].tolist()
        found = [documents[row] for row in nearest]
        bodies = [document.text for document in found]
        sources = [document.source for document in found]

        return Found(bodies, unit[nearest], sources, lambda: Texts(bodies, [one.facts for one in found]))

    return search


def _look_around(
    search: SearchByVector, dimension: int, fetch_k: int, widest: int, track: Track
) -> list[Neighbourhood]:
    """The neighbourhoods of typical texts, drawn at random from what searches in random directions find."""
    random = np.random.default_rng(0)
    known: dict[tuple[str, int], NDArray[np.float64]] = {}

    def look(vector: NDArray[np.float64], k: int) -> int:
        found = search(vector, k)
        copies: dict[str, int] = {}
        for body, row in zip(found.bodies, np.asarray(found.vectors, np.float64), strict=True):
            # The copies of a text are told apart by their number, because some stores return no ids.
            copies[body] = copies.get(body, 0) + 1
            known.setdefault((body, copies[body]), row)
        return len(found.bodies)

    wide = min(_WIDE, widest)
    for _ in range(_DIRECTIONS):
        # A store with fewer texts returns all of them at once.
        if look(random.standard_normal(dimension), wide) < wide:
            break
    # Some indexes return few texts, however many are asked for. Searches with these find others.
    searched = 0
    while searched < len(known) < TYPICAL:
        look([*known.values()][searched], fetch_k)
        searched += 1
    if not known:
        raise InvalidInputError("the store holds no texts: fill it, or name another collection")
    usable = [(body, vector) for (body, _), vector in known.items() if vector.any()]
    if not usable:
        raise InvalidInputError("all vectors are zero: embed the texts again")
    drawn = [usable[row] for row in random.permutation(len(usable))[:TYPICAL]]
    return [
        _without_itself(search(vector, fetch_k + 1), body, vector) for body, vector in track(drawn, "Looking at texts")
    ]


def _without_itself(found: Found, body: str, vector: NDArray[np.float64]) -> Neighbourhood:
    """The neighbourhood of a text: what was found without the text itself, or without the last one."""
    rows = list(range(len(found.bodies)))
    # An approximate index may not find the text itself.
    rows.remove(next((row for row in rows if found.bodies[row] == body), rows[-1]))
    return _as_neighbourhood(found, vector, body, rows)


def _as_neighbourhood(found: Found, vector: ArrayLike, body: str, rows: Sequence[int]) -> Neighbourhood:
    """These rows of what was found with a vector."""
    # The question or text comes first.
    unit = as_unit_rows(np.vstack([np.asarray(vector)[None], found.vectors])).astype(np.float64, copy=False)
    return Neighbourhood(
        unit[0],
        body,
        unit[1:][list(rows)],
        [found.bodies[row] for row in rows],
        [found.sources[row] for row in rows],
        found.read_texts().take(rows),
    )


def _find(
    typical: Sequence[Neighbourhood],
    counted_for: Sequence[Neighbourhood],
    mean: NDArray[np.float64],
    k: int,
    what: str,
) -> Iterator[Finding]:
    texts, others = counted(len(typical), "text"), counted(len(counted_for), what)

    def share(key: str, name: str, of: float, text: str, *settings: str) -> Finding:
        acts: Verdict = "nothing" if of < _NOTHING else "little" if of < _LITTLE else "something"
        return Finding(key, name, of, f"{percent(of)} of {text}", acts, settings)

    copied = np.mean([bool(one.body.strip()) and one.body in one.bodies for one in typical])
    yield share("copies", "Texts that are stored more than once", float(copied), texts, "drop_duplicates")
    near = [np.sum(_unit(one.different - mean) @ _unit(one.centre - mean) > NEAR) for one in typical]
    yield share(
        "repeats",
        f"Texts that {REPEATED_BY} others or more nearly repeat (cosine above {NEAR:g})",
        float(np.mean(np.array(near) >= REPEATED_BY)),
        texts,
        "drop_near_duplicates",
    )
    first = [one.different[:k] for one in counted_for]
    places = max(sum(map(len, first)), 1)
    of_places = f"{counted(places, 'place')}, for {others}"
    yield share(
        "slots",
        f"Places among the {k} nearest that go to a near-repeat of a nearer text",
        sum(_count_repeats(vectors - mean) for vectors in first) / places,
        of_places,
        "coverage (the default)",
        "ndpp",
        "mmr",
    )
    sources = [[source for source in one.sources[:k] if not is_missing(source)] for one in counted_for]
    if sum(map(len, sources)) >= places / 2:
        again = sum(len(known) - len(set(known)) for known in sources) / places
        name = f"Places among the {k} nearest that go to a source which has one already"
        different = float(np.median([len({*one.sources}) for one in counted_for]))
        of_sources = f"{of_places}; a search finds {counted(round(different), 'source')}"
        finding = share("sources", name, again, of_sources, "max_per_source")
        # With fewer sources than places, one text of each does not fill them.
        yield finding if different >= k else replace(finding, acts="nothing")
    with_name = sum(one.texts.name_counts.with_name for one in counted_for if one.texts.name_counts)
    candidates = max(sum(len(one.bodies) for one in counted_for), 1)
    name = "Candidates with a name by which other texts may mention them"
    yield share("names", name, with_name / candidates, f"{counted(candidates, 'candidate')}, for {others}")
    for kind, word in enumerate(REFERENCE_KINDS):
        leads, settings = _LEADS.get(word, (f"leads to another one ({word})", ("reference_weight", "follow")))
        led = np.array([one.texts.name_counts.led_to[kind] if one.texts.name_counts else 0 for one in counted_for])
        with_some = float(np.mean(led > 0))
        text = others if not with_some else f"{others}; {number(float(led.mean()), 1)} candidates are led to on average"
        yield share(word, f"Searches in which a candidate {leads}", with_some, text, *settings)
    if what == "question":
        told = np.mean([bool(one.texts.match_words(one.body).weights.any()) for one in counted_for])
        name = "Questions with a word that tells their candidates apart"
        yield share("words", name, float(told), others, "word_weight", "keyword_search")


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, or the one row, with length 1; zero rows stay."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = rows / np.where(lengths > 0, lengths, 1)
    return unit


def _mean_cosine(unit: NDArray[np.float64]) -> float:
    """The mean cosine of two different rows; 0 for a single row."""
    n = len(unit)
    return float((np.square(unit.sum(axis=0)).sum() - n) / (n * (n - 1))) if n > 1 else 0.0


def _count_repeats(rows: NDArray[np.float64]) -> int:
    """How many rows nearly repeat an earlier one."""
    unit = _unit(rows)
    return int((np.tril(unit @ unit.T, -1) > NEAR).any(axis=1).sum())
