import warnings
from typing import Any

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.documents import Document
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source, vectors
from langchain_setselect.stores.reader import VectorReader
from langchain_setselect.vectors import reader_of
from shared_core import EmbeddingFallbackWarning, SetSelectWarning, VectorSourceError
from tests.langchain_setselect.conftest import WordEmbeddings, faiss, in_memory

QUERY = "old river passage"


class Wrapped(VectorStore):
    """A real store behind a class that has no vector reader."""

    def __init__(self, inner: VectorStore) -> None:
        self.inner = inner

    @property
    def embeddings(self) -> Any:
        return self.inner.embeddings

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.inner.similarity_search(query, k, **kwargs)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> "Wrapped":
        return cls(InMemoryVectorStore.from_texts(texts, embedding, metadatas, **kwargs))


def test_the_texts_of_an_unknown_store_are_embedded_with_one_warning_per_class(embeddings: WordEmbeddings) -> None:
    class Unknown(Wrapped):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            return self.inner.similarity_search_by_vector(embedding, k, **kwargs)

    known = in_memory(embeddings)
    retriever = SetSelectRetriever(vectorstore=Unknown(known), k=3)
    assert "embedding the texts with WordEmbeddings" in retriever.vector_source
    embeddings.documents = 0
    with pytest.warns(EmbeddingFallbackWarning, match=r"Unknown.*20 this time.*register_vector_source"):
        documents = retriever.invoke(QUERY)
    assert embeddings.documents == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert retriever.invoke(QUERY) == documents
    assert documents == SetSelectRetriever(vectorstore=known, k=3).invoke(QUERY)


async def test_a_cache_of_embeddings_embeds_each_text_once(embeddings: WordEmbeddings) -> None:
    class UnknownCached(Wrapped):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            return self.inner.similarity_search_by_vector(embedding, k, **kwargs)

    known = in_memory(embeddings)
    cache = CacheBackedEmbeddings.from_bytes_store(embeddings, InMemoryByteStore(), key_encoder="sha256")
    retriever = SetSelectRetriever(vectorstore=UnknownCached(known), embeddings=cache, k=3)
    assert retriever.vector_source.startswith("the cache of CacheBackedEmbeddings, else embedding with it")
    embeddings.documents = 0
    documents = retriever.invoke(QUERY)
    assert embeddings.documents == 20
    assert retriever.invoke(QUERY) == await retriever.ainvoke(QUERY) == documents
    assert embeddings.documents == 20, "the second and third calls use the cache"
    assert documents == SetSelectRetriever(vectorstore=known, k=3).invoke(QUERY)


async def test_the_fallback_is_async_too(embeddings: WordEmbeddings) -> None:
    class UnknownAsync(Wrapped):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            return self.inner.similarity_search_by_vector(embedding, k, **kwargs)

    known = in_memory(embeddings)
    with pytest.warns(EmbeddingFallbackWarning):
        documents = await SetSelectRetriever(vectorstore=UnknownAsync(known)).ainvoke(QUERY)
    assert documents == SetSelectRetriever(vectorstore=known).invoke(QUERY)
    assert embeddings.async_calls == 2


async def test_a_store_that_searches_by_text_only_refuses_perspectives(embeddings: WordEmbeddings) -> None:
    class TextOnly(Wrapped):
        pass

    known = in_memory(embeddings)
    retriever = SetSelectRetriever(vectorstore=TextOnly(known))
    with pytest.warns(EmbeddingFallbackWarning):
        assert retriever.invoke(QUERY) == SetSelectRetriever(vectorstore=known).invoke(QUERY)
    assert await retriever.ainvoke(QUERY) == retriever.invoke(QUERY)
    for call in (lambda: retriever.invoke(QUERY, perspective="old"),):
        with pytest.raises(VectorSourceError, match="cannot be searched by vector"):
            call()
    with pytest.raises(VectorSourceError, match="cannot be searched by vector"):
        await retriever.ainvoke(QUERY, perspective="old")


def test_a_registered_reader_serves_subclasses_without_a_warning(embeddings: WordEmbeddings) -> None:
    class Taught(Wrapped):
        pass

    class TaughtFurther(Taught):
        pass

    def search(store: Taught, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        found = store.inner.similarity_search_by_vector(query, k=fetch_k, **kwargs)
        return found, np.array([store.inner.store[d.id]["vector"] for d in found])  # type: ignore[attr-defined]

    register_vector_source(Taught, search)
    known = in_memory(embeddings)
    embeddings.documents = 0
    retriever = SetSelectRetriever(vectorstore=TaughtFurther(known))
    assert retriever.vector_source == "store: TaughtFurther"
    assert retriever.invoke(QUERY) == SetSelectRetriever(vectorstore=known).invoke(QUERY)
    assert embeddings.documents == 0


async def test_an_async_reader_is_awaited(embeddings: WordEmbeddings) -> None:
    class Remote(Wrapped):
        pass

    called: list[str] = []

    def search(store: Remote, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        called.append("sync")
        found = store.inner.similarity_search_by_vector(query, k=fetch_k, **kwargs)
        return found, [store.inner.store[d.id]["vector"] for d in found]  # type: ignore[attr-defined]

    async def asearch(store: Remote, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        hits = search(store, query, fetch_k, **kwargs)
        called.append("async")
        return hits

    register_vector_source(Remote, search, asearch=asearch)
    await SetSelectRetriever(vectorstore=Remote(in_memory(embeddings))).ainvoke(QUERY)
    assert called == ["sync", "async"]


def test_a_reader_that_returns_too_few_vectors_is_refused(embeddings: WordEmbeddings) -> None:
    class Careless(Wrapped):
        pass

    def search(store: Careless, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        found = store.inner.similarity_search_by_vector(query, k=fetch_k)
        return found, np.ones((len(found) - 1, 48))

    register_vector_source(Careless, search)
    with pytest.raises(VectorSourceError, match="20 documents and 19 vectors"):
        SetSelectRetriever(vectorstore=Careless(in_memory(embeddings))).invoke(QUERY)


def test_a_document_deleted_between_search_and_fetch_is_left_out_and_named(embeddings: WordEmbeddings) -> None:
    class Racing(InMemoryVectorStore):
        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            found = super().similarity_search_by_vector(embedding, k, **kwargs)
            self.delete([str(found[0].id)])
            return found

    store = Racing(embeddings)
    store.add_texts([f"{QUERY} {i}" for i in range(10)], ids=[str(i) for i in range(10)])
    gone = InMemoryVectorStore.similarity_search(store, f"{QUERY} 3", k=1)[0]
    with pytest.warns(SetSelectWarning, match=rf"no vector for '{gone.id}'"):
        documents = SetSelectRetriever(vectorstore=store, k=9).invoke(f"{QUERY} 3")
    assert gone.id not in [d.id for d in documents]
    assert len(documents) == 9


def test_a_document_missing_from_the_faiss_docstore_is_left_out_and_named(embeddings: WordEmbeddings) -> None:
    store: Any = faiss(embeddings)
    first = SetSelectRetriever(vectorstore=store).invoke(QUERY)[0]
    store.docstore.delete([first.id])
    with pytest.warns(SetSelectWarning, match=rf"{first.id}"):
        documents = SetSelectRetriever(vectorstore=store).invoke(QUERY)
    assert first.id not in [d.id for d in documents]


def test_the_same_id_twice_is_one_candidate(embeddings: WordEmbeddings) -> None:
    class Doubling(Wrapped):
        pass

    def search(store: Doubling, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        found = store.inner.similarity_search_by_vector(query, k=fetch_k, **kwargs)
        vectors = [store.inner.store[d.id]["vector"] for d in found]  # type: ignore[attr-defined]
        return found + found, vectors + vectors

    register_vector_source(Doubling, search)
    known = in_memory(embeddings)
    retriever = SetSelectRetriever(vectorstore=Doubling(known), k=20)
    documents = retriever.invoke(QUERY)
    assert len({d.id for d in documents}) == len(documents) == 20


def test_faiss_refuses_search_arguments_that_it_does_not_have(embeddings: WordEmbeddings) -> None:
    with pytest.raises(ValueError, match=r"no search argument 'nprobes'"):
        SetSelectRetriever(vectorstore=faiss(embeddings), search_kwargs={"nprobes": 3}).invoke(QUERY)


def test_a_class_can_be_registered_by_its_name(embeddings: WordEmbeddings) -> None:
    class Named(Wrapped):
        pass

    register_vector_source(f"{Named.__module__}.{Named.__qualname__}", lambda *a, **k: ([], []))
    assert reader_of(Named(in_memory(embeddings))) is not None
    assert SetSelectRetriever(vectorstore=Named(in_memory(embeddings))).invoke(QUERY) == []


def number_sources(store: Any) -> None:
    """Documents with integer ids in their metadata and no ``id``."""

    def search(store: Any, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        found = store.inner.similarity_search_by_vector(query, k=fetch_k)
        bare = [Document(d.page_content, metadata={"key": int(str(d.id)[4:]), "topic": "one"}) for d in found]
        return bare, np.array([store.inner.store[d.id]["vector"] for d in found])

    register_vector_source(type(store), search, id_of=lambda store, document: str(document.metadata["key"]))


def test_ids_in_the_metadata_may_be_integers(embeddings: WordEmbeddings) -> None:
    class Numbered(Wrapped):
        pass

    store = Numbered(in_memory(embeddings))
    number_sources(store)
    retriever = SetSelectRetriever(vectorstore=store, k=4)
    first = [document.metadata["key"] for document in retriever.invoke(QUERY)]
    then = [document.metadata["key"] for document in retriever.invoke(QUERY, shown=first)]
    assert not set(first) & set(then)


def test_shown_is_refused_if_no_candidate_has_an_id(embeddings: WordEmbeddings) -> None:
    class Anonymous(Wrapped):
        pass

    def search(store: Any, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        found = store.inner.similarity_search_by_vector(query, k=fetch_k)
        return [Document(d.page_content) for d in found], [store.inner.store[d.id]["vector"] for d in found]

    register_vector_source(Anonymous, search)
    retriever = SetSelectRetriever(vectorstore=Anonymous(in_memory(embeddings)))
    assert len(retriever.invoke(QUERY)) == 4
    with pytest.raises(ValueError, match=r"shown= compares the documents' ids.*id_of="):
        retriever.invoke(QUERY, shown=["doc-1"])


def test_a_search_is_not_widened_beyond_the_stores_limit(embeddings: WordEmbeddings) -> None:
    class Limited(Wrapped):
        pass

    asked: list[int] = []

    def search(store: Any, query: list[float], fetch_k: int, **kwargs: Any) -> Any:
        asked.append(fetch_k)
        assert fetch_k <= 30, "more than this store allows"
        found = store.inner.similarity_search_by_vector(query, k=fetch_k)
        return found, [store.inner.store[d.id]["vector"] for d in found]

    vectors._READERS[Limited] = VectorReader(search, widest=30)
    store = Limited(in_memory(embeddings))
    with pytest.warns(SetSelectWarning, match="No more than 30 candidates are fetched"):
        found = SetSelectRetriever(vectorstore=store, k=7, fetch_k=20, max_per_source=1, source="topic").invoke(QUERY)
    assert asked == [20, 30]
    assert len(found) <= 6


def test_a_faiss_document_that_reuses_a_label_is_found(embeddings: WordEmbeddings) -> None:
    store: Any = faiss(embeddings)
    known = [store.docstore.search(f"doc-{i}") for i in range(5)]
    compressor = SetSelectCompressor(vectorstore=store, k=2)
    compressor.compress_documents(known, QUERY)
    store.delete(["doc-59"])
    store.add_texts(["a newcomer"], ids=["new"])
    embeddings.documents = 0
    compressor.compress_documents([*known, store.docstore.search("new")], QUERY)
    assert embeddings.documents == 0
