"""What only Chroma has: documents without text, filters by content, a server that stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from tests.stores.cases.chroma import _langchain
from tests.stores.harness import BY_ID, ROWS, TableEmbeddings, index_over, langchain_reader, needs

QUERY = "query 3"


def _requests(chroma: Any) -> list[str]:
    """A list that collects the requests which the client sends from now on."""
    sent: list[str] = []
    chroma._client._session.event_hooks["request"].append(lambda request: sent.append(request.url.path))
    return sent


def test_langchain_sends_one_request_and_llamaindex_one_more(tmp_path: Path) -> None:
    needs("llama_index.vector_stores.chroma")
    from llama_index.vector_stores.chroma import ChromaVectorStore

    with _langchain("on a server", TableEmbeddings(), tmp_path) as store:
        sent = _requests(store._collection)  # type: ignore[attr-defined]
        found = SetSelectRetriever(vectorstore=store).invoke(QUERY)
        assert [path.rsplit("/", 1)[1] for path in sent] == ["query"]
        sent.clear()
        SetSelectCompressor(vectorstore=store, k=2).compress_documents(found, QUERY)
        assert [path.rsplit("/", 1)[1] for path in sent] == ["get"]
        collection = store._client.create_collection("nodes")  # type: ignore[attr-defined]
        index = index_over(ChromaVectorStore(chroma_collection=collection))
        sent.clear()
        SetSelectIndexRetriever(index).retrieve(QUERY)
        assert [path.rsplit("/", 1)[1] for path in sent] == ["query", "get"]


def test_filters_by_content_and_by_more_than_equality_pass_through(tmp_path: Path) -> None:
    with _langchain("in memory", TableEmbeddings(), tmp_path) as store:
        search_kwargs = {"filter": {"number": {"$lt": 100}}, "where_document": {"$contains": "9"}}
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"k": 8, **search_kwargs})
        numbers = [document.metadata["number"] for document in retriever.invoke(QUERY)]
        assert len(numbers) == 8
        assert all(number < 100 and "9" in str(number) for number in numbers)


def test_rows_without_text_are_left_out_as_in_the_stores_own_search(tmp_path: Path) -> None:
    with _langchain("in memory", TableEmbeddings(), tmp_path) as store:
        row = ROWS[0]
        store._collection.upsert(ids=["bare"], embeddings=[row.vector])  # type: ignore[attr-defined]
        reader = langchain_reader(store)
        documents, vectors = reader.search(store, row.vector, 10)
        assert documents == store.similarity_search_by_vector(row.vector, k=10)  # type: ignore[attr-defined]
        assert "bare" not in [document.id for document in documents]
        wanted = [BY_ID[document.id].vector for document in documents]
        np.testing.assert_array_equal(vectors, np.array(wanted, np.float32))
