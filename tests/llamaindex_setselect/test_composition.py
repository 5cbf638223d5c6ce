"""LlamaIndex's components in front of the selection and behind it."""

from __future__ import annotations

import numpy as np
import pytest
from llama_index.core import SimpleKeywordTableIndex, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import ImageNode, IndexNode, TextNode

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import EmbeddingFallbackWarning, select
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    STORES,
    TEXTS,
    CountingEmbedding,
    bundle,
    embedding,
    expected,
    ids_of,
    make_index,
    make_nodes,
    scored,
)

# The retrievers return the nearest first, and ties depend on the order.
NEAREST_FIRST = expected(ALL, len(ALL), "similarity")


# Query engines and chat engines


@pytest.mark.parametrize("kind", STORES)
async def test_query_engines(kind: str, model: CountingEmbedding) -> None:
    index = make_index(kind, model)
    post = SetSelectPostprocessor(top_n=5, index=index)
    behind = index.as_query_engine(
        llm=MockLLM(),
        similarity_top_k=len(TEXTS),
        node_postprocessors=[post],
        response_mode=ResponseMode.COMPACT,
    )
    retriever = SetSelectIndexRetriever(index, similarity_top_k=5, fetch_k=len(TEXTS))
    for engine in (behind, RetrieverQueryEngine.from_args(retriever, llm=MockLLM())):
        model.forget()
        response = engine.query(QUERY)
        assert ids_of(response.source_nodes) == expected(NEAREST_FIRST, 5)
        assert (model.queries, model.texts) == ([QUERY], []), "the query is embedded once"
        assert ids_of((await engine.aquery(QUERY)).source_nodes) == expected(NEAREST_FIRST, 5)
        assert "selection_score" not in str(response), "MockLLM returns its prompt"


# Fusion


async def test_over_fused_results(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    foreign = [
        TextNode(id_=f"k{i}", text=f"{drink} takes sleep and memory away") for i, drink in enumerate(["mate", "cola"])
    ]
    keywords = SimpleKeywordTableIndex([*make_nodes()[20:], *foreign], llm=MockLLM())
    each = [index.as_retriever(similarity_top_k=10), keywords.as_retriever(num_chunks_per_query=20)]
    fused = QueryFusionRetriever(each, llm=MockLLM(), num_queries=1, similarity_top_k=30, use_async=False)
    found = fused.retrieve(QUERY)
    assert {"k0", "k1"} <= set(ids_of(found))
    model.forget()
    post = SetSelectPostprocessor(top_n=6, index=index)
    with pytest.warns(EmbeddingFallbackWarning, match=r"2 this time.*SimpleVectorStore"):
        chosen = post.postprocess_nodes(found, bundle())
    assert sorted(model.texts) == sorted(node.text for node in foreign), "only what the store does not know"
    vectors = np.array([embedding(node.text) for node in found])
    texts = [node.text for node in found]
    wanted = [ids_of(found)[i] for i in select(embedding(QUERY), vectors, 6, question=QUERY, texts=texts).indices]
    assert ids_of(chosen) == wanted
    # The warning has been given; the calls below give none.
    assert ids_of(await post.apostprocess_nodes(await fused.aretrieve(QUERY), bundle())) == wanted
    engine = RetrieverQueryEngine.from_args(fused, llm=MockLLM(), node_postprocessors=[post])
    assert ids_of(engine.query(QUERY).source_nodes) == wanted


# Nodes that stand for more than their text


def test_images_and_pointers_with_the_same_text_are_no_duplicates() -> None:
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
    assert all(any(chosen.node is node for node in nodes) for chosen in found), "the nodes themselves, of any kind"


async def test_index_nodes_are_followed_after_the_selection(
    model: CountingEmbedding, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = TextNode(id_="behind", text="what the pointer points to")
    pointer = IndexNode(id_="pointer", text=QUERY, index_id="there", obj=behind)
    index = VectorStoreIndex(make_nodes(), objects=[pointer], embed_model=model)
    other = TextNode(id_="other", text="what another map says")
    for retriever, wanted in (
        (SetSelectIndexRetriever(index), "behind"),
        (SetSelectIndexRetriever(index, object_map={"there": other}), "other"),
    ):
        assert ids_of(retriever.retrieve(QUERY))[0] == ids_of(await retriever.aretrieve(QUERY))[0] == wanted
        assert capsys.readouterr().out == ""
        retriever.object_map, retriever.verbose = {"there": other}, True  # type: ignore[attr-defined]
        assert ids_of(retriever.retrieve(QUERY))[0] == "other"
        assert "TextNode" in capsys.readouterr().out
