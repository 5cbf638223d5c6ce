"""The postprocessor picks what the core picks, in the framework's own pipelines, and changes nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeWithScore, QueryBundle

from llamaindex_setselect import SetSelectPostprocessor
from shared_core import (
    NDPP,
    PAP,
    BudgetError,
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    LowRankKernel,
    PerspectiveError,
    SetSelectWarning,
)
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    PERSPECTIVE,
    QUERY,
    SELECTORS,
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
    scored,
    scores_of,
)


@pytest.mark.parametrize("settings", SELECTORS, ids=str)
def test_picks_and_scores_equal_the_cores(
    settings: dict[str, Any], index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    chosen = SetSelectPostprocessor(top_n=7, index=index, scores=True, **settings).postprocess_nodes(nodes, bundle())
    wanted = expected_selection(ALL, 7, **settings)
    assert ids_of(chosen) == [ALL[i] for i in wanted.indices]
    assert scores_of(chosen) == pytest.approx(wanted.relevance.tolist(), rel=1e-12)
    assert gains_of(chosen) == pytest.approx(wanted.gains.tolist(), rel=1e-12)
    assert model.texts == []
    assert model.queries == []


@pytest.mark.parametrize("kind", STORES)
def test_query_engine_end_to_end(kind: str, model: CountingEmbedding) -> None:
    index = make_index(kind, model)
    engine = index.as_query_engine(
        llm=MockLLM(),
        similarity_top_k=len(TEXTS),
        node_postprocessors=[SetSelectPostprocessor(top_n=5, index=index)],
        response_mode=ResponseMode.COMPACT,
    )
    response = engine.query(QUERY)
    # The retriever returns the nodes in the order of relevance, and ties depend on the order.
    order = [ALL[i] for i in expected_selection(ALL, len(ALL), "similarity").indices]
    assert ids_of(response.source_nodes) == expected(order, 5)
    assert model.queries == [QUERY], "the query is embedded by the retriever and not again"
    assert model.texts == []
    assert "selection_score" not in str(response), "MockLLM returns its prompt"


async def test_query_engine_asynchronously(index: VectorStoreIndex, model: CountingEmbedding) -> None:
    engine = index.as_query_engine(
        llm=MockLLM(), similarity_top_k=40, node_postprocessors=[SetSelectPostprocessor(top_n=5, index=index)]
    )
    response = await engine.aquery(QUERY)
    order = [ALL[i] for i in expected_selection(ALL, len(ALL), "similarity").indices]
    assert ids_of(response.source_nodes) == expected(order, 5)
    # LlamaIndex's async retriever does not put the embedding into the query bundle.
    assert model.asynchronous == [QUERY, QUERY]


async def test_async_selects_the_same(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(top_n=6, index=index, perspective=PERSPECTIVE)
    chosen = await post.apostprocess_nodes(nodes, query_str=QUERY)
    assert model.asynchronous == model.queries == [QUERY, PERSPECTIVE]
    assert [(n.node_id, n.score) for n in chosen] == [
        (n.node_id, n.score) for n in post.postprocess_nodes(nodes, query_str=QUERY)
    ]


def test_query_with_and_without_embedding(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(index=index)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(ALL, 4)
    assert model.queries == []
    assert ids_of(post.postprocess_nodes(nodes, query_str=QUERY)) == expected(ALL, 4)
    assert model.queries == [QUERY]
    custom = QueryBundle("other", custom_embedding_strs=["tea and sleep", "coffee and mood"])
    mean = np.mean([embedding("tea and sleep"), embedding("coffee and mood")], axis=0)
    assert ids_of(post.postprocess_nodes(nodes, custom)) == expected(ALL, 4, query=mean)


def test_embed_model_overrides_the_indexs(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    own = CountingEmbedding()
    SetSelectPostprocessor(index=index, embed_model=own).postprocess_nodes(nodes, query_str=QUERY)
    assert own.queries == [QUERY]


def test_no_query_is_an_error(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index)
    with pytest.raises(InvalidInputError, match="there is no query"):
        post.postprocess_nodes(nodes)
    with pytest.raises(InvalidInputError, match="the query is empty"):
        post.postprocess_nodes(nodes, query_str="")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_warning_names_similarity_top_k_where_there_is_nothing_to_select_from(
    count: int, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    post, same = SetSelectPostprocessor(top_n=4, index=index), SetSelectPostprocessor(top_n=4, index=index)
    same.callback_manager = post.callback_manager
    assert post.postprocess_nodes([], bundle()) == []
    with pytest.warns(SetSelectWarning, match=f"top_n=4 of {count} candidates.*Raise similarity_top_k"):
        chosen = post.postprocess_nodes(nodes[:count], bundle())
    assert sorted(ids_of(chosen)) == ALL[:count]
    # A second warning would be an error here.
    post.postprocess_nodes(nodes[:count], bundle())
    assert post == same


def test_no_warning_where_another_setting_has_an_effect(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    settings: list[dict[str, Any]] = [{"selector": "similarity"}, {"order": "relevance"}, {"score_threshold": 0.1}]
    for more in settings:
        SetSelectPostprocessor(top_n=4, index=index, **more).postprocess_nodes(nodes[:4], bundle())


@pytest.mark.parametrize("scores", [None, [-float(i) for i in range(len(TEXTS))], [float("nan")] * len(TEXTS)])
def test_scores_of_the_retriever_do_not_matter(scores: list[float | None] | None, index: VectorStoreIndex) -> None:
    chosen = SetSelectPostprocessor(index=index).postprocess_nodes(scored(make_nodes(), scores), bundle())
    assert ids_of(chosen) == expected(ALL, 4)


def test_duplicates_count_once_and_the_first_wins(index: VectorStoreIndex) -> None:
    twins = [node.model_copy(update={"metadata": {"stars": "twin"}}) for node in make_nodes()]
    chosen = SetSelectPostprocessor(index=index, top_n=40).postprocess_nodes(scored(make_nodes() + twins), bundle())
    assert sorted(ids_of(chosen)) == sorted(ALL)
    assert all(node.metadata["stars"] != "twin" for node in chosen)


def test_the_inputs_are_not_changed(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    query = QueryBundle(QUERY)
    before = [node.to_dict() for node in nodes]
    given = list(nodes)
    for scores in (True, False):
        post = SetSelectPostprocessor(index=index, scores=scores, perspective=PERSPECTIVE)
        for node in post.postprocess_nodes(nodes, query):
            node.score = -1.0
            if scores:
                node.metadata["mine"] = True
                node.node.excluded_llm_metadata_keys.append("mine")
    assert query == QueryBundle(QUERY)
    assert [node.to_dict() for node in nodes] == before
    assert all(a is b for a, b in zip(nodes, given, strict=True))


def test_scores_change_neither_prompt_nor_embedded_text(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    by_id = {n.node_id: n.node for n in nodes}
    first = SetSelectPostprocessor(index=index, top_n=8, scores=True).postprocess_nodes(nodes, bundle())
    second = SetSelectPostprocessor(index=index, scores=True, selector="mmr").postprocess_nodes(first, bundle())
    gains = dict(zip(ids_of(first), gains_of(first), strict=True))
    assert [gains[name] for name in ids_of(second)] == gains_of(second), "a key that is there keeps its value"
    for node in second:
        assert node.node.excluded_llm_metadata_keys.count("selection_score") == 1
        assert node.metadata["relevance_score"] == pytest.approx(node.score)
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert node.node.get_content(metadata_mode=mode) == by_id[node.node_id].get_content(metadata_mode=mode)


def test_the_nodes_themselves_come_back_with_the_cosine_as_score(
    index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    hashes = {n.node_id: n.node.hash for n in nodes}
    chosen = SetSelectPostprocessor(index=index).postprocess_nodes(nodes, bundle())
    by_id = {n.node_id: n.node for n in nodes}
    assert all(node.node is by_id[node.node_id] for node in chosen)
    assert [node.node.hash for node in chosen] == [hashes[node.node_id] for node in chosen]
    assert scores_of(chosen) == pytest.approx([float(matrix([i])[0] @ embedding(QUERY)) for i in ids_of(chosen)])


def test_kind_of_node_is_kept(model: CountingEmbedding) -> None:
    documents = [Document(id_=text, text=text, embedding=embedding(text)) for text in ("tea", "cocoa")]
    returned = SetSelectPostprocessor(top_n=1).postprocess_nodes([NodeWithScore(node=d) for d in documents], bundle())
    assert isinstance(returned[0].node, Document)
    assert returned[0].node in documents


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("as_text", [True, False])
def test_perspective(
    direction: str,
    corpus: bool,
    as_text: bool,
    index: VectorStoreIndex,
    model: CountingEmbedding,
    nodes: list[NodeWithScore],
) -> None:
    given: Any = PERSPECTIVE if as_text else np.asarray(embedding(PERSPECTIVE), np.float32)
    post = SetSelectPostprocessor(index=index, top_n=6, perspective=given, direction=direction, corpus=corpus)
    chosen = [post.postprocess_nodes(nodes, bundle()) for _ in range(2)][1]
    pap = PAP(embedding(PERSPECTIVE) if as_text else given, corpus=corpus, direction=direction)
    candidates = pap.apply(Candidates(embedding(QUERY), matrix(ALL)))
    wanted = NDPP().select(candidates, 6)
    assert ids_of(chosen) == [ALL[i] for i in wanted.indices]
    assert scores_of(chosen) == pytest.approx(wanted.relevance.tolist(), rel=1e-9)
    assert model.queries == ([PERSPECTIVE] if as_text else []), "a text is embedded once, not for each query"


def test_another_perspective_is_embedded(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(index=index, perspective="sleep")
    first = ids_of(post.postprocess_nodes(nodes, bundle()))
    post.perspective = "memory"
    assert ids_of(post.postprocess_nodes(nodes, bundle())) != first
    assert model.queries == ["sleep", "memory"]


def test_perspective_parallel_to_the_query(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, perspective=embedding(QUERY))
    with pytest.raises(PerspectiveError, match="parallel"):
        post.postprocess_nodes(nodes, bundle())


@pytest.mark.parametrize("source", ["stars", lambda node: node.metadata["stars"]], ids=["key", "function"])
def test_quality(source: Any, index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, selector="mmr", lambda_b=0.5, quality=source)
    stars = [i % 5 for i in range(len(ALL))]
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == expected(
        ALL, 4, "mmr", lambda_mult=0.5, lambda_b=0.5, quality=stars
    )


def test_missing_quality_names_the_node(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, selector="mmr", quality="price")
    with pytest.raises(InvalidInputError, match=r"'price'.*'n0'"):
        post.postprocess_nodes(nodes, bundle())


def test_budget(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    def words(node: BaseNode) -> float:
        return len(node.get_content(metadata_mode=MetadataMode.NONE).split())

    post = SetSelectPostprocessor(index=index, top_n=10, budget=17, costs=words)
    chosen = post.postprocess_nodes(nodes, bundle())
    costs = [len(text.split()) for text in TEXTS]
    assert ids_of(chosen) == expected(ALL, 10, costs=costs, budget=17)
    assert sum(words(n.node) for n in chosen) <= 17
    with pytest.raises(BudgetError, match="nothing fits"):
        SetSelectPostprocessor(index=index, budget=1, costs=words).postprocess_nodes(nodes, bundle())


@pytest.mark.parametrize("threshold", [-1.0, 0.3, 0.5, 1.0])
def test_threshold(threshold: float, index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    near = [i for i, cosine in zip(ALL, matrix(ALL) @ embedding(QUERY), strict=True) if cosine >= threshold]
    post = SetSelectPostprocessor(index=index, top_n=8, score_threshold=threshold)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == (expected(near, min(8, len(near))) if near else [])


def test_shown_nodes_count_as_picked_and_are_not_returned(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    first = ids_of(SetSelectPostprocessor(index=index, top_n=3).postprocess_nodes(nodes, bundle()))
    post = SetSelectPostprocessor(index=index, top_n=3, shown=[*first, first[0], "gone"])
    rest = ids_of(post.postprocess_nodes(nodes, bundle()))
    assert not set(first) & set(rest)
    assert rest == expected(ALL, 3, shown=[ALL.index(i) for i in sorted(first, key=ALL.index)])
    post.shown = tuple(ALL)
    assert post.postprocess_nodes(nodes, bundle()) == []


def test_kernel_rows_are_found_by_node_id(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    rows = np.random.default_rng(0).normal(size=(len(ALL), 6))
    names = ALL[::-1]
    post = SetSelectPostprocessor(index=index, selector="ndpp", kernel=LowRankKernel(rows, ids=names))
    wanted = expected(ALL, 4, NDPP(LowRankKernel(rows[::-1])))
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == wanted
    with pytest.raises(InvalidParameterError, match="kernel"):
        post.to_dict()


def test_threads_select_the_same(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    post = SetSelectPostprocessor(index=index, top_n=5, perspective=PERSPECTIVE)
    queries = [f"{text} and mood" for text in TEXTS]
    alone = [ids_of(post.postprocess_nodes(nodes, query_str=q)) for q in queries]
    fresh = SetSelectPostprocessor(index=index, top_n=5, perspective=PERSPECTIVE)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda q: ids_of(fresh.postprocess_nodes(nodes, query_str=q)), queries)) == alone
