"""LlamaIndex: a chat engine that answers from several documents, even if one of them has most of the passages."""

from __future__ import annotations

from _minilm import minilm
from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.embeddings.langchain import LangchainEmbedding

from llamaindex_setselect import SetSelectPostprocessor

PASSAGES = {
    "manual": [
        "To descale the coffee machine, fill the tank with water and vinegar and run it twice.",
        "Descaling the coffee machine: run water with vinegar through it two times.",
        "Descale the coffee machine every three months with vinegar and water.",
        "Before descaling the coffee machine, take out the filter.",
        "After descaling, run the coffee machine with clear water.",
        "A coffee machine that is not descaled takes longer for a cup.",
    ],
    "forum": ["Citric acid smells less than vinegar when you descale a coffee machine."],
    "shop": ["Vinegar and citric acid remove limescale from kettles and coffee machines alike."],
    "test": ["In our test a descaled machine used a fifth less power per cup."],
    "warranty": ["Damage by limescale is not covered by the warranty of the machine."],
}
QUESTIONS = ["How do I descale the coffee machine?", "What happens to the machine if I do not?"]

# A node parser, which VectorStoreIndex.from_documents(...) uses, stores the document that each node comes from.
nodes = [
    TextNode(
        id_=f"{document}-{i}", text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    )
    for document, texts in PASSAGES.items()
    for i, text in enumerate(texts, start=1)
]
index = VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm()))

for title, constraints in {"No constraint": {}, "One node of each document": {"max_per_source": 1}}.items():
    engine = ContextChatEngine.from_defaults(
        retriever=index.as_retriever(similarity_top_k=50),
        # Your own model goes here, for example OpenAI(model=...) or Ollama(model=...).
        llm=MockLLM(max_tokens=16),
        memory=ChatMemoryBuffer.from_defaults(token_limit=3000),
        node_postprocessors=[SetSelectPostprocessor(top_n=3, index=index, **constraints)],
    )
    print(title)
    for question in QUESTIONS:
        answer = engine.chat(question)
        print(f"  {question:41}", ", ".join(source.node_id for source in answer.source_nodes))
