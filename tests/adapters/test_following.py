"""``follow``: citations and neighbours that no candidate is, looked up in real stores of both frameworks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from langchain_setselect import register_vector_source
from tests.adapters.bindings import QUERY, RETRIEVERS, Row, _node, falling, in_memory, numbers, over, unit
from tests.embedding import embed
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding, make_store

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

# The rows that a search does not find, and how many it finds.
COUNT, DECOY, HIDDEN, FETCH_K = 26, 24, 25, 20
# The most searches.
FOLLOWED = 20
START = "this passage has more words than anybody wants to read, before it says"
LANGCHAIN, LLAMAINDEX = RETRIEVERS


class Table(Embeddings):
    """Each text has the vector of its row."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.vectors = {row.text: row.vector.tolist() for row in rows}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.vectors.get(text) or embed(text).tolist()
        return vector


def chroma(rows: Sequence[Row], folder: Path) -> Any:
    chroma = pytest.importorskip("langchain_chroma")
    return filled(chroma.Chroma(f"c{uuid4().hex}", Table(rows)), rows)


def qdrant(rows: Sequence[Row], folder: Path) -> Any:
    qdrant = pytest.importorskip("langchain_qdrant")
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = models.VectorParams(size=len(rows[0].vector), distance=models.Distance.COSINE)
    client.create_collection("c", vectors_config=size)
    return filled(qdrant.QdrantVectorStore(client, "c", Table(rows)), rows)


def filled(store: Any, rows: Sequence[Row]) -> Any:
    ids = [str(uuid5(NAMESPACE_URL, row.id)) for row in rows]
    store.add_texts([row.text for row in rows], [dict(row.metadata) for row in rows], ids=ids)
    return store


def index_over(store: Any, rows: Sequence[Row]) -> VectorStoreIndex:
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex([_node(row) for row in rows], embed_model=CountingEmbedding(), storage_context=storage)


def chroma_index(rows: Sequence[Row], folder: Path) -> Any:
    stores, chromadb = pytest.importorskip("llama_index.vector_stores.chroma"), pytest.importorskip("chromadb")
    collection = chromadb.EphemeralClient().create_collection(f"c{uuid4().hex}")
    return index_over(stores.ChromaVectorStore(chroma_collection=collection), rows)


def qdrant_index(rows: Sequence[Row], folder: Path) -> Any:
    stores, client = pytest.importorskip("llama_index.vector_stores.qdrant"), pytest.importorskip("qdrant_client")
    store = stores.QdrantVectorStore("c", client=client.QdrantClient(":memory:"))
    return index_over(store, [row._replace(id=str(uuid5(NAMESPACE_URL, row.id))) for row in rows])


def lancedb_index(rows: Sequence[Row], folder: Path) -> Any:
    pytest.importorskip("pandas")
    stores = pytest.importorskip("llama_index.vector_stores.lancedb")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"table_names\(\) is deprecated", DeprecationWarning)
        return index_over(stores.LanceDBVectorStore(str(folder)), rows)


def a_team(key: str = "filters") -> dict[str, Any]:
    return {key: MetadataFilters(filters=[MetadataFilter(key="team", value="a")])}


def kwargs(**more: Any) -> dict[str, Any]:
    return {"search_kwargs": more}


def of_qdrant() -> Any:
    from qdrant_client import models

    match = models.MatchValue(value="a")
    return models.Filter(must=[models.FieldCondition(key="metadata.team", match=match)])


Opened = Callable[[Sequence[Row], Path], Any]
# Each store with the arguments that let in the documents of team "a".
STORES: dict[str, tuple[Any, Opened, Callable[[], dict[str, Any]]]] = {
    "in memory": (
        LANGCHAIN,
        lambda rows, folder: in_memory(rows),
        lambda: kwargs(filter=lambda document: document.metadata["team"] == "a"),
    ),
    "FAISS": (LANGCHAIN, lambda rows, folder: LANGCHAIN.open(rows, "FAISS"), lambda: kwargs(filter={"team": "a"})),
    "Chroma": (LANGCHAIN, chroma, lambda: kwargs(filter={"team": "a"})),
    "Qdrant": (LANGCHAIN, qdrant, lambda: kwargs(filter=of_qdrant())),
    "LlamaIndex's simple store": (LLAMAINDEX, lambda rows, folder: LLAMAINDEX.open(rows, "simple"), a_team),
    "LlamaIndex's Chroma": (LLAMAINDEX, chroma_index, a_team),
    "LlamaIndex's Qdrant": (LLAMAINDEX, qdrant_index, a_team),
    "LlamaIndex's LanceDB": (LLAMAINDEX, lancedb_index, a_team),
}
# Qdrant in memory has one client, which is sync.
SYNC_ONLY = "LlamaIndex's Qdrant"
ESCAPING = [name for name in STORES if name != "LlamaIndex's LanceDB"]


def with_metadata(rows: list[Row], changes: dict[int, dict[str, Any]], **every: Any) -> list[Row]:
    return [
        row._replace(metadata={**row.metadata, **every, **changes.get(number, {})}) for number, row in enumerate(rows)
    ]


def steep(texts: Sequence[str]) -> list[Row]:
    """Rows whose cosine with the query falls, two of which are far nearer to it than the others."""
    query = unit(embed(QUERY))
    rows = []
    for number, row in enumerate(falling(texts)):
        cosine = 0.6 - 0.01 * number if number < 2 else 0.45 - 0.001 * number
        across = unit(row.vector - (row.vector @ query) * query)
        rows.append(row._replace(vector=cosine * query + np.sqrt(1 - cosine**2) * across))
    return rows


def rules(citing: str = f"{START} that Rule 4.5.1 is met.", source: str = "AML", **hidden: Any) -> list[Row]:
    """Row 0 cites the section of row 25. Row 24 has this number in another document."""
    texts = [citing, *(f"passage {number}" for number in range(1, HIDDEN)), "nobody may enter."]
    sections = {number: {"section": f"9.{number}.1"} for number in range(DECOY)}
    decoys = {DECOY: {"section": "4.5.1", "source": "FEES"}, HIDDEN: {"section": "4.5.1", **hidden}}
    return with_metadata(steep(texts), sections | decoys, source=source, team="a")


def follow(subject: Any, store: Any, told: list[Any] | None = None, **settings: Any) -> list[int]:
    """The numbers of three rows that a new object selects."""
    return numbers(subject.run(subject.make(store, k=3, fetch_k=FETCH_K, follow=True, **settings), told=told))


def kinds(told: list[Any]) -> list[tuple[str, str, int]]:
    """The kind and name of each search, and how many candidates it added."""
    return [(one["kind"], one["name"], len(one["found"])) for one in told[-1]["followed"]]


# Citations


@pytest.mark.parametrize("name", STORES)
async def test_what_a_pick_cites_is_looked_up(name: str, tmp_path: Path) -> None:
    subject, opened, filtered = STORES[name]
    store, told = opened(rules(), tmp_path), list[Any]()
    assert {*follow(subject, store, told)} == {0, 1, HIDDEN}
    assert kinds(told) == [("citation", "section 4.5.1", 1)]
    assert told[0]["candidates"] == FETCH_K + 1
    if name != SYNC_ONLY:
        made = subject.make(store, k=3, fetch_k=FETCH_K, follow=True)
        assert {*numbers(await subject.arun(made, told=told))} == {0, 1, HIDDEN}
        assert kinds(told) == [("citation", "section 4.5.1", 1)]
    # The filter of the search holds.
    assert HIDDEN in follow(subject, store, **filtered())
    (tmp_path / "other").mkdir()
    forbidden = opened(rules(team="b"), tmp_path / "other")
    assert HIDDEN not in follow(subject, forbidden, told, **filtered())
    assert kinds(told) == [("citation", "section 4.5.1", 0)]


HOSTILE = ["x' OR '1'='1", 'x" OR 1=1 --', "x') OR (1=1", "$ne", "a\\", "{'$gt': ''}", "O'Brien.pdf"]


@pytest.mark.parametrize("source", HOSTILE)
@pytest.mark.parametrize("name", STORES)
def test_hostile_values_are_values(name: str, source: str, tmp_path: Path) -> None:
    subject, opened, filtered = STORES[name]
    store, told = opened(rules(source=source), tmp_path), list[Any]()
    is_plain = name in ESCAPING or not {*source} & {*"'\"\\"}
    assert (HIDDEN in follow(subject, store, told)) == is_plain
    # No row of another source or section.
    assert told[0]["candidates"] == FETCH_K + is_plain
    (tmp_path / "other").mkdir()
    forbidden = opened(rules(source=source, team="b"), tmp_path / "other")
    follow(subject, forbidden, told, **filtered())
    assert told[-1]["candidates"] == FETCH_K


# What row 0 says, the sections of the candidates, and those of the hidden rows that are found.
@pytest.mark.parametrize(
    ("citing", "written", "key", "stored", "found"),
    [
        ("Rule 4.5.1", "9.{}", "section", ["4.5.1", "4.5.2"], [0]),
        ("Rule 4.5.1(2)", "9.{}.(3)", "section", ["4.5.1.(2)", "4.5.1.(1)", "4.5.1"], [0]),
        ("Rule 16.4.6", "PART 5.16.9.{}", "section", ["PART 5.16.4.6", "16.4.6"], [0]),
        ("§ 112 Abs. 2", "§ {}", "section", ["§ 112", "§ 11"], [0]),
        ("Section 112", 0, "section", [112, 12], [0]),
        ("error E1042", "E20{}", "code", ["E1042", "E1043"], [0]),
        ("4.5.1", "9.{}", "section", ["4.5.1"], []),
        ("Rule 4.5.1", "passage {}", "section", ["4.5.1"], []),
        ("`io.py`", "src/{}.py", "file_path", ["src/io.py"], []),
    ],
)
@over(RETRIEVERS)
def test_numbers_are_looked_up_as_the_candidates_write_them(
    subject: Any, citing: str, written: str | int, key: str, stored: list[Any], found: list[int]
) -> None:
    count = HIDDEN + len(stored)
    texts = [f"{START} that {citing} is met.", *(f"passage {number}" for number in range(1, count))]
    values = [written + number if isinstance(written, int) else written.format(number) for number in range(HIDDEN)]
    rows = falling(texts)
    rows = with_metadata(rows, {n: {key: value} for n, value in enumerate([*values, *stored])}, source="AML")
    told: list[Any] = []
    follow(subject, subject.open(rows, subject.kinds[0]), told)
    assert sorted(one for search in told[0]["followed"] for one in search["found"]) == [
        f"doc-{HIDDEN + number}" for number in found
    ]


@over(RETRIEVERS)
def test_a_number_belongs_to_a_document(subject: Any) -> None:
    told: list[Any] = []
    named = with_metadata(rules(f"{START} that Rule 4.5.1 of FEES is met."), {3: {"source": "FEES"}})
    follow(subject, subject.open(named, subject.kinds[0]), told)
    assert told[0]["followed"][0]["found"] == [f"doc-{DECOY}"]
    # No candidate shows the document.
    follow(subject, subject.open(rules(f"{START} that Rule 4.5.1 of FEES is met."), subject.kinds[0]), told)
    assert kinds(told) == []
    # Without sources there is one document; a text without one among others has none.
    alone = [row._replace(metadata={**row.metadata, "source": ""}) for row in rules()]
    for rows, count in ((alone, 2), ([alone[0], *rules()[1:]], 0)):
        follow(subject, subject.open(rows, subject.kinds[0]), told)
        assert sum(number for _, _, number in kinds(told)) == count


class Unknown(InMemoryVectorStore):
    """A store whose reader of vectors knows no filter."""


def _search(store: Unknown, query: list[float], fetch_k: int, **more: Any) -> Any:
    scored = store._similarity_search_with_score_by_vector(query, k=fetch_k)
    return [document for document, _, _ in scored], [vector for _, _, vector in scored]


register_vector_source(Unknown, _search)


def test_without_a_known_filter_nothing_is_looked_up() -> None:
    told: list[Any] = []
    follow(LANGCHAIN, in_memory(rules(), Unknown), told)
    follow(LLAMAINDEX, LLAMAINDEX.open(rules(), "flat ip"), told)
    assert [one["followed"] for one in told] == [[], []]


class Broken(SimpleVectorStore):
    """Raises an error for a filter."""

    def query(self, query: Any, **kwargs: Any) -> Any:
        if query.filters is not None:
            raise RuntimeError("no filters")
        return super().query(query, **kwargs)


async def test_a_store_that_fails_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    made = LLAMAINDEX.make(index_over(Broken(), rules()), k=3, fetch_k=FETCH_K, follow=True)
    told: list[Any] = []
    for run in (LLAMAINDEX.run(made, told=told), await LLAMAINDEX.arun(made, told=told)):
        assert {*numbers(run)} == {0, 1, 2}
        assert kinds(told) == [("citation", "section 4.5.1", 0)]
    assert [record.levelno for record in caplog.records if record.name == "setselect"] == [logging.WARNING] * 2
    # The simple store knows no filters in filters.
    either = MetadataFilters(
        filters=[MetadataFilter(key="team", value=team) for team in "ab"], condition=FilterCondition.OR
    )
    store = LLAMAINDEX.open(rules(), "simple")
    assert HIDDEN not in follow(LLAMAINDEX, store, filters=either)


# Neighbours


def chunks(keys: Callable[[int], dict[str, Any]], texts: Callable[[int], str] = "passage {}".format) -> list[Row]:
    """Row 0 is the sixth chunk of its document, whose seventh is row 25 and eighth row 24; others are of other ones."""
    rows = falling([texts(number) for number in range(COUNT)])
    places = {0: 5, HIDDEN: 6, DECOY: 7}
    return with_metadata(
        rows,
        {
            number: {"source": "a.txt" if number in places else f"{number % 7}.txt", "team": "a", **keys(place)}
            for number, place in {**{number: number for number in range(COUNT)}, **places}.items()
        },
    )


@pytest.mark.parametrize(
    "keys",
    [
        lambda place: {"chunk_index": place},
        lambda place: {"chunk": str(place)},
        lambda place: {"seq_num": place, "page": place // 3},
        lambda place: {"start_index": 10 * place},
        lambda place: {"start_index": 10 * place, "page": 3},
    ],
    ids=["chunk_index", "chunk", "seq_num", "start_index", "start_index, page"],
)
@pytest.mark.parametrize("name", STORES)
async def test_the_next_chunk_of_a_pick_is_looked_up(
    name: str, keys: Callable[[int], dict[str, Any]], tmp_path: Path
) -> None:
    subject, opened, filtered = STORES[name]
    store, told = opened(chunks(keys), tmp_path), list[Any]()
    made = subject.make(store, k=1, fetch_k=FETCH_K, follow=True)
    found = (
        subject.run(made, told=told),
        subject.run(made) if name == SYNC_ONLY else await subject.arun(made, told=told),
    )
    assert [*map(numbers, found)] == [[0], [0]]
    assert [(kind, number) for kind, _, number in kinds(told)] == [("neighbour", 1)]
    assert {event["candidates"] for event in told} == {FETCH_K + 1}
    follow(subject, store, told, **filtered())
    assert told[-1]["candidates"] == FETCH_K + 1
    (tmp_path / "other").mkdir()
    forbidden = with_metadata(chunks(keys), {HIDDEN: {"team": "b"}})
    follow(subject, opened(forbidden, tmp_path / "other"), told, **filtered())
    assert told[-1]["candidates"] == FETCH_K


@pytest.mark.parametrize("kind", [0, 1])
def test_neighbours_are_looked_up_by_id(kind: int) -> None:
    # Without a file, LlamaIndex's node is a document of its own.
    rows = with_metadata(falling([f"passage {number}" for number in range(COUNT)]), {}, source="a.txt")
    told: list[Any] = []
    nodes = [_node(row) for row in rows]
    # What says that another one follows it is none.
    for number, relation, other in ((0, "PREVIOUS", 24), (0, "NEXT", 25), (25, "PREVIOUS", 0), (24, "NEXT", 3)):
        nodes[number].relationships[NodeRelationship[relation]] = RelatedNodeInfo(node_id=f"doc-{other}")
    storage = StorageContext.from_defaults(vector_store=make_store(LLAMAINDEX.kinds[kind]))
    index = VectorStoreIndex(nodes, embed_model=CountingEmbedding(), storage_context=storage)
    follow(LLAMAINDEX, index, told)
    assert [one["found"] for one in told[0]["followed"] if one["name"] == "doc-0"] == [["doc-25"]]
