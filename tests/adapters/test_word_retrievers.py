"""What the two WordRetrievers promise together: one test runs with each."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_setselect
import llamaindex_setselect
from setselect import InvalidInputError, InvalidParameterError
from tests import oracles


@dataclass(frozen=True)
class Kind:
    """One of the classes under common names."""

    name: str
    item: Callable[[str, str, dict[str, Any]], Any]
    make: Callable[..., Any]
    size: str
    retrieve: str
    aretrieve: str
    filtered: Callable[[int], dict[str, Any]]

    def over(self, texts: Sequence[str], **settings: Any) -> Any:
        items = [self.item(text, f"id{i}", {"n": i, "tags": ["a"]}) for i, text in enumerate(texts)]
        return self.make(items, **settings)

    def found(self, retriever: Any, question: Any) -> list[Any]:
        """The documents or nodes."""
        hits: list[Any] = getattr(retriever, self.retrieve)(question)
        return [getattr(hit, "node", hit) for hit in hits]

    def numbers(self, retriever: Any, question: str) -> list[int]:
        return [item.metadata["n"] for item in self.found(retriever, question)]


LANGCHAIN = Kind(
    "langchain",
    lambda text, name, metadata: Document(text, id=name, metadata=metadata),
    langchain_setselect.WordRetriever.from_documents,
    "k", "invoke", "ainvoke",
    lambda n: {"filter": {"n": n}},
)  # fmt: skip
LLAMAINDEX = Kind(
    "llamaindex",
    lambda text, name, metadata: TextNode(
        text=text, id_=name, metadata=metadata, excluded_embed_metadata_keys=[*metadata]
    ),
    llamaindex_setselect.WordRetriever.from_nodes,
    "similarity_top_k", "retrieve", "aretrieve",
    lambda n: {"filters": MetadataFilters(filters=[MetadataFilter(key="n", value=n)])},
)  # fmt: skip
TEXTS = ["red lamp", "blue lamp, and a red fuse", "", "Error KB5034441: no disk", "lamp lamp lamp", "数据库连接超时"]
SPLIT = ["red lamp", "blue lamp red fuse", "", "error kb5034441 no disk kb 5034441", "lamp lamp lamp", ""]


@pytest.fixture(params=[LANGCHAIN, LLAMAINDEX], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


async def test_the_best_by_bm25_in_order_sync_and_async(kind: Kind) -> None:
    # Without the stop words and the Chinese text, whose pairs and characters are not in the oracle's.
    retriever = kind.over(TEXTS[:5])
    scores = oracles.bm25(["red", "lamp"], [[w for w in text.split() if w != "no"] for text in SPLIT[:5]])
    wanted = [row for row in np.argsort(-scores, kind="stable").tolist() if scores[row] > 0]
    assert kind.numbers(retriever, "The RED lamp?") == wanted
    hits = retriever.retrieve("red lamp") if kind is LLAMAINDEX else []
    assert [hit.score for hit in hits] == pytest.approx(scores[wanted] if hits else [], rel=1e-5)
    found = await getattr(retriever, kind.aretrieve)("The red lamp?")
    assert found == getattr(retriever, kind.retrieve)("The RED lamp?")
    assert kind.numbers(kind.over(TEXTS), "连接") == [5]
    assert kind.numbers(retriever, "kb") == kind.numbers(retriever, "5034441") == [3]
    assert kind.numbers(retriever, "") == kind.numbers(retriever, "zyzzyva the") == []


def test_settings_and_filters(kind: Kind) -> None:
    assert kind.numbers(kind.over(TEXTS, **{kind.size: np.int64(2)}), "lamp") == [4, 0]
    assert kind.numbers(kind.over(TEXTS, **kind.filtered(1)), "lamp") == [1]
    assert kind.numbers(kind.over(TEXTS, **{kind.size: 1}, **kind.filtered(9)), "lamp") == []
    for bad in (0, -1, 2.5, "3", True):
        with pytest.raises(InvalidParameterError, match=kind.size):
            kind.over(TEXTS, **{kind.size: bad})
    with pytest.raises((InvalidParameterError, TypeError), match="'K'"):
        kind.over(TEXTS, K=3)
    with pytest.raises(InvalidInputError, match="item 1 "):
        kind.make([kind.item("lamp", "a", {}), "lamp"])
    with pytest.raises(InvalidInputError, match="list of"):
        kind.make("lamp")


def test_nothing_of_the_callers_is_shared_or_changed(kind: Kind) -> None:
    item = kind.item("red lamp", "a", {"n": 1, "tags": ["x"]})
    before = item.model_dump()
    retriever = kind.make([item])
    [first] = kind.found(retriever, "lamp")
    assert first.model_dump() == before
    for owner in (first, item):
        owner.metadata["tags"].append("y")
        owner.metadata["n"] = 2
    [again] = kind.found(retriever, "lamp")
    assert again.model_dump() == before


def test_of_several_items_with_one_id_the_last_counts(kind: Kind) -> None:
    empty = kind.over([])
    assert (bool(empty), kind.numbers(empty, "lamp")) == (True, [])
    items = [
        kind.item(text, f"id{n % 3}", {"n": n}) for n, text in enumerate(["lamp", "a lamp", "fuse", "fuse", "fuse"])
    ]
    retriever = kind.make(items)
    assert kind.numbers(retriever, "lamp") == []
    assert kind.numbers(retriever, "fuse") == [3, 4, 2]


def test_pickles_and_copies_find_the_same(kind: Kind) -> None:
    retriever = kind.over(TEXTS)
    others = [pickle.loads(pickle.dumps(retriever)), copy.deepcopy(retriever)]
    for question in ("red lamp", "kb5034441", "数据库", "zyzzyva"):
        wanted = getattr(retriever, kind.retrieve)(question)
        # The last pickle holds the words of the texts.
        for other in [*others, pickle.loads(pickle.dumps(retriever))]:
            assert getattr(other, kind.retrieve)(question) == wanted
