"""LanceDB: tables on disk."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import (
    BY_TEXT,
    LangChainCase,
    LlamaIndexCase,
    Row,
    TableEmbeddings,
    fill,
    needs,
)


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


LANGCHAIN = [
    LangChainCase(
        "LanceDB",
        langchain,
        {},
        own=own_langchain_search,
        by_id=False,
        row_of=row_of,
        filters=False,
    ),
]
LLAMAINDEX = [LlamaIndexCase("LanceDB", llamaindex)]
