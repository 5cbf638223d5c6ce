"""The vector reader for the FAISS store of langchain-community."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.documents import Document
from numpy.typing import ArrayLike

from shared_core.stores.faiss import search_with_vectors, vectors_by_label

from .reader import Hits, VectorReader, refuse_unknown

# FAISS knows labels, and the store maps each label to an id. Inverting that map takes longer than a search, so the
# inverted map is kept while the store lives, with the number of its documents.
_LABELS: WeakKeyDictionary[Any, tuple[int, dict[str, int]]] = WeakKeyDictionary()


def _search(store: Any, query: list[float], fetch_k: int, *, filter: Any = None, **unknown: Any) -> Hits:
    """The index's own top ``fetch_k`` among the documents that pass the filter, with their vectors."""
    refuse_unknown("FAISS", unknown, "filter")
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
    names: dict[int, str] = store.index_to_docstore_id
    number, labels = _LABELS.get(store, (-1, {}))
    stale = any(
        names.get(labels[name]) != name if name in labels else isinstance(store.docstore.search(name), Document)
        for name in ids
    )
    if number != len(names) or stale:
        # A copy: another thread may add documents.
        names = names.copy()
        labels = {name: label for label, name in names.items()}
        _LABELS[store] = len(names), labels
    known = [name for name in ids if name in labels]
    return dict(zip(known, vectors_by_label(store.index, [labels[name] for name in known]), strict=True))


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


READER = VectorReader(_search, fetch=_fetch)
