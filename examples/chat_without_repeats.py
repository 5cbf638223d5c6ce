"""A chat in which no turn repeats documents of earlier turns: ``shown`` in the LangChain retriever."""

from __future__ import annotations

from _minilm import faiss_store, numpy_docs

from langchain_setselect import SetSelectRetriever

TURNS = [
    "How do I draw random numbers?",
    "How else can I draw random numbers?",
    "Are there more ways to draw random numbers?",
]

retriever = SetSelectRetriever(vectorstore=faiss_store(numpy_docs()), k=4, fetch_k=50, scores=True)

# The ids of the documents that the reader has seen. Each new selection leaves them out and prefers documents that
# differ from them.
shown: list[str] = []
for turn in TURNS:
    without_shown = [d.id or "" for d in retriever.invoke(turn)]
    documents = retriever.invoke(turn, shown=shown)
    print(f"\n> {turn}")
    for document in documents:
        print(f"  {document.id:32} cosine {document.metadata['relevance_score']:.2f}")
    print(f"  (without shown, {len(set(without_shown) & set(shown))} of {len(without_shown)} would be repeats)")
    shown += [document.id or "" for document in documents]

print(f"\n{len(shown)} documents in {len(TURNS)} turns, {len(set(shown))} of them different.")
