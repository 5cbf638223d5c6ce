"""Neighbours that are joined, in each class of both adapters that returns documents."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as IndexDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import MetadataMode, NodeRelationship

from langchain_setselect import SetSelectRetriever
from llamaindex_setselect import SetSelectIndexRetriever
from setselect import InvalidParameterError, SetSelectWarning
from tests.adapters.bindings import (
    RERANKERS,
    RETRIEVERS,
    Row,
    Subject,
    falling,
    metadata,
    over,
)
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

OVER_READERS = over(RETRIEVERS + RERANKERS)
TEXT = "\n\n".join(" ".join(f"Passage {p}.{s} tells of harbour {s * p}." for s in range(5)) for p in range(4))
JOINED = "alpha beta gamma delta epsilon zeta"


def story() -> list[Row]:
    """Ten rows whose cosine with the query falls; the third one stands before the first one in a document."""
    rows = falling([f"passage {row}" for row in range(10)])
    parts = {0: ("gamma delta epsilon zeta", 11), 2: ("alpha beta gamma delta epsilon", 0)}
    for row, (text, start) in parts.items():
        data = {"number": row, "source": "a.md", "start_index": start, "tokens": 5}
        rows[row] = rows[row]._replace(text=text, metadata=data)
    return rows


def body(result: Any) -> str:
    return str(result.page_content if isinstance(result, Document) else result.node.get_content(MetadataMode.NONE))


def make(subject: Subject, rows: list[Row], **settings: Any) -> Any:
    return subject.make(
        subject.open(rows, subject.kinds[0]),
        **{"k": 4, "selector": "similarity", "join_neighbours": True, "order": "selection", **settings},
    )


@OVER_READERS
async def test_neighbours_are_one_text_and_count_as_their_parts(subject: Subject) -> None:
    rows = story()
    made = make(subject, rows)
    told: list[Any] = []
    found = subject.run(made, rows, told)
    assert list(map(body, found)) == [JOINED, "passage 1", "passage 3"]
    names = [row.id for row in rows]
    merged = {**metadata(found[0])}
    assert [*merged.pop("selection_joined")] == [names[2], names[0]]
    assert merged == {"number": [2, 0], "source": "a.md", "start_index": 0, "tokens": 5}
    assert [metadata(one) for one in found[1:]] == [rows[1].metadata, rows[3].metadata]
    event = told[0]
    assert event["ids"] == names[:4]
    assert event["joined"] == [[names[2], names[0]]]
    assert list(map(body, await subject.arun(made, rows))) == list(map(body, found))
    # What was stored is as it was.
    assert [row.metadata for row in rows] == [row.metadata for row in story()]
    apart = subject.run(make(subject, rows, join_neighbours=False), rows, told)
    assert len(apart) == 4
    assert told[-1]["joined"] == []
    assert all("selection_joined" not in metadata(one) for one in apart)


@OVER_READERS
def test_scores_are_those_of_the_parts(subject: Subject) -> None:
    rows, told = story(), list[Any]()
    found = subject.run(make(subject, rows, scores=True, selector="coverage"), rows, told)
    whole = next(metadata(one) for one in found if "selection_joined" in metadata(one))
    place = {name: at for at, name in enumerate(told[0]["ids"])}
    parts = [place[name] for name in whole["selection_joined"]]
    assert whole["selection_score"] == pytest.approx(sum(told[0]["gains"][at] for at in parts))
    assert whole["relevance_score"] == max(told[0]["relevance"][at] for at in parts)
    assert whole["selection_reason"].split(" / ") == [told[0]["reasons"][at] for at in sorted(parts)]


@OVER_READERS
def test_shown_takes_the_names_of_the_parts(subject: Subject) -> None:
    rows = story()
    first = subject.run(make(subject, rows), rows)
    shown = [name for one in first for name in metadata(one).get("selection_joined", [])]
    assert len(shown) == 2
    again = subject.run(make(subject, rows, shown=shown), rows)
    assert list(map(body, again)) == ["passage 1", "passage 3", "passage 4", "passage 5"]


@OVER_READERS
def test_the_setting_says_who_is_next(subject: Subject) -> None:
    rows = story()
    numbers = {rows[1].id: 7, rows[3].id: 8}
    found = subject.run(make(subject, rows, neighbours=numbers, source=lambda _: "a book"), rows)
    assert list(map(body, found)) == [
        "gamma delta epsilon zeta",
        "passage 1\n\npassage 3",
        "alpha beta gamma delta epsilon",
    ]
    with pytest.warns(SetSelectWarning, match="^neighbours .*coverage"):
        make(subject, rows, neighbours="number", join_neighbours=False)


@OVER_READERS
@pytest.mark.parametrize("wrong", [{"join_neighbours": "sometimes"}, {"neighbours": 3}], ids=str)
def test_wrong_values_are_refused_by_name(subject: Subject, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        subject.make(subject.corpus(), **{"join_neighbours": True, **wrong})


# Real splitters, from the text to the answer


def test_chunks_of_langchain_become_the_text_again() -> None:
    splitter = RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=40, add_start_index=True)
    chunks = splitter.split_documents([Document(TEXT, metadata={"source": "a.md"})])
    store = InMemoryVectorStore.from_documents(chunks, WordEmbeddings())
    retriever = SetSelectRetriever(vectorstore=store, k=len(chunks), fetch_k=50, join_neighbours=True, min_gain=0.0)
    (found,) = retriever.invoke("harbour passage")
    assert found.page_content.split() == TEXT.split()
    assert len(found.metadata["selection_joined"]) == len(chunks) > 6
    assert retriever.invoke("harbour passage", k=2, join_neighbours=False)[0].metadata.keys() == {
        "source",
        "start_index",
    }
    # Chunks whose neighbours the filter leaves out stay apart.
    kept = [chunk.metadata["start_index"] for chunk in chunks[::3]]
    some = retriever.invoke("harbour passage", filter=lambda one: one.metadata["start_index"] in kept, k=2)
    assert all("selection_joined" not in one.metadata for one in some)
    again = pickle.loads(pickle.dumps(SetSelectRetriever(vectorstore=store, k=3, join_neighbours=True)))
    assert again.join_neighbours


def test_nodes_of_llamaindex_become_the_text_again() -> None:
    nodes = SentenceSplitter(chunk_size=60, chunk_overlap=20).get_nodes_from_documents(
        [IndexDocument(text=TEXT, id_="file", metadata={"file_name": "a.md"})]
    )
    index = VectorStoreIndex(nodes, embed_model=CountingEmbedding())
    (found,) = SetSelectIndexRetriever(index, similarity_top_k=len(nodes), fetch_k=50, join_neighbours=True).retrieve(
        "harbour"
    )
    node: Any = found.node
    assert node.text.split() == TEXT.split()
    assert node.ref_doc_id == "file"
    assert (node.start_char_idx, node.end_char_idx) == (0, len(TEXT))
    assert [*node.metadata.pop("selection_joined")] == [one.node_id for one in nodes]
    assert node.metadata == {"file_name": "a.md"}
    assert "selection_joined" not in node.get_content(MetadataMode.LLM) + node.get_content(MetadataMode.EMBED)
    assert {NodeRelationship.PREVIOUS, NodeRelationship.NEXT}.isdisjoint(node.relationships)
    two = SetSelectIndexRetriever(
        index, similarity_top_k=2, fetch_k=3, join_neighbours=True, node_ids=[n.node_id for n in nodes[1:3]]
    )
    (found,) = two.retrieve("harbour")
    relations: Any = found.node
    assert (relations.prev_node.node_id, relations.next_node.node_id) == (nodes[0].node_id, nodes[3].node_id)
    assert [one.metadata for one in nodes] == [{"file_name": "a.md"}] * len(nodes)


def test_windows_of_sentences_are_replaced_after_joining() -> None:
    nodes = SentenceWindowNodeParser(window_size=1).get_nodes_from_documents([IndexDocument(text=TEXT)])
    index = VectorStoreIndex(nodes, embed_model=CountingEmbedding())
    ids = [node.node_id for node in nodes[1:3]]
    joined = SetSelectIndexRetriever(index, similarity_top_k=2, fetch_k=3, node_ids=ids, join_neighbours=True).retrieve(
        "harbour"
    )
    (found,) = MetadataReplacementPostProcessor("window").postprocess_nodes(joined)
    assert [found.node.get_content(MetadataMode.NONE).count(f"0.{s} ") for s in range(5)] == [1, 1, 1, 1, 0]
