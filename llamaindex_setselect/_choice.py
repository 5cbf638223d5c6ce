"""The way from a query and nodes to the chosen nodes, which the postprocessor and the retriever share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from numpy.typing import ArrayLike

from shared_core import InvalidInputError
from shared_core.extraction import QueryParts, aparts_of, parts_of, text_to_embed
from shared_core.request import Asked, Request

if TYPE_CHECKING:
    from .postprocessor import SetSelectPostprocessor

GAIN_KEY = "selection_score"


def ask(settings: SetSelectPostprocessor, request: Request, bundle: QueryBundle) -> Asked:
    """Embed what is not embedded yet: the query, what the perspective is made from."""
    wanted = _wanted(settings, bundle, parts_of(settings.perspective, bundle.query_str))
    if not wanted.texts:
        return _asked(settings, request, bundle, wanted, {})
    model = settings._vectors.need_model("the query or the perspective")
    embedded = {name: model.get_agg_embedding_from_queries(t) for name, t in wanted.texts.items()}
    return _asked(settings, request, bundle, wanted, embedded)


async def aask(settings: SetSelectPostprocessor, request: Request, bundle: QueryBundle) -> Asked:
    """As :func:`ask`."""
    wanted = _wanted(settings, bundle, await aparts_of(settings.perspective, bundle.query_str))
    if not wanted.texts:
        return _asked(settings, request, bundle, wanted, {})
    model = settings._vectors.need_model("the query or the perspective")
    embedded = {name: await model.aget_agg_embedding_from_queries(t) for name, t in wanted.texts.items()}
    return _asked(settings, request, bundle, wanted, embedded)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Copies of the chosen nodes, in the order of choice, and how many to fetch if a wider search would help."""

    nodes: list[NodeWithScore]
    wider: int | None


def choose_nodes(
    settings: SetSelectPostprocessor,
    request: Request,
    nodes: Sequence[NodeWithScore],
    asked: Asked,
    *,
    embed_unknown: bool = True,
    fetch_k: int | None = None,
) -> Chosen:
    """Choose among nodes; those that the store does not know are embedded or left out."""
    vectors = settings._vectors.fetch(_nodes(nodes), embed_unknown=embed_unknown)
    return _choose(request, nodes, vectors, asked, settings.scores, fetch_k, settings._vectors.widest)


async def achoose_nodes(
    settings: SetSelectPostprocessor,
    request: Request,
    nodes: Sequence[NodeWithScore],
    asked: Asked,
    *,
    embed_unknown: bool = True,
    fetch_k: int | None = None,
) -> Chosen:
    """As :func:`choose_nodes`; the choice itself runs in a thread, out of the event loop's way."""
    vectors = await settings._vectors.afetch(_nodes(nodes), embed_unknown=embed_unknown)
    return await asyncio.to_thread(
        _choose, request, nodes, vectors, asked, settings.scores, fetch_k, settings._vectors.widest
    )


@dataclass(frozen=True)
class _Wanted:
    """The texts to embed by what they are for, and the perspective's where its embedding is known already."""

    texts: dict[str, list[str]]
    side: str | None
    known: list[float] | None


def _wanted(settings: SetSelectPostprocessor, bundle: QueryBundle, parts: QueryParts | None) -> _Wanted:
    texts = {}
    if bundle.embedding is None:
        if not bundle.embedding_strs:
            raise InvalidInputError("the query is empty: it has neither text nor an embedding")
        texts["query"] = bundle.embedding_strs
    side = text_to_embed(parts, bundle.query_str, settings.perspective_vector)
    if side is None:
        return _Wanted(texts, None, None)
    known = settings._remembered_perspective(side)
    if known is None:
        texts["side"] = [side]
    if settings.perspective_vector == "difference" and bundle.custom_embedding_strs:
        # The query is searched for by other words (HyDE), from which its root cannot be taken away.
        texts["asked"] = [bundle.query_str]
    return _Wanted(texts, side, known)


def _asked(
    settings: SetSelectPostprocessor,
    request: Request,
    bundle: QueryBundle,
    wanted: _Wanted,
    embedded: Mapping[str, list[float]],
) -> Asked:
    query = embedded["query"] if bundle.embedding is None else bundle.embedding
    side = embedded.get("side", wanted.known)
    if wanted.side is not None and "side" in embedded:
        settings._remember_perspective(wanted.side, embedded["side"])
    return request.asked(query, side, embedded.get("asked"))


def _nodes(nodes: Sequence[NodeWithScore]) -> list[BaseNode]:
    first: dict[str, BaseNode] = {}
    for scored in nodes:
        first.setdefault(scored.node_id, scored.node)
    return list(first.values())


def _choose(
    request: Request,
    nodes: Sequence[NodeWithScore],
    vectors: Mapping[str, ArrayLike],
    asked: Asked,
    scores: bool,
    fetch_k: int | None,
    widest: int,
) -> Chosen:
    scored: dict[str, NodeWithScore] = {}
    for node in nodes:
        if node.node_id in vectors:
            scored.setdefault(node.node_id, node)
    if not scored:
        return Chosen([], None)
    ids = list(scored)
    rows = [np.asarray(vectors[node_id]) for node_id in ids]
    choice = request.choose([s.node for s in scored.values()], ids, rows, asked)
    reasons = zip(choice.items, choice.selection.relevance.tolist(), choice.selection.gains.tolist(), strict=True)
    returned = []
    for node, cosine, gain in reasons:
        copy = _with_gain(node, gain) if scores else node.model_copy()
        returned.append(scored[node.node_id].model_copy(update={"node": copy, "score": cosine}))
    return Chosen(returned, None if fetch_k is None else request.wider(choice, len(nodes), fetch_k, widest))


def _with_gain(node: BaseNode, gain: float) -> BaseNode:
    # Excluded, so that the prompt and the text to embed stay what they were.
    excluded = {
        name: [*(key for key in getattr(node, name) if key != GAIN_KEY), GAIN_KEY]
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    return node.model_copy(update={"metadata": {**node.metadata, GAIN_KEY: gain}, **excluded})
