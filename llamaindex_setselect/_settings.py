"""The settings that the postprocessor and the retriever share, and the flow from a query to selected nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from shared_core import InvalidInputError, InvalidParameterError, QueryParts, Selector, selector_parameters
from shared_core.retrieval import (
    SETTINGS,
    EmbeddedQuery,
    Flow,
    Found,
    Request,
    Selected,
    Step,
    as_identifiers,
    as_perspective,
    check_integer,
)
from shared_core.signals.extraction import check_perspective_vector

from .vectors import NodeVectors, resolve_embed_model

GAIN_KEY = "selection_score"


class SelectionSettings(BaseModel):
    """The settings of a selection; :class:`SetSelectPostprocessor` documents each of them."""

    top_n: int | None = None
    selector: str | Selector = "vrsd"
    selector_kwargs: dict[str, Any] = Field(default_factory=dict)
    perspective: str | tuple[float, ...] | Callable[[str], str | QueryParts | None] | None = None
    perspective_vector: str = "text"
    direction: str = "remove"
    corpus: bool = False
    quality: str | dict[str, float] | Callable[[BaseNode], float] | None = None
    costs: str | dict[str, float] | Callable[[BaseNode], float] | None = None
    budget: float | None = None
    source: str | Callable[[BaseNode], Hashable] | None = None
    max_per_source: int | None = None
    drop_near_duplicates: float | None = None
    score_threshold: float | None = None
    shown: tuple[str, ...] = ()
    scores: bool = True
    embed_model: BaseEmbedding | None = Field(default=None, exclude=True)
    vector_store: BasePydanticVectorStore | None = Field(default=None, exclude=True)
    index: VectorStoreIndex | None = Field(default=None, exclude=True)

    model_config = ConfigDict(arbitrary_types_allowed=True)

    # Model, text and embedding of the last perspective. The next query most often has the same perspective.
    _perspective_memory: tuple[BaseEmbedding | None, str, list[float]] | None = PrivateAttr(default=None)

    def __init__(self, **settings: Any) -> None:
        given = {name: value for name, value in settings.items() if name in type(self).model_fields}
        parameters = {name: value for name, value in settings.items() if name not in given}
        parameters = {**(given.get("selector_kwargs") or {}), **parameters}
        refuse_unknown(type(self).__name__, parameters, given.get("selector", "vrsd"), type(self).model_fields)
        given["selector_kwargs"] = parameters
        if given.get("top_n") is not None:
            check_integer(given["top_n"], "top_n", 1)
        given["shown"] = as_identifiers(given.get("shown"), "shown")
        check_perspective_vector(given.get("perspective_vector", "text"), given.get("perspective"))
        given["perspective"] = as_perspective(given.get("perspective"))
        super().__init__(**given)
        if self.top_n is None and self.budget is None:
            self.top_n = 4
        self._request()
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

    def _request(self, fetch_k: int | None = None) -> Request:
        settings = {name: getattr(self, name) for name in _FIELDS}
        settings |= {"k": self.top_n, "fetch_k": fetch_k, **self.selector_kwargs}
        if self.source is None:
            settings["source"] = _document_of
        return Request.parse(settings)[0]


# The settings of a request that are fields of the classes.
_FIELDS = tuple(name for name in SETTINGS if name in SelectionSettings.model_fields)


def refuse_unknown(owner: str, names: Iterable[str], selector: Any, known: Iterable[str]) -> None:
    """Raise for the first name that is not a parameter of the selector; the message lists what is allowed."""
    own = selector_parameters(selector) if isinstance(selector, str) else ()
    for name in names:
        if name not in own:
            raise InvalidParameterError(
                f"{owner} has no argument {name!r}; it has {', '.join(known)}, "
                f"and those of selector {selector!r}: {', '.join(own) or 'none'}"
            )


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
        embedded = yield from _embed(settings, [text])
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
    settings: SelectionSettings, nodes: Sequence[NodeWithScore], *, embed_unknown: bool, fetch_k: int | None = None
) -> Flow[Found]:
    """The nodes for which there are vectors, each id once, with their vectors."""
    first: dict[str, BaseNode] = {}
    for scored in nodes:
        first.setdefault(scored.node.node_id, scored.node)
    vectors = yield from settings._vectors.fetch([*first.values()], [*first], embed_unknown=embed_unknown)
    ids = [name for name in first if name in vectors]
    exhausted = fetch_k is None or len(nodes) < fetch_k
    return Found([first[name] for name in ids], ids, [vectors[name] for name in ids], fetch_k, exhausted)


def copy_nodes(nodes: Sequence[NodeWithScore], selected: Selected, scores: bool) -> list[NodeWithScore]:
    """Copies of the selected nodes, with the relevance as score and, if ``scores``, the gain in the metadata."""
    by_node = {id(scored.node): scored for scored in nodes}
    copies = []
    relevance, gains = selected.selection.relevance.tolist(), selected.selection.gains.tolist()
    for node, cosine, gain in zip(selected.items, relevance, gains, strict=True):
        changes: dict[str, Any] = {"metadata": {**node.metadata, GAIN_KEY: gain} if scores else dict(node.metadata)}
        if scores:
            # The gain must change neither the prompt nor the text to embed.
            for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
                changes[name] = [*(key for key in getattr(node, name) if key != GAIN_KEY), GAIN_KEY]
        changes = {"node": node.model_copy(update=changes), "score": cosine}
        copies.append(by_node[id(node)].model_copy(update=changes))
    return copies


def _document_of(node: BaseNode) -> str:
    return node.ref_doc_id or node.node_id
