"""A small corpus, an embedding model that counts its calls, and indexes over real stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.faiss import FaissMapVectorStore, FaissVectorStore
from numpy.typing import NDArray

from setselect import select
from tests.embedding import DIMENSION, embed

QUERY = "effects of coffee and tea on sleep and memory"

SUBJECTS = ("coffee", "tea", "green tea", "cocoa", "water", "juice")
EFFECTS = ("sleep", "memory", "heart rate", "digestion", "mood")
TEXTS = [f"{subject} has effects on {effect}" for subject in SUBJECTS for effect in EFFECTS]
# Near-duplicates, so that a selection by relevance alone is bad.
TEXTS += [f"{text} indeed" for text in TEXTS[:10]]


def embedding(text: str) -> list[float]:
    """The embedding at unit length, because FAISS does not scale vectors."""
    vector = embed(text)
    unit: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return unit


class CountingEmbedding(BaseEmbedding):
    """Records the texts that it embeds, and which of them by the async methods."""

    _queries: list[str] = PrivateAttr(default_factory=list)
    _texts: list[str] = PrivateAttr(default_factory=list)
    _asynchronous: list[str] = PrivateAttr(default_factory=list)

    @property
    def queries(self) -> list[str]:
        return self._queries

    @property
    def texts(self) -> list[str]:
        return self._texts

    @property
    def asynchronous(self) -> list[str]:
        return self._asynchronous

    def counts(self) -> tuple[int, int, int]:
        """Queries, texts and async calls since the last look."""
        counts = len(self._queries), len(self._texts), len(self._asynchronous)
        self.forget()
        return counts

    def forget(self) -> None:
        for kept in (self._queries, self._texts, self._asynchronous):
            kept.clear()

    def _get_query_embedding(self, query: str) -> list[float]:
        self._queries.append(query)
        return embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        self._asynchronous.append(query)
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._texts.append(text)
        return embedding(text)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        self._asynchronous.append(text)
        return self._get_text_embedding(text)


class PlainStore(SimpleVectorStore):
    """For tests that register their own reader."""


def make_nodes() -> list[TextNode]:
    return [
        TextNode(
            id_=f"n{i}",
            text=text,
            metadata={"stars": i % 5, "subject": text.split()[0]},
            excluded_embed_metadata_keys=["stars", "subject"],
        )
        for i, text in enumerate(TEXTS)
    ]


STORES = ("simple", "flat ip", "flat l2", "hnsw", "idmap", "idmap2")


def make_store(kind: str) -> Any:
    flat = faiss.IndexFlatIP(DIMENSION)
    match kind:
        case "simple":
            return SimpleVectorStore()
        case "flat ip":
            return FaissVectorStore(flat)
        case "flat l2":
            return FaissVectorStore(faiss.IndexFlatL2(DIMENSION))
        case "hnsw":
            graph = faiss.IndexHNSWFlat(DIMENSION, 16, faiss.METRIC_INNER_PRODUCT)
            # With the defaults a search for all nodes may miss some, and NDPP's temperature depends on all candidates.
            graph.hnsw.efConstruction = graph.hnsw.efSearch = 100
            return FaissVectorStore(graph)
        case "idmap":
            return FaissMapVectorStore(faiss.IndexIDMap(flat))
        case _:
            return FaissMapVectorStore(faiss.IndexIDMap2(flat))


def make_index(kind: str, model: CountingEmbedding, nodes: Sequence[TextNode] | None = None) -> VectorStoreIndex:
    storage = StorageContext.from_defaults(vector_store=make_store(kind))
    index = VectorStoreIndex(make_nodes() if nodes is None else nodes, embed_model=model, storage_context=storage)
    model.forget()
    return index


def scored(nodes: Sequence[TextNode], scores: Sequence[float | None] | None = None) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=None if scores is None else scores[i]) for i, node in enumerate(nodes)]


def bundle(text: str = QUERY) -> QueryBundle:
    return QueryBundle(text, embedding=embedding(text))


def ids_of(nodes: Sequence[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]


def scores_of(nodes: Sequence[NodeWithScore]) -> list[float]:
    return [node.get_score(raise_error=True) for node in nodes]


def matrix(ids: Sequence[str]) -> NDArray[np.float64]:
    return np.array([embedding(TEXTS[int(node_id[1:])]) for node_id in ids])


def expected(ids: Sequence[str], k: int, selector: Any = "coverage", **parameters: Any) -> list[str]:
    """What the core picks from the vectors and texts that were put in."""
    query = parameters.pop("query", embedding(QUERY))
    question = parameters.pop("question", QUERY)
    if selector == "coverage":
        parameters |= {"question": question, "texts": [TEXTS[int(node_id[1:])] for node_id in ids]}
    return [ids[i] for i in select(query, matrix(ids), k, selector, **parameters).indices]


ALL = [f"n{i}" for i in range(len(TEXTS))]
