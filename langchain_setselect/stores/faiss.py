"""The vector reader for the FAISS store of langchain-community."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.follow import Where, suits
from shared_core.stores.faiss import search_with_vectors, vectors_by_label
from shared_core.stores.rows import nearest_of

from .reader import Hits, VectorReader


def _search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None) -> Hits:
    """The index's own top ``fetch_k`` among the documents that pass the filter, with their vectors."""
    vector = np.asarray(query, dtype=np.float32)
    if store._normalize_L2:
        vector = vector / (np.sqrt(vector.dot(vector)) or 1)
    passes = None if filter is None else store._create_filter_func(filter)
    wanted = fetch_k if passes is None else 4 * fetch_k
    # FAISS knows no metadata, so the search is widened until enough documents pass or the index is exhausted.
    while True:
        labels, vectors = search_with_vectors(store.index, vector, wanted)
        documents = _read(store, map(store.index_to_docstore_id.get, labels.tolist()))
        if passes is None:
            return documents, vectors
        rows = [row for row, document in enumerate(documents) if document is not None and passes(document.metadata)]
        if len(rows) >= fetch_k or wanted >= store.index.ntotal:
            return [documents[row] for row in rows[:fetch_k]], vectors[rows[:fetch_k]]
        wanted *= 4


def _read(store: Any, names: Iterable[Any]) -> list[Document | None]:
    """The documents with these ids; None for one that was deleted from the docstore, but not from the index."""
    found = ((name, store.docstore.search(name)) for name in names)
    # A store of an earlier version holds documents without ids.
    return [
        (document if document.id else document.model_copy(update={"id": name}))
        if isinstance(document, Document)
        else None
        for name, document in found
    ]


def _fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    wanted = set(ids)
    # A copy: another thread may add documents.
    known = {name: label for label, name in store.index_to_docstore_id.copy().items() if name in wanted}
    return dict(zip(known, vectors_by_label(store.index, list(known.values())), strict=True))


def _find_ids(store: Any, texts: Collection[str]) -> Mapping[str, str]:
    """Ids by text; none if the documents are not in this process."""
    documents = getattr(store.docstore, "_dict", {}).copy()
    return {document.page_content: name for name, document in documents.items() if document.page_content in texts}


def _passing(store: Any, ids: Sequence[str], *, filter: Any = None) -> dict[str, Document]:
    passes = (lambda metadata: True) if filter is None else store._create_filter_func(filter)
    known = zip(ids, _read(store, ids), strict=True)
    return {name: document for name, document in known if document is not None and passes(document.metadata)}


def _find(store: Any, query: list[float], k: int, *, where: Where, **more: Any) -> Hits:
    documents = getattr(store.docstore, "_dict", {}).copy()
    names = [name for name, document in documents.items() if suits(where, document.metadata.get)]
    vectors = _fetch(store, [*_passing(store, names, **more)])
    found = nearest_of(names, vectors, query, k)
    return _read(store, found), [vectors[name] for name in found]


def _list(store: Any, ids: Sequence[str] | None) -> Iterable[Document]:
    return filter(None, _read(store, [*store.index_to_docstore_id.copy().values()] if ids is None else ids))


def _texts(store: Any) -> dict[str, str] | tuple[int, None]:
    """The texts by id; the number of documents if they are not in this process."""
    documents, names = getattr(store.docstore, "_dict", None), store.index_to_docstore_id.copy().values()
    if documents is None:
        return len(names), None
    return {name: documents[name].page_content for name in names if name in documents}


READER = VectorReader(_search, fetch=_fetch, find_ids=_find_ids, passing=_passing, find=_find, takes=["filter"])
LISTING = StoreListing(_list, _texts)
