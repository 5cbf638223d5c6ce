"""What only Milvus has. Each test runs in the environment that has its packages: the two frameworks' stores need
different versions of the client."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from langchain_setselect.stores.clients import MILVUS as READER
from shared_core.errors import InvalidInputError, InvalidParameterError, VectorSourceError
from shared_core.stores.milvus import asearch_with_vectors, avectors_by_id, search_with_vectors, vectors_by_id
from tests.stores.cases.milvus import database, langchain_store, seal
from tests.stores.harness import (
    BY_TEXT,
    DIMENSION,
    FETCH_K,
    QUERIES,
    ROWS,
    TableEmbeddings,
    fill,
    needs,
    stored,
)

QUERY = QUERIES["query 7"]
NEAREST = sorted(ROWS, key=lambda row: float(np.linalg.norm(np.subtract(row.vector, QUERY))))[:FETCH_K]
NUMBERS = {"index_type": "FLAT", "metric_type": "L2", "params": {}}
WORDS = {"index_type": "SPARSE_INVERTED_INDEX", "metric_type": "BM25", "params": {}}
ODD_IDS = ["it's", 'say "hi"', "back\\slash", "ends\\", "a\nb\r\tc", "{braces}", "ünï ☃", "\x01", '"] or id != "', ""]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    needs("pymilvus", "milvus_lite")
    with database(tmp_path) as path:
        yield path


@pytest.fixture
def client(path: str) -> Iterator[Any]:
    from pymilvus import MilvusClient

    client = MilvusClient(path)
    yield client
    client.close()


def collection(client: Any, ids: list[Any], index: str = "FLAT", metric: str = "L2", **vector_settings: Any) -> str:
    """A collection with these ids and the vectors of the first rows."""
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False)
    kind = {"datatype": DataType.INT64} if isinstance(ids[0], int) else {"datatype": DataType.VARCHAR, "max_length": 99}
    schema.add_field("id", is_primary=True, **kind)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=DIMENSION)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type=index, metric_type=metric, params=vector_settings)
    indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    client.create_collection("rows", schema=schema, index_params=indexes)
    client.insert("rows", [{"id": i, "vector": r.vector, "words": {1: 1.0}} for i, r in zip(ids, ROWS, strict=False)])
    return "rows"


class TestTheCollection:
    """The core's functions, with both versions of the client."""

    @pytest.mark.parametrize("ids", [ODD_IDS, list(range(-5, 5))], ids=["odd strings", "integers"])
    async def test_vectors_by_any_id_in_any_order_without_those_unknown(
        self, client: Any, path: str, ids: list[Any]
    ) -> None:
        from pymilvus import AsyncMilvusClient

        name = collection(client, ids)
        asked = [*reversed(ids), ids[0], "gone" if isinstance(ids[0], str) else 99]
        async with AsyncMilvusClient(path) as aclient:
            for found in (
                vectors_by_id(client, name, asked, field="vector"),
                await avectors_by_id(aclient, name, asked, field="vector"),
            ):
                assert set(found) == set(ids)
                np.testing.assert_array_equal([found[name] for name in ids], stored(ROWS[: len(ids)]))
        assert vectors_by_id(client, name, asked[-1:], field="vector") == {}

    async def test_a_query_of_another_length_is_refused_where_milvus_gives_no_reason(
        self, client: Any, path: str
    ) -> None:
        from pymilvus import AsyncMilvusClient

        name = collection(client, list(range(64)), "HNSW")
        seal(client, path, name)
        async with AsyncMilvusClient(path) as aclient:
            with pytest.raises(InvalidInputError, match=r"\b5\b.*\b32\b"):
                search_with_vectors(client, name, [1.0] * 5, 2, field="vector")
            with pytest.raises(InvalidInputError, match=r"\b5\b.*\b32\b"):
                await asearch_with_vectors(aclient, name, [1.0] * 5, 2, field="vector")

    def test_a_field_without_dense_vectors_is_refused(self, client: Any) -> None:
        name = collection(client, ["a", "b"])
        with pytest.raises(VectorSourceError, match=r"'words'.*sparse_float_vector"):
            search_with_vectors(client, name, {1: 1.0}, 2, field="words")  # type: ignore[arg-type]
        with pytest.raises(VectorSourceError, match="'words'"):
            vectors_by_id(client, name, ["a"], field="words")


class TestWhatAServerSends:
    """Types of vectors that Milvus Lite does not have: the client's own results, built from a server's messages."""

    @staticmethod
    def search(values: dict[str, Any], valid: tuple[bool, ...] = ()) -> Any:
        """Search through a client that answers with three rows of four dimensions."""
        needs("pymilvus")
        from pymilvus.client.search_result import SearchResult
        from pymilvus.grpc_gen import schema_pb2

        column = schema_pb2.FieldData(
            field_name="vector",
            type=schema_pb2.DataType.FloatVector,
            vectors=schema_pb2.VectorField(dim=4, **values),
            valid_data=valid,
        )
        ids = schema_pb2.IDs(str_id=schema_pb2.StringArray(data=["a", "b", "c"]))
        answer = schema_pb2.SearchResultData(
            num_queries=1, top_k=3, topks=[3], ids=ids, scores=[3, 2, 1], fields_data=[column], output_fields=["vector"]
        )
        client = SimpleNamespace(search=lambda *_, **__: SearchResult(answer))
        return search_with_vectors(client, "rows", QUERY, 3, field="vector")

    NUMBERS = np.array([[1, -2, 0.5, 3], [0.25, 100, -0.125, 7], [-1, 64, 2, 12]], dtype=np.float32)

    @pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
    def test_narrower_numbers_are_widened_exactly(self, kind: str) -> None:
        numbers = np.rint(self.NUMBERS) if kind == "int8" else self.NUMBERS
        sent: Any = {
            # The upper half of each number. These numbers need no more bits.
            "bfloat16": lambda: b"".join(struct.pack("<f", x)[2:] for x in numbers.ravel()),
            "float16": lambda: numbers.astype("<f2").tobytes(),
            "int8": lambda: numbers.astype(np.int8).tobytes(),
        }[kind]()
        vectors = self.search({f"{kind}_vector": sent})[1]
        assert vectors.dtype == np.float32
        np.testing.assert_array_equal(vectors, numbers)

    @pytest.mark.parametrize("packed", [True, False])
    def test_a_row_without_a_vector_is_none_and_the_others_keep_theirs(self, packed: bool) -> None:
        rows = self.NUMBERS[[0, 2]] if packed else self.NUMBERS * [[1], [0], [1]]
        hits, vectors = self.search({"float_vector": {"data": rows.ravel().tolist()}}, (True, False, True))
        assert [hit["id"] for hit in hits] == ["a", "b", "c"]
        assert vectors[1] is None
        np.testing.assert_array_equal([vectors[0], vectors[2]], self.NUMBERS[[0, 2]])


class OtherEmbeddings(TableEmbeddings):
    """A second model, whose vectors are those of the first in reverse order."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row[::-1] for row in super().embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query(text)[::-1]


def exact(documents: Any, vectors: Any, way: int = 1) -> bool:
    return np.array_equal(vectors, stored(BY_TEXT[document.page_content] for document in documents)[:, ::way])


@contextmanager
def opened(embeddings: Any, path: str, **settings: Any) -> Iterator[Any]:
    with langchain_store(embeddings, Path(path).parent, "FLAT", "L2", **settings) as store:
        yield store


class TestLangChain:
    @pytest.mark.parametrize("auto_id", [False, True])
    def test_keys_are_found_by_a_store_that_does_not_know_their_type(self, path: str, auto_id: bool) -> None:
        with opened(TableEmbeddings(), path, auto_id=auto_id) as store:
            names = ["11", "-12", "013"]
            store.add_texts([row.text for row in ROWS[:3]], ids=names)
            assert READER.fetch(store, ["another's"]) == {}
            store.auto_id = False
            documents = store.similarity_search_by_vector(QUERY, k=3)
            ids = [READER.id_of(store, document) for document in documents]
            found = READER.fetch(store, [*ids, "99"])
            assert set(found) == set(ids)
            assert exact(documents, [found[name] for name in ids])
            if not auto_id:
                assert set(ids) == set(names)

    def test_dense_vectors_are_searched_and_sparse_ones_are_not(self, path: str) -> None:
        needs("langchain_milvus")
        from langchain_milvus import BM25BuiltInFunction

        words = BM25BuiltInFunction(output_field_names="sparse")
        fields = {"vector_field": ["vector", "sparse"], "index_params": [NUMBERS, WORDS], "search_params": None}
        with opened(TableEmbeddings(), path, builtin_function=words, **fields) as store:
            fill(store)
            documents, vectors = READER.search(store, QUERY, FETCH_K)
            assert [document.page_content for document in documents] == [row.text for row in NEAREST]
            assert all(document.metadata.keys() == {"pk", "colour", "number"} for document in documents)
            assert exact(documents, vectors)

    def test_one_of_two_dense_fields_must_be_named(self, path: str) -> None:
        both = [TableEmbeddings(), OtherEmbeddings()]
        settings: dict[str, Any] = {"vector_field": ["one", "two"], "index_params": None, "search_params": None}
        with opened(both, path, **settings) as store:
            fill(store)
            with pytest.raises(InvalidParameterError, match=r"2 of .*'one', 'two'.*anns_field="):
                READER.search(store, QUERY, FETCH_K)
            documents, vectors = READER.search(store, QUERY, FETCH_K, anns_field="two")
            assert exact(documents, vectors, -1)
            assert READER.fetch(store, [documents[0].metadata["pk"]]) == {}
