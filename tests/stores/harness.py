"""What all tests of stores share: one corpus of random vectors, embedders that look vectors up and count their calls,
and the description of a store that the tests of every store need."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from langchain_setselect.vectors import reader_of
from llamaindex_setselect import vectors
from setselect import select
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.inputs import find_registered

DIMENSION = 32
FETCH_K = 40
K = 5
COLOURS = ("red", "green", "blue")


class Row(NamedTuple):
    id: str
    text: str
    metadata: dict[str, Any]
    vector: list[float]


def _vector(rng: np.random.Generator) -> list[float]:
    # Vectors of many lengths, so that each metric gives another order. The numbers are exact in float32.
    direction = rng.standard_normal(DIMENSION)
    row = direction / np.linalg.norm(direction) * rng.uniform(0.5, 2)
    floats: list[float] = row.astype(np.float32).tolist()
    return floats


def _rows(n: int = 240) -> list[Row]:
    rng = np.random.default_rng(20261121)
    return [
        Row(str(uuid.UUID(int=i + 1)), f"passage {i}", {"colour": COLOURS[i % 3], "number": i}, _vector(rng))
        for i in range(n)
    ]


def _queries() -> dict[str, list[float]]:
    # Numbers from 1, because [seed, 0] is the generator of the rows.
    return {f"query {i}": _vector(np.random.default_rng([20261121, i + 1])) for i in range(20)}


ROWS = _rows()
BY_ID = {row.id: row for row in ROWS}
BY_TEXT = {row.text: row for row in ROWS}
QUERIES = _queries()
TABLE = {row.text: row.vector for row in ROWS} | QUERIES
RED = MetadataFilters(filters=[MetadataFilter(key="colour", value="red")])


def resize(n: int, dimension: int) -> None:
    """Change the size of the corpus, for the benchmark. Call it before the cases are imported."""
    global DIMENSION
    DIMENSION = dimension
    replace_corpus(_rows(n), _queries())


def replace_corpus(rows: list[Row], queries: dict[str, list[float]]) -> None:
    """Another corpus, for the benchmark. Call it before the cases are imported."""
    global DIMENSION, ROWS, BY_ID, BY_TEXT, QUERIES, TABLE
    DIMENSION, ROWS, QUERIES = len(rows[0].vector), rows, queries
    BY_ID = {row.id: row for row in ROWS}
    BY_TEXT = {row.text: row for row in ROWS}
    TABLE = {row.text: row.vector for row in ROWS} | QUERIES


def needs(*modules: str) -> None:
    """Skip the test if a package is missing; fail if SETSELECT_REQUIRE names it ("all -x" names all except x)."""
    required = os.environ.get("SETSELECT_REQUIRE", "").split()
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError:
            if module in required or ("all" in required and f"-{module}" not in required):
                raise
            pytest.skip(f"{module} is not installed; make test-stores covers it")


def free_port() -> int:
    """A free port on loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(process: subprocess.Popen[bytes], connect: Callable[[], Any], failures: type[Exception]) -> None:
    """Wait until a server accepts connections; it must not end before."""
    end = time.monotonic() + 60
    while True:
        assert process.poll() is None, "the server ended at once"
        try:
            connect()
            return
        except failures:
            assert time.monotonic() < end, "the server did not answer"
            time.sleep(0.05)


class TableEmbeddings(Embeddings):
    """LangChain embeddings that look vectors up in a table and count the calls."""

    def __init__(self, table: dict[str, list[float]] = TABLE) -> None:
        self.table = table
        self.forget()

    def forget(self) -> None:
        self.documents = self.queries = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += len(texts)
        return [self.table[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries += 1
        return self.table[text]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


class TableEmbedding(BaseEmbedding):
    """A LlamaIndex embedding model that looks vectors up in a table and counts the calls."""

    table: dict[str, list[float]] = TABLE
    _counts: dict[str, int] = PrivateAttr(default_factory=lambda: {"documents": 0, "queries": 0})

    def forget(self) -> None:
        self._counts.update(documents=0, queries=0)

    @property
    def documents(self) -> int:
        return self._counts["documents"]

    @property
    def queries(self) -> int:
        return self._counts["queries"]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._counts["queries"] += 1
        return self.table[query]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._counts["documents"] += 1
        return self.table[text]


def langchain_reader(store: Any) -> Any:
    """The vector reader that setselect uses for a LangChain store."""
    reader = reader_of(store)
    assert reader is not None
    return reader


def llamaindex_reader(store: Any) -> Any:
    """The vector reader that setselect uses for a LlamaIndex store."""
    reader = find_registered(vectors._READERS, type(store))
    assert reader is not None
    return reader


def fetch_nodes(store: Any, ids: list[str], index: VectorStoreIndex | None = None) -> Any:
    """Vectors by node id, from the LlamaIndex store's vector reader."""
    return llamaindex_reader(store).fetch(store, ids, index)


async def afetch_nodes(store: Any, ids: list[str], index: VectorStoreIndex | None = None) -> Any:
    """Vectors by node id, awaited from the LlamaIndex store's vector reader."""
    return await llamaindex_reader(store).afetch(store, ids, index)


def node_vectors(nodes: list[Any], index: VectorStoreIndex) -> dict[str, Any]:
    """Vectors by node id, as a postprocessor over the index reads them."""
    reading = vectors.NodeVectors.of(index, None)
    _, ids, rows = run_flow(reading.fetch([NodeWithScore(node=node) for node in nodes], embed_unknown=True))
    return dict(zip(ids, rows, strict=True))


def own_search(store: VectorStore, vector: list[float], k: int, **search_kwargs: Any) -> list[Document]:
    """The store's plain search by vector."""
    return store.similarity_search_by_vector(vector, k=k, **search_kwargs)


def fill(store: VectorStore) -> None:
    # The smallest limit of a store for one call.
    for start in range(0, len(ROWS), 4000):
        some = ROWS[start : start + 4000]
        store.add_texts([row.text for row in some], [dict(row.metadata) for row in some], ids=[row.id for row in some])


async def afill(store: VectorStore) -> None:
    await store.aadd_texts([r.text for r in ROWS], [dict(r.metadata) for r in ROWS], ids=[r.id for r in ROWS])


def over(
    serve: Callable[[Path], AbstractContextManager[Any]],
    store: Callable[..., AbstractContextManager[Any]],
    *packages: str,
) -> Callable[..., AbstractContextManager[Any]]:
    """``open`` of a case: ``store(server, *embeddings)`` over what ``serve(folder)`` starts, filled for LangChain."""

    @contextmanager
    def open(*arguments: Any) -> Iterator[Any]:
        *embeddings, folder = arguments
        needs(*packages)
        with serve(folder) as server, store(server, *embeddings) as opened:
            if embeddings:
                fill(opened)
            yield opened

    return open


def aover(
    serve: Callable[[Path], AbstractContextManager[Any]],
    store: Callable[..., AbstractAsyncContextManager[Any]],
    *packages: str,
    filled: Callable[[Any], Awaitable[None]] = afill,
) -> Callable[..., AbstractAsyncContextManager[Any]]:
    """``aopen`` of a case, as :func:`over`."""

    @asynccontextmanager
    async def open(*arguments: Any) -> AsyncIterator[Any]:
        *embeddings, folder = arguments
        needs(*packages)
        with serve(folder) as server:
            async with store(server, *embeddings) as opened:
                if embeddings:
                    await filled(opened)
                yield opened

    return open


@dataclass(frozen=True)
class LangChainCase:
    """A LangChain store in one setting, and what a test needs to know about it.

    ``open(embeddings, folder)`` returns the store filled with ROWS, and closes it at the end. ``red`` are the search
    arguments, in the store's own syntax, for documents whose colour is red. ``own`` is the store's plain search by
    vector. ``by_id``: vectors can be looked up by document id. ``row_of`` finds the row that a document came from.
    ``scaled``: the store keeps vectors of length 1. ``precision``: the largest allowed difference between a stored and
    an inserted number; 0 means bit-equal. ``aopen`` opens the store in the running event loop, for clients that belong
    to a loop; without it the async tests use ``open``. ``filters``: the store has filters by metadata; else ``red`` is
    empty. ``arguments``: further search arguments of the store, with which it finds documents. ``refused``: an argument
    that the vector reader does not know. ``forget(store, row)`` takes the vector of a row away, and returns the
    arguments of a search that may find the row nevertheless.
    """

    name: str
    open: Callable[[Embeddings, Path], AbstractContextManager[VectorStore]]
    red: dict[str, Any]
    own: Callable[..., list[Document]] = own_search
    by_id: bool = True
    row_of: Callable[[Document], Row] = field(default=lambda document: BY_ID[document.id or ""])
    scaled: bool = False
    precision: float = 0.0
    aopen: Callable[[Embeddings, Path], AbstractAsyncContextManager[VectorStore]] | None = None
    filters: bool = True
    arguments: tuple[dict[str, Any], ...] = ()
    refused: str | None = None
    forget: Callable[[Any, Row], dict[str, Any]] | None = None


@dataclass(frozen=True)
class LlamaIndexCase:
    """A LlamaIndex store in one setting. ``open(folder)`` returns it empty, and closes it at the end.

    The other fields are those of :class:`LangChainCase`.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[BasePydanticVectorStore]]
    filters: bool = True
    scaled: bool = False
    precision: float = 0.0
    aopen: Callable[[Path], AbstractAsyncContextManager[BasePydanticVectorStore]] | None = None


def nodes() -> list[TextNode]:
    return [
        TextNode(
            id_=row.id,
            text=row.text,
            metadata=dict(row.metadata),
            embedding=list(row.vector),
            excluded_embed_metadata_keys=list(row.metadata),
        )
        for row in ROWS
    ]


def index_over(store: BasePydanticVectorStore, model: TableEmbedding | None = None) -> VectorStoreIndex:
    """An index over the empty store, filled with ROWS."""
    context = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes(), storage_context=context, embed_model=model or TableEmbedding())


async def aindex_over(store: BasePydanticVectorStore, model: TableEmbedding) -> VectorStoreIndex:
    """An index over the empty store, filled with ROWS by the store's async methods."""
    index = VectorStoreIndex.from_vector_store(store, embed_model=model)
    await index.ainsert_nodes(nodes())
    return index


def assert_stored(rows: list[Row], vectors: Any, case: LangChainCase | LlamaIndexCase) -> None:
    """Check that each vector is the inserted one, bit by bit or within the store's precision."""
    wanted = stored(rows)
    got = np.array([np.asarray(vector) for vector in vectors])
    assert got.shape == wanted.shape
    if case.scaled:
        wanted = (wanted / np.linalg.norm(wanted.astype(np.float64), axis=1, keepdims=True)).astype(np.float32)
    if case.precision:
        np.testing.assert_allclose(got, wanted, rtol=0, atol=case.precision)
    else:
        np.testing.assert_array_equal(got, wanted)


def stored(rows: Iterable[Row]) -> Any:
    """The vectors of these rows as an array."""
    return np.array([row.vector for row in rows], dtype=np.float32).reshape(-1, DIMENSION)


def brute_force(query: str, rows: list[Row], k: int = K) -> list[str]:
    """Ids of the core's picks among these rows, from the inserted vectors and texts."""
    vectors, texts = [row.vector for row in rows], [row.text for row in rows]
    return [rows[i].id for i in select(QUERIES[query], vectors, k, question=query, texts=texts).indices]
