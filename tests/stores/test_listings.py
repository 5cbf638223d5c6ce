"""The documents that WordRetriever lists are those that the store's own search returns, also after a change."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

import langchain_setselect
import llamaindex_setselect
from tests.stores.cases import chroma, lancedb, local, postgres
from tests.stores.harness import (
    QUERIES,
    ROWS,
    TABLE,
    LangChainCase,
    LlamaIndexCase,
    TableEmbedding,
    TableEmbeddings,
    index_over,
)

MODULES = (local, chroma, lancedb, postgres)
# One kind of index stands for all: FAISS knows no texts.
LANGCHAIN = [c for module in MODULES for c in module.LANGCHAIN if "FAISS" not in c.name or c.name == "FAISS flat, L2"]
LLAMAINDEX = [c for module in MODULES for c in module.LLAMAINDEX if "FAISS" not in c.name or "flat, L2" in c.name]
VECTOR = QUERIES["query 1"]
NEW = "Error KB5034441: no disk"
TABLE_WITH_NEW = {**TABLE, NEW: ROWS[3].vector}


def in_order(documents: list[Document]) -> list[tuple[str, str | None, dict[str, Any]]]:
    """What the documents hold."""
    held = [(document.page_content, document.id, dict(document.metadata)) for document in documents]
    return sorted(held, key=lambda row: row[0])


@pytest.mark.parametrize("case", LANGCHAIN, ids=lambda case: case.name)
async def test_the_documents_of_a_langchain_store(case: LangChainCase, tmp_path: Path) -> None:
    with case.open(TableEmbeddings(TABLE_WITH_NEW), tmp_path) as store:
        retriever = langchain_setselect.WordRetriever.from_store(store, k=300)
        own, listed = in_order(case.own(store, VECTOR, len(ROWS))), in_order(retriever.invoke("passages? a passage!"))
        # An approximate index may miss a document when it is asked for all of them.
        assert [row for row in own if row not in listed] == []
        assert len(own) >= len(ROWS) - 2
        assert len(listed) == len(ROWS)
        assert [document.page_content for document in retriever.invoke("17")] == ["passage 17"]
        assert retriever.invoke("kb5034441") == []
        store.add_texts([NEW], [{"colour": "red", "number": -1}])
        assert [document.page_content for document in await retriever.ainvoke("kb5034441")] == [NEW]
        if case.by_id:
            store.delete([ROWS[17].id])
            assert retriever.invoke("17") == []


@pytest.mark.parametrize("case", LLAMAINDEX, ids=lambda case: case.name)
async def test_the_nodes_of_a_llamaindex_store(case: LlamaIndexCase, tmp_path: Path) -> None:
    with case.open(tmp_path) as store:
        model = TableEmbedding(table=TABLE_WITH_NEW)
        index = index_over(store, model)
        every = index.as_retriever(similarity_top_k=len(ROWS)).retrieve("query 1")
        own = {scored.node_id: (scored.metadata, scored.text) for scored in every}
        # An approximate index may miss a document when it is asked for all of them.
        assert len(own) > 0.9 * len(ROWS)
        sources: list[Any] = [index]
        if store.stores_text:
            sources += [store, VectorStoreIndex.from_vector_store(store, model)]
        retrievers = [llamaindex_setselect.WordRetriever.from_store(source, similarity_top_k=300) for source in sources]
        for retriever in retrievers:
            found = retriever.retrieve("passages? a passage!")
            listed = {scored.node_id: (scored.metadata, scored.text) for scored in found}
            assert {name: listed[name] for name in own} == own
            assert len(found) == len(ROWS) == len(listed)
            assert [scored.node_id for scored in retriever.retrieve("17")] == [ROWS[17].id]
        index.insert_nodes([TextNode(text=NEW, id_=str(UUID(int=999)), embedding=ROWS[3].vector)])
        for retriever in retrievers:
            assert [scored.text for scored in await retriever.aretrieve("kb5034441")] == [NEW]
