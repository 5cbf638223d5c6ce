"""What only LangChain's example selector has: its keys, adding examples, stores shared with LangChain's own selector,
and few-shot prompts. tests/adapters has what it shares with the other classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.example_selectors import SemanticSimilarityExampleSelector
from langchain_core.example_selectors.base import BaseExampleSelector
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    FewShotPromptTemplate,
    PromptTemplate,
)
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectExampleSelector
from setselect import InvalidParameterError
from tests.adapters.bindings import QUERY, ROWS, expected, nearest
from tests.langchain_setselect.conftest import WordEmbeddings

STORES: dict[str, tuple[type[VectorStore], dict[str, Any]]] = {
    "in memory": (InMemoryVectorStore, {}),
    "FAISS": (FAISS, {"normalize_L2": True}),
}
EXAMPLES = [{"question": row.text, "answer": f"because {i}", **row.metadata} for i, row in enumerate(ROWS)]
ASKED = {"question": QUERY}
Make = Callable[..., SetSelectExampleSelector]


@pytest.fixture(params=STORES.values(), ids=STORES.keys())
def make(request: pytest.FixtureRequest, embeddings: WordEmbeddings) -> Make:
    """A selector over the examples that embeds their questions."""
    store, store_settings = request.param

    def made(**settings: Any) -> SetSelectExampleSelector:
        settings = {"input_keys": ["question"], **settings, **store_settings}
        return SetSelectExampleSelector.from_examples(EXAMPLES, embeddings, store, **settings)

    return made


async def test_examples_are_selected_by_their_questions_and_returned_as_they_were_stored(
    make: Make, embeddings: WordEmbeddings
) -> None:
    made = make(k=5)
    assert isinstance(made, BaseExampleSelector)
    assert embeddings.documents == 60
    wanted = [EXAMPLES[row] for row in expected(nearest(), 5)]
    assert made.select_examples(ASKED) == await made.aselect_examples(ASKED) == wanted
    assert (embeddings.documents, embeddings.queries) == (60, 2)
    for settings in ({"scores": True}, {"search_kwargs": {"scores": True}}, {"example_keys": []}):
        assert make(k=5, **settings).select_examples(ASKED) == wanted, "examples never contain scores"
    # A function in search_kwargs gets the example too.
    read = {"selector": "mmr", "search_kwargs": {"quality": lambda example: example["quality"]}}
    assert make(**read).select_examples(ASKED) == make(selector="mmr", quality="quality").select_examples(ASKED)
    with pytest.raises(InvalidParameterError, match="'flter'"):
        make(vectorstore_kwargs={"flter": {}}).select_examples(ASKED)
    chosen = make(k=5, example_keys=["answer", "topic"]).select_examples(ASKED)
    assert chosen == [{name: example[name] for name in ("answer", "topic")} for example in wanted]


async def test_the_arguments_are_langchains(embeddings: WordEmbeddings) -> None:
    arguments = (EXAMPLES, embeddings, InMemoryVectorStore, 6, ["question"])
    keywords = {"example_keys": ["answer"], "vectorstore_kwargs": {"filter": lambda d: d.metadata["topic"] != "bread"}}
    wanted = SemanticSimilarityExampleSelector.from_examples(*arguments, **keywords).select_examples(ASKED)
    ours = SetSelectExampleSelector.from_examples(*arguments, **keywords, search_type="similarity")
    assert ours.select_examples(ASKED) == wanted
    later = await SetSelectExampleSelector.afrom_examples(*arguments, **keywords, search_type="similarity")
    assert await later.aselect_examples(ASKED) == wanted
    assert set(SemanticSimilarityExampleSelector.model_fields) <= set(SetSelectExampleSelector.model_fields)


async def test_examples_can_be_added(make: Make) -> None:
    made = make(k=1)
    new = [{**EXAMPLES[0], "question": f"{word} {word} {word}", "number": i} for i, word in enumerate("wx", 100)]
    assert made.add_example(new[0]) != await made.aadd_example(new[1])
    for example in new:
        assert await made.aselect_examples({"question": example["question"]}) == [example]
    question = new[0].pop("question")
    assert made.select_examples({"question": question})[0]["question"] == question, "the store keeps a copy"


def test_input_keys_name_what_is_embedded(embeddings: WordEmbeddings) -> None:
    rows = [{"a": "river bread", "b": "violin", "out": "1"}, {"a": "engine", "b": "river bread", "out": "2"}]
    asked = {"a": "river bread", "b": "river bread"}
    for keys, first, texts in (
        (["a"], rows[0], {"river bread", "engine"}),
        (["b"], rows[1], {"violin", "river bread"}),
        (["b", "a"], None, {"river bread violin", "engine river bread"}),
        (None, None, {"river bread violin 1", "engine river bread 2"}),  # by sorted key, as LangChain joins them
    ):
        made = SetSelectExampleSelector.from_examples(rows, embeddings, InMemoryVectorStore, 1, keys)
        assert {entry["text"] for entry in made.vectorstore.store.values()} == texts
        assert made.select_examples(asked)[0] in ([first] if first else rows)


async def test_inside_few_shot_prompts(make: Make) -> None:
    rows = sorted(expected(nearest(), 3), key=nearest(60).index)[::-1]
    made = make(k=3, order="nearest_last")
    prompt = FewShotPromptTemplate(
        example_selector=made,
        example_prompt=PromptTemplate.from_template("Q: {question}\nA: {answer}"),
        prefix="Answer.",
        suffix="Q: {question}\nA:",
        input_variables=["question"],
        example_separator="\n--\n",
    )
    shots = [f"Q: {EXAMPLES[row]['question']}\nA: {EXAMPLES[row]['answer']}" for row in rows]
    text = "\n--\n".join(["Answer.", *shots, f"Q: {QUERY}\nA:"])
    assert prompt.format(question=QUERY) == await prompt.aformat(question=QUERY) == text
    chat = FewShotChatMessagePromptTemplate(
        example_selector=made,
        example_prompt=ChatPromptTemplate.from_messages([("human", "{question}"), ("ai", "{answer}")]),
        input_variables=["question"],
    )
    messages = [
        m for row in rows for m in (HumanMessage(EXAMPLES[row]["question"]), AIMessage(EXAMPLES[row]["answer"]))
    ]
    whole = ChatPromptTemplate.from_messages([("system", "Answer."), chat, ("human", "{question}")])
    assert whole.invoke(ASKED).to_messages()[1:] == [*messages, HumanMessage(QUERY)]
    assert await whole.ainvoke(ASKED) == whole.invoke(ASKED)


async def test_what_is_refused_before_anything_is_embedded(embeddings: WordEmbeddings) -> None:
    # InMemoryVectorStore.from_texts accepts any argument.
    for settings, word in (
        ({"fetchk": 30}, "fetch_k"),
        ({"lamda_mult": 0.3}, "lambda_mult"),
        ({"word_weight": 0}, "Coverage.word_weight"),
        ({"input_keys": ["questions"]}, "questions.*question"),
    ):
        with pytest.raises(InvalidParameterError, match=word):
            SetSelectExampleSelector.from_examples(EXAMPLES, embeddings, InMemoryVectorStore, **settings)
        with pytest.raises(InvalidParameterError, match=word):
            await SetSelectExampleSelector.afrom_examples(EXAMPLES, embeddings, InMemoryVectorStore, **settings)
    assert embeddings.documents == 0
    made = SetSelectExampleSelector(vectorstore=InMemoryVectorStore(embeddings), input_keys=["question"])
    with pytest.raises(InvalidParameterError, match=r"'question'.*query"):
        made.select_examples({"query": QUERY})
