"""Few-shot examples in LlamaIndex prompts: what the core picks, written into the prompt by the framework itself."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import ChatPromptTemplate, RichPromptTemplate
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_setselect import SetSelectExampleSelector
from shared_core import NDPP, PAP, Candidates, InvalidInputError, InvalidParameterError
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    PERSPECTIVE,
    QUERY,
    SELECTORS,
    STORES,
    TEXTS,
    CountingEmbedding,
    embedding,
    expected,
    make_index,
    make_store,
    matrix,
)

TEMPLATE = "Q: {question}\nA: {answer}"
EVERYTHING = {"top_n": 5, "fetch_k": len(TEXTS)}


def examples() -> list[dict[str, Any]]:
    return [
        {"question": text, "answer": f"answer {i}", "stars": i % 5, "subject": text.split()[0]}
        for i, text in enumerate(TEXTS)
    ]


def make(model: CountingEmbedding, kind: str = "simple", **settings: Any) -> SetSelectExampleSelector:
    settings = {"template": TEMPLATE, **EVERYTHING, **settings}
    store = None if kind == "simple" else make_store(kind)
    return SetSelectExampleSelector.from_examples(
        examples(), model, input_keys=["question"], vector_store=store, **settings
    )


def texts_of(found: list[dict[str, Any]]) -> list[str]:
    return [example["question"] for example in found]


def nearest_first() -> list[str]:
    """Ids in the order in which the store returns them, because ties depend on the order."""
    return [ALL[i] for i in np.argsort(-(matrix(ALL) @ embedding(QUERY)), kind="stable")]


def wanted(k: int = 5, selector: Any = "ndpp", **parameters: Any) -> list[str]:
    return [TEXTS[ALL.index(i)] for i in expected(nearest_first(), k, selector, **parameters)]


@pytest.mark.parametrize("settings", SELECTORS, ids=str)
def test_examples_are_the_cores_picks(settings: dict[str, Any], model: CountingEmbedding) -> None:
    selector = make(model, **settings)
    model.forget()
    found = selector.select_examples(QUERY)
    assert texts_of(found) == wanted(**settings)
    assert all(example in examples() for example in found), "examples are returned as they were stored"
    assert model.queries == [QUERY]
    assert model.texts == [], "vectors come from the store"


@pytest.mark.parametrize("kind", STORES)
async def test_every_store_sync_and_async(kind: str, model: CountingEmbedding) -> None:
    selector = make(model, kind)
    assert texts_of(selector.select_examples(QUERY)) == wanted()
    assert await selector.aselect_examples(QUERY) == selector.select_examples(QUERY)
    assert model.asynchronous == [QUERY]
    store = type(selector._index.vector_store).__name__
    assert selector.vector_source == f"store: {store}"


def test_only_the_input_keys_are_embedded(model: CountingEmbedding) -> None:
    selector = make(model)
    assert model.texts == TEXTS
    selector.add_examples([{"question": "is mate a tea", "answer": "yes"}])
    assert model.texts[len(TEXTS) :] == ["is mate a tea"]
    two = [{"question": "one", "context": "of two", "answer": "x"}]
    SetSelectExampleSelector.from_examples(two, model, input_keys=["question", "context"], template="{answer}")
    # In the order of the keys, as in the LangChain adapter.
    assert model.texts[-1] == "of two one"


@pytest.mark.parametrize("kind", ["simple", "flat ip"])
def test_added_examples_are_selected(kind: str, model: CountingEmbedding) -> None:
    selector = make(model, kind, selector="similarity", top_n=1)
    before = selector.select_examples(QUERY)
    new = {"question": QUERY, "answer": "new"}
    ids = selector.add_examples([new, {"question": "other", "answer": "x"}])
    assert len(set(ids)) == 2
    assert before != selector.select_examples(QUERY) == [new]
    assert selector.add_examples([]) == []


def test_adding_needs_the_input_keys(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    selector = SetSelectExampleSelector(index, template="{subject}", top_n=2)
    assert [example["subject"] for example in selector.select_examples(QUERY)]
    with pytest.raises(InvalidParameterError, match="from_examples"):
        selector.add_examples([{"question": "q"}])
    with pytest.raises(InvalidParameterError, match=r"input_keys names 'question', but the keys are answer, stars"):
        make(model).add_examples([{"answer": "a", "stars": 1}])


def test_no_examples_yet(model: CountingEmbedding) -> None:
    selector = SetSelectExampleSelector.from_examples([], model, input_keys=["question"], template=TEMPLATE)
    assert selector.select_examples(QUERY) == []
    assert selector(query_str=QUERY) == ""
    selector.add_examples(examples()[:1])
    assert selector.select_examples(QUERY) == examples()[:1]


def test_examples_contain_scores_only_with_scores_true(model: CountingEmbedding) -> None:
    keys = {"question", "answer", "stars", "subject"}
    assert set(make(model).select_examples(QUERY)[0]) == keys
    assert set(make(model, scores=True).select_examples(QUERY)[0]) == {*keys, "selection_score", "relevance_score"}


def test_order(model: CountingEmbedding) -> None:
    selection, relevance, nearest_last = (
        texts_of(make(model, order=order).select_examples(QUERY))
        for order in ("selection", "relevance", "nearest_last")
    )
    assert selection == wanted()
    assert relevance == sorted(selection, key=lambda text: -np.dot(embedding(text), embedding(QUERY)))
    assert relevance != selection, "otherwise this test shows nothing"
    assert nearest_last == relevance[::-1]
    with pytest.raises(InvalidParameterError, match="order must be one of"):
        make(model, order="nearest")


@pytest.mark.parametrize("source", ["stars", lambda example: example["stars"]], ids=["key", "function"])
def test_quality_costs_and_source(source: Any, model: CountingEmbedding) -> None:
    names = nearest_first()
    stars = [ALL.index(i) % 5 for i in names]
    by_quality = make(model, selector="mmr", lambda_b=0.5, quality=source)
    assert texts_of(by_quality.select_examples(QUERY)) == wanted(
        selector="mmr", lambda_mult=0.5, lambda_b=0.5, quality=stars
    )
    by_budget = make(model, top_n=None, budget=7, costs=source)
    found = by_budget.select_examples(QUERY)
    assert texts_of(found) == wanted(k=None, costs=stars, budget=7)  # type: ignore[arg-type]
    assert sum(example["stars"] for example in found) <= 7
    one_of_each = make(model, max_per_source=1, source=source).select_examples(QUERY)
    assert sorted(example["stars"] for example in one_of_each) == [0, 1, 2, 3, 4]


def test_a_cap_needs_a_source(model: CountingEmbedding) -> None:
    with pytest.raises(InvalidParameterError, match="max_per_source needs source="):
        make(model, max_per_source=1)


def test_near_duplicates(model: CountingEmbedding) -> None:
    found = texts_of(make(model, drop_near_duplicates=0.8, top_n=30).select_examples(QUERY))
    vectors = np.array([embedding(text) for text in found])
    assert (vectors @ vectors.T)[~np.eye(len(found), dtype=bool)].max() <= 0.8
    assert 5 < len(found) < 30


def test_filters(model: CountingEmbedding) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="stars", value=3, operator=FilterOperator.GTE)])
    found = make(model, filters=filters).select_examples(QUERY)
    near = [i for i in nearest_first() if ALL.index(i) % 5 >= 3]
    assert texts_of(found) == [TEXTS[ALL.index(i)] for i in expected(near, 5)]


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
def test_perspective(direction: str, model: CountingEmbedding) -> None:
    found = make(model, perspective=PERSPECTIVE, direction=direction).select_examples(QUERY)
    pap = PAP(embedding(PERSPECTIVE), direction=direction)
    names = [ALL[i] for i in np.argsort(-(matrix(ALL) @ pap.project(embedding(QUERY))), kind="stable")]
    chosen = NDPP().select(pap.apply(Candidates(embedding(QUERY), matrix(names))), 5)
    assert texts_of(found) == [TEXTS[ALL.index(names[i])] for i in chosen.indices]


def written(selector: SetSelectExampleSelector) -> str:
    return "\n\n".join(TEMPLATE.format(**example) for example in selector.select_examples(QUERY))


def test_in_a_prompt(model: CountingEmbedding) -> None:
    selector = make(model, order="nearest_last")
    prompt = PromptTemplate("{examples}\n\nQ: {query_str}\nA:", function_mappings={"examples": selector})
    assert prompt.format(query_str=QUERY) == f"{written(selector)}\n\nQ: {QUERY}\nA:"
    assert prompt.format_messages(query_str=QUERY)[0].content == prompt.format(query_str=QUERY)
    rich = RichPromptTemplate("{{ examples }}\n\nQ: {{ query_str }}\nA:", function_mappings={"examples": selector})
    assert rich.format(query_str=QUERY) == prompt.format(query_str=QUERY)
    chat = ChatPromptTemplate.from_messages(
        [("system", "Answer as here:\n{examples}"), ("user", "{query_str}")], function_mappings={"examples": selector}
    )
    assert [message.content for message in chat.format_messages(query_str=QUERY)] == [
        f"Answer as here:\n{written(selector)}",
        QUERY,
    ]


def test_separator_input_variable_and_braces(model: CountingEmbedding) -> None:
    code = [{"question": "an empty dict", "answer": "{}"}, {"question": "a set", "answer": "{1}"}]
    selector = SetSelectExampleSelector.from_examples(
        code, model, input_keys=["question"], template="{answer}", separator=" | ", input_variable="task", top_n=2
    )
    prompt = PromptTemplate("{shots} for {task}", function_mappings={"shots": selector})
    assert prompt.format(task="an empty dict") == "{} | {1} for an empty dict"


@pytest.mark.parametrize("way", ["as an argument", "updated"])
async def test_in_a_query_engine(way: str, index: VectorStoreIndex, model: CountingEmbedding) -> None:
    selector = make(model, selector="mmr", quality="stars")
    prompt = PromptTemplate(
        "{examples}\n\n{context_str}\n\nQ: {query_str}\nA:", function_mappings={"examples": selector}
    )
    if way == "as an argument":
        engine = index.as_query_engine(llm=MockLLM(), text_qa_template=prompt)
    else:
        engine = index.as_query_engine(llm=MockLLM())
        engine.update_prompts({"response_synthesizer:text_qa_template": prompt})
    # MockLLM returns its prompt.
    assert str(engine.query(QUERY)).startswith(written(selector))
    assert str(await engine.aquery(QUERY)).startswith(written(selector))


def test_partial_formatting_does_not_copy_the_examples(model: CountingEmbedding) -> None:
    selector = make(model)
    prompt = PromptTemplate("{examples}\n{query_str}", function_mappings={"examples": selector})
    part = prompt.partial_format(query_str=QUERY)
    assert part.function_mappings is not None
    assert part.function_mappings["examples"]._index is selector._index
    assert part.format() == prompt.format(query_str=QUERY)


def test_errors(model: CountingEmbedding) -> None:
    selector = make(model)
    with pytest.raises(InvalidInputError, match=r"no variable 'query_str'.*it has question, other.*input_variable="):
        selector(question="q", other="o")
    with pytest.raises(InvalidInputError, match="it has none"):
        selector()
    with pytest.raises(InvalidInputError, match="the template has the key 'price', which an example lacks"):
        make(model, template="{price}")(query_str=QUERY)
    with pytest.raises(InvalidInputError, match=r"a field without a name, \{\}: name a key of the examples"):
        make(model, template="{}")(query_str=QUERY)
    with pytest.raises(InvalidInputError, match="the query is empty"):
        selector.select_examples("")
    with pytest.raises(InvalidParameterError, match="input_keys names 'title', but the keys are question"):
        SetSelectExampleSelector.from_examples([{"question": "q"}], model, input_keys=["title"], template="{question}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topn": 3}, "no argument 'topn'"),
        ({"lambda_mult": 0.5}, "'lambda_mult'"),
        ({"top_n": 0}, "top_n must be at least 1"),
        ({"top_n": 5, "fetch_k": 4}, "fetch_k"),
        ({"max_per_source": 0, "source": "subject"}, "max_per_source must be at least 1"),
        ({"drop_near_duplicates": 2}, "drop_near_duplicates"),
        ({"budget": 10}, "a budget needs costs"),
    ],
    ids=str,
)
def test_wrong_settings_raise_at_construction(settings: dict[str, Any], message: str, index: VectorStoreIndex) -> None:
    with pytest.raises(ValueError, match=message):
        SetSelectExampleSelector(index, template="{subject}", **settings)


def test_the_index_is_not_changed(model: CountingEmbedding) -> None:
    selector = make(model)
    selector.select_examples(QUERY)[0]["mine"] = True
    assert all(example in examples() for example in selector.select_examples(QUERY))
    nodes = list(selector._index.docstore.docs.values())
    assert all(isinstance(node, TextNode) and "selection_score" not in node.metadata for node in nodes)


def stars(example: dict[str, Any]) -> float:
    return float(example["stars"])


@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("kind", ["simple", "flat ip"])
def test_copies_select_the_same(kind: str, way: str, model: CountingEmbedding) -> None:
    selector = make(model, kind, selector="mmr", lambda_b=0.5, quality=stars, source=stars, max_per_source=1)
    duplicate: Any = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda s: pickle.loads(pickle.dumps(s))}
    again = duplicate[way](selector)
    assert again is not selector
    assert again.select_examples(QUERY) == selector.select_examples(QUERY)
    assert again(query_str=QUERY) == selector(query_str=QUERY)
    if way == "pickle":
        again.add_examples([{"question": QUERY, "answer": "new", "stars": 4}])
        assert texts_of(selector.select_examples(QUERY)) != texts_of(again.select_examples(QUERY))
        selector.add_examples([{"question": QUERY, "answer": "new", "stars": 4}])
        assert selector.select_examples(QUERY) == again.select_examples(QUERY)


def test_a_selector_over_a_users_index(model: CountingEmbedding) -> None:
    selector = SetSelectExampleSelector(make_index("flat l2", model), template="{subject}: {stars}", top_n=2)
    assert selector(query_str=QUERY).count("\n\n") == 1
