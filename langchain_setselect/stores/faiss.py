"""The vector reader for the FAISS store of langchain-community."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.retrieval.extra import StoreListing
from shared_core.retrieval.follow import Where, suits
from shared_core.stores.faiss import labels_by_id, search_with_vectors, vectors_by_label
from shared_core.stores.rows import nearest_of

from .reader import Hits, VectorReader


def _search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None) -> Hits:
    """The index's own top ``fetch_k`` among the documents that pass the filter, with their vectors."""
    vector = np.asarray(query, dtype=np.float32)
    if store._normalize_L2:
        vector = vector / (np.sqrt(vector.dot(vector)) or 1)
    if filter is None:
        return _documents(store, *search_with_vectors(store.index, vector, fetch_k))
    passes = store._create_filter_func(filter)
    wanted = 4 * fetch_k
    # FAISS knows no metadata, so the search is widened until enough documents pass or the index is exhausted.
    while True:
        documents, vectors, ids = _documents(
            store, *search_with_vectors(store.index, vector, wanted), lambda d: passes(d.metadata)
        )
        if len(documents) >= fetch_k or wanted >= store.index.ntotal:
            return documents[:fetch_k], vectors[:fetch_k], ids[:fetch_k]
        wanted *= 4


def _fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    found = labels_by_id(
        store, store.index_to_docstore_id, ids, lambda name: isinstance(store.docstore.search(name), Document)
    )
    known = {name: label for name, label in zip(ids, found, strict=True) if label is not None}
    return dict(zip(known, vectors_by_label(store.index, list(known.values())), strict=True))


def _documents(
    store: Any, labels: Any, vectors: Any, passes: Callable[[Document], bool] | None = None
) -> tuple[list[Document], Any, list[str]]:
    names = list(map(store.index_to_docstore_id.get, labels.tolist()))
    found = list(map(store.docstore.search, names))
    # The usual case: no filter and nothing deleted. The documents themselves are not read, because they are not
    # in the processor's cache: reading the id of each of 100 documents takes longer than the selection.
    if passes is None and set(map(type, found)) == {Document}:
        return found, vectors, names
    documents: list[Document] = []
    ids: list[str] = []
    rows: list[int | None] = []
    for row, (name, document) in enumerate(zip(names, found, strict=True)):
        if not isinstance(document, Document):
            # Deleted from the docstore, but not from the index.
            documents.append(Document(id=str(name), page_content=""))
            rows.append(None)
        elif passes is None or passes(document):
            documents.append(document)
            rows.append(row)
        else:
            continue
        ids.append(name)
    if None in rows:
        return documents, [None if row is None else vectors[row] for row in rows], ids
    return documents, vectors if len(rows) == len(vectors) else vectors[rows], ids


def _find_ids(store: Any, texts: Collection[str]) -> Mapping[str, str]:
    """Ids by text; none if the documents are not in this process."""
    documents = getattr(store.docstore, "_dict", {}).copy()
    return {document.page_content: name for name, document in documents.items() if document.page_content in texts}


def _passing(store: Any, ids: Sequence[str], *, filter: Any = None) -> list[str]:
    passes = (lambda metadata: True) if filter is None else store._create_filter_func(filter)
    known = [(name, store.docstore.search(name)) for name in ids]
    return [name for name, document in known if isinstance(document, Document) and passes(document.metadata)]


def _find(store: Any, query: list[float], k: int, *, where: Where, **more: Any) -> Hits:
    documents = getattr(store.docstore, "_dict", {}).copy()
    names = [name for name, document in documents.items() if suits(where, document.metadata.get)]
    vectors = _fetch(store, _passing(store, names, **more))
    found = nearest_of(names, vectors, query, k)
    return [documents[name] for name in found], [vectors[name] for name in found], found


def _list(store: Any) -> list[Document]:
    names = list(store.index_to_docstore_id.values())
    documents = zip(names, map(store.docstore.search, names), strict=True)
    # A store of an earlier version holds documents without ids.
    return [
        document if document.id else document.model_copy(update={"id": name})
        for name, document in documents
        if isinstance(document, Document)
    ]


READER = VectorReader(_search, fetch=_fetch, find_ids=_find_ids, passing=_passing, find=_find, takes=["filter"])
LISTING = StoreListing(_list, lambda store: len(store.index_to_docstore_id))
