"""What only LlamaIndex's example selector has: templates, prompts, and adding examples. tests/adapters has what it
shares with the other classes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.prompts import ChatPromptTemplate, RichPromptTemplate
from llama_index.core.vector_stores import SimpleVectorStore

from llamaindex_setselect import SetSelectExampleSelector
from setselect import InvalidInputError, InvalidParameterError, SetSelectWarning
from tests.adapters.bindings import QUERY, ROWS, expected, nearest
from tests.llamaindex_setselect.nodes_and_indexes import STORES, CountingEmbedding, make_index, make_store

TEMPLATE = "Q: {question}\nA: {answer}"
EXAMPLES = [{"question": row.text, "answer": f"answer {i}", **row.metadata} for i, row in enumerate(ROWS)]


def make(model: CountingEmbedding, kind: str = "simple", **settings: Any) -> SetSelectExampleSelector:
    settings = {"template": TEMPLATE, "input_keys": ["question"], "top_n": 5, **settings}
    store = None if kind == "simple" else make_store(kind)
    return SetSelectExampleSelector.from_examples(EXAMPLES, model, vector_store=store, **settings)


@pytest.mark.parametrize("kind", STORES)
async def test_examples_are_selected_by_their_questions_and_returned_as_they_were_stored(
    kind: str, model: CountingEmbedding
) -> None:
    selector = make(model, kind)
    assert model.texts == [row.text for row in ROWS], "only the input keys are embedded"
    wanted = [EXAMPLES[row] for row in expected(nearest(), 5)]
    assert selector.select_examples(QUERY) == await selector.aselect_examples(QUERY) == wanted
    assert (model.queries, len(model.texts)) == ([QUERY] * 2, 60)
    selector.select_examples(QUERY)[0]["mine"] = True
    assert selector.select_examples(QUERY) == wanted, "the index keeps its own"


@pytest.mark.parametrize("kind", ["simple", "flat ip"])
def test_examples_can_be_added(kind: str, model: CountingEmbedding) -> None:
    selector = make(model, kind, top_n=1)
    new = {"question": QUERY, "context": "of two", "answer": "new"}
    ids = selector.add_examples([new, {"question": "other", "answer": "x"}])
    assert len(set(ids)) == 2
    assert selector.select_examples(QUERY) == [new]
    assert selector.add_examples([]) == []
    # Several keys are joined in the order of their names, as in LangChain.
    SetSelectExampleSelector.from_examples([new], model, input_keys=["question", "context"], template="{answer}")
    assert model.texts[-1] == f"of two {QUERY}"


def test_no_examples_yet(model: CountingEmbedding) -> None:
    selector = SetSelectExampleSelector.from_examples([], model, input_keys=["question"], template=TEMPLATE)
    with pytest.warns(SetSelectWarning, match="empty") as told:
        assert (selector.select_examples(QUERY), selector(query_str=QUERY)) == ([], "")
    assert len(told) == 1
    selector.add_examples(EXAMPLES[:1])
    assert selector.select_examples(QUERY) == EXAMPLES[:1]


# In prompts


def written(selector: SetSelectExampleSelector) -> str:
    return "\n\n".join(TEMPLATE.format(**example) for example in selector.select_examples(QUERY))


def test_in_prompts_of_each_kind(model: CountingEmbedding) -> None:
    selector = make(model, order="nearest_last")
    functions: Any = {"examples": selector}
    prompt = PromptTemplate("{examples}\n\nQ: {query_str}\nA:", function_mappings=functions)
    text = f"{written(selector)}\n\nQ: {QUERY}\nA:"
    assert prompt.format(query_str=QUERY) == prompt.format_messages(query_str=QUERY)[0].content == text
    rich = RichPromptTemplate("{{ examples }}\n\nQ: {{ query_str }}\nA:", function_mappings=functions)
    assert rich.format(query_str=QUERY) == text
    chat = ChatPromptTemplate.from_messages(
        [("system", "Answer as here:\n{examples}"), ("user", "{query_str}")], function_mappings=functions
    )
    contents = [message.content for message in chat.format_messages(query_str=QUERY)]
    assert contents == [f"Answer as here:\n{written(selector)}", QUERY]
    # Partial formatting copies the functions. A deep copy would copy all examples.
    part = prompt.partial_format(query_str=QUERY)
    assert part.format() == text
    assert part.function_mappings is not None
    assert part.function_mappings["examples"]._index is copy.deepcopy(selector)._index is selector._index


def test_separator_input_variable_and_braces(model: CountingEmbedding) -> None:
    code = [{"question": "an empty dict", "answer": "{}"}, {"question": "a set", "answer": "{1}"}]
    selector = SetSelectExampleSelector.from_examples(
        code, model, input_keys=["question"], template="{answer}", separator=" | ", input_variable="task", top_n=2
    )
    prompt = PromptTemplate("{shots} for {task}", function_mappings={"shots": selector})
    assert prompt.format(task="an empty dict") == "{} | {1} for an empty dict"
    selector.separator, selector.template = "; ", "{question}"
    assert prompt.format(task="an empty dict") == "an empty dict; a set for an empty dict"
    assert (selector.separator, selector.input_keys) == ("; ", ["question"])


# What is refused


def test_calls_that_lack_a_key_or_a_query(model: CountingEmbedding) -> None:
    selector = make(model)
    with pytest.raises(InvalidInputError, match="question, other"):
        selector(question="q", other="o")
    with pytest.raises(InvalidInputError, match="price"):
        make(model, template="{price}")(query_str=QUERY)
    with pytest.raises(InvalidInputError, match="query"):
        selector.select_examples("")
    assert selector(query_str="") == "", "LlamaIndex formats prompts with empty variables"


def test_settings_that_need_another(model: CountingEmbedding) -> None:
    with pytest.raises(InvalidParameterError, match="source="):
        make(model, max_per_source=1)
    with pytest.raises(InvalidParameterError, match="title"):
        make(model, input_keys=["title"])
    over_an_index = SetSelectExampleSelector(make_index("flat l2", model), template="{subject}: {stars}", top_n=2)
    assert over_an_index(query_str=QUERY).count("\n\n") == 1
    with pytest.raises(InvalidParameterError, match="from_examples"):
        over_an_index.add_examples([{"question": "q"}])
    over_an_index.input_keys = ["subject"]
    over_an_index.add_examples([{"subject": "new", "stars": 5}])


@pytest.mark.parametrize("missing", ["input_keys", "template"])
def test_examples_are_stored_only_if_the_options_are_right(model: CountingEmbedding, missing: str) -> None:
    store = SimpleVectorStore()
    options = {"input_keys": ["question"], "template": "{question}", "vector_store": store}
    del options[missing]
    with pytest.raises(InvalidParameterError, match=missing):
        SetSelectExampleSelector.from_examples([{"question": "q"}], model, **options)
    assert not store.data.embedding_dict
