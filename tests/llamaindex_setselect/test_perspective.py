"""The query is projected as in the core, whatever form ``perspective=`` has."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import PAP, Candidates, Coverage, InvalidParameterError, PerspectiveError, match_words
from shared_core.signals.extraction import PerspectiveExtractor, QueryParts
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    TEXTS,
    CountingEmbedding,
    bundle,
    embedding,
    ids_of,
    matrix,
    scores_of,
)

ROOT, SIDE = "effects of coffee and tea", "on sleep and memory"
PARTS = QueryParts(ROOT, SIDE)


def explicit(
    p: Sequence[float] | None, ids: Sequence[str], k: int, question: str, **settings: Any
) -> tuple[list[str], list[float]]:
    """What the core picks from ``ids`` under an explicit projection on ``p``, with the words of ``question``."""
    words = match_words(question, [TEXTS[int(i[1:])] for i in ids])
    candidates = Candidates(embedding(QUERY), matrix(ids), words=words)
    if p is not None:
        candidates = PAP(p, **settings).apply(candidates)
    chosen = Coverage().select(candidates, k)
    return [ids[i] for i in chosen.indices], chosen.relevance.tolist()


def nearest(p: Sequence[float] | None, n: int, direction: str = "remove") -> list[str]:
    query = embedding(QUERY) if p is None else PAP(p, direction=direction).project(embedding(QUERY))
    order = np.argsort(-(matrix(ALL) @ np.asarray(query)), kind="stable")[:n]
    return [ALL[i] for i in order]


def how_of(setting: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in setting.items() if name in ("corpus", "direction")}


def words_of(setting: dict[str, Any]) -> str:
    """The question without the words of a perspective that is removed and whose text is known."""
    known = setting["perspective"] in (SIDE, one_side, both_parts) or isinstance(
        setting["perspective"], PerspectiveExtractor
    )
    return ROOT if known and "direction" not in setting else QUERY


def one_side(query: str) -> str:
    return SIDE


def both_parts(query: str) -> QueryParts:
    return PARTS


def nothing(query: str) -> None:
    return None


TEXT = embedding(SIDE)
DIFFERENCE = (np.array(embedding(QUERY)) - np.array(embedding(ROOT))).tolist()
FORMS: list[Any] = [
    ({"perspective": SIDE}, TEXT),
    ({"perspective": TEXT}, TEXT),
    ({"perspective": one_side}, TEXT),
    ({"perspective": both_parts}, TEXT),
    ({"perspective": PerspectiveExtractor(both_parts)}, TEXT),
    ({"perspective": both_parts, "perspective_vector": "difference"}, DIFFERENCE),
    ({"perspective": PerspectiveExtractor(both_parts), "perspective_vector": "difference"}, DIFFERENCE),
    ({"perspective": nothing}, None),
    ({"perspective": nothing, "perspective_vector": "difference"}, None),
    ({"perspective": lambda query: QueryParts(query, "tea"), "perspective_vector": "difference"}, None),
    ({"perspective": SIDE, "corpus": True}, TEXT),
    ({"perspective": SIDE, "direction": "emphasize"}, TEXT),
]


@pytest.mark.parametrize(("setting", "p"), FORMS)
@pytest.mark.parametrize("embedded", [True, False])
async def test_the_postprocessor_projects_like_the_core(
    setting: dict[str, Any],
    p: list[float] | None,
    embedded: bool,
    index: VectorStoreIndex,
    nodes: list[NodeWithScore],
) -> None:
    wanted, relevance = explicit(p, ALL, 6, words_of(setting), **how_of(setting))
    asked = bundle() if embedded else QueryBundle(QUERY)
    post = SetSelectPostprocessor(top_n=6, index=index, **setting)
    for chosen in (post.postprocess_nodes(nodes, asked), await post.apostprocess_nodes(nodes, asked)):
        assert ids_of(chosen) == wanted
        assert scores_of(chosen) == pytest.approx(relevance, rel=1e-9)


@pytest.mark.parametrize(("setting", "p"), FORMS)
async def test_the_retriever_searches_and_selects_with_the_projection(
    setting: dict[str, Any], p: list[float] | None, index: VectorStoreIndex
) -> None:
    how = how_of(setting)
    fetched = nearest(p, 15, how.get("direction", "remove"))
    wanted, relevance = explicit(p, fetched, 5, words_of(setting), **how)
    retriever = SetSelectIndexRetriever(index, top_n=5, fetch_k=15, **setting)
    for chosen in (retriever.retrieve(QUERY), await retriever.aretrieve(QUERY)):
        assert ids_of(chosen) == wanted
        assert scores_of(chosen) == pytest.approx(relevance, rel=1e-9)


async def test_the_async_path_awaits_the_extractor_and_the_model(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    awaited = []

    def split(query: str) -> QueryParts:
        raise AssertionError("the async path must not block")

    async def asplit(query: str) -> QueryParts:
        awaited.append(query)
        return PARTS

    post = SetSelectPostprocessor(top_n=4, index=index, perspective=PerspectiveExtractor(split, asplit))
    await post.apostprocess_nodes(nodes, QueryBundle(QUERY))
    assert awaited == [QUERY]
    assert model.asynchronous == [QUERY, SIDE]


def test_a_perspective_is_embedded_once_while_it_stays_the_same(
    index: VectorStoreIndex, model: CountingEmbedding, nodes: list[NodeWithScore]
) -> None:
    post = SetSelectPostprocessor(top_n=4, index=index, perspective=lambda query: query.split()[-1])
    plain = {side: SetSelectPostprocessor(top_n=4, index=index, perspective=side) for side in ("memory", "mood")}
    for side in ("memory", "memory", "mood", "memory"):
        asked = QueryBundle(f"tea and {side}", embedding=embedding(QUERY))
        assert ids_of(post.postprocess_nodes(nodes, asked)) == ids_of(plain[side].postprocess_nodes(nodes, asked))
    assert model.queries == ["memory", "memory", "mood", "mood", "memory"]


async def test_with_hyde_the_difference_uses_the_query_itself(
    index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    """HyDE searches for hypothetical documents instead of the query. The perspective is still the query's."""
    asked = QueryBundle(QUERY, custom_embedding_strs=["tea has effects on mood"])
    settings: dict[str, Any] = {"top_n": 4, "index": index, "selector": "ndpp"}
    post = SetSelectPostprocessor(perspective=both_parts, perspective_vector="difference", **settings)
    plain = SetSelectPostprocessor(perspective=DIFFERENCE, **settings)
    assert ids_of(post.postprocess_nodes(nodes, asked)) == ids_of(plain.postprocess_nodes(nodes, asked))
    assert ids_of(await post.apostprocess_nodes(nodes, asked)) == ids_of(plain.postprocess_nodes(nodes, asked))


@pytest.mark.parametrize("make", [SetSelectPostprocessor, SetSelectIndexRetriever])
def test_impossible_settings_are_refused_at_construction(make: Any, index: VectorStoreIndex) -> None:
    for perspective in (SIDE, TEXT):
        with pytest.raises(InvalidParameterError, match="needs the root query"):
            make(index=index, perspective=perspective, perspective_vector="difference")
    for name in ("root", "auto"):
        with pytest.raises(InvalidParameterError, match="perspective_vector"):
            make(index=index, perspective=both_parts, perspective_vector=name)
    with pytest.raises(InvalidParameterError, match="direction"):
        make(index=index, perspective=both_parts, direction="auto")


def test_a_function_without_a_root_cannot_give_a_difference(index: VectorStoreIndex) -> None:
    retriever = SetSelectIndexRetriever(index, perspective=one_side, perspective_vector="difference")
    with pytest.raises(PerspectiveError, match=r"return QueryParts\(root, perspective\)"):
        retriever.retrieve(QUERY)


@pytest.mark.parametrize("perspective", [one_side, PerspectiveExtractor(both_parts)])
def test_to_dict_refuses_functions_and_extractors(perspective: Any, index: VectorStoreIndex) -> None:
    with pytest.raises(InvalidParameterError, match="a function or an extractor"):
        SetSelectPostprocessor(index=index, perspective=perspective).to_dict()


def test_copies_share_the_extractor_and_pickles_contain_it(index: VectorStoreIndex, nodes: list[NodeWithScore]) -> None:
    extractor = PerspectiveExtractor(both_parts)
    post = SetSelectPostprocessor(top_n=4, index=index, perspective=extractor)
    assert copy.deepcopy(post).perspective is extractor
    assert copy.copy(post).perspective is extractor
    carried = pickle.loads(pickle.dumps(SetSelectPostprocessor(top_n=4, perspective=both_parts)))
    assert carried.perspective is both_parts
