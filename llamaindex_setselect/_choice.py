"""The way from a query and nodes to the chosen nodes, which the postprocessor and the retriever share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from numpy.typing import ArrayLike, NDArray

from shared_core import PAP, Candidates, InvalidInputError, choose
from shared_core.quality import ItemValue, item_values
from shared_core.selection import resolve_selector

if TYPE_CHECKING:
    from .postprocessor import SetSelectPostprocessor

GAIN_KEY = "selection_score"


@dataclass(frozen=True, eq=False)
class Asked:
    """The query's embedding, and the perspective to see it under."""

    query: Sequence[float]
    pap: PAP | None

    @property
    def searched(self) -> list[float]:
        """What to search a store with."""
        return list(self.query) if self.pap is None else self.pap.project(self.query).tolist()


def ask(settings: SetSelectPostprocessor, bundle: QueryBundle) -> Asked:
    """Embed what is not embedded yet: the query, a perspective given as text."""
    texts = _to_embed(settings, bundle)
    if not texts:
        return _asked(settings, bundle, {})
    model = settings._vectors.need_model("the query or the perspective")
    embedded = {name: model.get_agg_embedding_from_queries(t) for name, t in texts.items()}
    return _asked(settings, bundle, embedded)


async def aask(settings: SetSelectPostprocessor, bundle: QueryBundle) -> Asked:
    """As :func:`ask`."""
    texts = _to_embed(settings, bundle)
    if not texts:
        return _asked(settings, bundle, {})
    model = settings._vectors.need_model("the query or the perspective")
    embedded = {name: await model.aget_agg_embedding_from_queries(t) for name, t in texts.items()}
    return _asked(settings, bundle, embedded)


def choose_nodes(settings: SetSelectPostprocessor, nodes: Sequence[NodeWithScore], asked: Asked) -> list[NodeWithScore]:
    """Copies of the chosen nodes, in the order of choice."""
    scored = _distinct(nodes)
    return _choose(settings, scored, settings._vectors.fetch([s.node for s in scored]), asked)


async def achoose_nodes(
    settings: SetSelectPostprocessor, nodes: Sequence[NodeWithScore], asked: Asked
) -> list[NodeWithScore]:
    """As :func:`choose_nodes`; the choice itself runs in a thread, out of the event loop's way."""
    scored = _distinct(nodes)
    vectors = await settings._vectors.afetch([s.node for s in scored])
    return await asyncio.to_thread(_choose, settings, scored, vectors, asked)


def _to_embed(settings: SetSelectPostprocessor, bundle: QueryBundle) -> dict[str, list[str]]:
    texts = {}
    if bundle.embedding is None:
        if not bundle.embedding_strs:
            raise InvalidInputError("the query is empty: it has neither text nor an embedding")
        texts["query"] = bundle.embedding_strs
    if isinstance(settings.perspective, str) and settings._remembered_perspective() is None:
        texts["perspective"] = [settings.perspective]
    return texts


def _asked(settings: SetSelectPostprocessor, bundle: QueryBundle, embedded: Mapping[str, list[float]]) -> Asked:
    query = embedded["query"] if bundle.embedding is None else bundle.embedding
    perspective: ArrayLike | None = settings.perspective
    if isinstance(perspective, str):
        if "perspective" in embedded:
            settings._remember_perspective(perspective, embedded["perspective"])
        perspective = embedded.get("perspective") or settings._remembered_perspective()
    if perspective is None:
        return Asked(query, None)
    return Asked(query, PAP(perspective, corpus=settings.corpus, direction=settings.direction))


def _distinct(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    first: dict[str, NodeWithScore] = {}
    for scored in nodes:
        first.setdefault(scored.node_id, scored)
    return list(first.values())


def _choose(
    settings: SetSelectPostprocessor,
    scored: Sequence[NodeWithScore],
    vectors: Mapping[str, ArrayLike],
    asked: Asked,
) -> list[NodeWithScore]:
    scored = [s for s in scored if s.node_id in vectors]
    if not scored:
        return []
    nodes = [s.node for s in scored]
    ids = [node.node_id for node in nodes]
    candidates = Candidates(
        asked.query,
        _matrix(ids, vectors),
        quality=_values(nodes, settings.quality, "quality"),
        ids=ids,
        costs=_values(nodes, settings.costs, "costs"),
    )
    if asked.pap is not None:
        candidates = asked.pap.apply(candidates)
    shown = set(settings.shown)
    chosen = choose(
        candidates,
        resolve_selector(settings.selector, settings.selector_kwargs),
        settings.top_n,
        budget=settings.budget,
        shown=[row for row, node_id in enumerate(ids) if node_id in shown],
        score_threshold=settings.score_threshold,
    )
    picks = zip(chosen.indices.tolist(), chosen.relevance.tolist(), chosen.gains.tolist(), strict=True)
    returned = []
    for row, relevance, gain in picks:
        node = _with_gain(nodes[row], gain) if settings.scores else nodes[row]
        returned.append(scored[row].model_copy(update={"node": node, "score": relevance}))
    return returned


def _matrix(ids: Sequence[str], vectors: Mapping[str, ArrayLike]) -> NDArray[Any]:
    rows = [np.asarray(vectors[node_id]) for node_id in ids]
    for node_id, row in zip(ids, rows, strict=True):
        if row.shape != rows[0].shape:
            raise InvalidInputError(
                f"node {node_id!r} has a vector of shape {row.shape}, node {ids[0]!r} one of shape "
                f"{rows[0].shape}: they most likely come from different embedding models"
            )
    return np.stack(rows)


def _values(nodes: Sequence[BaseNode], source: ItemValue | None, what: str) -> NDArray[np.float64] | None:
    return None if source is None else item_values(nodes, source, what)


def _with_gain(node: BaseNode, gain: float) -> BaseNode:
    # Excluded, so that the prompt and the text to embed stay what they were.
    excluded = {
        name: [*(key for key in getattr(node, name) if key != GAIN_KEY), GAIN_KEY]
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    return node.model_copy(update={"metadata": {**node.metadata, GAIN_KEY: gain}, **excluded})
