from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from tests.embedding import corpus, embed


class WordEmbeddings(Embeddings):
    """Deterministic embeddings that count their calls."""

    def __init__(self) -> None:
        self.documents = 0
        self.queries = 0
        self.async_calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += len(texts)
        return [embed(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries += 1
        return embed(text).tolist()

    def counts(self) -> tuple[int, int, int]:
        """Queries, texts and async calls since the last look."""
        counts = self.queries, self.documents, self.async_calls
        self.queries = self.documents = self.async_calls = 0
        return counts

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.async_calls += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        self.async_calls += 1
        return self.embed_query(text)


TEXTS, METADATAS = ([*column] for column in zip(*corpus(), strict=True))
IDS = [f"doc-{i}" for i in range(len(TEXTS))]


def in_memory(embeddings: Embeddings) -> VectorStore:
    return InMemoryVectorStore.from_texts(TEXTS, embeddings, METADATAS, ids=IDS)


def faiss(embeddings: Embeddings, **settings: Any) -> VectorStore:
    settings = settings or {"normalize_L2": True}
    return FAISS.from_texts(TEXTS, embeddings, METADATAS, ids=IDS, **settings)


def faiss_inner_product(embeddings: Embeddings) -> VectorStore:
    return faiss(embeddings, distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)


class Runs(BaseCallbackHandler):
    """Keeps the runs and tags of retrievers, the parents of the runs of chains, and each event with its run."""

    def __init__(self) -> None:
        self.runs: list[UUID] = []
        self.tags: list[list[str]] = []
        self.parents: list[UUID | None] = []
        self.told: list[Any] = []
        self.senders: list[UUID] = []

    def on_retriever_start(self, *arguments: Any, run_id: UUID, tags: list[str], **more: Any) -> None:
        self.runs.append(run_id)
        self.tags.append(tags)

    def on_chain_start(self, *arguments: Any, parent_run_id: UUID | None = None, **more: Any) -> None:
        self.parents.append(parent_run_id)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        self.told.append(data)
        self.senders.append(run_id)


STORES: dict[str, Callable[[Embeddings], VectorStore]] = {"in memory": in_memory, "FAISS": faiss}


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture(params=STORES.values(), ids=STORES.keys())
def store(request: pytest.FixtureRequest, embeddings: WordEmbeddings) -> VectorStore:
    made: VectorStore = request.param(embeddings)
    embeddings.counts()
    return made
