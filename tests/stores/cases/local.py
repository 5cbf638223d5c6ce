"""The frameworks' stores in memory, and FAISS with several kinds of index."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.vectorstores import FAISS
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.vector_stores.faiss import FaissMapVectorStore, FaissVectorStore

from tests.stores.harness import DIMENSION, ROWS, LangChainCase, LlamaIndexCase, fill, own_search


def _ivf(metric: int, direct_map: bool = False) -> faiss.Index:
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(DIMENSION), DIMENSION, 4, metric)
    index.train(np.array([row.vector for row in ROWS], dtype=np.float32))
    index.nprobe = 3
    if direct_map:
        index.make_direct_map()
    return index


def _hnsw() -> faiss.Index:
    index = faiss.IndexHNSWFlat(DIMENSION, 16)
    index.hnsw.efSearch = len(ROWS)
    return index


INNER, L2 = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2
INDEXES: dict[str, Callable[[], faiss.Index]] = {
    "flat, L2": lambda: faiss.IndexFlatL2(DIMENSION),
    "IVF, inner product": lambda: _ivf(INNER),
    "IVF with a direct map": lambda: _ivf(L2, direct_map=True),
    "HNSW, L2": _hnsw,
    "half precision": lambda: faiss.IndexScalarQuantizer(DIMENSION, faiss.ScalarQuantizer.QT_fp16, INNER),
}
HALF = 2.0**-11 * 2


@contextmanager
def _in_memory(embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    store = InMemoryVectorStore(embeddings)
    fill(store)
    yield store


@contextmanager
def _faiss(kind: str, embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    store = FAISS(embeddings, INDEXES[kind](), InMemoryDocstore(), {})
    fill(store)
    yield store


def _own_faiss_search(store: VectorStore, vector: list[float], k: int, **search_kwargs: Any) -> list[Document]:
    # The store filters the documents that it has fetched, by default 20.
    return own_search(store, vector, k, fetch_k=len(ROWS), **search_kwargs)


@contextmanager
def _simple(folder: Path) -> Iterator[BasePydanticVectorStore]:
    yield SimpleVectorStore()


@contextmanager
def _llamaindex_faiss(kind: str, folder: Path) -> Iterator[BasePydanticVectorStore]:
    yield FaissVectorStore(INDEXES[kind]())


@contextmanager
def _mapped(make: Callable[[Any], faiss.Index], flat: type[Any], folder: Path) -> Iterator[BasePydanticVectorStore]:
    yield FaissMapVectorStore(make(flat(DIMENSION)))


LANGCHAIN = [
    LangChainCase(
        "in memory",
        _in_memory,
        {"filter": lambda document: document.metadata["colour"] == "red"},
        refused="where",
    ),
    *(
        LangChainCase(
            f"FAISS {kind}",
            partial(_faiss, kind),
            {"filter": {"colour": "red"}},
            own=_own_faiss_search,
            by_id=not kind.startswith("IVF, "),
            precision=HALF if kind == "half precision" else 0,
            refused="where",
        )
        for kind in INDEXES
    ),
]
# LlamaIndex's FAISS stores have no filters. They look vectors up by label; an IVF index needs a direct map for that.
LLAMAINDEX = [
    LlamaIndexCase("simple", _simple),
    *(
        LlamaIndexCase(
            f"FAISS {kind}",
            partial(_llamaindex_faiss, kind),
            filters=False,
            precision=HALF if kind == "half precision" else 0,
        )
        for kind in INDEXES
        if not kind.startswith("IVF, ")
    ),
    *(
        LlamaIndexCase(f"FAISS {make.__name__}, {flat.__name__}", partial(_mapped, make, flat), filters=False)
        for make, flat in ((faiss.IndexIDMap, faiss.IndexFlatIP), (faiss.IndexIDMap2, faiss.IndexFlatL2))
    ),
]
