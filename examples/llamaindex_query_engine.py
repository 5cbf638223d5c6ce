"""LlamaIndex: a query engine that retrieves 50 nodes and answers from the best set of 5."""

from __future__ import annotations

from _minilm import minilm, numpy_docs
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from llama_index.embeddings.langchain import LangchainEmbedding

from llamaindex_setselect import SetSelectPostprocessor

QUESTION = "How do I draw random numbers and save them to a text file?"

# Nodes with vectors are not embedded again. VectorStoreIndex.from_documents(...) also works.
names, texts, vectors = numpy_docs()
nodes = [
    TextNode(id_=name, text=text, embedding=vector.tolist())
    for name, text, vector in zip(names, texts, vectors, strict=True)
]
index = VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm()))

engine = index.as_query_engine(
    # Your own model goes here, for example OpenAI(model=...) or Ollama(model=...).
    llm=MockLLM(max_tokens=16),
    similarity_top_k=50,
    node_postprocessors=[SetSelectPostprocessor(top_n=5, index=index, scores=True)],
)
answer = engine.query(QUESTION)

print("Question:", QUESTION)
# Why each node is picked: its relevance, here the cosine, and what the default adds, with their shares.
print("The answer uses:")
for source in answer.source_nodes:
    print(f"  {source.node_id:28} {source.node.metadata['selection_reason']}")
