"""One call's settings, checked, and the way from documents with vectors to the chosen ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from shared_core import PAP, BudgetError, Candidates, Selector, choose
from shared_core.checks import identifiers, integer, number
from shared_core.perspective import checked_direction
from shared_core.quality import ItemValue, item_values
from shared_core.selection import resolve_selector, selector_names, selector_parameters

from .vectors import Hits

CHOICE_KEYS = (
    "k",
    "fetch_k",
    "score_threshold",
    "shown",
    "budget",
    "costs",
    "quality",
    "perspective",
    "direction",
    "corpus",
    "scores",
    "search_type",
    "selector",
)


@dataclass(frozen=True)
class Request:
    """What one call asks for, checked."""

    selector: Selector
    k: int | None
    fetch_k: int
    score_threshold: float | None
    shown: tuple[Hashable, ...]
    budget: float | None
    costs: ItemValue | None
    quality: ItemValue | None
    perspective: Any
    direction: str
    corpus: bool
    scores: bool
    store_kwargs: dict[str, Any]

    @classmethod
    def parse(cls, settings: dict[str, Any]) -> Request:
        """Check settings by the names in ``CHOICE_KEYS``; selectors' parameters are found, the rest is the store's."""
        rest = dict(settings)
        taken = {name: rest.pop(name, None) for name in CHOICE_KEYS}
        k, fetch_k = _sizes(taken["k"], taken["fetch_k"], taken["budget"])
        shown = identifiers(taken["shown"] or (), "shown")
        return cls(
            selector=_selector(taken["selector"], taken["search_type"], rest),
            k=k,
            fetch_k=fetch_k + len(shown),
            score_threshold=_threshold(taken["score_threshold"]),
            shown=shown,
            budget=_budget(taken["budget"], taken["costs"]),
            costs=taken["costs"],
            quality=taken["quality"],
            perspective=taken["perspective"],
            direction=checked_direction(taken["direction"]),
            corpus=taken["corpus"],
            scores=taken["scores"],
            store_kwargs=rest,
        )

    @property
    def perspective_text(self) -> str | None:
        """The perspective where it is a text, to be embedded."""
        return self.perspective if isinstance(self.perspective, str) else None

    def pap(self, embedded: Sequence[float] | None) -> PAP | None:
        """The projection asked for; ``embedded`` is the perspective text's embedding."""
        if self.perspective is None:
            return None
        return PAP(self.perspective if embedded is None else embedded, corpus=self.corpus, direction=self.direction)

    def choose(self, hits: Hits, query: list[float], pap: PAP | None) -> list[Document]:
        """Copies of the chosen documents, in the order of choice."""
        documents, vectors = _distinct(*hits)
        if not documents:
            return []
        candidates = Candidates(
            query,
            vectors,
            quality=None if self.quality is None else item_values(documents, self.quality, "quality"),
            ids=[document.id for document in documents],
            costs=None if self.costs is None else item_values(documents, self.costs, "costs"),
        )
        if pap is not None:
            candidates = pap.apply(candidates)
        known = set(self.shown)
        chosen = choose(
            candidates,
            self.selector,
            self.k,
            budget=self.budget,
            shown=[row for row, document in enumerate(documents) if document.id in known],
            score_threshold=self.score_threshold,
        )
        picks = zip(chosen.indices.tolist(), chosen.relevance.tolist(), chosen.gains.tolist(), strict=True)
        return [self._copy(documents[row], relevance, gain) for row, relevance, gain in picks]

    def _copy(self, document: Document, relevance: float, gain: float) -> Document:
        metadata = dict(document.metadata)
        if self.scores:
            metadata |= {"relevance_score": relevance, "selection_score": gain}
        return document.model_copy(update={"metadata": metadata})


def _sizes(k: Any, fetch_k: Any, budget: Any) -> tuple[int | None, int]:
    if k is None and budget is None:
        k = 4
    if k is not None:
        k = integer(k, "k", 1)
    if fetch_k is None:
        return k, 50 if k is None else max(20, 5 * k)
    return k, integer(fetch_k, f"fetch_k (of which k={k or 1} are chosen)", k or 1)


def _selector(selector: Any, search_type: str, rest: dict[str, Any]) -> Selector:
    """The selector; its parameters are taken out of ``rest``."""
    parameters = {name: rest.pop(name) for name in all_parameters() if name in rest}
    wanted = search_type if selector is None else selector
    if wanted == "mmr" and not {"lambda_mult", "lambda_d"} & parameters.keys():
        # The migration from as_retriever(search_type="mmr") is to change the class and nothing else.
        parameters["lambda_mult"] = 0.5
    return resolve_selector(wanted, parameters)


def _threshold(score_threshold: Any) -> float | None:
    return None if score_threshold is None else number(score_threshold, "score_threshold (a cosine)", -1, 1)


def _budget(budget: Any, costs: Any) -> float | None:
    if budget is not None and costs is None:
        raise BudgetError(
            "a budget needs costs: a metadata key, or a function such as costs=lambda d: len(d.page_content) / 4"
        )
    return None if budget is None else number(budget, "budget")


def all_parameters() -> dict[str, None]:
    """Names of all selectors' parameters, in a fixed order."""
    return dict.fromkeys(p for name in selector_names() for p in selector_parameters(name))


def _distinct(documents: Sequence[Document], vectors: Any) -> tuple[Sequence[Document], Any]:
    """Each id once, the first of them; documents without an id cannot be told apart and stay."""
    first: dict[Hashable, int] = {}
    rows = [
        row
        for row, document in enumerate(documents)
        if document.id is None or first.setdefault(document.id, row) == row
    ]
    if len(rows) == len(documents):
        return documents, vectors
    return [documents[row] for row in rows], [vectors[row] for row in rows]
