"""Qdrant in this process: in memory and on disk, in its metrics, with named vectors, with sparse vectors as well. No
package of pip or apt holds a server."""

import importlib.util
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_ID, DIMENSION, LangChainCase, LlamaIndexCase, Row, fill, needs

# For cosine, Qdrant normalises in float32 and the tests in float64.
LAST_BIT = 2.0**-23


class Kind(NamedTuple):
    """``vector``: the name of the dense vector; ``sparse``: the points have a sparse vector too."""

    on_disk: bool = False
    metric: str = "COSINE"
    vector: str = ""
    sparse: bool = False


KINDS = {
    "in memory, cosine": Kind(),
    "in memory, Euclid": Kind(metric="EUCLID"),
    "hybrid": Kind(metric="DOT", sparse=True),
    "hybrid, named vector, on disk": Kind(on_disk=True, vector="dense", sparse=True),
}


def where(kind: Kind, folder: Path) -> dict[str, Any]:
    return {"path": str(folder)} if kind.on_disk else {"location": ":memory:"}


def sparse_of(text: str) -> tuple[list[int], list[float]]:
    """The words of a text as a sparse vector."""
    counts = Counter(zlib.crc32(word.encode()) for word in text.split())
    return [*counts], [float(count) for count in counts.values()]


@contextmanager
def langchain(kind: Kind, embeddings: Embeddings, folder: Path, **settings: Any) -> Iterator[Any]:
    """LangChain's store, empty."""
    needs("langchain_qdrant")
    from langchain_qdrant import QdrantVectorStore, RetrievalMode, SparseEmbeddings, SparseVector
    from qdrant_client import QdrantClient, models

    class Sparse(SparseEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[SparseVector]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> SparseVector:
            indices, values = sparse_of(text)
            return SparseVector(indices=indices, values=values)

    client = QdrantClient(**where(kind, folder))
    distance = models.Distance[kind.metric]
    vectors = models.VectorParams(size=DIMENSION, distance=distance)
    if kind.sparse:
        client.create_collection(
            "rows", {kind.vector: vectors}, sparse_vectors_config={"langchain-sparse": models.SparseVectorParams()}
        )
        settings |= {"retrieval_mode": RetrievalMode.HYBRID, "sparse_embedding": Sparse()}
    else:
        client.create_collection("rows", vectors)
    # The validation would embed a text that the table of vectors does not have.
    settings["validate_collection_config"] = False
    yield QdrantVectorStore(client, "rows", embeddings, vector_name=kind.vector, distance=distance, **settings)
    client.close()


@contextmanager
def _filled(kind: Kind, embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    with langchain(kind, embeddings, folder) as store:
        fill(store)
        yield store


def llamaindex(kind: Kind, **clients: Any) -> Any:
    """LlamaIndex's store over these clients."""
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import models

    def sparse(texts: list[str]) -> tuple[list[list[int]], list[list[float]]]:
        pairs = [sparse_of(text) for text in texts]
        return [indices for indices, _ in pairs], [values for _, values in pairs]

    return QdrantVectorStore(
        "rows",
        **clients,
        dense_config=models.VectorParams(size=DIMENSION, distance=models.Distance[kind.metric]),
        dense_vector_name=kind.vector or None,
        enable_hybrid=kind.sparse,
        sparse_doc_fn=sparse,
        sparse_query_fn=sparse,
        # It has no effect in the local mode, and Qdrant warns about that.
        index_doc_id=False,
    )


@contextmanager
def _llamaindex(kind: Kind, folder: Path) -> Iterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.qdrant")
    from qdrant_client import QdrantClient

    client = QdrantClient(**where(kind, folder))
    yield llamaindex(kind, client=client)
    client.close()


@asynccontextmanager
async def _allamaindex(kind: Kind, folder: Path) -> AsyncIterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.qdrant")
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(**where(kind, folder))
    yield llamaindex(kind, aclient=client)
    await client.close()


def _filter(occurrence: str = "must") -> dict[str, Any]:
    if importlib.util.find_spec("qdrant_client") is None:
        return {}
    from qdrant_client import models

    colour = models.FieldCondition(key="metadata.colour", match=models.MatchValue(value="red"))
    return {"filter": models.Filter(**{occurrence: [colour]})}


def _forget(store: Any, row: Row) -> dict[str, Any]:
    store.client.delete_vectors("rows", [store.vector_name], [row.id])
    return {}


def row_of(document: Document) -> Row:
    return BY_ID[document.metadata["_id"]]


LANGCHAIN = [
    LangChainCase(
        f"Qdrant {name}",
        partial(_filled, kind),
        _filter(),
        row_of=row_of,
        scaled=kind.metric == "COSINE",
        precision=LAST_BIT if kind.metric == "COSINE" else 0,
        arguments=({**_filter("must_not"), "offset": 7},),
        forget=_forget,
    )
    for name, kind in KINDS.items()
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"Qdrant {name}",
        partial(_llamaindex, kind),
        scaled=kind.metric == "COSINE",
        precision=LAST_BIT if kind.metric == "COSINE" else 0,
        aopen=partial(_allamaindex, kind),
    )
    for name, kind in KINDS.items()
]
