"""What only LlamaIndex's retriever has: filters and further options of a search, sources by document, ``shown`` between
calls, and spans. tests/adapters has what it shares with the other classes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import InvalidParameterError
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    TEXTS,
    CountingEmbedding,
    bundle,
    expected,
    ids_of,
    make_index,
    make_nodes,
    scored,
)

NEAREST_FIRST = expected(ALL, len(ALL), "similarity")


def retrieved(index: VectorStoreIndex, **options: Any) -> list[str]:
    return ids_of(SetSelectIndexRetriever(index, **options).retrieve(QUERY))


# The search


def test_filters_and_options_of_the_search_reach_it(index: VectorStoreIndex) -> None:
    coffee = MetadataFilters(filters=[MetadataFilter(key="subject", value="coffee")])
    near = [i for i in NEAREST_FIRST if TEXTS[int(i[1:])].startswith("coffee")]
    assert retrieved(index, top_n=5, filters=coffee) == expected(near, 5)
    few = ["n3", "n9", "n14", "n22"]
    assert retrieved(index, top_n=2, node_ids=few) == expected([i for i in NEAREST_FIRST if i in few], 2)
    with pytest.raises(ValueError, match="Invalid query mode"):
        retrieved(index, vector_store_query_mode="hybrid")
    manager = CallbackManager()
    assert SetSelectIndexRetriever(index, callback_manager=manager).callback_manager is manager


def test_it_takes_every_option_of_llamaindexs_own_retriever(index: VectorStoreIndex) -> None:
    own = inspect.signature(VectorIndexRetriever).parameters
    assert len(own) > 10
    for name in own.keys() - {"self", "index", "similarity_top_k", "kwargs"}:
        SetSelectIndexRetriever(index, **{name: own[name].default})
    for name, ours in {"similarity_top_k": "top_n", "filter": "filters"}.items():
        with pytest.raises(InvalidParameterError, match=rf"'{name}'.*{ours}"):
            SetSelectIndexRetriever(index, **{name: None})


def test_later_inserts_are_found(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index)
    index.insert_nodes([TextNode(id_="new", text=QUERY)])
    assert retriever.retrieve(QUERY)[0].node_id == "new"


# Sources


def part(i: int) -> str:
    return f"d{i % 7}"


@pytest.mark.parametrize("most", [1, 2])
def test_by_default_a_source_is_the_document_of_a_node_or_else_the_node(most: int, model: CountingEmbedding) -> None:
    nodes = make_nodes()
    for i, node in enumerate(nodes[:-3]):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"d{i % 7}")
    index = make_index("simple", model, nodes)
    sources = [name if (i := ALL.index(name)) >= len(nodes) - 3 else f"d{i % 7}" for name in NEAREST_FIRST]
    wanted = expected(NEAREST_FIRST, 5, sources=sources, max_per_source=most)
    post = SetSelectPostprocessor(index=index, top_n=5, max_per_source=most)
    in_order = scored([nodes[ALL.index(i)] for i in NEAREST_FIRST])
    assert ids_of(post.postprocess_nodes(in_order, bundle())) == wanted
    assert retrieved(index, top_n=5, fetch_k=len(TEXTS), max_per_source=most) == wanted


# What was shown


def test_shown_may_be_set_between_calls_and_a_wrong_value_leaves_the_old_one(index: VectorStoreIndex) -> None:
    retriever: Any = SetSelectIndexRetriever(index, top_n=3, fetch_k=10, selector="mmr")
    first = ids_of(retriever.retrieve(QUERY))
    retriever.shown = first
    assert list(retriever.shown) == first
    second = ids_of(retriever.retrieve(QUERY))
    assert second == retrieved(index, top_n=3, fetch_k=10, selector="mmr", shown=first)
    assert not set(first) & set(second)
    # What LlamaIndex's own retriever calls it, and a store's own MMR, are refused too.
    for name, value, word in (
        ("shown", "n1", "n1"),
        ("similarity_top_k", 2, "top_n"),
        ("vector_store_query_mode", "mmr", "selector='mmr'"),
        ("top_n", 0, "top_n"),
        ("lambda_mult", 2.0, "lambda_mult"),
    ):
        with pytest.raises(InvalidParameterError, match=word):
            setattr(retriever, name, value)
    assert ids_of(retriever.retrieve(QUERY)) == second
    retriever.shown = ()
    assert ids_of(retriever.retrieve(QUERY)) == first


# Spans


async def test_a_span_handler_sees_the_search_within_the_retriever(index: VectorStoreIndex) -> None:
    retriever, handler, root = SetSelectIndexRetriever(index, top_n=3), SimpleSpanHandler(), get_dispatcher()
    root.add_span_handler(handler)
    try:
        found = ids_of(retriever.retrieve(bundle()))
        assert ids_of(await retriever.aretrieve(bundle())) == found == expected(NEAREST_FIRST[:50], 3)
    finally:
        root.span_handlers.remove(handler)
    names = [span.id_.partition("-")[0] for span in handler.completed_spans]
    assert [name for name in names if name.endswith("retrieve")] == [
        "VectorIndexRetriever._retrieve",
        "SetSelectIndexRetriever._retrieve",
        "SetSelectIndexRetriever.retrieve",
        "VectorIndexRetriever._aretrieve",
        "SetSelectIndexRetriever.aretrieve",
    ]
