"""What only Chroma has: documents without text, filters by content, a server that stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from tests.stores.cases.chroma import _langchain, client, server
from tests.stores.harness import BY_ID, FETCH_K, QUERIES, ROWS, TableEmbeddings, index_over, langchain_reader, needs

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


def test_vectors_belong_to_their_ids_in_any_order(tmp_path: Path) -> None:
    needs("chromadb")
    from shared_core.stores.chroma import vectors_by_id

    with client("in memory", tmp_path) as chroma:
        collection = chroma.create_collection("order")
        collection.add(ids=[row.id for row in ROWS], embeddings=[row.vector for row in ROWS])
        asked = [ROWS[i].id for i in np.random.default_rng(4).permutation(len(ROWS))]
        found = vectors_by_id(collection, [*asked, "unknown"])
        assert found.keys() == set(asked)
        assert all(found[name].tolist() == BY_ID[name].vector for name in asked)
        assert vectors_by_id(collection, []) == {}


async def test_a_stopped_server_raises_the_clients_own_error(tmp_path: Path) -> None:
    needs("langchain_chroma", "llama_index.vector_stores.chroma")
    import chromadb
    from langchain_chroma import Chroma
    from llama_index.vector_stores.chroma import ChromaVectorStore

    with server(tmp_path) as (port, process):
        http = chromadb.HttpClient("127.0.0.1", port)
        store = Chroma("documents", TableEmbeddings(), client=http)
        store.add_texts([row.text for row in ROWS], ids=[row.id for row in ROWS])
        index = index_over(ChromaVectorStore(chroma_collection=http.create_collection("nodes")))
        nodes = index.as_retriever(similarity_top_k=FETCH_K).retrieve(QUERY)
        documents = store.similarity_search_by_vector(QUERIES[QUERY], k=FETCH_K)
        process.kill()
        process.wait()
        for call in (
            lambda: SetSelectRetriever(vectorstore=store).invoke(QUERY),
            lambda: SetSelectCompressor(vectorstore=store).compress_documents(documents, QUERY),
            lambda: SetSelectIndexRetriever(index).retrieve(QUERY),
            # The search succeeded, and the connection is lost before the look-up.
            lambda: SetSelectPostprocessor(index=index).postprocess_nodes(nodes, query_str=QUERY),
        ):
            with pytest.raises(httpx.HTTPError):
                call()
        with pytest.raises(httpx.HTTPError):
            await SetSelectRetriever(vectorstore=store).ainvoke(QUERY)
        with pytest.raises(httpx.HTTPError):
            await SetSelectPostprocessor(index=index).apostprocess_nodes(nodes, query_str=QUERY)
        for part in (http, http._admin_client):  # type: ignore[attr-defined]
            part._server._session.close()
