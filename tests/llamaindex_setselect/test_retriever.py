"""The retriever searches, selects and returns; it embeds the query once, and no node."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llamaindex_setselect import SetSelectIndexRetriever
from shared_core import MMR, PAP, Candidates, InvalidParameterError, SetSelectWarning, TopK
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    PERSPECTIVE,
    QUERY,
    STORES,
    TEXTS,
    CountingEmbedding,
    bundle,
    embedding,
    expected,
    expected_selection,
    gains_of,
    ids_of,
    make_index,
    make_nodes,
    matrix,
    scores_of,
)

COFFEE = MetadataFilters(filters=[MetadataFilter(key="subject", value="coffee")])


def nearest(count: int, query: Any = None) -> list[str]:
    cosines = matrix(ALL) @ (embedding(QUERY) if query is None else np.asarray(query))
    return [ALL[i] for i in np.argsort(-cosines, kind="stable")[:count]]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("settings", [{}, {"selector": "mmr", "lambda_mult": 0.5}, {"selector": MMR(0.2)}], ids=str)
def test_picks_equal_the_cores(kind: str, settings: dict[str, Any], model: CountingEmbedding) -> None:
    retriever = SetSelectIndexRetriever(make_index(kind, model), top_n=5, scores=True, **settings)
    chosen = retriever.retrieve(QUERY)
    wanted = expected_selection(nearest(25), 5, **settings)
    assert ids_of(chosen) == [nearest(25)[i] for i in wanted.indices]
    assert scores_of(chosen) == pytest.approx(wanted.relevance.tolist(), rel=1e-5)
    assert gains_of(chosen) == pytest.approx(wanted.gains.tolist(), abs=1e-5)
    assert model.queries == [QUERY]
    assert model.texts == []


@pytest.mark.parametrize("kind", STORES)
async def test_async_selects_the_same(kind: str, model: CountingEmbedding) -> None:
    retriever = SetSelectIndexRetriever(make_index(kind, model), top_n=5, perspective=PERSPECTIVE)
    chosen = await retriever.aretrieve(QUERY)
    assert model.asynchronous == model.queries == [QUERY, PERSPECTIVE]
    assert ids_of(chosen) == ids_of(retriever.retrieve(QUERY))
    assert model.texts == []


def test_a_bundle_with_an_embedding_is_not_changed(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    retriever = SetSelectIndexRetriever(index, perspective=embedding(PERSPECTIVE))
    query = bundle()
    retriever.retrieve(query)
    assert query == bundle()
    assert model.queries == []
    plain = QueryBundle(QUERY)
    retriever.retrieve(plain)
    assert plain == QueryBundle(QUERY)


@pytest.mark.parametrize(("top_n", "fetch_k", "searched"), [(4, None, 20), (6, None, 30), (4, 5, 5), (4, 40, 40)])
def test_fetch_k(top_n: int, fetch_k: int | None, searched: int, index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=top_n, fetch_k=fetch_k)
    assert ids_of(retriever.retrieve(QUERY)) == expected(nearest(searched), top_n)


def test_a_warning_names_fetch_k_where_there_is_nothing_to_select_from(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=4, fetch_k=4)
    with pytest.warns(SetSelectWarning, match="top_n=4 of 4 candidates.*Raise fetch_k"):
        assert sorted(ids_of(retriever.retrieve(QUERY))) == sorted(nearest(4))
    # A second warning would be an error here.
    retriever.retrieve(QUERY)


def test_larger_than_the_index(index: VectorStoreIndex) -> None:
    assert sorted(ids_of(SetSelectIndexRetriever(index, top_n=100).retrieve(QUERY))) == sorted(ALL)


@pytest.mark.parametrize("kind", STORES)
def test_empty_index(kind: str, model: CountingEmbedding) -> None:
    assert SetSelectIndexRetriever(make_index(kind, model, [])).retrieve(QUERY) == []


def test_filters_are_kept(index: VectorStoreIndex) -> None:
    chosen = SetSelectIndexRetriever(index, top_n=5, filters=COFFEE).retrieve(QUERY)
    coffee = [i for i in nearest(len(ALL)) if TEXTS[int(i[1:])].startswith("coffee")]
    assert ids_of(chosen) == expected(coffee, 5)


def test_options_of_the_vector_retriever_reach_it(index: VectorStoreIndex) -> None:
    few = ["n3", "n9", "n14", "n22"]
    assert ids_of(SetSelectIndexRetriever(index, top_n=2, node_ids=few).retrieve(QUERY)) == expected(
        [i for i in nearest(len(ALL)) if i in few], 2
    )
    retriever = SetSelectIndexRetriever(index, vector_store_query_mode="hybrid")
    with pytest.raises(ValueError, match="Invalid query mode"):
        retriever.retrieve(QUERY)


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("kind", ["simple", "flat ip", "flat l2"])
def test_store_is_searched_with_the_projected_query(
    kind: str, corpus: bool, direction: str, model: CountingEmbedding
) -> None:
    pap = PAP(embedding(PERSPECTIVE), corpus=corpus, direction=direction)
    found = nearest(10, pap.project(embedding(QUERY)))
    assert set(found) != set(nearest(10)), "otherwise this test shows nothing"
    wanted = TopK().select(pap.apply(Candidates(embedding(QUERY), matrix(found))), 10)
    retriever = SetSelectIndexRetriever(
        make_index(kind, model),
        top_n=10,
        fetch_k=10,
        order="relevance",
        perspective=PERSPECTIVE,
        corpus=corpus,
        direction=direction,
    )
    chosen = retriever.retrieve(QUERY)
    assert ids_of(chosen) == [found[i] for i in wanted.indices]
    assert scores_of(chosen) == pytest.approx(wanted.relevance.tolist(), rel=1e-5, abs=1e-6)


def test_shown_by_constructor_and_later(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=3, fetch_k=10)
    first = ids_of(retriever.retrieve(QUERY))
    retriever.shown = first
    assert retriever.shown == tuple(first)
    found = nearest(13)
    wanted = expected(found, 3, shown=[found.index(i) for i in sorted(first, key=found.index)])
    assert ids_of(retriever.retrieve(QUERY)) == wanted
    assert ids_of(SetSelectIndexRetriever(index, top_n=3, fetch_k=10, shown=first).retrieve(QUERY)) == wanted
    assert not set(wanted) & set(first)
    retriever.shown = ()
    assert ids_of(retriever.retrieve(QUERY)) == first
    with pytest.raises(InvalidParameterError, match="not one string"):
        retriever.shown = "n1"


def test_budget_quality_and_threshold(index: VectorStoreIndex) -> None:
    found = nearest(20)
    costs = [int(i[1:]) % 5 for i in found]
    retriever = SetSelectIndexRetriever(index, top_n=4, fetch_k=20, budget=5, costs="stars", score_threshold=0.2)
    assert ids_of(retriever.retrieve(QUERY)) == expected(found, 4, costs=costs, budget=5)
    filled = SetSelectIndexRetriever(index, fetch_k=20, budget=5, costs="stars").retrieve(QUERY)
    assert ids_of(filled) == expected(found, None, costs=costs, budget=5)
    assert len(filled) > 4, "without top_n only the budget ends the selection"
    retriever = SetSelectIndexRetriever(index, selector="mmr", lambda_b=0.5, quality="stars")
    assert ids_of(retriever.retrieve(QUERY)) == expected(found, 4, "mmr", lambda_mult=0.5, lambda_b=0.5, quality=costs)
    assert SetSelectIndexRetriever(index, score_threshold=1).retrieve(QUERY) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_n": 5, "fetch_k": 4}, "fetch_k .from which k=5 are selected. must be at least 5, got 4"),
        ({"top_n": 0}, "top_n"),
        ({"fetch_k": 7.5}, "fetch_k"),
        (
            {"similarity_top_k": 9},
            "SetSelectIndexRetriever has no argument 'similarity_top_k': did you mean 'top_n'",
        ),
        (
            {"lambda_mult": 0.5},
            r"selector 'ndpp' has no parameter 'lambda_mult' \(a parameter of 'mmr'\); allowed: kernel",
        ),
        ({"lambda": 0.5}, "no argument 'lambda': did you mean 'lambda_mult'"),
        ({"filter": None}, "no argument 'filter': did you mean 'filters'"),
        ({"selector": "mmr", "lambda_mult": 0.5, "selector_kwargs": {"lambda_mult": 0.5}}, "given twice"),
        ({"selector": "best"}, "unknown selector"),
        ({"vector_store": None}, "vector_store"),
        ({"budget": 3}, "costs"),
        ({"shown": "n1"}, "not one string"),
    ],
    ids=str,
)
def test_wrong_options_raise_at_construction(settings: dict[str, Any], message: str, index: VectorStoreIndex) -> None:
    with pytest.raises(ValueError, match=message):
        SetSelectIndexRetriever(index, **settings)


def test_later_inserts_are_found(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index)
    index.insert_nodes([TextNode(id_="new", text=QUERY)])
    assert retriever.retrieve(QUERY)[0].node_id == "new"


def test_in_a_query_engine(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    retriever = SetSelectIndexRetriever(index, top_n=5)
    response = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query(QUERY)
    assert ids_of(response.source_nodes) == expected(nearest(25), 5)
    assert "selection_score" not in str(response)
    assert model.texts == []


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_index_nodes_are_followed_after_the_selection(asynchronous: bool, model: CountingEmbedding) -> None:
    behind = TextNode(id_="behind", text="what the pointer points to")
    pointer = IndexNode(id_="pointer", text=QUERY, index_id="there", obj=behind)
    index = VectorStoreIndex(make_nodes(), objects=[pointer], embed_model=model)
    other = TextNode(id_="other", text="what another map says")
    for retriever, wanted in (
        (SetSelectIndexRetriever(index), "behind"),
        (SetSelectIndexRetriever(index, object_map={"there": other}), "other"),
    ):
        chosen = await retriever.aretrieve(QUERY) if asynchronous else retriever.retrieve(QUERY)
        assert ids_of(chosen)[0] == wanted


def test_framework_settings(index: VectorStoreIndex) -> None:
    manager = CallbackManager()
    retriever = SetSelectIndexRetriever(index, callback_manager=manager)
    assert retriever.callback_manager is manager
    assert retriever.vector_source == "store: SimpleVectorStore"


@pytest.mark.parametrize("way", [copy.copy, lambda r: pickle.loads(pickle.dumps(r))], ids=["copy", "pickle"])
def test_copies_select_the_same(way: Any, index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, perspective=PERSPECTIVE, selector="mmr", lambda_mult=0.3)
    assert ids_of(way(retriever).retrieve(QUERY)) == ids_of(retriever.retrieve(QUERY))


@pytest.mark.parametrize("kind", ["simple", "flat ip", "idmap2"])
def test_threads_select_the_same(kind: str, model: CountingEmbedding) -> None:
    index = make_index(kind, model)
    queries = [f"{text} and mood" for text in TEXTS]
    retriever = SetSelectIndexRetriever(index, perspective=PERSPECTIVE)
    alone = [ids_of(retriever.retrieve(q)) for q in queries]
    fresh = SetSelectIndexRetriever(make_index(kind, model), perspective=PERSPECTIVE)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda q: ids_of(fresh.retrieve(q)), queries)) == alone
