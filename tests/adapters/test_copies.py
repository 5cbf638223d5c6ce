"""What the store holds now counts: changed stores, filters for each candidate, and metadata of any type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import numpy as np
import pytest

import langchain_setselect
import llamaindex_setselect
from langchain_setselect import FilteredRetriever
from setselect import EmbeddingFallbackWarning, SetSelectError, SetSelectWarning
from shared_core.facts import ADDRESS_KEYS, DOCUMENT_ID, IDENTIFIER_KEYS, PAGE_KEYS, PLACE_KEYS, SOURCE_KEYS, TITLE_KEYS
from tests.adapters.bindings import ROWS, Row, Subject, _node, metadata, numbers, unit
from tests.adapters.test_following import LANGCHAIN, STORES, SYNC_ONLY
from tests.embedding import embed

KEYS = [*TITLE_KEYS, *IDENTIFIER_KEYS, *SOURCE_KEYS, *ADDRESS_KEYS, *PLACE_KEYS, *PAGE_KEYS, DOCUMENT_ID, "start_index"]


# Two tenants in one store

TEAMS = [
    Row(
        f"doc-{i}",
        f"Rule {i} of the northern harbour changes Rule {(7 * i + 3) % 40}, and engine {i % 5} of Rule {39 - i}.",
        {"number": i, "team": "ab"[i % 2], "section": str(i), "source": "rules.md", "chunk": i},
        unit(embed(f"engine {i} harbour {i % 7}")),
    )
    for i in range(40)
]
# How the second search knows the documents: as the store does, by ids of its own or by none, or by an id of the store
# that is that of another document.
IDS: dict[str, Any] = {
    "same": lambda i: TEAMS[i].id,
    "same as UUID": lambda i: str(uuid5(NAMESPACE_URL, TEAMS[i].id)),
    "foreign": lambda i: f"other {i}",
    "none": lambda i: None,
    "shifted": lambda i: TEAMS[i - 1].id,
}


def second_search(subject: Subject, ids: str) -> Any:
    rows = [row._replace(id=IDS[ids](i)) for i, row in enumerate(TEAMS)]
    if subject is LANGCHAIN:
        documents = [subject.item(row) for row in rows]
        return langchain_setselect.WordRetriever.from_documents(documents, k=40)
    nodes = [_node(row._replace(id=row.id or str(uuid4()))) for row in rows]
    return llamaindex_setselect.WordRetriever.from_nodes(nodes, similarity_top_k=40)


def teams(found: Sequence[Any]) -> set[str]:
    return {metadata(one)["team"] for one in found}


@pytest.mark.filterwarnings("ignore::setselect.SetSelectWarning", "ignore:Payload indexes have no effect:UserWarning")
@pytest.mark.parametrize("follow", [False, True], ids=["", "follow"])
@pytest.mark.parametrize("name", STORES)
async def test_no_document_of_another_tenant_comes_back(name: str, follow: bool, tmp_path: Path) -> None:
    subject, opened, narrow = STORES[name]
    store = opened(TEAMS, tmp_path)
    searches = [{"extra_retrievers": second_search(subject, ids)} for ids in IDS] + [{}]
    if "Qdrant" not in name:
        searches.append({"keyword_search": True})
    for search in searches:
        settings = {"k": 8, "fetch_k": 9, "follow": follow, **search}
        made = subject.make(store, **settings, **narrow())
        for found in (subject.run(made), [] if name == SYNC_ONLY else await subject.arun(made)):
            assert teams(found) <= {"a"}, search
        assert len(found) == (0 if name == SYNC_ONLY else 8)
        assert teams(subject.run(subject.make(store, **settings))) == {"a", "b"}


@pytest.mark.parametrize("name", ["in memory", "FAISS", "Chroma", "Qdrant"])
def test_what_is_not_known_to_pass_is_told_and_a_retriever_may_filter_itself(name: str, tmp_path: Path) -> None:
    subject, opened, narrow = STORES[name]
    store, told = opened(TEAMS, tmp_path), list[Any]()
    other, settings = second_search(subject, "foreign"), {"k": 8, "fetch_k": 9, "extra_k": 40, **narrow()}
    with pytest.warns(SetSelectWarning, match=r"are left out.*FilteredRetriever"):
        subject.run(subject.make(store, **settings, extra_retrievers=other), told=told)
    assert len(told[0]["extra_retrievers"][0]["left_out"]) == 40
    # It filters nothing here, so its documents show that nobody else does.
    made = subject.make(store, **settings, extra_retrievers=[FilteredRetriever(other)])
    with pytest.warns(EmbeddingFallbackWarning):
        assert teams(subject.run(made)) == {"a", "b"}
    assert FilteredRetriever is llamaindex_setselect.FilteredRetriever


# Arrays as metadata


@pytest.mark.parametrize("array", [np.array(["a.md", "b.md"]), np.array([1.0, 2.0]), np.array([])], ids=str)
def test_an_array_is_a_missing_value_or_a_list(array: Any) -> None:
    arrays, lists = dict.fromkeys(KEYS, array), dict.fromkeys(KEYS, array.tolist())

    def run(values: dict[str, Any], **settings: Any) -> Any:
        store = LANGCHAIN.open([row._replace(metadata=values | row.metadata) for row in ROWS[:20]], "in memory")
        try:
            settings |= {"k": 3, "follow": True, "join_neighbours": True, "scores": True}
            return numbers(LANGCHAIN.run(LANGCHAIN.make(store, **settings)))
        except SetSelectError as error:
            return str(error)

    assert run(arrays) == run(lists)
    for setting in ("source", "title", "identifier", "cover"):
        assert run(arrays, **{setting: "title"}) == run(lists, **{setting: "title"})
    assert run(arrays, max_per_source=1) == run(lists, max_per_source=1)
