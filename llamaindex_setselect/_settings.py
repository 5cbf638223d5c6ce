"""The settings that all LlamaIndex classes share, and the flow from a query to selected nodes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    QueryBundle,
    QueryType,
    TextNode,
)
from llama_index.core.vector_stores.types import MetadataFilters

from shared_core import InvalidInputError
from shared_core.retrieval.events import describe
from shared_core.retrieval.flow import Flow
from shared_core.retrieval.inputs import EmbeddedQuery, Vector, check_instance, check_question, embed_question
from shared_core.retrieval.pool import ItemSelection, Pool, read_scores
from shared_core.retrieval.request import Request
from shared_core.retrieval.result import JOINED, Joined, arrange
from shared_core.retrieval.settings import Call, Settings
from shared_core.signals.embedding_models import as_embedding

from .vectors import NodeVectors, embed_as_queries

EVENT = "setselect"

dispatcher = get_dispatcher(__name__)


def check_query(query: Any) -> Any:
    """``query``, which has to be a text or a QueryBundle."""
    check_question(query.query_str if isinstance(query, QueryBundle) else query)
    return query


class QueryChecks:
    """Checks the query of a retriever before LlamaIndex puts it into an event, whose error is of another kind.

    It is no subclass of LlamaIndex's retriever, which would trace each of these methods once more.
    """

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """The nodes for a query."""
        nodes: list[NodeWithScore] = super().retrieve(check_query(str_or_query_bundle))  # type: ignore[misc]
        return nodes

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """The async version of :meth:`retrieve`."""
        nodes: list[NodeWithScore] = await super().aretrieve(check_query(str_or_query_bundle))  # type: ignore[misc]
        return nodes


def check_filters(filters: Any) -> Any:
    """``filters``, which have to be LlamaIndex's own."""
    remedy = ": pass MetadataFilters(filters=[MetadataFilter(key=..., value=...)])"
    if filters is not None:
        check_instance(filters, MetadataFilters, "filters", remedy)
    return filters


def _document_of(node: BaseNode) -> str:
    """The document that contains the node, or else the node. A pickle holds the name of this function."""
    return node.ref_doc_id or node.node_id


class SelectionSettings(Settings):
    """The fields of all LlamaIndex classes."""

    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    """By default the index's, else the one set in LlamaIndex's ``Settings``."""

    vector_store_kwargs: dict[str, Any] | None = None
    """Arguments of the store's search. A postprocessor takes those that name the part of the store in which vectors are
    looked up: ``milvus_partition_names`` or ``shard_identifier``."""

    # The class of the settings of a call; its errors name the field that says how many nodes are selected.
    _call: ClassVar[type[Call]] = Call
    # Set by the classes that search an index. The postprocessor has a field of its own.
    _index: VectorStoreIndex | None = PrivateAttr(default=None)

    # Type checkers read the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **settings: Any) -> None:
            self._refuse_unknown(settings)
            super().__init__(**settings)
            _ = self._request  # checks the settings together

    @property
    def _request(self) -> Request:
        """The request of every call; made again if a field has changed."""
        made: Request | None = self.__dict__.get("_made")
        if made is None:
            made = self.__dict__["_made"] = self._make_request()
        return made

    def _make_request(self) -> Request:
        fields = {name: getattr(self, name) for name in Call.model_fields.keys() & type(self).model_fields.keys()}
        fields["source"] = self.source or _document_of
        call = self._call(**fields, k=getattr(self, self.size_name))
        return Request(call, view=attrgetter("node"), refer_by_default=True)

    @property
    def _vectors(self) -> NodeVectors:
        return NodeVectors.of(self._index, self.embed_model, self.vector_store_kwargs)


def embed_queries(settings: SelectionSettings, request: Request, bundle: QueryBundle) -> Flow[list[EmbeddedQuery]]:
    """Embed what has no embedding yet: the query, its sub-questions, and the text that its perspective needs."""
    if bundle.embedding is None and not any(map(str.strip, bundle.embedding_strs)):
        raise InvalidInputError("the query is empty: it has neither text nor an embedding")

    def embed(texts: list[str]) -> Flow[list[Vector]]:
        own = [] if bundle.embedding is not None else bundle.embedding_strs
        asked, rows = [*own, *texts[1:]], list[Vector]()
        if asked:
            rows = [*(yield from embed_as_queries(settings._vectors.need_model(), asked))]
        if bundle.embedding is not None:
            return [as_embedding(bundle.embedding, "QueryBundle.embedding", bundle.query_str), *rows]
        # The mean, as in LlamaIndex's own retriever.
        return [np.mean(rows[: len(own)], axis=0), *rows[len(own) :]]

    return (yield from embed_question(request.settings, bundle.query_str, embed))


def read_ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    """The nodes' ids."""
    return [node.node_id for node in nodes]


def read_vectors(
    vectors: NodeVectors, nodes: Sequence[NodeWithScore], *, embed_unknown: bool, fetch_k: int | None = None
) -> Flow[Pool]:
    """The nodes for which there are vectors, with their ids and vectors."""
    exhausted = fetch_k is None or len(nodes) < fetch_k
    items, ids, rows = yield from vectors.fetch(nodes, embed_unknown=embed_unknown)
    scores = read_scores(scored.score for scored in items)
    known = {*ids}
    without = [name for name in read_ids(nodes) if name not in known]
    return Pool(items, ids, _embedded_text, body_of, rows, fetch_k, exhausted, scores, without)


def _embedded_text(scored: NodeWithScore) -> str:
    return scored.node.get_content(metadata_mode=MetadataMode.EMBED)


def body_of(scored: NodeWithScore) -> str:
    """The text by which a node is compared with others; empty if the node stands for more than its text."""
    node = scored.node
    if node.get_type() in (ObjectType.TEXT, ObjectType.DOCUMENT):
        return node.get_content(metadata_mode=MetadataMode.NONE)
    # An image with its caption, or a pointer to another object.
    return ""


def finish(settings: SelectionSettings, request: Request, selected: ItemSelection) -> list[NodeWithScore]:
    """The selected nodes in the ``order`` asked for; sends the event that holds the gains.

    It is called after the flow, because a flow may run in another thread, where handlers do not know the current span.
    """
    nodes = arrange(request, selected, _with_scores, _join_nodes)
    if is_heard():
        data = {"k": request.k, "vector_source": settings._vectors.words, **describe(request, selected)}
        dispatcher.event(ReRankEndEvent(nodes=nodes, tags={EVENT: data}))
    return nodes


def is_heard() -> bool:
    """Whether a handler receives events. LlamaIndex's default handler ignores them, and making them takes time."""
    sender, handlers = dispatcher, [*dispatcher.event_handlers]
    while sender.propagate:
        sender = sender.parent
        handlers += sender.event_handlers
    return any(type(handler) is not NullEventHandler for handler in handlers)


def _join_nodes(scored: list[NodeWithScore], joined: Joined) -> NodeWithScore:
    """One node of several neighbours; its previous node is that of the first, and its next node that of the last."""
    nodes: list[Any] = [one.node for one in scored]
    first, last = nodes[0], nodes[-1]
    relationships = {**first.relationships, NodeRelationship.NEXT: last.next_node}
    hidden: dict[str, Any] = {
        name: [*dict.fromkeys(key for node in nodes for key in getattr(node, name)), JOINED]
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    node = TextNode(
        id_=str(joined.id),
        text=joined.text,
        metadata=joined.metadata,
        relationships={key: value for key, value in relationships.items() if value},
        start_char_idx=getattr(first, "start_char_idx", None),
        end_char_idx=getattr(last, "end_char_idx", None),
        **hidden,
        **{name: getattr(first, name) for name in ("metadata_template", "metadata_separator", "text_template")},
    )
    return NodeWithScore(node=node)


def _with_scores(scored: NodeWithScore, relevance: float, added: dict[str, Any]) -> NodeWithScore:
    """The node with its relevance; a copy of it has the scores in its metadata, hidden from prompts and embedding."""
    node = scored.node
    if added:
        changes = {
            "metadata": {**node.metadata, **added},
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *added],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *added],
        }
        node = node.model_copy(update=changes)
    return NodeWithScore(node=node, score=relevance)
