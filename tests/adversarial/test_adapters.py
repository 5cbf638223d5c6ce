"""The adapters under threads, cancelled tasks, odd documents and stores that misbehave."""

from __future__ import annotations

import asyncio
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import PerspectiveExtractor, QueryParts, SetSelectWarning, select
from shared_core.retrieval.items import ORDERS
from tests.adversarial.conftest import Cases
from tests.embedding import DIMENSION, TOPICS, TRAITS, embed
from tests.langchain_setselect.conftest import WordEmbeddings, faiss, in_memory
from tests.llamaindex_setselect.nodes_and_indexes import (
    EFFECTS,
    SUBJECTS,
    CountingEmbedding,
    make_index,
    make_nodes,
    scored,
)

# Many of these tests embed texts, as for an unknown store, or have fewer candidates than picks. The warnings about both
# have their own tests.
pytestmark = [
    pytest.mark.filterwarnings("ignore::shared_core.errors.EmbeddingFallbackWarning"),
    pytest.mark.filterwarnings("ignore:.*all of them are selected:shared_core.errors.SetSelectWarning"),
]

SEARCH_TYPES = ("similarity", "vrsd", "mmr", "ndpp")
THREADS = 8


@pytest.fixture
def _hurried_threads() -> Iterator[None]:
    """Let Python change threads every 10 µs instead of every 5 ms."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


def pick(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def settings_of_a_call(rng: np.random.Generator) -> dict[str, Any]:
    """Random arguments that a LangChain retriever takes at call time."""
    settings: dict[str, Any] = {"search_type": pick(rng, SEARCH_TYPES), "k": int(rng.integers(1, 9))}
    more: dict[str, Any] = {
        "fetch_k": int(rng.integers(8, 40)),
        "perspective": pick(rng, TRAITS),
        "shown": [f"doc-{number}" for number in rng.integers(60, size=3)],
        "score_threshold": float(rng.uniform(-0.2, 0.2)),
        "drop_near_duplicates": float(rng.uniform(0.8, 1)),
        "scores": True,
        "order": pick(rng, ORDERS),
    }
    settings |= {name: value for name, value in more.items() if rng.random() < 0.3}
    if rng.random() < 0.3:
        settings |= {"budget": float(rng.uniform(10, 40)), "costs": "tokens"}
    if rng.random() < 0.3:
        settings |= {"max_per_source": int(rng.integers(1, 3)), "source": "topic"}
    if settings["search_type"] == "mmr":
        settings |= {"lambda_mult": float(rng.random()), "quality": "quality", "relevance": "number"}
    return settings


def question(rng: np.random.Generator) -> str:
    return f"{pick(rng, TRAITS)} {pick(rng, TOPICS)} {pick(rng, TOPICS)}"


class Events(BaseCallbackHandler):
    """The ids in the events of the calls that this handler is given to."""

    def __init__(self) -> None:
        self.ids: list[list[str]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.ids.append(data["ids"])


# --- threads --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_hurried_threads")
@pytest.mark.parametrize("make_store", [in_memory, faiss])
def test_threads_that_share_a_langchain_retriever_get_their_own_answers(
    make_store: Callable[[WordEmbeddings], VectorStore], cases: Cases
) -> None:
    store = make_store(WordEmbeddings())
    shared = SetSelectRetriever(vectorstore=store, k=5, perspective="red")
    with ThreadPoolExecutor(THREADS) as pool:
        for _, rng in cases(share=0.005, at_most=300):
            calls = [(question(rng), settings_of_a_call(rng), Events(), Events()) for _ in range(16)]
            alone = [
                SetSelectRetriever(vectorstore=store, k=5, perspective="red").invoke(
                    text, config={"callbacks": [heard]}, **settings
                )
                for text, settings, heard, _ in calls
            ]
            futures = [
                pool.submit(shared.invoke, text, config={"callbacks": [heard]}, **settings)
                for text, settings, _, heard in calls
            ]
            assert [future.result() for future in futures] == alone
            assert all(heard_alone.ids == heard.ids for _, _, heard_alone, heard in calls)
    assert repr(shared) == repr(SetSelectRetriever(vectorstore=store, k=5, perspective="red"))


@pytest.mark.usefixtures("_hurried_threads")
def test_threads_that_share_a_llamaindex_retriever_and_a_postprocessor_get_their_own_answers(cases: Cases) -> None:
    index, nodes = make_index("simple", CountingEmbedding()), scored(make_nodes())

    def made() -> tuple[SetSelectIndexRetriever, SetSelectPostprocessor]:
        settings: dict[str, Any] = {"index": index, "top_n": 5, "perspective": lambda text: text.split()[0]}
        return SetSelectIndexRetriever(**settings), SetSelectPostprocessor(selector="mmr", **settings)

    retriever, post = made()
    with ThreadPoolExecutor(THREADS) as pool:
        for _, rng in cases(share=0.005, at_most=300):
            questions = [f"{pick(rng, SUBJECTS)} {pick(rng, EFFECTS)} {pick(rng, EFFECTS)}" for _ in range(8)]
            some = [[nodes[i] for i in rng.permutation(len(nodes))[: rng.integers(1, 30)]] for _ in questions]
            alone_r = [made()[0].retrieve(text) for text in questions]
            alone_p = [made()[1].postprocess_nodes(n, query_str=q) for n, q in zip(some, questions, strict=True)]
            retrieved = [pool.submit(retriever.retrieve, text) for text in questions]
            processed = [
                pool.submit(post.postprocess_nodes, n, query_str=q) for n, q in zip(some, questions, strict=True)
            ]
            assert [future.result() for future in retrieved] == alone_r
            assert [future.result() for future in processed] == alone_p


@pytest.mark.usefixtures("_hurried_threads")
def test_ids_that_are_shown_while_other_threads_retrieve_count_wholly_or_not_at_all(cases: Cases) -> None:
    index = make_index("simple", CountingEmbedding())
    with ThreadPoolExecutor(THREADS) as pool:
        for _, rng in cases(share=0.005, at_most=200):
            text = f"{pick(rng, SUBJECTS)} {pick(rng, EFFECTS)}"
            both = [[f"n{number}" for number in rng.choice(40, size=4, replace=False)] for _ in range(2)]
            allowed = [SetSelectIndexRetriever(index, top_n=5, shown=shown).retrieve(text) for shown in both]
            shared = SetSelectIndexRetriever(index, top_n=5, shown=both[0])
            futures = []
            for turn in range(16):
                futures.append(pool.submit(shared.retrieve, text))
                futures.append(pool.submit(setattr, shared, "shown", both[turn % 2]))
            answers = [future.result() for future in futures]
            assert all(answer in allowed for answer in answers[::2])


# --- cancelled tasks ------------------------------------------------------------------------------


class Dawdling(WordEmbeddings):
    """Embeddings whose async methods give other tasks their turn a random number of times."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng

    async def aembed_query(self, text: str) -> list[float]:
        await dawdle(self.rng)
        return self.embed_query(text)


class DawdlingModel(CountingEmbedding):
    async def _aget_query_embedding(self, query: str) -> list[float]:
        await dawdle(np.random.default_rng(len(self.queries)))
        return self._get_query_embedding(query)


CANCELLED = object()


async def dawdle(rng: np.random.Generator) -> None:
    for _ in range(rng.integers(6)):
        await asyncio.sleep(0)


async def cancel_some(tasks: Sequence[asyncio.Task[Any]], rng: np.random.Generator) -> list[Any]:
    """Cancel half of the tasks at random moments; the answers of all, ``CANCELLED`` for those that were stopped."""
    for row in rng.permutation(len(tasks))[: len(tasks) // 2]:
        await dawdle(rng)
        # A selection runs in a thread, which the event loop waits for without a turn of its own.
        await asyncio.sleep(float(rng.random()) * 0.002)
        tasks[row].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert not [answer for answer in answers if isinstance(answer, Exception)]
    return [CANCELLED if isinstance(answer, asyncio.CancelledError) else answer for answer in answers]


async def test_cancelled_langchain_calls_leave_nothing_behind(cases: Cases) -> None:
    for _, rng in cases(share=0.01, at_most=500):
        store = in_memory(Dawdling(rng))

        async def asplit(text: str, rng: np.random.Generator = rng) -> QueryParts:
            await dawdle(rng)
            root, perspective = text.split(", ")
            return QueryParts(root, perspective)

        extractor = PerspectiveExtractor(lambda text: text.split(", "), asplit)
        shared = SetSelectRetriever(vectorstore=store, k=4, perspective=extractor)
        questions = [f"{question(rng)}, {pick(rng, TRAITS)}" for _ in range(8)]
        alone = [SetSelectRetriever(vectorstore=store, k=4, perspective=extractor).invoke(text) for text in questions]
        extractor._cache.clear()
        events = [Events() for _ in questions]
        tasks = [
            asyncio.create_task(shared.ainvoke(text, config={"callbacks": [heard]}))
            for text, heard in zip(questions, events, strict=True)
        ]
        answers = await cancel_some(tasks, rng)
        for answer, right, heard in zip(answers, alone, events, strict=True):
            assert answer in (CANCELLED, right)
            # The event is the last step, so a call may be cancelled between the event and the answer.
            assert heard.ids in ([], [[document.id for document in right]])
            assert answer is CANCELLED or heard.ids
        assert [await shared.ainvoke(text) for text in questions] == alone


async def test_cancelled_llamaindex_calls_leave_nothing_behind(cases: Cases) -> None:
    index, nodes = make_index("simple", DawdlingModel()), scored(make_nodes())
    for _, rng in cases(share=0.01, at_most=500):
        settings: dict[str, Any] = {"index": index, "top_n": 4, "perspective": lambda text: text.split()[0]}
        retriever, post = SetSelectIndexRetriever(**settings), SetSelectPostprocessor(**settings)
        questions = [f"{pick(rng, SUBJECTS)} {pick(rng, EFFECTS)} {pick(rng, EFFECTS)}" for _ in range(4)]
        calls: list[Callable[[], Any]] = []
        for text in questions:
            calls.append(partial(retriever.aretrieve, text))
            calls.append(partial(post.apostprocess_nodes, nodes, QueryBundle(text)))
        alone = [await call() for call in calls]
        answers = await cancel_some([asyncio.ensure_future(call()) for call in calls], rng)
        assert all(answer in (CANCELLED, right) for answer, right in zip(answers, alone, strict=True))
        assert [await call() for call in calls] == alone


# --- odd documents and stores ---------------------------------------------------------------------

ODD_VALUES: tuple[Any, ...] = (
    None,
    float("nan"),
    -0.0,
    10**30,
    "",
    "\x00\x1b[31m🦉 ",
    b"bytes",
    [1, [2, [None]]],
    {"a": {"b": float("inf")}},
    {"of": {1, 2}},
    np.float32(0.1),
    np.arange(3),
)
ODD_KEYS = (
    "",
    "id",
    "k",
    "source",
    "query",
    "text",
    "page_content",
    "metadata",
    "relevance_score",
    "selection_score",
    "é",
)
SCORES = {"relevance_score", "selection_score"}


def odd_metadata(rng: np.random.Generator) -> dict[str, Any]:
    # A copy of each value, so that a change of one value does not change the others.
    return {key: pickle.loads(pickle.dumps(pick(rng, ODD_VALUES))) for key in ODD_KEYS if rng.random() < 0.4}


def odd_texts(rng: np.random.Generator) -> list[str]:
    """Different texts; one is empty, and others hold spaces, control characters or a lone surrogate."""
    kinds = ("", " ", "\n", "\x00", "\udc80", "👩‍👩‍👧", "word " * 2000)
    texts = [f"{pick(rng, kinds)}{row}" for row in range(int(rng.integers(1, 30)))]
    texts[0] = ""
    return texts


def in_bytes(*values: Any) -> bytes:
    """Everything that the values hold, NaN and arrays included, for a comparison."""
    return pickle.dumps(values)


class BytesEmbeddings(WordEmbeddings):
    """Embeddings of any text, lone surrogates included."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text.encode("utf-8", "surrogatepass").hex()).tolist()


class Shelf(VectorStore):
    """A store that returns the hits that a test has put in, whatever it is asked for."""

    def __init__(self, documents: list[Document], vectors: list[Any]) -> None:
        self.documents, self.vectors = documents, vectors

    @property
    def embeddings(self) -> BytesEmbeddings:
        return BytesEmbeddings()

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError


register_vector_source(Shelf, lambda store, query, fetch_k, **kwargs: (store.documents, store.vectors))


def first_rows(names: Sequence[str | None]) -> list[int]:
    """The first row of each id, and all rows without an id."""
    return [row for row, name in enumerate(names) if name is None or name not in names[:row]]


def assert_metadata(returned: dict[str, Any], given: dict[str, Any], scores: bool) -> None:
    """Nothing is changed, and nothing is added but the scores, if they are asked for."""
    assert in_bytes({key: returned[key] for key in given}) == in_bytes(given)
    assert returned.keys() - given.keys() <= (SCORES if scores else set())


def test_langchain_classes_return_the_cores_picks_of_odd_hits_and_change_none(cases: Cases) -> None:
    embeddings = BytesEmbeddings()
    for _, rng in cases(share=0.1, at_most=5000):
        documents = [
            Document(text, metadata=odd_metadata(rng), id=None if rng.random() < 0.2 else f"id {row}")
            for row, text in enumerate(odd_texts(rng))
        ]
        # A search can return the same document again, as the same object or as another one.
        again = [documents[row] for row in rng.integers(len(documents), size=3) if documents[row].id is not None]
        documents += [pick(rng, (document, document.model_copy(deep=True))) for document in again]
        vectors = embeddings.embed_documents([document.page_content for document in documents])
        store, query, k = Shelf(documents, vectors), "word 7", int(rng.integers(1, 40))
        search_type = pick(rng, SEARCH_TYPES)
        before = in_bytes(documents, vectors)
        settings: dict[str, Any] = {"search_type": search_type, "k": k, "scores": rng.random() < 0.5}
        retrieved = SetSelectRetriever(vectorstore=store, **settings).invoke(query)
        compressed = SetSelectCompressor(embeddings=embeddings, **settings).compress_documents(documents, query)
        assert in_bytes(documents, vectors) == before
        rows = first_rows([document.id for document in documents])
        parameters = {"lambda_mult": 0.5} if search_type == "mmr" else {}
        picks = select(
            embed_as_query(query), np.array(vectors)[rows], min(k, len(rows)), search_type, **parameters
        ).indices.tolist()
        given = [documents[rows[place]] for place in picks]
        for returned in (retrieved, compressed):
            assert [(d.id, d.page_content) for d in returned] == [(d.id, d.page_content) for d in given]
            for document, original in zip(returned, given, strict=True):
                assert_metadata(document.metadata, original.metadata, settings["scores"])


def embed_as_query(text: str) -> list[float]:
    return BytesEmbeddings().embed_query(text)


async def test_a_store_that_returns_anything_but_what_was_asked_gives_a_set_of_it(cases: Cases) -> None:
    for _, rng in cases(share=0.1, at_most=5000):
        n = int(rng.integers(0, 60))
        documents = [Document(f"text {row}", id=pick(rng, (f"id {row}", f"id {row // 2}", None))) for row in range(n)]
        gone = rng.random(n) < pick(rng, (0.0, 0.2, 1.0))
        vectors = [None if lost else embed(d.page_content).tolist() for d, lost in zip(documents, gone, strict=True)]
        k = int(rng.integers(1, 12))
        retriever = SetSelectRetriever(vectorstore=Shelf(documents, vectors), k=k, fetch_k=20)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = retriever.invoke("text 3")
            assert found == await retriever.ainvoke("text 3")
        assert {warning.category for warning in told} <= {SetSelectWarning}
        assert any("has no vector for" in str(warning.message) for warning in told) == bool(gone.any())
        left = [document for document, lost in zip(documents, gone, strict=True) if not lost]
        rows = first_rows([document.id for document in left])
        assert len(found) == min(k, len(rows))
        texts = [document.page_content for document in found]
        assert len(set(texts)) == len(texts)
        assert set(texts) <= {left[row].page_content for row in rows}


def test_llamaindex_classes_return_the_cores_picks_of_odd_nodes_and_change_none(cases: Cases) -> None:
    for _, rng in cases(share=0.1, at_most=5000):
        texts = odd_texts(rng)
        vectors = rng.normal(size=(len(texts), DIMENSION))
        nodes = [
            NodeWithScore(
                node=TextNode(id_=f"id {row}", text=text, metadata=odd_metadata(rng), embedding=vectors[row].tolist()),
                score=pick(rng, (None, 0.0, -1e30, float("nan"))),
            )
            for row, text in enumerate(texts)
        ]
        nodes += [nodes[row] for row in rng.integers(len(nodes), size=2)]
        query = QueryBundle("q", embedding=rng.normal(size=DIMENSION).tolist())
        selector, k = pick(rng, SEARCH_TYPES), int(rng.integers(1, 40))
        before = in_bytes(nodes, query)
        parameters = {"lambda_mult": 0.5} if selector == "mmr" else {}
        scores = bool(rng.random() < 0.5)
        post = SetSelectPostprocessor(top_n=k, selector=selector, scores=scores, **parameters)
        found = post.postprocess_nodes(nodes, query)
        assert in_bytes(nodes, query) == before
        picks = select(query.embedding, vectors, min(k, len(texts)), selector, **parameters).indices.tolist()
        assert [scored.node_id for scored in found] == [f"id {row}" for row in picks]
        for returned, row in zip(found, picks, strict=True):
            assert returned.node.get_content() == texts[row]
            assert_metadata(returned.node.metadata, nodes[row].node.metadata, scores)


def test_an_index_whose_nodes_vanish_gives_a_set_of_the_others(cases: Cases) -> None:
    for _, rng in cases(share=0.02, at_most=500):
        index: VectorStoreIndex = make_index("simple", CountingEmbedding())
        gone = {f"n{number}" for number in rng.choice(40, size=int(rng.integers(0, 41)), replace=False)}
        for name in gone:
            index.vector_store.data.embedding_dict.pop(name)  # type: ignore[attr-defined]
            index.vector_store.data.text_id_to_ref_doc_id.pop(name)  # type: ignore[attr-defined]
        top_n = int(rng.integers(1, 8))
        found = SetSelectIndexRetriever(index, top_n=top_n, fetch_k=40).retrieve("tea and sleep")
        names = [scored.node_id for scored in found]
        assert len(names) == len(set(names)) == min(top_n, 40 - len(gone))
        assert not gone & set(names)
