"""Perspectives in LlamaIndex: scores, HyDE, ``to_dict`` and copies. tests/adapters has what the adapters share."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import PAP, InvalidParameterError, PerspectiveExtractor, QueryParts
from tests.llamaindex_setselect.nodes_and_indexes import QUERY, bundle, embedding, ids_of, matrix, scores_of

ROOT, SIDE = "effects of coffee and tea", "on sleep and memory"


def both_parts(query: str) -> QueryParts:
    return QueryParts(ROOT, SIDE)


@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("direction", ["remove", "emphasize"])
def test_the_score_of_a_node_is_the_cosine_after_the_projection(
    direction: Any, corpus: bool, index: VectorStoreIndex, nodes: list[NodeWithScore]
) -> None:
    settings: dict[str, Any] = {"top_n": 6, "perspective": SIDE, "direction": direction, "corpus": corpus}
    pap = PAP(embedding(SIDE), direction=direction, corpus=corpus)
    for found in (
        SetSelectPostprocessor(index=index, **settings).postprocess_nodes(nodes, bundle()),
        SetSelectIndexRetriever(index, fetch_k=15, **settings).retrieve(QUERY),
    ):
        vectors = matrix(ids_of(found))
        if corpus:
            vectors = np.array([pap.project(vector) for vector in vectors])
            vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        query = np.asarray(pap.project(embedding(QUERY)))
        assert scores_of(found) == pytest.approx((vectors @ query / np.linalg.norm(query)).tolist(), rel=1e-9)


def test_extractors_are_not_written_copies_share_them_and_pickles_contain_them(index: VectorStoreIndex) -> None:
    extractor = PerspectiveExtractor(both_parts)
    post = SetSelectPostprocessor(index=index, perspective=extractor)
    with pytest.raises(InvalidParameterError, match="perspective"):
        post.to_dict()
    assert copy.deepcopy(post).perspective is copy.copy(post).perspective is extractor
    assert pickle.loads(pickle.dumps(SetSelectPostprocessor(perspective=both_parts))).perspective is both_parts
