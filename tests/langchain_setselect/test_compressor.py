import asyncio
import copy
import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_setselect import SetSelectCompressor, SetSelectRetriever, register_vector_source, vectors
from shared_core import (
    MMR,
    NDPP,
    VRSD,
    BudgetError,
    EmbeddingFallbackWarning,
    InvalidInputError,
    InvalidParameterError,
    SetSelectWarning,
    VectorSourceError,
    select,
)
from tests.embedding import corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory

QUERY = "hidden northern harbour engine"
OPTIONS: list[dict[str, Any]] = [
    {"search_type": "similarity"},
    {"search_type": "vrsd"},
    {"search_type": "vrsd", "refine": True},
    {"search_type": "mmr", "lambda_mult": 0.3},
    {"search_type": "ndpp"},
    {"search_type": "ndpp", "relevance_mapping": "exponential", "temperature": 0.3},
]


class KeywordRetriever(BaseRetriever):
    """Counts shared words, similar to BM25. It uses no vectors."""

    documents: list[Document]
    k: int = 30

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        words = set(query.split())
        shared = [len(words & set(document.page_content.split())) for document in self.documents]
        best = sorted(range(len(shared)), key=lambda row: -shared[row])[: self.k]
        return [self.documents[row] for row in best]


@pytest.fixture(autouse=True)
def _nobody_was_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_WARNED", set())


@pytest.fixture
def documents() -> list[Document]:
    """Thirty documents of the corpus, out of order, as another retriever might return them."""
    rows = [(i * 7) % 60 for i in range(30)]
    return [Document(corpus()[i][0], metadata=dict(corpus()[i][1]), id=f"doc-{i}") for i in rows]


def numbers(documents: Any) -> list[int]:
    return [document.metadata["number"] for document in documents]


def cached(embeddings: Embeddings) -> CacheBackedEmbeddings:
    return CacheBackedEmbeddings.from_bytes_store(embeddings, InMemoryByteStore(), key_encoder="sha256")


def expected(documents: list[Document], k: int, search_type: Any = "ndpp", **parameters: Any) -> list[int]:
    vectors = np.array([embed(document.page_content) for document in documents])
    return numbers(documents[i] for i in select(embed(QUERY), vectors, k, search_type, **parameters).indices)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_picks_equal_those_of_the_core_over_the_same_documents(
    store: VectorStore, documents: list[Document], options: dict[str, Any]
) -> None:
    chosen = SetSelectCompressor(vectorstore=store, k=5, **options).compress_documents(documents, QUERY)
    assert numbers(chosen) == expected(documents, 5, **options)


@pytest.mark.parametrize("selector", [MMR(lambda_mult=0.3), VRSD(refine=True), NDPP(relevance_mapping="exponential")])
def test_a_selector_object_replaces_a_name(store: VectorStore, documents: list[Document], selector: Any) -> None:
    chosen = SetSelectCompressor(vectorstore=store, selector=selector, k=5).compress_documents(documents, QUERY)
    assert numbers(chosen) == expected(documents, 5, selector)


def test_it_selects_what_the_retriever_selects_among_the_same_documents(store: VectorStore) -> None:
    found = SetSelectRetriever(vectorstore=store, search_type="similarity", k=20, scores=False).invoke(QUERY)
    for options in OPTIONS:
        theirs = SetSelectRetriever(vectorstore=store, k=5, fetch_k=20, **options).invoke(QUERY)
        ours = SetSelectCompressor(vectorstore=store, k=5, **options).compress_documents(found, QUERY)
        assert numbers(ours) == numbers(theirs)


def test_vectors_come_from_the_store_by_id(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    made = SetSelectCompressor(vectorstore=store, k=5)
    assert made.vector_source.startswith(f"store: {type(store).__name__}")
    made.compress_documents(documents, QUERY)
    assert (embeddings.documents, embeddings.queries) == (0, 1)


def test_documents_that_the_store_does_not_know_are_embedded(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    strangers = [document.model_copy(update={"id": f"stranger-{document.id}"}) for document in documents[::3]]
    mixed = [strangers.pop(0) if i % 3 == 0 else document for i, document in enumerate(documents)]
    with pytest.warns(EmbeddingFallbackWarning, match=rf"10 this time.*{type(store).__name__} has no vector"):
        chosen = SetSelectCompressor(vectorstore=store, k=8).compress_documents(mixed, QUERY)
    assert embeddings.documents == 10
    assert numbers(chosen) == expected(documents, 8)
    assert {d.id.startswith("stranger") for d in chosen if d.id} == {True, False}, (
        "documents of both kinds are selected"
    )


def test_documents_without_ids_are_embedded_and_none_is_lost(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    nameless = [document.model_copy(update={"id": None}) for document in documents]
    with pytest.warns(EmbeddingFallbackWarning):
        chosen = SetSelectCompressor(vectorstore=store, k=8).compress_documents(nameless, QUERY)
    assert numbers(chosen) == expected(documents, 8)
    assert {document.id for document in chosen} == {None}
    assert embeddings.documents == 30


def test_there_is_one_warning_per_class_of_store(documents: list[Document], embeddings: WordEmbeddings) -> None:
    class Other(InMemoryVectorStore):
        pass

    empty, other = InMemoryVectorStore(embeddings), Other(embeddings)
    with pytest.warns(EmbeddingFallbackWarning, match=r"30 this time.*no vectorstore=") as without:
        SetSelectCompressor(embeddings=embeddings).compress_documents(documents, QUERY)
    with pytest.warns(EmbeddingFallbackWarning, match=r"InMemoryVectorStore has no vector"):
        SetSelectCompressor(vectorstore=empty).compress_documents(documents, QUERY)
    with pytest.warns(EmbeddingFallbackWarning, match=r"Other has no vector.*CacheBackedEmbeddings"):
        SetSelectCompressor(vectorstore=other).compress_documents(documents, QUERY)
    assert [warning.filename for warning in without] == [__file__], "the warning names the user's line"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for made in (
            SetSelectCompressor(embeddings=embeddings),
            SetSelectCompressor(vectorstore=InMemoryVectorStore(embeddings)),
            SetSelectCompressor(vectorstore=Other(embeddings)),
        ):
            assert numbers(made.compress_documents(documents, QUERY)) == expected(documents, 4)


def test_a_cache_embeds_each_text_once_and_without_a_warning(
    documents: list[Document], embeddings: WordEmbeddings
) -> None:
    class MyCache(CacheBackedEmbeddings):
        pass

    for cache in (cached(embeddings), MyCache(embeddings, cached(embeddings).document_embedding_store)):
        embeddings.documents = 0
        made = SetSelectCompressor(embeddings=cache, k=5)
        assert made.vector_source == f"the cache of {type(cache).__name__}, else embedding with it"
        first = made.compress_documents(documents[:20], QUERY)
        assert embeddings.documents == 20
        assert made.compress_documents(documents[:20], QUERY) == first
        assert numbers(first) == expected(documents[:20], 5)
        made.compress_documents(documents, QUERY)
        assert embeddings.documents == 30


async def test_async_and_sync_select_the_same(
    store: VectorStore, documents: list[Document], embeddings: WordEmbeddings
) -> None:
    for options in OPTIONS:
        made = SetSelectCompressor(vectorstore=store, k=5, perspective="northern", **options)
        wanted = made.compress_documents(documents, QUERY)
        embeddings.async_calls = embeddings.documents = 0
        assert await made.acompress_documents(documents, QUERY) == wanted
        assert (embeddings.async_calls, embeddings.documents) == (2, 0), "query and perspective, both awaited"


async def test_async_embeds_in_one_awaited_call(documents: list[Document], embeddings: WordEmbeddings) -> None:
    made = SetSelectCompressor(embeddings=embeddings, k=5)
    with pytest.warns(EmbeddingFallbackWarning):
        chosen = await made.acompress_documents(documents, QUERY)
    assert numbers(chosen) == expected(documents, 5)
    assert embeddings.async_calls == 2
    assert numbers(await SetSelectCompressor(embeddings=cached(embeddings), k=5).acompress_documents(documents, QUERY))


async def test_without_documents_nothing_is_embedded(store: VectorStore, embeddings: WordEmbeddings) -> None:
    made = SetSelectCompressor(vectorstore=store)
    assert made.compress_documents([], QUERY) == []
    assert await made.acompress_documents([], QUERY) == []
    assert embeddings.queries == 0


def test_fewer_documents_than_k_are_all_returned(store: VectorStore, documents: list[Document]) -> None:
    made = SetSelectCompressor(vectorstore=store, k=50)
    with pytest.warns(SetSelectWarning, match=r"k=50 of 30 candidates: all of them.*retriever in front.*return more"):
        chosen = made.compress_documents(documents, QUERY)
    assert sorted(numbers(chosen)) == sorted(numbers(documents))
    assert made.compress_documents(documents, QUERY) == chosen, "one warning for each object"


def test_a_document_that_two_retrievers_found_counts_once(store: VectorStore, documents: list[Document]) -> None:
    made = SetSelectCompressor(vectorstore=store, k=6)
    assert numbers(made.compress_documents(documents + documents[::-1], QUERY)) == expected(documents, 6)


def test_returned_documents_are_copies_with_scores(store: VectorStore, documents: list[Document]) -> None:
    before = copy.deepcopy(documents)
    chosen = SetSelectCompressor(vectorstore=store, k=4, scores=True).compress_documents(documents, QUERY)
    assert documents == before
    vectors = np.array([embed(document.page_content) for document in documents])
    reasons = select(embed(QUERY), vectors, 4)
    np.testing.assert_allclose([d.metadata["relevance_score"] for d in chosen], reasons.relevance, atol=1e-6)
    np.testing.assert_allclose([d.metadata["selection_score"] for d in chosen], reasons.gains, atol=1e-6)
    by_id = {document.id: document for document in before}
    for document in chosen:
        assert document.page_content == by_id[document.id].page_content
        document.metadata["number"] = -1
    assert documents == before
    plain = SetSelectCompressor(vectorstore=store, k=4).compress_documents(documents, QUERY)
    assert all(any(document is given for given in documents) for document in plain)


def test_shown_documents_count_as_picked_and_are_not_returned(store: VectorStore, documents: list[Document]) -> None:
    shown = [documents[3].id, documents[8].id, "not among them"]
    chosen = SetSelectCompressor(vectorstore=store, k=5, shown=shown).compress_documents(documents, QUERY)
    assert numbers(chosen) == expected(documents, 5, shown=[3, 8])
    assert not {document.id for document in chosen} & set(shown)
    everything = [document.id for document in documents]
    assert not SetSelectCompressor(vectorstore=store, shown=everything).compress_documents(documents, QUERY)


@pytest.mark.parametrize("costs", ["tokens", lambda document: document.metadata["tokens"]], ids=["key", "function"])
def test_the_set_fills_the_budget_without_exceeding_it(
    store: VectorStore, documents: list[Document], costs: Any
) -> None:
    chosen = SetSelectCompressor(vectorstore=store, budget=40, costs=costs).compress_documents(documents, QUERY)
    tokens = [document.metadata["tokens"] for document in documents]
    assert numbers(chosen) == expected(documents, None, budget=40, costs=tokens)  # type: ignore[arg-type]
    spent = sum(document.metadata["tokens"] for document in chosen)
    left_over = [document.metadata["tokens"] for document in documents if document.id not in {d.id for d in chosen}]
    assert spent <= 40 < spent + min(left_over)
    with pytest.raises(BudgetError, match=r"nothing fits"):
        SetSelectCompressor(vectorstore=store, budget=1, costs=costs).compress_documents(documents, QUERY)


@pytest.mark.parametrize("quality", ["quality", lambda document: document.metadata["quality"]], ids=["key", "function"])
def test_quality_comes_from_a_key_or_a_function(store: VectorStore, documents: list[Document], quality: Any) -> None:
    values = [document.metadata["quality"] for document in documents]
    options = {"search_type": "mmr", "lambda_mult": 0.5, "lambda_b": 0.3}
    chosen = SetSelectCompressor(vectorstore=store, k=5, quality=quality, **options)
    wanted = expected(documents, 5, **options, quality=values)
    assert numbers(chosen.compress_documents(documents, QUERY)) == wanted
    assert wanted != expected(documents, 5, search_type="mmr", lambda_mult=0.5), (
        "quality must matter for this test to test anything"
    )


@pytest.mark.parametrize("source", ["topic", lambda document: document.metadata["topic"]], ids=["key", "function"])
def test_no_source_has_more_than_its_cap(store: VectorStore, documents: list[Document], source: Any) -> None:
    def topics(**options: Any) -> list[str]:
        made = SetSelectCompressor(vectorstore=store, k=6, search_type="similarity", **options)
        return [document.metadata["topic"] for document in made.compress_documents(documents, QUERY)]

    assert len(set(topics())) < 6, "without a cap one topic must be frequent for this test to test anything"
    assert len(set(topics(source=source, max_per_source=1))) == 6
    capped = topics(source=source, max_per_source=2)
    assert len(capped) == 6
    assert max(map(capped.count, capped)) == 2


def test_near_duplicates_are_dropped(store: VectorStore, documents: list[Document]) -> None:
    made = SetSelectCompressor(vectorstore=store, search_type="similarity", k=8, drop_near_duplicates=0.45)
    chosen = made.compress_documents(documents, QUERY)
    vectors = np.array([embed(document.page_content) for document in chosen])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (vectors @ vectors.T - np.eye(len(vectors))).max() <= 0.45 + 1e-6
    plain = np.array([embed(corpus()[i][0]) for i in expected(documents, 8, "similarity")])
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    assert (plain @ plain.T - np.eye(8)).max() > 0.45, "there must be near-duplicates to drop"


@pytest.mark.parametrize("direction", ["remove", "emphasize"])
@pytest.mark.parametrize("corpus_too", [False, True])
def test_a_perspective_changes_the_scores(
    store: VectorStore, documents: list[Document], direction: str, corpus_too: bool
) -> None:
    q, p = embed(QUERY), embed("northern")
    sign = 1 if direction == "emphasize" else -1
    projected = q + sign * (q @ p) / (p @ p) * p
    vectors = np.array([embed(document.page_content) for document in documents])
    if corpus_too:
        vectors = vectors + sign * np.outer(vectors @ p / (p @ p), p)
    chosen = select(projected, vectors, 5)
    made = SetSelectCompressor(
        vectorstore=store, k=5, direction=direction, corpus=corpus_too, perspective="northern", scores=True
    )
    found = made.compress_documents(documents, QUERY)
    assert numbers(found) == numbers(documents[i] for i in chosen.indices)
    np.testing.assert_allclose([d.metadata["relevance_score"] for d in found], chosen.relevance, atol=1e-6)
    by_function = made.model_copy(update={"perspective": lambda query: query.split()[1]})
    assert by_function.compress_documents(documents, QUERY) == found


def test_the_threshold_is_a_cosine(store: VectorStore, documents: list[Document]) -> None:
    chosen = SetSelectCompressor(vectorstore=store, k=30, score_threshold=0.3).compress_documents(documents, QUERY)
    cosines = [embed(d.page_content) @ embed(QUERY) / np.linalg.norm(embed(d.page_content)) for d in documents]
    near = [d for d, cosine in zip(documents, cosines, strict=True) if cosine / np.linalg.norm(embed(QUERY)) >= 0.3]
    assert 0 < len(chosen) < 30
    assert sorted(numbers(chosen)) == sorted(numbers(near))


async def test_it_compresses_what_a_keyword_retriever_found(store: VectorStore, embeddings: WordEmbeddings) -> None:
    rows = [Document(text, metadata=dict(data), id=f"doc-{i}") for i, (text, data) in enumerate(corpus())]
    keyword = KeywordRetriever(documents=rows, k=25)
    made = SetSelectCompressor(vectorstore=store, k=5)
    assert isinstance(made, BaseDocumentCompressor)
    both = ContextualCompressionRetriever(base_retriever=keyword, base_compressor=made)
    found = both.invoke(QUERY)
    assert numbers(found) == expected(keyword.invoke(QUERY), 5)
    assert await both.ainvoke(QUERY) == found
    assert both.batch([QUERY, "old red river"])[0] == found
    assert embeddings.documents == 0
    assert (
        ContextualCompressionRetriever(base_retriever=KeywordRetriever(documents=[]), base_compressor=made).invoke(
            QUERY
        )
        == []
    )


async def test_it_works_in_a_chain(store: VectorStore) -> None:
    rows = [Document(text, metadata=dict(data), id=f"doc-{i}") for i, (text, data) in enumerate(corpus())]
    keyword = KeywordRetriever(documents=rows, k=25)
    made = SetSelectCompressor(vectorstore=store, k=5)

    async def acompress(found: dict[str, Any]) -> list[Document]:
        return list(await made.acompress_documents(found["documents"], found["query"]))

    compress = RunnableLambda(lambda found: made.compress_documents(found["documents"], found["query"]), acompress)
    chain = {"documents": keyword, "query": RunnablePassthrough()} | compress
    wanted = expected(keyword.invoke(QUERY), 5)
    assert numbers(chain.invoke(QUERY)) == wanted
    assert numbers(await chain.ainvoke(QUERY)) == wanted
    assert [numbers(found) for found in await chain.abatch([QUERY, QUERY])] == [wanted, wanted]


def test_copies_and_pickles_select_the_same(store: VectorStore, documents: list[Document]) -> None:
    limits = {"max_per_source": 1, "source": "topic", "perspective": "northern"}
    made = SetSelectCompressor(vectorstore=store, selector=MMR(lambda_mult=0.4), k=3, scores=False, **limits)
    wanted = made.compress_documents(documents, QUERY)
    others = copy.copy(made), copy.deepcopy(made), made.model_copy(), pickle.loads(pickle.dumps(made))
    for other in others:
        assert other.compress_documents(documents, QUERY) == wanted


def test_concurrent_calls_select_what_single_calls_select(store: VectorStore, documents: list[Document]) -> None:
    made = SetSelectCompressor(vectorstore=store, search_type="ndpp", k=5)
    queries = [f"{QUERY} {i}" for i in range(8)]
    one_by_one = [made.compress_documents(documents, query) for query in queries]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(made.acompress_documents(documents, query) for query in queries))

    assert asyncio.run(all_at_once()) == one_by_one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fetch_k": 30}, r"no argument 'fetch_k': it does not search a store"),
        ({"search_kwargs": {"fetch_k": 30}}, r"no argument 'fetch_k': it does not search a store"),
        ({"kk": 3}, r"SetSelectCompressor has no argument 'kk'.*max_per_source"),
        ({"filter": {"topic": "river"}}, r"no argument 'filter'"),
        ({"search_kwargs": {"filter": {"topic": "river"}}}, r"no argument 'filter': it does not search a store"),
        ({"search_kwargs": {"lamda_mult": 0.3}}, r"did you mean 'lambda_mult'"),
        ({"search_kwargs": {"vectorstore": None}}, r"vectorstore is set when SetSelectCompressor is made"),
        ({"k": 0}, r"k must be at least 1"),
        ({"search_type": "mrr"}, r"unknown selector 'mrr'"),
        ({"selector": MMR(), "search_type": "vrsd"}, r"search_type or selector, not both"),
        ({"drop_near_duplicates": 2}, r"drop_near_duplicates"),
        ({"max_per_source": 0}, r"max_per_source must be at least 1"),
    ],
)
def test_bad_arguments_are_refused(embeddings: WordEmbeddings, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SetSelectCompressor(embeddings=embeddings, **arguments)


def test_it_needs_embeddings_and_says_how_to_give_them(embeddings: WordEmbeddings, documents: list[Document]) -> None:
    with pytest.raises(InvalidParameterError, match=r"embeddings=.*vectorstore="):
        SetSelectCompressor(k=3)

    class Bare(InMemoryVectorStore):
        @property
        def embeddings(self) -> None:
            return None

    bare = Bare(embeddings)
    bare.add_documents(documents)
    with pytest.raises(VectorSourceError, match=re.escape("SetSelectCompressor(..., embeddings=...)")):
        SetSelectCompressor(vectorstore=bare).compress_documents(documents, QUERY)
    chosen = SetSelectCompressor(vectorstore=bare, embeddings=embeddings, k=4).compress_documents(documents, QUERY)
    assert numbers(chosen) == expected(documents, 4)


def test_vectors_of_two_models_are_recognised_by_their_length(
    documents: list[Document], embeddings: WordEmbeddings
) -> None:
    class Longer(WordEmbeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[*vector, 1.0] for vector in super().embed_documents(texts)]

    store = in_memory(embeddings)
    stranger = Document("a stranger", id="stranger")
    with (
        pytest.warns(EmbeddingFallbackWarning),
        pytest.raises(InvalidInputError, match=r"'stranger' has length 49.*48.*different embedding models"),
    ):
        SetSelectCompressor(vectorstore=store, embeddings=Longer()).compress_documents([*documents, stranger], QUERY)


async def test_an_async_fetch_is_awaited_and_the_other_is_not_called(
    embeddings: WordEmbeddings, documents: list[Document]
) -> None:
    class Remote(InMemoryVectorStore):
        pass

    called: list[str] = []

    def fetch(store: Remote, ids: Any) -> Any:
        called.append("sync")
        return {name: store.store[name]["vector"] for name in ids}

    async def afetch(store: Remote, ids: Any) -> Any:
        called.append("async")
        return {name: store.store[name]["vector"] for name in ids}

    register_vector_source(Remote, lambda *a, **k: ([], []), fetch=fetch, afetch=afetch)
    store = Remote(embeddings)
    store.add_documents(documents)
    embeddings.documents = 0
    made = SetSelectCompressor(vectorstore=store, k=5)
    assert numbers(await made.acompress_documents(documents, QUERY)) == expected(documents, 5)
    assert called == ["async"]
    assert numbers(made.compress_documents(documents, QUERY)) == expected(documents, 5)
    assert called == ["async", "sync"]
    assert embeddings.documents == 0


def test_pieces_that_share_an_id_are_separate_candidates(embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["river mountain bread"], ids=["whole"])
    pieces = [Document(text, id="whole") for text in ("river", "mountain", "bread")]
    made = SetSelectCompressor(vectorstore=store, k=3, order="relevance")
    with pytest.warns(EmbeddingFallbackWarning):
        chosen = made.compress_documents(pieces, "bread")
    assert {document.page_content for document in chosen} == {"river", "mountain", "bread"}
    assert chosen[0].page_content == "bread", "by its own vector, not that of the whole document"


def test_a_document_that_occurs_twice_is_fetched_once(embeddings: WordEmbeddings, documents: list[Document]) -> None:
    class Strict(InMemoryVectorStore):
        pass

    def fetch(store: Strict, ids: Any) -> Any:
        assert len(set(ids)) == len(ids) > 0
        return {name: store.store[name]["vector"] for name in ids}

    register_vector_source(Strict, lambda *a, **k: ([], []), fetch=fetch)
    store = Strict(embeddings)
    store.add_documents(documents)
    chosen = SetSelectCompressor(vectorstore=store, k=5).compress_documents(documents + documents, QUERY)
    assert numbers(chosen) == expected(documents, 5)
