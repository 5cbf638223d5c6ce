"""The cost of stored vectors, store by store: plain search, search with vectors, whole retriever, embedding again.

20,000 random vectors of 384 dimensions, fetch_k = 100, k = 10, through the stores that the tests open. The query's own
embedding is looked up and costs nothing here, because it would add the same time to every row; only the row that embeds
the texts again embeds its query too. The time "with vectors" ends when the vectors are numpy arrays. Milliseconds are
medians over the queries, on one BLAS thread; the contenders of a store take turns. A store whose package is missing is
left out: `make bench-stores` runs this script in each environment.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core.schema import QueryBundle

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from tests.stores import harness

N, DIMENSION, FETCH_K, K = 20_000, 384, 100, 10
harness.resize(N, DIMENSION)

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from tests.stores.cases import every_store

# Left out: stores that take too long to fill, and further settings of a store that is in the list.
LANGCHAIN = [
    "in memory",
    "FAISS flat, L2",
    "Chroma in memory, l2",
    "Chroma on a server, ip",
    "Qdrant in memory, Euclid",
    "LanceDB",
    "Milvus Lite FLAT, COSINE, given ids",
    "PGVector, cosine",
    "PGVectorStore, cosine",
    "DuckDB in memory",
    "sqlite-vec",
]
LLAMAINDEX = [
    "simple",
    "FAISS flat, L2",
    "Chroma in memory, l2",
    "Chroma on a server, ip",
    "Qdrant in memory, Euclid",
    "LanceDB",
    "Milvus Lite FLAT, COSINE",
    "PostgreSQL, plain",
    "DuckDB in memory, lists",
]
SECONDS = 2.0
Run = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[""], help="measure only stores whose name contains one of these")
    parser.add_argument("--heading", action="store_true", help="first print the heading of the table")
    asked = parser.parse_args()
    if asked.heading:
        print("| store | framework | search | with vectors | retriever, VRSD | retriever less with vectors |")
        print("| --- | --- | ---: | ---: | ---: | ---: |")
    for framework, wanted, have, contenders in (
        ("LangChain", LANGCHAIN, every_store.LANGCHAIN, of_langchain),
        ("LlamaIndex", LLAMAINDEX, every_store.LLAMAINDEX, of_llamaindex),
    ):
        by_name = {case.name: case for case in have}
        for name in wanted:
            if any(part in name for part in asked.only):
                measure(name, framework, by_name[name], contenders)
    if "" in asked.only and find_spec("sentence_transformers"):
        embedding_again()


def measure(name: str, framework: str, case: Any, contenders: Callable[..., dict[str, Run]]) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            runs = contenders(case, folder, stack)
        except pytest.skip.Exception as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            return
        took = race(runs)
        row(name, framework, took)


def row(name: str, framework: str, took: dict[str, float]) -> None:
    times = " | ".join(f"{1000 * took[what]:.2f}" for what in ("search", "with vectors", "retriever"))
    print(f"| {name} | {framework} | {times} | {1000 * took['more']:.2f} |", flush=True)


def of_langchain(case: harness.LangChainCase, folder: Path, stack: ExitStack) -> dict[str, Run]:
    store = stack.enter_context(case.open(harness.TableEmbeddings(harness.TABLE), folder))
    reader = harness.langchain_reader(store)
    retriever = SetSelectRetriever(vectorstore=store, search_type="vrsd", k=K, fetch_k=FETCH_K)
    return {
        "search": lambda query: case.own(store, harness.QUERIES[query], FETCH_K),
        "with vectors": lambda query: np.asarray(reader.search(store, harness.QUERIES[query], FETCH_K)[1]),
        "retriever": retriever.invoke,
    }


def of_llamaindex(case: harness.LlamaIndexCase, folder: Path, stack: ExitStack) -> dict[str, Run]:
    store = stack.enter_context(case.open(folder))
    index = harness.index_over(store, harness.TableEmbedding(table=harness.TABLE))
    plain = index.as_retriever(similarity_top_k=FETCH_K)
    retriever = SetSelectIndexRetriever(index, selector="vrsd", top_n=K, fetch_k=FETCH_K)

    def search(query: str) -> list[Any]:
        return plain.retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))

    def with_vectors(query: str) -> list[np.ndarray]:
        return arrays(harness.node_vectors([found.node for found in search(query)], index=index))

    return {
        "search": search,
        "with vectors": with_vectors,
        "retriever": lambda query: retriever.retrieve(QueryBundle(query, embedding=harness.QUERIES[query])),
    }


def arrays(found: dict[str, Any]) -> list[np.ndarray]:
    """The vectors as arrays; some stores return lists of Python floats."""
    return [np.asarray(vector) for vector in found.values()]


def embedding_again() -> None:
    """The same FAISS index in a class that setselect does not know, with texts from NumPy's docstrings."""
    from _minilm import MiniLM, load_minilm, numpy_docs
    from langchain_community.vectorstores import FAISS

    class Uncached(MiniLM):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = load_minilm().embed_documents(texts).tolist()
            return vectors

    texts = numpy_docs().texts
    model = Uncached()
    inner = FAISS.from_embeddings([(texts[i % len(texts)], row.vector) for i, row in enumerate(harness.ROWS)], model)

    class Unknown(VectorStore):
        @property
        def embeddings(self) -> Any:
            return model

        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            return inner.similarity_search_by_vector(embedding, k, **kwargs)

        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return inner.similarity_search(query, k, **kwargs)

        @classmethod
        def from_texts(cls, *arguments: Any, **more: Any) -> Any:
            raise NotImplementedError

    retriever = SetSelectRetriever(vectorstore=Unknown(), search_type="vrsd", k=K, fetch_k=FETCH_K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        took = race({"search": lambda query: inner.similarity_search(query, FETCH_K), "retriever": retriever.invoke})
    name = f"FAISS, embedding {FETCH_K} texts again with all-MiniLM-L6-v2"
    more = took["retriever"] - took["search"]
    print(
        f"| {name} | LangChain | {1000 * took['search']:.2f} | – | {1000 * took['retriever']:.2f} | {1000 * more:.2f} |"
    )


def race(runs: dict[str, Run]) -> dict[str, float]:
    """Median seconds of each contender. They take turns, query by query, for 25 to 200 turns."""
    queries = list(harness.QUERIES)
    took: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(queries[0])
    start = time.perf_counter()
    turn = 0
    while turn < 25 or (time.perf_counter() - start < SECONDS * len(runs) and turn < 200):
        for name, run in runs.items():
            begun = time.perf_counter()
            run(queries[turn % len(queries)])
            took[name].append(time.perf_counter() - begun)
        turn += 1
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    # Differences are taken query by query, because a search of 300 ms varies by more than the retriever adds.
    fetched = took.get("with vectors", took["search"])
    medians["more"] = statistics.median(a - b for a, b in zip(took["retriever"], fetched, strict=True))
    return medians


if __name__ == "__main__":
    main()
