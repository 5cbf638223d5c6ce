"""The stores' own searches by words as extra retrievers, as the table of docs/keyword-search.md has them."""

from __future__ import annotations

import uuid
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from tests.adapters.bindings import RETRIEVERS, ROWS, Subject, _node
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding
from tests.stores.harness import needs

LANGCHAIN, LLAMAINDEX = RETRIEVERS
# The words of many rows, of which the vector search finds two.
QUESTION = "loud violin"
# Qdrant takes UUIDs only.
WITH_UUIDS = [row._replace(id=str(uuid.UUID(int=i + 1))) for i, row in enumerate(ROWS)]


def sparse(text: str) -> tuple[list[int], list[float]]:
    """The words of a text as a sparse vector."""
    counts = Counter(zlib.crc32(word.encode()) for word in text.lower().split())
    return [*counts], [float(count) for count in counts.values()]


def check(subject: Subject, store: Any, by_words: Any) -> None:
    """What has a word of the question joins the candidates by its id, and nothing is embedded."""
    told: list[Any] = []
    made = subject.make(store, k=2, fetch_k=2, extra_retrievers=by_words)
    subject.model(store).counts()
    subject.run(made, told=told, query=QUESTION)
    assert subject.model(store).counts()[1] == 0
    (report,) = told[0]["extra_retrievers"]
    assert report["error"] is None
    assert len(report["found"]) > 10
    assert report["added"]
    known = {row.id: row.text for row in [*ROWS, *WITH_UUIDS]}
    assert all({*known[name].split()} & {"loud", "violin"} for name in report["found"])
    assert any({"loud", "violin"} <= {*known[name].split()} for name in report["found"])


def test_qdrant_in_langchain() -> None:
    needs("langchain_qdrant")
    from langchain_qdrant import QdrantVectorStore, RetrievalMode
    from langchain_qdrant.sparse_embeddings import SparseEmbeddings, SparseVector
    from qdrant_client import QdrantClient, models

    class Words(SparseEmbeddings):
        def embed_query(self, text: str) -> SparseVector:
            indices, values = sparse(text)
            return SparseVector(indices=indices, values=values)

        def embed_documents(self, texts: list[str]) -> list[SparseVector]:
            return list(map(self.embed_query, texts))

    client = QdrantClient(":memory:")
    client.create_collection(
        "rows",
        vectors_config=models.VectorParams(size=48, distance=models.Distance.COSINE),
        sparse_vectors_config={"langchain-sparse": models.SparseVectorParams()},
    )
    more: dict[str, Any] = {"sparse_embedding": Words()}
    filled = QdrantVectorStore(client, "rows", WordEmbeddings(), retrieval_mode=RetrievalMode.HYBRID, **more)
    filled.add_texts([row.text for row in ROWS], [row.metadata for row in ROWS], ids=[row.id for row in WITH_UUIDS])
    by_words = QdrantVectorStore(client, "rows", retrieval_mode=RetrievalMode.SPARSE, **more)
    store = QdrantVectorStore(client, "rows", WordEmbeddings())
    check(LANGCHAIN, store, by_words.as_retriever(search_kwargs={"k": 25}))


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
def test_qdrant_in_llamaindex() -> None:
    needs("llama_index.vector_stores.qdrant")
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    def sparse_batch(texts: list[str]) -> tuple[list[list[int]], list[list[float]]]:
        vectors = list(map(sparse, texts))
        return [indices for indices, _ in vectors], [values for _, values in vectors]

    store = QdrantVectorStore(
        "rows",
        client=QdrantClient(":memory:"),
        enable_hybrid=True,
        sparse_doc_fn=sparse_batch,
        sparse_query_fn=sparse_batch,
    )
    index = open_index(store, WITH_UUIDS)
    check(LLAMAINDEX, index, index.as_retriever(vector_store_query_mode="sparse", similarity_top_k=25))


@pytest.mark.filterwarnings("ignore:table_names\\(\\) is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated:DeprecationWarning")
def test_lancedb_in_llamaindex(tmp_path: Path) -> None:
    needs("llama_index.vector_stores.lancedb")
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    index = open_index(LanceDBVectorStore(uri=str(tmp_path), mode="overwrite"), ROWS)
    kwargs = {"query_type": "fts"}
    check(LLAMAINDEX, index, index.as_retriever(vector_store_kwargs=kwargs, similarity_top_k=25))


def open_index(store: Any, rows: Any) -> VectorStoreIndex:
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(list(map(_node, rows)), embed_model=CountingEmbedding(), storage_context=context)


def test_postgres_in_llamaindex() -> None:
    needs("llama_index.vector_stores.postgres")
    from llama_index.vector_stores.postgres import PGVectorStore

    from tests.stores.cases.postgres_server import database

    with database() as (_, address):
        store = PGVectorStore.from_params(
            connection_string=address("psycopg2"),
            async_connection_string=address("asyncpg"),
            table_name="rows",
            embed_dim=48,
            hybrid_search=True,
            text_search_config="english",
        )
        index = open_index(store, ROWS)
        check(LLAMAINDEX, index, index.as_retriever(vector_store_query_mode="sparse", similarity_top_k=25))
