"""WordRetriever in LlamaIndex: its constructors, objects, and LlamaIndex's components around it."""

from __future__ import annotations

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import IndexNode, QueryBundle, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_setselect import SetSelectPostprocessor, WordRetriever
from tests.llamaindex_setselect.nodes_and_indexes import QUERY, TEXTS, ids_of

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


def test_filters_follow_llamaindexs_rules() -> None:
    retriever = WordRetriever.from_nodes(NODES)
    high = MetadataFilter(key="page", value=3, operator=FilterOperator.GTE)
    one = MetadataFilter(key="page", value=[1], operator=FilterOperator.IN)
    for condition, wanted in ((FilterCondition.OR, ["n1", "n3", "n5"]), (FilterCondition.AND, [])):
        retriever.filters = MetadataFilters(filters=[high, one], condition=condition)
        assert ids_of(retriever.retrieve("red")) == wanted
    retriever.filters, retriever.similarity_top_k = None, 1
    assert ids_of(retriever.retrieve(QueryBundle("red", embedding=[1.0]))) == ["n1"]


def test_index_nodes_lead_to_their_objects() -> None:
    inner = WordRetriever.from_nodes(NODES)
    outer = [IndexNode(text="all lamps", index_id="lamps", id_="pointer", obj=inner)]
    assert ids_of(WordRetriever.from_nodes(outer).retrieve("lamps red")) == ["n1", "n3", "n5"]
    with_map = [IndexNode(text="all lamps", index_id="lamps", id_="pointer")]
    retriever = WordRetriever.from_nodes(with_map, object_map={"lamps": inner})
    assert ids_of(retriever.retrieve("lamps red")) == ["n1", "n3", "n5"]


async def test_query_fusion_and_query_engines() -> None:
    nodes = [TextNode(text=text, id_=f"t{i}") for i, text in enumerate(TEXTS)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    by_words, by_vector = WordRetriever.from_store(index), index.as_retriever(similarity_top_k=5)
    fusion = QueryFusionRetriever(
        [by_vector, by_words],
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=30,
        mode="reciprocal_rerank",
        use_async=False,
    )
    found = ids_of(fusion.retrieve(QUERY))
    assert {*found} == {*ids_of(by_vector.retrieve(QUERY)), *ids_of(by_words.retrieve(QUERY))}
    assert len({*found}) == len(found)
    assert ids_of(await fusion.aretrieve(QUERY)) == found
    post = SetSelectPostprocessor(top_n=2, index=index, relevance="score")
    engine = RetrieverQueryEngine.from_args(by_words, llm=MockLLM(), node_postprocessors=[post])
    assert len(engine.query(QUERY).source_nodes) == 2
