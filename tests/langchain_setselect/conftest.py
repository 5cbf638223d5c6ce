from collections.abc import Callable

import pytest
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
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


def in_memory(embeddings: Embeddings) -> VectorStore:
    store = InMemoryVectorStore(embeddings)
    texts, metadatas = zip(*corpus(), strict=True)
    store.add_texts(list(texts), list(metadatas), ids=[f"doc-{i}" for i in range(len(texts))])
    return store


def faiss(embeddings: Embeddings) -> VectorStore:
    texts, metadatas = zip(*corpus(), strict=True)
    return FAISS.from_texts(
        list(texts), embeddings, list(metadatas), ids=[f"doc-{i}" for i in range(len(texts))], normalize_L2=True
    )


def faiss_inner_product(embeddings: Embeddings) -> VectorStore:
    texts, metadatas = zip(*corpus(), strict=True)
    return FAISS.from_texts(
        list(texts),
        embeddings,
        list(metadatas),
        ids=[f"doc-{i}" for i in range(len(texts))],
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )


STORES: dict[str, Callable[[Embeddings], VectorStore]] = {"in memory": in_memory, "FAISS": faiss}


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture(params=STORES.values(), ids=STORES.keys())
def store(request: pytest.FixtureRequest, embeddings: WordEmbeddings) -> VectorStore:
    made: VectorStore = request.param(embeddings)
    embeddings.counts()
    return made
