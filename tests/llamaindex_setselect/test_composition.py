"""What comes out when other components stand in front of a selection or behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, MultiSelection, SingleSelection
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import ImageNode, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from shared_core import InvalidInputError, InvalidParameterError
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    CountingEmbedding,
    bundle,
    embedding,
    ids_of,
    scored,
    scores_of,
)

SELECTORS = ["similarity", "vrsd", "mmr", "ndpp"]


# Fusion and routers


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_reciprocal_rank_fusion_adds_up_shared_nodes(asynchronous: bool, index: VectorStoreIndex) -> None:
    each: list[BaseRetriever] = [
        SetSelectIndexRetriever(index, top_n=6),
        SetSelectIndexRetriever(index, top_n=6, selector="mmr", lambda_mult=0.9),
        index.as_retriever(similarity_top_k=6),
    ]
    fused = QueryFusionRetriever(
        each, llm=MockLLM(), num_queries=1, similarity_top_k=18, mode="reciprocal_rerank", use_async=False
    )
    found = await fused.aretrieve(QUERY) if asynchronous else fused.retrieve(QUERY)
    wanted: Counter[str] = Counter()
    for retriever in each:
        ranked = sorted(retriever.retrieve(QUERY), key=lambda node: -node.get_score())
        for rank, node in enumerate(ranked):
            wanted[node.node_id] += 1 / (rank + 60)  # type: ignore[assignment]
    assert len(found) == len(wanted), "each node occurs once"
    assert {node.node_id: node.score for node in found} == pytest.approx(dict(wanted))
    assert found[0].get_score() == pytest.approx(3 / 60), "the nearest node is the first of all three"


def test_a_selection_changes_no_hash(index: VectorStoreIndex) -> None:
    hashes = {node.node_id: node.node.hash for node in index.as_retriever(similarity_top_k=40).retrieve(QUERY)}
    found = SetSelectIndexRetriever(index, top_n=6).retrieve(QUERY)
    assert [node.node.hash for node in found] == [hashes[node.node_id] for node in found]
    copies = SetSelectIndexRetriever(index, top_n=6, scores=True).retrieve(QUERY)
    assert all(node.node.hash != hashes[node.node_id] for node in copies), "metadata enters into the hash"


class ByName(BaseSelector):
    """Selects the engine that the query names."""

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        pass

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> MultiSelection:
        names = [choice.get_name() in query.query_str for choice in choices]
        return MultiSelection(selections=[SingleSelection(index=names.index(True), reason="its name")])

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> MultiSelection:
        return self._select(choices, query)


async def test_a_router_returns_what_the_engine_returns_that_it_selects(index: VectorStoreIndex) -> None:
    retrievers = {
        "sleep": SetSelectIndexRetriever(index, top_n=5),
        "memory": SetSelectIndexRetriever(index, top_n=3, selector="mmr"),
    }
    tools = [
        QueryEngineTool.from_defaults(
            RetrieverQueryEngine.from_args(retriever, llm=MockLLM()), name=name, description=name
        )
        for name, retriever in retrievers.items()
    ]
    router = RouterQueryEngine(ByName(), tools, llm=MockLLM())
    for name, retriever in retrievers.items():
        query = f"tea and {name}"
        wanted = ids_of(retriever.retrieve(query))
        assert ids_of(router.query(query).source_nodes) == wanted
        assert ids_of((await router.aquery(query)).source_nodes) == wanted


# After a reranker


class Rerank(BaseNodePostprocessor):
    """Scores a node by the place of its text in the corpus, as logits; ``sign`` -1 reverses them."""

    sign: int = 1

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [NodeWithScore(node=n.node, score=self.sign * (TEXTS.index(n.text) - 20.0) / 3) for n in nodes]


@pytest.mark.parametrize("selector", ["similarity", "mmr", "ndpp"])
@pytest.mark.parametrize("scale", ["minmax", "rank", "sigmoid"])
async def test_the_scores_of_a_reranker_decide_and_stay(selector: str, scale: Any, index: VectorStoreIndex) -> None:
    picks = {}
    for sign in (1, -1):
        rerank = Rerank(sign=sign)
        post = SetSelectPostprocessor(index=index, top_n=5, selector=selector, relevance="score", relevance_scale=scale)
        engine = RetrieverQueryEngine.from_args(
            index.as_retriever(similarity_top_k=20), llm=MockLLM(), node_postprocessors=[rerank, post]
        )
        found = engine.query(QUERY).source_nodes
        assert scores_of(found) == scores_of(rerank.postprocess_nodes(found)), "the scores are not scaled"
        assert ids_of((await engine.aquery(QUERY)).source_nodes) == ids_of(found)
        picks[sign] = ids_of(found)
        if selector == "similarity":
            every = rerank.postprocess_nodes(index.as_retriever(similarity_top_k=20).retrieve(QUERY))
            assert picks[sign] == ids_of(sorted(every, key=lambda node: -node.get_score())[:5])
    assert set(picks[1]) != set(picks[-1])


def test_score_threshold_applies_to_the_unscaled_score(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=9, selector="mmr", relevance="score", score_threshold=5.0)
    found = post.postprocess_nodes(Rerank().postprocess_nodes(nodes), bundle())
    assert sorted(ids_of(found)) == ["n35", "n36", "n37", "n38", "n39"]


def test_a_node_without_a_score_is_named(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    given = Rerank().postprocess_nodes(nodes)
    given[7].score = None
    post = SetSelectPostprocessor(index=index, selector="mmr", relevance="score")
    with pytest.raises(InvalidInputError, match=r"relevance='score'.*'n7' has none"):
        post.postprocess_nodes(given, bundle())


def test_vrsd_refuses_a_given_relevance_and_names_the_others(index: VectorStoreIndex) -> None:
    for make in (SetSelectPostprocessor, SetSelectIndexRetriever):
        with pytest.raises(InvalidParameterError, match="'mmr', 'ndpp' or 'similarity'"):
            make(index=index, selector="vrsd", relevance="score")


@pytest.mark.parametrize(
    "relevance",
    ["stars", lambda node: node.metadata["stars"], {f"n{i}": i % 5 for i in range(len(TEXTS))}],
    ids=["key", "function", "mapping"],
)
def test_other_relevance_becomes_the_score(relevance: Any, index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=8, selector="similarity", relevance=relevance)
    found = post.postprocess_nodes(nodes, bundle())
    assert scores_of(found) == [4.0] * 8 == [node.metadata["stars"] for node in found]
    retriever = SetSelectIndexRetriever(index, top_n=3, fetch_k=40, selector="similarity", relevance=relevance)
    assert scores_of(retriever.retrieve(QUERY)) == [4.0] * 3


# Texts that are stored more than once


@cache
def thrice() -> tuple[VectorStoreIndex, QueryBundle]:
    """999 nodes: 333 texts, each stored three times under different ids."""
    rng = np.random.default_rng(5)
    query = rng.normal(size=16)
    vectors = query + rng.normal(size=(333, 16))
    nodes = [
        TextNode(id_=f"{copy}-{i}", text=f"text {i}", metadata={"copy": copy}, embedding=vectors[i].tolist())
        for copy in range(3)
        for i in range(333)
    ]
    return VectorStoreIndex(nodes, embed_model=CountingEmbedding()), QueryBundle("q", embedding=query.tolist())


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("fetch_k", [None, 12])
async def test_no_text_is_returned_twice_and_k_texts_come_back(selector: str, fetch_k: int | None) -> None:
    index, query = thrice()
    retriever = SetSelectIndexRetriever(index, top_n=10, fetch_k=fetch_k, selector=selector)
    found = retriever.retrieve(query)
    assert len({node.text for node in found}) == len(found) == 10
    assert ids_of(await retriever.aretrieve(query)) == ids_of(found)
    post = SetSelectPostprocessor(index=index, top_n=10, selector=selector)
    found = post.postprocess_nodes(index.as_retriever(similarity_top_k=60).retrieve(query), query)
    assert len({node.text for node in found}) == len(found) == 10


def test_copies_of_shown_texts_do_not_come_back() -> None:
    index, query = thrice()
    retriever = SetSelectIndexRetriever(index, top_n=5)
    first = retriever.retrieve(query)
    retriever.shown = ids_of(first)
    assert not {node.text for node in retriever.retrieve(query)} & {node.text for node in first}


def test_drop_duplicates_false_keeps_them() -> None:
    index, query = thrice()
    kept = SetSelectIndexRetriever(index, top_n=6, selector="similarity", drop_duplicates=False).retrieve(query)
    assert len({node.text for node in kept}) == 2


def test_nodes_that_stand_for_more_than_their_text_are_no_duplicates() -> None:
    vectors = {name: embedding(name) for name in ("tea", "cocoa", "mood")}
    nodes = [
        ImageNode(id_="i0", text="a figure", image="0", embedding=vectors["tea"]),
        ImageNode(id_="i1", text="a figure", image="1", embedding=vectors["cocoa"]),
        IndexNode(id_="p0", text="a table", index_id="0", embedding=vectors["tea"]),
        IndexNode(id_="p1", text="a table", index_id="1", embedding=vectors["cocoa"]),
        TextNode(id_="t0", text="a text", embedding=vectors["tea"]),
        TextNode(id_="t1", text="a text", embedding=vectors["mood"]),
    ]
    found = SetSelectPostprocessor(top_n=6, order="relevance").postprocess_nodes(scored(nodes), bundle())
    assert sorted(ids_of(found)) == ["i0", "i1", "p0", "p1", "t0"]


# The order of the result


@pytest.mark.parametrize(
    ("order", "places"),
    [("relevance", [0, 1, 2, 3, 4]), ("nearest_last", [4, 3, 2, 1, 0]), ("long_context", [0, 2, 4, 3, 1])],
)
def test_orders(order: Any, places: list[int], index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    picks = SetSelectPostprocessor(index=index, top_n=5).postprocess_nodes(nodes, bundle())
    ranked = ids_of(sorted(picks, key=lambda node: -node.get_score()))
    wanted = [ranked[place] for place in places]
    post = SetSelectPostprocessor(index=index, top_n=5, order=order)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == wanted
    retriever = SetSelectIndexRetriever(index, top_n=5, fetch_k=len(TEXTS), order=order)
    ranked = ids_of(sorted(retriever.retrieve(QUERY), key=lambda node: -node.get_score()))
    assert ids_of(retriever.retrieve(QUERY)) == [ranked[place] for place in places]
