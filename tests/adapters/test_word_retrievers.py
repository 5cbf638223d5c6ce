"""What the two WordRetrievers promise together: one test runs with each."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import langchain_setselect
import llamaindex_setselect
from setselect import InvalidInputError, InvalidParameterError
from shared_core.retrieval import word_search
from tests import oracles


@dataclass(frozen=True)
class Kind:
    """One of the classes under common names."""

    name: str
    item: Callable[[str, str, dict[str, Any]], Any]
    make: Callable[..., Any]
    load: Callable[..., Any]
    size: str
    add: str
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
    langchain_setselect.WordRetriever.load,
    "k", "add_documents", "invoke", "ainvoke",
    lambda n: {"filter": {"n": n}},
)  # fmt: skip
LLAMAINDEX = Kind(
    "llamaindex",
    lambda text, name, metadata: TextNode(
        text=text, id_=name, metadata=metadata, excluded_embed_metadata_keys=[*metadata]
    ),
    lambda nodes, **settings: llamaindex_setselect.WordRetriever.from_defaults(nodes=nodes, **settings),
    llamaindex_setselect.WordRetriever.load,
    "similarity_top_k", "add_nodes", "retrieve", "aretrieve",
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
    with pytest.raises(InvalidParameterError, match=f"did you mean '{kind.size}'"):
        kind.over(TEXTS, **{"similarity_topk" if kind is LLAMAINDEX else "K": 3})
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


def test_added_replaced_and_deleted(kind: Kind) -> None:
    retriever = kind.over([])
    assert (len(retriever), bool(retriever), kind.numbers(retriever, "lamp")) == (0, True, [])
    getattr(retriever, kind.add)([kind.item(text, f"id{i}", {"n": i}) for i, text in enumerate(TEXTS)])
    assert len(retriever) == len(TEXTS)
    assert kind.numbers(retriever, "lamp") == kind.numbers(kind.over(TEXTS), "lamp")
    getattr(retriever, kind.add)([kind.item("a fuse", "id0", {"n": 7}), kind.item("a fuse", "id0", {"n": 8})])
    assert kind.numbers(retriever, "fuse") == [8, 1]
    retriever.delete(["id0", "unknown"])
    retriever.delete([])
    assert (kind.numbers(retriever, "fuse"), len(retriever)) == ([1], len(TEXTS) - 1)
    # What is left is what an index made anew gives.
    assert kind.numbers(retriever, "red lamp") == kind.numbers(kind.over(["", *TEXTS[1:]]), "red lamp")
    with pytest.raises(InvalidParameterError, match="not one string"):
        retriever.delete("id1")


def test_pickles_copies_and_files_find_the_same(kind: Kind, tmp_path: Path) -> None:
    retriever, path = kind.over(TEXTS), tmp_path / "words"
    retriever.save(path)
    others = [pickle.loads(pickle.dumps(retriever)), copy.deepcopy(retriever), kind.load(path)]
    for question in ("red lamp", "kb5034441", "数据库", "zyzzyva"):
        wanted = getattr(retriever, kind.retrieve)(question)
        for other in others:
            assert getattr(other, kind.retrieve)(question) == wanted
    for other in others:
        other.delete(["id0"])
        assert len(other) == len(retriever) - 1
    assert kind.numbers(kind.load(path, **{kind.size: 1}), "lamp") == [4]
    kind.over([]).save(path)
    assert kind.numbers(kind.load(str(path)), "lamp") == []


def test_files_that_are_damaged_or_of_the_other_framework_are_refused(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "words"
    kind.over(TEXTS).save(path)
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:100], whole.replace(b"lamp", b"limp", 1), b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=f"^{re.escape(str(path))}: "):
            kind.load(path)
    other = LLAMAINDEX if kind is LANGCHAIN else LANGCHAIN
    other.over(TEXTS).save(path)
    with pytest.raises(
        InvalidInputError, match=r"'setselect-(documents|nodes)'.*'setselect-(documents|nodes)' is needed"
    ):
        kind.load(path)
    bad = kind.make([kind.item("lamp", "id0", {}), kind.item("fuse", "the bad one", {"n": {1, 2}})])
    with pytest.raises(InvalidInputError, match=r"'the bad one'.*set is not JSON"):
        bad.save(path)
    assert path.read_bytes() != b"", "a failed save keeps the old file"
    assert other.numbers(other.load(path), "kb5034441") == [3]


def test_a_search_sees_all_of_a_change_or_nothing(kind: Kind) -> None:
    retriever = kind.over(["lamp one"] * 50)
    done, mixed = threading.Event(), list[list[int]]()

    def search() -> None:
        while not done.is_set():
            numbers = kind.numbers(retriever, "lamp")
            generations = {number // 100 for number in numbers}
            if len(numbers) != 25 or len(generations) > 1:
                mixed.append(numbers)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for generation in range(1, 15):
        # The same ids: each change replaces all of them.
        items = [kind.item(f"lamp {generation}", f"id{i}", {"n": generation * 100 + i}) for i in range(50)]
        getattr(retriever, kind.add)(items)
        assert {number // 100 for number in kind.numbers(retriever, "lamp")} == {generation}
    done.set()
    for thread in threads:
        thread.join()
    assert mixed == []


def test_a_progress_bar_is_shown_for_many_texts(
    kind: Kind, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert word_search.SHOWN_FROM == 20_000
    monkeypatch.setattr(word_search, "SHOWN_FROM", 10)
    retriever = kind.over([f"lamp {i}" for i in range(12)])
    kind.found(retriever, "lamp")
    assert "indexing words: 100%" in capsys.readouterr().err
    getattr(retriever, kind.add)([kind.item("lamp 12", "new", {"n": 12})])
    assert len(kind.found(retriever, "lamp")) == 13
    assert capsys.readouterr().err == ""


def test_a_store_with_too_many_documents_is_not_read(kind: Kind) -> None:
    retriever = kind.over(TEXTS)

    def refuse() -> list[Any]:
        raise AssertionError("the documents are read")

    retriever.words.listing = word_search.Listing(refuse, lambda: 1_000_001)
    with pytest.raises(InvalidParameterError, match=r"1000001.*at most 1000000"):
        kind.found(retriever, "lamp")
    for change in (lambda: retriever.delete(["id0"]), lambda: getattr(retriever, kind.add)([])):
        with pytest.raises(InvalidParameterError, match="those of a store"):
            change()


def test_many_tasks_at_once(kind: Kind) -> None:
    retriever = kind.over(TEXTS)

    async def run() -> list[Any]:
        return await asyncio.gather(*(getattr(retriever, kind.aretrieve)("lamp") for _ in range(20)))

    first, *rest = asyncio.run(run())
    assert len(first) == 3
    assert all(found == first for found in rest)
