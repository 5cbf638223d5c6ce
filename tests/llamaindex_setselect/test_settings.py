"""Settings of the postprocessor, and its copies, pickles and files."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from llamaindex_setselect import SetSelectPostprocessor
from llamaindex_setselect._settings import SelectionSettings
from llamaindex_setselect.example_selector import ExampleOptions
from llamaindex_setselect.retriever import NodeOptions
from shared_core import (
    MMR,
    NDPP,
    VRSD,
    Candidates,
    InvalidParameterError,
    LowRankKernel,
)
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    PERSPECTIVE,
    SELECTORS,
    bundle,
    embedding,
    expected,
    ids_of,
    scored,
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topn": 3}, "no argument 'topn': did you mean 'top_n'"),
        ({"k": 3}, "no argument 'k': did you mean 'top_n'"),
        ({"similarity_top_k": 3}, "no argument 'similarity_top_k': did you mean 'top_n'"),
        ({"lambda": 0.5}, "no argument 'lambda': did you mean 'lambda_mult'"),
        ({"search_type": "mmr"}, "no argument 'search_type': did you mean 'selector'"),
        ({"method": "mmr"}, "no argument 'method': did you mean 'selector'"),
        ({"fetch_k": 50}, r"no argument 'fetch_k'"),
        ({"banana": 3}, r"no argument 'banana': it has .*score_threshold.*top_n"),
        (
            {"lambda_mult": 0.5},
            r"selector 'ndpp' has no parameter 'lambda_mult' \(a parameter of 'mmr'\); allowed: kernel",
        ),
        (
            {"selector": "mmr", "lambda_mult": 0.5, "selector_kwargs": {"lambda_mult": 0.1}},
            "lambda_mult is given twice",
        ),
        ({"selector_kwargs": 5}, "selector_kwargs must be a dict, got int"),
        ({"selector_kwargs": np.ones(2)}, "selector_kwargs must be a dict, got ndarray"),
        ({"relevance": np.ones(2)}, "relevance must be a metadata key, a mapping by id or a function"),
        ({"perspective_vector": np.ones(2)}, "perspective_vector must be one of"),
        ({"scores": "yes"}, "scores must be True or False, got 'yes'"),
        ({"order": "best"}, "order must be one of selection, relevance"),
        ({"relevance_scale": "max"}, "relevance_scale must be one of"),
        ({"drop_duplicates": "no"}, "drop_duplicates must be True or False"),
        ({"selector": MMR(), "lambda_mult": 0.5}, "lambda_mult"),
        ({"selector": "mmr", "selector_kwargs": {"refine": True}}, "refine"),
        ({"selector": "best"}, r"unknown selector 'best'; known: .*vrsd"),
        ({"selector": 3}, "selector"),
        ({"selector": VRSD}, "selector"),
        ({"selector": "mmr", "lambda_mult": 2}, "lambda_mult"),
        ({"top_n": 0}, "top_n must be at least 1, got 0"),
        ({"top_n": True}, "top_n"),
        ({"top_n": 2.5}, "top_n"),
        ({"score_threshold": 1.01}, "score_threshold"),
        ({"score_threshold": float("nan")}, "score_threshold"),
        ({"budget": 3}, "a budget needs costs"),
        ({"budget": float("nan"), "costs": "stars"}, "finite"),
        ({"direction": "away"}, "direction"),
        ({"perspective": ""}, "empty"),
        ({"perspective": [0.0, 0.0]}, "zero"),
        ({"perspective": [[1.0]]}, "one vector"),
        ({"shown": "n1"}, "not one string"),
        ({"index": "the index"}, "index"),
    ],
    ids=str,
)
def test_wrong_settings_raise_at_construction(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SetSelectPostprocessor(**settings)


def test_the_retriever_declares_all_settings_of_a_selection_and_all_options_of_llamaindexs_retriever() -> None:
    declared = set(NodeOptions.__annotations__)
    selection = set(SelectionSettings.model_fields) - {"index", "vector_store"}
    search = set(inspect.signature(VectorIndexRetriever).parameters) - {"index", "similarity_top_k", "kwargs"}
    assert declared == selection | search | {"fetch_k", "vector_store_kwargs"}
    assert declared - set(ExampleOptions.__annotations__) == {"embed_model"}


def test_index_over_another_store(index: VectorStoreIndex) -> None:
    with pytest.raises(InvalidParameterError, match="another store"):
        SetSelectPostprocessor(index=index, vector_store=SimpleVectorStore())
    SetSelectPostprocessor(index=index, vector_store=index.vector_store)


@pytest.mark.parametrize("settings", SELECTORS, ids=str)
@pytest.mark.parametrize("way", ["dict", "json", "pickle", "copy", "deepcopy", "model_copy"])
def test_copies_select_the_same(
    way: str, settings: dict[str, Any], index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(
        index=index,
        top_n=5,
        perspective=embedding(PERSPECTIVE),
        corpus=True,
        shown=["n1"],
        costs="stars",
        budget=9.0,
        score_threshold=0.1,
        order="relevance",
        **settings,
    )
    wanted = [(n.node_id, n.score) for n in post.postprocess_nodes(nodes, bundle())]
    match way:
        case "dict":
            again = SetSelectPostprocessor.from_dict(post.to_dict(), index=index)
            assert again.to_dict() == post.to_dict()
        case "json":
            again = SetSelectPostprocessor.from_json(post.to_json(), index=index)
        case "pickle":
            again = pickle.loads(pickle.dumps(post))
        case "copy":
            again = copy.copy(post)
        case "deepcopy":
            again = copy.deepcopy(post)
            assert again.index is post.index
            assert again.shown is not None
        case _:
            again = post.model_copy(update={"scores": False})
    assert [(n.node_id, n.score) for n in again.postprocess_nodes(nodes, bundle())] == wanted


def test_settings_may_be_in_selector_kwargs_of_an_object_read_from_json() -> None:
    post = SetSelectPostprocessor(top_n=np.int64(3), selector_kwargs={"order": "relevance"})
    again = SetSelectPostprocessor.from_dict(json.loads(json.dumps(post.to_dict())))
    assert again.to_dict() == post.to_dict()


def test_to_dict_is_plain_and_leaves_out_runtime_objects(index: VectorStoreIndex) -> None:
    post = SetSelectPostprocessor(selector=MMR(lambda_mult=0.4), index=index, embed_model=MockEmbedding(embed_dim=2))
    data = json.loads(json.dumps(post.to_dict()))
    assert data["class_name"] == "SetSelectPostprocessor" == SetSelectPostprocessor.class_name()
    assert (data["selector"], data["selector_kwargs"]) == ("mmr", {"lambda_mult": 0.4})
    assert not {"index", "vector_store", "embed_model", "callback_manager"} & set(data)


@pytest.mark.parametrize(
    "settings",
    [
        {"selector": "mmr", "quality": len},
        {"costs": len},
        {"selector": "mmr", "relevance": len},
        {"selector": NDPP(LowRankKernel([[1.0]]))},
        {"selector": "ndpp", "kernel": LowRankKernel([[1.0]])},
    ],
    ids=str,
)
def test_to_dict_names_what_it_cannot_write(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="to_dict cannot write"):
        SetSelectPostprocessor(**settings).to_dict()


def test_to_dict_refuses_a_selector_without_a_name() -> None:
    class Own:
        def select(self, candidates: Candidates, k: int | None = None, *, budget: Any = None, shown: Any = ()) -> Any:
            return VRSD().select(candidates, 1, budget=budget, shown=shown)

    nodes = [TextNode(id_=i, text=i, embedding=v) for i, v in {"a": [1.0, 0.0], "b": [0.0, 1.0]}.items()]
    post = SetSelectPostprocessor(selector=Own(), top_n=1)
    assert ids_of(post.postprocess_nodes(scored(nodes), QueryBundle("q", embedding=[0.1, 1.0]))) == ["b"]
    with pytest.raises(InvalidParameterError, match="register_selector"):
        post.to_dict()


class Handler(LlamaDebugHandler):
    """A handler like those of tracing tools: it holds an object that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__(print_trace_on_end=False)
        self.sink = lambda event: None


def test_pickles_contain_no_callbacks(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    manager = CallbackManager([Handler()])
    post = SetSelectPostprocessor(index=index)
    post.callback_manager = manager
    again = pickle.loads(pickle.dumps(post))
    assert again.callback_manager.handlers == []
    assert post.callback_manager is manager
    assert ids_of(again.postprocess_nodes(nodes, bundle())) == expected(ALL, 4)


def test_pickling_does_not_drop_a_function(index: VectorStoreIndex) -> None:
    post = SetSelectPostprocessor(index=index, selector="mmr", quality=lambda node: 1.0)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(post)
    assert post.quality is not None
    assert post.callback_manager is not None
