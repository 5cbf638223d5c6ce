"""What a LangChain store must be able to do for setselect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.errors import InvalidParameterError
from shared_core.retrieval.request import WIDEST

# Documents in the store's order, and for each its stored vector (None: the store no longer has it).
Hits = tuple[Sequence[Document], Sequence[ArrayLike | None] | ArrayLike]
VectorSource = Callable[..., Hits]
AsyncVectorSource = Callable[..., Awaitable[Hits]]
VectorFetch = Callable[[Any, Sequence[str]], Mapping[str, ArrayLike]]
AsyncVectorFetch = Callable[[Any, Sequence[str]], Awaitable[Mapping[str, ArrayLike]]]


IdOf = Callable[[Any, Document], str | None]


def document_id(store: Any, document: Document) -> str | None:
    """The id where LangChain has a place for it."""
    return document.id


def id_in_metadata(key: str) -> IdOf:
    """For stores whose documents carry their id in the metadata."""

    def id_of(store: Any, document: Document) -> str | None:
        found = document.metadata.get(key) if document.id is None else document.id
        return None if found is None else str(found)

    return id_of


class Source(NamedTuple):
    """How a store searches and hands back its vectors, how it looks them up by id, and where documents have theirs."""

    search: VectorSource
    asearch: AsyncVectorSource | None = None
    fetch: VectorFetch | None = None
    afetch: AsyncVectorFetch | None = None
    id_of: IdOf = document_id
    # The most that the store gives at a time, beyond which a search is not widened unasked.
    widest: int = WIDEST


def refuse_unknown(store: str, unknown: Mapping[str, Any], *known: str) -> None:
    """Refuse search arguments that the store does not have."""
    if unknown:
        raise InvalidParameterError(
            f"{store} takes no search argument {next(iter(unknown))!r}; it takes {', '.join(known)}"
        )
