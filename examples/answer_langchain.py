"""LangChain: retrieval, selection and an answer by a real model, Gemma 3 270M, without a network (`make models`)."""

from __future__ import annotations

from _gemma import WORKED_EXAMPLES, gemma_folder
from _minilm import minilm
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_huggingface import HuggingFacePipeline

from langchain_setselect import SetSelectRetriever

NOTES = {
    "home": "The museum is open from 10 to 18.",
    "flyer": "Visit the museum between 10 and 18.",
    "faq": "Opening hours of the museum: 10 to 18.",
    "map": "Museum, open from 10 to 18.",
    "poster": "The museum opens at 10 and closes at 18.",
    "ticket": "A ticket for adults costs 12 euros.",
    "children": "Children under six pay nothing.",
    "cafe": "The cafe in the garden sells cake and soup.",
    "bags": "Bags must be left in the lockers at the entrance.",
    "tram": "Tram 4 stops at the museum.",
    "photo": "You may take photos without a flash.",
    "dogs": "Dogs may not come in.",
}
QUESTION = "When is the museum open, and what does a ticket cost?"

# The model is small: its answers to other questions are often wrong, even where the notes are right.
llm = HuggingFacePipeline.from_model_id(
    str(gemma_folder()),
    "text-generation",
    # Greedy, so that the answer is the same in every run. An empty line ends the answer.
    pipeline_kwargs={"do_sample": False, "max_new_tokens": 24, "return_full_text": False, "stop_sequence": "\n\n"},
)
prompt = PromptTemplate.from_template(WORKED_EXAMPLES + "Notes:\n{notes}\nQuestion: {question}\nAnswer:")

store = InMemoryVectorStore(minilm())
store.add_documents([Document(text, id=name) for name, text in NOTES.items()])


def as_text(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


print("Question:  ", QUESTION)
for method in ("similarity", "ndpp"):
    retriever = SetSelectRetriever(vectorstore=store, search_type=method, k=4)
    chain = {"notes": retriever | as_text, "question": RunnablePassthrough()} | prompt | llm | str.strip
    print(f"{method + ':':11}", ", ".join(document.id or "" for document in retriever.invoke(QUESTION)))
    print("  Answer:  ", chain.invoke(QUESTION))
