"""What only Elasticsearch has: requests that servers before and after 9.2 answer with vectors, builders of documents,
and refusals. The client is real, the server is replayed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from langchain_setselect.stores.clients import ELASTICSEARCH as READER
from shared_core.errors import VectorSourceError
from tests.stores.cases import elasticsearch as cases
from tests.stores.harness import BY_TEXT, QUERIES, TableEmbeddings, fill
from tests.stores.replay.elastic import ElasticReplay, replay

QUERY = QUERIES["query 0"]


@pytest.fixture(params=[cases.OLD, cases.NEW])
def server(request: pytest.FixtureRequest) -> Iterator[ElasticReplay]:
    with replay("elasticsearch", request.param) as server:
        yield server


@pytest.fixture
def store(server: ElasticReplay) -> Iterator[Any]:
    store: Any = cases.langchain(server, TableEmbeddings(), "EUCLIDEAN_DISTANCE")
    fill(store)
    server.requests.clear()
    yield store
    store.close()


def vectors_of(documents: Any) -> list[list[float]]:
    return [BY_TEXT[document.page_content].vector for document in documents]


class TestLangChain:
    def test_the_one_request_is_the_stores_own_plus_the_vectors(self, server: ElasticReplay, store: Any) -> None:
        cases.own_search(store, QUERY, 40, **cases.RED)
        READER.search(store, QUERY, 40, **cases.RED)
        own, ours = server.requests
        assert ours.body == own.body | {"fields": ["vector"]}
        assert (ours.method, ours.path, ours.arguments) == (own.method, own.path, own.arguments)

    def test_queries_and_builders_of_ones_own(self, server: ElasticReplay, store: Any) -> None:
        def query(body: dict[str, Any], text: str | None) -> dict[str, Any]:
            assert text is None
            return body | {"fields": ["metadata"]}

        def build(hit: dict[str, Any]) -> Document:
            return Document(id=hit["_id"], page_content=hit["_source"]["text"], metadata={"keys": sorted(hit)})

        arguments: dict[str, Any] = {"custom_query": query, "doc_builder": build}
        documents, vectors = READER.search(store, QUERY, 30, **arguments)
        assert list(documents) == cases.own_search(store, QUERY, 30, **arguments)
        assert server.searches[0] == server.searches[1] | {"fields": ["metadata", "vector"]}
        np.testing.assert_array_equal(vectors, np.float32(vectors_of(documents)))

    def test_an_index_that_returns_no_vector_at_all_is_an_error(self, server: ElasticReplay, store: Any) -> None:
        server.indices["passages"].excluded = ["vector"]
        with pytest.raises(VectorSourceError, match="'passages', field 'vector'"):
            READER.search(store, QUERY, 5)

    def test_a_store_that_cannot_be_searched_by_vector_is_refused(self, server: ElasticReplay, store: Any) -> None:
        from elasticsearch.helpers.vectorstore import DenseVectorStrategy

        hybrid = cases.langchain(server, TableEmbeddings(), strategy=DenseVectorStrategy(hybrid=True))
        with pytest.raises(VectorSourceError, match="hybrid"):
            READER.search(hybrid, QUERY, 5)
        assert not server.requests
