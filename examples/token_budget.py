"""Fill a prompt up to a number of tokens, instead of with a number of documents."""

from __future__ import annotations

from _minilm import faiss_store, numpy_docs
from langchain_core.documents import Document

from langchain_setselect import SetSelectRetriever

QUESTION = "How do I load an array from a file, and compute its mean and standard deviation?"
BUDGET = 250


def tokens(document: Document) -> float:
    """Four characters are about one token; your model's tokenizer tells exactly."""
    return len(document.page_content) / 4


# Without k the budget alone ends the choice: documents are added until none of the 50 fits any more.
retriever = SetSelectRetriever(
    vectorstore=faiss_store(numpy_docs()), search_kwargs={"fetch_k": 50, "budget": BUDGET, "costs": tokens}
)

print(f"{QUESTION}\n")
for method in ("similarity", "vrsd"):
    documents = retriever.invoke(QUESTION, search_type=method)
    print(f"{method}: {len(documents)} documents, {sum(map(tokens, documents)):.0f} of {BUDGET} tokens")
    for document in documents:
        print(f"  {tokens(document):4.0f} tokens  {document.id}")
