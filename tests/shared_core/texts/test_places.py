"""Who stands next to whom: what real splitters and loaders write, settings, and bad input."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter, TextSplitter
from llama_index.core import Document as IndexDocument
from llama_index.core.node_parser import SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.node_parser.interface import NodeParser
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from setselect import InvalidInputError, SetSelectWarning
from shared_core.facts import item_id, read_facts
from shared_core.retrieval.request import read_some
from shared_core.texts.neighbours import Neighbours, find_neighbours

TEXTS = [
    "\n\n".join(" ".join(f"Sentence {p}.{s} of {name} tells of matter {s * p}." for s in range(5)) for p in range(4))
    for name in ("Oslo", "Rome")
]


def read(items: Sequence[Any], neighbours: Any = None, source: Any = "source") -> Neighbours:
    given = {
        name: read_some(items, value, name, tells=False)
        for name, value in (("neighbours", neighbours), ("source", source))
        if value is not None
    }
    facts = read_facts(items, list(map(item_id, items)), given)
    return find_neighbours(
        facts, [one.page_content if isinstance(one, Document) else one.get_content() for one in items]
    )


def pairs(items: Sequence[Any], *settings: Any) -> list[tuple[int, int]]:
    """Each item, and the item after it; both sides say the same."""
    found = read(items, *settings)
    after = [(row, other) for row, others in enumerate(found.after) for other in others]
    assert sorted(after) == sorted((other, row) for row, others in enumerate(found.before) for other in others)
    return sorted(after)


def documents(*metadatas: dict[str, Any], texts: Sequence[str] = ()) -> list[Document]:
    names = texts or [f"text {row}" for row in range(len(metadatas))]
    return [
        Document(name, id=f"d{row}", metadata={"source": "a.md", **metadata})
        for row, (name, metadata) in enumerate(zip(names, metadatas, strict=True))
    ]


def in_order(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of documents that are split into so many parts."""
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return [(i, i + 1) for start, length in zip(starts, lengths, strict=True) for i in range(start, start + length - 1)]


# Real splitters and loaders


@pytest.mark.parametrize("overlap", [0, 40])
@pytest.mark.parametrize("splitter", [RecursiveCharacterTextSplitter, partial(CharacterTextSplitter, separator=" ")])
def test_a_splitter_of_langchain_writes_where_chunks_begin(splitter: Callable[..., TextSplitter], overlap: int) -> None:
    splits = splitter(chunk_size=120, chunk_overlap=overlap, add_start_index=True)
    of_each = [
        splits.split_documents([Document(text, metadata={"source": f"{row}.md"})]) for row, text in enumerate(TEXTS)
    ]
    chunks = [chunk for some in of_each for chunk in some]
    assert len(chunks) > 8
    assert pairs(chunks) == in_order([len(some) for some in of_each])
    # Of each document, the chunk before the last one is no candidate.
    del chunks[len(of_each[0]) - 2]
    left = in_order([len(of_each[0]) - 2, 1, len(of_each[1])])
    # Where chunks overlap by more than half, the last two of a document may still touch.
    assert set(left) <= set(pairs(chunks)) <= {*left, (len(of_each[0]) - 3, len(of_each[0]) - 2)}


@pytest.mark.parametrize("parser", [SentenceSplitter(chunk_size=60, chunk_overlap=15), SentenceWindowNodeParser()])
def test_nodes_say_their_neighbours(parser: NodeParser) -> None:
    files = [IndexDocument(text=text, id_=str(row), metadata={"page": 7}) for row, text in enumerate(TEXTS)]
    nodes = parser.get_nodes_from_documents(files)
    lengths = [sum(node.ref_doc_id == str(row) for node in nodes) for row in range(2)]
    assert min(lengths) > 3
    assert pairs(nodes) == in_order(lengths)
    shuffled = np.random.default_rng(0).permutation(len(nodes)).tolist()
    place = {row: at for at, row in enumerate(shuffled)}
    assert pairs([nodes[row] for row in shuffled]) == sorted((place[a], place[b]) for a, b in in_order(lengths))


def test_parents_have_the_places_of_their_splitter() -> None:
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0, add_start_index=True),
        parent_splitter=RecursiveCharacterTextSplitter(chunk_size=220, chunk_overlap=0, add_start_index=True),
        search_kwargs={"k": 50},
    )
    retriever.add_documents([Document(text, metadata={"source": f"{row}.md"}) for row, text in enumerate(TEXTS)])
    parents = sorted(retriever.invoke("Oslo"), key=lambda one: (one.metadata["source"], one.metadata["start_index"]))
    assert len(parents) > 4
    assert pairs(parents) == in_order([sum(one.metadata["source"] == f"{row}.md" for one in parents) for row in (0, 1)])
    # Children begin anew in each parent, and keep the source: their places contradict each other.
    children = retriever.vectorstore.similarity_search("Oslo", k=50)
    assert pairs(children) == []


def test_parts_of_the_pages_of_a_pdf_follow_each_other_within_the_page() -> None:
    pages = [
        Document(text, metadata={"source": "a.pdf", "page": page, "page_label": str(page + 1), "total_pages": 3})
        for page, text in enumerate([*TEXTS, "The end."])
    ]
    # Pages may be split, so their numbers count only if the setting says so.
    assert pairs(pages) == []
    assert pairs(pages, "page") == [(0, 1), (1, 2)]
    splits = RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=0, add_start_index=True).split_documents(
        pages
    )
    lengths = [sum(one.metadata["page"] == page for one in splits) for page in range(3)]
    assert pairs(splits) == in_order(lengths)


# Places by other keys, and by the setting


@pytest.mark.parametrize("key", ["chunk_index", "chunk", "seq_num"])
def test_numbers_follow_each_other(key: str) -> None:
    assert pairs(documents(*({key: value} for value in ("3", 2.0, np.int64(5), "x", None, -1, True, 2.5)))) == [(1, 0)]


def test_the_first_key_with_a_number_counts() -> None:
    metadatas = [{"start_index": -1, "chunk_index": row, "page": row // 2} for row in range(3)]
    assert pairs(documents(*metadatas)) == [(0, 1), (1, 2)]


def test_the_setting_gives_numbers() -> None:
    rows = documents({"nr": 2}, {"nr": "1"}, {"nr": float("nan")}, {"nr": pd.NA})
    assert pairs(rows, "nr") == pairs(rows, {"d0": 2, "d1": 1}) == [(1, 0)]
    assert pairs(rows, lambda item: item.metadata["nr"]) == [(1, 0)]
    # It takes the place of what the metadata say.
    assert pairs(documents({"chunk": 1, "nr": 7}, {"chunk": 2, "nr": 9}), "nr") == []


@pytest.mark.parametrize("value", ["first", -1, 1.5, ("d0", "d2"), {"previous": 1}, True])
def test_a_value_that_is_neither_is_refused_with_the_item(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="d1"):
        read(documents({"nr": 1}, {"nr": value}), "nr")


def test_numbers_without_a_source_are_told() -> None:
    items = [Document("a", metadata={"nr": 1}), Document("b", metadata={"nr": 2})]
    with pytest.warns(SetSelectWarning, match="source"):
        assert pairs(items, "nr") == []
    assert pairs(items, "nr", lambda item: "one") == [(0, 1)]
    assert pairs(items) == []


# Documents


def test_each_document_has_its_own_places() -> None:
    rows = documents({"chunk": 1}, {"chunk": 2, "source": "b.md"}, {"chunk": 2}, {"chunk": 3, "source": ""})
    assert pairs(rows) == [(0, 2)]
    # The file is the document where the setting names something larger.
    assert pairs(documents({"chunk": 1, "site": 1}, {"chunk": 2, "site": 1, "source": "b.md"}), None, "site") == []
    assert pairs([Document(str(i), metadata={"site": 1, "chunk": i}) for i in range(2)], None, "site") == [(0, 1)]


def test_several_documents_of_one_source_have_no_neighbours() -> None:
    rows = documents({"chunk": 1}, {"chunk": 2}, {"chunk": 2}, {"chunk": 3}, texts=["a", "b", "other", "c"])
    assert pairs(rows) == []
    copies = documents({"chunk": 1}, {"chunk": 2}, {"chunk": 2}, {"chunk": 3}, texts=["a", "b", "b", "c"])
    assert pairs(copies) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    starts = documents(
        {"start_index": 0}, {"start_index": 0}, {"start_index": 5}, texts=["whole text", "whole", " text"]
    )
    assert pairs(starts) == []


def test_chunks_touch_if_no_text_stands_between_them() -> None:
    def beside(start: int) -> bool:
        return pairs(documents({"start_index": 0}, {"start_index": start}, texts=["a" * 100, "b" * 50])) == [(0, 1)]

    assert [beside(start) for start in (40, 60, 100, 110, 111)] == [False, True, True, True, False]


# Nodes that contradict each other


def node(name: str, previous: Any = None, following: Any = None, document: str = "a", **more: Any) -> TextNode:
    given = {NodeRelationship.PREVIOUS: previous, NodeRelationship.NEXT: following, NodeRelationship.SOURCE: document}
    related: Any = {key: RelatedNodeInfo(node_id=value) for key, value in given.items() if isinstance(value, str)}
    related |= {
        key: [RelatedNodeInfo(node_id=one) for one in value] for key, value in given.items() if isinstance(value, list)
    }
    return TextNode(id_=name, **{"text": name, **more}, relationships=related)


def test_one_node_may_say_it_for_both() -> None:
    assert pairs([node("1", following="2"), node("2"), node("3", previous="2")]) == [(0, 1), (1, 2)]


def test_nodes_that_contradict_each_other_are_no_neighbours() -> None:
    assert pairs([node("1", following="2"), node("2", previous="elsewhere"), node("3", previous="2")]) == [(1, 2)]
    assert pairs([node("1", following="1")]) == []
    assert pairs([node("1", following="2"), node("2", previous="1", text=" "), node("3", following=["1"])]) == []


def test_a_cycle_is_read_and_becomes_one_run() -> None:
    nodes = [node(str(i), str((i - 1) % 3), str((i + 1) % 3)) for i in range(3)]
    assert pairs(nodes) == [(0, 1), (1, 2), (2, 0)]
    assert len(read(nodes).find_runs([1, 0, 2])) == 1


def test_only_candidates_are_neighbours() -> None:
    nodes = [node(str(i), str(i - 1), str(i + 1)) for i in range(4)]
    assert pairs([nodes[0], nodes[2], nodes[3]]) == [(1, 2)]


# Runs


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.permutations(range(10)),
    st.integers(0, 10),
)
def test_runs_hold_each_row_once_and_only_neighbours(
    links: list[tuple[int, int]], order: list[int], count: int
) -> None:
    after = [[b for a, b in links if a == row != b] for row in range(10)]
    rows = order[:count]
    runs = Neighbours([[]] * 10, after).find_runs(rows)
    assert sorted(row for run in runs for row in run) == sorted(rows)
    assert all(b in after[a] for run in runs for a, b in pairwise(run))
    # A run stands where the first of its rows was selected.
    first = [min(map(rows.index, run)) for run in runs]
    assert first == sorted(first)


def test_reading_takes_linear_time() -> None:
    n = 40_000
    rows = documents(*({"chunk": i} for i in range(n)))
    started = time.process_time()
    assert read(rows).find_runs([2, 0, 1]) == [[0, 1, 2]]
    assert time.process_time() - started < 15
