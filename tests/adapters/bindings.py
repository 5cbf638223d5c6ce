"""The six classes of the two adapters under one small interface, so that one test can be run with each of them.

A test takes a ``Subject`` (one class of one framework), makes an object over a store with settings under common names
(``k`` is LlamaIndex's ``top_n``), and runs it. A retriever and an example selector search the store themselves. A
reranker gets the rows that another retriever found. So the candidates of all six can be the same.
"""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from langchain_community.vectorstores import FAISS
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from numpy.typing import NDArray

import langchain_setselect
import llamaindex_setselect
from setselect import select
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding, make_store

QUERY = "hidden northern harbour engine"


class Row(NamedTuple):
    """What a store holds under one id."""

    id: str
    text: str
    metadata: dict[str, Any]
    vector: NDArray[np.float64]


def unit(vectors: Any) -> NDArray[np.float64]:
    """The vectors at unit length, because LlamaIndex's FAISS stores do not scale them."""
    array = np.asarray(vectors, np.float64)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


ROWS = [Row(f"doc-{i}", text, dict(metadata), unit(embed(text))) for i, (text, metadata) in enumerate(corpus())]
VECTORS = np.array([row.vector for row in ROWS])
TOPICS = [row.metadata["topic"] for row in ROWS]


def nearest(count: int = 20, query: Any = None, among: Sequence[int] | None = None) -> list[int]:
    """The rows that a search for the query finds, by brute force."""
    rows = np.arange(len(ROWS)) if among is None else np.array(among)
    cosines = VECTORS[rows] @ unit(embed(QUERY) if query is None else query)
    found: list[int] = rows[np.argsort(-cosines, kind="stable")[:count]].tolist()
    return found


def expected(rows: Sequence[int], k: int | None = 4, selector: Any = "ndpp", **settings: Any) -> list[int]:
    """What the core selects from these rows; numbers and names of the settings are those of the rows."""
    query = settings.pop("query", embed(QUERY))
    vectors = settings.pop("vectors") if "vectors" in settings else VECTORS[rows]
    return [rows[i] for i in select(query, vectors, k, selector, **settings).indices]


def values(rows: Sequence[int], key: str) -> list[Any]:
    """What the rows have under a key of their metadata."""
    return [ROWS[row].metadata[key] for row in rows]


class Calls(NamedTuple):
    """How often an embedding model was called since it was last asked."""

    queries: int
    texts: int
    asynchronous: int


def metadata(result: Any) -> dict[str, Any]:
    """The metadata of a document or node, or the example."""
    found: dict[str, Any] = result if isinstance(result, dict) else result.metadata
    return found


def numbers(results: Sequence[Any]) -> list[int]:
    """The rows of what was selected."""
    return [metadata(result)["number"] for result in results]


def reader(key: str, seen: Callable[[], None] = lambda: None) -> Callable[[Any], Any]:
    """A function for a setting: it reads the metadata of a document or node, or an example, and calls ``seen``."""

    def read(item: Any) -> Any:
        assert isinstance(item, (Document, BaseNode, dict))
        seen()
        return metadata(item)[key]

    return read


class Listener(BaseCallbackHandler):
    """Adds the data of each event of LangChain to a list."""

    def __init__(self, told: list[Any] | None = None) -> None:
        self.told: list[Any] = [] if told is None else told

    def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        assert name == "setselect"
        self.told.append(data)


class Recorder(BaseEventHandler):
    """Keeps the events of LlamaIndex's rerankers."""

    seen: list[Any] = []  # noqa: RUF012
    threads: list[threading.Thread] = []  # noqa: RUF012

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, (ReRankStartEvent, ReRankEndEvent)):
            self.seen.append(event)
            self.threads.append(threading.current_thread())


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder of all events of LlamaIndex."""
    recorder, root = Recorder(), get_dispatcher()
    root.add_event_handler(recorder)
    try:
        yield recorder
    finally:
        # Two recorders may be equal, so list.remove could remove the other one.
        root.event_handlers = [handler for handler in root.event_handlers if handler is not recorder]


@contextmanager
def recorded(told: list[Any] | None) -> Iterator[Listener | None]:
    """Add what the events of either framework hold to ``told``."""
    if told is None:
        yield None
        return
    with recording() as recorder:
        yield Listener(told)
    told += [event.tags["setselect"] for event in recorder.seen if isinstance(event, ReRankEndEvent)]


class Subject(ABC):
    """One class of one adapter."""

    cls: ClassVar[Any]
    # The names of its sync and its async method.
    methods: ClassVar[tuple[str, str]]
    size: ClassVar[str] = "k"
    # The kinds of stores that ``open`` can fill.
    kinds: ClassVar[tuple[str, ...]]
    # Whether the class searches a store by itself. If not, ``run`` hands it the rows.
    searches: ClassVar[bool] = True

    @staticmethod
    @abstractmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        """A store, or an index over a store, that holds the rows."""

    @classmethod
    def corpus(cls, kind: str | None = None) -> Any:
        """The store of all ``ROWS``. Tests share it, and only read it."""
        return _corpus(cls.open, kind or cls.kinds[0])

    @abstractmethod
    def make(self, store: Any, **settings: Any) -> Any:
        """An object of the class over the store."""

    @abstractmethod
    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of both ``methods``."""

    def run(self, made: Any, rows: Sequence[Row] = (), told: list[Any] | None = None, query: str = QUERY) -> list[Any]:
        """What the object selects: documents, nodes or examples. Adds the data of its events to ``told``."""
        with recorded(told) as listener:
            arguments, more = self.arguments(rows, query, listener)
            return list(getattr(made, self.methods[0])(*arguments, **more))

    async def arun(self, made: Any, rows: Sequence[Row] = (), told: list[Any] | None = None) -> list[Any]:
        """What the object selects in async code."""
        with recorded(told) as listener:
            arguments, more = self.arguments(rows, QUERY, listener)
            return list(await getattr(made, self.methods[1])(*arguments, **more))

    @staticmethod
    @abstractmethod
    def calls(store: Any) -> Calls:
        """How often the model of the store was called since the last look."""

    @abstractmethod
    def item(self, row: Row) -> Any:
        """The document or node of a row."""

    def select(self, rows: Sequence[int], store: Any = None, **settings: Any) -> list[int]:
        """The rows that a new object selects among the given ones, which are those that its search would find."""
        if self.searches:
            settings = {"fetch_k": len(rows) - len(settings.get("shown", ())), **settings}
        made = self.make(self.corpus() if store is None else store, **settings)
        return numbers(self.run(made, [ROWS[row] for row in rows]))


@functools.cache
def _corpus(opened: Callable[..., Any], kind: str) -> Any:
    return opened(ROWS, kind)


class _LangChain(Subject):
    kinds = "in memory", "FAISS"

    @staticmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        if kind == "FAISS":
            pairs = [(row.text, row.vector.tolist()) for row in rows]
            metadatas, ids = [dict(row.metadata) for row in rows], [row.id for row in rows]
            return FAISS.from_embeddings(pairs, WordEmbeddings(), metadatas, ids, normalize_L2=True)
        store = InMemoryVectorStore(WordEmbeddings())
        for row in rows:
            entry = {"id": row.id, "text": row.text, "vector": row.vector.tolist(), "metadata": dict(row.metadata)}
            store.store[row.id] = entry
        return store

    def make(self, store: Any, **settings: Any) -> Any:
        return self.cls(vectorstore=store, **settings)

    @staticmethod
    def calls(store: Any) -> Calls:
        model = store.embeddings
        calls = Calls(model.queries, model.documents, model.async_calls)
        model.queries = model.documents = model.async_calls = 0
        return calls

    def item(self, row: Row) -> Document:
        return Document(row.text, id=row.id, metadata=dict(row.metadata))


class LangChainRetriever(_LangChain):
    methods = "invoke", "ainvoke"
    cls = langchain_setselect.SetSelectRetriever

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [query], {"config": {"callbacks": [listener] if listener else []}}


class LangChainReranker(_LangChain):
    methods = "compress_documents", "acompress_documents"
    cls = langchain_setselect.SetSelectCompressor
    searches = False

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [[self.item(row) for row in rows], query, [listener] if listener else []], {}


class LangChainExamples(_LangChain):
    methods = "select_examples", "aselect_examples"
    cls = langchain_setselect.SetSelectExampleSelector

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [{"text": query}], {}


class _LlamaIndex(Subject):
    size = "top_n"
    kinds = "simple", "flat ip"

    @staticmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        storage = StorageContext.from_defaults(vector_store=make_store(kind))
        return VectorStoreIndex([_node(row) for row in rows], embed_model=CountingEmbedding(), storage_context=storage)

    def make(self, store: Any, **settings: Any) -> Any:
        return self.cls(index=store, **{"top_n" if name == "k" else name: value for name, value in settings.items()})

    @staticmethod
    def calls(store: Any) -> Calls:
        model = store._embed_model
        calls = Calls(len(model.queries), len(model.texts), len(model.asynchronous))
        model.forget()
        return calls

    def item(self, row: Row) -> NodeWithScore:
        return NodeWithScore(node=_node(row, embedded=False))


def _node(row: Row, *, embedded: bool = True) -> TextNode:
    vector = row.vector.tolist() if embedded else None
    return TextNode(id_=row.id, text=row.text, metadata=dict(row.metadata), embedding=vector)


class LlamaIndexRetriever(_LlamaIndex):
    methods = "retrieve", "aretrieve"
    cls = llamaindex_setselect.SetSelectIndexRetriever

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [query], {}


class LlamaIndexReranker(_LlamaIndex):
    methods = "postprocess_nodes", "apostprocess_nodes"
    cls = llamaindex_setselect.SetSelectPostprocessor
    searches = False

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [[self.item(row) for row in rows]], {"query_str": query}


class LlamaIndexExamples(_LlamaIndex):
    methods = "select_examples", "aselect_examples"
    cls = llamaindex_setselect.SetSelectExampleSelector

    def make(self, store: Any, **settings: Any) -> Any:
        return super().make(store, template="{number}", **settings)

    def arguments(self, rows: Sequence[Row], query: str, listener: Listener | None) -> tuple[list[Any], dict[str, Any]]:
        return [query], {}


RETRIEVERS: list[Subject] = [LangChainRetriever(), LlamaIndexRetriever()]
RERANKERS: list[Subject] = [LangChainReranker(), LlamaIndexReranker()]
EXAMPLES: list[Subject] = [LangChainExamples(), LlamaIndexExamples()]
SUBJECTS = RETRIEVERS + RERANKERS + EXAMPLES


def name_of(subject: Subject) -> str:
    """For the ids of tests."""
    return type(subject).__name__
