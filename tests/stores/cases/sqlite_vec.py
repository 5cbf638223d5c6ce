"""SQLite with sqlite-vec, in a file."""

import ctypes
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from tests.stores.harness import (
    BY_TEXT,
    DIMENSION,
    LangChainCase,
    LlamaIndexCase,
    Row,
    fill,
    needs,
)


def connect(file: Path, **more: Any) -> sqlite3.Connection:
    """A connection like the store's own, also where Python was built without loadable extensions."""
    import sqlite_vec

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        connection = sqlite3.connect(file, **more)
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
    else:
        connection = _connect_through_the_library(file, **more)
    connection.row_factory = sqlite3.Row
    return connection


def _connect_through_the_library(file: Path, **more: Any) -> sqlite3.Connection:
    import _sqlite3

    import sqlite_vec

    library = ctypes.CDLL(_sqlite3.__file__)
    start = ctypes.CDLL(str(next(Path(sqlite_vec.__file__).parent.glob("vec0.*")))).sqlite3_vec_init
    if not hasattr(library, "sqlite3_auto_extension"):
        pytest.skip("this Python's sqlite3 cannot load extensions")
    library.sqlite3_auto_extension(start)
    try:
        return sqlite3.connect(file, **more)
    finally:
        library.sqlite3_cancel_auto_extension(start)


@contextmanager
def langchain(embeddings: Embeddings, folder: Path, **more: Any) -> Iterator[VectorStore]:
    """The store of langchain-community."""
    needs("sqlite_vec")
    from langchain_community.vectorstores import SQLiteVec

    class Carrying(SQLiteVec):
        """Has an ``embeddings`` property, which the original lacks, so that the retriever needs no ``embeddings=``."""

        @property
        def embeddings(self) -> Embeddings:
            return embeddings

        def get_dimensionality(self) -> int:
            # The original embeds a text that the table of vectors does not have.
            return DIMENSION

    with closing(connect(folder / "store.sqlite", **more)) as connection:
        store = Carrying("documents", connection, embeddings)
        fill(store)
        yield store


def row_of(document: Document) -> Row:
    # The store's documents have no ids.
    return BY_TEXT[document.page_content]


def forget(store: Any, row: Row) -> dict[str, Any]:
    store._connection.execute(
        "DELETE FROM documents_vec WHERE rowid = (SELECT rowid FROM documents WHERE text = ?)", [row.text]
    )
    return {}


LANGCHAIN = [LangChainCase("sqlite-vec", langchain, {}, by_id=False, row_of=row_of, filters=False, forget=forget)]
LLAMAINDEX: list[LlamaIndexCase] = []
