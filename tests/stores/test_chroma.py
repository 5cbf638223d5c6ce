"""What only Chroma has: documents without text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.stores.cases.chroma import _langchain
from tests.stores.harness import BY_ID, ROWS, TableEmbeddings, langchain_reader


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
