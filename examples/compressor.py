"""LangChain: a keyword retriever finds documents, and a compressor keeps the best set of them."""

from __future__ import annotations

import re

from _minilm import faiss_store, numpy_docs
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from langchain_setselect import SetSelectCompressor

QUESTION = "save an array to a text file and load it back"


class KeywordRetriever(BaseRetriever):
    """Finds the documents that share the most words with the query, without vectors; a stand-in for BM25."""

    documents: list[Document]
    k: int = 40

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        words = set(query.lower().split()) - {"a", "an", "and", "to", "it"}
        shared = [len(words & set(re.findall(r"[a-z]+", d.page_content.lower()))) for d in self.documents]
        best = sorted(range(len(shared)), key=lambda row: -shared[row])[: self.k]
        return [self.documents[row] for row in best]


docs = numpy_docs()
store = faiss_store(docs)
keyword = KeywordRetriever(
    documents=[Document(text, id=name) for name, text in zip(docs.names, docs.texts, strict=True)]
)

# The store holds the vectors under the documents' ids, so only the question is embedded. Without a store, use
# SetSelectCompressor(embeddings=CacheBackedEmbeddings.from_bytes_store(...)), which embeds each text once.
compressor = SetSelectCompressor(vectorstore=store, k=5, scores=True)

chain = {"documents": keyword, "query": RunnablePassthrough()} | RunnableLambda(
    lambda found: compressor.compress_documents(found["documents"], found["query"])
)
# The same with langchain-classic:
# ContextualCompressionRetriever(base_retriever=keyword, base_compressor=compressor).invoke(QUESTION)

print("Question:   ", QUESTION)
print("Vectors:    ", compressor.vector_source)
print("First found:", ", ".join(document.id or "" for document in keyword.invoke(QUESTION)[:5]))
# Why each document is picked: its relevance, here the cosine, and what the default adds, with their shares.
print("Best set of 40:")
for document in chain.invoke(QUESTION):
    print(f"  {document.id:24} {document.metadata['selection_reason']}")
