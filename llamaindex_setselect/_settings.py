"""The settings that all LlamaIndex classes share, and the flow from a query to selected nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, ObjectType, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from pydantic import PlainSerializer, SkipValidation

from shared_core import InvalidInputError, InvalidParameterError, Kernel, Selector, SetSelectWarning
from shared_core.retrieval import (
    DEFAULT_SELECTOR,
    SETTINGS,
    EmbeddedQuery,
    Flow,
    Found,
    Order,
    Perspective,
    Request,
    Scale,
    Selected,
    Step,
    as_identifiers,
    as_perspective,
    as_vector,
    check_bool,
    check_integer,
    is_default,
    parameter_names,
    refuse_unknown,
)

from .vectors import NodeVectors, resolve_embed_model

EVENT = "setselect"
SCORE_KEYS = ("relevance_score", "selection_score")

dispatcher = get_dispatcher(__name__)

# The types and ranges are for editors, type checkers and the fields' JSON schema. Request.parse checks the values, so
# that both adapters raise the same errors. Without the serializer, pydantic warns when it dumps a list as an iterable.
T = TypeVar("T")
Setting = Annotated[T, SkipValidation, PlainSerializer(lambda value: value)]
Positive = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, le=1)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
SelectorOrName = Literal["ndpp", "mmr", "vrsd", "similarity"] | str | Selector
NodeNumber = str | Mapping[str, float] | Callable[[BaseNode], float]
NodeName = str | Mapping[str, Hashable] | Callable[[BaseNode], Hashable]


class SelectionSettings(BaseModel):
    """The settings of a selection; :class:`SetSelectPostprocessor` documents each of them."""

    top_n: Setting[Positive | None] = None
    selector: Setting[SelectorOrName] = DEFAULT_SELECTOR
    selector_kwargs: dict[str, Any] = Field(default_factory=dict)
    lambda_mult: Setting[Weight | None] = None
    lambda_b: Setting[Weight | None] = None
    refine: Setting[bool | None] = None
    kernel: Setting[Kernel | None] = None
    relevance_mapping: Setting[Literal["linear", "exponential"] | None] = None
    temperature: Setting[float | Literal["auto"] | None] = None
    ridge: Setting[NonNegative | None] = None
    relevance: Setting[NodeNumber | None] = None
    relevance_scale: Setting[Scale | None] = "minmax"
    quality: Setting[NodeNumber | None] = None
    score_threshold: Setting[float | None] = None
    shown: Setting[Iterable[str]] = ()
    budget: Setting[float | None] = None
    costs: Setting[NodeNumber | None] = None
    max_per_source: Setting[Positive | None] = None
    source: Setting[NodeName | None] = None
    drop_duplicates: Setting[bool] = True
    drop_near_duplicates: Setting[Cosine | None] = None
    order: Setting[Order] = "selection"
    perspective: Setting[Perspective] = None
    perspective_vector: Setting[Literal["text", "difference"]] = "text"
    direction: Setting[Literal["remove", "emphasize"]] = "remove"
    corpus: Setting[bool] = False
    scores: Setting[bool] = False
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    vector_store: BasePydanticVectorStore | None = Field(default=None, exclude=True)
    index: VectorStoreIndex | None = Field(default=None, exclude=True)

    model_config = ConfigDict(arbitrary_types_allowed=True)

    # Model, text and embedding of the last perspective. The next query most often has the same perspective.
    _perspective_memory: tuple[BaseEmbedding | None, str, list[float]] | None = PrivateAttr(default=None)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**_as_fields(type(self), settings))
        # The settings are checked here, because a pydantic validator would wrap the error in a ValidationError.
        self._request(warn=True)
        # Vectors of one store under the ids of another store's index would be wrong.
        store = self.vector_store
        if self.index is not None and store is not None and store is not self.index.vector_store:
            raise InvalidParameterError("index= uses another store than vector_store=: give one of them")

    @property
    def _vectors(self) -> NodeVectors:
        store = self.vector_store
        if store is None and self.index is not None:
            store = self.index.vector_store
        return NodeVectors(store, self.index, resolve_embed_model(self.embed_model, self.index))

    def _request(self, fetch_k: int | None = None, *, warn: bool = False) -> Request:
        check_bool(self.scores, "scores")
        if self.top_n is not None:
            check_integer(self.top_n, "top_n", 1)
        settings: dict[str, Any] = {"k": self.top_n, "fetch_k": fetch_k, "source": _document_of}
        for name in _FIELDS & self.model_fields_set:
            value = getattr(self, name)
            if value is not None or name == "relevance_scale":
                settings[name] = _OfNode(value) if name in OF_NODES and callable(value) else value
        if isinstance(self.relevance, str) and self.relevance == "score":
            settings["relevance"] = _score_of
        return Request.parse(settings | self.selector_kwargs, warn=warn)[0]

    def _warn_if_all_are_selected(self, request: Request, candidates: int, remedy: str) -> None:
        """Warn once if there are no more candidates than are asked for, so that every method selects the same."""
        # Pydantic compares private attributes. The flag is not one, so equal objects stay equal after a warning.
        if request.selects_all(candidates) and "_warned" not in self.__dict__:
            self.__dict__["_warned"] = True
            warnings.warn(
                f"top_n={request.k} of {candidates} candidates: all of them are selected, whatever the method. "
                f"{remedy}",
                SetSelectWarning,
                stacklevel=2,
            )


# The fields that are settings of a request or parameters of a selector, under the same name.
_FIELDS = {*SETTINGS, *parameter_names()} & SelectionSettings.model_fields.keys()
# The settings that may be functions of a node.
OF_NODES = {"relevance", "quality", "costs", "source"}


def _as_fields(owner: type[SelectionSettings], settings: dict[str, Any]) -> dict[str, Any]:
    """The arguments of pydantic's constructor. A selector's parameter that is no field goes to ``selector_kwargs``."""
    own = owner.model_fields
    fields = {name: value for name, value in settings.items() if name in own}
    more = {name: value for name, value in settings.items() if name not in own}
    refuse_unknown(owner.__name__, more, own)
    kwargs = fields.get("selector_kwargs")
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(kwargs, Mapping):
        raise InvalidParameterError(f"selector_kwargs must be a dict, got {type(kwargs).__name__}")
    kwargs = {**kwargs, **more}
    twice = sorted(name for name in fields.keys() & kwargs if not is_default(fields[name], own[name].default))
    if twice:
        raise InvalidParameterError(f"{twice[0]} is given twice: as an argument and in selector_kwargs")
    fields |= {"selector_kwargs": kwargs, "shown": as_identifiers(fields.get("shown"), "shown")}
    fields["perspective"] = as_perspective(fields.get("perspective"))
    return fields


def embed_query(settings: SelectionSettings, request: Request, bundle: QueryBundle) -> Flow[EmbeddedQuery]:
    """Embed what has no embedding yet: the query, and the texts that its perspective needs."""
    text = yield from request.find_text_to_embed(bundle.query_str)
    vector = bundle.embedding
    if vector is None:
        if not bundle.embedding_strs:
            raise InvalidInputError("the query is empty: it has neither text nor an embedding")
        vector = yield from _embed(settings, bundle.embedding_strs)
    if text is None:
        return request.as_query(vector, None)
    model, memory = settings._vectors.model, settings._perspective_memory
    if memory is not None and memory[0] is model and memory[1] == text:
        embedded = memory[2]
    else:
        answer = yield from _embed(settings, [text])
        embedded = as_vector(answer, "the perspective's embedding").tolist()
        settings._perspective_memory = (model, text, embedded)
    own = None
    if settings.perspective_vector == "difference" and bundle.custom_embedding_strs:
        # With HyDE the search is for other words than the query's. The difference needs the query's own words.
        own = yield from _embed(settings, [bundle.query_str])
    return request.as_query(vector, embedded, own)


def _embed(settings: SelectionSettings, texts: list[str]) -> Flow[list[float]]:
    model = settings._vectors.need_model("the query or the perspective")
    vector: list[float] = yield Step(
        partial(model.get_agg_embedding_from_queries, texts), partial(model.aget_agg_embedding_from_queries, texts)
    )
    return vector


def read_vectors(
    vectors: NodeVectors, nodes: Sequence[NodeWithScore], *, embed_unknown: bool, fetch_k: int | None = None
) -> Flow[Found]:
    """The nodes for which there are vectors, with their ids and vectors."""
    exhausted = fetch_k is None or len(nodes) < fetch_k
    items, ids, rows = yield from vectors.fetch(nodes, embed_unknown=embed_unknown)
    return Found(items, ids, _text_of, rows, fetch_k, exhausted)


def _text_of(scored: NodeWithScore) -> str:
    """The text by which a node is compared with others; empty if the node stands for more than its text."""
    node = scored.node
    if node.get_type() in (ObjectType.TEXT, ObjectType.DOCUMENT):
        return node.get_content(metadata_mode=MetadataMode.NONE)
    # An image with its caption, or a pointer to another object.
    return ""


def finish(settings: SelectionSettings, request: Request, selected: Selected) -> list[NodeWithScore]:
    """The selected nodes in the ``order`` asked for; sends the event that holds the gains.

    It is called after the flow, because a flow may run in another thread, where handlers do not know the current span.
    """
    nodes = []
    for scored, relevance, gain in selected.arrange(request.order):
        node = _with_scores(scored.node, relevance, gain) if settings.scores else scored.node
        nodes.append(NodeWithScore(node=node, score=relevance))
    if is_heard():
        data = {"top_n": request.k, "vector_source": settings._vectors.words, **request.describe(selected)}
        dispatcher.event(ReRankEndEvent(nodes=nodes, tags={EVENT: data}))
    return nodes


def is_heard() -> bool:
    """Whether a handler receives events. LlamaIndex's default handler ignores them, and making them takes time."""
    sender, handlers = dispatcher, [*dispatcher.event_handlers]
    while sender.propagate:
        sender = sender.parent
        handlers += sender.event_handlers
    return any(type(handler) is not NullEventHandler for handler in handlers)


def _with_scores(node: BaseNode, relevance: float, gain: float) -> BaseNode:
    """A copy with the scores in its metadata, hidden from prompts and embedding. Existing keys keep their values."""
    added = {
        name: value for name, value in zip(SCORE_KEYS, (relevance, gain), strict=True) if name not in node.metadata
    }
    return node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *added],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *added],
        }
    )


@dataclass(frozen=True)
class _OfNode:
    """Calls a function of the node with the node of a :class:`NodeWithScore`."""

    function: Callable[[BaseNode], Any]

    def __call__(self, scored: NodeWithScore) -> Any:
        return self.function(scored.node)


def _score_of(scored: NodeWithScore) -> float:
    if scored.score is None:
        raise InvalidInputError(
            f"relevance='score' uses the score of each node, but node {scored.node.node_id!r} has none: put a "
            "retriever or a reranker in front that sets it, or leave relevance out"
        )
    return scored.score


def _document_of(scored: NodeWithScore) -> str:
    return scored.node.ref_doc_id or scored.node.node_id
