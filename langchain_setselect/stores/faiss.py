"""The FAISS store of langchain-community."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.faiss import search_with_vectors, vectors_by_label

from .source import Hits, Source, refuse_unknown

# FAISS knows labels, the store which id each stands for; turning that round takes longer than a search, so it is
# kept for as long as the store lives and has as many documents.
_LABELS: WeakKeyDictionary[Any, tuple[int, dict[str, int]]] = WeakKeyDictionary()


def search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any) -> Hits:
    """The index's own top ``fetch_k`` among the documents that pass the filter, and what it stores for them."""
    refuse_unknown("FAISS", unknown, "filter")
    vector = np.asarray(query, dtype=np.float32)
    if store._normalize_L2:
        vector = vector / (np.sqrt(vector.dot(vector)) or 1)
    if filter is None:
        return _documents(store, *search_with_vectors(store.index, vector, fetch_k))
    passes = store._create_filter_func(filter)
    wanted = 4 * fetch_k
    # FAISS knows no metadata: search wider until enough documents pass, or the index is exhausted.
    while True:
        documents, vectors = _documents(
            store, *search_with_vectors(store.index, vector, wanted), lambda d: passes(d.metadata)
        )
        if len(documents) >= fetch_k or wanted >= store.index.ntotal:
            return documents[:fetch_k], vectors[:fetch_k]
        wanted *= 4


def fetch(store: Any, ids: Sequence[str]) -> Mapping[str, ArrayLike]:
    """Vectors by document id."""
    names: dict[int, str] = store.index_to_docstore_id
    number, labels = _LABELS.get(store, (-1, {}))
    stale = any(
        names.get(labels[name]) != name if name in labels else isinstance(store.docstore.search(name), Document)
        for name in ids
    )
    if number != len(names) or stale:
        # A copy: another thread may be adding documents.
        names = names.copy()
        labels = {name: label for label, name in names.items()}
        _LABELS[store] = len(names), labels
    known = [name for name in ids if name in labels]
    return dict(zip(known, vectors_by_label(store.index, [labels[name] for name in known]), strict=True))


def _documents(
    store: Any, labels: Any, vectors: Any, passes: Callable[[Document], bool] | None = None
) -> tuple[list[Document], Any]:
    names = [*map(store.index_to_docstore_id.get, labels.tolist())]
    found = [*map(store.docstore.search, names)]
    # Most often all are there and have their ids.
    sound = passes is None and {*map(type, found)} == {Document}
    if sound and {document.id for document in found}.isdisjoint({None, ""}):
        return found, vectors
    documents: list[Document] = []
    gone: list[int] = []
    kept: list[int] = []
    for row, (name, document) in enumerate(zip(names, found, strict=True)):
        if not isinstance(document, Document):
            gone.append(row)
            document = Document(id=str(name), page_content="")
        elif passes is not None and not passes(document):
            continue
        documents.append(document if document.id else document.model_copy(update={"id": name}))
        kept.append(row)
    if gone:
        lost = set(gone)
        return documents, [None if row in lost else vectors[row] for row in kept]
    # As one array: rows in a list would have to be put together again.
    return documents, vectors if len(kept) == len(labels) else vectors[kept]


SOURCES = {"langchain_community.vectorstores.faiss.FAISS": Source(search, fetch=fetch)}
