"""Sub-questions and perspectives in LlamaIndex: behind a fusion, with texts of its own, with scores, and in copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import PAP, PerspectiveExtractor, QueryParts
from tests.llamaindex_setselect.nodes_and_indexes import (
    QUERY,
    TEXTS,
    bundle,
    embedding,
    ids_of,
    matrix,
    scores_of,
)

PARTS = ["does water change the mood", "digestion and juice"]
QUERIES = [QUERY, *PARTS]
WANTED = {f"n{TEXTS.index('water has effects on mood')}", f"n{TEXTS.index('juice has effects on digestion')}"}


def test_texts_of_the_querys_own_stay_one_query(index: VectorStoreIndex) -> None:
    bundle = QueryBundle(QUERY, custom_embedding_strs=["coffee in the evening", "tea in the morning"])
    retriever = SetSelectIndexRetriever(index, similarity_top_k=4, queries=PARTS, selector="similarity")
    mean = np.mean([embedding(text) for text in bundle.embedding_strs], axis=0)
    queries = np.array([mean / np.linalg.norm(mean), *map(embedding, PARTS)])
    highest = (np.array(list(map(embedding, TEXTS))) @ queries.T).max(axis=1)
    assert ids_of(retriever.retrieve(bundle)) == [f"n{i}" for i in np.argsort(-highest, kind="stable")[:4]]
    # Texts that are sub-questions become queries of their own.
    parts = QueryBundle(QUERY, custom_embedding_strs=PARTS)
    each = SetSelectIndexRetriever(index, similarity_top_k=4, queries=lambda question: parts.custom_embedding_strs)
    assert {*ids_of(each.retrieve(QUERY))} > WANTED


ROOT, SIDE = "effects of coffee and tea", "on sleep and memory"


def both_parts(query: str) -> QueryParts:
    return QueryParts(ROOT, SIDE)


@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("direction", ["remove", "emphasize"])
def test_the_score_of_a_node_is_the_cosine_after_the_projection(
    direction: Any, corpus: bool, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    settings: dict[str, Any] = {"perspective": SIDE, "direction": direction, "corpus": corpus}
    pap = PAP(embedding(SIDE), direction=direction, corpus=corpus)
    for found in (
        SetSelectPostprocessor(index=index, top_n=6, **settings).postprocess_nodes(nodes, bundle()),
        SetSelectIndexRetriever(index, similarity_top_k=6, fetch_k=15, **settings).retrieve(QUERY),
    ):
        vectors = matrix(ids_of(found))
        if corpus:
            vectors = np.array([pap.project(vector) for vector in vectors])
            vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        query = np.asarray(pap.project(embedding(QUERY)))
        assert scores_of(found) == pytest.approx((vectors @ query / np.linalg.norm(query)).tolist(), rel=1e-9)


def test_copies_share_extractors_and_pickles_contain_them(index: VectorStoreIndex) -> None:
    extractor = PerspectiveExtractor(both_parts)
    post = SetSelectPostprocessor(index=index, perspective=extractor)
    assert copy.deepcopy(post).perspective is copy.copy(post).perspective is extractor
    assert pickle.loads(pickle.dumps(SetSelectPostprocessor(perspective=both_parts))).perspective is both_parts
