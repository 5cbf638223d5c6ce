from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_setselect.compare import compare_index
from shared_core.errors import InvalidParameterError
from shared_core.evaluation.compare import compare
from shared_core.evaluation.settings import named
from shared_core.evaluation.snippets import lines_to_paste
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    CountingEmbedding,
    embedding,
    make_index,
    make_nodes,
)

QUERIES = [QUERY, "green tea and digestion", "mood"]


@pytest.mark.parametrize("kind", ["simple", "idmap2"])
def test_an_index_is_compared_by_its_nodes_and_vectors(kind: str, model: CountingEmbedding) -> None:
    index = make_index(kind, model)
    model.forget()
    queries: list[dict[str, Any]] = [
        {"text": text, "gold": [make_nodes()[i].node_id]} for i, text in enumerate(QUERIES)
    ]
    # One of the questions has the others as its sub-questions.
    first = queries.pop(0)
    queries = [first | {"sub_questions": [query["text"] for query in queries]}]
    found = compare_index(index, queries, k=4, fetch_k=20, title="An index")
    documents = [{"id": node.node_id, "text": node.text} for node in make_nodes()]
    expected = compare(documents, queries, lambda texts: [embedding(text) for text in texts], k=4, fetch_k=20)
    assert model.texts == []
    assert sorted(model.queries) == sorted(QUERIES)
    assert [[c.id for c in view.candidates] for view in found.queries] == [
        [c.id for c in view.candidates if not c.beyond] for view in expected.queries
    ]
    # Hybrid search, the last setting, needs the texts of the whole corpus.
    assert found.settings == expected.settings[:-1]
    for at, estimate in found.values.items():
        assert estimate.mean == pytest.approx(expected.values[at].mean, abs=1e-6)
    assert (found.title, found.corpus.documents) == ("An index", None)


def test_the_stores_own_filter_is_used_and_labels_come_from_the_metadata(model: CountingEmbedding) -> None:
    nodes = [
        TextNode(
            id_=f"n{i}", text=text, embedding=embedding(text), metadata={"even": i % 2, "subtopics": [text.split()[0]]}
        )
        for i, text in enumerate(TEXTS)
    ]
    index = VectorStoreIndex(nodes, embed_model=model)
    filters = MetadataFilters(filters=[MetadataFilter(key="even", value=0)])
    found = compare_index(
        index, [{"text": QUERY, "subtopics": ["coffee", "cocoa"]}], k=3, fetch_k=20, filters=filters, model="words"
    )
    assert all(int(candidate.id[1:]) % 2 == 0 for candidate in found.queries[0].candidates)
    assert "subtopic_recall" in {measure.key for measure in found.measures}
    assert found.corpus.model == "words"
    assert found.queries[0].candidates[0].text in TEXTS


def test_the_lines_to_paste_return_what_a_setting_with_constraints_has_picked(model: CountingEmbedding) -> None:
    nodes = [TextNode(id_=f"n{i}", text=text, embedding=embedding(text)) for i, text in enumerate(TEXTS)]
    for i, node in enumerate(nodes):
        # Some have a source of their own, the others the document that contains them.
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=str(i // 2))
        node.metadata = {"source": "notes"} if i % 5 == 0 else {"cost": 9}
    index = VectorStoreIndex(nodes, embed_model=model)
    tried = named("mmr", max_per_source=1, budget=80)
    found = compare_index(index, QUERIES, k=4, fetch_k=20, settings=[named("similarity"), tried])
    space: dict[str, Any] = {"index": index}
    exec(lines_to_paste(tried[0], k=4, fetch_k=20)["LlamaIndex"], space)
    for query, view in zip(QUERIES, found.queries, strict=True):
        returned = [node.node_id for node in space["retriever"].retrieve(query)]
        assert [view.candidates[i].id for i in view.picks[1]] == returned


def test_the_words_are_those_of_what_was_embedded(model: CountingEmbedding) -> None:
    nodes = [TextNode(id_=f"n{i}", text=text, embedding=embedding(QUERY)) for i, text in enumerate(TEXTS[:9])]
    nodes[5].metadata, nodes[6].metadata = {"title": "Rfft2"}, {"internal": "rfft2"}
    nodes[6].excluded_embed_metadata_keys = ["internal"]
    found = compare_index(VectorStoreIndex(nodes, embed_model=model), ["what does rfft2 do"], k=1, fetch_k=9)
    position = [setting.label for setting in found.settings].index("coverage")
    [view] = found.queries
    assert [view.candidates[i].id for i in view.picks[position]] == ["n5"]


def test_a_wrong_option_is_named_as_the_caller_named_it_before_a_query_is_embedded(model: CountingEmbedding) -> None:
    index = make_index("simple", model)
    model.forget()
    for options in ({"k": 0}, {"fetch_k": 0}, {"decide_by": "p_recall"}):
        with pytest.raises(InvalidParameterError, match=f"^{next(iter(options))} "):
            compare_index(index, QUERIES, **options)
    assert model.queries == []
