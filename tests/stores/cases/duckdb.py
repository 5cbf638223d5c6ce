"""DuckDB, in memory and on disk."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_TEXT, DIMENSION, LangChainCase, LlamaIndexCase, Row, TableEmbeddings, fill, needs


@contextmanager
def langchain(kind: str, embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    """The store of langchain-community."""
    needs("duckdb")
    import duckdb
    from langchain_community.vectorstores import DuckDB

    class Inserting(DuckDB):
        """Adds rows as if pandas were missing: DuckDB before 1.4 cannot read the strings of pandas 3."""

        def add_texts(self, *arguments: Any, **more: Any) -> list[str]:
            with patch.dict(sys.modules, {"pandas": None}):
                return super().add_texts(*arguments, **more)

    with duckdb.connect(":memory:" if kind == "in memory" else folder / "store.duckdb") as connection:
        store = Inserting(connection=connection, embedding=embeddings)
        fill(store)
        yield store


def own_search(store: Any, vector: list[float], k: int) -> list[Document]:
    """The store's plain search, which takes a text only."""
    other = copy(store)
    other._embedding = TableEmbeddings({"asked": vector})
    found: list[Document] = other.similarity_search("asked", k)
    return found


def row_of(document: Document) -> Row:
    # The store's documents have no ids.
    return BY_TEXT[document.page_content]


@contextmanager
def llamaindex(kind: str, length: int | None, folder: Path) -> Iterator[BasePydanticVectorStore]:
    """LlamaIndex's store."""
    needs("llama_index.vector_stores.duckdb")
    from llama_index.vector_stores.duckdb import DuckDBVectorStore

    class Offline(DuckDBVectorStore):
        """Creates its table without the extension for full-text search, which it would download and does not use."""

        @classmethod
        def _initialize_table(cls, conn: Any, table_name: str, embed_dim: int | None) -> None:
            columns = f"text TEXT, embedding {cls._get_embedding_type(embed_dim)}, metadata_ JSON"
            conn.execute(f"CREATE TABLE IF NOT EXISTS {table_name} (node_id VARCHAR PRIMARY KEY, {columns})")

    database = ":memory:" if kind == "in memory" else "store.duckdb"
    store = Offline(database, embed_dim=length, persist_dir=str(folder))
    try:
        yield store
    finally:
        assert store._shared_conn is not None
        store._shared_conn.close()


def forget(store: Any, row: Row) -> dict[str, Any]:
    store._connection.execute("UPDATE embeddings SET embedding = NULL WHERE id = ?", [row.id])
    return {}


KINDS = {"in memory": None, "on disk": DIMENSION}
LANGCHAIN = [
    LangChainCase(
        f"DuckDB {kind}",
        partial(langchain, kind),
        {},
        own=own_search,
        by_id=False,
        row_of=row_of,
        filters=False,
        forget=forget,
    )
    for kind in KINDS
]
LLAMAINDEX = [
    LlamaIndexCase(f"DuckDB {kind}, {'arrays' if length else 'lists'}", partial(llamaindex, kind, length))
    for kind, length in KINDS.items()
]
