"""How often a retriever searches, and for how many candidates: the flow is the core's, so one binding is enough."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import SimpleVectorStore

import llamaindex_setselect
from langchain_setselect import SetSelectRetriever, register_vector_source
from setselect import SetSelectWarning, VectorSourceError
from tests.adapters.bindings import (
    QUERY,
    RETRIEVERS,
    ROWS,
    Row,
    Subject,
    _node,
    name_of,
    nearest,
    numbers,
    over,
    unit,
)
from tests.embedding import DIMENSION, embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding


class Counting(InMemoryVectorStore):
    """Notes the sizes of its searches."""

    rows: list[Row]
    sizes: list[int]


def search(store: Counting, query: Any, fetch_k: int, **kwargs: Any) -> Any:
    store.sizes.append(fetch_k)
    found = store.rows[:fetch_k]
    return [Document(row.text, id=row.id, metadata=row.metadata) for row in found], [row.vector for row in found]


register_vector_source(Counting, search)


def searches(rows: int = 60, repeated: int = 1, **settings: Any) -> list[int]:
    """The sizes of the searches among the rows nearest to the query, with each text ``repeated`` times."""
    store = Counting(WordEmbeddings())
    order = nearest(rows)
    store.rows = [ROWS[row]._replace(text=f"text {i // repeated}") for i, row in enumerate(order)]
    store.sizes = []
    SetSelectRetriever(vectorstore=store, **settings).invoke(QUERY)
    return store.sizes


CAP: dict[str, Any] = {"max_per_source": 1, "source": "topic", "k": 6, "fetch_k": 7}
NEAR: dict[str, Any] = {"k": 5, "fetch_k": 6, "drop_near_duplicates": 0.5}
TWICE: dict[str, Any] = {"k": 5, "fetch_k": 6, "repeated": 3}
FREE: dict[str, Any] = {**CAP, "costs": lambda document: 1}


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({"k": 5, "fetch_k": 6}, [6]),  # no constraint
        (CAP, [7, 28]),  # six topics, of which the nearest seven rows have fewer
        ({**CAP, "rows": 25}, [7, 28]),  # the second search has found all
        ({**CAP, "rows": 6}, [7]),  # so has the first
        ({**CAP, "k": 2}, [7]),  # two sources are there
        (NEAR, [6, 24]),
        ({**CAP, "score_threshold": 0.6}, [7]),  # the others are below the threshold
        ({**FREE, "budget": 100}, [7, 28]),  # some budget is left
        ({**FREE, "budget": 1}, [7]),  # the budget ended the selection
        # All candidates have one text, and the budget would pay for more.
        ({"k": 3, "fetch_k": 10, "repeated": 20, "costs": lambda document: 1, "budget": 10}, [10, 40, 160]),
        (TWICE, [6, 24]),  # two texts, five wanted
        ({**TWICE, "prefer": "number"}, [6, 24]),
        ({"k": 5, "fetch_k": 6, "prefer": "number"}, [6]),  # no text is repeated
        ({**NEAR, "prefer": "number"}, [6, 24]),
        ({**TWICE, "k": 2}, [6]),
        ({**TWICE, "min_gain": 1.0, "min_k": 1}, [6]),  # one text, and no other is worth as much
        ({**TWICE, "drop_duplicates": False}, [6]),
    ],
    ids=name_of,
)
def test_a_search_is_widened_only_if_a_constraint_cut_the_set_short(settings: dict[str, Any], sizes: list[int]) -> None:
    assert searches(**settings) == sizes


def test_a_threshold_ends_the_search_only_where_the_store_goes_by_cosine() -> None:
    store = Counting(WordEmbeddings())
    store.rows, store.sizes = [ROWS[row] for row in nearest(60)][::-1], []
    # A store of another measure may return the highest cosine last.
    retriever = SetSelectRetriever(vectorstore=store, score_threshold=0.6, **CAP)
    assert retriever.invoke(QUERY)
    assert store.sizes == [7, 28, 112]


class Holed(InMemoryVectorStore):
    """Has no vector for some ids."""


class HoledNodes(SimpleVectorStore):
    """Has no vector for some ids."""


HOLES: set[str] = set()


def _search_holed(store: Holed, query: Any, fetch_k: int, **kwargs: Any) -> Any:
    found = store.similarity_search_by_vector(query, k=fetch_k)
    SIZES.append(fetch_k)
    return found, [None if d.id in HOLES else store.store[d.id or ""]["vector"] for d in found]


def _read_holed(store: HoledNodes, ids: Sequence[str], index: Any) -> Any:
    SIZES.append(len(ids))
    return {name: store.get(name) for name in ids if name not in HOLES}


SIZES: list[int] = []
register_vector_source(Holed, _search_holed)
llamaindex_setselect.register_vector_source(HoledNodes, _read_holed)


def holed(subject: Subject, rows: Sequence[Row]) -> Any:
    """A store, or an index over one, of the rows; ``HOLES`` says for which ids it has no vector."""
    SIZES.clear()
    if subject is RETRIEVERS[0]:
        store = Holed(WordEmbeddings())
        store.store = subject.open(rows, "in memory").store
        return store
    storage = StorageContext.from_defaults(vector_store=HoledNodes())
    return VectorStoreIndex(list(map(_node, rows)), embed_model=CountingEmbedding(), storage_context=storage)


NOISE = np.random.default_rng(0).normal(size=(260, DIMENSION))
# Nearer to the question than all others are 60 copies of a text.
COPIES = [
    Row(f"doc-{i}", "one text" if i < 60 else f"text {i}", {"number": i}, unit(unit(embed(QUERY)) + 0.001 * i * noise))
    for i, noise in enumerate(NOISE)
]


@over(RETRIEVERS)
@pytest.mark.parametrize("holes", [(), ("doc-7",), ("doc-0", "doc-49", "doc-50")], ids=len)
async def test_a_document_without_a_vector_does_not_stop_the_wider_search(
    subject: Subject, holes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.HOLES", {*holes})
    made = subject.make(holed(subject, COPIES), k=5)
    with pytest.warns(SetSelectWarning, match="no vector") if holes else nullcontext():
        found, awaited = subject.run(made), await subject.arun(made)
    assert SIZES == [50, 200] * 2
    assert numbers(found) == numbers(awaited)
    assert len({row.text for row in COPIES if row.metadata["number"] in numbers(found)}) == 5


@over(RETRIEVERS)
async def test_a_store_without_any_vector_is_an_error_that_says_what_to_do(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = COPIES[60:70]
    monkeypatch.setattr(f"{__name__}.HOLES", {row.id for row in rows})
    made = subject.make(holed(subject, rows), k=3)
    with pytest.warns(SetSelectWarning), pytest.raises(VectorSourceError, match=r"10 .*doc-6.*register_vector_"):
        subject.run(made)
    with pytest.warns(SetSelectWarning), pytest.raises(VectorSourceError, match=r"10 .*doc-6.*register_vector_"):
        await subject.arun(made)
    # One vector is enough.
    HOLES.remove("doc-65")
    with pytest.warns(SetSelectWarning, match="no vector"):
        assert numbers(subject.run(made)) == [65]
