"""The retriever with LangChain's tools, ensembles, configuration and callbacks, and stores with one large source."""

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.vectorstores import FAISS
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectExampleSelector, SetSelectRetriever
from shared_core import MMR, InvalidInputError, InvalidParameterError, SetSelectError, select
from tests.embedding import DIMENSION, corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings, faiss, in_memory

QUERY = "hidden northern harbour engine"
QUERIES = [QUERY, "old red river", "loud bread passage", "violin mountain"]


def numbers(documents: list[Document]) -> list[int]:
    return [document.metadata["number"] for document in documents]


def as_shown(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


# As a tool, in an ensemble


async def test_it_is_a_tool_for_an_agent(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3)
    tool = create_retriever_tool(retriever, "passages", "Finds passages.")
    assert tool.invoke({"query": QUERY}) == as_shown(retriever.invoke(QUERY))
    assert await tool.ainvoke({"query": QUERY}) == as_shown(retriever.invoke(QUERY))
    call = {"name": "passages", "args": {"query": QUERY}, "id": "call-1", "type": "tool_call"}
    answer = tool.invoke(call)
    assert isinstance(answer, ToolMessage)
    assert (answer.content, answer.tool_call_id) == (as_shown(retriever.invoke(QUERY)), "call-1")


async def test_as_a_tool_it_returns_documents_with_scores(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3, scores=True)
    tool = create_retriever_tool(
        retriever,
        "passages",
        "Finds passages.",
        document_prompt=PromptTemplate.from_template("{number}: {relevance_score}"),
        document_separator="; ",
        response_format="content_and_artifact",
    )
    call = {"name": "passages", "args": {"query": QUERY}, "id": "call-1", "type": "tool_call"}
    for answer in (tool.invoke(call), await tool.ainvoke(call)):
        assert answer.artifact == retriever.invoke(QUERY)
        assert answer.content == "; ".join(
            f"{d.metadata['number']}: {d.metadata['relevance_score']}" for d in answer.artifact
        )


async def test_it_works_in_an_ensemble(store: VectorStore) -> None:
    by_set = SetSelectRetriever(vectorstore=store, k=5)
    by_cosine = SetSelectRetriever(vectorstore=store, search_type="similarity", k=5)
    ensemble = EnsembleRetriever(retrievers=[by_set, by_cosine], weights=[0.7, 0.3])
    found = ensemble.invoke(QUERY)
    # Reciprocal rank fusion, with the constant that EnsembleRetriever takes from the paper.
    points: dict[int, float] = {}
    for retriever, weight in ((by_set, 0.7), (by_cosine, 0.3)):
        for rank, number in enumerate(numbers(retriever.invoke(QUERY)), start=1):
            points[number] = points.get(number, 0) + weight / (rank + 60)
    assert numbers(found) == sorted(points, key=lambda number: -points[number])
    assert numbers(await ensemble.ainvoke(QUERY)) == numbers(found)
    chosen = SetSelectCompressor(vectorstore=store, k=3).compress_documents(found, QUERY)
    assert set(numbers(list(chosen))) < set(numbers(found))


# Configured, batched, copied


def configurable(retriever: SetSelectRetriever) -> Runnable[str, list[Document]]:
    return retriever.configurable_fields(
        k=ConfigurableField(id="k"),
        search_kwargs=ConfigurableField(id="search_kwargs"),
        search_type=ConfigurableField(id="search_type"),
    )


async def test_fields_can_be_configured(store: VectorStore) -> None:
    retriever = configurable(SetSelectRetriever(vectorstore=store, k=3))
    assert numbers(retriever.invoke(QUERY)) == numbers(SetSelectRetriever(vectorstore=store, k=3).invoke(QUERY))
    settings = {"search_type": "mmr", "k": 6, "search_kwargs": {"lambda_mult": 0.2}}
    wanted = SetSelectRetriever(vectorstore=store, **settings).invoke(QUERY)
    assert retriever.invoke(QUERY, config={"configurable": settings}) == wanted
    assert await retriever.ainvoke(QUERY, config={"configurable": settings}) == wanted
    assert retriever.with_config(configurable=settings).invoke(QUERY) == wanted
    assert (retriever | RunnableLambda(numbers)).invoke(QUERY, config={"configurable": settings}) == numbers(wanted)


def test_fields_of_an_unpickled_retriever_can_be_configured(store: VectorStore) -> None:
    made = SetSelectRetriever(vectorstore=store, search_kwargs={"order": "relevance"})
    retriever = configurable(pickle.loads(pickle.dumps(made)))
    assert len(retriever.invoke(QUERY, config={"configurable": {"k": 6}})) == 6


def test_fields_that_are_not_configured_stay_unchanged(store: VectorStore) -> None:
    made = SetSelectRetriever(
        vectorstore=store, selector=MMR(lambda_mult=0.2), perspective="northern", quality="quality", scores=False
    )
    for settings in ({"search_kwargs": {"k": 7}}, {"k": 7}):
        assert configurable(made).invoke(QUERY, config={"configurable": settings}) == made.invoke(QUERY, k=7)
    with pytest.raises(InvalidParameterError, match=r"search_type or selector, not both"):
        configurable(made).invoke(QUERY, config={"configurable": {"search_type": "vrsd"}})


def test_bad_configuration_is_refused_like_bad_arguments(store: VectorStore) -> None:
    retriever = configurable(SetSelectRetriever(vectorstore=store))
    for settings, message in (
        ({"search_type": "mrr"}, r"unknown selector 'mrr'"),
        ({"search_kwargs": {"fetchk": 3}}, r"did you mean 'fetch_k'"),
        ({"k": 3, "search_kwargs": {"k": 3}}, r"k is given twice"),
        ({"k": 0}, r"k must be at least 1"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            retriever.invoke(QUERY, config={"configurable": settings})


async def test_configured_and_batched_calls_select_what_single_calls_select(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=4, tags=["ours"])
    one_by_one = [retriever.invoke(query) for query in QUERIES]
    named = retriever.with_config(run_name="passages", tags=["theirs"], max_concurrency=2)
    for runnable in (retriever, named, retriever.with_retry(), retriever.with_fallbacks([retriever])):
        assert runnable.batch(QUERIES) == one_by_one
        assert await runnable.abatch(QUERIES) == one_by_one
        assert [runnable.invoke(query) for query in QUERIES] == one_by_one
    assert retriever.bind(k=2).invoke(QUERY) == retriever.invoke(QUERY, k=2)
    assert retriever.batch(QUERIES, k=2) == [retriever.invoke(query, k=2) for query in QUERIES]
    assert await retriever.abatch(QUERIES, k=2) == [retriever.invoke(query, k=2) for query in QUERIES]


def test_the_tags_are_those_of_as_retriever(store: VectorStore) -> None:
    given = ["ours"]
    for tags in (None, given):
        retriever = SetSelectRetriever(vectorstore=store, tags=tags)
        assert retriever.tags == store.as_retriever(tags=tags).tags
        assert SetSelectRetriever(**dict(retriever)).tags == retriever.tags
        listener = Listener()
        configurable(retriever).invoke(QUERY, config={"callbacks": [listener], "configurable": {"k": 3}})
        assert listener.tags == [tags or [type(store).__name__, "WordEmbeddings"]]
    assert given == ["ours"]


def test_copied_pickled_and_configured_objects_select_the_same(store: VectorStore) -> None:
    retriever = SetSelectRetriever(
        vectorstore=store, search_type="mmr", source="topic", max_per_source=1, k=5, lambda_mult=0.3, shown=["doc-3"]
    )
    wanted = retriever.invoke(QUERY)
    others: list[BaseRetriever] = [
        copy.copy(retriever),
        copy.deepcopy(retriever),
        retriever.model_copy(),
        retriever.model_copy(deep=True),
        pickle.loads(pickle.dumps(retriever)),
        SetSelectRetriever(**dict(retriever)),
    ]
    for other in others:
        assert other.invoke(QUERY) == wanted
    same = {"search_kwargs": dict(retriever.search_kwargs), "search_type": "mmr"}
    assert configurable(retriever).invoke(QUERY, config={"configurable": same}) == wanted


# Callbacks


def without_time(told: dict[str, Any]) -> dict[str, Any]:
    """The event without its milliseconds, so that the events of two calls can be compared."""
    assert told["milliseconds"] > 0
    return {name: value for name, value in told.items() if name != "milliseconds"}


class Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.parents: list[UUID] = []
        self.runs: list[UUID] = []
        self.tags: list[list[str]] = []

    def on_retriever_start(self, *arguments: Any, run_id: UUID, tags: list[str], **more: Any) -> None:
        self.runs.append(run_id)
        self.tags.append(tags)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        assert name == "setselect"
        self.events.append(without_time(data))
        self.parents.append(run_id)


class AsyncListener(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def on_custom_event(self, name: str, data: Any, **more: Any) -> None:
        assert name == "setselect"
        self.events.append(without_time(data))


async def test_a_handler_receives_the_selection_and_its_reasons(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", k=3, fetch_k=12, lambda_mult=0.25, scores=True)
    sync, also_sync, asynchronous = Listener(), Listener(), AsyncListener()
    documents = retriever.invoke(QUERY, config={"callbacks": [sync]})
    assert await retriever.ainvoke(QUERY, config={"callbacks": [asynchronous, also_sync]}) == documents
    (told,) = sync.events
    assert asynchronous.events == also_sync.events == [told]
    assert told["selector"] == repr(MMR(lambda_mult=0.25))
    assert (told["k"], told["fetch_k"], told["candidates"]) == (3, 12, 12)
    assert told["vector_source"] == f"store: {type(store).__name__}"
    assert told["ids"] == [document.id for document in documents]
    assert told["relevance"] == [document.metadata["relevance_score"] for document in documents]
    assert told["gains"] == [document.metadata["selection_score"] for document in documents]
    assert told["objective"] == pytest.approx(sum(told["gains"]))
    assert told["filled_from"] is None
    without = Listener()
    retriever.invoke(QUERY, config={"callbacks": [without]}, scores=False)
    assert without.events == [told], "the event has the numbers that the metadata lacks"
    assert sync.parents == sync.runs, "the event belongs to the retriever's own run"


def test_an_empty_selection_sends_an_event_too(store: VectorStore) -> None:
    listener = Listener()
    retriever = SetSelectRetriever(vectorstore=store, score_threshold=1.0)
    assert retriever.invoke(QUERY, config={"callbacks": [listener]}) == []
    (told,) = listener.events
    assert (told["candidates"], told["ids"], told["gains"], told["relevance"]) == (20, [], [], [])


async def test_the_event_reaches_the_handlers_of_the_surrounding_chain(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=2)
    wanted = [document.id for document in retriever.invoke(QUERY)]
    in_a_tool, in_a_chain, in_a_stream = Listener(), Listener(), []
    tool = create_retriever_tool(retriever, "passages", "Finds passages.")
    tool.invoke({"query": QUERY}, config={"callbacks": [in_a_tool]})
    chain = retriever | RunnableLambda(as_shown)
    await chain.ainvoke(QUERY, config={"callbacks": [in_a_chain]})
    chain.with_config(callbacks=[in_a_chain]).batch([QUERY, QUERY])
    async for happening in chain.astream_events(QUERY, version="v2"):
        if happening["event"] == "on_custom_event":
            in_a_stream.append(happening["data"])
    assert [told["ids"] for told in in_a_tool.events] == [wanted]
    assert [told["ids"] for told in in_a_chain.events] == [wanted] * 3
    assert [told["ids"] for told in in_a_stream] == [wanted]


class Describing:
    """A selector that counts the calls of repr, which an event needs."""

    def __init__(self) -> None:
        self.described = 0

    def select(self, candidates: Any, k: int | None = None, **options: Any) -> Any:
        return MMR().select(candidates, k, **options)

    def __repr__(self) -> str:
        self.described += 1
        return "Describing()"


async def test_no_event_is_built_without_a_handler(store: VectorStore) -> None:
    selector = Describing()
    retriever = SetSelectRetriever(vectorstore=store, selector=selector)
    selector.described = 0
    retriever.invoke(QUERY)
    await retriever.ainvoke(QUERY)
    assert selector.described == 0
    retriever.invoke(QUERY, config={"callbacks": [Listener()]})
    await retriever.ainvoke(QUERY, config={"callbacks": [AsyncListener()]})
    assert selector.described == 2


# Crowding and duplicates


@cache
def crowded(others: int) -> list[tuple[str, list[float], str]]:
    """300 documents; 270 are of one source and nearer to the query than the other 30, of ``others`` sources."""
    rng = np.random.default_rng(0)
    query = embed(QUERY) / np.linalg.norm(embed(QUERY))
    rows = []
    for i in range(300):
        crowd = i % 10 != 0
        vector = query + rng.normal(scale=0.02 if crowd else 0.3, size=DIMENSION)
        rows.append((f"text {i}", vector.tolist(), "crowd" if crowd else f"source {i // 10 % others}"))
    return rows


def crowded_in_memory(others: int, embeddings: WordEmbeddings) -> VectorStore:
    store = InMemoryVectorStore(embeddings)
    for i, (text, vector, source) in enumerate(crowded(others)):
        entry = {"id": f"doc-{i}", "text": text, "vector": vector, "metadata": {"source": source, "number": i}}
        store.store[f"doc-{i}"] = entry
    return store


def crowded_faiss(others: int, embeddings: WordEmbeddings) -> VectorStore:
    rows = crowded(others)
    return FAISS.from_embeddings(
        [(text, vector) for text, vector, _ in rows],
        embeddings,
        [{"source": source, "number": i} for i, (_, _, source) in enumerate(rows)],
        ids=[f"doc-{i}" for i in range(len(rows))],
        normalize_L2=True,
    )


CROWDED = pytest.mark.parametrize("make", [crowded_in_memory, crowded_faiss])


@CROWDED
@pytest.mark.parametrize("search_type", ["similarity", "vrsd", "mmr", "ndpp"])
@pytest.mark.parametrize(("others", "k"), [(9, 10), (9, 4), (3, 4), (30, 30), (1, 2)])
async def test_k_distinct_sources_come_back_whenever_there_are_k(
    make: Callable[..., VectorStore], embeddings: WordEmbeddings, search_type: str, others: int, k: int
) -> None:
    store = make(others, embeddings)
    plain = SetSelectRetriever(vectorstore=store, search_type="similarity", k=k).invoke(QUERY)
    assert {document.metadata["source"] for document in plain} == {"crowd"}, "else this tests nothing"
    retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=k, max_per_source=1)
    found = retriever.invoke(QUERY)
    assert len({document.metadata["source"] for document in found}) == len(found) == k
    assert await retriever.ainvoke(QUERY) == found


@CROWDED
async def test_fewer_sources_than_k_give_fewer_documents(
    make: Callable[..., VectorStore], embeddings: WordEmbeddings
) -> None:
    retriever = SetSelectRetriever(vectorstore=make(3, embeddings), k=10, max_per_source=1)
    found = retriever.invoke(QUERY)
    assert {d.metadata["source"] for d in found} == {"crowd", "source 0", "source 1", "source 2"}
    assert len(found) == 4
    assert await retriever.ainvoke(QUERY) == found
    assert len(retriever.invoke(QUERY, max_per_source=2)) == 8
    assert len(retriever.invoke(QUERY, max_per_source=3)) == 10


@CROWDED
def test_shown_documents_count_for_their_source(make: Callable[..., VectorStore], embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(vectorstore=make(9, embeddings), k=5, max_per_source=1)
    first = retriever.invoke(QUERY)
    second = retriever.invoke(QUERY, shown=[document.id for document in first])
    assert len(second) == 5
    assert not {d.metadata["source"] for d in first} & {d.metadata["source"] for d in second}


@CROWDED
def test_the_last_search_selects_like_the_core(make: Callable[..., VectorStore], embeddings: WordEmbeddings) -> None:
    found = SetSelectRetriever(vectorstore=make(9, embeddings), k=10, fetch_k=1000, max_per_source=1).invoke(QUERY)
    rows = crowded(9)
    vectors = np.array([vector for _, vector, _ in rows])
    chosen = select(embed(QUERY), vectors, 10, sources=[source for _, _, source in rows], max_per_source=1)
    assert numbers(found) == chosen.indices.tolist()


@CROWDED
async def test_no_two_picks_are_nearer_than_the_threshold(
    make: Callable[..., VectorStore], embeddings: WordEmbeddings
) -> None:
    store = make(9, embeddings)
    vectors = np.array([vector for _, vector, _ in crowded(9)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def nearest_pair(documents: list[Document]) -> float:
        chosen = vectors[numbers(documents)]
        return float((chosen @ chosen.T - 2 * np.eye(len(chosen))).max())

    for search_type in ("similarity", "vrsd", "mmr", "ndpp"):
        retriever = SetSelectRetriever(vectorstore=store, search_type=search_type, k=8)
        found = retriever.invoke(QUERY, drop_near_duplicates=0.6)
        assert len(found) == 8, "wider searches fill the set"
        assert nearest_pair(found) <= 0.6 + 1e-6
        assert await retriever.ainvoke(QUERY, drop_near_duplicates=0.6) == found
    plain = SetSelectRetriever(vectorstore=store, search_type="similarity", k=8).invoke(QUERY)
    assert nearest_pair(plain) > 0.9, "there must be near-duplicates to drop"


def test_the_source_is_a_key_or_a_function(store: VectorStore) -> None:
    settings = {"vectorstore": store, "k": 6, "max_per_source": 1}
    by_key = SetSelectRetriever(source="topic", **settings).invoke(QUERY)
    by_function = SetSelectRetriever(source=lambda document: document.metadata["topic"], **settings).invoke(QUERY)
    by_call = SetSelectRetriever(**settings).invoke(QUERY, source="topic")
    assert by_key == by_function == by_call
    assert len({document.metadata["topic"] for document in by_key}) == 6


def test_a_missing_source_names_the_document(store: VectorStore) -> None:
    with pytest.raises(
        InvalidInputError, match=r"'source', but item 0\b.*no such key; its keys are .*'topic'.*source="
    ):
        SetSelectRetriever(vectorstore=store, max_per_source=1).invoke(QUERY)
    assert SetSelectRetriever(vectorstore=store).invoke(QUERY), "the key is read only with max_per_source"


# What is refused


@pytest.mark.parametrize(
    ("typo", "ours"),
    [
        ("fetchk", "fetch_k"),
        ("lamda_mult", "lambda_mult"),
        ("max_per_sources", "max_per_source"),
        ("drop_near_duplicate", "drop_near_duplicates"),
        ("score_treshold", "score_threshold"),
        ("perspectiv", "perspective"),
        ("qualty", "quality"),
    ],
)
async def test_a_typo_is_refused_with_a_suggestion(store: VectorStore, typo: str, ours: str) -> None:
    message = rf"there is no '{typo}': did you mean '{ours}'\?"
    with pytest.raises(InvalidParameterError, match=message):
        SetSelectRetriever(vectorstore=store, search_kwargs={typo: 0.3})
    retriever = SetSelectRetriever(vectorstore=store)
    with pytest.raises(InvalidParameterError, match=message):
        retriever.invoke(QUERY, **{typo: 0.3})
    with pytest.raises(InvalidParameterError, match=message):
        await retriever.ainvoke(QUERY, **{typo: 0.3})
    with pytest.raises(InvalidParameterError, match=rf"no argument '{typo}'.*\b{ours}\b"):
        SetSelectRetriever(vectorstore=store, **{typo: 0.3})


async def test_a_store_argument_that_the_store_does_not_know_is_refused(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"namespace": "a"})
    message = rf"{type(store).__name__} takes no search argument 'namespace'; it takes filter"
    with pytest.raises(InvalidParameterError, match=message):
        retriever.invoke(QUERY)
    with pytest.raises(InvalidParameterError, match=message):
        await retriever.ainvoke(QUERY)


@pytest.mark.parametrize("cls", [SetSelectRetriever, SetSelectCompressor, SetSelectExampleSelector])
@pytest.mark.parametrize(
    "arguments",
    [
        {"kk": 1},
        {"k": "three"},
        {"search_type": "nearest"},
        {"search_kwargs": {"fetch_k": 2}},
        {"search_kwargs": {"lamda_mult": 0.3}},
        {"selector": MMR(), "search_type": "mmr"},
        {"quality": 3},
        {"costs": 3},
        {"source": 3},
        {"max_per_source": 1.5},
        {"drop_near_duplicates": "yes"},
        {"score_threshold": float("nan")},
        {"perspective_vector": "sum"},
    ],
    ids=str,
)
def test_constructors_raise_our_own_errors(embeddings: WordEmbeddings, cls: type, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        cls(vectorstore=in_memory(embeddings), **arguments)
    assert isinstance(caught.value, SetSelectError)
    assert "validation error" not in str(caught.value), "pydantic's wrapping hides the class of the error"


def test_arguments_of_the_constructor_are_refused_at_call_time(embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(vectorstore=faiss(embeddings))
    with pytest.raises(InvalidParameterError, match=r"embeddings is set when SetSelectRetriever is made"):
        retriever.invoke(QUERY, embeddings=embeddings)
    assert len(corpus()) == 60
