"""The comparison of LlamaIndex; tests/adapters has what it shares with that of LangChain."""

from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llamaindex_setselect import compare_index, diagnose_index
from setselect.evaluation import named
from shared_core.evaluation.advice import lines_to_paste
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    CountingEmbedding,
    embedding,
)

QUERIES = [QUERY, "green tea and digestion", "mood"]


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


def test_an_index_is_diagnosed_by_its_own_vectors_with_the_documents_that_contain_its_nodes(
    model: CountingEmbedding,
) -> None:
    nodes = [TextNode(id_=f"n{i}", text=text, embedding=embedding(text)) for i, text in enumerate(TEXTS)]
    nodes.append(TextNode(id_="copy", text=TEXTS[0], embedding=embedding(TEXTS[0])))
    for i, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=str(i))
    index = VectorStoreIndex(nodes, embed_model=model)
    found = diagnose_index(index, k=4, fetch_k=20)
    shares = {finding.key: finding.share for finding in found.findings}
    assert (shares["copies"], shares["sources"], found.typical) == (2 / len(nodes), 1, len(nodes))
