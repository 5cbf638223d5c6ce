"""Example selectors over each store: what comes back is what was put in, and a shared collection is told of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core.vector_stores import SimpleVectorStore

import langchain_setselect
import llamaindex_setselect
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding
from tests.stores.harness import needs

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore:table_names\\(\\) is deprecated:DeprecationWarning"),
]
# The topics are words of the embedding model of the tests.
ADDITION = [{"question": f"river {word}", "answer": str(i)} for i, word in enumerate(["bread", "engine", "violin"])]
ASKED = {"question": "river bread"}


def _chroma(folder: Path) -> tuple[Any, dict[str, Any]]:
    needs("langchain_chroma")
    from langchain_chroma import Chroma

    return Chroma, {"collection_name": folder.name}


def _faiss(folder: Path) -> tuple[Any, dict[str, Any]]:
    from langchain_community.vectorstores import FAISS

    return FAISS, {}


def _qdrant(folder: Path) -> tuple[Any, dict[str, Any]]:
    needs("langchain_qdrant")
    from langchain_qdrant import QdrantVectorStore

    return QdrantVectorStore, {"location": ":memory:"}


def _lancedb(folder: Path) -> tuple[Any, dict[str, Any]]:
    needs("langchain_lancedb")
    from langchain_lancedb import LanceDB

    return LanceDB, {"uri": str(folder)}


def _lancedb_community(folder: Path) -> tuple[Any, dict[str, Any]]:
    needs("lancedb")
    from langchain_community.vectorstores import LanceDB

    return LanceDB, {"uri": str(folder)}


Open = Callable[[Path], tuple[type[VectorStore], dict[str, Any]]]
LANGCHAIN = [
    pytest.param(lambda folder: (InMemoryVectorStore, {}), id="in memory"),
    pytest.param(_faiss, id="FAISS"),
    pytest.param(_chroma, id="Chroma"),
    pytest.param(_qdrant, id="Qdrant"),
    pytest.param(_lancedb, id="langchain-lancedb"),
    pytest.param(_lancedb_community, id="LanceDB of langchain-community"),
]


def langchain_selector(
    open_store: Open, folder: Path, examples: Any, **settings: Any
) -> langchain_setselect.SetSelectExampleSelector:
    cls, arguments = open_store(folder)
    settings = {"k": 3, "input_keys": ["question"], "fetch_k": 9, **arguments, **settings}
    return langchain_setselect.SetSelectExampleSelector.from_examples(examples, WordEmbeddings(), cls, **settings)


def _simple(folder: Path) -> Any:
    return SimpleVectorStore()


def _chroma_nodes(folder: Path) -> Any:
    needs("llama_index.vector_stores.chroma")
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    return ChromaVectorStore(chromadb.PersistentClient(str(folder)).get_or_create_collection("examples"))


def _qdrant_nodes(folder: Path) -> Any:
    needs("llama_index.vector_stores.qdrant")
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    return QdrantVectorStore("examples", client=QdrantClient(":memory:"))


def _lancedb_nodes(folder: Path) -> Any:
    needs("llama_index.vector_stores.lancedb")
    from llama_index.vector_stores.lancedb import LanceDBVectorStore

    return LanceDBVectorStore(str(folder))


LLAMAINDEX = [
    pytest.param(_simple, id="in memory"),
    pytest.param(_chroma_nodes, id="Chroma"),
    pytest.param(_qdrant_nodes, id="Qdrant"),
    pytest.param(_lancedb_nodes, id="LanceDB"),
]


def llamaindex_selector(store: Any, examples: Any, **settings: Any) -> llamaindex_setselect.SetSelectExampleSelector:
    settings = {"top_n": 3, "input_keys": ["question"], "fetch_k": 9, "template": "{answer}", **settings}
    return llamaindex_setselect.SetSelectExampleSelector.from_examples(
        examples, CountingEmbedding(), vector_store=store, **settings
    )


def by_question(examples: Any) -> list[dict[str, Any]]:
    return sorted(examples, key=lambda example: example["question"])


@pytest.mark.parametrize("open_store", LANGCHAIN)
async def test_langchains_examples_come_back_without_the_stores_own_keys(open_store: Open, tmp_path: Path) -> None:
    made = langchain_selector(open_store, tmp_path, ADDITION)
    assert by_question(made.select_examples(ASKED)) == by_question(await made.aselect_examples(ASKED)) == ADDITION
    # A selector over a store that was filled before knows no examples, but it knows the store.
    over = langchain_setselect.SetSelectExampleSelector(
        vectorstore=made.vectorstore, embeddings=made.embeddings, k=3, fetch_k=9, input_keys=["question"]
    )
    assert by_question(over.select_examples(ASKED)) == ADDITION


@pytest.mark.parametrize("open_store", LLAMAINDEX)
async def test_llamaindexs_examples_come_back_without_the_stores_own_keys(open_store: Any, tmp_path: Path) -> None:
    made = llamaindex_selector(open_store(tmp_path), ADDITION)
    assert by_question(made.select_examples("river bread")) == ADDITION
    if open_store is not _qdrant_nodes:  # Its sync client in memory has no async counterpart.
        assert by_question(await made.aselect_examples("river bread")) == ADDITION
