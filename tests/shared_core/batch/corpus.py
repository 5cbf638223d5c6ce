"""A corpus, queries, and the picks that brute force finds for them."""

from __future__ import annotations

import functools
import importlib
import os
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from tests import oracles

N, D, Q, K, FETCH_K = 400, 24, 230, 4, 50


@functools.cache
def corpus() -> NDArray[np.float32]:
    rows = np.random.default_rng(7).standard_normal((N, D)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows.flags.writeable = False
    return rows


@functools.cache
def queries() -> NDArray[np.float32]:
    rows = np.random.default_rng(8).standard_normal((Q, D)).astype(np.float32)
    rows.flags.writeable = False
    return rows


def names() -> list[str]:
    return [f"question {i}" for i in range(Q)]


def table() -> Any:
    return pa.table({"id": names(), "unread": list(range(Q)), "vector": list(queries())})


def write_queries(path: Path, row_group_size: int = 37) -> Path:
    pq.write_table(table(), path, row_group_size=row_group_size)
    return path


def flat_index(path: Path) -> Path:
    index = faiss.IndexFlatIP(D)
    index.add(corpus())
    faiss.write_index(index, str(path))
    return path


def write_index(kind: str, path: Path) -> list[int]:
    """An index of the corpus in ``path`` that searches exhaustively; the label of each row."""
    index = faiss.index_factory(D, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(corpus())
    labels = np.arange(N)
    if kind.startswith("IDMap"):
        # Neither the rows' numbers nor in their order.
        labels = np.random.default_rng(22).permutation(N) * 1_000_003 + 5
        index.add_with_ids(corpus(), labels)
    else:
        index.add(corpus())
    if "HNSW" in kind:
        index.hnsw.efSearch = N
    if "IVF" in kind:
        faiss.extract_index_ivf(index).nprobe = 4
    if "RFlat" in kind:
        index.k_factor = 20
    faiss.write_index(index, str(path))
    return [int(label) for label in labels]


def nearest(query: NDArray[Any]) -> NDArray[np.int64]:
    """The FETCH_K rows of the largest inner products, in float64, from a sort of all."""
    return np.argsort(-(corpus().astype(float) @ query.astype(float)), kind="stable")[:FETCH_K]


def by_brute_force(query: NDArray[Any]) -> tuple[list[int], oracles.Reference]:
    """MMR at λ = 0.5: the ids, and the reference result."""
    return _by_brute_force(query.astype(np.float64).tobytes())


@functools.cache
def _by_brute_force(content: bytes) -> tuple[list[int], oracles.Reference]:
    query = np.frombuffer(content)
    places = nearest(query)
    found = oracles.mmr(query, corpus()[places], K, lambda_mult=0.5)
    return [int(places[i]) for i in found.picks], found


def needs_ray() -> None:
    """Skip without Ray, or fail where SETSELECT_REQUIRE names it."""
    try:
        importlib.import_module("ray")
    except ImportError:
        if "ray" in os.environ.get("SETSELECT_REQUIRE", "").split():
            raise
        pytest.skip('ray is not installed: pip install "setselect[ray]"', allow_module_level=True)
