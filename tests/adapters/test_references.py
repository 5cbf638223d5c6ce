"""Texts that an earlier pick refers to, and references that are followed, in each class of both adapters."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

from setselect import Coverage, InvalidInputError, SetSelectWarning
from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RERANKERS,
    RETRIEVERS,
    Row,
    Subject,
    _node,
    falling,
    metadata,
    name_of,
    numbers,
    over,
    unit,
)
from tests.embedding import embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

# No text has a word of the query.
LAST, HIDDEN = 19, 24
# How many names and links are followed, and how many items each search for a name adds at most.
FOLLOWED, FOLLOW_K = 20, 2
# A text is not called by a name that stands this far from its beginning.
START = "this passage has more words than anybody wants to read, before it says"
NAMING, NAMED = f"{START} that Ann Lee made it.", "she comes from there."
OVER_READERS = over(RETRIEVERS + RERANKERS)
OVER_RETRIEVERS = over(RETRIEVERS)


def story(count: int = 20) -> list[Row]:
    """Rows whose cosine with the query falls from 0.6 to 0.4; the first one refers to the last one, "Ann Lee"."""
    rows = falling([f"passage {i}" for i in range(count)])
    rows[0] = rows[0]._replace(text=NAMING)
    rows[-1] = rows[-1]._replace(text=NAMED, metadata={"number": count - 1, "title": "Ann Lee"})
    return rows


def hidden(naming: str = NAMING, named: str = NAMED) -> list[Row]:
    """25 rows, of which a search finds the first 20. The last one is near to its name, "Ann Lee"."""
    rows = story(HIDDEN + 1)
    q, name = unit(embed(QUERY)), unit(embed("Ann Lee"))
    vector = 0.4 * q + np.sqrt(1 - 0.4**2) * unit(name - (name @ q) * q)
    rows[0] = rows[0]._replace(text=naming)
    rows[-1] = rows[-1]._replace(text=named, vector=vector)
    return rows


def replaced(rows: list[Row], number: int, text: str | None = None, **more: Any) -> list[Row]:
    """The rows with another text, and more metadata, of one of them; None removes a key."""
    row = rows[number]
    data = {key: value for key, value in {**row.metadata, **more}.items() if value is not None}
    return [*rows[:number], row._replace(text=text or row.text, metadata=data), *rows[number + 1 :]]


def found(subject: Subject, rows: list[Row], told: list[Any] | None = None, **settings: Any) -> list[int]:
    """The numbers of three rows that a new object selects."""
    store = subject.open(rows, subject.kinds[0])
    return numbers(subject.run(subject.make(store, k=3, **settings), rows, told))


# What refers to what


@OVER_READERS
@pytest.mark.parametrize("kind", [0, 1])
async def test_by_default_a_text_whose_title_stands_in_a_pick_is_selected(subject: Subject, kind: int) -> None:
    rows = story()
    store = subject.open(rows, subject.kinds[kind])
    for settings, third in (
        ({}, LAST),
        ({"selector": Coverage(reference_weight=0)}, 2),
        ({"selector": "ndpp"}, 2),
    ):
        made = subject.make(store, k=3, **settings)
        for copied in (made, pickle.loads(pickle.dumps(made))):
            assert {*numbers(subject.run(copied, rows))} == {0, 1, third}


BOB = {"text": NAMING.replace("Ann Lee", "Bob Ray"), "name": float("nan")}
URL = "https://example.org/19"


# What the first and the last row have besides, the settings, and the pick besides the rows 0 and 1.
@OVER_READERS
@pytest.mark.parametrize(
    ("first", "last", "settings", "third"),
    [
        # Names stand where loaders and splitters write them, or in the text.
        *(
            ({}, {"title": None, **last}, {}, LAST)
            for last in (
                {"text": "Ann Lee was born in Perth."},
                {"file_name": "Ann_Lee.md"},
                {"file_name": "ann_lee.md", "text": "Ann Lee was born in Perth."},
            )
        ),
        # Chunks of one document share its title and do not refer to each other.
        ({"title": "Ann Lee"}, {}, {}, 2),
        # A title may be any key, a function or a mapping, which some items lack.
        (BOB, {"name": "Bob Ray"}, {}, 2),
        (BOB, {"name": "Bob Ray", "Header 1": "Painters"}, {"title": "name"}, LAST),
        (BOB, {}, {"title": {"doc-19": "Bob Ray"}}, LAST),
        # Links are ids, titles or URLs.
        ({"text": "passage 0", "links": "doc-19"}, {}, {}, 2),
        *(
            ({"text": "passage 0", "links": link}, {"url": URL}, {"links": links}, LAST)
            for link in ("doc-19", f"{URL}/#born", ["nowhere", {"url": URL}])
            for links in ("links", {"doc-0": link})
        ),
        # A text with links refers to nothing else.
        ({"links": ["doc-7"]}, {}, {"links": "links"}, 7),
    ],
    ids=name_of,
)
def test_names_and_links(
    subject: Subject, first: dict[str, Any], last: dict[str, Any], settings: dict[str, Any], third: int
) -> None:
    told: list[Any] = []
    picked = found(subject, replaced(replaced(story(), 0, **first), LAST, **last), told, **settings)
    assert {*picked} == {0, 1, third}
    # The event of the readers says how a text refers to another one.
    kinds = dict(zip(told[0]["ids"], told[0]["reference_kinds"], strict=True))
    kind = None if third == 2 else "link" if "links" in settings else "name"
    assert kinds == {"doc-0": None, "doc-1": None, f"doc-{third}": kind}


CITING = f"{START}: subject to Rule 4.5.1(2) and error E1042."


@OVER_READERS
@pytest.mark.parametrize(
    ("first", "last", "settings", "third"),
    [
        *(
            ({"source": "a.pdf"}, {"source": "a.pdf", **last}, {"source": "source"}, LAST)
            for last in (
                {"section": "4.5.1"},
                {"code": "E1042"},
            )
        ),
        # Without a source of any text, and with another one.
        ({}, {"section": "4.5.1"}, {"source": lambda item: None}, LAST),
        ({"source": "a.pdf"}, {"source": "b.pdf", "section": "4.5.1"}, {"source": "source"}, 2),
        (
            {"source": "a.pdf", "text": f"{CITING} Rule 4.5.1 of AML"},
            {"source": "AML.pdf", "section": "4.5.1"},
            {},
            LAST,
        ),
        # Another key, a function, values by id, and a number that another one begins with.
        ({}, {"code_of": "E1042"}, {"identifier": "code_of"}, LAST),
        ({}, {}, {"identifier": {"doc-19": "E1042"}}, LAST),
        ({}, {"section": "E1042"}, {"selector": Coverage(reference_weight=0)}, 2),
    ],
    ids=name_of,
)
def test_citations(
    subject: Subject, first: dict[str, Any], last: dict[str, Any], settings: dict[str, Any], third: int
) -> None:
    told: list[Any] = []
    rows = replaced(replaced(story(), 0, **{"text": CITING, **first}), LAST, **{"title": None, **last})
    picked = found(subject, rows, told, **settings)
    assert {*picked} == {0, 1, third}
    if "selector" not in settings:
        kinds = dict(zip(told[0]["ids"], told[0]["reference_kinds"], strict=True))
        assert kinds[f"doc-{third}"] == (None if third == 2 else "citation")


@OVER_READERS
@pytest.mark.parametrize(
    ("first", "last", "settings", "third"),
    [
        ({"chunk_index": 4}, {"chunk_index": 5}, {}, LAST),
        ({"part": 4}, {"part": 5}, {"neighbours": "part"}, LAST),
        # Not beside each other, not of one document, or switched off.
        ({"chunk_index": 4}, {"chunk_index": 5, "source": "b.pdf"}, {}, 2),
        ({"chunk_index": 4}, {"chunk_index": 5}, {"selector": Coverage(neighbour_weight=0)}, 2),
        ({"chunk_index": 4}, {"chunk_index": 5}, {"selector": Coverage(reference_weight=0, neighbour_weight=20)}, LAST),
    ],
    ids=name_of,
)
def test_neighbours(
    subject: Subject, first: dict[str, Any], last: dict[str, Any], settings: dict[str, Any], third: int
) -> None:
    told: list[Any] = []
    rows = replaced(story(), 0, **{"text": "passage 0", "source": "a.pdf", **first})
    rows = replaced(rows, LAST, **{"title": None, "source": "a.pdf", **last})
    picked = found(subject, rows, told, **{"selector": Coverage(neighbour_weight=20), **settings})
    assert {*picked} == {0, 1, third}
    kinds = dict(zip(told[0]["ids"], told[0]["reference_kinds"], strict=True))
    assert kinds[f"doc-{third}"] == (None if third == 2 else "neighbour")


@OVER_READERS
def test_a_key_that_no_candidate_has_is_warned_of_and_a_wrong_link_is_refused(subject: Subject) -> None:
    for name in ("title", "links"):
        with pytest.warns(SetSelectWarning, match=rf"{name} .*'titel'.* 20 .*'number', 'title'"):
            assert {*found(subject, story(), **{name: "titel"})} == {0, 1, LAST}
    with pytest.raises(InvalidInputError, match=r"item 0 .*doc-0.*links.* 5\.5"):
        found(subject, replaced(story(), 0, links=5.5), links="links")


@over(EXAMPLES)
def test_examples_refer_to_each_other_only_on_request(subject: Subject) -> None:
    assert {*found(subject, story())} == {0, 1, 2}
    rows = replaced(story(), LAST, name="Ann Lee")
    by_weight: dict[str, Any] = {"selector": Coverage(reference_weight=2)}
    for settings in ({"title": lambda example: example.get("title")}, by_weight, {"title": "name"}):
        assert {*found(subject, rows, **settings)} == {0, 1, LAST}


def test_a_link_to_a_document_of_llamaindex_leads_to_its_nodes() -> None:
    rows = replaced(story(), 0, "passage 0", links="manual")
    nodes = [RERANKERS[1].item(row) for row in rows]
    nodes[LAST].node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="manual")
    post = RERANKERS[1].make(RERANKERS[1].open(rows, "simple"), k=3, links="links")
    assert {*numbers(post.postprocess_nodes(nodes, query_str=QUERY))} == {0, 1, LAST}


# What the event and the metadata say


@OVER_READERS
@pytest.mark.parametrize("settings", [{}, {"score_threshold": 0.415}, {"order": "nearest_last"}], ids=name_of)
def test_the_event_and_the_scores_say_which_text_refers_to_a_pick(subject: Subject, settings: dict[str, Any]) -> None:
    rows = replaced(replaced(story(), 0, title="Forbidden Ground"), 1, "passage 2")
    last = rows[-1].vector - 0.4 * unit(embed(QUERY))
    rows[-1] = rows[-1]._replace(vector=0.5 * unit(embed(QUERY)) + np.sqrt(0.75) * unit(last))
    # The repeated text and the threshold drop rows before those that stay.
    rows, told = rows[::-1], list[Any]()
    made = subject.make(subject.open(rows, subject.kinds[0]), k=4, scores=True, **settings)
    picked = {metadata(item)["number"]: metadata(item) for item in subject.run(made, rows, told)}
    assert len({0, 1, 2, LAST} & picked.keys()) == 3, "else no text was repeated"
    referred_by = dict(zip(told[0]["ids"], told[0]["referred_by"], strict=True))
    assert {name: by for name, by in referred_by.items() if by} == {"doc-19": "doc-0"}
    assert {number: data.get("selection_referred_by") for number, data in picked.items()} == {
        **dict.fromkeys(picked),
        LAST: "Forbidden Ground",
    }
    reasons = {number: data["selection_reason"] for number, data in picked.items()}
    assert [number for number, reason in reasons.items() if "named by Forbidden Ground (" in reason] == [LAST]
    in_order = dict(zip(told[0]["ids"], zip(told[0]["reasons"], told[0]["shares"], strict=True), strict=True))
    assert {in_order[f"doc-{number}"][0] for number in picked} == {*reasons.values()}
    assert in_order["doc-19"][1][2] > 0.1


# Following


@OVER_RETRIEVERS
@pytest.mark.parametrize("kind", [0, 1])
def test_a_name_that_no_candidate_bears_is_searched_once(subject: Subject, kind: int) -> None:
    # The text that is found names others, which are not followed.
    rows = hidden(f"{NAMING} Everybody knows Ann Lee.", f"{START} that Bob Ray and Eve Moss came.")
    store = subject.open(rows, subject.kinds[kind])
    made, told = subject.make(store, k=3, fetch_k=20, follow=True), list[Any]()
    picked = numbers(subject.run(made, told=told))
    assert {*picked} == {0, 1, HIDDEN}
    assert told[0]["followed"] == [{"kind": "name", "name": "Ann Lee", "found": ["doc-24"], "selected": ["doc-24"]}]
    assert (told[0]["fetch_k"], told[0]["candidates"]) == (20, 21)
    assert told[0]["referred_by"][picked.index(HIDDEN)] == "doc-0"
    plain = subject.make(store, k=3, fetch_k=20)
    assert {*numbers(subject.run(plain))} == {0, 1, 2}
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert numbers(subject.run(copied)) == picked


@OVER_RETRIEVERS
def test_of_500_names_or_links_20_are_followed(subject: Subject) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXY"
    many = ", ".join(f"{a}nna {b}olt" for a in letters for b in letters[:20])
    rows = replaced(replaced(hidden(f"{START} {many}."), 0, links=None), 1, links=[f"to-{i}" for i in range(500)])
    store = subject.open(rows, subject.kinds[0])
    for more in ({}, {"links": "links"}):
        told: list[Any] = []
        subject.run(subject.make(store, k=3, fetch_k=20, follow=True, **more), told=told)
        assert len(told[0]["followed"]) == FOLLOWED
        assert all(len(one["found"]) <= FOLLOW_K for one in told[0]["followed"])


@OVER_RETRIEVERS
@pytest.mark.parametrize(
    ("link", "followed"),
    [
        ("doc-24", [{"kind": "link", "name": "doc-24", "found": ["doc-24"], "selected": ["doc-24"]}]),
        ("Ann Lee", [{"kind": "link", "name": "Ann Lee", "found": ["doc-24"], "selected": ["doc-24"]}]),
        ("https://example.org/24", []),
        ("doc-3", []),
    ],
)
@pytest.mark.parametrize("kind", [0, 1])
async def test_links_to_no_candidate_are_looked_up_by_id_or_searched_as_names(
    subject: Subject, link: str, followed: list[Any], kind: int
) -> None:
    store = subject.open(replaced(hidden("passage 0"), 0, links=[link]), subject.kinds[kind])
    told: list[Any] = []
    made = subject.make(store, k=3, fetch_k=20, follow=True, links="links")
    picked = numbers(subject.run(made, told=told))
    assert told[0]["followed"] == followed
    assert (HIDDEN in picked) == bool(followed)


class Careless(InMemoryVectorStore):
    """A store that returns all its documents, whatever ids are asked for."""

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return super().get_by_ids([*self.store])


@OVER_RETRIEVERS
@pytest.mark.filterwarnings("ignore:table_names:DeprecationWarning")
async def test_only_what_a_link_asks_for_becomes_a_candidate(subject: Subject, tmp_path: Path) -> None:
    link = 'id") OR (true) OR id in ("id'
    rows = replaced(hidden("passage 0"), 0, links=link, title="Start")
    if subject is RETRIEVERS[0]:
        store: Any = Careless(WordEmbeddings())
        store.store = subject.open(rows, "in memory").store
    else:
        # This store of LlamaIndex makes SQL of the ids as they are.
        lancedb = pytest.importorskip("llama_index.vector_stores.lancedb")
        storage = StorageContext.from_defaults(vector_store=lancedb.LanceDBVectorStore(str(tmp_path)))
        store = VectorStoreIndex(list(map(_node, rows)), embed_model=CountingEmbedding(), storage_context=storage)
    made, told = subject.make(store, k=3, fetch_k=20, follow=True, links="links"), list[Any]()
    subject.run(made, told=told)
    await subject.arun(made, told=told)
    for event in told:
        # What is no id is searched as a name.
        [followed] = event["followed"]
        assert (followed["name"], len(followed["found"]) <= FOLLOW_K) == (link, True)
        assert event["candidates"] <= 20 + FOLLOW_K
