"""What only LlamaIndex's retrievers have: filters and options of a search, sources, ``shown`` between calls, spans."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor, WordRetriever
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
    assert retrieved(index, similarity_top_k=5, filters=coffee) == expected(near, 5)
    few = ["n3", "n9", "n14", "n22"]
    assert retrieved(index, similarity_top_k=2, node_ids=few) == expected([i for i in NEAREST_FIRST if i in few], 2)
    with pytest.raises(ValueError, match="Invalid query mode"):
        retrieved(index, vector_store_query_mode="hybrid")
    manager = CallbackManager()
    assert SetSelectIndexRetriever(index, callback_manager=manager).callback_manager is manager


def test_it_takes_every_option_of_llamaindexs_own_retriever(index: VectorStoreIndex) -> None:
    own = inspect.signature(VectorIndexRetriever).parameters
    assert len(own) > 10
    for name in own.keys() - {"self", "index", "kwargs"}:
        SetSelectIndexRetriever(index, **{name: own[name].default})
    with pytest.raises(InvalidParameterError, match=r"'filter'.*filters"):
        SetSelectIndexRetriever(index, filter=None)  # type: ignore[call-arg]


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
    assert retrieved(index, similarity_top_k=5, fetch_k=len(TEXTS), max_per_source=most) == wanted


# What was shown


def test_shown_may_be_set_between_calls_and_a_wrong_value_leaves_the_old_one(index: VectorStoreIndex) -> None:
    retriever: Any = SetSelectIndexRetriever(index, similarity_top_k=3, fetch_k=10, selector="mmr")
    first = ids_of(retriever.retrieve(QUERY))
    retriever.shown = first
    assert list(retriever.shown) == first
    second = ids_of(retriever.retrieve(QUERY))
    assert second == retrieved(index, similarity_top_k=3, fetch_k=10, selector="mmr", shown=first)
    assert not set(first) & set(second)
    for name, value, word in (
        ("shown", "n1", "n1"),
        ("vector_store_query_mode", "mmr", "selector='mmr'"),
        ("similarity_top_k", 0, "similarity_top_k"),
        ("lambda_mult", 2.0, "lambda_mult"),
    ):
        with pytest.raises(InvalidParameterError, match=word):
            setattr(retriever, name, value)
    assert ids_of(retriever.retrieve(QUERY)) == second
    retriever.shown = ()
    assert ids_of(retriever.retrieve(QUERY)) == first


# Spans


NODES = [TextNode(text=f"lamp {i} {'red' if i % 2 else 'blue'}", id_=f"n{i}", metadata={"page": i}) for i in range(6)]


def test_a_docstore_may_have_nodes_that_the_index_does_not_have() -> None:
    context = StorageContext.from_defaults()
    context.docstore.add_documents([TextNode(text="lamp parent", id_="parent")])
    index = VectorStoreIndex(NODES, storage_context=context, embed_model=MockEmbedding(embed_dim=2))
    retriever = WordRetriever.from_store(index)
    assert retriever.retrieve("parent") == []
    assert "n0" in ids_of(retriever.retrieve("lamp"))
    index.delete_nodes(["n0"], delete_from_docstore=True)
    assert "n0" not in ids_of(retriever.retrieve("lamp"))


def test_the_text_is_the_embedded_one() -> None:
    nodes = [TextNode(text="lamp", id_="a", metadata={"title": "Zyzzyva"}), TextNode(text="lamp", id_="b")]
    nodes.append(TextNode(text="c", metadata={"title": "Zyzzyva"}, excluded_embed_metadata_keys=["title"]))
    assert ids_of(WordRetriever.from_nodes(nodes).retrieve("zyzzyva")) == ["a"]


def test_index_nodes_lead_to_their_objects() -> None:
    inner = WordRetriever.from_nodes(NODES)
    outer = [IndexNode(text="all lamps", index_id="lamps", id_="pointer", obj=inner)]
    assert ids_of(WordRetriever.from_nodes(outer).retrieve("lamps red")) == ["n1", "n3", "n5"]
    with_map = [IndexNode(text="all lamps", index_id="lamps", id_="pointer")]
    retriever = WordRetriever.from_nodes(with_map, object_map={"lamps": inner})
    assert ids_of(retriever.retrieve("lamps red")) == ["n1", "n3", "n5"]
