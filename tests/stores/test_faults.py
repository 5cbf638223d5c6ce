"""Faults between a search and its vectors, in every store: no document gets a wrong vector, no fault stays silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import SetSelectWarning
from tests.stores.cases import every_store
from tests.stores.harness import (
    BY_ID,
    DIMENSION,
    FETCH_K,
    QUERIES,
    ROWS,
    TABLE,
    K,
    LangChainCase,
    LlamaIndexCase,
    TableEmbedding,
    TableEmbeddings,
    assert_stored,
    brute_force,
    index_over,
    langchain_reader,
    llamaindex_reader,
)

SHORT = "a query from another model"
NUMBERS = TABLE | {SHORT: [0.5] * (DIMENSION - 1)}
QUERY = "query 7"
TWIN = ROWS[5]
TWIN_IDS = ("00000000-0000-4000-8000-0000000003e8", "00000000-0000-4000-8000-0000000003e9")
NOBODY = MetadataFilters(filters=[MetadataFilter(key="colour", value="mauve")])


class TestLangChain:
    @pytest.fixture(params=every_store.LANGCHAIN, ids=lambda case: case.name)
    def case(self, request: pytest.FixtureRequest) -> LangChainCase:
        case: LangChainCase = request.param
        return case

    @pytest.fixture
    def store(self, case: LangChainCase, tmp_path: Path) -> Iterator[VectorStore]:
        with case.open(TableEmbeddings(NUMBERS), tmp_path) as store:
            yield store

    async def test_a_query_of_another_length_and_three_documents_with_one_text(
        self, case: LangChainCase, store: VectorStore
    ) -> None:
        retriever = SetSelectRetriever(vectorstore=store, search_type="similarity", k=3)
        for wrong in (
            lambda: retriever.invoke(SHORT),
            lambda: retriever.invoke(QUERY, perspective=[1.0] * (DIMENSION - 1)),
        ):
            with pytest.raises(Exception, match=r"31|32|[dD]imension"):
                wrong()
        if case.aopen is None:
            with pytest.raises(Exception, match=r"31|32|[dD]imension"):
                await retriever.ainvoke(SHORT)

        twins = [{**TWIN.metadata, "number": number} for number in (1000, 1001)]
        store.add_texts([TWIN.text] * 2, twins, ids=list(TWIN_IDS))
        texts = [document.page_content for document in retriever.invoke(TWIN.text)]
        assert len(texts) == 3
        assert texts.count(TWIN.text) == 1
        found = retriever.invoke(TWIN.text, drop_duplicates=False)
        assert [document.page_content for document in found] == [TWIN.text] * 3
        assert {document.metadata["number"] for document in found} == {TWIN.metadata["number"], 1000, 1001}

    def test_a_document_without_a_vector_is_left_out_with_its_name(
        self, case: LangChainCase, store: VectorStore
    ) -> None:
        if case.forget is None:
            pytest.skip("each document of the store has a vector")
        arguments, reader = case.forget(store, TWIN), langchain_reader(store)
        documents, vectors, *_ = reader.search(store, QUERIES[QUERY], len(ROWS), **arguments)
        rows = [case.row_of(document) for document in documents]
        assert len(rows) >= len(ROWS) - 1
        assert [row for row, vector in zip(rows, vectors, strict=True) if vector is None] == [TWIN] * (TWIN in rows)
        assert_stored([r for r in rows if r != TWIN], [v for v in vectors if v is not None], case)
        search_kwargs = {"k": len(ROWS), "fetch_k": len(ROWS), **arguments}
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs=search_kwargs)
        with pytest.warns(SetSelectWarning, match="no vector") if TWIN in rows else nullcontext():
            assert {case.row_of(document).id for document in retriever.invoke(QUERY)} == BY_ID.keys() - {TWIN.id}
        if case.by_id:
            assert set(reader.fetch(store, [TWIN.id, ROWS[9].id])) == {ROWS[9].id}


class TestLlamaIndex:
    """The tests of one store share its index, so those that change it come last."""

    @pytest.fixture(scope="class", params=every_store.LLAMAINDEX, ids=lambda case: case.name)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> LlamaIndexCase:
        case: LlamaIndexCase = request.param
        return case

    @pytest.fixture(scope="class")
    @classmethod
    def index(cls, case: LlamaIndexCase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStoreIndex]:
        with case.open(tmp_path_factory.mktemp("store")) as store:
            yield index_over(store, TableEmbedding(table=NUMBERS))

    def test_a_filter_that_nothing_passes_is_answered_as_the_store_does(
        self, case: LlamaIndexCase, index: VectorStoreIndex
    ) -> None:
        if not case.filters:
            pytest.skip("the store knows no filters")
        bundle = QueryBundle(QUERY, embedding=QUERIES[QUERY])
        own = _answer(lambda: index.as_retriever(similarity_top_k=FETCH_K, filters=NOBODY).retrieve(bundle))
        assert own == [] or isinstance(own, type)
        assert _answer(lambda: SetSelectIndexRetriever(index, filters=NOBODY).retrieve(bundle)) == own

    async def test_a_query_of_another_length_is_refused(self, case: LlamaIndexCase, index: VectorStoreIndex) -> None:
        retriever = SetSelectIndexRetriever(index, selector="similarity", top_n=3)
        with pytest.raises((Exception, AssertionError)):
            retriever.retrieve(SHORT)
        own = index.as_retriever(similarity_top_k=FETCH_K).retrieve(QueryBundle(QUERY, embedding=QUERIES[QUERY]))
        with pytest.raises(ValueError, match=r"31.*32|32.*31"):
            SetSelectPostprocessor(index=index).postprocess_nodes(own, query_str=SHORT)

    async def test_a_node_deleted_between_search_and_fetch_is_left_out_with_its_name(
        self, case: LlamaIndexCase, index: VectorStoreIndex
    ) -> None:
        gone: list[str] = []

        class Deleting(VectorIndexRetriever):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                found = super()._retrieve(query_bundle)
                gone[:] = [found[0].node_id]
                index.vector_store.delete_nodes(gone)
                return found

        class Racing(SetSelectIndexRetriever):
            def _retriever(self, fetch_k: int) -> VectorIndexRetriever:
                return Deleting(index, similarity_top_k=fetch_k)

        own = index.as_retriever(similarity_top_k=FETCH_K).retrieve(QueryBundle(QUERY, embedding=QUERIES[QUERY]))
        rows = [BY_ID[node.node_id] for node in own]
        if llamaindex_reader(index.vector_store).on_node:
            pytest.skip("vectors come with the hits, so nothing can happen between")
        try:
            index.vector_store.delete_nodes([TWIN_IDS[0]])
        except NotImplementedError:
            pytest.skip("the store cannot delete nodes")
        racing = Racing(index, top_n=K, fetch_k=FETCH_K)
        with pytest.warns(SetSelectWarning, match=rows[0].id):
            picked = racing.retrieve(QUERY)
        assert gone == [rows[0].id] != [TWIN.id]
        assert [node.node_id for node in picked] == brute_force(QUERY, rows[1:])

    async def test_three_nodes_with_one_text_count_once_or_are_all_found(
        self, case: LlamaIndexCase, index: VectorStoreIndex
    ) -> None:
        twins = [
            TextNode(id_=node_id, text=TWIN.text, metadata=dict(TWIN.metadata), embedding=list(TWIN.vector))
            for node_id in TWIN_IDS
        ]
        index.insert_nodes(twins)
        found = SetSelectIndexRetriever(index, selector="similarity", top_n=3).retrieve(TWIN.text)
        assert len({node.text for node in found}) == 3
        retriever = SetSelectIndexRetriever(index, selector="similarity", top_n=3, drop_duplicates=False)
        found = retriever.retrieve(TWIN.text)
        assert {node.node_id for node in found} == {TWIN.id, *TWIN_IDS}


@pytest.mark.parametrize("case", every_store.LLAMAINDEX, ids=lambda case: case.name)
def test_an_empty_store_answers_as_its_own_search_does(case: LlamaIndexCase, tmp_path: Path) -> None:
    with case.open(tmp_path) as store:
        index = VectorStoreIndex.from_vector_store(store, embed_model=TableEmbedding()) if store.stores_text else None
        if index is None:
            pytest.skip("a store without texts needs an index that has been filled")
        bundle = QueryBundle(QUERY, embedding=QUERIES[QUERY])
        own = _answer(lambda: index.as_retriever(similarity_top_k=FETCH_K).retrieve(bundle))
        assert own == [] or isinstance(own, type)
        # A search that finds nothing gives a warning; one that raises stays as it is.
        with pytest.warns(SetSelectWarning, match="found no documents") if own == [] else nullcontext():
            assert _answer(lambda: SetSelectIndexRetriever(index).retrieve(bundle)) == own


def _answer(call: Callable[[], Any]) -> Any:
    """What a call returns, or the class of its error: some stores raise if they find nothing."""
    try:
        return call()
    except Exception as error:
        return type(error)
