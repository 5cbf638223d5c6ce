"""LanceDB: tables on disk, in single and half precision."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import (
    BY_TEXT,
    DIMENSION,
    ROWS,
    LangChainCase,
    LlamaIndexCase,
    Row,
    TableEmbeddings,
    fill,
    needs,
)

HALF = 2.0**-11 * 2


def table(folder: Path, name: str = "vectorstore", kind: str = "float32") -> Any:
    """A table with ROWS, made by the client itself."""
    import lancedb
    import pyarrow as pa

    vectors = np.array([row.vector for row in ROWS], dtype=kind)
    columns = {
        "id": pa.array([row.id for row in ROWS]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION),
        "text": pa.array([row.text for row in ROWS]),
        "metadata": pa.array([row.metadata for row in ROWS]),
    }
    return lancedb.connect(folder).create_table(name, pa.table(columns))


def row_of(document: Document) -> Row:
    # The store's documents have no ids.
    return BY_TEXT[document.page_content]


@contextmanager
def langchain(embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    """The store of langchain-lancedb."""
    needs("langchain_lancedb")
    from langchain_lancedb import LanceDB

    class Carrying(LanceDB):
        """Has an ``embeddings`` property, which the original lacks, so that the retriever needs no ``embeddings=``."""

        @property
        def embeddings(self) -> Embeddings:
            return embeddings

    store = Carrying(embeddings, folder)
    fill(store)
    yield store


def own_langchain_search(store: Any, vector: list[float], k: int) -> list[Document]:
    """The store's plain search, which takes a text only."""
    other = copy(store)
    other._embedding_function = TableEmbeddings({"asked": vector})
    found: list[Document] = other.similarity_search("asked", k)
    return found


@contextmanager
def community(embeddings: Embeddings, folder: Path, kind: str = "float32") -> Iterator[VectorStore]:
    """The store of langchain-community."""
    needs("lancedb")
    import lancedb
    from langchain_community.vectorstores import LanceDB

    table(folder, kind=kind)
    # By default, added rows replace the old ones.
    yield LanceDB(lancedb.connect(folder), embeddings, mode="append")


@contextmanager
def llamaindex(folder: Path, **more: Any) -> Iterator[BasePydanticVectorStore]:
    """LlamaIndex's store."""
    # The adapter needs pandas but does not declare it.
    needs("pandas", "llama_index.vector_stores.lancedb")
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    with warnings.catch_warnings():
        # When it opens, it lists the tables by a method that LanceDB has deprecated.
        warnings.filterwarnings("ignore", r"table_names\(\) is deprecated", DeprecationWarning)
        store = LanceDBVectorStore(str(folder), **more)
    yield store


RED = {"filter": "metadata.colour = 'red'", "prefilter": True}
LANGCHAIN = [
    LangChainCase(
        "LanceDB of langchain-lancedb",
        langchain,
        {},
        own=own_langchain_search,
        by_id=False,
        row_of=row_of,
        filters=False,
    ),
    LangChainCase(
        "LanceDB",
        community,
        RED,
        by_id=False,
        row_of=row_of,
        arguments=(
            {"filter": "metadata.colour IN ('red', 'blue') AND metadata.number >= 100", "prefilter": True},
            {"filter": "metadata.number < 60", "prefilter": False},
            {"filter": {"metadata.colour": "green"}, "prefilter": True, "metrics": "cosine"},
            {"query_type": "vector", "score": False, "name": "vectorstore", "metrics": "dot"},
        ),
        refused="where",
    ),
    LangChainCase(
        "LanceDB half precision",
        partial(community, kind="float16"),
        RED,
        by_id=False,
        row_of=row_of,
        precision=HALF,
    ),
]
LLAMAINDEX = [LlamaIndexCase("LanceDB", llamaindex)]
