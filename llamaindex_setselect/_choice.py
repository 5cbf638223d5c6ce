"""The way from a query and nodes to the chosen nodes, which the postprocessor and the retriever share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from numpy.typing import ArrayLike

from shared_core import InvalidInputError
from shared_core.retrieval.items import copy_with
from shared_core.retrieval.request import Asked, Request
from shared_core.signals.extraction import QueryParts, aparts_of, parts_of, text_to_embed

from .stores.rows import RowsById

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
    source, found = settings._vectors, _Found.of(nodes)
    found, rows = found.with_rows(source.fetch(found.nodes, found.ids, embed_unknown=embed_unknown))
    return _choose(request, found, rows, asked, settings.scores, len(nodes), fetch_k, source.widest)


async def achoose_nodes(
    settings: SetSelectPostprocessor,
    request: Request,
    nodes: Sequence[NodeWithScore],
    asked: Asked,
    *,
    embed_unknown: bool = True,
    fetch_k: int | None = None,
) -> Chosen:
    """As :func:`choose_nodes`; a choice that may take its time runs in a thread, out of the event loop's way."""
    source, found = settings._vectors, _Found.of(nodes)
    found, rows = found.with_rows(await source.afetch(found.nodes, found.ids, embed_unknown=embed_unknown))
    arguments = (request, found, rows, asked, settings.scores, len(nodes), fetch_k, source.widest)
    if request.is_quick(rows):
        return _choose(*arguments)
    return await asyncio.to_thread(_choose, *arguments)


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


class _Found(NamedTuple):
    """Nodes to choose among, of those with one id the first, and their ids."""

    scored: list[NodeWithScore]
    nodes: list[BaseNode]
    ids: list[str]

    @classmethod
    def of(cls, nodes: Sequence[NodeWithScore]) -> _Found:
        first: dict[str, NodeWithScore] = {}
        for scored in nodes:
            first.setdefault(scored.node.node_id, scored)
        return cls([*first.values()], [scored.node for scored in first.values()], [*first])

    def with_rows(self, vectors: Mapping[str, ArrayLike]) -> tuple[_Found, Any]:
        """Those that there are vectors for, and these row by row."""
        if isinstance(vectors, RowsById) and vectors.ids == self.ids:
            return self, vectors.array
        kept = [row for row, name in enumerate(self.ids) if name in vectors]
        ids = [self.ids[row] for row in kept]
        found = _Found([self.scored[row] for row in kept], [self.nodes[row] for row in kept], ids)
        return found, [np.asarray(vectors[name]) for name in ids]


def _choose(
    request: Request,
    found: _Found,
    rows: Any,
    asked: Asked,
    scores: bool,
    fetched: int,
    fetch_k: int | None,
    widest: int,
) -> Chosen:
    if not found.ids:
        return Chosen([], None)
    choice = request.choose(found.nodes, found.ids, rows, asked)
    selection = choice.selection
    reasons = zip(selection.indices.tolist(), selection.relevance.tolist(), selection.gains.tolist(), strict=True)
    returned = [_copy(found.scored[row], cosine, gain, scores) for row, cosine, gain in reasons]
    return Chosen(returned, None if fetch_k is None else request.wider(choice, fetched, fetch_k, widest))


def _copy(scored: NodeWithScore, cosine: float, gain: float, scores: bool) -> NodeWithScore:
    node = scored.node
    changes: dict[str, Any] = {"metadata": {**node.metadata, GAIN_KEY: gain} if scores else dict(node.metadata)}
    if scores:
        # Excluded, so that the prompt and the text to embed stay what they were.
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
            changes[name] = [*(key for key in getattr(node, name) if key != GAIN_KEY), GAIN_KEY]
    copied: NodeWithScore = copy_with(scored, {"node": copy_with(node, changes), "score": cosine})
    return copied
