"""A LangChain retriever by words: BM25 over documents in memory, or over those of a vector store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field, InstanceOf
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.retrieval.extra import ItemKind, StoreListing, WordSearch, check_integer
from shared_core.retrieval.inputs import check_instance, check_items, check_question, find_registered, refuse_unknown
from shared_core.texts.words import check_strings

from ._settings import OF_DICT, say_place
from .stores import LISTINGS

Filter = Mapping[str, Any] | Callable[[Document], bool]

# What users of LangChain's BM25Retriever may pass.
_REMEDIES = {
    "preprocess_func": "WordRetriever has its own rule of what a word is, the one by which setselect selects",
    "bm25_params": "WordRetriever uses k1 = 1.5 and b = 0.75",
    "docs": "make a WordRetriever with WordRetriever.from_documents(documents)",
}


def _copy(document: Document) -> Document:
    return document.model_copy(update={"metadata": deepcopy(document.metadata)})


def _find_listing(store: Any) -> tuple[StoreListing[Document] | None, Any]:
    return find_registered(LISTINGS, type(store)), store


DOCUMENTS: ItemKind[Document] = ItemKind(attrgetter("page_content"), attrgetter("id"), _copy, _find_listing)


class WordRetriever(BaseRetriever):
    """Returns the ``k`` documents that fit the words of the question best, by BM25 (bm25s).

    It is for questions with names, error codes and identifiers, which a search by vector may rank low. Its words are
    those by which :class:`SetSelectRetriever` selects: in any case, with or without accents, without the marks of
    Markdown and HTML, identifiers also by their parts, and Chinese, Japanese, Korean and Thai by pairs of characters.
    There is no stemming. Documents without a word of the question are not returned, so there may be fewer than ``k``.

    Make one with :meth:`from_documents`, :meth:`from_texts` or :meth:`from_store`. The index is made at the first
    search. Any number of threads may search. You get copies of the documents, with their ids and metadata.

    Parameters
    ----------
    k : int
        The most documents to return. Also at call time: ``retriever.invoke(question, k=5)``.
    filter : dict or callable, optional
        Which documents may be returned: values that their metadata have, ``{"year": 2026}``, or a function
        ``filter(document) -> bool``. Also at call time.
    tags, metadata
        As for every LangChain retriever.

    Raises
    ------
    InvalidParameterError
        ``k`` is below 1, or an argument is unknown.
    InvalidInputError
        The question or a text is not a string; the message names its row.
    ImportError
        bm25s is missing (``pip install "setselect[words]"``).

    Examples
    --------
    >>> from langchain_setselect import WordRetriever
    >>> retriever = WordRetriever.from_texts(["Set max_retries to 3.", "Error E1234: no disk."], ids=["a", "b"])
    >>> [document.id for document in retriever.invoke("What does e1234 mean?")]
    ['b']
    >>> [document.id for document in retriever.invoke("How many retries?", k=1)]
    ['a']
    """

    k: int = 25

    filter: Filter | None = None

    words: InstanceOf[WordSearch[Any]] = Field(repr=False, exclude=True)
    """The documents with their index; ``from_documents`` and the other constructors make it."""

    # Type checkers read the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **settings: Any) -> None:
            refuse_unknown(type(self).__name__, settings, type(self).model_fields, _REMEDIES)
            if "words" not in settings:
                raise InvalidParameterError(
                    "make a WordRetriever with WordRetriever.from_documents(documents), from_texts or from_store"
                )
            _check_filter(settings.get("filter"))
            super().__init__(**{**settings, "k": check_integer(settings.get("k", 25), "k", 1)})

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **settings: Any) -> Self:
        """A retriever over these documents. Of several with the same id, the last one counts.

        Parameters
        ----------
        documents : iterable of Document
            They are copied.
        **settings
            ``k``, ``filter``, ``tags``, ``metadata``.

        Examples
        --------
        >>> from langchain_core.documents import Document
        >>> documents = [Document("A red lamp", id="1"), Document("A blue lamp", id="2")]
        >>> WordRetriever.from_documents(documents, k=1).invoke("blue lamp")[0].page_content
        'A blue lamp'
        """
        return cls(words=WordSearch(DOCUMENTS, _check_documents(documents)), **settings)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[dict[str, Any]] | None = None,
        ids: Iterable[str | None] | None = None,
        **settings: Any,
    ) -> Self:
        """A retriever over these texts; see :meth:`from_documents`. All columns must have the same length."""
        texts = texts if isinstance(texts, str) else list(texts)
        check_strings(texts, "texts")
        n = len(texts)
        columns = {"metadatas": metadatas, "ids": ids}
        listed = {name: [None] * n if column is None else list(column) for name, column in columns.items()}
        for name, column in listed.items():
            if len(column) != n:
                raise InvalidInputError(f"{name} has length {len(column)}, texts {n}: give one for each text")
        documents = [
            Document(page_content=text, metadata=metadata or {}, id=name)
            for text, metadata, name in zip(texts, listed["metadatas"], listed["ids"], strict=True)
        ]
        return cls.from_documents(documents, **settings)

    @classmethod
    def from_store(cls, store: VectorStore, **settings: Any) -> Self:
        """A retriever over the documents of a vector store, which follows the store.

        The documents are read from the store at the first search, and again when the store counts another number of
        them. After a change that keeps the number, call :meth:`refresh`. Pickles contain the store, not the documents.

        Parameters
        ----------
        store : VectorStore
            ``InMemoryVectorStore``, ``FAISS``, ``Chroma``, ``LanceDB``, ``DuckDB``, ``SQLiteVec``, ``PGVector``
            or ``PGVectorStore``. For another store pass its documents to :meth:`from_documents`.
        **settings
            As for :meth:`from_documents`.

        Raises
        ------
        InvalidParameterError
            The store cannot list its documents, or, at the first search, it holds more than a million.

        Examples
        --------
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> retriever = WordRetriever.from_store(store)
        >>> _ = store.add_texts(["Error E1234: no disk."])
        >>> len(retriever.invoke("E1234"))
        1
        """
        check_instance(store, VectorStore, "store", say_place(store))
        if not DOCUMENTS.can_list(store):
            raise InvalidParameterError(
                f"setselect cannot list the documents of {type(store).__name__}: pass them to "
                "WordRetriever.from_documents, or use the store's own search by words as a retriever"
            )
        return cls(words=WordSearch(DOCUMENTS, store=store), **settings)

    def refresh(self) -> None:
        """Read the documents from the store again at the next search, whatever their number is."""
        self.words.refresh()

    def __len__(self) -> int:
        return len(self.words)

    def __bool__(self) -> bool:
        # A retriever without documents is a retriever.
        return True

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, **kwargs: Any
    ) -> list[Document]:
        refuse_unknown(f"{type(self).__name__}.invoke", kwargs, ["k", "filter"])
        passes, question = _check_filter(kwargs.get("filter", self.filter)), check_question(query, OF_DICT)
        return [document for document, _ in self.words.search(question, kwargs.get("k", self.k), passes)]

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        search = partial(self._get_relevant_documents, query, **kwargs)
        try:
            return await run_in_executor(None, search)
        # The connection of a SQLite store may belong to the caller's thread.
        except sqlite3.ProgrammingError:
            return search()


def _check_documents(documents: Iterable[Document]) -> list[Document]:
    return check_items(documents, Document, "Pass LangChain documents, or use WordRetriever.from_texts")


def _check_filter(given: Any) -> Callable[[Document], bool] | None:
    """The filter as a function."""
    if given is None or (callable(given) and not isinstance(given, Mapping)):
        return given
    if not isinstance(given, Mapping):
        raise InvalidParameterError(f"filter must be a dict of metadata, or a function of a document, got {given!r}")
    for key, value in given.items():
        if str(key).startswith("$") or (
            isinstance(value, Mapping) and any(str(name).startswith("$") for name in value)
        ):
            raise InvalidParameterError(
                f"filter={given!r}: WordRetriever compares values for equality and knows no operators: pass a function "
                "filter(document) -> bool"
            )
    keys, values = [*given], [*given.values()]
    return lambda document: [document.metadata.get(key) for key in keys] == values
