"""The postprocessor in LlamaIndex's engines, fusion and workflows; and caps on the nodes of one document."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from llama_index.core import SimpleKeywordTableIndex, StorageContext, VectorStoreIndex
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import EmbeddingFallbackWarning, InvalidInputError, InvalidParameterError, SetSelectWarning, select
from tests.embedding import DIMENSION
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    TEXTS,
    CountingEmbedding,
    bundle,
    embedding,
    expected,
    expected_selection,
    ids_of,
    make_index,
    make_nodes,
    make_store,
    matrix,
    scored,
)

NEAREST_FIRST = [ALL[i] for i in expected_selection(ALL, len(ALL), "similarity").indices]


# Query engines, chat engines, fusion, workflows


async def test_retriever_query_engine(index: VectorStoreIndex) -> None:
    engine = RetrieverQueryEngine.from_args(
        index.as_retriever(similarity_top_k=len(TEXTS)),
        llm=MockLLM(),
        node_postprocessors=[SetSelectPostprocessor(top_n=5, index=index)],
    )
    for response in (engine.query(QUERY), await engine.aquery(QUERY)):
        assert ids_of(response.source_nodes) == expected(NEAREST_FIRST, 5)
        assert "selection_score" not in str(response), "MockLLM returns its prompt"


async def test_the_index_retriever_in_a_query_engine(index: VectorStoreIndex) -> None:
    engine = RetrieverQueryEngine.from_args(SetSelectIndexRetriever(index, top_n=5, fetch_k=40), llm=MockLLM())
    assert ids_of(engine.query(QUERY).source_nodes) == expected(NEAREST_FIRST, 5)
    assert ids_of((await engine.aquery(QUERY)).source_nodes) == expected(NEAREST_FIRST, 5)


def memory() -> ChatMemoryBuffer:
    """The default memory leaves a database connection open, and Python warns about it."""
    return ChatMemoryBuffer.from_defaults(token_limit=3000)


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
@pytest.mark.parametrize("way", ["chat", "stream_chat", "achat", "astream_chat"])
async def test_chat_engines(way: str, kind: Any, index: VectorStoreIndex) -> None:
    engine: BaseChatEngine = kind.from_defaults(
        retriever=index.as_retriever(similarity_top_k=len(TEXTS)),
        llm=MockLLM(),
        memory=memory(),
        node_postprocessors=[SetSelectPostprocessor(top_n=5, index=index)],
    )
    match way:
        case "chat":
            found, said = (answer := engine.chat(QUERY)).source_nodes, answer.response
        case "achat":
            found, said = (answer := await engine.achat(QUERY)).source_nodes, answer.response
        case "stream_chat":
            streamed = engine.stream_chat(QUERY)
            found, said = streamed.source_nodes, "".join(streamed.response_gen)
        case _:
            streamed = await engine.astream_chat(QUERY)
            found, said = streamed.source_nodes, "".join([token async for token in streamed.async_response_gen()])
    assert ids_of(found) == expected(NEAREST_FIRST, 5)
    places = [said.index(TEXTS[ALL.index(i)]) for i in expected(NEAREST_FIRST, 5)]
    assert all(place >= 0 for place in places), "each selected text is in the prompt, which MockLLM returns"
    assert "selection_score" not in said


def test_a_chat_of_two_turns_without_repeats(index: VectorStoreIndex) -> None:
    post = SetSelectPostprocessor(top_n=3, index=index)
    engine = ContextChatEngine.from_defaults(
        retriever=index.as_retriever(similarity_top_k=len(TEXTS)),
        llm=MockLLM(),
        memory=memory(),
        node_postprocessors=[post],
    )
    first = ids_of(engine.chat(QUERY).source_nodes)
    post.shown = tuple(first)
    second = ids_of(engine.chat(QUERY).source_nodes)
    assert len(set(first + second)) == 6


def fusion(index: VectorStoreIndex, foreign: list[TextNode]) -> QueryFusionRetriever:
    keywords = SimpleKeywordTableIndex(foreign, llm=MockLLM())
    retrievers = [index.as_retriever(similarity_top_k=10), keywords.as_retriever(num_chunks_per_query=20)]
    return QueryFusionRetriever(retrievers, llm=MockLLM(), num_queries=1, similarity_top_k=30, use_async=False)


def foreign_nodes() -> list[TextNode]:
    return [
        TextNode(id_=f"k{i}", text=f"{drink} takes sleep and memory away") for i, drink in enumerate(["mate", "cola"])
    ]


async def test_over_fused_results(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    post = SetSelectPostprocessor(top_n=6, index=index)
    fused = fusion(index, [*make_nodes()[20:], *foreign_nodes()])
    found = fused.retrieve(QUERY)
    assert {"k0", "k1"} <= set(ids_of(found))
    model.forget()
    with pytest.warns(EmbeddingFallbackWarning, match=r"SimpleVectorStore does not know these nodes.*2 this time"):
        chosen = post.postprocess_nodes(found, bundle())
    assert sorted(model.texts) == sorted(node.text for node in foreign_nodes()), "only what the store does not know"
    vectors = np.array([embedding(node.text) for node in found])
    wanted = [ids_of(found)[i] for i in select(embedding(QUERY), vectors, 6).indices]
    assert ids_of(chosen) == wanted
    # The warning has been given; the async call gives none.
    assert ids_of(await post.apostprocess_nodes(await fused.aretrieve(QUERY), bundle())) == wanted


def test_a_query_engine_over_fused_results(index: VectorStoreIndex) -> None:
    fused = fusion(index, make_nodes()[20:])
    post = SetSelectPostprocessor(top_n=4, index=index)
    engine = RetrieverQueryEngine.from_args(fused, llm=MockLLM(), node_postprocessors=[post])
    found = ids_of(fused.retrieve(QUERY))
    assert ids_of(engine.query(QUERY).source_nodes) == expected(found, 4)


class Found(Event):
    nodes: list[NodeWithScore]
    query: str


class Rag(Workflow):
    """Retrieve, select and return, in one workflow step each."""

    def __init__(self, index: VectorStoreIndex, **settings: Any) -> None:
        super().__init__(**settings)
        self.retriever = index.as_retriever(similarity_top_k=len(TEXTS))
        self.post = SetSelectPostprocessor(top_n=5, index=index)

    @step
    async def retrieve(self, context: Context, event: StartEvent) -> Found:
        return Found(nodes=await self.retriever.aretrieve(event.query), query=event.query)

    @step
    async def choose(self, context: Context, event: Found) -> StopEvent:
        return StopEvent(result=await self.post.apostprocess_nodes(event.nodes, query_str=event.query))


async def test_workflow(index: VectorStoreIndex) -> None:
    chosen = await Rag(index, timeout=60).run(query=QUERY)
    assert ids_of(chosen) == expected(NEAREST_FIRST, 5)


# Sources and near-duplicates


def with_documents(nodes: list[TextNode], document_of: Callable[[int], str]) -> list[TextNode]:
    for i, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document_of(i))
    return nodes


def documents_of(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.ref_doc_id or node.node_id for node in nodes]


def part(i: int) -> str:
    return f"d{i % 7}"


SOURCES: list[Any] = [None, "document", lambda node: node.metadata["document"]]


@pytest.mark.parametrize("source", SOURCES, ids=["ref_doc_id", "key", "function"])
@pytest.mark.parametrize("most", [1, 2])
async def test_max_per_source(most: int, source: Any, model: CountingEmbedding) -> None:
    nodes = make_nodes()
    if source is None:
        with_documents(nodes, part)
    else:
        for i, node in enumerate(nodes):
            node.metadata["document"] = part(i)
            node.excluded_embed_metadata_keys.append("document")
    index = make_index("simple", model, nodes)
    wanted = expected(NEAREST_FIRST, 5, sources=[part(ALL.index(i)) for i in NEAREST_FIRST], max_per_source=most)
    options = {"top_n": 5, "max_per_source": most, "source": source}
    post = SetSelectPostprocessor(index=index, **options)
    retriever = SetSelectIndexRetriever(index, fetch_k=len(TEXTS), **options)
    in_order = scored([nodes[ALL.index(i)] for i in NEAREST_FIRST])
    for chosen in (
        post.postprocess_nodes(in_order, bundle()),
        await post.apostprocess_nodes(in_order, bundle()),
        retriever.retrieve(QUERY),
        await retriever.aretrieve(QUERY),
    ):
        assert ids_of(chosen) == wanted


def test_a_node_without_a_document_is_its_own_source(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=6, max_per_source=1)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(ALL, 6)


def test_a_missing_source_is_an_error(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, max_per_source=1, source="file")
    with pytest.raises(InvalidInputError, match=r"'file'.*no such key; its keys are 'stars', 'subject'"):
        post.postprocess_nodes(nodes, bundle())


def test_shown_nodes_count_for_their_source(model: CountingEmbedding) -> None:
    nodes = with_documents(make_nodes(), part)
    index = make_index("simple", model, nodes)
    shown = [f"n{i}" for i in (0, 1, 2)]
    retriever = SetSelectIndexRetriever(index, top_n=4, max_per_source=1, shown=shown)
    assert sorted(documents_of(retriever.retrieve(QUERY))) == ["d3", "d4", "d5", "d6"]


@pytest.mark.parametrize("limit", [0.7, 0.9])
async def test_near_duplicates(limit: float, index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=20, drop_near_duplicates=limit)
    chosen = post.postprocess_nodes(nodes, bundle())
    assert ids_of(chosen) == expected(ALL, 20, drop_near_duplicates=limit)
    cosines = matrix(ids_of(chosen)) @ matrix(ids_of(chosen)).T
    assert cosines[~np.eye(len(chosen), dtype=bool)].max() <= limit
    assert ids_of(await post.apostprocess_nodes(nodes, bundle())) == ids_of(chosen)


def test_near_duplicates_are_replaced_by_nodes_from_a_wider_search(index: VectorStoreIndex) -> None:
    options: dict[str, Any] = {"top_n": 5, "drop_near_duplicates": 0.7}
    assert len(SetSelectIndexRetriever(index, fetch_k=5, **options).retrieve(QUERY)) == 5
    # A postprocessor cannot search for more nodes.
    few = index.as_retriever(similarity_top_k=5).retrieve(QUERY)
    assert len(SetSelectPostprocessor(index=index, **options).postprocess_nodes(few, bundle())) < 5


CROWD, OTHERS = 270, 30


@cache
def crowded(kind: str, sources: int) -> tuple[VectorStoreIndex, QueryBundle]:
    """300 nodes: the 270 nearest to the query are of one document, the rest of ``sources`` others."""
    rng = np.random.default_rng(7)
    query = rng.normal(size=DIMENSION)
    near = query + 0.3 * rng.normal(size=(CROWD, DIMENSION))
    far = query + 3.0 * rng.normal(size=(OTHERS, DIMENSION))
    vectors = np.concatenate([near, far])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    nodes = [TextNode(id_=f"n{i}", text=f"text {i}", embedding=row.tolist()) for i, row in enumerate(vectors)]
    with_documents(nodes, lambda i: "crowd" if i < CROWD else f"other-{(i - CROWD) % sources}")
    storage = StorageContext.from_defaults(vector_store=make_store(kind))
    index = VectorStoreIndex(nodes, embed_model=CountingEmbedding(), storage_context=storage)
    return index, QueryBundle("q", embedding=(query / np.linalg.norm(query)).tolist())


@pytest.mark.parametrize("kind", ["simple", "flat ip"])
@pytest.mark.parametrize(("k", "sources", "distinct"), [(10, 30, 10), (5, 4, 5), (10, 4, 5)])
@pytest.mark.parametrize("selector", ["similarity", "vrsd", "mmr", "ndpp"])
async def test_nine_tenths_of_the_nodes_are_of_one_document(
    kind: str, k: int, sources: int, distinct: int, selector: str
) -> None:
    index, query = crowded(kind, sources)
    options: dict[str, Any] = {"top_n": k, "max_per_source": 1, "selector": selector}
    retriever = SetSelectIndexRetriever(index, **options)
    found = retriever.retrieve(query)
    assert len(set(documents_of(found))) == len(found) == distinct
    assert ids_of(await retriever.aretrieve(query)) == ids_of(found)

    post = SetSelectPostprocessor(index=index, **options)
    every = index.as_retriever(similarity_top_k=CROWD + OTHERS).retrieve(query)
    chosen = post.postprocess_nodes(every, query)
    assert len(set(documents_of(chosen))) == len(chosen) == distinct
    assert ids_of(await post.apostprocess_nodes(every, query)) == ids_of(chosen)

    unlimited = SetSelectIndexRetriever(index, top_n=k, selector="similarity").retrieve(query)
    assert set(documents_of(unlimited)) == {"crowd"}, "otherwise this test shows nothing"


# Round trips


@pytest.mark.parametrize("way", ["dict", "json", "pickle"])
def test_round_trips_keep_the_new_options(way: str, index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    options: dict[str, Any] = {"max_per_source": 2, "source": "stars", "drop_near_duplicates": 0.7}
    post = SetSelectPostprocessor(index=index, top_n=8, **options)
    wanted = ids_of(post.postprocess_nodes(nodes, bundle()))
    names = [i % 5 for i in range(len(ALL))]
    assert wanted == expected(ALL, 8, sources=names, max_per_source=2, drop_near_duplicates=0.7)
    assert len({*wanted} & {*expected(ALL, 8)}) < 8, "otherwise this test shows nothing"
    match way:
        case "dict":
            again = SetSelectPostprocessor.from_dict(post.to_dict(), index=index)
        case "json":
            again = SetSelectPostprocessor.from_json(post.to_json(), index=index)
        case _:
            again = pickle.loads(pickle.dumps(post))
    assert {name: getattr(again, name) for name in options} == options
    assert ids_of(again.postprocess_nodes(nodes, bundle())) == wanted


def test_a_source_function_cannot_be_written() -> None:
    with pytest.raises(InvalidParameterError, match="to_dict cannot write source, a function"):
        SetSelectPostprocessor(max_per_source=1, source=lambda node: node.node_id).to_dict()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_per_source": 0}, "max_per_source must be at least 1"),
        ({"max_per_source": 1.5}, "max_per_source"),
        ({"drop_near_duplicates": 1.1}, "drop_near_duplicates"),
        ({"source": 3}, "source"),
        ({"max_per_sources": 1}, "max_per_source"),
    ],
    ids=str,
)
def test_wrong_limits_raise_at_construction(settings: dict[str, Any], message: str, index: VectorStoreIndex) -> None:
    for make in (SetSelectPostprocessor, lambda **s: SetSelectIndexRetriever(index, **s)):
        with pytest.raises(ValueError, match=message):
            make(**settings)


STARS = {node_id: i % 5 for i, node_id in enumerate(ALL)}
BY_QUALITY: dict[str, Any] = {"selector": "mmr", "lambda_mult": 0.5, "lambda_b": 0.5}


def test_quality_by_node_id(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    wanted = expected(ALL, 4, "mmr", lambda_mult=0.5, lambda_b=0.5, quality=list(STARS.values()))
    post = SetSelectPostprocessor(index=index, quality=STARS, **BY_QUALITY)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == wanted
    for again in (
        SetSelectPostprocessor.from_dict(post.to_dict(), index=index),
        SetSelectPostprocessor.from_json(post.to_json(), index=index),
        pickle.loads(pickle.dumps(post)),
    ):
        assert again.quality == STARS
        assert ids_of(again.postprocess_nodes(nodes, bundle())) == wanted


def test_costs_by_node_id(index: VectorStoreIndex) -> None:
    costs = {node_id: len(text.split()) for node_id, text in zip(ALL, TEXTS, strict=True)}
    found = SetSelectIndexRetriever(index, fetch_k=40, budget=17, costs=costs).retrieve(QUERY)
    numbers = [costs[i] for i in NEAREST_FIRST]
    assert ids_of(found) == expected(NEAREST_FIRST, None, costs=numbers, budget=17)  # type: ignore[arg-type]


def test_quality_that_lacks_a_node(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, quality={"n0": 1.0}, **BY_QUALITY)
    with pytest.raises(InvalidInputError, match="'n1'"):
        post.postprocess_nodes(nodes, bundle())
    with pytest.raises(InvalidInputError, match=r"'n3'.* is nan; it must be finite"):
        SetSelectPostprocessor(index=index, quality={**STARS, "n3": float("nan")}, **BY_QUALITY).postprocess_nodes(
            nodes, bundle()
        )


def test_nodes_of_another_index_without_a_model(model: CountingEmbedding) -> None:
    post = SetSelectPostprocessor(vector_store=make_index("simple", model).vector_store)
    with pytest.warns(SetSelectWarning, match="has no vector for 2 of 42 nodes.*'k0', 'k1'"):
        chosen = post.postprocess_nodes(scored([*make_nodes(), *foreign_nodes()]), bundle())
    assert ids_of(chosen) == expected(ALL, 4)
