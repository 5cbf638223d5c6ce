"""What a vector reader for a LangChain store is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError
from shared_core.retrieval import WIDEST

Vectors = Sequence[ArrayLike | None] | ArrayLike
# Documents in the store's order and the vector stored for each; None if the store no longer has it. A reader may add
# the documents' ids; otherwise ``id_of`` reads them from the documents.
Hits = tuple[Sequence[Document], Vectors] | tuple[Sequence[Document], Vectors, Sequence[str]]
VectorSearch = Callable[..., Hits]
AsyncVectorSearch = Callable[..., Awaitable[Hits]]
VectorFetch = Callable[[Any, Sequence[str]], Mapping[str, ArrayLike]]
AsyncVectorFetch = Callable[[Any, Sequence[str]], Awaitable[Mapping[str, ArrayLike]]]
IdOf = Callable[[Any, Document], str | None]


def document_id(store: Any, document: Document) -> str | None:
    """The document's id in LangChain's own place for it."""
    return document.id


def id_in_metadata(key: str) -> IdOf:
    """A function that reads the id of a document from its metadata if ``document.id`` is None."""

    def id_of(store: Any, document: Document) -> str | None:
        found = document.metadata.get(key) if document.id is None else document.id
        return None if found is None else str(found)

    return id_of


class VectorReader(NamedTuple):
    """How a store searches and returns its vectors, looks vectors up by id, and keeps the ids of its documents."""

    search: VectorSearch
    asearch: AsyncVectorSearch | None = None
    fetch: VectorFetch | None = None
    afetch: AsyncVectorFetch | None = None
    id_of: IdOf = document_id
    # The most hits that the store returns; no search of setselect asks for more.
    widest: int = WIDEST


def refuse_unknown(store: str, unknown: Mapping[str, Any], *known: str) -> NoReturn:
    """Raise the error for search arguments that the store does not have."""
    raise InvalidParameterError(
        f"{store} takes no search argument {next(iter(unknown))!r}; it takes {', '.join(known) or 'none'}"
    )
