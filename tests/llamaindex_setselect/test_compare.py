"""The comparison of LlamaIndex; tests/adapters has what it shares with that of LangChain."""

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llamaindex_setselect import diagnose_index
from tests.llamaindex_setselect.nodes_and_indexes import (
    TEXTS,
    CountingEmbedding,
    embedding,
)


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
