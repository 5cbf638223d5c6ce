"""What only Chroma has: documents without text, and filters by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from langchain_setselect import SetSelectRetriever
from tests.stores.cases.chroma import _langchain
from tests.stores.harness import BY_ID, ROWS, TableEmbeddings, langchain_reader

QUERY = "query 3"


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
