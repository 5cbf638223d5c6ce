"""The classes of the two adapters under one small interface, so that one test can be run with each of them.

A test takes a ``Subject`` (one class of one framework), makes an object over a store with settings under common names
(``k`` is LlamaIndex's ``similarity_top_k`` or ``top_n``), and runs it. A retriever and an example selector search the
store themselves. A reranker gets the rows that another retriever found. So the candidates of all can be the same.
"""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, TextNode
from numpy.typing import NDArray

import langchain_setselect
import llamaindex_setselect
from setselect import make_selector, select
from tests.embedding import DIMENSION, corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding, make_store

QUERY = "hidden northern harbour engine"


class Row(NamedTuple):
    """What a store holds under one id."""

    id: str
    text: str
    metadata: dict[str, Any]
    vector: NDArray[np.float64]
    # What a reranker in front gave it.
    score: float | None = None
    # The keys of the metadata that LlamaIndex embeds with the text.
    embedded_keys: Sequence[str] = ()
    # Whether LlamaIndex keeps it as a pointer to another object.
    points: bool = False


def unit(vectors: Any) -> NDArray[np.float64]:
    """The vectors at unit length, because LlamaIndex's FAISS stores do not scale them."""
    array = np.asarray(vectors, np.float64)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


ROWS = [Row(f"doc-{i}", text, dict(metadata), unit(embed(text))) for i, (text, metadata) in enumerate(corpus())]
VECTORS = np.array([row.vector for row in ROWS])


def nearest(count: int = 50, query: Any = None, among: Sequence[int] | None = None) -> list[int]:
    """The rows that a search for the query finds, by brute force."""
    rows = np.arange(len(ROWS)) if among is None else np.array(among)
    cosines = VECTORS[rows] @ unit(embed(QUERY) if query is None else query)
    found: list[int] = rows[np.argsort(-cosines, kind="stable")[:count]].tolist()
    return found


def falling(texts: Sequence[str], question: str = QUERY, lowest: float = 0.4, apart: Sequence[str] = ()) -> list[Row]:
    """Rows whose cosine with the question falls from 0.6; otherwise their vectors have nothing in common.

    It falls fast, so that the last row is half a standard deviation below the mean, and gets most of a bonus.
    Nor have they with the vectors of ``apart``.
    """
    queries = unit([embed(text) for text in (question, *apart)])
    noise = np.random.default_rng(0).normal(size=(DIMENSION, len(texts)))
    others = np.linalg.qr(np.column_stack([queries.T, noise]))[0].T[len(queries) :]
    falls = 0.95 * 0.4 ** np.arange(len(texts)) + 0.05 * np.linspace(1, 0, len(texts))
    cosines = (lowest + (0.6 - lowest) * falls)[:, None]
    vectors = cosines * queries[0] + np.sqrt(1 - cosines**2) * others
    return [Row(f"doc-{i}", text, {"number": i}, vectors[i]) for i, text in enumerate(texts)]


def expected(rows: Sequence[int], k: int | None = 4, selector: Any = "coverage", **settings: Any) -> list[int]:
    """What the core selects from these rows; numbers and names of the settings are those of the rows.

    ``question`` is what a selector that uses words gets; by default the text that the query was embedded from.
    """
    query = settings.pop("query", embed(QUERY))
    vectors = settings.pop("vectors") if "vectors" in settings else VECTORS[rows]
    question = settings.pop("question", QUERY)
    if (make_selector(selector) if isinstance(selector, str) else selector).capabilities.words and question:
        settings |= {"question": question, "texts": [ROWS[row].text for row in rows]}
    return [rows[i] for i in select(query, vectors, k, selector, **settings).indices]


def values(rows: Sequence[int], key: str) -> list[Any]:
    """What the rows have under a key of their metadata."""
    return [ROWS[row].metadata[key] for row in rows]


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
def recorded(told: list[Any] | None) -> Iterator[list[Any]]:
    """Add what the events of either framework hold to ``told``; yields the callbacks for LangChain."""
    if told is None:
        yield []
        return
    with recording() as recorder:
        yield [Listener(told)]
    told += [event.tags["setselect"] for event in recorder.seen if isinstance(event, ReRankEndEvent)]


@dataclass(frozen=True, eq=False)
class Subject(ABC):
    """One class of one adapter."""

    name: str
    cls: Any
    # The names of its sync and its async method, and the arguments of both: of the items, the query and the callbacks.
    methods: tuple[str, str]
    arguments: Callable[[list[Any], str, list[Any]], tuple[list[Any], dict[str, Any]]]
    # Whether the class searches a store by itself. If not, ``run`` hands it the rows.
    searches: bool = True
    # The name of the setting that says how many are selected.
    size: str = "k"
    framework: ClassVar[str]
    # The kinds of stores that ``open`` can fill.
    kinds: ClassVar[tuple[str, ...]]

    @staticmethod
    @abstractmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        """A store, or an index over a store, that holds the rows."""

    @abstractmethod
    def make(self, store: Any, **settings: Any) -> Any:
        """An object of the class over the store."""

    @staticmethod
    @abstractmethod
    def item(row: Row) -> Any:
        """The document or node of a row."""

    @staticmethod
    @abstractmethod
    def model(store: Any) -> Any:
        """The embedding model of a store."""

    @classmethod
    def corpus(cls, kind: str | None = None) -> Any:
        """The store of all ``ROWS``. Tests share it, and only read it."""
        return _corpus(cls.open, kind or cls.kinds[0])

    def run(self, made: Any, rows: Sequence[Row] = (), told: list[Any] | None = None, query: str = QUERY) -> list[Any]:
        """What the object selects: documents, nodes or examples. Adds the data of its events to ``told``."""
        with recorded(told) as callbacks:
            arguments, more = self.arguments([self.item(row) for row in rows], query, callbacks)
            return list(getattr(made, self.methods[0])(*arguments, **more))

    async def arun(
        self, made: Any, rows: Sequence[Row] = (), told: list[Any] | None = None, query: str = QUERY
    ) -> list[Any]:
        """What the object selects in async code."""
        with recorded(told) as callbacks:
            arguments, more = self.arguments([self.item(row) for row in rows], query, callbacks)
            return list(await getattr(made, self.methods[1])(*arguments, **more))

    def select(self, rows: Sequence[int], store: Any = None, **settings: Any) -> list[int]:
        """The rows that a new object selects among the given ones, which are those that its search would find."""
        if self.searches:
            settings = {"fetch_k": len(rows) - len(settings.get("shown", ())), **settings}
        made = self.make(self.corpus() if store is None else store, **settings)
        return numbers(self.run(made, [ROWS[row] for row in rows]))


@functools.cache
def _corpus(opened: Callable[..., Any], kind: str) -> Any:
    return opened(ROWS, kind)


def in_memory(rows: Sequence[Row], cls: type[InMemoryVectorStore] = InMemoryVectorStore) -> InMemoryVectorStore:
    """LangChain's store in memory, or one of a subclass, that holds the rows."""
    store = cls(WordEmbeddings())
    for row in rows:
        entry = {"id": row.id, "text": row.text, "vector": row.vector.tolist(), "metadata": dict(row.metadata)}
        store.store[row.id] = entry
    return store


class _LangChain(Subject):
    framework = "LangChain"
    kinds = "in memory", "FAISS"

    @staticmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        if kind == "FAISS":
            pairs = [(row.text, row.vector.tolist()) for row in rows]
            metadatas, ids = [dict(row.metadata) for row in rows], [row.id for row in rows]
            return FAISS.from_embeddings(pairs, WordEmbeddings(), metadatas, ids, normalize_L2=True)
        return in_memory(rows)

    def make(self, store: Any, **settings: Any) -> Any:
        return self.cls(vectorstore=store, **settings)

    @staticmethod
    def item(row: Row) -> Document:
        reranked = {} if row.score is None else {"relevance_score": row.score}
        return Document(row.text, id=row.id, metadata={**row.metadata, **reranked})

    @staticmethod
    def model(store: Any) -> WordEmbeddings:
        model: WordEmbeddings = store.embeddings
        return model


class _LlamaIndex(Subject):
    framework = "LlamaIndex"
    kinds = "simple", "flat ip"

    @staticmethod
    def open(rows: Sequence[Row], kind: str) -> Any:
        storage = StorageContext.from_defaults(vector_store=make_store(kind))
        return VectorStoreIndex([_node(row) for row in rows], embed_model=CountingEmbedding(), storage_context=storage)

    def make(self, store: Any, **settings: Any) -> Any:
        given = {self.size if name == "k" else name: value for name, value in settings.items()}
        return self.cls(index=store, **given)

    @staticmethod
    def item(row: Row) -> NodeWithScore:
        return NodeWithScore(node=_node(row, embedded=False), score=row.score)

    @staticmethod
    def model(store: Any) -> CountingEmbedding:
        model: CountingEmbedding = store._embed_model
        return model


def _node(row: Row, *, embedded: bool = True) -> TextNode:
    vector = row.vector.tolist() if embedded else None
    excluded = [key for key in row.metadata if key not in row.embedded_keys]
    values: dict[str, Any] = {"id_": row.id, "text": row.text, "metadata": dict(row.metadata), "embedding": vector}
    values["excluded_embed_metadata_keys"] = excluded
    return IndexNode(**values, index_id=f"object of {row.id}") if row.points else TextNode(**values)


RETRIEVERS: list[Subject] = [
    _LangChain(
        "LangChain's retriever",
        langchain_setselect.SetSelectRetriever,
        ("invoke", "ainvoke"),
        lambda items, query, callbacks: ([query], {"config": {"callbacks": callbacks}}),
    ),
    _LlamaIndex(
        "LlamaIndex's retriever",
        llamaindex_setselect.SetSelectIndexRetriever,
        ("retrieve", "aretrieve"),
        lambda items, query, callbacks: ([query], {}),
        size="similarity_top_k",
    ),
]
RERANKERS: list[Subject] = [
    _LangChain(
        "LangChain's compressor",
        langchain_setselect.SetSelectCompressor,
        ("compress_documents", "acompress_documents"),
        lambda items, query, callbacks: ([items, query, callbacks], {}),
        searches=False,
    ),
    _LlamaIndex(
        "LlamaIndex's postprocessor",
        llamaindex_setselect.SetSelectPostprocessor,
        ("postprocess_nodes", "apostprocess_nodes"),
        lambda items, query, callbacks: ([items], {"query_str": query}),
        searches=False,
        size="top_n",
    ),
]
EXAMPLES: list[Subject] = [
    _LangChain(
        "LangChain's example selector",
        langchain_setselect.SetSelectExampleSelector,
        ("select_examples", "aselect_examples"),
        lambda items, query, callbacks: ([{"text": query}], {}),
    ),
]
SUBJECTS = RETRIEVERS + RERANKERS + EXAMPLES


def name_of(value: Any) -> str:
    """For the ids of tests, which must not hold the address of an object."""
    if isinstance(value, dict):
        return " ".join(f"{k}={v}" if isinstance(v, (str, int, float)) else str(k) for k, v in value.items())
    return str(getattr(value, "__name__", value))


def over(subjects: Sequence[Subject]) -> pytest.MarkDecorator:
    """Run a test with each of the subjects."""
    return pytest.mark.parametrize("subject", subjects, ids=[subject.name for subject in subjects])
