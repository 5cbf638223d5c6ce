import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
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
from shared_core import (
    MMR,
    NDPP,
    BudgetError,
    InvalidInputError,
    InvalidParameterError,
    SetSelectWarning,
    select,
)
from tests.embedding import TOPICS, TRAITS, embed
from tests.langchain_setselect.conftest import WordEmbeddings

QUESTION = "why is the old northern harbour loud"
STORES: dict[str, tuple[type[VectorStore], dict[str, Any]]] = {
    "in memory": (InMemoryVectorStore, {}),
    "FAISS": (FAISS, {"normalize_L2": True}),
}
OPTIONS: list[dict[str, Any]] = [
    {"search_type": "similarity"},
    {"search_type": "vrsd"},
    {"search_type": "vrsd", "refine": True},
    {"search_type": "mmr", "lambda_mult": 0.3},
    {"search_type": "ndpp"},
    {"selector": MMR(lambda_mult=0.2)},
    {"selector": NDPP(relevance_mapping="exponential")},
]
Make = Callable[..., SetSelectExampleSelector]


def examples() -> list[dict[str, Any]]:
    """Forty questions with answers; those about one topic share most words."""
    return [
        {
            "question": f"why is the {TRAITS[i // 6 % 5]} {TOPICS[i % 6]} number {i}",
            "answer": f"because {i}",
            "stars": (i * 7 % 10) / 10,
            "topic": TOPICS[i % 6],
        }
        for i in range(40)
    ]


def rows_of(chosen: list[dict[str, Any]]) -> list[int]:
    return [int(example["answer"].split()[1]) for example in chosen]


def nearest(query: np.ndarray, n: int, rows: list[int] | None = None) -> list[int]:
    kept = list(range(40)) if rows is None else rows
    vectors = [embed(examples()[row]["question"]) for row in kept]
    cosines = np.array([query @ vector / np.linalg.norm(vector) for vector in vectors])
    return [kept[i] for i in np.argsort(-cosines, kind="stable")[:n]]


def expected(
    k: int | None = 4, fetch_k: int = 20, search_type: Any = "ndpp", rows: list[int] | None = None, **options: Any
) -> list[int]:
    query = embed(QUESTION)
    found = nearest(query, fetch_k, rows)
    for name in ("quality", "costs"):
        if name in options:
            options[name] = [options[name][row] for row in found]
    vectors = np.array([embed(examples()[row]["question"]) for row in found])
    return [found[i] for i in select(query, vectors, k, search_type, **options).indices]


@pytest.fixture(params=STORES.values(), ids=STORES.keys())
def make(request: pytest.FixtureRequest, embeddings: WordEmbeddings) -> Make:
    """A selector over the forty examples that embeds their questions."""
    store, store_settings = request.param

    def made(**settings: Any) -> SetSelectExampleSelector:
        settings.setdefault("input_keys", ["question"])
        return SetSelectExampleSelector.from_examples(examples(), embeddings, store, **settings, **store_settings)

    return made


@pytest.mark.parametrize("options", OPTIONS, ids=str)
async def test_picks_equal_those_of_the_core_over_the_examples_embeddings(make: Make, options: dict[str, Any]) -> None:
    made = make(k=5, **options)
    parameters = dict(options)
    search_type = parameters.pop("selector", parameters.pop("search_type", None))
    wanted = expected(5, 25, search_type, **parameters)
    chosen = made.select_examples({"question": QUESTION})
    assert rows_of(chosen) == wanted
    assert chosen == [examples()[row] for row in wanted], "examples are returned as they were stored"
    assert await made.aselect_examples({"question": QUESTION}) == chosen


def test_a_selection_embeds_the_question_and_no_example(make: Make, embeddings: WordEmbeddings) -> None:
    made = make()
    assert embeddings.documents == 40
    made.select_examples({"question": QUESTION})
    assert (embeddings.documents, embeddings.queries) == (40, 1)
    assert made.vector_source.startswith("store: ")
    assert isinstance(made, BaseExampleSelector)


async def test_the_constructors_arguments_are_langchains(embeddings: WordEmbeddings) -> None:
    arguments = (examples(), embeddings, InMemoryVectorStore, 6, ["question"])
    keywords = {"example_keys": ["answer"], "vectorstore_kwargs": {"filter": lambda d: d.metadata["topic"] != "bread"}}
    theirs = SemanticSimilarityExampleSelector.from_examples(*arguments, **keywords)
    ours = SetSelectExampleSelector.from_examples(*arguments, **keywords, search_type="similarity")
    wanted = theirs.select_examples({"question": QUESTION})
    assert ours.select_examples({"question": QUESTION}) == wanted
    later = await SetSelectExampleSelector.afrom_examples(*arguments, **keywords, search_type="similarity")
    assert await later.aselect_examples({"question": QUESTION}) == wanted
    assert set(SemanticSimilarityExampleSelector.model_fields) <= set(SetSelectExampleSelector.model_fields)
    made = SetSelectExampleSelector(vectorstore=theirs.vectorstore, k=6, input_keys=["question"], **keywords)
    assert len(made.select_examples({"question": QUESTION})) == 6


def test_our_selector_uses_a_store_that_langchains_selector_filled(embeddings: WordEmbeddings) -> None:
    for store, settings in STORES.values():
        theirs = SemanticSimilarityExampleSelector.from_examples(
            examples(), embeddings, store, input_keys=["question"], **settings
        )
        ours = SetSelectExampleSelector(vectorstore=theirs.vectorstore, k=5, input_keys=["question"])
        assert rows_of(ours.select_examples({"question": QUESTION})) == expected(5, 25)


def test_langchains_selector_uses_a_store_that_our_selector_filled(make: Make) -> None:
    theirs = SemanticSimilarityExampleSelector(vectorstore=make().vectorstore, k=3, input_keys=["question"])
    assert rows_of(theirs.select_examples({"question": QUESTION})) == nearest(embed(QUESTION), 3)


async def test_examples_can_be_added(make: Make, embeddings: WordEmbeddings) -> None:
    made = make(k=1)
    new = {"question": QUESTION, "answer": "because 99", "stars": 1.0, "topic": "harbour"}
    name = made.add_example(new)
    assert isinstance(name, str)
    assert made.select_examples({"question": QUESTION}) == [new]
    more = [{**new, "question": f"{word} {word} {word}", "answer": f"because {i}"} for i, word in enumerate("xyz", 100)]
    names = made.add_examples(more[:2])
    assert len({name, *names}) == 3
    assert made.select_examples({"question": more[1]["question"]}) == [more[1]]
    assert len(await make().aadd_examples(more)) == 3
    assert isinstance(await made.aadd_example(more[2]), str)
    assert await made.aselect_examples({"question": more[2]["question"]}) == [more[2]]
    new["answer"] = "changed later"
    assert made.select_examples({"question": QUESTION})[0]["answer"] == "because 99", "the store keeps a copy"


def test_input_keys_name_what_is_embedded(embeddings: WordEmbeddings) -> None:
    rows = [{"a": "river bread", "b": "violin", "out": "1"}, {"a": "engine", "b": "river bread", "out": "2"}]
    by_a = SetSelectExampleSelector.from_examples(rows, embeddings, InMemoryVectorStore, 1, ["a"])
    by_b = SetSelectExampleSelector.from_examples(rows, embeddings, InMemoryVectorStore, 1, ["b"])
    asked = {"a": "river bread", "b": "river bread"}
    assert by_a.select_examples(asked) == rows[:1]
    assert by_b.select_examples(asked) == rows[1:]
    for keys in (None, []):
        every = SetSelectExampleSelector.from_examples(rows, embeddings, InMemoryVectorStore, 1, keys)
        texts = {entry["text"] for entry in every.vectorstore.store.values()}
        assert texts == {"river bread violin 1", "engine river bread 2"}, (
            "values by sorted key, as LangChain joins them"
        )
        assert every.select_examples(asked)
    both = SetSelectExampleSelector.from_examples(rows, embeddings, InMemoryVectorStore, 1, ["b", "a"])
    assert {e["text"] for e in both.vectorstore.store.values()} == {"river bread violin", "engine river bread"}


def test_a_missing_input_key_is_named(make: Make) -> None:
    with pytest.raises(InvalidParameterError, match=r"input_keys names 'question', but the keys are query"):
        make().select_examples({"query": QUESTION})
    with pytest.raises(InvalidParameterError, match=r"input_keys names 'topics', but the keys are question, answer"):
        make(input_keys=["topics"])


def test_example_keys_name_what_is_returned(make: Make) -> None:
    chosen = make(example_keys=["answer", "topic"]).select_examples({"question": QUESTION})
    assert chosen == [{"answer": f"because {row}", "topic": TOPICS[row % 6]} for row in expected()]
    assert set(make(example_keys=[]).select_examples({"question": QUESTION})[0]) == set(examples()[0])


async def test_the_orders(make: Make) -> None:
    by_choice = expected(6, 30, "vrsd")
    by_cosine = [row for row in nearest(embed(QUESTION), 40) if row in by_choice]
    assert by_choice not in (by_cosine, by_cosine[::-1]), "the orders must differ for this test to test anything"
    both_ends = [by_cosine[i] for i in (0, 2, 4, 5, 3, 1)]
    for order, wanted in {
        "selection": by_choice,
        "relevance": by_cosine,
        "nearest_last": by_cosine[::-1],
        "long_context": both_ends,
    }.items():
        made = make(search_type="vrsd", k=6, order=order)
        assert rows_of(made.select_examples({"question": QUESTION})) == wanted
        assert rows_of(await made.aselect_examples({"question": QUESTION})) == wanted


@pytest.mark.parametrize("in_search_kwargs", [False, True])
@pytest.mark.parametrize("quality", ["stars", lambda example: example["stars"]], ids=["key", "function"])
def test_quality_comes_from_a_key_or_a_function_of_the_example(
    make: Make, quality: Any, in_search_kwargs: bool
) -> None:
    options = {"search_type": "mmr", "lambda_mult": 0.5, "lambda_b": 0.3}
    wanted = expected(**options, quality=[example["stars"] for example in examples()])
    assert wanted != expected(search_type="mmr", lambda_mult=0.5), "quality must matter for this test to test anything"
    given = {"search_kwargs": {"quality": quality}} if in_search_kwargs else {"quality": quality}
    assert rows_of(make(**options, **given).select_examples({"question": QUESTION})) == wanted


def test_the_set_fills_a_budget_counted_by_a_users_function(make: Make) -> None:
    def words(example: dict[str, Any]) -> int:
        # A stand-in for a tokenizer: long answers cost more.
        return len(example["question"].split()) + len(example["answer"]) % 3

    costs = [words(example) for example in examples()]
    chosen = make(budget=50, costs=words).select_examples({"question": QUESTION})
    assert rows_of(chosen) == expected(None, 50, budget=50, costs=costs)
    spent = sum(map(words, chosen))
    assert spent <= 50 < spent + min(costs)
    assert len(chosen) > 4, "without k, as many as fit"
    assert len(make(k=2, budget=50, costs=words).select_examples({"question": QUESTION})) == 2
    with pytest.raises(BudgetError, match=r"nothing fits"):
        make(budget=1, costs=words).select_examples({"question": QUESTION})
    with pytest.raises(BudgetError, match=r"budget needs costs"):
        make(budget=50)


@pytest.mark.parametrize("source", ["topic", lambda example: example["topic"]], ids=["key", "function"])
def test_no_source_has_more_than_its_cap(make: Make, source: Any) -> None:
    chosen = make(k=6, search_type="similarity", source=source, max_per_source=1).select_examples(
        {"question": QUESTION}
    )
    assert {example["topic"] for example in chosen} == set(TOPICS)


def test_the_example_that_lacks_a_key_is_named(make: Make) -> None:
    for settings in ({"quality": "likes", "search_type": "mmr"}, {"budget": 9, "costs": "likes"}):
        with pytest.raises(InvalidInputError, match=r"'likes', but item \d+.*has no such key.*'stars'"):
            make(**settings).select_examples({"question": QUESTION})


async def test_a_filter_goes_to_the_store(embeddings: WordEmbeddings) -> None:
    rows = [i for i, example in enumerate(examples()) if example["topic"] in ("harbour", "river")]
    wanted = expected(rows=rows)
    filters = {
        "in memory": lambda document: document.metadata["topic"] in ("harbour", "river"),
        "FAISS": {"topic": ["harbour", "river"]},
    }
    for name, (store, settings) in STORES.items():
        made = SetSelectExampleSelector.from_examples(
            examples(),
            embeddings,
            store,
            input_keys=["question"],
            vectorstore_kwargs={"filter": filters[name]},
            **settings,
        )
        assert rows_of(made.select_examples({"question": QUESTION})) == wanted
        assert rows_of(await made.aselect_examples({"question": QUESTION})) == wanted


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
def test_a_perspective_changes_the_selection(make: Make, direction: str) -> None:
    q, p = embed(QUESTION), embed("loud")
    projected = q + (1 if direction == "emphasize" else -1) * (q @ p) / (p @ p) * p
    found = nearest(projected, 20)
    vectors = np.array([embed(examples()[row]["question"]) for row in found])
    wanted = [found[i] for i in select(projected, vectors, 4).indices]
    assert wanted != expected()
    by_text = make(perspective="loud", direction=direction)
    by_function = make(perspective=lambda query: query.split()[-1], direction=direction)
    for made in (by_text, by_function):
        assert rows_of(made.select_examples({"question": QUESTION})) == wanted


async def test_inside_a_few_shot_prompt(make: Make) -> None:
    made = make(k=3, order="nearest_last")
    wanted = [row for row in nearest(embed(QUESTION), 40) if row in expected(3)][::-1]
    prompt = FewShotPromptTemplate(
        example_selector=made,
        example_prompt=PromptTemplate.from_template("Q: {question}\nA: {answer}"),
        prefix="Answer.",
        suffix="Q: {question}\nA:",
        input_variables=["question"],
        example_separator="\n--\n",
    )
    shots = [f"Q: {examples()[row]['question']}\nA: {examples()[row]['answer']}" for row in wanted]
    text = "\n--\n".join(["Answer.", *shots, f"Q: {QUESTION}\nA:"])
    assert prompt.format(question=QUESTION) == text
    assert await prompt.aformat(question=QUESTION) == text
    assert prompt.invoke({"question": QUESTION}).to_string() == text


async def test_inside_a_few_shot_chat_prompt(make: Make) -> None:
    shots = FewShotChatMessagePromptTemplate(
        example_selector=make(k=3),
        example_prompt=ChatPromptTemplate.from_messages([("human", "{question}"), ("ai", "{answer}")]),
        input_variables=["question"],
    )
    prompt = ChatPromptTemplate.from_messages([("system", "Answer."), shots, ("human", "{question}")])
    wanted = []
    for row in expected(3):
        wanted += [HumanMessage(examples()[row]["question"]), AIMessage(examples()[row]["answer"])]
    found = prompt.invoke({"question": QUESTION}).to_messages()
    assert found[1:] == [*wanted, HumanMessage(QUESTION)]
    assert (await prompt.ainvoke({"question": QUESTION})).to_messages() == found


def test_examples_never_contain_scores(make: Make) -> None:
    for settings in ({}, {"scores": False}, {"search_kwargs": {"scores": False}}):
        chosen = make(**settings).select_examples({"question": QUESTION})
        assert chosen == [examples()[row] for row in expected()]


def test_fewer_examples_than_k_are_all_returned(make: Make, embeddings: WordEmbeddings) -> None:
    assert len(make(k=100).select_examples({"question": QUESTION})) == 40
    empty = SetSelectExampleSelector(vectorstore=InMemoryVectorStore(embeddings), input_keys=["question"])
    assert empty.select_examples({"question": QUESTION}) == []
    empty.add_example({"question": "first", "answer": "because 1"})
    # This stays without a warning: a larger fetch_k would not help.
    assert rows_of(empty.select_examples({"question": QUESTION})) == [1]


def test_a_search_for_no_more_than_k_examples_is_warned_of_once(make: Make) -> None:
    made = make(k=4, fetch_k=4)
    with pytest.warns(SetSelectWarning, match=r"k=4 of 4 candidates: all of them are selected.*Raise fetch_k"):
        chosen = made.select_examples({"question": QUESTION})
    assert made.select_examples({"question": QUESTION}) == chosen


@pytest.mark.parametrize("in_search_kwargs", [False, True])
@pytest.mark.parametrize("relevance", ["stars", lambda example: example["stars"]], ids=["key", "function"])
def test_relevance_comes_from_a_key_or_a_function_of_the_example(
    make: Make, relevance: Any, in_search_kwargs: bool
) -> None:
    found = nearest(embed(QUESTION), 20)
    vectors = np.array([embed(examples()[row]["question"]) for row in found])
    stars = [examples()[row]["stars"] for row in found]
    wanted = [found[i] for i in select(embed(QUESTION), vectors, 4, "mmr", relevance=stars).indices]
    assert wanted != expected(search_type="mmr"), "the stars must matter for this test to test anything"
    given = {"search_kwargs": {"relevance": relevance}} if in_search_kwargs else {"relevance": relevance}
    assert rows_of(make(search_type="mmr", **given).select_examples({"question": QUESTION})) == wanted


def test_a_setting_changed_later_counts_at_the_next_call(make: Make) -> None:
    made = make(search_type="mmr", k=5)
    made.lambda_mult = 0.2
    assert rows_of(made.select_examples({"question": QUESTION})) == expected(5, 25, "mmr", lambda_mult=0.2)
    made.selector = NDPP()
    made.lambda_mult = None
    assert rows_of(made.select_examples({"question": QUESTION})) == expected(5, 25, "ndpp")


def test_copies_and_pickles_select_the_same(make: Make) -> None:
    made = make(k=3, selector=MMR(lambda_mult=0.4), order="nearest_last", perspective="northern", quality="stars")
    wanted = made.select_examples({"question": QUESTION})
    for other in (copy.copy(made), copy.deepcopy(made), made.model_copy(), pickle.loads(pickle.dumps(made))):
        assert other.select_examples({"question": QUESTION}) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "nearest"}, r"order must be one of selection, relevance, nearest_last, long_context, got 'nearest'"),
        ({"k": 0}, r"k must be at least 1"),
        ({"search_type": "mrr"}, r"unknown selector 'mrr'"),
        ({"selector": MMR(), "search_type": "vrsd"}, r"search_type or selector, not both"),
        ({"lambda_mult": 0.5}, r"'ndpp' has no parameter 'lambda_mult' \(a parameter of 'mmr'\)"),
        ({"search_kwargs": {"fetchk": 30}}, r"did you mean 'fetch_k'"),
    ],
)
def test_bad_arguments_are_refused(embeddings: WordEmbeddings, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SetSelectExampleSelector(vectorstore=InMemoryVectorStore(embeddings), **arguments)
    with pytest.raises(InvalidParameterError, match=message):
        SetSelectExampleSelector.from_examples(examples(), embeddings, InMemoryVectorStore, **arguments)


async def test_a_misspelt_setting_is_not_passed_to_the_store(embeddings: WordEmbeddings) -> None:
    # InMemoryVectorStore.from_texts accepts any argument.
    for name, ours in {"fetchk": "fetch_k", "lamda_mult": "lambda_mult", "max_per_sources": "max_per_source"}.items():
        with pytest.raises(InvalidParameterError, match=rf"there is no '{name}': did you mean '{ours}'"):
            SetSelectExampleSelector.from_examples(examples(), embeddings, InMemoryVectorStore, **{name: 3})
        with pytest.raises(InvalidParameterError, match=rf"did you mean '{ours}'"):
            await SetSelectExampleSelector.afrom_examples(examples(), embeddings, InMemoryVectorStore, **{name: 3})
    with pytest.raises(InvalidParameterError, match=r"SetSelectExampleSelector has no argument 'fetchk'"):
        SetSelectExampleSelector(vectorstore=InMemoryVectorStore(embeddings), fetchk=3)
    assert embeddings.documents == 0, "refused before anything is embedded"


def test_a_misspelt_store_argument_is_refused_too(make: Make) -> None:
    with pytest.raises(InvalidParameterError, match=r"takes no search argument 'flter'; it takes filter"):
        make(vectorstore_kwargs={"flter": {"topic": "river"}}).select_examples({"question": QUESTION})
