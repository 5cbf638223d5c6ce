"""Sub-questions in LlamaIndex: behind a fusion, with texts of the query's own, and with scores of a store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import QueryBundle, TextNode

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import Candidates, Coverage, InvalidInputError, match_words
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    CountingEmbedding,
    embedding,
    ids_of,
    scored,
    scores_of,
)

PARTS = ["does water change the mood", "digestion and juice"]
QUERIES = [QUERY, *PARTS]
WANTED = {f"n{TEXTS.index('water has effects on mood')}", f"n{TEXTS.index('juice has effects on digestion')}"}


def splits(question: str) -> list[str]:
    """What the model below writes."""
    assert question == QUERY
    return PARTS


class Writer(CustomLLM):
    """Writes the sub-questions."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:
        return CompletionResponse(text="\n".join(PARTS))

    def stream_complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("mode", [FUSION_MODES.SIMPLE, FUSION_MODES.RECIPROCAL_RANK, FUSION_MODES.RELATIVE_SCORE])
async def test_behind_a_fusion_no_score_is_called_ignored(index: VectorStoreIndex, mode: FUSION_MODES) -> None:
    fused = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=15)],
        llm=Writer(),
        num_queries=3,
        similarity_top_k=30,
        mode=mode,
        use_async=False,
    )
    post = SetSelectPostprocessor(index=index, top_n=4, queries=splits)
    engine = RetrieverQueryEngine.from_args(fused, llm=Writer(), node_postprocessors=[post])
    found = ids_of(engine.query(QUERY).source_nodes)
    assert {*found} > WANTED
    assert ids_of((await engine.aquery(QUERY)).source_nodes) == found
    if mode is FUSION_MODES.SIMPLE:
        front = fused.retrieve(QUERY)
        texts, vectors = [node.text for node in front], [embedding(node.text) for node in front]
        candidates = Candidates(list(map(embedding, QUERIES)), vectors, words=match_words(" ".join(QUERIES), texts))
        assert found == [front[i].node_id for i in Coverage().select(candidates, 4).indices]


def test_texts_of_the_querys_own_stay_one_query(index: VectorStoreIndex) -> None:
    bundle = QueryBundle(QUERY, custom_embedding_strs=["coffee in the evening", "tea in the morning"])
    retriever = SetSelectIndexRetriever(index, top_n=4, queries=PARTS, selector="similarity")
    mean = np.mean([embedding(text) for text in bundle.embedding_strs], axis=0)
    queries = np.array([mean / np.linalg.norm(mean), *map(embedding, PARTS)])
    highest = (np.array(list(map(embedding, TEXTS))) @ queries.T).max(axis=1)
    assert ids_of(retriever.retrieve(bundle)) == [f"n{i}" for i in np.argsort(-highest, kind="stable")[:4]]
    # Texts that are sub-questions become queries of their own.
    parts = QueryBundle(QUERY, custom_embedding_strs=PARTS)
    each = SetSelectIndexRetriever(index, top_n=4, queries=lambda question: parts.custom_embedding_strs)
    assert {*ids_of(each.retrieve(QUERY))} > WANTED


def test_a_query_without_text_is_not_split(index: VectorStoreIndex) -> None:
    bundle = QueryBundle("", embedding=embedding(QUERY))
    alone = SetSelectIndexRetriever(index, top_n=4).retrieve(bundle)
    assert ids_of(SetSelectIndexRetriever(index, top_n=4, queries=splits).retrieve(bundle)) == ids_of(alone)


def test_a_query_with_an_embedding_of_another_model(index: VectorStoreIndex) -> None:
    post = SetSelectPostprocessor(top_n=2, queries=PARTS, embed_model=CountingEmbedding())
    nodes = scored([TextNode(id_=i, text=i, embedding=[1.0, 0.0]) for i in "abc"])
    with pytest.raises(InvalidInputError, match=r"does water.* 48.* 2"):
        post.postprocess_nodes(nodes, QueryBundle("both", embedding=[1.0, 0.9]))


def test_the_score_of_a_node_is_the_highest_of_its_scores(index: VectorStoreIndex) -> None:
    settings: dict[str, Any] = {"top_n": 4, "queries": PARTS, "selector": "similarity"}
    by_score = SetSelectIndexRetriever(index, relevance="score", relevance_scale=None, **settings).retrieve(QUERY)
    by_cosine = SetSelectIndexRetriever(index, **settings).retrieve(QUERY)
    assert ids_of(by_score) == ids_of(by_cosine)
    highest = np.array([embedding(node.text) for node in by_cosine]) @ np.array(list(map(embedding, QUERIES))).T
    assert scores_of(by_score) == pytest.approx(highest.max(axis=1).tolist(), abs=1e-6)
    assert scores_of(by_cosine) == pytest.approx(highest.max(axis=1).tolist(), abs=1e-6)


def test_lists_can_be_written(index: VectorStoreIndex) -> None:
    post = SetSelectPostprocessor(index=index, top_n=4, queries=PARTS)
    assert SetSelectPostprocessor.from_dict(post.to_dict(), index=index).queries == post.queries == (*PARTS,)
