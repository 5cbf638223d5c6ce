"""Fill a prompt with as many documents as fit into a number of tokens."""

from __future__ import annotations

from _minilm import faiss_store, numpy_docs
from langchain_core.documents import Document

from langchain_setselect import SetSelectRetriever

QUESTION = "How do I load an array from a file, and compute its mean and standard deviation?"
BUDGET = 250


def tokens(document: Document) -> float:
    """The number of tokens, at about four characters each; the tokenizer of your model gives the exact number."""
    return len(document.page_content) / 4


# Without k only the budget limits the selection: documents are added until none of the 50 fits.
retriever = SetSelectRetriever(
    vectorstore=faiss_store(numpy_docs()), search_kwargs={"fetch_k": 50, "budget": BUDGET, "costs": tokens}
)

print(f"{QUESTION}\n")
for method in ("similarity", "coverage"):
    documents = retriever.invoke(QUESTION, search_type=method)
    print(f"{method}: {len(documents)} documents, {sum(map(tokens, documents)):.0f} of {BUDGET} tokens")
    for document in documents:
        print(f"  {tokens(document):4.0f} tokens  {document.id}")
