"""How often a retriever searches, and for how many candidates: the flow is the core's, so one binding is enough."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever, register_vector_source
from tests.adapters.bindings import QUERY, ROWS, Row, name_of, nearest
from tests.langchain_setselect.conftest import WordEmbeddings


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
