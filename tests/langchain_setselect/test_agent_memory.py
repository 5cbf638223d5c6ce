"""What the search tool and the set of tools do beside other middleware, with the real ``create_agent``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    FilesystemFileSearchMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import Field

from langchain_setselect import SetSelectRetriever, SetSelectTools, create_setselect_tool, select_tools
from setselect import InvalidParameterError, SetSelectWarning
from shared_core.retrieval.pool import name_of_text
from tests.langchain_setselect.agents import ScriptedModel, asked, documents, results, texts
from tests.langchain_setselect.conftest import TEXTS, WordEmbeddings, in_memory
from tests.langchain_setselect.test_tools import REQUEST, TOOLS, Scripted, calls, names_of

QUERY = "old violin passage"
THREAD: Any = {"configurable": {"thread_id": "one"}}


# What the model reads

STORE = in_memory(WordEmbeddings())
CLEARING = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])


class Cutting(AgentMiddleware[Any, Any, Any]):
    """Cuts the results of tools to their first characters, as it calls them."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        message = handler(request)
        return message.model_copy(update={"content": message.content[:30]})


class Trimming(AgentMiddleware[Any, Any, Any]):
    """Gives the model what the human said last, and the last call with its result."""

    def trim(self, request: Any) -> Any:
        last = max(row for row, message in enumerate(request.messages) if isinstance(message, HumanMessage))
        return request.override(messages=[request.messages[last], *request.messages[last + 1 :][-2:]])

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.trim(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.trim(request))


class Reading(ScriptedModel):
    """Calls the tool, or answers for each None; notes for each call of the model which texts it can read."""

    turns: Any = ()
    queries: list[str | None]
    read: list[set[str]] = Field(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **kwargs: Any) -> ChatResult:
        content = "\n\n".join(str(m.content) for m in messages if isinstance(m, ToolMessage))
        self.read.append({*TEXTS} & {*content.split("\n\n")})
        query = self.queries[len(self.read) - 1]
        calls = [] if query is None else [{"name": "passages", "args": {"query": query}, "id": f"{len(self.read)}"}]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])


def search_tool(k: int = 2, **more: Any) -> Any:
    return create_setselect_tool(SetSelectRetriever(vectorstore=STORE, k=k), "passages", "Finds.", **more)


SUMMARIZING = SummarizationMiddleware(
    GenericFakeChatModel(messages=iter([AIMessage("A summary.")] * 99)), trigger=("messages", 4), keep=("messages", 2)
)


@pytest.mark.parametrize("how", ["one turn", "turns", "async turns"])
@pytest.mark.parametrize(
    "middleware",
    [[], [CLEARING], [Trimming()], [SUMMARIZING], [SetSelectTools(WordEmbeddings()), CLEARING]],
    ids=["none", "clearing", "trimming", "summarizing", "tools"],
)
async def test_only_what_the_model_reads_is_withheld(middleware: list[Any], how: str) -> None:
    model = Reading(queries=[*[QUERY] * 5, None] if how == "one turn" else [QUERY, None] * 5)
    agent: Any = create_agent(model, [search_tool()], middleware=middleware, checkpointer=InMemorySaver())
    for _ in range(1 if how == "one turn" else 5):
        state = await agent.ainvoke(asked(), THREAD) if how == "async turns" else agent.invoke(asked(), THREAD)
    retriever = SetSelectRetriever(vectorstore=STORE, k=2)
    for before, after, query in zip(model.read, model.read[1:], model.queries, strict=False):
        if query is not None:
            best = retriever.invoke(query, shown=list(map(name_of_text, before)))
            assert {document.page_content for document in best} == after - before
    if not middleware:
        assert len({*texts(state)}) == len(texts(state)) == 10


def test_a_result_that_is_cut_comes_again() -> None:
    agent = create_agent(ScriptedModel(turns=[[QUERY]] * 3), [search_tool(4)], middleware=[Cutting()])
    state = agent.invoke(asked())
    whole = [[text for text in TEXTS if text in str(message.content)] for message in results(state)]
    found = [[document.page_content for document in documents(message)] for message in results(state)]
    assert [len(texts) for texts in whole] == [1, 1, 1]
    # The second call returns all but the text that was not cut.
    assert {*found[0][1:]} < {*found[1]}
    assert whole[0][0] not in found[1] + found[2]


@pytest.mark.parametrize(("recent", "distinct"), [(0, 2), (1, 4), (2, 6), (None, 8)])
def test_where_it_is_not_known_what_the_model_reads(recent: int | None, distinct: int) -> None:
    def answer(state: dict[str, Any]) -> dict[str, Any]:
        """A model that is not LangChain's."""
        number = len(results(state))
        calls = [{"name": "passages", "args": {"query": QUERY}, "id": str(number)}] if number < 4 else []
        return {"messages": [AIMessage("", tool_calls=calls)]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_node("tools", ToolNode([search_tool(recent_calls=recent)]))
    graph.add_edge(START, "model")
    graph.add_edge("tools", "model")
    graph.add_conditional_edges("model", tools_condition)
    found = texts(graph.compile().invoke(asked()))
    assert (len(found), len({*found})) == (8, distinct)
    with pytest.raises(InvalidParameterError, match="recent_calls"):
        search_tool(recent_calls=-1)


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


def test_the_tool_of_an_outer_middleware_is_kept(embeddings: WordEmbeddings) -> None:
    model, ours = Scripted(script=[calls()]), SetSelectTools(embeddings, max_tools=2)
    middleware: list[AgentMiddleware[Any, Any, Any]] = [TodoListMiddleware(tool_description="zyzzyva"), ours]
    create_agent(model, tools=TOOLS, middleware=middleware).invoke({"messages": [HumanMessage(REQUEST)]})
    assert "write_todos" in model.seen[0]
    assert [len(names) for names in model.seen] == [3]


def test_tools_whose_code_is_of_a_middleware_are_kept(embeddings: WordEmbeddings, tmp_path: Path) -> None:
    model, ours = Scripted(script=[calls()]), SetSelectTools(embeddings, max_tools=2)
    search = FilesystemFileSearchMiddleware(root_path=str(tmp_path))
    create_agent(model, tools=TOOLS, middleware=[ours, search]).invoke({"messages": [HumanMessage(REQUEST)]})
    assert {"glob_search", "grep_search"} < {*model.seen[0]}
    assert [len(names) for names in model.seen] == [4]


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


# Empty questions


def test_an_empty_request_says_that_all_tools_come_back(embeddings: WordEmbeddings) -> None:
    with pytest.warns(SetSelectWarning, match="request is empty, so all tools"):
        assert select_tools(" ", TOOLS, 5, embeddings=embeddings) == TOOLS


def test_an_empty_question_says_so(embeddings: WordEmbeddings) -> None:
    retriever = SetSelectRetriever(vectorstore=in_memory(embeddings), k=2)
    with pytest.warns(SetSelectWarning, match="question is empty"):
        assert len(retriever.invoke(" ")) == 2
