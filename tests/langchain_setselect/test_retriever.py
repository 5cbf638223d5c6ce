import asyncio
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectRetriever
from shared_core import (
    MMR,
    NDPP,
    VRSD,
    BudgetError,
    InvalidInputError,
    InvalidParameterError,
    VectorSourceError,
    select,
)
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings, faiss, faiss_inner_product, in_memory

QUERY = "hidden northern harbour engine"
SEARCH_TYPES = ("similarity", "vrsd", "mmr", "ndpp")


def numbers(documents: list[Document]) -> list[int]:
    return [document.metadata["number"] for document in documents]


def nearest(query: np.ndarray, n: int, rows: list[int] | None = None) -> list[int]:
    """Rows of the corpus in cosine order, by brute force."""
    kept = list(range(len(corpus()))) if rows is None else rows
    cosines = [query @ (v := embed(corpus()[row][0])) / np.linalg.norm(v) for row in kept]
    return [kept[i] for i in np.argsort(-np.array(cosines), kind="stable")[:n]]


def expected(k: int, fetch_k: int, search_type: str, rows: list[int] | None = None, **parameters: Any) -> list[int]:
    query = embed(QUERY)
    candidates = nearest(query, fetch_k, rows)
    vectors = np.array([embed(corpus()[row][0]) for row in candidates])
    return [candidates[i] for i in select(query, vectors, k, search_type, **parameters).indices]


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
def test_picks_equal_those_of_the_core_over_the_stores_own_candidates(store: VectorStore, search_type: str) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, search_kwargs={"k": 5, "fetch_k": 30})
    parameters = {"lambda_mult": 0.5} if search_type == "mmr" else {}
    assert numbers(retriever.invoke(QUERY)) == expected(5, 30, search_type, **parameters)


def test_only_the_query_is_embedded(store: VectorStore, embeddings: WordEmbeddings) -> None:
    SetSelectRetriever(vectorstore=store).invoke(QUERY)
    assert (embeddings.documents, embeddings.queries) == (0, 1)


def test_the_default_is_four_of_twenty_by_ndpp(store: VectorStore) -> None:
    assert numbers(SetSelectRetriever(vectorstore=store).invoke(QUERY)) == expected(4, 20, "ndpp")


@pytest.mark.parametrize("make", [in_memory, faiss, faiss_inner_product])
def test_replacing_as_retriever_gives_the_stores_correct_mmr(make: Any, embeddings: WordEmbeddings) -> None:
    store = make(embeddings)
    for search_kwargs in ({}, {"k": 6}, {"k": 5, "fetch_k": 40, "lambda_mult": 0.2}):
        settings = {"fetch_k": max(20, 5 * search_kwargs.get("k", 4)), **search_kwargs}
        theirs = store.as_retriever(search_type="mmr", search_kwargs=settings).invoke(QUERY)
        ours = SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs=search_kwargs).invoke(QUERY)
        assert numbers(ours) == numbers(theirs)


@pytest.mark.parametrize("search_type", SEARCH_TYPES)
async def test_async_and_sync_select_the_same(store: VectorStore, embeddings: WordEmbeddings, search_type: str) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=5)
    assert await retriever.ainvoke(QUERY) == retriever.invoke(QUERY)
    assert embeddings.async_calls == 1, "ainvoke must await the embeddings' own async method"


async def test_async_takes_arguments_at_call_time(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store)
    assert len(await retriever.ainvoke(QUERY, k=3)) == 3
    assert await retriever.ainvoke(QUERY, k=3, perspective="northern") == retriever.invoke(
        QUERY, k=3, perspective="northern"
    )


def test_arguments_at_call_time_override_the_constructors(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 1.0})
    assert numbers(retriever.invoke(QUERY, k=6, fetch_k=40, lambda_mult=0.1)) == expected(6, 40, "mmr", lambda_mult=0.1)
    assert len(retriever.invoke(QUERY)) == 2
    assert numbers(retriever.invoke(QUERY, search_type="vrsd")) == expected(2, 20, "vrsd"), "VRSD has no λ"
    assert numbers(retriever.invoke(QUERY, selector=MMR(lambda_mult=0.1))) == expected(2, 20, "mmr", lambda_mult=0.1)
    for selector in (MMR(), "mmr"):
        parameters = {"lambda_mult": 0.1} if selector == "mmr" else {}
        plain = SetSelectRetriever(vectorstore=store, selector=selector, **parameters)
        assert numbers(plain.invoke(QUERY, search_type="ndpp")) == expected(4, 20, "ndpp")


@pytest.mark.parametrize("selector", [MMR(lambda_mult=0.3), VRSD(refine=True), NDPP(relevance_mapping="exponential")])
def test_a_selector_object_replaces_a_name(store: VectorStore, selector: Any) -> None:
    retriever = SetSelectRetriever(vectorstore=store, selector=selector, k=5)
    query = embed(QUERY)
    rows = nearest(query, 25)
    picks = select(query, np.array([embed(corpus()[row][0]) for row in rows]), 5, selector).indices
    assert numbers(retriever.invoke(QUERY)) == [rows[i] for i in picks]


def test_returned_documents_are_copies_with_scores(store: VectorStore) -> None:
    before = {d.id: copy.deepcopy(d) for d in store.get_by_ids([f"doc-{i}" for i in range(60)])}
    documents = SetSelectRetriever(vectorstore=store, search_type="vrsd", k=3, scores=True).invoke(QUERY)
    query = embed(QUERY)
    total = np.zeros(len(query))
    worth = 0.0
    for document in documents:
        vector = embed(document.page_content)
        vector /= np.linalg.norm(vector)
        total += vector
        now = float(total @ query / np.linalg.norm(total) / np.linalg.norm(query))
        assert document.metadata["relevance_score"] == pytest.approx(
            float(vector @ query / np.linalg.norm(query)), abs=1e-6
        )
        assert document.metadata["selection_score"] == pytest.approx(now - worth, abs=1e-6)
        worth = now
        original = before[document.id]
        assert document.page_content == original.page_content
        assert {k: v for k, v in document.metadata.items() if not k.endswith("_score")} == original.metadata
        document.metadata["number"] = -1
    after = {d.id: d for d in store.get_by_ids([f"doc-{i}" for i in range(60)])}
    assert after == before


def test_by_default_the_documents_are_what_as_retriever_returns(store: VectorStore) -> None:
    ours = SetSelectRetriever(vectorstore=store, search_type="similarity", k=5).invoke(QUERY)
    theirs = store.as_retriever(search_kwargs={"k": 5}).invoke(QUERY)
    assert ours == theirs
    assert [a is b for a, b in zip(ours, theirs, strict=True)] == [isinstance(store, FAISS)] * 5, (
        "FAISS returns the documents of its docstore, InMemoryVectorStore makes new ones"
    )
    assert SetSelectRetriever(vectorstore=store, scores=True).invoke(QUERY, scores=False) == SetSelectRetriever(
        vectorstore=store
    ).invoke(QUERY)


def test_a_score_that_a_document_has_already_is_not_overwritten(embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    store.add_documents([Document("river", id="a", metadata={"relevance_score": "theirs"}), Document("bread", id="b")])
    found = SetSelectRetriever(vectorstore=store, scores=True, k=2).invoke("river")
    by_id = {document.id: document.metadata for document in found}
    assert by_id["a"].keys() == by_id["b"].keys() == {"relevance_score", "selection_score"}
    assert by_id["a"]["relevance_score"] == "theirs"
    assert by_id["b"]["relevance_score"] == pytest.approx(0, abs=0.5)


def test_the_stores_own_filter_is_used(embeddings: WordEmbeddings) -> None:
    rows = [i for i, (_, metadata) in enumerate(corpus()) if metadata["topic"] == "harbour"]
    in_memory_filter = {"filter": lambda document: document.metadata["topic"] == "harbour"}
    faiss_filter = {"filter": {"topic": "harbour"}}
    for store, search_kwargs in ((in_memory(embeddings), in_memory_filter), (faiss(embeddings), faiss_filter)):
        retriever = SetSelectRetriever(vectorstore=store, search_kwargs=search_kwargs, k=4, fetch_k=8)
        assert numbers(retriever.invoke(QUERY)) == expected(4, 8, "ndpp", rows)


def test_faiss_finds_all_documents_that_pass_a_strict_filter(embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(
        vectorstore=faiss(embeddings), k=2, fetch_k=3, search_kwargs={"filter": {"number": 59}}
    )
    assert numbers(retriever.invoke(QUERY)) == [59]


def test_fewer_candidates_than_k_are_all_returned(store: VectorStore) -> None:
    assert len(SetSelectRetriever(vectorstore=store, k=100).invoke(QUERY)) == 60
    assert SetSelectRetriever(vectorstore=store, score_threshold=1.0).invoke(QUERY) == []


def test_an_empty_store_gives_an_empty_result(embeddings: WordEmbeddings) -> None:
    assert SetSelectRetriever(vectorstore=InMemoryVectorStore(embeddings)).invoke(QUERY) == []
    emptied = faiss(embeddings)
    emptied.delete([f"doc-{i}" for i in range(60)])
    assert SetSelectRetriever(vectorstore=emptied).invoke(QUERY) == []


def test_the_threshold_is_a_cosine_and_is_applied_before_the_selection(store: VectorStore) -> None:
    documents = SetSelectRetriever(vectorstore=store, search_type="mmr", lambda_mult=0.0, k=10, scores=True).invoke(
        QUERY, score_threshold=0.2
    )
    assert documents
    assert min(d.metadata["relevance_score"] for d in documents) >= 0.2
    query = embed(QUERY)
    near = [
        row
        for row in nearest(query, 50)
        if query @ (v := embed(corpus()[row][0])) / np.linalg.norm(v) >= 0.2 * np.linalg.norm(query)
    ]
    assert numbers(documents) == expected(min(10, len(near)), 50, "mmr", near, lambda_mult=0.0)


def test_shown_documents_count_as_picked_and_are_not_returned(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=4, fetch_k=20)
    first = retriever.invoke(QUERY)
    second = retriever.invoke(QUERY, shown=[d.id for d in first] + ["not in the store"])
    assert not set(numbers(first)) & set(numbers(second))
    query = embed(QUERY)
    rows = nearest(query, 25)
    picks = select(
        query, np.array([embed(corpus()[row][0]) for row in rows]), 4, shown=[rows.index(i) for i in numbers(first)]
    ).indices
    assert numbers(second) == [rows[i] for i in picks]


def test_quality_comes_from_a_key_or_a_function(store: VectorStore) -> None:
    query = embed(QUERY)
    rows = nearest(query, 20)
    vectors = np.array([embed(corpus()[row][0]) for row in rows])
    quality = [float(corpus()[row][1]["quality"]) for row in rows]  # type: ignore[arg-type]
    wanted = [rows[i] for i in select(query, vectors, 4, "mmr", quality=quality, lambda_mult=0.5, lambda_b=0.3).indices]
    by_key = SetSelectRetriever(vectorstore=store, search_type="mmr", quality="quality", lambda_b=0.3)
    by_function = SetSelectRetriever(
        vectorstore=store, search_type="mmr", quality=lambda d: d.metadata["quality"], lambda_b=0.3
    )
    assert numbers(by_key.invoke(QUERY)) == numbers(by_function.invoke(QUERY)) == wanted
    assert wanted != expected(4, 20, "mmr", lambda_mult=0.5), "quality must matter for this test to test anything"


def test_a_missing_quality_names_the_document(store: VectorStore) -> None:
    with pytest.raises(InvalidInputError, match=r"no such key.*number"):
        SetSelectRetriever(vectorstore=store, search_type="mmr", quality="stars").invoke(QUERY)


def test_the_set_fills_the_budget_without_exceeding_it(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, budget=40, costs="tokens")
    documents = retriever.invoke(QUERY)
    spent = sum(d.metadata["tokens"] for d in documents)
    assert 40 - 8 < spent <= 40
    assert len(retriever.invoke(QUERY, k=2)) == 2


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
@pytest.mark.parametrize("corpus_too", [False, True])
def test_a_perspective_changes_the_search_and_the_scores(store: VectorStore, direction: str, corpus_too: bool) -> None:
    q, p = embed(QUERY), embed("northern")
    sign = 1 if direction == "emphasize" else -1
    projected = q + sign * (q @ p) / (p @ p) * p
    rows = nearest(projected, 20)
    vectors = np.array([embed(corpus()[row][0]) for row in rows])
    if corpus_too:
        vectors = vectors + sign * np.outer(vectors @ p / (p @ p), p)
    chosen = select(projected, vectors, 4)
    retriever = SetSelectRetriever(
        vectorstore=store, perspective="northern", direction=direction, corpus=corpus_too, fetch_k=20, scores=True
    )
    documents = retriever.invoke(QUERY)
    assert numbers(documents) == [rows[i] for i in chosen.indices]
    np.testing.assert_allclose([d.metadata["relevance_score"] for d in documents], chosen.relevance, atol=1e-6)
    by_vector = SetSelectRetriever(vectorstore=store, direction=direction, corpus=corpus_too)
    assert numbers(by_vector.invoke(QUERY, perspective=p)) == numbers(documents)


def test_batches_and_threads_select_what_single_calls_select(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="ndpp", k=5)
    queries = [f"{QUERY} {i}" for i in range(12)]
    one_by_one = [numbers(retriever.invoke(q)) for q in queries]
    assert [numbers(d) for d in retriever.batch(queries)] == one_by_one
    with ThreadPoolExecutor(4) as pool:
        assert [numbers(d) for d in pool.map(retriever.invoke, queries)] == one_by_one

    async def all_at_once() -> list[list[Document]]:
        return await retriever.abatch(queries)

    assert [numbers(d) for d in asyncio.run(all_at_once())] == one_by_one


def test_copies_and_pickles_select_the_same(store: VectorStore) -> None:
    retriever = SetSelectRetriever(
        vectorstore=store, selector=MMR(lambda_mult=0.4), k=3, perspective="northern", scores=False
    )
    wanted = retriever.invoke(QUERY)
    for other in (copy.copy(retriever), retriever.model_copy(), pickle.loads(pickle.dumps(retriever))):
        assert other.invoke(QUERY) == wanted


def test_it_streams_in_a_chain(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=2)
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    model = FakeListChatModel(responses=["an answer"])
    chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    assert "".join(chain.stream(QUERY)) == "an answer"


def test_documents_can_be_added_through_the_retriever(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=1)
    retriever.add_documents([Document(QUERY, id="new")], ids=["new"])
    assert retriever.invoke(QUERY)[0].id == "new"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kk": 3}, r"no argument 'kk'.*fetch_k"),
        ({"k": 0}, r"k must be at least 1"),
        ({"k": 2.5}, r"k must be an integer"),
        ({"search_kwargs": {"k": 5, "fetch_k": 3}}, r"fetch_k .*k=5.* must be at least 5, got 3"),
        ({"search_type": "mrr"}, r"unknown selector 'mrr'; known: .*vrsd"),
        (
            {"lambda_mult": 0.5},
            r"'ndpp' has no parameter 'lambda_mult'.*; allowed: kernel.*\. Leave it out, or select with 'mmr'$",
        ),
        ({"search_type": "mmr", "lambda_mult": 1.5}, r"lambda_mult.*\[0, 1\].*1\.5"),
        ({"score_threshold": 2}, r"score_threshold"),
        ({"budget": 100}, r"budget needs costs"),
        ({"direction": "sideways", "perspective": "northern"}, r"direction must be one of remove, emphasize"),
        ({"selector": MMR(), "search_type": "vrsd"}, r"search_type or selector, not both"),
        ({"selector": "mrr"}, r"unknown selector 'mrr'; known: .*vrsd"),
        ({"selector": MMR}, r"an object with a method select\(candidates, k.*<class '.*MMR'>"),
        ({"relevance_scale": "log"}, r"relevance_scale must be one of minmax, rank, sigmoid, got 'log'"),
        ({"order": "best"}, r"order must be one of selection, relevance, nearest_last, long_context, got 'best'"),
        ({"drop_duplicates": "no"}, r"drop_duplicates must be True or False, got 'no'"),
        ({"search_type": np.ones(2)}, r"selector must be one of"),
        ({"perspective_vector": np.ones(2)}, r"perspective_vector must be one of"),
        ({"search_kwargs": np.ones(2)}, r"search_kwargs must be a dict, got ndarray"),
        ({"scores": "no"}, r"scores must be True or False, got 'no'"),
        ({"lambda": 0.5}, r"'lambda'.*did you mean 'lambda_mult'"),
        ({"top_k": 3}, r"'top_k'.*did you mean 'k'"),
        ({"top_n": 3}, r"'top_n'.*did you mean 'k'"),
        ({"topn": 3}, r"'topn'.*did you mean 'k'"),
        ({"similarity_top_k": 3}, r"'similarity_top_k'.*did you mean 'k'"),
        ({"k": 3, "search_kwargs": {"k": 3}}, r"k is given twice: as an argument and in search_kwargs"),
        ({"selector": MMR(), "lambda_mult": 0.5}, r"lambda_mult"),
        ({"shown": "doc-1"}, r"shown takes a collection"),
    ],
)
def test_bad_arguments_are_refused_at_construction_and_at_call_time(
    embeddings: WordEmbeddings, arguments: dict[str, Any], message: str
) -> None:
    store = in_memory(embeddings)
    with pytest.raises((InvalidParameterError, BudgetError), match=message):
        SetSelectRetriever(vectorstore=store, **arguments)
    if not {"kk", "search_kwargs", "selector"} & set(arguments):
        with pytest.raises((InvalidParameterError, BudgetError), match=message):
            SetSelectRetriever(vectorstore=store).invoke(QUERY, **arguments)


def test_a_misspelt_setting_of_a_call_is_not_taken_for_an_argument_of_the_store(embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(vectorstore=in_memory(embeddings))
    with pytest.raises(InvalidParameterError, match=r"'score': did you mean 'scores'"):
        retriever.invoke(QUERY, score=True)


def test_the_error_for_a_store_without_embeddings_names_the_argument(embeddings: WordEmbeddings) -> None:
    store = faiss(embeddings)
    store.embedding_function = embeddings.embed_query  # type: ignore[attr-defined]
    with pytest.raises(VectorSourceError, match=r"embeddings="):
        SetSelectRetriever(vectorstore=store).invoke(QUERY)
    assert len(SetSelectRetriever(vectorstore=store, embeddings=embeddings).invoke(QUERY)) == 4


def test_a_damaged_vector_is_named_by_its_documents_id(embeddings: WordEmbeddings) -> None:
    store = faiss(embeddings)
    store.index.add(np.full((1, 48), np.nan, dtype=np.float32))  # type: ignore[attr-defined]
    vector = store.index.reconstruct(3)  # type: ignore[attr-defined]
    vector[5] = np.inf
    memory = InMemoryVectorStore(embeddings)
    memory.add_texts(["river", "mountain"], ids=["good", "bad"])
    memory.store["bad"]["vector"] = [1e400, *memory.store["bad"]["vector"][1:]]
    with pytest.warns(RuntimeWarning), pytest.raises(InvalidInputError, match="'bad'"):
        SetSelectRetriever(vectorstore=memory).invoke("river")


def test_another_embedding_model_is_recognised_by_the_length(embeddings: WordEmbeddings) -> None:
    class Longer(WordEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            return [*super().embed_query(text), 1.0]

    for store in (faiss(embeddings), in_memory(embeddings)):
        with pytest.raises(InvalidInputError, match=r"49.*48.*different embedding models"):
            SetSelectRetriever(vectorstore=store, embeddings=Longer()).invoke(QUERY)


def test_a_perspective_of_another_length_is_refused(store: VectorStore) -> None:
    with pytest.raises(ValueError, match=r"perspective has length 3, the query 48"):
        SetSelectRetriever(vectorstore=store, perspective=[1.0, 2.0, 3.0]).invoke(QUERY)
