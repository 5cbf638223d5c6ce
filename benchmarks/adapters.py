"""What the adapters add to a store's own search that hands back vectors, and where it goes.

20,000 random vectors of 384 dimensions in a flat FAISS index, fetch_k = 100, k = 10, VRSD. A query's embedding takes
nothing here, it is looked up. Each call takes turns with the search that it is compared to, on one BLAS thread; the
overhead is the median over the turns of the difference, the choice itself included. What a call is compared to
touches nothing of setselect, and each runs as its framework runs it:

- LangChain: FAISS's `search_and_reconstruct`, and the documents out of the docstore; for `ainvoke` in a thread, as
  LangChain's own `asimilarity_search_by_vector` does it.
- LlamaIndex: `index.as_retriever(similarity_top_k=100).retrieve`, and FAISS's `reconstruct_batch` for what it found.

The rows that name the frameworks alone compare their plain retrievers, which choose nothing, with their own search
below callbacks, spans and events, and a query engine whose postprocessor only cuts the list with its retriever: what
no adapter can take away.

    python benchmarks/adapters.py                                        # prints the tables
    python benchmarks/adapters.py --save before.json --code 19ba9bd      # keeps the numbers of this state of the code
    python benchmarks/adapters.py --before before.json --write           # and writes benchmarks/results/adapters.md

An older state of the code is measured by a copy of this file in its own checkout.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import asyncio
import importlib.util
import inspect
import json
import platform
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

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

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor

RESULTS = ROOT / "benchmarks" / "results" / "adapters.md"
Run = Callable[[str], Any]


class Pair(NamedTuple):
    """A call, and what it is compared to; either may have to be awaited."""

    name: str
    call: Run
    less: Run


class Timed(NamedTuple):
    """A phase of a call: what people call it, and the functions that it is made of, as module:name."""

    name: str
    functions: tuple[str, ...] = ()


CORE = (
    Timed("ids and rows made ready", ("shared_core.retrieval.request:Request.choose",)),
    # With compiled loops the choice has the checks in it.
    Timed("Candidates: checks, lengths, relevance", ("shared_core.candidates:Candidates.borrow",)),
    Timed(
        "the choice of VRSD", ("shared_core.retrieval.request:choose", "shared_core.retrieval.request:select_at_once")
    ),
)
# What is nested in another phase does not count there; a call's first phase has what is left.
LANGCHAIN = (
    Timed("LangChain's invoke: callbacks, configuration; what is left"),
    Timed("settings", ("langchain_setselect._settings:ChoiceSettings._request",)),
    Timed("query: its embedding, checks", ("langchain_setselect.retriever:ask",)),
    Timed("FAISS: search, vectors", ("langchain_setselect.stores.faiss:search_with_vectors",)),
    Timed("documents, checks of the hits", ("langchain_setselect.vectors:Search.run",)),
    *CORE,
    Timed("copies of the documents", ("langchain_setselect.retriever:choose_documents",)),
)
LLAMAINDEX = (
    Timed("LlamaIndex's own part: spans, events, callbacks; what is left"),
    Timed("settings", ("llamaindex_setselect.postprocessor:SetSelectPostprocessor._request",)),
    Timed(
        "query: its embedding, checks",
        ("llamaindex_setselect.retriever:ask", "llamaindex_setselect.postprocessor:ask"),
    ),
    Timed(
        "VectorIndexRetriever: search, nodes",
        (
            "llamaindex_setselect.retriever:SetSelectIndexRetriever._search",
            "llama_index.core.indices.vector_store.retrievers:VectorIndexRetriever._get_nodes_with_embeddings",
        ),
    ),
    Timed("vectors", ("llamaindex_setselect.vectors:NodeVectors.fetch",)),
    *CORE,
    Timed(
        "copies of the nodes",
        ("llamaindex_setselect.retriever:choose_nodes", "llamaindex_setselect.postprocessor:choose_nodes"),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=400, help="how often each call is timed")
    parser.add_argument("--code", default="this state of the code", help="what the table calls the code measured")
    parser.add_argument("--save", type=Path, help="a JSON file for the numbers")
    parser.add_argument("--before", type=Path, help="numbers of an earlier state, to stand beside these")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    asked = parser.parse_args()
    found = measured(asked.turns, asked.code)
    if asked.save:
        asked.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = page(found, json.loads(asked.before.read_text(encoding="utf-8")) if asked.before else None)
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


def measured(turns: int, code: str) -> dict[str, Any]:
    """Microseconds of all calls and of their phases."""
    store = FAISS(harness.TableEmbeddings(harness.TABLE), IndexFlatL2(DIMENSION), InMemoryDocstore(), {})
    harness.fill(store)
    index = harness.index_over(FaissVectorStore(IndexFlatL2(DIMENSION)), harness.TableEmbedding(table=harness.TABLE))
    engine = RetrieverQueryEngine(
        index.as_retriever(similarity_top_k=FETCH_K),
        silent(),
        [SetSelectPostprocessor(index=index, top_n=K)],
    )
    langchain, llamaindex = (
        SetSelectRetriever(vectorstore=store, k=K, fetch_k=FETCH_K),
        bundled(SetSelectIndexRetriever(index, top_n=K, fetch_k=FETCH_K).retrieve),
    )
    pairs = [
        *of_langchain(store, langchain),
        *of_llamaindex(index, llamaindex, bundled(engine.retrieve)),
    ]
    return {
        "code": code,
        "turns": turns,
        "calls": {pair.name: times for pair, times in zip(pairs, asyncio.run(race(pairs, turns)), strict=True)},
        "phases": {
            "LangChain, `invoke`": phases(langchain.invoke, LANGCHAIN, turns),
            "LlamaIndex, retriever": phases(llamaindex, LLAMAINDEX, turns),
            "LlamaIndex, query engine": phases(bundled(engine.retrieve), LLAMAINDEX, turns),
        },
    }


def of_langchain(store: FAISS, retriever: SetSelectRetriever) -> list[Pair]:
    plain = store.as_retriever(search_kwargs={"k": FETCH_K})

    def with_vectors(query: str) -> tuple[list[str | Document], np.ndarray]:
        vector = np.asarray(harness.QUERIES[query], dtype=np.float32)
        _, labels, vectors = store.index.search_and_reconstruct(vector[None], FETCH_K)
        names = store.index_to_docstore_id
        return [store.docstore.search(names[label]) for label in labels[0].tolist()], vectors[0]

    async def awith_vectors(query: str) -> tuple[list[str | Document], np.ndarray]:
        return await run_in_executor(None, with_vectors, query)

    return [
        Pair("LangChain, `SetSelectRetriever.invoke`", retriever.invoke, with_vectors),
        Pair("LangChain, `SetSelectRetriever.ainvoke`", retriever.ainvoke, awith_vectors),
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


def of_llamaindex(index: Any, retriever: Run, engine: Run) -> list[Pair]:
    plain = index.as_retriever(similarity_top_k=FETCH_K)
    labels = {name: int(label) for label, name in index.index_struct.nodes_dict.items()}

    def with_vectors(query: str) -> tuple[list[NodeWithScore], np.ndarray]:
        found = plain.retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))
        keys = np.array([labels[node.node_id] for node in found])
        return found, index.vector_store.client.reconstruct_batch(keys)

    return [
        Pair("LlamaIndex, `SetSelectIndexRetriever.retrieve`", retriever, with_vectors),
        Pair("LlamaIndex, `SetSelectPostprocessor` in a query engine", engine, with_vectors),
        Pair(
            "LlamaIndex's `as_retriever().retrieve`, over its search",
            bundled(plain.retrieve),
            bundled(plain._get_nodes_with_embeddings),
        ),
        Pair(
            "LlamaIndex's query engine with a postprocessor that cuts, over its retriever",
            bundled(RetrieverQueryEngine(plain, silent(), [Cut()]).retrieve),
            bundled(plain.retrieve),
        ),
    ]


class Cut(BaseNodePostprocessor):
    """The least that a postprocessor can do."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes[:K]


def silent() -> BaseSynthesizer:
    """For a query engine of which only ``retrieve`` is called: the answer's language model has no part in it."""
    return get_response_synthesizer(llm=MockLLM())


def bundled(retrieve: Callable[[QueryBundle], Any]) -> Run:
    """A query that is embedded already."""
    return lambda query: retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))


async def race(pairs: list[Pair], turns: int) -> list[dict[str, float]]:
    """Microseconds of each; a call and what it is compared to change places at every turn."""
    queries = list(harness.QUERIES)
    found = []
    for pair in pairs:
        calls: list[float] = []
        searches: list[float] = []
        both = [(pair.call, calls), (pair.less, searches)]
        for turn in range(-10, turns):
            for run, seconds in both if turn % 2 else reversed(both):
                begun = time.perf_counter()
                result = run(queries[turn % len(queries)])
                if inspect.isawaitable(result):
                    await result
                if turn >= 0:
                    seconds.append(time.perf_counter() - begun)
        found.append(summary(calls, searches))
    return found


def summary(calls: list[float], searches: list[float]) -> dict[str, float]:
    more = [1e6 * (a - b) for a, b in zip(calls, searches, strict=True)]
    low, middle, high = statistics.quantiles(more, n=4)
    return {
        "call": 1e6 * statistics.median(calls),
        "search": 1e6 * statistics.median(searches),
        "more": middle,
        "low": low,
        "high": high,
    }


def phases(run: Run, parts: tuple[Timed, ...], turns: int) -> dict[str, float]:
    """Median microseconds in each phase of a call."""
    clock = Clock()
    queries = list(harness.QUERIES)
    took: dict[str, list[float]] = {part.name: [] for part in parts}
    with clock.watching(parts[1:]):
        root = clock.wrapped(run, parts[0].name)
        for turn in range(-10, turns):
            clock.spent = dict.fromkeys(took, 0.0)
            root(queries[turn % len(queries)])
            for name, seconds in clock.spent.items():
                took[name].append(seconds)
    return {name: 1e6 * statistics.median(seconds) for name, seconds in took.items()}


class Clock:
    """Adds up the time spent in phases, each less what others take within it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._inner = 0.0

    def wrapped(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        """The same function, its time going to a phase."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            outer, self._inner = self._inner, 0.0
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.perf_counter() - begun
                self.spent[phase] += took - self._inner
                self._inner = outer + took

        return timed

    @contextmanager
    def watching(self, parts: tuple[Timed, ...]) -> Iterator[None]:
        """The functions of these phases wrapped, for as long as it lasts."""
        undone: list[tuple[Any, str, Any]] = []
        try:
            for part in parts:
                for path in part.functions:
                    module, _, name = path.partition(":")
                    owner: Any = importlib.import_module(module)
                    *classes, last = name.split(".")
                    for cls in classes:
                        owner = getattr(owner, cls)
                    own = inspect.getattr_static(owner, last)
                    undone.append((owner, last, own))
                    method = isinstance(own, classmethod)
                    timed = self.wrapped(own.__func__ if method else own, part.name)
                    setattr(owner, last, classmethod(timed) if method else timed)
            yield
        finally:
            for owner, last, own in undone:
                setattr(owner, last, own)


def page(found: dict[str, Any], before: dict[str, Any] | None) -> str:
    states = [found] if before is None else [before, found]
    lines = ["# What the adapters add to a search with vectors", ""]
    about = (
        f"Written by `benchmarks/adapters.py --write`, which says what is compared to what: {N:,} random vectors of "
        f"{DIMENSION} dimensions in a flat FAISS index, fetch_k = {FETCH_K}, k = {K}, VRSD. Microseconds. The overhead "
        "is the median difference of a call and the search beside it, the quartiles of the difference in brackets; "
        f"{found['turns']} turns, one BLAS thread, {os.cpu_count()} cores that others may share, {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, {compiler()}, "
        + ", ".join(
            f"{name} {version(name)}"
            for name in ("faiss-cpu", "langchain-core", "langchain-community", "llama-index-core", "pydantic")
        )
        + "."
    )
    lines += [*textwrap.wrap(about, 120), ""]
    if before is not None:
        lines += [f"Before is {before['code']}, after is {found['code']}.", ""]
    titles = ["overhead"] if before is None else ["overhead before", "overhead after"]
    lines += table(
        ["", "search with vectors", "call", *titles],
        [
            [
                name,
                f"{times['search']:,.0f}",
                f"{times['call']:,.0f}",
                *(cell(state["calls"].get(name)) for state in states),
            ]
            for name, times in found["calls"].items()
        ],
    )
    for call, own in found["phases"].items():
        lines += ["", f"## {call}: where the time goes", ""]
        columns = [state["phases"][call] for state in states]
        rows = [[name, *(f"{column[name]:,.0f}" for column in columns)] for name in own]
        rows.append(["all", *(f"{sum(column.values()):,.0f}" for column in columns)])
        lines += table(["", *(["µs"] if before is None else ["before", "after"])], rows)
    return "\n".join(lines) + "\n"


def compiler() -> str:
    """What makes the choice, beside numpy."""
    return "without numba" if importlib.util.find_spec("numba") is None else f"numba {version('numba')}"


def cell(times: dict[str, float] | None) -> str:
    # A row that an earlier state of this file did not have.
    if times is None:
        return "–"
    return f"{times['more']:,.0f} ({times['low']:,.0f} to {times['high']:,.0f})"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * (len(head) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


if __name__ == "__main__":
    main()
