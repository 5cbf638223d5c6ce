"""LangChain: retriever | prompt | model, with the best set of documents in place of the nearest ones."""

from __future__ import annotations

from _minilm import minilm
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever

PAGES = {
    "refund-faq": "You get your money back within 14 days after we receive the returned item.",
    "refund-terms": "We refund the purchase price within 14 days of receiving the returned goods.",
    "refund-mail": "Once your return has arrived, your money is refunded within 14 days.",
    "refund-help": "Refunds: your money is back on your account 14 days after the return at the latest.",
    "label": "Print the return label from your order page and hand the parcel in at any post office.",
    "damage": "If a lamp arrives broken, send us a photo of the damage first.",
    "battery": "Items with a built-in battery may not be sent by air mail.",
    "hours": "Our shop is open from Monday to Saturday, 9 to 18.",
}
QUESTION = "My lamp arrived broken. How do I send it back, and when is my money refunded?"

store = InMemoryVectorStore(minilm())
store.add_documents([Document(text, id=name) for name, text in PAGES.items()])

# Replaces store.as_retriever(search_kwargs={"k": 3}). The default search_type, "coverage", reads the words of the
# question too.
retriever = SetSelectRetriever(vectorstore=store, search_kwargs={"k": 3})

prompt = ChatPromptTemplate.from_template("Answer from these pages:\n{pages}\n\nQuestion: {question}")
# Your own model goes here, for example ChatOpenAI(model=...) or ChatOllama(model=...).
model = FakeListChatModel(responses=["Send a photo, print the label, and wait up to 14 days for the refund."])


def as_text(documents: list[Document]) -> str:
    return "\n".join(f"- {document.page_content}" for document in documents)


chain = {"pages": retriever | as_text, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

print("Question:  ", QUESTION)
for method in ("similarity", "vrsd", "coverage"):
    print(f"{method + ':':11}", ", ".join(d.id or "" for d in retriever.invoke(QUESTION, search_type=method)))
print("Answer:    ", chain.invoke(QUESTION))
