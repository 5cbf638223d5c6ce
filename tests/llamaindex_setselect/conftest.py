from __future__ import annotations

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore

from llamaindex_setselect import vectors
from shared_core.retrieval import telling
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding, make_index, make_nodes, scored


@pytest.fixture
def model() -> CountingEmbedding:
    return CountingEmbedding()


@pytest.fixture
def index(model: CountingEmbedding) -> VectorStoreIndex:
    return make_index("simple", model)


@pytest.fixture
def nodes() -> list[NodeWithScore]:
    return scored(make_nodes())


@pytest.fixture(autouse=True)
def _sources_and_warnings_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "FALLBACKS", set())
    monkeypatch.setattr(vectors, "_READERS", dict(vectors._READERS))
