"""Repeated calls: changed settings count, copies are independent, and the event loop is not blocked."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectExampleSelector, SetSelectRetriever, vectors
from shared_core import NDPP, VRSD, EmbeddingFallbackWarning, InvalidParameterError, LowRankKernel, SetSelectWarning
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings

QUERY = "hidden northern harbour engine"


def contents(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def as_new(store: VectorStore, **settings: Any) -> list[str]:
    return contents(SetSelectRetriever(vectorstore=store, **settings).invoke(QUERY))


def test_search_kwargs_changed_in_place_count_at_the_next_call(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", search_kwargs={"k": 5, "lambda_mult": 0.9})
    assert contents(retriever.invoke(QUERY)) == as_new(store, search_type="mmr", k=5, lambda_mult=0.9)
    retriever.search_kwargs["lambda_mult"] = 0.1
    assert contents(retriever.invoke(QUERY)) == as_new(store, search_type="mmr", k=5, lambda_mult=0.1)
    retriever.search_kwargs.update(k=3, fetch_k=40)
    assert contents(retriever.invoke(QUERY)) == as_new(store, search_type="mmr", k=3, fetch_k=40, lambda_mult=0.1)
    del retriever.search_kwargs["lambda_mult"]
    assert contents(retriever.invoke(QUERY)) == as_new(store, search_type="mmr", k=3, fetch_k=40)
    retriever.search_kwargs["k"] = 0
    with pytest.raises(InvalidParameterError, match="k must be at least 1"):
        retriever.invoke(QUERY)


def test_fields_set_anew_count_at_the_next_call(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=5)
    first = contents(retriever.invoke(QUERY))
    retriever.search_type = "similarity"
    assert contents(retriever.invoke(QUERY)) == as_new(store, search_type="similarity", k=5) != first
    retriever.selector = NDPP()
    assert contents(retriever.invoke(QUERY)) == first
    retriever.perspective = "hidden"
    assert contents(retriever.invoke(QUERY)) == as_new(store, k=5, perspective="hidden") != first


@pytest.mark.parametrize("cls", [SetSelectRetriever, SetSelectCompressor, SetSelectExampleSelector])
def test_a_setting_without_effect_is_warned_of_once(cls: Any, store: VectorStore) -> None:
    documents = SetSelectRetriever(vectorstore=store, search_type="similarity", k=20).invoke(QUERY)
    with pytest.warns(SetSelectWarning, match="quality has no effect with NDPP.*'mmr' uses it"):
        made = cls(vectorstore=store, quality="quality")
    # Any warning of a call would be an error.
    for _ in range(2):
        if cls is SetSelectRetriever:
            made.invoke(QUERY)
            made.invoke(QUERY, k=2)
        elif cls is SetSelectCompressor:
            made.compress_documents(documents, QUERY)
        else:
            made.select_examples({"question": QUERY})
    with pytest.warns(SetSelectWarning, match="quality has no effect with NDPP.*'mmr' uses it"):
        SetSelectRetriever(vectorstore=store).invoke(QUERY, quality="quality")


def test_a_perspective_without_effect_is_warned_of_once(store: VectorStore) -> None:
    documents = SetSelectRetriever(vectorstore=store, search_type="similarity", k=20).invoke(QUERY)
    settings: dict[str, Any] = {
        "vectorstore": store,
        "search_type": "mmr",
        "relevance": "quality",
        "perspective": "old",
    }
    with pytest.warns(SetSelectWarning, match="perspective has no effect"):
        compressor = SetSelectCompressor(**settings)
    compressor.compress_documents(documents, QUERY)
    # It projects the documents, or the search.
    SetSelectCompressor(**settings, corpus=True)
    SetSelectRetriever(**settings)


def test_ids_appended_to_shown_count_at_the_next_call(store: VectorStore) -> None:
    shown: list[Any] = []
    retriever = SetSelectRetriever(vectorstore=store, k=1, fetch_k=30, shown=shown)
    picked = []
    for _ in range(4):
        (document,) = retriever.invoke(QUERY)
        picked.append(document.id)
        shown.append(document.id)
    assert len(set(picked)) == 4
    with_kwargs = SetSelectRetriever(vectorstore=store, k=1, fetch_k=30, search_kwargs={"shown": picked[:1]})
    with_kwargs.search_kwargs["shown"].append(picked[1])
    assert with_kwargs.invoke(QUERY)[0].id == picked[2]


def test_ids_to_read_once_count_at_every_call(store: VectorStore) -> None:
    (first,) = SetSelectRetriever(vectorstore=store, k=1).invoke(QUERY)
    retriever = SetSelectRetriever(vectorstore=store, k=1, shown=(document.id for document in [first]))
    assert retriever.invoke(QUERY) == retriever.invoke(QUERY) != [first]


def test_arguments_of_one_call_do_not_last(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=5)
    usual = contents(retriever.invoke(QUERY))
    assert len(retriever.invoke(QUERY, k=2)) == 2
    assert contents(retriever.invoke(QUERY, search_type="similarity")) != usual
    assert contents(retriever.invoke(QUERY)) == usual


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
def test_a_call_changes_neither_copies_nor_comparisons(way: Any, store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=5)
    same = SetSelectRetriever(vectorstore=store, k=5)
    before = retriever.model_dump(exclude={"vectorstore"}), repr(retriever)
    usual = contents(retriever.invoke(QUERY))
    assert retriever == same
    assert (retriever.model_dump(exclude={"vectorstore"}), repr(retriever)) == before
    other = way(retriever)
    other.search_type = "similarity"
    assert contents(other.invoke(QUERY)) == as_new(store, search_type="similarity", k=5)
    assert contents(retriever.invoke(QUERY)) == usual


def test_a_warning_changes_neither_copies_nor_comparisons(store: VectorStore) -> None:
    retriever, same = (SetSelectRetriever(vectorstore=store, k=3, fetch_k=3) for _ in range(2))
    before = retriever.model_dump(exclude={"vectorstore"}), repr(retriever), dict(retriever)
    with pytest.warns(SetSelectWarning, match=r"k=3 of 3 candidates: all of them are selected.*Raise fetch_k") as told:
        usual = retriever.invoke(QUERY)
    assert [warning.filename for warning in told] == [__file__], "the warning names the user's line"
    assert retriever == same
    assert (retriever.model_dump(exclude={"vectorstore"}), repr(retriever), dict(retriever)) == before
    assert retriever.invoke(QUERY) == copy.copy(retriever).invoke(QUERY) == usual, "one warning for each object"
    with pytest.warns(SetSelectWarning, match=r"k=3 of 3 candidates"):
        assert same.invoke(QUERY) == usual


@pytest.mark.parametrize(
    "settings",
    [
        {"k": np.int64(3), "shown": ["a"], "lambda_mult": np.float32(0.5), "search_type": "mmr"},
        {"shown": {"a": 1}.keys(), "source": lambda d: d.id, "max_per_source": 3},
        {"shown": np.array(["a"]), "costs": len, "budget": 10},
        {"selector": VRSD(), "perspective": np.ones(48), "relevance": None},
        {"search_type": "ndpp", "kernel": LowRankKernel(*np.zeros((3, 2, 2)), ids=["a", "b"])},
    ],
    ids=["numpy numbers", "a view", "an array", "objects", "a kernel"],
)
def test_all_kinds_of_values_can_be_dumped(store: VectorStore, settings: dict[str, Any]) -> None:
    retriever = SetSelectRetriever(vectorstore=store, **settings)
    # pydantic would warn of a value that does not fit the type of its field.
    assert retriever.model_dump(exclude={"vectorstore"}).keys() == type(retriever).model_fields.keys() - {"vectorstore"}
    assert retriever.model_copy() == retriever


def test_copies_with_scores_share_no_metadata_with_the_stores(store: VectorStore) -> None:
    retriever = SetSelectRetriever(vectorstore=store, k=3, scores=True)
    once = retriever.invoke(QUERY)
    kept = [(document.id, document.page_content, dict(document.metadata)) for document in once]
    for document in once:
        document.metadata.clear()
        document.id = document.page_content = "changed"
    again = retriever.invoke(QUERY)
    assert [(document.id, document.page_content, document.metadata) for document in again] == kept


class Noted(Document):
    """A document class with an additional field."""

    note: str = ""


def test_copies_keep_class_fields_and_what_was_set(embeddings: WordEmbeddings, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the first call of a process warns, and other tests may have made it.
    monkeypatch.setattr(vectors, "_WARNED", set())
    text = corpus()[0][0]
    noted = Noted(page_content=text, note="kept", id="n")
    compressor = SetSelectCompressor(embeddings=embeddings, k=1, scores=True)
    with pytest.warns(EmbeddingFallbackWarning):
        (copied,) = compressor.compress_documents([noted, Document("another")], text)
    assert type(copied) is Noted
    assert (copied.note, copied.id, copied.type) == ("kept", "n", "Document")
    # The original did not set its metadata; the copy does.
    assert copied.model_dump(exclude_unset=True).keys() == {"page_content", "note", "id", "metadata"}
    assert copied.metadata.keys() == {"relevance_score", "selection_score"}
    assert noted.metadata == {}
    assert noted.model_dump(exclude_unset=True).keys() == {"page_content", "note", "id"}


async def test_async_selections_leave_the_event_loops_thread(store: VectorStore) -> None:
    threads: list[threading.Thread] = []

    def quality(document: Document) -> float:
        threads.append(threading.current_thread())
        return float(document.metadata["number"])

    retriever = SetSelectRetriever(vectorstore=store, search_type="mmr", quality=quality, k=3)
    await retriever.ainvoke(QUERY)
    assert threads
    assert threading.current_thread() not in threads


def test_faiss_returns_vectors_in_one_array(embeddings: WordEmbeddings) -> None:
    from langchain_setselect.stores.faiss import READER

    texts, metadatas = zip(*corpus(), strict=True)
    store = FAISS.from_texts(list(texts), embeddings, list(metadatas))
    documents, vectors, ids = READER.search(store, embed(QUERY).tolist(), 30)
    assert ids == [document.id for document in documents]
    assert isinstance(vectors, np.ndarray)
    assert vectors.shape == (30, len(embed(QUERY)))
    for condition in ({"number": {"$lt": 20}}, lambda metadata: metadata["number"] < 20):
        documents, vectors, ids = READER.search(store, embed(QUERY).tolist(), 30, filter=condition)
        assert ids == [document.id for document in documents]
        assert isinstance(vectors, np.ndarray)
        wanted = np.array([embed(document.page_content) for document in documents], np.float32)
        np.testing.assert_array_equal(vectors, wanted)
