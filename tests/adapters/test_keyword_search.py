"""``keyword_search=True``: a search by words over the store's own documents, in both adapters over three stores."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.simple import SimpleVectorStore

import langchain_setselect
import llamaindex_setselect
from setselect import Candidates, Coverage, InvalidParameterError, match_words
from shared_core.retrieval import extra as word_search
from shared_core.texts.word_index import WordIndex
from tests.adapters.bindings import (
    QUERY,
    RETRIEVERS,
    ROWS,
    VECTORS,
    Subject,
    _node,
    expected,
    nearest,
    numbers,
    over,
)
from tests.adapters.test_extra_retrievers import LANGCHAIN, LLAMAINDEX, OVER_STORES, TOPIC, filtered, open_store
from tests.embedding import embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import CountingEmbedding

FETCH_K = 5
RETRIEVER = {LANGCHAIN: langchain_setselect.WordRetriever, LLAMAINDEX: llamaindex_setselect.WordRetriever}
# Every row has this word.
EVERY = f"{QUERY} passage"


def by_words(question: str = QUERY, k: int = 25) -> list[int]:
    """The rows that a search by words finds. In LlamaIndex the metadata of the rows is not embedded."""
    rows: list[int] = WordIndex([row.text for row in ROWS]).best_rows(question, k)[0].tolist()
    return rows


def joined(k: int = 25) -> list[int]:
    return list(dict.fromkeys([*nearest(FETCH_K), *by_words(k=k)]))


@OVER_STORES
@over(RETRIEVERS)
async def test_the_best_documents_by_words_join_the_candidates(subject: Subject, kind: int | str) -> None:
    store, told = open_store(subject, kind), list[Any]()
    made = subject.make(store, fetch_k=FETCH_K, keyword_search=True)
    subject.model(store).counts()
    assert numbers(subject.run(made, told=told)) == expected(joined()) != expected(nearest(FETCH_K))
    assert numbers(await subject.arun(made, told=told)) == expected(joined())
    assert subject.model(store).counts()[1] == 0, "no text is embedded"
    for event in told:
        (report,) = event["extra_retrievers"]
        assert {*report["found"]} == {f"doc-{row}" for row in by_words()}
        assert report["error"] is None
    made.extra_k = 5
    assert numbers(subject.run(made)) == expected(joined(k=5))
    made.extra_retrievers = RETRIEVER[subject].from_store(store)
    subject.run(made, told=told)
    assert [one["name"] for one in told[-1]["extra_retrievers"]] == ["keyword search", "WordRetriever"]


@over(RETRIEVERS)
@pytest.mark.parametrize("extra", [False, True], ids=["keyword_search", "WordRetriever"])
async def test_words_weigh_by_their_frequency_in_the_corpus_too(subject: Subject, extra: bool) -> None:
    store, told = open_store(subject, 0), list[Any]()
    more = {"extra_retrievers": RETRIEVER[subject].from_store(store)} if extra else {"keyword_search": True}
    made = subject.make(store, fetch_k=FETCH_K, **more)
    rows, corpus = joined(), WordIndex([row.text for row in ROWS])
    words = match_words(QUERY, [ROWS[row].text for row in rows])
    weighed = words._replace(weights=words.weights * corpus.weigh(QUERY.split()))
    assert len({*(weighed.weights / words.weights)}) > 1
    expected = Coverage().select(Candidates(embed(QUERY), VECTORS[rows], words=weighed), 4)
    for found in (subject.run(made, told=told), await subject.arun(made, told=told)):
        assert numbers(found) == [rows[i] for i in expected.indices]
    for event in told:
        assert event["gains"] == pytest.approx(expected.gains.tolist(), rel=1e-5)


@OVER_STORES
@over(RETRIEVERS)
def test_with_a_filter_they_are_the_best_that_it_lets_in(subject: Subject, kind: int | str) -> None:
    if subject is LLAMAINDEX and kind == 1:
        pytest.skip("LlamaIndex's FAISS stores have no filters.")
    store, told = open_store(subject, kind), list[Any]()
    more = filtered(subject, kind)
    made = subject.make(store, k=2, fetch_k=2, keyword_search=True, extra_k=5, **more)
    subject.run(made, told=told, query=EVERY)
    (report,) = told[0]["extra_retrievers"]
    of_topic = [row for row in by_words(EVERY, 60) if ROWS[row].metadata["topic"] == TOPIC]
    assert {*report["found"]} == {f"doc-{row}" for row in of_topic[:5]}
    assert report["left_out"] == []


def test_nodes_outside_the_part_that_is_searched_are_not_found() -> None:
    told: list[Any] = []
    part = [row.id for row in ROWS[10:14]]
    made = LLAMAINDEX.make(LLAMAINDEX.corpus(), k=2, fetch_k=2, keyword_search=True, node_ids=part)
    LLAMAINDEX.run(made, told=told, query=EVERY)
    assert {*told[0]["extra_retrievers"][0]["found"]} == {*part}
    # Whether nested filters let a node in is not known, so it does not join.
    nested = MetadataFilters(filters=[MetadataFilters(filters=[MetadataFilter(key="topic", value=TOPIC)])])
    made = LLAMAINDEX.make(LLAMAINDEX.corpus(), keyword_search=True, filters=nested)
    assert made._make_filter()(_node(ROWS[0])) is None


class Counted(WordIndex):
    made = 0

    def __init__(self, texts: Any, *arguments: Any, **more: Any) -> None:
        super().__init__(texts, *arguments, **more)
        Counted.made += bool(self.texts)


@over(RETRIEVERS)
def test_all_retrievers_and_threads_over_a_store_share_one_index(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "WordIndex", Counted)
    monkeypatch.setattr(Counted, "made", 0)
    store = open_store(subject, 0)
    made = [subject.make(store, fetch_k=FETCH_K, keyword_search=True) for _ in range(2)]
    before, found = len(pickle.dumps(made[0])), list[Any]()
    threads = [
        threading.Thread(target=lambda one=one: found.append(numbers(subject.run(one)))) for one in [*made, *made]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected(joined())] * 4
    assert Counted.made == 1
    # Another store: the copy in a pickle. The request that is kept takes the same room in each.
    assert len(pickle.dumps(made[0])) <= before + 500
    assert numbers(subject.run(pickle.loads(pickle.dumps(made[0])))) == expected(joined())
    assert Counted.made == 2


@over(RETRIEVERS)
def test_the_index_lives_as_long_as_the_store(subject: Subject) -> None:
    gc.collect()
    before = len(word_search._SHARED)
    store = open_store(subject, 0)
    subject.run(subject.make(store, keyword_search=True))
    assert len(word_search._SHARED) == before + 1
    del store
    gc.collect()
    assert len(word_search._SHARED) == before


def add(store: Any, name: str, text: str) -> None:
    row = ROWS[0]._replace(id=name, text=text, vector=-ROWS[nearest(1)[0]].vector)
    if isinstance(store, VectorStoreIndex):
        store.insert_nodes([_node(row)])
    else:
        store.add_documents([Document(text, id=name, metadata=row.metadata)])


def delete(store: Any, name: str) -> None:
    if isinstance(store, VectorStoreIndex):
        store.delete_nodes([name], delete_from_docstore=True)
    else:
        store.delete([name])


def found_by_words(subject: Subject, made: Any, question: str = "zyzzyva") -> list[Any]:
    told: list[Any] = []
    subject.run(made, told=told, query=question)
    return list(told[0]["extra_retrievers"][0]["found"])


@pytest.mark.parametrize("kind", [0, "Chroma"], ids=["in memory", "Chroma"])
@over(RETRIEVERS)
def test_the_index_follows_the_store(subject: Subject, kind: int | str) -> None:
    store = open_store(subject, kind)
    made = subject.make(store, fetch_k=FETCH_K, keyword_search=True)
    assert found_by_words(subject, made) == []
    add(store, "new", "a zyzzyva is a weevil")
    assert found_by_words(subject, made) == ["new"]
    # The number stays the same. What was deleted is not returned, and the next search knows the new document.
    delete(store, "new")
    add(store, "newer", "another zyzzyva")
    subject.model(store).counts()
    assert found_by_words(subject, made) in ([], ["newer"])
    assert subject.model(store).counts()[1] == 0
    assert found_by_words(subject, made) == ["newer"]
    delete(store, "newer")
    assert found_by_words(subject, made) == []


class Bare(VectorStore):
    """A store that nobody can list."""

    embeddings = WordEmbeddings()  # type: ignore[assignment]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(row.text, id=row.id, metadata=row.metadata) for row in ROWS[:k]]

    @classmethod
    def from_texts(cls, texts: Iterable[str], *arguments: Any, **more: Any) -> Bare:  # type: ignore[override]
        return cls()


class BareNodes(SimpleVectorStore):
    stores_text: bool = True


def test_a_store_that_cannot_be_listed_is_refused_with_what_to_pass() -> None:
    with pytest.raises(InvalidParameterError, match=r"Bare\b.*from_documents.*extra_retrievers"):
        LANGCHAIN.make(Bare(), keyword_search=True)
    made = LANGCHAIN.make(Bare())
    with pytest.raises(InvalidParameterError, match=r"Bare\b.*extra_retrievers"):
        made.invoke(QUERY, keyword_search=True)
    index = VectorStoreIndex(
        [], embed_model=CountingEmbedding(), storage_context=StorageContext.from_defaults(vector_store=BareNodes())
    )
    with pytest.raises(InvalidParameterError, match=r"BareNodes\b.*from_nodes.*extra_retrievers"):
        LLAMAINDEX.make(index, keyword_search=True)


@over(RETRIEVERS)
async def test_too_many_documents_are_an_error_and_no_warning(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "MOST", 59)
    made = subject.make(open_store(subject, 0), keyword_search=True)
    for _ in range(2):
        with pytest.raises(InvalidParameterError, match=r"60 documents.* 59"):
            subject.run(made)
    with pytest.raises(InvalidParameterError, match=r"60 documents.* 59"):
        await subject.arun(made)


@over(RETRIEVERS)
def test_without_bm25s_the_error_names_the_extra(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s.stopwords", None)
    made = subject.make(open_store(subject, 0), keyword_search=True)
    with pytest.raises(ImportError, match=r"setselect\[words\]"):
        subject.run(made)
