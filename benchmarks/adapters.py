"""What the adapters add to a store's own search that returns vectors.

20,000 random vectors of 384 dimensions in a flat FAISS index, fetch_k = 100, k = 10, VRSD. One row has the default with
words: a question of 20 words, texts of 1,000 characters, fetch_k = 50, k = 5. A query's embedding is looked up, so it
takes no time. Each call takes turns with the search that it is compared to, on one BLAS thread. Times are processor
time, so other work on the machine does not count. The overhead is the median over the turns of the difference; it
includes the selection. The time of a run includes that of freeing its result. One row has the 25 best texts by words as
candidates too, and is compared with the default without them. The other searches use nothing of setselect, and run as
their framework runs them:

- LangChain: FAISS's `search_and_reconstruct`, and the documents from the docstore. For `ainvoke` this runs in a thread,
  as in LangChain's own `asimilarity_search_by_vector`.
- LlamaIndex: `index.as_retriever(similarity_top_k=100).retrieve`, and FAISS's `reconstruct_batch` for its results. A
  query engine is compared with a query engine whose postprocessor reads the vectors in the same way and cuts the list.

The adapters are measured with numba and in numpy alone. The rows that name only the frameworks show what no adapter can
avoid. They compare a framework's plain retriever, which selects nothing, with the search inside it, without callbacks,
spans and events.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import asyncio
import inspect
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from tests.stores import harness

N, DIMENSION, FETCH_K, K = 20_000, 384, 100, 10
harness.resize(N, DIMENSION)

from faiss import IndexFlatL2
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.vector_stores.faiss import FaissVectorStore

from benchmarks.common import Block, parser, publish, table
from benchmarks.racing.contenders import numpy_alone
from langchain_setselect import SetSelectRetriever, WordRetriever
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import Coverage
from setselect.evaluation import demo_corpus

WITH_NUMBA, NUMPY = "with numba", "numpy alone"
# The rows of the default, on texts without references and on texts that refer to each other.
WORDS = "LangChain, `SetSelectRetriever.invoke`, the default without references"
NAMES = "LangChain, `SetSelectRetriever.invoke`, the default"
# A search by words beside the vector search; it is compared with the default without it.
KEYWORDS = "LangChain, `extra_retrievers=[WordRetriever]`, over the default without it"
# In texts with names, one word in this many is followed by the name of another text.
WORDS_PER_NAME = 12
FETCH_K_WITH_WORDS, K_WITH_WORDS = 50, 5
PACKAGES = ("numpy", "numba", "faiss-cpu", "langchain-core", "langchain-community", "llama-index-core", "pydantic")
Run = Callable[[str], Any]


class Pair(NamedTuple):
    """A call and the search that it is compared to; each may return an awaitable."""

    name: str
    call: Run
    search: Run
    ours: bool = False


class Times(NamedTuple):
    """Medians in microseconds, and the quartiles of the overhead."""

    search: float
    call: float
    overhead: float
    low: float
    high: float


def main() -> None:
    made = parser(__doc__, "adapters.md")
    made.add_argument("--turns", type=int, default=400, help="how often each call is timed")
    options = made.parse_args()
    store = FAISS(harness.TableEmbeddings(harness.TABLE), IndexFlatL2(DIMENSION), InMemoryDocstore(), {})
    harness.fill(store)
    index = harness.index_over(FaissVectorStore(IndexFlatL2(DIMENSION)), harness.TableEmbedding(table=harness.TABLE))
    with_words = [*words_pairs(store), *words_pairs(store, named=True)]
    pairs = [*langchain_pairs(store), *with_words, *llamaindex_pairs(index), embedding_pair()]
    found = {WITH_NUMBA: asyncio.run(race(pairs, options.turns))}
    with numpy_alone():
        found[NUMPY] = asyncio.run(race([pair for pair in pairs if pair.ours], options.turns))
    publish("adapters.md", blocks(found, options.turns), options.write)


def search_with_vectors(store: FAISS, vector: list[float], fetch_k: int) -> tuple[list[str | Document], np.ndarray]:
    """The search of the store that returns documents and vectors, without setselect."""
    _, labels, vectors = store.index.search_and_reconstruct(np.asarray([vector], dtype=np.float32), fetch_k)
    return [store.docstore.search(store.index_to_docstore_id[label]) for label in labels[0].tolist()], vectors[0]


def words_pairs(store: FAISS, *, named: bool = False) -> Iterator[Pair]:
    """The default on texts of 1,000 characters and questions of 20 words, drawn from 2,000 words of two syllables.

    With ``named``, each text begins with its name of two words, and has the names of other texts; then candidates by
    words are measured too.
    """
    rng = np.random.default_rng(0)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    words = sorted({a + b for a in syllables for b in syllables})[:2000]
    ids = list(store.index_to_docstore_id.values())
    texts = {name: " ".join(rng.choice(words, 200))[:1000] for name in ids}
    if named:
        titles = np.array([" ".join(rng.choice(words, 2)).title() for _ in ids])
        for name, own in zip(ids, titles, strict=True):
            parts = [f"{own} is", *texts[name].split()]
            parts[::WORDS_PER_NAME] = [f"{part} {rng.choice(titles)}" for part in parts[::WORDS_PER_NAME]]
            texts[name] = " ".join(parts)[:1000]
    docstore = InMemoryDocstore({name: Document(text, id=name) for name, text in texts.items()})
    questions = {query: " ".join(rng.choice(words, 20)) for query in harness.QUERIES}
    table = {questions[query]: vector for query, vector in harness.QUERIES.items()}
    with_texts = FAISS(harness.TableEmbeddings(table), store.index, docstore, store.index_to_docstore_id)
    method = Coverage(reference_weight=float(named))
    retriever = SetSelectRetriever(vectorstore=with_texts, k=K_WITH_WORDS, fetch_k=FETCH_K_WITH_WORDS, selector=method)

    def without(query: str) -> list[Document]:
        return retriever.invoke(questions[query])

    yield Pair(
        NAMES if named else WORDS,
        without,
        lambda query: search_with_vectors(with_texts, harness.QUERIES[query], FETCH_K_WITH_WORDS),
        ours=True,
    )
    if named:
        by_words = WordRetriever.from_documents(Document(text, id=name) for name, text in texts.items())
        more = retriever.model_copy(update={"extra_retrievers": [by_words]})
        yield Pair(KEYWORDS, lambda query: more.invoke(questions[query]), without, ours=True)


def langchain_pairs(store: FAISS) -> list[Pair]:
    retriever = SetSelectRetriever(vectorstore=store, search_type="vrsd", k=K, fetch_k=FETCH_K)
    plain = store.as_retriever(search_kwargs={"k": FETCH_K})

    def with_vectors(query: str) -> tuple[list[str | Document], np.ndarray]:
        return search_with_vectors(store, harness.QUERIES[query], FETCH_K)

    async def awith_vectors(query: str) -> tuple[list[str | Document], np.ndarray]:
        return await run_in_executor(None, with_vectors, query)

    return [
        Pair("LangChain, `SetSelectRetriever.invoke`", retriever.invoke, with_vectors, ours=True),
        Pair("LangChain, `SetSelectRetriever.ainvoke`", retriever.ainvoke, awith_vectors, ours=True),
        Pair(
            "LangChain's `as_retriever().invoke`, over its search",
            plain.invoke,
            lambda query: store.similarity_search_by_vector(harness.QUERIES[query], FETCH_K),
        ),
        Pair(
            "LangChain's `as_retriever().ainvoke`, over its search",
            plain.ainvoke,
            lambda query: store.asimilarity_search_by_vector(harness.QUERIES[query], FETCH_K),
        ),
    ]


def llamaindex_pairs(index: Any) -> list[Pair]:
    plain = index.as_retriever(similarity_top_k=FETCH_K)
    retriever = SetSelectIndexRetriever(index, selector="vrsd", similarity_top_k=K, fetch_k=FETCH_K)
    labels = {name: int(label) for label, name in index.index_struct.nodes_dict.items()}

    def vectors_of(found: list[NodeWithScore]) -> np.ndarray:
        keys = np.array([labels[node.node_id] for node in found])
        vectors: np.ndarray = index.vector_store.client.reconstruct_batch(keys)
        return vectors

    def with_vectors(query: str) -> tuple[list[NodeWithScore], np.ndarray]:
        found = plain.retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))
        return found, vectors_of(found)

    class ReadAndCut(BaseNodePostprocessor):
        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            vectors_of(nodes)
            return nodes[:K]

    def engine(postprocessor: BaseNodePostprocessor) -> Run:
        return embedded(RetrieverQueryEngine(plain, no_synthesizer(), [postprocessor]).retrieve)

    return [
        Pair("LlamaIndex, `SetSelectIndexRetriever.retrieve`", embedded(retriever.retrieve), with_vectors, ours=True),
        Pair(
            "LlamaIndex, `SetSelectPostprocessor` in a query engine",
            engine(SetSelectPostprocessor(index=index, selector="vrsd", top_n=K)),
            engine(ReadAndCut()),
            ours=True,
        ),
        Pair(
            "LlamaIndex's `as_retriever().retrieve`, over its search",
            embedded(plain.retrieve),
            embedded(plain._get_nodes_with_embeddings),
        ),
    ]


def embedding_pair() -> Pair:
    """What every vector search costs: the embedding of a question, here of those of the demo."""
    from _minilm import load_minilm

    model, questions = load_minilm(), cycle(query.text for query in demo_corpus()[1])
    return Pair("all-MiniLM-L6-v2, the embedding of a question", lambda _: model.embed_queries([next(questions)]), len)


def no_synthesizer() -> BaseSynthesizer:
    """For a query engine of which only ``retrieve`` is called, so that no language model is needed."""
    return get_response_synthesizer(llm=MockLLM())


def embedded(retrieve: Callable[[QueryBundle], Any]) -> Run:
    """The same call for a query with its embedding."""
    return lambda query: retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))


async def race(pairs: list[Pair], turns: int) -> dict[str, Times]:
    """The times of each pair by name; a call and its search change places in every turn."""
    queries = list(harness.QUERIES)
    found = {}
    for pair in pairs:
        calls: list[float] = []
        searches: list[float] = []
        both = [(pair.call, calls), (pair.search, searches)]
        for turn in range(-10, turns):
            for run, seconds in both if turn % 2 else reversed(both):
                begun = time.process_time()
                result = run(queries[turn % len(queries)])
                if inspect.isawaitable(result):
                    result = await result
                # A LlamaIndex search makes 100 nodes. Each run frees what it made, and not what the run before made.
                del result
                # The first ten turns warm up.
                if turn >= 0:
                    seconds.append(time.process_time() - begun)
        found[pair.name] = summary(calls, searches)
    return found


def summary(calls: list[float], searches: list[float]) -> Times:
    low, median, high = statistics.quantiles([a - b for a, b in zip(calls, searches, strict=True)], n=4)
    seconds = (statistics.median(searches), statistics.median(calls), median, low, high)
    return Times(*(1e6 * value for value in seconds))


def blocks(found: dict[str, dict[str, Times]], turns: int) -> Iterator[Block]:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    setting = (
        f"Setting: {N:,} random vectors of {DIMENSION} dimensions in a flat FAISS index, fetch_k = {FETCH_K}, "
        f"k = {K},\nVRSD, {turns} turns, one BLAS thread, {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()},\n{packages}."
    )
    yield "Setting: ", setting
    rows = []
    for name, times in found[WITH_NUMBA].items():
        in_numpy = overhead(found[NUMPY][name]) if name in found[NUMPY] else "–"
        rows.append([name, f"{times.search:,.0f}", f"{times.call:,.0f}", overhead(times), in_numpy])
    yield table(["", "search", "call", "overhead, with numba", "overhead, numpy alone"], rows)


def overhead(times: Times) -> str:
    """The median with its quartiles.

    >>> overhead(Times(1000, 1400, 400, 380, 1420))
    '400 (380 to 1,420)'
    """
    return f"{times.overhead:,.0f} ({times.low:,.0f} to {times.high:,.0f})"


if __name__ == "__main__":
    main()
