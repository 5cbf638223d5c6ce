"""LlamaIndex: a language model finds the country in the question, and the search gives it more weight."""

from __future__ import annotations

from typing import Any

from _minilm import minilm
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from llama_index.embeddings.langchain import LangchainEmbedding

from llamaindex_setselect import SetSelectIndexRetriever, extractor_from_llm

NEWS = {
    "norway-salmon": "Salmon farms near Bergen in Norway lose a tenth of their fish to lice.",
    "norway-whales": "Fishermen in the north of Norway complain of whales in their nets.",
    "norway-cod": "Norway cuts its cod quota for the coming season after a poor survey of the stock.",
    "cornwall-mackerel": "Mackerel fishing is to pause for a year, the fleet fears for its living.",
    "peru-anchovy": "News of the anchovy season: fishing begins late off Peru.",
    "maine-lobster": "Fishing news: lobster prices fall as the season opens.",
    "world-catch": "News about fishing: the world's fleets catch less each year.",
}
QUESTION = "news about fishing from Norway"


class FakeLLM(MockLLM):
    """Returns a prepared answer."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text='{"root": "news about fishing", "perspective": "from Norway"}')


# Your own model goes here, for example OpenAI(model=...) or Ollama(model=...).
extractor = extractor_from_llm(FakeLLM())

nodes = [TextNode(id_=name, text=text) for name, text in NEWS.items()]
index = VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm()))

print("Question:   ", QUESTION)
print("Perspective:", extractor.extract(QUESTION).perspective)
# The question asks for news from Norway, so removing "from Norway" (the default) does harm: see docs/perspectives.md.
for title, settings in {
    "Unchanged:  ": {},
    "Emphasized: ": {"perspective": extractor, "direction": "emphasize"},
    "Removed:    ": {"perspective": extractor, "direction": "remove"},
}.items():
    retriever = SetSelectIndexRetriever(index, similarity_top_k=3, selector="similarity", **settings)
    print(title, ", ".join(found.node_id for found in retriever.retrieve(QUESTION)))
