"""What only OpenSearch has: fields of any name, hybrid search, serverless collections, and indexes that return no
vectors. The client is real, the server is replayed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from langchain_setselect.stores.clients import OPENSEARCH as READER
from shared_core.errors import VectorSourceError
from tests.stores.cases import opensearch as cases
from tests.stores.harness import (
    BY_ID,
    QUERIES,
    ROWS,
    TableEmbeddings,
    fetch_nodes,
    fill,
    nodes,
    own_search,
)
from tests.stores.replay.elastic import ElasticReplay, replay

QUERY = QUERIES["query 0"]


@pytest.fixture(params=[cases.OLD, cases.NEW])
def server(request: pytest.FixtureRequest) -> Iterator[ElasticReplay]:
    with replay("opensearch", request.param) as server:
        yield server


def stored(documents: Any) -> Any:
    return np.float32([BY_ID[document.id].vector for document in documents])


class TestLangChain:
    @pytest.fixture
    def store(self, server: ElasticReplay) -> Iterator[Any]:
        store = cases.langchain(server, TableEmbeddings())
        fill(store)
        server.requests.clear()
        yield store
        store.client.close()

    def test_fields_and_indices_of_ones_own(self, server: ElasticReplay, store: Any) -> None:
        names = {"vector_field": "embedding", "text_field": "content", "index_name": "other"}
        table = {row.text: row.vector for row in ROWS[:2]}
        store.add_embeddings(list(table.items()), ids=[row.id for row in ROWS[:2]], **names)
        documents, vectors = READER.search(store, QUERY, 2, **names)
        assert list(documents) == own_search(store, QUERY, 2, **names)
        np.testing.assert_array_equal(vectors, stored(documents))

    def test_an_index_that_returns_no_vector_at_all_is_an_error(self, server: ElasticReplay, store: Any) -> None:
        server.indices["passages"].excluded = ["vector_field"]
        with pytest.raises(VectorSourceError, match="'passages', field 'vector_field'"):
            READER.search(store, QUERY, 5)
        assert READER.fetch(store, [ROWS[0].id]) == {}


class _Serverless:
    """Credentials as for Amazon OpenSearch Serverless, which needs signed requests and generates ids of documents."""

    service = "aoss"

    def __call__(self, *request: Any) -> dict[str, str]:
        return {}


class TestLlamaIndex:
    @pytest.fixture(params=[{}, {"http_auth": _Serverless()}, {"excluded_source_fields": ["embedding"]}])
    def store(self, server: ElasticReplay, request: pytest.FixtureRequest) -> Iterator[Any]:
        store = cases.llamaindex(server, **request.param)
        store.add(nodes())
        server.requests.clear()
        yield store
        store.client._os_client.close()

    def test_one_request_in_any_order_without_what_is_not_there(self, server: ElasticReplay, store: Any) -> None:
        bare = next(s for s in server.indices["passages"].documents.values() if s["content"] == ROWS[1].text)
        del bare["embedding"]
        found = fetch_nodes(store, [ROWS[5].id, ROWS[1].id, "gone", ROWS[0].id])
        assert set(found) == {ROWS[0].id, ROWS[5].id}
        assert all(np.array_equal(vector, np.float32(BY_ID[name].vector)) for name, vector in found.items())
        assert fetch_nodes(store, []) == {}
        assert len(server.requests) == 1
