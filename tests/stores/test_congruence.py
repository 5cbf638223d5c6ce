"""One corpus and two queries through every store of both frameworks. The candidates are the store's own, the vectors
are the inserted ones, the picks are those of brute force, and no text is embedded. What goes wrong in between is an
error or a warning: no document gets a wrong vector."""

from collections.abc import Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle

from langchain_setselect import SetSelectCompressor, SetSelectRetriever
from langchain_setselect.retriever import read_ids
from langchain_setselect.stores.reader import FILTER_NAMES
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import InvalidParameterError, SetSelectWarning
from tests.adapters.bindings import Listener
from tests.stores.cases import every_store
from tests.stores.harness import (
    BY_ID,
    DIMENSION,
    FETCH_K,
    QUERIES,
    RED,
    ROWS,
    TABLE,
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
ASKED = dict(list(QUERIES.items())[:2])
QUERY = "query 1"
SHORT = "a query from another model"
NUMBERS = TABLE | {SHORT: [0.5] * (DIMENSION - 1)}
GONE = ROWS[5]


class Listed(BaseRetriever):
    """Returns the same documents for every question."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.documents


class TestLangChain:
    """The tests of one store share it, so the one that changes it comes last."""

    @pytest.fixture(scope="class", params=every_store.LANGCHAIN, ids=lambda case: case.name)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> LangChainCase:
        case: LangChainCase = request.param
        return case

    @pytest.fixture(scope="class")
    @classmethod
    def embeddings(cls) -> TableEmbeddings:
        return TableEmbeddings(NUMBERS)

    @pytest.fixture(scope="class")
    @classmethod
    def store(
        cls, case: LangChainCase, embeddings: TableEmbeddings, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[VectorStore]:
        with case.open(embeddings, tmp_path_factory.mktemp("store")) as store:
            yield store

    def test_candidates_are_the_stores_own_and_picks_those_of_brute_force(
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings
    ) -> None:
        reader = langchain_reader(store)
        for search_kwargs in (case.red, {}) if case.filters else ({},):
            settings = {"k": K, "fetch_k": FETCH_K, **search_kwargs}
            retriever = SetSelectRetriever(vectorstore=store, search_kwargs=settings)
            assert retriever.vector_source == f"store: {type(store).__name__}"
            embeddings.forget()
            for query, vector in ASKED.items():
                own = case.own(store, vector, FETCH_K, **search_kwargs)
                rows = [case.row_of(document) for document in own]
                colours = {row.metadata["colour"] for row in rows}
                assert (len(rows), colours) == (FETCH_K, {"red"} if search_kwargs else {"red", "green", "blue"})
                documents, vectors, *_ = reader.search(store, vector, FETCH_K, **search_kwargs)
                assert list(documents) == own
                assert_stored(rows, vectors, case)
                picked = retriever.invoke(query)
                assert [case.row_of(document).id for document in picked] == brute_force(query, rows)
                assert all(document in own for document in picked)
            assert (embeddings.documents, embeddings.queries) == (0, len(ASKED))
            shadow = SetSelectRetriever(vectorstore=store, search_kwargs=settings, shadow=True)
            assert shadow.invoke(QUERY) == store.similarity_search(QUERY, k=K, **search_kwargs)

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
        self, case: LangChainCase, store: VectorStore, embeddings: TableEmbeddings
    ) -> None:
        if not case.by_id:
            pytest.skip("the store cannot look vectors up by document id")
        for search_kwargs in (case.red, {}) if case.filters else ({},):
            found = {case.row_of(d).id for d in case.own(store, QUERIES["query 1"], 10, **search_kwargs)}
            # The documents as the store has them, because some stores give ids of their own.
            others = [d for d in case.own(store, QUERIES["query 1"], FETCH_K) if case.row_of(d).id not in found][:30]
            extra = Listed(documents=others)
            retriever = SetSelectRetriever(
                vectorstore=store,
                search_kwargs={"k": 10, **search_kwargs},
                fetch_k=10,
                extra_retrievers=extra,
                extra_k=30,
            )
            embeddings.forget()
            told: list[Any] = []
            picked = retriever.invoke("query 1", config={"callbacks": [Listener(told)]})
            assert len(picked) == 10
            reader = langchain_reader(store)
            asked = not search_kwargs or reader.passing is not None
            refused = [d for d in others if not asked or (search_kwargs and case.row_of(d).metadata["colour"] != "red")]
            (report,) = told[0]["extra_retrievers"]
            assert {*report["left_out"]} == {*read_ids(store, reader, refused)}
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
        ids = read_ids(store, reader, own)
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
        # A store that has filters has one of these names for them. The store's own search ignores another one.
        assert {*case.red} & {*reader.filters} or not case.filters
        for name in {*FILTER_NAMES} - {*reader.filters} | ({case.refused} if case.refused else set()):
            with pytest.raises(InvalidParameterError, match=f"'{name}'"):
                SetSelectRetriever(vectorstore=store, search_kwargs={name: {}}).invoke(QUERY)

    async def test_a_query_of_another_length_is_refused(self, case: LangChainCase, store: VectorStore) -> None:
        retriever = SetSelectRetriever(vectorstore=store, search_type="similarity")
        with pytest.raises(Exception, match=r"31|32|[dD]imension"):
            retriever.invoke(SHORT)
        if case.aopen is None:
            with pytest.raises(Exception, match=r"31|32|[dD]imension"):
                await retriever.ainvoke(SHORT)

    def test_a_document_without_a_vector_is_left_out_with_its_name(
        self, case: LangChainCase, store: VectorStore
    ) -> None:
        if case.forget is None:
            pytest.skip("each document of the store has a vector")
        arguments, reader = case.forget(store, GONE), langchain_reader(store)
        documents, vectors, *_ = reader.search(store, QUERIES[QUERY], len(ROWS), **arguments)
        rows = [case.row_of(document) for document in documents]
        assert len(rows) >= len(ROWS) - 1
        assert [row for row, vector in zip(rows, vectors, strict=True) if vector is None] == [GONE] * (GONE in rows)
        assert_stored([r for r in rows if r != GONE], [v for v in vectors if v is not None], case)
        search_kwargs = {"k": len(ROWS), "fetch_k": len(ROWS), **arguments}
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs=search_kwargs)
        with pytest.warns(SetSelectWarning, match="no vector") if GONE in rows else nullcontext():
            assert {case.row_of(document).id for document in retriever.invoke(QUERY)} == BY_ID.keys() - {GONE.id}
        if case.by_id:
            assert set(reader.fetch(store, [GONE.id, ROWS[9].id])) == {ROWS[9].id}


class TestLlamaIndex:
    @pytest.fixture(scope="class", params=every_store.LLAMAINDEX, ids=lambda case: case.name)
    @classmethod
    def case(cls, request: pytest.FixtureRequest) -> LlamaIndexCase:
        case: LlamaIndexCase = request.param
        return case

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> TableEmbedding:
        return TableEmbedding(table=NUMBERS)

    @pytest.fixture(scope="class")
    @classmethod
    def index(
        cls, case: LlamaIndexCase, model: TableEmbedding, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[VectorStoreIndex]:
        with case.open(tmp_path_factory.mktemp("store")) as store:
            yield index_over(store, model)

    # A store by distance or product orders vectors that are not of length 1 otherwise, and the postprocessor says so.
    @pytest.mark.filterwarnings("ignore:the score of the candidates is ignored")
    def test_nodes_are_the_stores_own_and_picks_those_of_brute_force(
        self, case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding
    ) -> None:
        postprocessor = SetSelectPostprocessor(index=index, top_n=K)
        for filters in (RED, None) if case.filters else (None,):
            settings: dict[str, Any] = {"similarity_top_k": K, "fetch_k": FETCH_K, "filters": filters}
            retriever = SetSelectIndexRetriever(index, **settings)
            source = f"store: {type(index.vector_store).__name__}"
            assert retriever.vector_source == postprocessor.vector_source == source
            model.forget()
            for query in ASKED:
                own = _own(index, query, filters)
                rows = [BY_ID[node.node_id] for node in own]
                assert len(rows) == FETCH_K
                found = node_vectors([node.node for node in own], index=index)
                assert set(found) == {row.id for row in rows}
                assert_stored(rows, [found[row.id] for row in rows], case)
                wanted, retrieved = brute_force(query, rows), retriever.retrieve(query)
                assert _order(retrieved) == wanted
                assert _order(postprocessor.postprocess_nodes(own, query_str=query)) == wanted
                as_stored = {node.node_id: (node.text, node.metadata) for node in own}
                assert all((n.text, _without(n.metadata, ADDED)) == as_stored[n.node_id] for n in retrieved)
            assert (model.documents, model.queries) == (0, 2 * len(ASKED))
            shadow = SetSelectIndexRetriever(index, **settings, shadow=True)
            assert shadow.retrieve(QUERY) == index.as_retriever(similarity_top_k=K, filters=filters).retrieve(QUERY)

    def test_nodes_of_another_retriever_are_looked_up_by_id(self, index: VectorStoreIndex) -> None:
        hits = [NodeWithScore(node=node.model_copy(update={"embedding": None})) for node in nodes()[:FETCH_K]]
        picked = SetSelectPostprocessor(index=index, top_n=K).postprocess_nodes(hits, query_str="query 1")
        assert _order(picked) == brute_force("query 1", ROWS[:FETCH_K])
        for unknown in (["gone"], []):
            assert fetch_nodes(index.vector_store, unknown, index) == {}

    @pytest.mark.filterwarnings("ignore:the score of the candidates is ignored")
    async def test_the_async_way_picks_the_same(
        self, case: LlamaIndexCase, index: VectorStoreIndex, model: TableEmbedding, tmp_path: Path
    ) -> None:
        model.forget()
        async with _opened_index(case, index, model, tmp_path) as other:
            postprocessor = SetSelectPostprocessor(index=other, top_n=K)
            for filters in (None, RED) if case.filters else (None,):
                wanted = SetSelectIndexRetriever(index, similarity_top_k=K, fetch_k=FETCH_K, filters=filters)
                retriever = SetSelectIndexRetriever(other, similarity_top_k=K, fetch_k=FETCH_K, filters=filters)
                for query in ASKED:
                    picked = _order(wanted.retrieve(query))
                    assert _order(await retriever.aretrieve(query)) == picked
                    bundle = QueryBundle(query, embedding=QUERIES[query])
                    nodes = await other.as_retriever(similarity_top_k=FETCH_K, filters=filters).aretrieve(bundle)
                    assert _order(await postprocessor.apostprocess_nodes(nodes, bundle)) == picked
        assert model.documents == 0

    async def test_a_query_of_another_length_is_refused(self, case: LlamaIndexCase, index: VectorStoreIndex) -> None:
        retriever = SetSelectIndexRetriever(index, selector="similarity", similarity_top_k=3)
        with pytest.raises((Exception, AssertionError)):
            retriever.retrieve(SHORT)
        own = index.as_retriever(similarity_top_k=FETCH_K).retrieve(QueryBundle(QUERY, embedding=QUERIES[QUERY]))
        with pytest.raises(ValueError, match=r"31.*32|32.*31"):
            SetSelectPostprocessor(index=index).postprocess_nodes(own, query_str=SHORT)


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
