"""What the classes of both adapters refuse: the class of the error, and one word of its message.

A mistake in a setting is refused when the object is made, with the project's own error. One in the data is refused by
the call that meets it, and the message names the item.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from setselect import (
    MMR,
    BudgetError,
    InvalidInputError,
    InvalidParameterError,
    PerspectiveError,
    SetSelectWarning,
    VectorSourceError,
)
from tests.adapters.bindings import RERANKERS, RETRIEVERS, ROWS, SUBJECTS, Subject, name_of, nearest, over
from tests.embedding import embed

OVER_ALL_CLASSES = over(SUBJECTS)
GIVEN = [ROWS[row] for row in nearest()]
P = InvalidParameterError
# Settings under the names that both adapters share, the error, and a word of its message.
SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"banana": 3}, P, "banana"),
    ({"kk": 5}, P, "'(k|similarity_top_k|top_n)'"),
    ({"lambda_mul": 0.5}, P, "lambda_mult"),
    *(({"k": value}, P, "(k|similarity_top_k|top_n)") for value in (0, 10**400, np.array([1.0, 2.0]), "many")),
    ({"selector": "NDPP"}, P, "did you mean 'ndpp'"),
    ({"selector": "similarity_score_threshold"}, P, "score_threshold"),
    ({"selector": "hybrid"}, P, "keyword_search=True"),
    ({"selector": "vrsd", "relevance": "number"}, P, "mmr"),
    ({"lambda_mult": 0.5}, P, "mmr"),
    ({"selector": "mmr", "lambda_mult": 1.5}, P, "lambda_mult"),
    ({"selector": MMR(), "lambda_mult": 0.5}, P, "lambda_mult"),
    ({"refine": True}, P, r"selector=VRSD\(refine="),
    ({"word_weight": 0}, P, r"selector=Coverage\(word_weight="),
    ({"ridge": 1}, P, r"selector=NDPP\(ridge=...\) or selector=Coverage\(ridge="),
    ({"selector_kwargs": {"refine": True}}, P, r"selector=VRSD\(refine=True"),
    ({"links": ["a"]}, P, "links.*metadata key"),
    ({"relevance_scale": "log"}, P, "relevance_scale"),
    ({"score_threshold": 1.01}, P, "score_threshold"),
    ({"max_per_source": 0, "source": "topic"}, P, "max_per_source"),
    ({"budget": 9}, BudgetError, "costs"),
    ({"shown": "doc-1"}, P, "doc-1"),
    ({"shown": [None]}, P, "ids.*without None"),
    *(
        ({"shown": shown}, P, r"shown.*item\.id .*node_id")
        for s in RERANKERS
        for row in [s.item(ROWS[0])]
        for shown in ([row], row)
    ),
    ({"order": "best"}, P, "long_context"),
    ({"direction": "away"}, P, "emphasize"),
    ({"perspective_vector": "root"}, P, "difference"),
    ({"perspective": "northern", "perspective_vector": "difference"}, P, "root"),
    ({"perspective": "  "}, PerspectiveError, "empty"),
    ({"perspective": [np.nan, 1.0]}, PerspectiveError, "NaN"),
]
# The same for a call.
CALLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"selector": "mmr", "quality": "stars"}, InvalidInputError, "'stars'.*none of the .*topic"),
    ({"selector": "mmr", "relevance": "topic"}, InvalidInputError, "relevance.*doc-.*number"),
    ({"max_per_source": 1, "source": "file"}, SetSelectWarning, "'file'.*none of the .*topic"),
    ({"prefer": "date"}, InvalidInputError, "prefer.*'date'.*none of the .*topic"),
    ({"prefer": "topic"}, InvalidInputError, "prefer.*doc-.*ISO"),
    ({"budget": 9, "costs": str.strip}, InvalidInputError, "costs=strip.*doc-.*whole (Document|TextNode|dict)"),
    ({"selector": "mmr", "quality": lambda text: len(text.split())}, InvalidInputError, "quality.*doc-.*split.*whole"),
    ({"cover": "label"}, InvalidInputError, "cover.*'label'.*none of the .*topic"),
    ({"cover": lambda item: {"topic": item}}, InvalidInputError, "cover: item 0 .*doc-.*hashed"),
    ({"selector": "mmr", "quality": {"doc-9": 1.0}}, InvalidInputError, "doc-"),
    ({"budget": 9, "costs": lambda item: 10**400}, InvalidInputError, "costs.*doc-.*finite"),
    ({"perspective": embed("hidden northern harbour engine")}, PerspectiveError, "parallel"),
    ({"perspective": lambda query: "x", "perspective_vector": "difference"}, PerspectiveError, "QueryParts"),
]


@OVER_ALL_CLASSES
@pytest.mark.parametrize(("settings", "error", "word"), SETTINGS, ids=name_of)
def test_settings_are_refused_when_the_object_is_made(
    subject: Subject, settings: dict[str, Any], error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word) as caught:
        subject.make(subject.corpus(), **settings)
    assert isinstance(caught.value, ValueError)


@OVER_ALL_CLASSES
@pytest.mark.parametrize(("settings", "error", "word"), CALLS, ids=name_of)
async def test_items_and_perspectives_are_refused_by_the_call(
    subject: Subject, settings: dict[str, Any], error: type[Exception], word: str
) -> None:
    made = subject.make(subject.corpus(), **settings)
    with pytest.raises(error, match=word):
        subject.run(made, GIVEN)
    with pytest.raises(error, match=word):
        await subject.arun(made, GIVEN)


@OVER_ALL_CLASSES
def test_names_that_other_libraries_give_to_the_size(subject: Subject) -> None:
    store = {"index" if subject.framework == "LlamaIndex" else "vectorstore": subject.corpus()}
    for name in {"topn", "similarity_top_k", "top_k", "k", "top_n"} - {subject.size}:
        with pytest.raises(InvalidParameterError, match=rf"'{name}'.*'{subject.size}'"):
            subject.cls(**store, **{name: 3})


@OVER_ALL_CLASSES
def test_fetch_k_is_at_least_k_and_no_setting_of_a_reranker(subject: Subject) -> None:
    word = "5" if subject.searches else "not search.*retriever in front"
    with pytest.raises(InvalidParameterError, match=f"fetch_k.*{word}"):
        subject.make(subject.corpus(), k=5, fetch_k=4 if subject.searches else 20)


@over(RERANKERS)
@pytest.mark.parametrize(
    "settings", [{"extra_retrievers": [1]}, {"keyword_search": True}, {"follow": "cites"}], ids=name_of
)
def test_what_searches_is_no_setting_of_a_reranker(subject: Subject, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        subject.make(subject.corpus(), **settings)


@pytest.mark.parametrize(
    ("settings", "ours"),
    [
        ({"vector_store_query_mode": "mmr"}, "selector='mmr'"),
        ({"vector_store_query_mode": VectorStoreQueryMode.MMR}, "selector='mmr'"),
        ({"vector_store_kwargs": {"mmr_threshold": 0.5}}, "mmr_threshold.*lambda_mult"),
        ({"vector_store_kwargs": {"mmr_prefetch_factor": 4}}, "mmr_prefetch_factor.*fetch_k"),
        ({"vector_store_kwargs": {"mmr_prefetch_k": 40}}, "mmr_prefetch_k.*fetch_k"),
        ({"mmr_threshold": 0.5}, "mmr_threshold.*lambda_mult"),
    ],
    ids=name_of,
)
def test_arguments_of_llamaindexs_own_mmr_are_refused(settings: dict[str, Any], ours: str) -> None:
    subject = RETRIEVERS[1]
    with pytest.raises(InvalidParameterError, match=ours):
        subject.make(subject.corpus(), **settings)
    subject.make(subject.corpus(), vector_store_query_mode="default", vector_store_kwargs={"namespace": "a"})


@pytest.mark.filterwarnings("ignore:(NaN found|Inf found|invalid value):RuntimeWarning")  # of the frameworks
@pytest.mark.parametrize("value", [np.nan, np.inf])
@OVER_ALL_CLASSES
def test_a_damaged_vector_is_named_by_its_items_id(subject: Subject, value: float) -> None:
    bad = ROWS[7]._replace(vector=np.append(ROWS[7].vector[:-1], value))
    rows = [*ROWS[:3], bad]
    made = subject.make(subject.open(rows, subject.kinds[0]), k=1)
    with pytest.raises(InvalidInputError, match=rf"{bad.id}\b.*(NaN|inf)"):
        subject.run(made, rows)


def test_a_reranker_needs_a_model_and_says_how_to_give_one() -> None:
    compressor, postprocessor = (subject.cls for subject in RERANKERS)
    with pytest.raises(InvalidParameterError, match=re.escape("embeddings=")):
        compressor(k=3)
    with pytest.raises(VectorSourceError, match="embed_model="):
        postprocessor().postprocess_nodes([RERANKERS[1].item(row) for row in ROWS], query_str="a")
