"""Where the vectors come from: a registered reader, an embedding model, a cache; and what goes wrong between."""

from typing import Any

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source, vectors
from shared_core import EmbeddingFallbackWarning, InvalidParameterError, SetSelectWarning, VectorSourceError
from shared_core.retrieval import events
from tests.langchain_setselect.conftest import WordEmbeddings, faiss, in_memory

QUERY = "old river passage"


class TextOnly(VectorStore):
    """A real store behind a class that has no vector reader and searches by text only."""

    def __init__(self, inner: VectorStore) -> None:
        self.inner: Any = inner

    @property
    def embeddings(self) -> Any:
        return self.inner.embeddings

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.inner.similarity_search(query, k, **kwargs)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> "TextOnly":
        return cls(InMemoryVectorStore.from_texts(texts, embedding, metadatas, **kwargs))


class Wrapped(TextOnly):
    """The same with a search by vector."""

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        return self.inner.similarity_search_by_vector(embedding, k, **kwargs)


class Further(Wrapped):
    pass


def search(store: Wrapped, query: list[float], fetch_k: int, **kwargs: Any) -> tuple[list[Document], list[Any]]:
    found = store.similarity_search_by_vector(query, fetch_k, **kwargs)
    return found, [store.inner.store[document.id]["vector"] for document in found]


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the readers and warnings of other tests."""
    monkeypatch.setattr(vectors, "_READERS", dict(vectors._READERS))
    monkeypatch.setattr(events, "FALLBACKS", set())


async def test_the_texts_of_an_unknown_store_are_embedded_with_one_warning_per_class(
    embeddings: WordEmbeddings,
) -> None:
    known = in_memory(embeddings)
    wanted = SetSelectRetriever(vectorstore=known).invoke(QUERY)
    retriever = SetSelectRetriever(vectorstore=Wrapped(known))
    assert "embedding the texts with WordEmbeddings" in retriever.vector_source
    embeddings.documents = 0
    with pytest.warns(EmbeddingFallbackWarning, match=r"50 .*Wrapped.*register_vector_source"):
        assert retriever.invoke(QUERY) == wanted
    assert embeddings.documents == 50
    # A second warning would be an error here.
    assert retriever.invoke(QUERY) == wanted
    embeddings.async_calls = 0
    with pytest.warns(EmbeddingFallbackWarning, match="Further"):
        assert await SetSelectRetriever(vectorstore=Further(known)).ainvoke(QUERY) == wanted
    assert embeddings.async_calls == 2


async def test_a_cache_of_embeddings_embeds_each_text_once(embeddings: WordEmbeddings) -> None:
    known = in_memory(embeddings)
    cache = CacheBackedEmbeddings.from_bytes_store(embeddings, InMemoryByteStore(), key_encoder="sha256")
    retriever = SetSelectRetriever(vectorstore=Wrapped(known), embeddings=cache, k=3)
    assert "CacheBackedEmbeddings" in retriever.vector_source
    embeddings.documents = 0
    documents = retriever.invoke(QUERY)
    assert retriever.invoke(QUERY) == await retriever.ainvoke(QUERY) == documents
    assert embeddings.documents == 50, "the second and third calls use the cache"
    assert documents == SetSelectRetriever(vectorstore=known, k=3).invoke(QUERY)
    compressor = SetSelectCompressor(embeddings=cache, k=3)
    assert "CacheBackedEmbeddings" in compressor.vector_source
    compressor.compress_documents(known.similarity_search(QUERY, 50), QUERY)
    assert embeddings.documents == 50


async def test_a_store_that_searches_by_text_only_refuses_perspectives(embeddings: WordEmbeddings) -> None:
    known = in_memory(embeddings)
    retriever = SetSelectRetriever(vectorstore=TextOnly(known))
    with pytest.warns(EmbeddingFallbackWarning):
        assert retriever.invoke(QUERY) == SetSelectRetriever(vectorstore=known).invoke(QUERY)
    assert await retriever.ainvoke(QUERY) == retriever.invoke(QUERY)
    with pytest.raises(VectorSourceError, match="TextOnly"):
        retriever.invoke(QUERY, perspective="old")
    with pytest.raises(VectorSourceError, match="TextOnly"):
        await retriever.ainvoke(QUERY, perspective="old")


@pytest.mark.parametrize("name", [Wrapped, f"{Wrapped.__module__}.{Wrapped.__qualname__}"], ids=["class", "name"])
async def test_a_registered_reader_serves_subclasses_sync_and_async(embeddings: WordEmbeddings, name: Any) -> None:
    called: list[str] = []

    async def asearch(*arguments: Any, **kwargs: Any) -> Any:
        called.append("async")
        found, rows = search(*arguments, **kwargs)
        return found, np.array(rows)

    register_vector_source(name, search, asearch=asearch)
    known = in_memory(embeddings)
    wanted = SetSelectRetriever(vectorstore=known).invoke(QUERY)
    embeddings.documents = 0
    retriever = SetSelectRetriever(vectorstore=Further(known))
    assert retriever.vector_source == "store: Further"
    assert retriever.invoke(QUERY) == wanted
    assert called == []
    assert await retriever.ainvoke(QUERY) == wanted
    assert called == ["async"]
    assert embeddings.documents == 0
    with pytest.raises(InvalidParameterError, match="store_class"):
        register_vector_source(known, search)  # type: ignore[arg-type]


def test_a_reader_that_returns_too_few_vectors_is_refused(embeddings: WordEmbeddings) -> None:
    def careless(*arguments: Any, **kwargs: Any) -> Any:
        found, rows = search(*arguments)
        return found, np.array(rows[1:])

    register_vector_source(Wrapped, careless)
    with pytest.raises(VectorSourceError, match=r"50 .*49 "):
        SetSelectRetriever(vectorstore=Wrapped(in_memory(embeddings))).invoke(QUERY)


def test_a_document_deleted_between_search_and_fetch_is_left_out_and_named(embeddings: WordEmbeddings) -> None:
    class Racing(InMemoryVectorStore):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            found = super().similarity_search_by_vector(embedding, k, **kwargs)
            self.delete([str(found[0].id)])
            return found

    store = Racing(embeddings)
    store.add_texts([f"{QUERY} {i}" for i in range(10)], ids=[str(i) for i in range(10)])
    gone = InMemoryVectorStore.similarity_search(store, f"{QUERY} 3", k=1)[0]
    with pytest.warns(SetSelectWarning, match=f"'{gone.id}'"):
        documents = SetSelectRetriever(vectorstore=store, k=9).invoke(f"{QUERY} 3")
    assert gone.id not in [d.id for d in documents]
    assert len(documents) == 9


def test_ids_may_be_integers_in_the_metadata_and_shown_needs_ids(embeddings: WordEmbeddings) -> None:
    def numbered(*arguments: Any, **kwargs: Any) -> Any:
        found, rows = search(*arguments)
        return [Document(d.page_content, metadata={"key": int(str(d.id)[4:])}) for d in found], rows

    retriever = SetSelectRetriever(vectorstore=Wrapped(in_memory(embeddings)), k=4)
    register_vector_source(Wrapped, numbered)
    with pytest.raises(ValueError, match=r"shown=.*id_of="):
        retriever.invoke(QUERY, shown=["doc-1"])
    register_vector_source(Wrapped, numbered, id_of=lambda store, document: str(document.metadata["key"]))
    first = [document.metadata["key"] for document in retriever.invoke(QUERY)]
    then = [document.metadata["key"] for document in retriever.invoke(QUERY, shown=first)]
    assert not set(first) & set(then)


def test_a_document_missing_from_the_docstore_of_faiss_is_left_out(embeddings: WordEmbeddings) -> None:
    store: Any = faiss(embeddings)
    first = SetSelectRetriever(vectorstore=store).invoke(QUERY)[0]
    store.docstore.delete([first.id])
    for more in ({}, {"filter": lambda metadata: True}):
        documents = SetSelectRetriever(vectorstore=store).invoke(QUERY, **more)
        assert first.id not in [d.id for d in documents]
        assert len(documents) == 4


def test_a_document_that_reuses_a_label_of_faiss_is_found(embeddings: WordEmbeddings) -> None:
    store: Any = faiss(embeddings)
    known = [store.docstore.search(f"doc-{i}") for i in range(5)]
    compressor = SetSelectCompressor(vectorstore=store, k=2)
    compressor.compress_documents(known, QUERY)
    store.delete(["doc-59"])
    store.add_texts(["a newcomer"], ids=["new"])
    embeddings.documents = 0
    compressor.compress_documents([*known, store.docstore.search("new")], QUERY)
    assert embeddings.documents == 0
