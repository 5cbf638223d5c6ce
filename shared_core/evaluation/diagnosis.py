"""What a corpus holds, without any question: copies, near copies, sources, and which texts lead to others."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import is_missing, quoted
from ..candidates import REFERENCE_KINDS, as_unit_rows
from ..errors import InvalidInputError
from ..signals.embedding_models import Track, without_progress
from ..texts import Texts
from ..texts.identifiers import SYMBOL
from .corpus import Document
from .results import counted, number, percent

# How many texts of the corpus are searched with, as if each were a question.
TYPICAL = 200
# Two texts nearly repeat each other above this cosine, after the mean vector of all was subtracted.
NEAR = 0.9
# The typical texts are drawn from what so many searches in random directions find, each of so many texts.
_DIRECTIONS, _WIDE = 8, 2_500
_LEADS = {
    "name": "names another one", "link": "links to another one", "citation": "cites another one by number or code",
    "neighbour": "stands next to another one",
}  # fmt: skip


class Found(NamedTuple):
    """What a search found, the nearest first: texts without what an index puts before them, vectors, and sources.

    ``read_texts`` gives the texts with their references.
    """

    bodies: Sequence[str]
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

    def __repr__(self) -> str:
        return f"Diagnosis({quoted(self.title)}, {counted(self.typical, 'text')})"

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
        vectors = np.asarray(found.vectors, np.float64)
        seen: dict[str, int] = {}
        for body, vector in zip(found.bodies, vectors, strict=True):
            # The copies of a text are told apart by their number, because some stores return no ids.
            seen[body] = seen.get(body, 0) + 1
            known.setdefault((body, seen[body]), vector)
        if len(found.bodies) < min(_WIDE, widest):
            break
    usable = [(body, vector) for (body, _), vector in known.items() if vector.any()]
    if not usable:
        raise InvalidInputError("all vectors are zero" if known else "the store holds no texts")
    drawn = [usable[row] for row in random.permutation(len(usable))[:TYPICAL]]
    mean = as_unit_rows(np.array([vector for _, vector in drawn])).mean(axis=0)
    looked = [_look(search(v, fetch_k + 1), body, v, mean) for body, v in track(drawn, "Looking at texts")]
    return Diagnosis(title, documents, len(drawn), fetch_k, tuple(_tabulate(looked, counted(len(drawn), "text"))))


class _Look(NamedTuple):
    """What stands around one text: copies, near copies, different sources (0: none known), and texts led to by kind."""

    copies: int
    near: int
    sources: int
    led_to: NDArray[np.int64]


def _look(found: Found, body: str, vector: NDArray[np.float64], mean: NDArray[np.float64]) -> _Look:
    copies = sum(other == body for other in found.bodies) - 1 if body.strip() else 0
    unit = as_unit_rows(as_unit_rows(np.vstack([vector[None], found.vectors]).astype(np.float64)) - mean)
    near = {other for other, cosine in zip(found.bodies, unit[1:] @ unit[0], strict=True) if cosine > NEAR}
    sources = {source for source in found.sources if not is_missing(source)}
    texts, led_to = found.read_texts(), np.zeros(len(REFERENCE_KINDS), np.int64)
    references = texts.find_references()
    if references is not None:
        # Symbols of code are left out: most of what a manual defines are names of its examples, such as "my_view".
        symbols = [bool(called) and all(one.family == SYMBOL for one in called) for called in texts.identifiers]
        by_kind = [(references.strength > 0) & (references.kinds == kind) for kind in range(len(REFERENCE_KINDS))]
        by_kind[REFERENCE_KINDS.index("citation")][:, symbols] = False
        led_to = np.array([of_kind.any(axis=0).sum() for of_kind in by_kind])
    return _Look(max(copies, 0), len(near - {body}), len(sources), led_to)


def _tabulate(looked: Sequence[_Look], texts: str) -> Iterator[Finding]:
    def share(key: str, name: str, holds: Sequence[bool], more: str = "") -> Finding:
        part = float(np.mean(holds))
        return Finding(key, name, part, f"{percent(part)} of {texts}{more}")

    yield share("copies", "Texts that are stored more than once", [one.copies > 0 for one in looked])
    yield share("near", f"Texts that another one nearly repeats (cosine above {NEAR:g})", [o.near > 0 for o in looked])
    sourced = [one.sources for one in looked if one.sources]
    if sourced:
        several = f"; a search finds {counted(round(float(np.median(sourced))), 'source')}"
        yield share("sources", "Searches that find several sources", [one.sources > 1 for one in looked], several)
    for kind, key in enumerate(REFERENCE_KINDS):
        led = np.array([one.led_to[kind] for one in looked])
        more = f"; {number(float(led.mean()), 1)} texts are led to on average" if led.any() else ""
        yield share(key, f"Searches in which a text {_LEADS[key]}", (led > 0).tolist(), more)


def search_documents(documents: Sequence[Document], rows: NDArray[np.floating]) -> SearchByVector:
    """Exact search by the cosine among documents with these vectors, shape (n, d)."""
    unit = as_unit_rows(rows)

    def search(vector: NDArray[np.float64], k: int) -> Found:
        nearest = np.argsort(-(unit @ vector.astype(unit.dtype)), kind="stable")[:k].tolist()
        found = [documents[row] for row in nearest]
        bodies, sources = [one.text for one in found], [one.source for one in found]
        return Found(bodies, unit[nearest], sources, lambda: Texts(bodies, [one.facts for one in found]))

    return search
