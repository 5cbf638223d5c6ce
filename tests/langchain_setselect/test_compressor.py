"""Where LangChain's compressor gets its vectors: from the store by id, from a cache, else by embedding with a warning.

tests/adapters has what it shares with the other classes.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source
from setselect import (
    EmbeddingFallbackWarning,
    SetSelectWarning,
    VectorSourceError,
)
from shared_core.retrieval import events
from tests.adapters.bindings import QUERY, expected, nearest, numbers
from tests.embedding import corpus
from tests.langchain_setselect.conftest import WordEmbeddings, faiss

# Thirty rows of the corpus, out of order, as another retriever might return them.
ROWS = [(i * 7) % 60 for i in range(30)]


@pytest.fixture(autouse=True)
def _nobody_was_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "FALLBACKS", set())


@pytest.fixture
def documents() -> list[Document]:
    return [Document(corpus()[i][0], metadata=dict(corpus()[i][1]), id=f"doc-{i}") for i in ROWS]


def compressed(documents: list[Document], **settings: Any) -> list[int]:
    return numbers(SetSelectCompressor(**settings).compress_documents(documents, QUERY))


def test_vectors_come_from_the_store_by_id(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    made = SetSelectCompressor(vectorstore=store, k=6)
    assert isinstance(made, BaseDocumentCompressor)
    assert made.vector_source.startswith(f"store: {type(store).__name__}")
    assert numbers(made.compress_documents(documents, QUERY)) == expected(ROWS, 6)
    assert (embeddings.documents, embeddings.queries) == (0, 1)


def test_documents_that_the_store_does_not_know_are_embedded(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    mixed = [d.model_copy(update={"id": f"stranger-{d.id}"}) if i % 3 else d for i, d in enumerate(documents)]
    with pytest.warns(EmbeddingFallbackWarning, match=rf"20 .*{type(store).__name__}"):
        assert compressed(mixed, vectorstore=store, k=8) == expected(ROWS, 8)
    assert embeddings.documents == 20


def test_documents_that_a_reranker_returned_without_ids_are_known_by_their_text(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    nameless = [d.model_copy(update={"id": None}) for d in documents]
    assert compressed(nameless, vectorstore=store) == expected(ROWS)
    assert embeddings.documents == 0
    # The store does not have these texts.
    changed = [d.model_copy(update={"page_content": f"{d.page_content}!"}) for d in nameless]
    with pytest.warns(EmbeddingFallbackWarning, match=r"30 .*30 of them have no id"):
        compressed(changed, vectorstore=store)
    assert embeddings.documents == 30


def test_a_store_without_embeddings_needs_the_argument(embeddings: WordEmbeddings, documents: list[Document]) -> None:
    store: Any = faiss(embeddings)
    store.embedding_function = embeddings.embed_query
    with pytest.raises(VectorSourceError, match="embeddings="):
        compressed(documents, vectorstore=store)
    assert compressed(documents, vectorstore=store, embeddings=embeddings) == expected(ROWS)
    with pytest.raises(VectorSourceError, match="embeddings="):
        SetSelectRetriever(vectorstore=store).invoke(QUERY)
    assert numbers(SetSelectRetriever(vectorstore=store, embeddings=embeddings).invoke(QUERY)) == expected(nearest())


async def test_the_reader_of_an_own_store_gets_each_id_once_and_is_awaited(
    embeddings: WordEmbeddings, documents: list[Document]
) -> None:
    class Remote(InMemoryVectorStore):
        pass

    called: list[str] = []

    def fetch(store: Remote, ids: Any) -> Any:
        called.append("sync")
        assert len(set(ids)) == len(ids) == 30
        return {name: store.store[name]["vector"] for name in ids}

    async def afetch(store: Remote, ids: Any) -> Any:
        called.append("async")
        return {name: store.store[name]["vector"] for name in ids}

    register_vector_source(Remote, lambda *a, **k: ([], []), fetch=fetch, afetch=afetch)
    store = Remote(embeddings)
    store.add_documents(documents)
    embeddings.documents = 0
    made = SetSelectCompressor(vectorstore=store, k=5)
    assert numbers(await made.acompress_documents(documents * 2, QUERY)) == expected(ROWS, 5)
    assert numbers(made.compress_documents(documents * 2, QUERY)) == expected(ROWS, 5)
    assert (called, embeddings.documents) == (["async", "sync"], 0)


def test_pieces_that_share_an_id_are_separate_candidates(embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["river mountain bread"], ids=["whole"])
    pieces = [Document(text, id="whole") for text in ("river", "mountain", "bread")]
    made = SetSelectCompressor(vectorstore=store, k=3, order="relevance")
    with pytest.warns(EmbeddingFallbackWarning):
        chosen = made.compress_documents(pieces, "bread")
    assert {document.page_content for document in chosen} == {"river", "mountain", "bread"}
    assert chosen[0].page_content == "bread", "by its own vector, not that of the whole document"


@pytest.mark.parametrize("key", ["flashrank_relevance_score", "rerank_score", "@search.reranker_score"])
def test_scores_under_other_keys_of_rerankers_are_warned_of(
    key: str, store: VectorStore, documents: list[Document]
) -> None:
    for place, document in enumerate(documents[1:]):
        document.metadata[key] = place * 7 % 20
    with pytest.warns(SetSelectWarning, match=f"the {key} .*ignored.*relevance='{key}'"):
        compressed(documents, vectorstore=store)
    documents[1].metadata[key] = 10**400  # no score, because it is larger than any float
    with pytest.warns(SetSelectWarning, match=f"the {key} "):
        compressed(documents, vectorstore=store)
    documents[1].metadata[key] = 0
    documents[0].metadata[key] = 20
    assert compressed(documents, vectorstore=store, relevance=key, search_type="similarity")[0] == ROWS[0]
