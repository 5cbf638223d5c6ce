"""What the search tool and the set of tools do beside other middleware, with the real ``create_agent``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver

from langchain_setselect import SetSelectRetriever, SetSelectTools, create_setselect_tool, select_tools
from setselect import SetSelectWarning
from tests.langchain_setselect.agents import ScriptedModel, asked, documents, results
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory
from tests.langchain_setselect.test_tools import REQUEST, TOOLS, Scripted, calls, names_of

QUERY = "old violin passage"
THREAD: Any = {"configurable": {"thread_id": "one"}}


# What is stored


class Id:
    """An id as a database gives it, which no serializer knows."""

    def __str__(self) -> str:
        return "65f0"


STRANGE: dict[str, Any] = {
    "score": np.float32(0.5),
    "tags": np.array(["a", "b"]),
    "missing": pd.NA,
    "owner": Id(),
    "price": Decimal("1.10"),
    "key": UUID(int=1),
    "large": 10**30,
    "many": {1: [np.int64(2), float("nan")]},
}


def test_a_checkpointer_stores_any_metadata() -> None:
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents([Document(f"{QUERY} {i}", id=str(i), metadata=dict(STRANGE)) for i in range(9)])
    tool = create_setselect_tool(SetSelectRetriever(vectorstore=store, k=2), "passages", "Finds.")
    agent = create_agent(ScriptedModel(turns=[[QUERY]] * 2), tools=[tool], checkpointer=InMemorySaver())
    agent.invoke(asked(), THREAD)
    state = agent.get_state(THREAD).values
    found = [document for message in results(state) for document in documents(message)]
    assert len({document.id for document in found}) == 4
    assert found[0].metadata == {
        "score": 0.5,
        "tags": ["a", "b"],
        "missing": None,
        "owner": "65f0",
        "price": "1.10",
        "key": str(UUID(int=1)),
        "large": str(10**30),
        "many": {"1": [2, None]},
    }


# The tools of other middleware


@pytest.mark.parametrize("first", [True, False])
def test_the_tool_of_another_middleware_is_kept_or_named(first: bool, embeddings: WordEmbeddings) -> None:
    model, ours = Scripted(script=[calls()]), SetSelectTools(embeddings, max_tools=2)
    middleware: list[AgentMiddleware[Any, Any, Any]] = [TodoListMiddleware(tool_description="zyzzyva"), ours]
    agent = create_agent(model, tools=TOOLS, middleware=middleware if first else middleware[::-1])
    if first:
        # The system message is that of the outer middleware.
        agent.invoke({"messages": [HumanMessage(REQUEST)]})
        assert all("write_todos" in names for names in model.seen)
    else:
        with pytest.warns(SetSelectWarning, match=r"write_todos.*always=") as told:
            agent.invoke({"messages": [HumanMessage(REQUEST)]})
        assert len(told) == 1
    assert [len(names) for names in model.seen] == [2 + first]


def test_tools_that_the_system_message_names_are_kept(embeddings: WordEmbeddings) -> None:
    model = Scripted(script=[calls()])
    agent = create_agent(
        model, tools=TOOLS, middleware=[SetSelectTools(embeddings, 3)], system_prompt="Use delete_photo, never x_hotel."
    )
    agent.invoke({"messages": [HumanMessage(REQUEST)]})
    assert "delete_photo" in model.seen[0]
    assert len(model.seen[0]) == 4
    messages = [("system", "You call `delete_photo`."), ("user", REQUEST)]
    assert "delete_photo" in names_of(select_tools(messages, TOOLS, 3, embeddings=embeddings))


# Empty questions, and ids that nobody knows


def test_an_empty_request_says_that_all_tools_come_back(embeddings: WordEmbeddings) -> None:
    with pytest.warns(SetSelectWarning, match="request is empty, so all tools"):
        assert select_tools(" ", TOOLS, 5, embeddings=embeddings) == TOOLS


def test_an_empty_question_and_an_unknown_id_say_so(embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(vectorstore=in_memory(embeddings), k=2)
    with pytest.warns(SetSelectWarning, match="question is empty"):
        assert len(retriever.invoke(" ")) == 2
    far = in_memory(embeddings).similarity_search(QUERY, k=60)[-1].id
    retriever.invoke(QUERY, shown=[far])
    other = SetSelectRetriever(vectorstore=in_memory(embeddings), k=2)
    with pytest.warns(SetSelectWarning, match=r"shown holds 'nobody'"):
        other.invoke(QUERY, shown=["nobody", far])
    # A second warning would be an error here.
    other.invoke(QUERY, shown=["nobody", far])
