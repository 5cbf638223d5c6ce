"""Compare every method on your own LangChain store, or with an embedding of LangChain by its name (extra ``eval``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import ArrayLike, NDArray

from shared_core.errors import InvalidParameterError, VectorSourceError
from shared_core.evaluation.compare import check_options, compare_candidates, searches_words
from shared_core.evaluation.corpus import Query
from shared_core.evaluation.diagnosis import Found, diagnose
from shared_core.evaluation.judging import SearchResult, found_documents
from shared_core.evaluation.results import Comparison, Diagnosis
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.inputs import check_instance
from shared_core.retrieval.question import EmbeddedQuery
from shared_core.retrieval.search import search_with_words
from shared_core.selection.route import DEFAULT_EXTRA_K
from shared_core.signals.embedding_models import Track, as_embedding, as_embeddings, fingerprint, without_progress
from shared_core.texts import Texts

from ._settings import say_place
from .retriever import SetSelectRetriever
from .vectors import reader_of
from .words import DOCUMENTS


def compare_store(
    store: VectorStore,
    queries: Iterable[str | Mapping[str, Any] | Query],
    *,
    embeddings: Embeddings | None = None,
    k: int | Sequence[int] = 5,
    fetch_k: int | None = None,
    search_kwargs: Mapping[str, Any] | None = None,
    model: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare all methods on the candidates that a vector store finds, with the vectors that it keeps.

    If the documents of the store can be listed, a setting with ``keyword_search`` selects from those, too, that a
    search by words finds: see :meth:`WordRetriever.from_store`.

    Parameters
    ----------
    store : VectorStore
        Where the documents and their vectors are searched; nothing is written to it.
    queries : iterable of str, mapping or Query
        See :func:`shared_core.evaluation.compare.compare`. ``gold`` holds ids of documents in the store. The labels of
        a document are its metadata ``subtopics``. For settings with constraints, its metadata may hold ``source`` and
        ``cost``.
    embeddings : Embeddings, optional
        For stores that carry none.
    k : int or sequence of int
        How many documents are picked; several numbers are judged in one run, and the first decides.
    fetch_k : int, optional
        From how many nearest candidates they are picked (default: 5 k, at least 50).
    search_kwargs : mapping, optional
        Arguments of the store's search, which go to it unchanged: ``{"filter": ...}``.
    model : str, optional
        Name of the embedding model, for the report; by default the name that the embeddings give.
    **options
        The other options of :func:`shared_core.evaluation.compare.compare_candidates`.

    Raises
    ------
    VectorSourceError
        There are no embeddings.
    InvalidInputError, InvalidParameterError, ImportError
        See :func:`shared_core.evaluation.compare.compare_candidates`.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts([f"text {i}" for i in range(9)], ids=[f"id {i}" for i in range(9)])
    >>> found = compare_store(store, [{"text": "a question", "gold": ["id 3"]}], k=3, fetch_k=9)
    >>> found.values[0, "recall"].mean in (0.0, 1.0), found.corpus.model
    (True, 'DeterministicFakeEmbedding')
    """
    check_instance(store, VectorStore, "store", say_place(store))
    sizes, fetch_k = check_options(k, fetch_k)
    embedding = embeddings or store.embeddings
    if embedding is None:
        raise VectorSourceError(
            f"{type(store).__name__} has no embeddings: pass compare_store(..., embeddings=...) with the model "
            "that filled the store"
        )

    more = dict(search_kwargs or {})
    words = searches_words(options.get("settings")) and DOCUMENTS.can_index(store)
    retriever = SetSelectRetriever(
        vectorstore=store, embeddings=embedding, k=max(sizes), fetch_k=fetch_k, keyword_search=words
    )
    request, _ = retriever._configured
    searching = retriever._store(request, "", more)
    asked: dict[str, tuple[str, NDArray[Any]]] = {}

    def candidates_of(query: Query) -> SearchResult:
        texts = list(query.questions)
        source = f"{type(embedding).__name__}.embed_query"
        vectors = as_embeddings(list(map(embedding.embed_query, texts)), texts, source, np.float64)
        asked[query.id] = query.text, vectors[0]
        queries = [EmbeddedQuery(v, None, v.tolist(), text) for v, text in zip(vectors, texts, strict=True)]
        found = search_with_words(retriever, queries, searching, fetch_k, DEFAULT_EXTRA_K, max(sizes))
        pool, candidates, by_words = run_flow(found)
        pool = pool.with_array()
        facts = request.read_facts(pool)
        titles = Texts(list(map(pool.body, pool.items)), facts).titles
        rows = [
            (None if i is None else str(i), d.page_content, title, d.metadata)
            for i, d, title in zip(pool.ids, pool.items, titles, strict=True)
        ]
        return SearchResult(
            vectors if query.sub_questions else vectors[0],
            found_documents(rows),
            pool.vectors,
            facts=facts,
            candidates=candidates,
            by_words=by_words,
            weigh=None if searching.extras is None else searching.extras.weigh,
        )

    name = model or _model_name(embedding)
    found = compare_candidates(queries, candidates_of, k=k, fetch_k=fetch_k, model=name, **options)
    # Without a vector reader, the texts of all that is found would be embedded.
    if found.recommendation.measure is not None or found.partial or reader_of(store) is None:
        return found
    shown = {name: value for name, value in options.items() if name in ("title", "track", "documents")}
    about = _diagnose(store, [*asked.values()], len(next(iter(asked.values()))[1]), sizes[0], fetch_k, more, **shown)
    return replace(found, diagnosis=about)


def diagnose_store(
    store: VectorStore,
    *,
    embeddings: Embeddings | None = None,
    dimension: int | None = None,
    documents: int | None = None,
    k: int = 5,
    fetch_k: int | None = None,
    search_kwargs: Mapping[str, Any] | None = None,
    title: str | None = None,
    track: Track = without_progress,
) -> Diagnosis:
    """What the documents of a vector store give the settings to act on. No question is needed, and no text is embedded.

    Typical texts are drawn from the store, and each is searched for with the vector that the store keeps.

    Parameters
    ----------
    store : VectorStore
        A store with a vector reader; nothing is written to it.
    embeddings : Embeddings, optional
        For stores that carry none, to learn the length of the vectors.
    dimension : int, optional
        The length of the vectors. Then no embeddings are needed.
    documents : int, optional
        How many documents the store holds, for the report; by default their number, if the store can list them.
    k, fetch_k : int, optional
        How many documents you return, and how many candidates they are selected from; by default max(50, 5k).
    search_kwargs : mapping, optional
        Arguments of the store's search: ``{"filter": ...}``.
    title : str, optional
        A name for the report; by default that of the store's class.
    track : callable
        ``track(items, description)`` returns the items, and may show a progress bar.

    Raises
    ------
    VectorSourceError
        The store has no vector reader, or the length of its vectors is not known.
    InvalidInputError
        The store holds no texts.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> _ = store.add_texts(["A port.", "A port.", "A hill."])
    >>> found = diagnose_store(store, k=2)
    >>> found.findings[0].name, round(found.findings[0].share, 2)
    ('Texts that are stored more than once', 0.67)
    """
    (k,), fetch_k = check_options(k, fetch_k)
    if reader_of(store) is None:
        raise VectorSourceError(
            f"setselect has no vector reader for {type(store).__name__}, so all texts would be embedded: call "
            "register_vector_source"
        )
    if dimension is None:
        embedding = embeddings or store.embeddings
        if embedding is None:
            raise VectorSourceError(
                f"{type(store).__name__} has no embeddings: pass dimension= with the length of its vectors"
            )
        dimension = len(as_embedding(embedding.embed_query("text"), f"{type(embedding).__name__}.embed_query", "text"))
    shown: dict[str, Any] = {"title": title or type(store).__name__, "track": track, "documents": documents}
    return _diagnose(store, [], dimension, k, fetch_k, dict(search_kwargs or {}), **shown)


def _diagnose(
    store: VectorStore,
    questions: Sequence[tuple[str, ArrayLike]],
    dimension: int,
    k: int,
    fetch_k: int,
    search_kwargs: dict[str, Any],
    *,
    documents: int | None = None,
    title: str = "Diagnosis of a store",
    track: Track = without_progress,
) -> Diagnosis:
    # Links are read where the metadata have them. No text is embedded.
    retriever = SetSelectRetriever(vectorstore=store, k=k, fetch_k=fetch_k, links=_read_links)
    request, _ = retriever._configured
    searching = retriever._store(request, "", search_kwargs)
    reader = reader_of(store)
    # A source that the store itself adds to all documents says nothing.
    sourced = reader is not None and "source" not in reader.added_keys(store)

    def search(vector: NDArray[np.float64], number: int) -> Found:
        pool = run_flow(searching.search(EmbeddedQuery(vector, None, vector.tolist()), number))
        return Found(
            list(map(pool.body, pool.items)),
            pool.with_array().vectors,
            [document.metadata.get("source") if sourced else None for document in pool.items],
            lambda: request.read_texts(pool) or Texts([]),
        )

    return diagnose(
        search,
        dimension,
        questions,
        title=title,
        documents=DOCUMENTS.count(store) if documents is None else documents,
        k=k,
        fetch_k=fetch_k,
        widest=searching.widest or fetch_k,
        track=track,
    )


def _read_links(document: Document) -> Any:
    return document.metadata.get("links")


def _model_name(embeddings: Embeddings) -> str:
    names = (getattr(embeddings, attribute, None) for attribute in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(embeddings).__name__)


@dataclass(frozen=True, eq=False)
class NamedEmbedding:
    """An embedding of LangChain that :func:`load_embedding` has loaded, as ``setselect compare`` uses it."""

    name: str
    fingerprint: str
    embeddings: Embeddings
    max_characters: None = None

    def embed_documents(self, texts: list[str]) -> ArrayLike:
        """Vectors (n, d) of documents."""
        return self._make(lambda: self.embeddings.embed_documents(texts))

    def embed_queries(self, texts: list[str]) -> ArrayLike:
        """Vectors (n, d) of queries; some providers treat queries differently."""
        return self._make(lambda: [self.embeddings.embed_query(text) for text in texts])

    def _make(self, make: Callable[[], list[list[float]]]) -> list[list[float]]:
        try:
            return make()
        # Each provider has exceptions of its own: for the network, a wrong key, a limit of requests.
        except Exception as error:
            raise VectorSourceError(f"embedding {self.name!r} failed: {_one_line(error)}") from error


def load_embedding(name: str) -> NamedEmbedding:
    """Load ``provider:model`` with LangChain's ``init_embeddings``; the provider reads its key from the environment."""
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise InvalidParameterError(
            f"the embedding must be named as provider:model, such as openai:text-embedding-3-small, got {name!r}"
        )
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as error:
        raise ImportError(
            "an embedding by name needs langchain and the provider's package, for example: "
            "pip install langchain langchain-openai"
        ) from error
    try:
        embeddings = init_embeddings(name)
    except ImportError as error:
        raise ImportError(_one_line(error)) from error
    # A missing key, an unknown provider and a wrong name raise exceptions of many packages.
    except Exception as error:
        raise InvalidParameterError(f"embedding {name!r} cannot be loaded: {_one_line(error)}") from error
    return NamedEmbedding(name, f"langchain {provider}:{fingerprint(model)}", embeddings)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
