"""The stores' own searches by words as extra retrievers, as the table of docs/keyword-search.md has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from tests.adapters.bindings import Listener, recorded
from tests.stores.cases import lancedb, postgres, qdrant
from tests.stores.harness import (
    QUERIES,
    ROWS,
    TABLE,
    LlamaIndexCase,
    TableEmbedding,
    TableEmbeddings,
    index_over,
)

# The words of one row, which are not the words that the vector is of.
QUESTION = "17 passage"
NUMBERS = TABLE | {QUESTION: QUERIES["query 1"]}
SETTINGS: dict[str, Any] = {"selector": "similarity", "fetch_k": 2}
SPARSE = {"vector_store_query_mode": "sparse"}


def check(told: list[Any]) -> None:
    """The row with the words is found first, and joins the candidates by its id."""
    (report,) = told[0]["extra_retrievers"]
    assert report["error"] is None
    assert ROWS[17].id in report["found"]


def test_qdrant_in_langchain(tmp_path: Path) -> None:
    case = next(case for case in qdrant.LANGCHAIN if case.name == "Qdrant hybrid")
    model, told = TableEmbeddings(NUMBERS), list[Any]()
    with case.open(model, tmp_path) as store:
        from langchain_qdrant import QdrantVectorStore, RetrievalMode

        words: Any = {"sparse_embedding": store.sparse_embeddings, "retrieval_mode": RetrievalMode.SPARSE}  # type: ignore[attr-defined]
        by_words = QdrantVectorStore(store.client, "rows", **words).as_retriever(search_kwargs={"k": 25})  # type: ignore[attr-defined]
        model.forget()
        retriever = SetSelectRetriever(vectorstore=store, k=2, extra_retrievers=by_words, **SETTINGS)
        retriever.invoke(QUESTION, config={"callbacks": [Listener(told)]})
    check(told)
    assert (model.documents, model.queries) == (0, 1)


@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param(next(c for c in module.LLAMAINDEX if name in c.name), words, id=name)
        for module, name, words in (
            (qdrant, "hybrid", SPARSE),
            (postgres, "hybrid", SPARSE),
            (lancedb, "LanceDB", {"vector_store_kwargs": {"query_type": "fts"}}),
        )
    ],
)
def test_llamaindexs_stores(case: LlamaIndexCase, words: dict[str, Any], tmp_path: Path) -> None:
    model, told = TableEmbedding(table=NUMBERS), list[Any]()
    with case.open(tmp_path) as store:
        index = index_over(store, model)
        by_words = index.as_retriever(similarity_top_k=25, **words)
        model.forget()
        retriever = SetSelectIndexRetriever(index, similarity_top_k=2, extra_retrievers=by_words, **SETTINGS)
        with recorded(told):
            retriever.retrieve(QUESTION)
    check(told)
    assert model.documents == 0
