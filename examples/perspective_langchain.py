"""LangChain: a chat model finds the stance in the question, and the search ignores the stance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from _minilm import minilm
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever, extractor_from_chat_model

LETTERS = {
    "toll-air": "The city toll is a blessing: fewer cars, cleaner air, and buses that arrive on time.",
    "toll-breathe": "Charge drivers who enter the centre, and everybody who walks there breathes better.",
    "toll-nurses": "A charge on driving into town hits nurses and cleaners who start before the first bus.",
    "toll-shops": "Shops in the centre will close if customers must pay to drive there.",
    "toll-taxes": "Drivers pay enough tax; a toll at the edge of town is one tax too many.",
    "school-days": "Why I am opposed to longer school days, and the arguments against them.",
    "stadium": "Letters arguing against the new stadium: the main objections.",
    "debating": "How to argue against a motion in a debate: a guide to opposing arguments.",
    "phones": "Arguments against phones in class, by those who oppose them.",
}
QUESTION = "arguments of those who oppose a toll for cars in town"


class FakeModel(GenericFakeChatModel):
    """Calls its tool with the answer that is prepared below."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self


answer = {"root": "a toll for cars in town", "perspective": "arguments of those who oppose"}
call = {"name": "SplitQuery", "args": answer, "id": "1"}
# Your own model goes here, for example ChatOpenAI(model=...) or ChatOllama(model=...).
model = FakeModel(messages=iter([AIMessage("", tool_calls=[call])]))

store = InMemoryVectorStore(minilm())
store.add_documents([Document(text, id=name) for name, text in LETTERS.items()])
extractor = extractor_from_chat_model(model)
plain = SetSelectRetriever(vectorstore=store, search_type="similarity", k=5)
# "remove" is the default. If the perspective is what you look for, use "emphasize": see docs/perspectives.md.
removed = SetSelectRetriever(
    vectorstore=store, search_type="similarity", k=5, perspective=extractor, direction="remove"
)

print("Question:   ", QUESTION)
print("Perspective:", extractor.extract(QUESTION).perspective)
print("Unchanged:  ", ", ".join(document.id or "" for document in plain.invoke(QUESTION)))
print("Removed:    ", ", ".join(document.id or "" for document in removed.invoke(QUESTION)))
