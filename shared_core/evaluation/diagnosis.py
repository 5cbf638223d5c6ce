"""What a corpus holds, without any question: copies, near copies, sources, and which texts lead to others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._values import is_missing
from ..candidates import REFERENCE_KINDS, as_unit_rows
from ..errors import InvalidInputError
from ..signals.embedding_models import Track, without_progress
from ..texts import Texts
from .corpus import Document
from .results import counted, number, percent

# How many texts of the corpus are searched with, as if each were a question.
TYPICAL = 200
# Two texts nearly repeat each other above this cosine, after the mean vector of all was subtracted.
NEAR = 0.9
# The typical texts are drawn from what so many searches in random directions find, each of so many texts.
_DIRECTIONS, _WIDE = 8, 2_500
# The rows of the table.
_ROWS = {
    "copies": "Texts that are stored more than once",
    "near": f"Texts that another one nearly repeats (cosine above {NEAR:g})",
    "sources": "Searches that find several sources",
    "name": "Searches in which a text names another one",
    "link": "Searches in which a text links to another one",
    "citation": "Searches in which a text cites another one by number or code",
    "neighbour": "Searches in which a text stands next to another one",
}


class Found(NamedTuple):
    """What a search found, the nearest first: texts without what an index puts before them, vectors, and sources.

    ``read_texts`` gives the texts with their references.
    """

    bodies: list[str]
    vectors: ArrayLike
    sources: Sequence[Hashable | None]
    read_texts: Callable[[], Texts]


# ``search(vector, k)``: the k nearest texts.
SearchByVector = Callable[[NDArray[np.float64], int], Found]


class Finding(NamedTuple):
    """A row of the table: what is counted, its share, and the figure in words."""

    key: str
    name: str
    share: float
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """What a corpus holds. No figure says what a setting finds: only questions with gold ids tell that.

    ``documents`` is the number of texts of the corpus; None if it is not known. ``typical`` of them were looked at,
    each with its ``fetch_k`` nearest texts.
    """

    title: str
    documents: int | None
    typical: int
    fetch_k: int
    findings: tuple[Finding, ...]

    @property
    def text(self) -> str:
        """How the figures are to be read."""
        return (
            f"{counted(self.typical, 'text')} were looked at, each with its {self.fetch_k} nearest. These figures say "
            "what repeats and what leads where. What a setting finds, only questions with the ids of the right texts "
            "(gold) tell."
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """The diagnosis as JSON."""
        rows = [finding._asdict() for finding in self.findings]
        return json.dumps({**asdict(self), "findings": rows, "text": self.text}, ensure_ascii=False, indent=indent)


def diagnose(
    search: SearchByVector,
    dimension: int,
    *,
    title: str,
    documents: int | None,
    fetch_k: int,
    widest: int = _WIDE,
    track: Track = without_progress,
) -> Diagnosis:
    """What a corpus holds, from searches for typical texts, drawn at random. An InvalidInputError if it has no texts.

    ``dimension`` is the length of the vectors, and ``widest`` the most texts that a search returns.
    """
    random, known = np.random.default_rng(0), dict[tuple[str, int], NDArray[np.float64]]()
    for _ in range(_DIRECTIONS):
        found = search(random.standard_normal(dimension), min(_WIDE, widest))
        # The copies of a text are told apart by their number, because some stores return no ids.
        seen: Counter[str] = Counter()
        for body, vector in zip(found.bodies, np.asarray(found.vectors, np.float64), strict=True):
            seen[body] += 1
            known.setdefault((body, seen[body]), vector)
        if len(found.bodies) < min(_WIDE, widest):
            break
    usable = [(body, vector) for (body, _), vector in known.items() if vector.any()]
    if not usable:
        raise InvalidInputError("all vectors are zero" if known else "the store holds no texts")
    drawn = [usable[row] for row in random.permutation(len(usable))[:TYPICAL]]
    mean = as_unit_rows(np.array([vector for _, vector in drawn])).mean(axis=0)
    looked = np.array([_look(search(v, fetch_k + 1), body, v, mean) for body, v in track(drawn, "Looking at texts")])
    return Diagnosis(title, documents, len(drawn), fetch_k, tuple(_tabulate(looked)))


def _look(found: Found, body: str, vector: NDArray[np.float64], mean: NDArray[np.float64]) -> list[int]:
    """Around one text: copies, near copies, different sources (0: none known), and texts led to by each kind."""
    copies = found.bodies.count(body) - 1 if body.strip() else 0
    unit = as_unit_rows(as_unit_rows(np.vstack([vector[None], found.vectors]).astype(np.float64)) - mean)
    near = {other for other, cosine in zip(found.bodies, unit[1:] @ unit[0], strict=True) if cosine > NEAR}
    sources = {source for source in found.sources if not is_missing(source)}
    texts, led_to = found.read_texts(), [0] * len(REFERENCE_KINDS)
    references = texts.find_references()
    if references is not None:
        by_kind = [(references.strength > 0) & (references.kinds == kind) for kind in range(len(REFERENCE_KINDS))]
        led_to = [int(of_kind.any(axis=0).sum()) for of_kind in by_kind]
    return [max(copies, 0), len(near - {body}), len(sources), *led_to]


def _tabulate(looked: NDArray[np.int64]) -> Iterator[Finding]:
    for key, column in zip(_ROWS, looked.T, strict=True):
        holds = column > (key == "sources")
        text = f"{percent(float(holds.mean()))} of {counted(len(looked), 'text')}"
        if key in REFERENCE_KINDS and holds.any():
            text += f"; {number(float(column.mean()), 1)} texts are led to on average"
        # No text may have a source.
        if key != "sources" or column.any():
            yield Finding(key, _ROWS[key], float(holds.mean()), text)


def search_documents(documents: Sequence[Document], rows: NDArray[np.floating]) -> SearchByVector:
    """Exact search by the cosine among documents with these vectors, shape (n, d)."""
    unit = as_unit_rows(rows)

    def search(vector: NDArray[np.float64], k: int) -> Found:
        nearest = np.argsort(-(unit @ vector.astype(unit.dtype)), kind="stable")[:k].tolist()
        found = [documents[row] for row in nearest]
        bodies, sources = [one.text for one in found], [one.source for one in found]
        return Found(bodies, unit[nearest], sources, lambda: Texts(bodies, [one.read_facts() for one in found]))

    return search
