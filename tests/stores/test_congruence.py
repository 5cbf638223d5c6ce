"""One corpus and four queries through every store of both frameworks. The candidates are the store's own, the vectors
are the inserted ones, the picks are those of brute force, and no text is embedded."""

from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from langchain_setselect.stores.reader import FILTER_NAMES
from langchain_setselect.vectors import check_arguments
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import InvalidParameterError
from tests.adapters.bindings import Listener
from tests.stores.cases import every_store
from tests.stores.harness import (
    BY_ID,
    FETCH_K,
    QUERIES,
    RED,
    ROWS,
    K,
    LangChainCase,
    LlamaIndexCase,
    TableEmbedding,
    TableEmbeddings,
    aindex_over,
    assert_stored,
    brute_force,
    fetch_nodes,
    index_over,
    langchain_reader,
    node_vectors,
    nodes,
)

ADDED = ("relevance_score", "selection_score", "selection_reason")
ASKED = dict(list(QUERIES.items())[:4])


class Listed(BaseRetriever):
    """Returns the same documents for every question."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.documents


def search_checked(store: VectorStore, reader: Any, arguments: dict[str, Any]) -> None:
    check_arguments(store, arguments)
    reader.search(store, QUERIES["query 1"], K, **arguments)


class TestLangChain:
    @pytest.fixture(scope="class", params=every_store.LANGCHAIN, ids=lambda case: case.name)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> LangChainCase:
        case: LangChainCase = request.param
        return case

    @pytest.fixture(scope="class")
    @classmethod
    def embeddings(cls) -> TableEmbeddings:
        return TableEmbeddings()

    @pytest.fixture(scope="class")
    @classmethod
    def store(
        cls, case: LangChainCase, embeddings: TableEmbeddings, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[VectorStore]:
        with case.open(embeddings, tmp_path_factory.mktemp("store")) as store:
            yield store

    @pytest.fixture(params=[False, True], ids=["no filter", "filter"])
    def search_kwargs(self, case: LangChainCase, store: VectorStore, request: pytest.FixtureRequest) -> dict[str, Any]:
        if request.param and not case.filters:
            # The store's own search accepts a filter and ignores it.
            with pytest.raises(InvalidParameterError, match="'filter': it has none"):
                check_arguments(store, ["filter"])
            pytest.skip("the store knows no filters")
        return case.red if request.param else {}

    def test_candidates_are_the_stores_own_with_the_vectors_that_were_inserted(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings, search_kwargs: dict[str, Any]
    ) -> None:
        embeddings.forget()
        reader = langchain_reader(store)
        for vector in ASKED.values():
            documents, vectors, *_ = reader.search(store, vector, FETCH_K, **search_kwargs)
            assert list(documents) == case.own(store, vector, FETCH_K, **search_kwargs)
            assert len(documents) == FETCH_K
            rows = [case.row_of(document) for document in documents]
            assert_stored(rows, vectors, case)
            assert {row.metadata["colour"] for row in rows} == ({"red"} if search_kwargs else {"red", "green", "blue"})
        assert embeddings.documents == embeddings.queries == 0

    def test_picks_are_those_of_brute_force(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings, search_kwargs: dict[str, Any]
    ) -> None:
        embeddings.forget()
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"k": K, "fetch_k": FETCH_K, **search_kwargs})
        assert retriever.vector_source == f"store: {type(store).__name__}"
        for query, vector in ASKED.items():
            own = case.own(store, vector, FETCH_K, **search_kwargs)
            picked = retriever.invoke(query)
            assert [case.row_of(d).id for d in picked] == brute_force(query, [case.row_of(d) for d in own])
            assert all(document in own for document in picked)
        assert (embeddings.documents, embeddings.queries) == (0, len(ASKED))

    async def test_in_shadow_the_results_are_the_stores_own(
        self, case: LangChainCase, store: VectorStore, search_kwargs: dict[str, Any]
    ) -> None:
        shadow = SetSelectRetriever(
            vectorstore=store, search_kwargs={"k": K, "fetch_k": FETCH_K, **search_kwargs}, shadow=True
        )
        assert shadow.invoke("query 1") == store.similarity_search("query 1", k=K, **search_kwargs)
        if case.aopen is not None:
            return
        try:
            wanted = await store.asimilarity_search("query 1", k=K, **search_kwargs)
        # Some stores search in sync code or in one thread only, with and without setselect.
        except Exception:
            return
        assert await shadow.ainvoke("query 1") == wanted

    async def test_the_async_way_picks_the_same(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings, tmp_path: Path
    ) -> None:
        embeddings.forget()
        wanted = SetSelectRetriever(vectorstore=store, k=K, fetch_k=FETCH_K)
        async with _opened(case, store, embeddings, tmp_path) as other:
            embeddings.documents = 0
            for search_kwargs in ({}, case.red):
                retriever = SetSelectRetriever(
                    vectorstore=other, search_kwargs={"k": K, "fetch_k": FETCH_K, **search_kwargs}
                )
                for query in ASKED:
                    picked = [case.row_of(d).id for d in await retriever.ainvoke(query)]
                    assert picked == [case.row_of(d).id for d in wanted.invoke(query, **search_kwargs)]
        assert embeddings.documents == 0

    @pytest.mark.filterwarnings("ignore:extra_retrievers")
    def test_what_an_extra_retriever_finds_joins_if_the_filter_lets_it_in(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings, search_kwargs: dict[str, Any]
    ) -> None:
        if not case.by_id:
            pytest.skip("the store cannot look vectors up by document id")
        found = {case.row_of(d).id for d in case.own(store, QUERIES["query 1"], 10, **search_kwargs)}
        # The documents as the store has them, because some stores give ids of their own.
        others = [d for d in case.own(store, QUERIES["query 1"], FETCH_K) if case.row_of(d).id not in found][:30]
        extra = Listed(documents=others)
        retriever = SetSelectRetriever(
            vectorstore=store, search_kwargs={"k": 10, **search_kwargs}, fetch_k=10, extra_retrievers=extra, extra_k=30
        )
        embeddings.forget()
        told: list[Any] = []
        picked = retriever.invoke("query 1", config={"callbacks": [Listener(told)]})
        assert len(picked) == 10
        reader = langchain_reader(store)
        admitted = [d for d in others if not search_kwargs or case.row_of(d).metadata["colour"] == "red"]
        ids = {reader.id_of(store, document) for document in admitted}
        asked = not search_kwargs or reader.passing is not None
        (report,) = told[0]["extra_retrievers"]
        assert {*report["added"]} == (ids if asked else set())
        assert len(report["added"]) + len(report["left_out"]) == len(others)
        assert embeddings.documents == 0

    async def test_the_compressor_finds_the_vectors_of_what_another_retriever_found(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings
    ) -> None:
        if not case.by_id:
            pytest.skip("the store cannot look vectors up by document id")
        embeddings.forget()
        compressor = SetSelectCompressor(vectorstore=store, k=K)
        for query, vector in ASKED.items():
            own = case.own(store, vector, FETCH_K)
            wanted = brute_force(query, [case.row_of(d) for d in own])
            assert [case.row_of(d).id for d in compressor.compress_documents(own, query)] == wanted
        if case.aopen is None:
            picked = await compressor.acompress_documents(own, query)
            assert [case.row_of(d).id for d in picked] == wanted
        assert embeddings.documents == 0
        reader, rows = langchain_reader(store), [case.row_of(document) for document in own]
        ids = [reader.id_of(store, document) for document in own]
        found = reader.fetch(store, [*ids, "gone"])
        assert set(found) == set(ids)
        assert_stored(rows, [found[name] for name in ids], case)
        assert reader.fetch(store, []) == reader.fetch(store, ["gone"]) == {}

    def test_the_arguments_of_the_stores_own_search_go_through(self, case: LangChainCase, store: VectorStore) -> None:
        reader = langchain_reader(store)
        for arguments in case.arguments:
            documents, vectors, *_ = reader.search(store, QUERIES["query 1"], FETCH_K, **copied(arguments))
            assert list(documents) == case.own(store, QUERIES["query 1"], FETCH_K, **copied(arguments))
            assert documents
            assert_stored([case.row_of(document) for document in documents], vectors, case)
        if case.refused is not None:
            with pytest.raises(InvalidParameterError, match=f"'{case.refused}'"):
                search_checked(store, reader, {case.refused: {}})

    @pytest.mark.parametrize("name", FILTER_NAMES)
    def test_a_filter_has_the_stores_own_name(self, case: LangChainCase, store: VectorStore, name: str) -> None:
        retriever = SetSelectRetriever(vectorstore=store, k=K, search_kwargs={name: {}})
        if name not in langchain_reader(store).filters:
            with pytest.raises(InvalidParameterError, match=f"'{name}'"):
                retriever.invoke("query 1")
        # A store that has filters has one of these names for them.
        assert {*case.red} & {*langchain_reader(store).filters} or not case.filters


class TestLlamaIndex:
    @pytest.fixture(scope="class", params=every_store.LLAMAINDEX, ids=lambda case: case.name)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> LlamaIndexCase:
        case: LlamaIndexCase = request.param
        return case

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> TableEmbedding:
        return TableEmbedding()

    @pytest.fixture(scope="class")
    @classmethod
    def index(
        cls, case: LlamaIndexCase, model: TableEmbedding, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[VectorStoreIndex]:
        with case.open(tmp_path_factory.mktemp("store")) as store:
            yield index_over(store, model)

    @pytest.fixture(params=[False, True], ids=["no filter", "filter"])
    def filters(self, case: LlamaIndexCase, request: pytest.FixtureRequest) -> Any:
        if request.param and not case.filters:
            pytest.skip("the store knows no filters")
        return RED if request.param else None

    def test_nodes_are_the_stores_own_with_the_vectors_that_were_inserted(
        self, case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding, filters: Any
    ) -> None:
        model.forget()
        for query in ASKED:
            own = _own(index, query, filters)
            assert len(own) == FETCH_K
            found = node_vectors([node.node for node in own], index=index)
            assert set(found) == {node.node_id for node in own}
            assert_stored([BY_ID[node.node_id] for node in own], [found[node.node_id] for node in own], case)
        assert (model.documents, model.queries) == (0, 0)

    def test_picks_are_those_of_brute_force(
        self, case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding, filters: Any
    ) -> None:
        model.forget()
        retriever = SetSelectIndexRetriever(index, top_n=K, fetch_k=FETCH_K, filters=filters)
        postprocessor = SetSelectPostprocessor(index=index, top_n=K)
        assert retriever.vector_source == postprocessor.vector_source == f"store: {type(index.vector_store).__name__}"
        for query in ASKED:
            own = _own(index, query, filters)
            wanted = brute_force(query, [BY_ID[node.node_id] for node in own])
            retrieved = retriever.retrieve(query)
            assert [node.node_id for node in retrieved] == wanted
            assert [node.node_id for node in postprocessor.postprocess_nodes(own, query_str=query)] == wanted
            as_stored = {node.node_id: (node.text, node.metadata) for node in own}
            assert all((n.text, _without(n.metadata, ADDED)) == as_stored[n.node_id] for n in retrieved)
        assert (model.documents, model.queries) == (0, 2 * len(ASKED))

    def test_nodes_of_another_retriever_are_looked_up_by_id(self, index: VectorStoreIndex) -> None:
        hits = [NodeWithScore(node=node.model_copy(update={"embedding": None})) for node in nodes()[:FETCH_K]]
        picked = SetSelectPostprocessor(index=index, top_n=K).postprocess_nodes(hits, query_str="query 1")
        assert _order(picked) == brute_force("query 1", ROWS[:FETCH_K])
        for unknown in (["gone"], []):
            assert fetch_nodes(index.vector_store, unknown, index) == {}

    async def test_in_shadow_the_results_are_the_stores_own(
        self, case: LlamaIndexCase, index: VectorStoreIndex, filters: Any
    ) -> None:
        own = index.as_retriever(similarity_top_k=K, filters=filters)
        shadow = SetSelectIndexRetriever(index, top_n=K, fetch_k=FETCH_K, filters=filters, shadow=True)
        wanted = own.retrieve("query 1")
        assert shadow.retrieve("query 1") == wanted
        if case.aopen is None:
            assert await shadow.aretrieve("query 1") == wanted

    async def test_the_async_way_picks_the_same(
        self, case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding, tmp_path: Path
    ) -> None:
        model.forget()
        async with _opened_index(case, index, model, tmp_path) as other:
            postprocessor = SetSelectPostprocessor(index=other, top_n=K)
            for filters in (None, RED) if case.filters else (None,):
                wanted = SetSelectIndexRetriever(index, top_n=K, fetch_k=FETCH_K, filters=filters)
                retriever = SetSelectIndexRetriever(other, top_n=K, fetch_k=FETCH_K, filters=filters)
                for query in ASKED:
                    picked = _order(wanted.retrieve(query))
                    assert _order(await retriever.aretrieve(query)) == picked
                    bundle = QueryBundle(query, embedding=QUERIES[query])
                    nodes = await other.as_retriever(similarity_top_k=FETCH_K, filters=filters).aretrieve(bundle)
                    assert _order(await postprocessor.apostprocess_nodes(nodes, bundle)) == picked
        assert model.documents == 0


@asynccontextmanager
async def _opened(case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings, folder: Path) -> Any:
    if case.aopen is None:
        yield store
        return
    async with case.aopen(embeddings, folder) as other:
        yield other


@asynccontextmanager
async def _opened_index(case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding, folder: Path) -> Any:
    if case.aopen is None:
        yield index
        return
    async with case.aopen(folder) as store:
        yield await aindex_over(store, model)


def _own(index: VectorStoreIndex, query: str, filters: Any) -> list[NodeWithScore]:
    retriever = index.as_retriever(similarity_top_k=FETCH_K, filters=filters)
    return retriever.retrieve(QueryBundle(query, embedding=QUERIES[query]))


def _without(metadata: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in keys}


def _order(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node_id for node in nodes]


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    # Weaviate's store appends to the lists of its caller.
    return {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
