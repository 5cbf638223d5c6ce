"""A look-up by id reads the part of the store (its namespace, tenant, partition) that the search read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import SimpleVectorStore

import langchain_setselect
import llamaindex_setselect
from langchain_setselect import SetSelectCompressor
from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor
from setselect import InvalidParameterError
from tests.adapters.bindings import RERANKERS, Subject, _node, falling, numbers, over
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

# In the namespace "theirs" the vectors of the same ids are in the reverse order.
ROWS = falling([f"passage {i}" for i in range(10)])
PARTS = {
    "mine": {row.id: row.vector for row in ROWS},
    "theirs": {row.id: other.vector for row, other in zip(ROWS, ROWS[::-1], strict=True)},
}


class Parted(InMemoryVectorStore):
    """A store with namespaces."""


class PartedNodes(SimpleVectorStore):
    """A store with namespaces, whose search ignores them, because all have the same nodes."""

    def query(self, query: Any, namespace: str = "mine", **kwargs: Any) -> Any:
        return super().query(query, **kwargs)


def look_up(store: Any, ids: Sequence[str], *index: Any, namespace: str = "mine") -> Any:
    return {name: PARTS[namespace][name] for name in ids}


def search(store: Any, query: Any, fetch_k: int, **kwargs: Any) -> Any:
    raise AssertionError("a compressor does not search")


langchain_setselect.register_vector_source(Parted, search, fetch=look_up, scope=["namespace"])
llamaindex_setselect.register_vector_source(PartedNodes, look_up, scope=["namespace"])


def make(subject: Subject, part: dict[str, Any] | None, **settings: Any) -> Any:
    settings |= {subject.size: 3, "selector": "similarity"}
    if subject is RERANKERS[0]:
        return SetSelectCompressor(vectorstore=Parted(WordEmbeddings()), vectorstore_kwargs=part, **settings)
    model = CountingEmbedding()
    storage = StorageContext.from_defaults(vector_store=PartedNodes())
    index = VectorStoreIndex([], embed_model=model, storage_context=storage)
    return SetSelectPostprocessor(index=index, vector_store_kwargs=part, **settings)


@over(RERANKERS)
async def test_a_reranker_looks_vectors_up_in_the_part_that_it_is_told(subject: Subject) -> None:
    for part, wanted in ((None, [0, 1, 2]), ({"namespace": "mine"}, [0, 1, 2]), ({"namespace": "theirs"}, [9, 8, 7])):
        made = make(subject, part)
        assert numbers(subject.run(made, ROWS)) == numbers(await subject.arun(made, ROWS)) == wanted


@over(RERANKERS)
def test_an_argument_that_names_no_part_is_refused(subject: Subject) -> None:
    with pytest.raises(InvalidParameterError, match=r"'names'.*namespace"):
        make(subject, {"names": "theirs"})


def test_an_index_retriever_looks_vectors_up_in_the_part_that_it_searches() -> None:
    storage = StorageContext.from_defaults(vector_store=PartedNodes())
    index = VectorStoreIndex(list(map(_node, ROWS)), embed_model=CountingEmbedding(), storage_context=storage)
    for part, wanted in (("mine", [0, 1, 2]), ("theirs", [9, 8, 7])):
        settings: dict[str, Any] = {"similarity_top_k": 3, "selector": "similarity"}
        made = SetSelectIndexRetriever(index, vector_store_kwargs={"namespace": part}, **settings)
        assert numbers(made.retrieve("hidden northern harbour engine")) == wanted
