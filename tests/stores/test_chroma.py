"""What only Chroma shows: documents without text, and without ids of another retriever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from langchain_setselect.retriever import search_store
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.inputs import EmbeddedQuery
from tests.stores.cases.chroma import _langchain
from tests.stores.harness import BY_ID, ROWS, TableEmbeddings, langchain_reader


def test_rows_without_text_are_left_out_as_in_the_stores_own_search(tmp_path: Path) -> None:
    with _langchain("in memory", TableEmbeddings(), tmp_path) as store:
        row = ROWS[0]
        store._collection.upsert(ids=["bare"], embeddings=[row.vector])  # type: ignore[attr-defined]
        pool = run_flow(search_store(store, langchain_reader(store), TableEmbeddings, {}, query_of(row.vector), 10))
        assert pool.items == store.similarity_search_by_vector(row.vector, k=10)  # type: ignore[attr-defined]
        assert "bare" not in pool.ids
        wanted = [BY_ID[str(name)].vector for name in pool.ids]
        np.testing.assert_array_equal(pool.vectors, np.array(wanted, np.float32))
        assert (len(pool.items), pool.exhausted) == (9, False), "a wider search would find more"


def query_of(vector: Any) -> EmbeddedQuery:
    return EmbeddedQuery(np.asarray(vector), None, [*vector], "a question")
