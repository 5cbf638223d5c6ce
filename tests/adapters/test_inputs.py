"""What the entrances of both adapters refuse: each mistake with what to pass in its place.

The first table holds what people pass for a question, the second for documents and nodes, and the third for a store, an
index or a model. Wrong settings are in test_refusals.py, filters of the stores in tests/stores/test_congruence.py.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockLLM
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_setselect
import llamaindex_setselect
from setselect import InvalidInputError, InvalidParameterError, SetSelectWarning
from shared_core.retrieval.inputs import check_question
from tests.adapters.bindings import EXAMPLES, QUERY, RERANKERS, RETRIEVERS, ROWS, SUBJECTS, Subject, over
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

STORE, INDEX = RETRIEVERS[0].corpus(), RETRIEVERS[1].corpus()
DOCUMENTS, NODES = ([subject.item(row) for row in ROWS[:5]] for subject in RERANKERS)
Calls = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def weather(city: str) -> str:
    """The weather in a city."""
    return city


def convert(amount: float) -> str:
    """Convert an amount of money."""
    return str(amount)


TOOLS = [weather, convert]


def _asks(subject: Subject) -> Calls:
    """The sync and the async call of a class with a question."""
    made, items = subject.make(subject.corpus(), k=1), [subject.item(row) for row in ROWS[:5]]

    def call(method: str, question: Any) -> Any:
        arguments, more = subject.arguments(items, question, [])
        return getattr(made, method)(*arguments, **more)

    return lambda question: call(subject.methods[0], question), lambda question: call(subject.methods[1], question)


def _tools_asks() -> Calls:
    select, aselect = langchain_setselect.select_tools, langchain_setselect.aselect_tools
    return (
        lambda question: select(question, TOOLS, 1, embeddings=WordEmbeddings()),
        lambda question: aselect(question, TOOLS, 1, embeddings=WordEmbeddings()),
    )


# Whatever takes a question, but for LangChain's example selector, which takes a dict.
ENTRANCES: dict[str, Callable[[], Calls]] = {
    **{subject.name: lambda subject=subject: _asks(subject) for subject in SUBJECTS if subject is not EXAMPLES[0]},
    "LangChain's search by words": lambda: (
        langchain_setselect.WordRetriever.from_documents(DOCUMENTS).invoke,
        langchain_setselect.WordRetriever.from_documents(DOCUMENTS).ainvoke,
    ),
    "LlamaIndex's search by words": lambda: (
        llamaindex_setselect.WordRetriever.from_nodes([one.node for one in NODES]).retrieve,
        llamaindex_setselect.WordRetriever.from_nodes([one.node for one in NODES]).aretrieve,
    ),
    "LangChain's tools": _tools_asks,
    "LlamaIndex's tools": lambda: (
        llamaindex_setselect.SetSelectToolRetriever(TOOLS, CountingEmbedding(), 1).retrieve,
        llamaindex_setselect.SetSelectToolRetriever(TOOLS, CountingEmbedding(), 1).aretrieve,
    ),
}
# What people pass in place of a question, and a word of the message.
QUESTIONS: dict[str, tuple[Any, str]] = {
    "a dict": ({"context": 3, "question": "a"}, "'question'"),
    "a dict without a text": ({"numbers": [1]}, "pass a text"),
    "None": (None, "None"),
    "a number": (3, "got 3"),
    "bytes": (b"a", "b'a'"),
    "a list of texts": (["a"], "queries="),
    "an empty list": ([], "one text"),
    "a message": (HumanMessage("a"), r"its text, \.text"),
    "a message of LlamaIndex": (ChatMessage("a"), r"\.content"),
    "a prompt": (StringPromptValue(text="a"), r"\.text"),
    "a document": (Document("a"), r"\.page_content"),
    "a node": (NODES[0], r"\.text"),
}


@pytest.mark.parametrize("form", QUESTIONS)
def test_what_is_no_question_and_what_to_pass(form: str) -> None:
    question, word = QUESTIONS[form]
    with pytest.raises(InvalidInputError, match=f"question.*{word}"):
        check_question(question)


@pytest.mark.parametrize("entrance", ENTRANCES)
async def test_each_entrance_refuses_what_is_no_question(entrance: str) -> None:
    call, acall = ENTRANCES[entrance]()
    bundles = [QueryBundle(3)] if "LlamaIndex" in entrance and entrance != "LlamaIndex's postprocessor" else []
    for question in (3, {"question": "a"}, *bundles):
        with pytest.raises(InvalidInputError, match="question must be a text"):
            call(question)
        with pytest.raises(InvalidInputError, match="question must be a text"):
            await acall(question)


def test_a_chain_takes_the_question_out_of_a_dict() -> None:
    retriever = RETRIEVERS[0].make(STORE, k=2)
    asked: Any = RunnablePassthrough()
    with pytest.raises(InvalidInputError, match=r"itemgetter\('question'\) \| retriever"):
        (asked | retriever).invoke({"question": QUERY})
    assert (asked | itemgetter("question") | retriever).invoke({"question": QUERY}) == retriever.invoke(QUERY)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (HumanMessage("a"), r"\.text"),
        ([HumanMessage("a")], "one text"),
        (ChatPromptValue(messages=[HumanMessage("a")]), "a text"),
        (None, "no value under 'text'"),
    ],
)
async def test_the_input_of_an_example_selector_holds_a_text(value: Any, word: str) -> None:
    selector = EXAMPLES[0].make(STORE, k=1, input_keys=["text"])
    given = {"text": value, "history": [HumanMessage("b")]}
    with pytest.raises(InvalidInputError, match=word):
        selector.select_examples(given)
    with pytest.raises(InvalidInputError, match=word):
        await selector.aselect_examples(given)
    assert selector.select_examples({**given, "text": QUERY}), "only the input_keys count"
    with pytest.raises(InvalidInputError, match="any key"):
        EXAMPLES[0].make(STORE, k=1).select_examples({})
    with pytest.raises(InvalidInputError, match=r"dict.*'a'"):
        selector.select_examples("a")


# What people pass in place of documents and nodes, and a word of the message.
NO_ITEMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a text": (lambda item: "a", "'a'"),
    "dicts": (lambda item: [{"page_content": "a", "text": "a"}], "item 0.*page_content"),
    "None": (lambda item: None, "None"),
    "pairs with a score": (lambda item: [(item, 0.5)], r"item 0 is \("),
    "one by itself": (lambda item: item, "got (Document|NodeWithScore)"),
    "items of the other framework": (
        lambda item: [other.item(ROWS[0]) for other in RERANKERS if type(other.item(ROWS[0])) is not type(item)],
        "item 0",
    ),
}


@over(RERANKERS)
@pytest.mark.parametrize("form", NO_ITEMS)
async def test_what_is_no_list_of_documents_or_nodes(subject: Subject, form: str) -> None:
    made = subject.make(subject.corpus(), k=1)
    make, word = NO_ITEMS[form]
    given, needs = make(subject.item(ROWS[0])), "Document" if subject is RERANKERS[0] else "NodeWithScore"
    call, acall = (getattr(made, name) for name in subject.methods)
    arguments, more = subject.arguments(given, "a", [])
    with pytest.raises(InvalidInputError, match=rf"{needs}.*{word}"):
        call(*arguments, **more)
    with pytest.raises(InvalidInputError, match=rf"{needs}.*{word}"):
        await acall(*arguments, **more)


EXAMPLE = [{"text": "a", "label": "b"}]
LC, LI = langchain_setselect, llamaindex_setselect
RETRIEVER, ENGINE = STORE.as_retriever(), INDEX.as_query_engine(llm=MockLLM())
# What people pass for LangChain's vectorstore= and LlamaIndex's index=.
NO_STORES: dict[str, list[Any]] = {
    "LangChain": [RETRIEVER, InMemoryVectorStore, WordEmbeddings(), "a"],
    "LlamaIndex": [INDEX.vector_store, ENGINE, VectorStoreIndex, CountingEmbedding(), "a"],
}


@over(SUBJECTS)
def test_what_is_no_store_or_index(subject: Subject) -> None:
    word = "vectorstore.*VectorStore" if subject.framework == "LangChain" else "index.*VectorStoreIndex"
    for value in NO_STORES[subject.framework]:
        with pytest.raises(InvalidParameterError, match=word):
            subject.make(value)


# A call with something in the place of another thing, and a word of the message.
OBJECTS: dict[str, tuple[Callable[[], Any], str]] = {
    "compare_store: a retriever": (lambda: LC.compare_store(RETRIEVER, ["a"]), "store must be.*VectorStoreRetriever"),
    "compare_index: a store": (lambda: LI.compare_index(INDEX.vector_store, ["a"]), "index must be.*VectorStoreIndex"),
    "from_store: a retriever": (lambda: LC.WordRetriever.from_store(RETRIEVER), "store must be"),
    "from_examples: the model and the class swapped": (
        lambda: LC.SetSelectExampleSelector.from_examples(EXAMPLE, InMemoryVectorStore, WordEmbeddings()),
        "embeddings must be.*Embeddings",
    ),
    "from_examples: a store": (
        lambda: LC.SetSelectExampleSelector.from_examples(EXAMPLE, WordEmbeddings(), STORE),
        "class of a store.*InMemoryVectorStore.*vectorstore=",
    ),
    "a tool of a store": (lambda: LC.create_setselect_tool(STORE, "a", "b"), "SetSelectRetriever.*InMemory"),
    "a tool of an index": (
        lambda: LI.create_setselect_tool(INDEX, "a", "b"),
        "SetSelectIndexRetriever.*VectorStoreIndex",
    ),
    "LlamaIndex's filters: a dict": (
        lambda: LI.SetSelectIndexRetriever(INDEX, filters={"topic": "a"}),
        r"filters.*dict.*MetadataFilter\(key=",
    ),
    "a dict for the filter of a store in memory": (
        lambda: LC.SetSelectRetriever(vectorstore=STORE).invoke("a", filter={"topic": "a"}),
        "filter.*function.*'topic'",
    ),
    "kk= in a call": (lambda: LC.SetSelectRetriever(vectorstore=STORE).invoke("a", kk=5), "'kk'.*'k'"),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_an_object_in_the_place_of_another_one(case: str) -> None:
    call, word = OBJECTS[case]
    with pytest.raises(InvalidParameterError, match=word):
        call()


@over(RETRIEVERS + EXAMPLES)
async def test_an_empty_store_gives_one_warning(subject: Subject) -> None:
    empty = subject.open([], subject.kinds[0])
    made = subject.make(empty, k=1)
    with pytest.warns(SetSelectWarning, match="no documents") as caught:
        assert subject.run(made) == await subject.arun(made) == []
    assert len(caught) == 1


def test_an_empty_answer_to_a_filter_gives_no_warning() -> None:
    assert RETRIEVERS[0].run(RETRIEVERS[0].make(STORE, search_kwargs={"filter": lambda document: False})) == []
    nothing = MetadataFilters(filters=[MetadataFilter(key="topic", value="none of them")])
    assert RETRIEVERS[1].run(RETRIEVERS[1].make(INDEX, filters=nothing)) == []
