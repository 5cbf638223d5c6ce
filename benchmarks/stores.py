"""The cost of stored vectors, store by store: plain search, search with vectors, whole retriever, embedding again.

20,000 random vectors of 384 dimensions, fetch_k = 100, k = 10, through the stores that the tests open. The query's own
embedding is looked up. The time "with vectors" ends when the vectors are numpy arrays. Milliseconds are medians, on one
BLAS thread. A store whose package is missing is left out: `make bench-stores` runs this script in each environment.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core.schema import QueryBundle

from benchmarks.common import parser, say, take_turns
from tests.stores import harness

N, DIMENSION, FETCH_K, K = 20_000, 384, 100, 10
if __name__ == "__main__":
    harness.resize(N, DIMENSION)

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from tests.stores.cases import every_store

# Left out: stores that take too long to fill, and further settings of a store that is in the list.
STORES = {
    "LangChain": (
        "in memory", "FAISS flat, L2", "Chroma in memory, l2", "Chroma on a server, ip", "Qdrant in memory, Euclid",
        "LanceDB", "Milvus Lite FLAT, COSINE, given ids", "PGVector, cosine", "PGVectorStore, cosine",
    ),
    "LlamaIndex": (
        "simple", "FAISS flat, L2", "Chroma in memory, l2", "Chroma on a server, ip", "Qdrant in memory, Euclid",
        "LanceDB", "Milvus Lite FLAT, COSINE", "PostgreSQL, plain",
    ),
}  # fmt: skip
SECONDS = 6.0
COLUMNS = ("search", "with vectors", "retriever")
Run = Callable[[str], object]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="*", default=[""], help="only stores whose name contains one of these")
    options.add_argument("--heading", action="store_true", help="first print the heading of the table")
    asked = options.parse_args()
    if asked.heading:
        print("| store | framework | search | with vectors | retriever, VRSD | retriever less with vectors |")
        print("| --- | --- | ---: | ---: | ---: | ---: |")
    make = {"LangChain": of_langchain, "LlamaIndex": of_llamaindex}
    for name, framework, runs in each_store(make, lambda name, _: any(part in name for part in asked.only)):
        measure(name, framework, runs)
    if "" in asked.only and find_spec("sentence_transformers"):
        embedding_again()


def each_store(
    make: dict[str, Callable[[Any, Path, ExitStack], dict[str, Run]]], is_wanted: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, dict[str, Run]]]:
    """Name, framework and contenders of every wanted store whose package is installed."""
    for framework, cases in (("LangChain", every_store.LANGCHAIN), ("LlamaIndex", every_store.LLAMAINDEX)):
        by_name: dict[str, Any] = {case.name: case for case in cases}
        for name in STORES[framework]:
            if is_wanted(name, framework):
                with ExitStack() as stack:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                    stack.enter_context(warnings.catch_warnings())
                    warnings.simplefilter("ignore")
                    try:
                        runs = make[framework](by_name[name], folder, stack)
                    except pytest.skip.Exception as missing:
                        say(f"{name}: {missing}")
                        continue
                    yield name, framework, runs


def measure(name: str, framework: str, runs: dict[str, Run]) -> None:
    took = take_turns(runs, list(harness.QUERIES), 200, SECONDS)
    cells = [f"{1000 * statistics.median(took[what]):.2f}" if what in took else "–" for what in COLUMNS]
    # Differences are taken query by query, because a search of 300 ms varies by more than the retriever adds.
    before = took.get("with vectors", took["search"])
    more = statistics.median(a - b for a, b in zip(took["retriever"], before, strict=True))
    print(f"| {name} | {framework} | {' | '.join(cells)} | {1000 * more:.2f} |", flush=True)


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
    retriever = SetSelectIndexRetriever(index, selector="vrsd", similarity_top_k=K, fetch_k=FETCH_K)

    def search(query: str) -> list[Any]:
        return plain.retrieve(QueryBundle(query, embedding=harness.QUERIES[query]))

    def with_vectors(query: str) -> list[np.ndarray]:
        # Some stores return lists of Python floats.
        vectors = harness.node_vectors([hit.node for hit in search(query)], index=index)
        return [np.asarray(vector) for vector in vectors.values()]

    return {
        "search": search,
        "with vectors": with_vectors,
        "retriever": lambda query: retriever.retrieve(QueryBundle(query, embedding=harness.QUERIES[query])),
    }


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
    name = f"FAISS, embedding {FETCH_K} texts again with all-MiniLM-L6-v2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = {"search": lambda query: inner.similarity_search(query, FETCH_K), "retriever": retriever.invoke}
        measure(name, "LangChain", runs)


if __name__ == "__main__":
    main()
