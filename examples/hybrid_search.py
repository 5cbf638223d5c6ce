"""LangChain: hybrid search, then a selection by its scores in place of the cosine.

BM25 is a score of search by words. Its ranking and that of the vectors are joined by reciprocal rank fusion. If you
name a cross-encoder (on Hugging Face, or a folder), it reranks the result of the search before the selection:
python examples/hybrid_search.py cross-encoder/ms-marco-MiniLM-L6-v2
"""

from __future__ import annotations

import sys

import bm25s
from _minilm import faiss_store, numpy_docs
from langchain_core.documents import Document

from langchain_setselect import SetSelectCompressor

QUESTION = "convolve two arrays with the fft and pad them with zeros"

docs = numpy_docs()
store = faiss_store(docs)
keywords = bm25s.BM25()
keywords.index(bm25s.tokenize(docs.texts, show_progress=False), show_progress=False)


def hybrid_search(question: str, fetch_k: int = 50) -> list[Document]:
    """Reciprocal rank fusion: a document's score is the sum of 1 / (60 + rank) over the rankings that contain it."""
    words = bm25s.tokenize(question, show_progress=False)
    rows, scores = keywords.retrieve(words, k=fetch_k, show_progress=False)
    by_words = [docs.names[row] for row, score in zip(rows[0], scores[0], strict=True) if score > 0]
    by_vector = [document.id or "" for document in store.similarity_search(question, k=fetch_k)]
    fused: dict[str, float] = {}
    for ranking in (by_words, by_vector):
        for rank, name in enumerate(ranking, 1):
            fused[name] = fused.get(name, 0.0) + 1 / (60 + rank)
    best = sorted(fused, key=lambda name: -fused[name])[:fetch_k]
    return [Document(docs.texts[docs.names.index(name)], id=name, metadata={"score": fused[name]}) for name in best]


def rerank(question: str, documents: list[Document], model: str) -> list[Document]:
    """The documents in the order of a cross-encoder's scores. It reads the question and a document together."""
    from sentence_transformers import CrossEncoder

    try:
        encoder = CrossEncoder(model)
    except (OSError, ValueError) as error:
        sys.exit(f"The cross-encoder {model!r} cannot be loaded. Download it first (hf download {model}).\n{error}")
    scores = encoder.predict([(question, document.page_content) for document in documents])
    for document, score in zip(documents, scores, strict=True):
        document.metadata["score"] = float(score)
    return sorted(documents, key=lambda document: -document.metadata["score"])


found = hybrid_search(QUESTION)
found = rerank(QUESTION, found, sys.argv[1]) if len(sys.argv) > 1 else found
print("Question:         ", QUESTION)
print("No selection:     ", ", ".join(document.id or "" for document in found[:5]))
for label, relevance in {"by the cosine:": "cosine", "by the scores:": "score"}.items():
    compressor = SetSelectCompressor(vectorstore=store, search_type="mmr", k=5, relevance=relevance)
    print(f"MMR {label}", ", ".join(document.id or "" for document in compressor.compress_documents(found, QUESTION)))
