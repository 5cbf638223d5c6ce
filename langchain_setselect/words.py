"""A LangChain retriever by words: BM25 over documents in memory, or over those of a vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field, InstanceOf
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.retrieval.extra import ItemKind, WordSearch, as_predicate, check_integer
from shared_core.retrieval.inputs import check_instance, check_items, check_question, find_registered, refuse_unknown
from shared_core.texts.words import check_strings

from ._settings import OF_DICT
from .stores import LISTINGS


def _copy(document: Document) -> Document:
    return document.model_copy(update={"metadata": deepcopy(document.metadata)})


def _find_listing(store: Any) -> Any:
    return find_registered(LISTINGS, type(store)), store


DOCUMENTS: ItemKind[Document] = ItemKind(attrgetter("page_content"), attrgetter("id"), _copy, _find_listing)


class WordRetriever(BaseRetriever):
    """Returns the ``k`` documents that fit the words of the question best, by BM25 (bm25s).

    It is for questions with names, error codes and identifiers; see the page on keyword search. Its words are those by
    which :class:`SetSelectRetriever` selects, without stemming. Documents without a word of the question are not
    returned, so there may be fewer than ``k``.

    Make one with :meth:`from_documents`, :meth:`from_texts` or :meth:`from_store`. The index is made at the first
    search. You get copies of the documents, with their ids and metadata.

    Parameters
    ----------
    k : int
        The most documents to return. Also at call time: ``retriever.invoke(question, k=5)``.
    filter : dict or callable, optional
        Which documents may be returned: values that their metadata have, ``{"year": 2026}``, or a function
        ``filter(document) -> bool``. Also at call time.
    tags, metadata
        As for every LangChain retriever.

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

    filter: Mapping[str, Any] | Callable[[Document], bool] | None = None

    words: InstanceOf[WordSearch[Any]] = Field(repr=False, exclude=True)
    """The documents with their index; ``from_documents`` and the other constructors make it."""

    # Type checkers read the arguments from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **settings: Any) -> None:
            refuse_unknown(type(self).__name__, settings, type(self).model_fields)
            if "words" not in settings:
                raise InvalidParameterError(
                    "make a WordRetriever with WordRetriever.from_documents(documents), from_texts or from_store"
                )
            as_predicate(settings.get("filter"))
            super().__init__(**{**settings, "k": check_integer(settings.get("k", 25), "k", 1)})

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **settings: Any) -> Self:
        """A retriever over copies of these documents. Of several with the same id, the last one counts.

        ``settings`` are ``k``, ``filter``, ``tags`` and ``metadata``.
        """
        items = check_items(documents, Document, "Pass LangChain documents, or use WordRetriever.from_texts")
        return cls(words=WordSearch(DOCUMENTS, items), **settings)

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
        n, columns = len(texts), []
        for name, column in {"metadatas": metadatas, "ids": ids}.items():
            columns.append([None] * n if column is None else list(column))
            if len(columns[-1]) != n:
                raise InvalidInputError(f"{name} has length {len(columns[-1])}, texts {n}: give one for each text")
        rows = zip(texts, *columns, strict=True)
        documents = [Document(text, metadata=metadata or {}, id=name) for text, metadata, name in rows]
        return cls.from_documents(documents, **settings)

    @classmethod
    def from_store(cls, store: VectorStore, **settings: Any) -> Self:
        """A retriever over the documents of a vector store, which follows the store.

        The page on keyword search says when the index knows a change, and names the stores whose documents can be
        listed. ``retriever.words.refresh()`` reads everything again. Pickles contain the store, not the documents.
        """
        check_instance(store, VectorStore, "store")
        DOCUMENTS.check_listing(store, "from_documents(documents)")
        return cls(words=WordSearch(DOCUMENTS, store=store), **settings)

    @override
    def _get_relevant_documents(self, query: str, *, run_manager: Any = None, **kwargs: Any) -> list[Document]:
        refuse_unknown(f"{type(self).__name__}.invoke", kwargs, ["k", "filter"])
        passes, question = as_predicate(kwargs.get("filter", self.filter)), check_question(query, OF_DICT)
        return [document for document, _ in self.words.search(question, kwargs.get("k", self.k), passes)]

    @override
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        return await run_in_executor(None, partial(self._get_relevant_documents, query, **kwargs))
