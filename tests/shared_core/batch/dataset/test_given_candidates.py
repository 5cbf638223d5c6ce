"""Candidates and their relevance from columns of the queries: the hits of a hybrid search, the scores of a reranker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_core import (
    MMR,
    NDPP,
    VRSD,
    InvalidParameterError,
    Selector,
    TopK,
    select,
)
from shared_core.batch.dataset import select_dataset, select_table
from tests import oracles
from tests.shared_core.batch.dataset.corpus import D, N, corpus, flat_index, queries, write_index

GIVEN = {"candidates_column": "hits", "relevance_column": "scores"}
COUNT = 40


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return flat_index(tmp_path / "index.faiss")


def hits() -> list[list[int]]:
    """Rows of the corpus in any order: for some queries fewer than k, for many as many as for others."""
    rng = np.random.default_rng(20)
    return [rng.permutation(N)[: (20, 20, 7, 2, 60)[i % 5]].tolist() for i in range(COUNT)]


def scores() -> list[list[float]]:
    """Relevance of another size for each query, with equal values and with negative ones."""
    rng = np.random.default_rng(21)
    return [(np.round(rng.normal(size=len(own)), 1) * 10.0 ** (i % 4 - 1)).tolist() for i, own in enumerate(hits())]


def given(ids: Any = None, **columns: Any) -> Any:
    rows: dict[str, Any] = {"id": range(COUNT), "vector": list(queries()[:COUNT])}
    return pa.table(rows | {"hits": hits() if ids is None else ids, "scores": scores()} | columns)


def expected_ids(selector: Any, k: int = 4, **more: Any) -> list[list[int]]:
    found = []
    for query, own, worth in zip(queries(), hits(), scores(), strict=False):
        one = select(query, corpus()[own], min(k, len(own)), selector, relevance=worth, **more)
        found.append([own[i] for i in one.indices])
    return found


# --- what is selected -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "scale"),
    [(TopK(), "minmax"), (MMR(0.3), "rank"), (NDPP(), "sigmoid"), (NDPP(relevance_mapping="exponential"), None)],
    ids=repr,
)
def test_a_row_has_the_selection_of_a_single_call(selector: Selector, scale: Any, index: Path) -> None:
    found = select_table(given(), index, 4, selector=selector, relevance_scale=scale, **GIVEN).to_pylist()
    for row, query, own, worth in zip(found, queries(), hits(), scores(), strict=False):
        k = min(4, len(own))
        one = select(query, corpus()[own], k, selector, relevance=worth, relevance_scale=scale)
        assert (row["ids"], row["error"]) == ([own[i] for i in one.indices], None)
        np.testing.assert_allclose(row["gains"], one.gains, rtol=1e-5, atol=1e-6)
        assert row["relevance"] == [worth[i] for i in one.indices], "as it was given, not as it was scaled"


def test_all_candidates_count_whatever_fetch_k_is(index: Path) -> None:
    settings: dict[str, Any] = {"selector": "mmr", **GIVEN}
    found = select_table(given(), index, 30, fetch_k=1, **settings)
    assert [len(ids) for ids in found["ids"].to_pylist()] == [min(30, len(own)) for own in hits()]
    assert found["ids"].to_pylist() == expected_ids("mmr", 30)
    # Without a column of relevance the cosine counts.
    found = select_table(given(), index, 4, selector=VRSD(refine=True), candidates_column="hits").to_pylist()
    for row, query, own in zip(found, queries(), hits(), strict=False):
        one = select(query, corpus()[own], min(4, len(own)), VRSD(refine=True))
        assert row["ids"] == [own[i] for i in one.indices]
        np.testing.assert_allclose(row["relevance"], one.relevance, atol=1e-6)


# --- where the vectors come from ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["HNSW8,Flat", "IVF4,Flat", "IVF4,PQ12x4fs,RFlat", "IDMap,Flat", "IDMap,IVF4,Flat"])
def test_every_kind_of_index_is_read_by_label(kind: str, index: Path) -> None:
    labels = write_index(kind, index)
    table = given([[labels[i] for i in own] for own in hits()])
    found = select_table(table, index, 4, selector="mmr", **GIVEN)
    assert found["error"].null_count == COUNT
    assert found["ids"].to_pylist() == [[labels[i] for i in own] for own in expected_ids("mmr")]


@pytest.mark.parametrize("kind", ["IVF4,Flat", "IDMap2,Flat"])
def test_labels_may_have_gaps(kind: str, index: Path) -> None:
    made = faiss.index_factory(D, kind, faiss.METRIC_INNER_PRODUCT)
    made.train(corpus())
    own = np.random.default_rng(22).permutation(N) * 1_000_003 + 5
    if kind == "IDMap2,Flat":
        # The later vector of a label counts. FAISS has no such rule for an IVF index.
        own[0] = own[1]
    made.add_with_ids(corpus(), own)
    made.remove_ids(own[2:3])
    faiss.write_index(made, str(index))
    query = queries()[0]
    wanted = [int(own[1]), int(own[5])]
    lists = [wanted, [int(own[2])], [3]]
    table = pa.table({"id": range(3), "vector": [query] * 3, "hits": lists})
    first, removed, unknown = select_table(table, index, 2, selector="similarity", candidates_column="hits").to_pylist()
    by_label = dict(zip(first["ids"], first["relevance"], strict=True))
    cosines = oracles.cosines(query, corpus()[[1, 5]])
    np.testing.assert_allclose([by_label[i] for i in wanted], cosines, atol=1e-5)
    assert removed["error"] == f"there is no vector of candidate {own[2]}"
    assert unknown["error"] == "there is no vector of candidate 3"


def test_a_function_gets_each_id_once_and_returns_the_vectors_that_it_knows() -> None:
    calls: list[list[str]] = []

    def vectors_by_id(ids: list[str]) -> dict[str, Any]:
        calls.append(ids)
        return {i: corpus()[int(i[4:])] for i in ids if i != "doc 399"}

    named = [[f"doc {i}" for i in own] for own in hits()]
    found = select_table(given(named), vectors_by_id, 4, selector="mmr", **GIVEN)
    assert len(calls) == 1
    assert sorted(calls[0]) == sorted({i for own in named for i in own})
    for row, own, expected in zip(found.to_pylist(), named, expected_ids("mmr"), strict=True):
        if "doc 399" in own:
            assert (row["ids"], row["error"]) == (None, "there is no vector of candidate 'doc 399'")
        else:
            assert row["ids"] == [f"doc {i}" for i in expected]
    assert found["error"].null_count < COUNT
    # Numbers are passed on as numbers, and are written as text.
    numbered = select_table(given(), lambda ids: {i: corpus()[i] for i in ids}, 4, selector="mmr", **GIVEN)
    assert numbered["ids"].to_pylist() == [[str(i) for i in own] for own in expected_ids("mmr")]


def test_vectors_of_any_kind_are_used_or_are_an_error_of_their_row() -> None:
    rows = [corpus()[0], corpus()[1].astype(np.float64), corpus()[2].tolist(), corpus()[3][:5], np.full(D, np.nan)]

    def vectors_by_id(ids: list[int]) -> dict[int, Any]:
        return dict(enumerate(rows))

    table = pa.table({
        "id": range(3), "vector": [queries()[0]] * 3, "hits": [[0, 1, 2], [0, 3], [1, 4]],
    })  # fmt: skip
    good, ragged, nan = select_table(table, vectors_by_id, 3, candidates_column="hits").to_pylist()
    assert sorted(good["ids"]) == ["0", "1", "2"]
    assert "vectors" in ragged["error"]
    assert "vectors: row 1 holds NaN or inf" in nan["error"]


# --- rows with errors -----------------------------------------------------------------------------


def test_a_bad_row_has_an_error_and_its_neighbours_have_selections(index: Path) -> None:
    nan, inf = float("nan"), float("inf")
    cases: list[tuple[Any, Any, str | None]] = [
        ([1, 2, 3], [0.1, 0.2, 0.3], None),
        (None, [0.1], "the list of candidates is null"),
        ([], [], "the list of candidates is empty"),
        ([1, None, 3], [0.1, 0.2, 0.3], "the list of candidates contains a null at position 1"),
        ([1, 2, 1], [0.1, 0.2, 0.3], "candidate 1 is in the list twice"),
        ([1, 2, N], [0.1, 0.2, 0.3], f"there is no vector of candidate {N}"),
        ([1, -1], [0.1, 0.2], "there is no vector of candidate -1"),
        ([1, 2, 3], None, "the list of relevance is null"),
        ([1, 2, 3], [0.1, 0.2], "the list of relevance has length 2, the list of candidates 3"),
        ([1, 2], [0.1, 0.2, 0.3], "the list of relevance has length 3, the list of candidates 2"),
        ([1, 2, 3], [0.1, nan, 0.3], "the relevance of candidate 2 is nan"),
        ([1, 2, 3], [0.1, 0.2, -inf], "the relevance of candidate 3 is -inf"),
        ([1, 2, 3], [None, 0.2, 0.3], "the relevance of candidate 1 is null"),
        ([3, 2, 1], [0.3, 0.2, 0.1], None),
    ]
    ids, numbers, errors = zip(*cases, strict=True)
    table = pa.table({"id": range(len(cases)), "vector": [queries()[0]] * len(cases), "hits": ids, "scores": numbers})
    found = select_table(table, index, 1, selector="similarity", **GIVEN).to_pylist()
    assert [row["error"] for row in found] == list(errors)
    for row in found:
        assert (row["ids"], row["gains"], row["relevance"]) == (
            (None, None, None) if row["error"] else ([3], [1.0], [0.3])
        )
    # Rows with unusable vectors stand between the others.
    vectors: list[Any] = [None, *table["vector"].to_pylist()[1:]]
    vectors[5] = [nan] * D
    again = select_table(table.set_column(1, "vector", [vectors]), index, 1, selector="similarity", **GIVEN).to_pylist()
    assert [row["ids"] for row in again] == [None, *[row["ids"] for row in found[1:]]]
    assert "vector" in again[0]["error"]
    assert [row["error"] for row in again[6:]] == list(errors[6:])


# --- runs that cannot start -----------------------------------------------------------------------


def test_the_columns_and_the_scale_are_settings_of_a_run(index: Path, tmp_path: Path) -> None:
    files, out = tmp_path / "queries.parquet", tmp_path / "sets"
    pq.write_table(given(other=hits()), files, row_group_size=7)
    settings: dict[str, Any] = {"k": 4, "selector": "mmr", "block_rows": 11, **GIVEN}
    done = select_dataset(files, index, out=out, **settings)
    assert (done.rows, done.errors, done.parts) == (COUNT, 0, 4)
    assert pq.read_table(out)["ids"].to_pylist() == expected_ids("mmr")
    written = json.loads((out / "_settings.json").read_text())
    named = ("candidates_column", "relevance_column", "relevance_scale")
    assert [written[name] for name in named] == ["hits", "scores", "minmax"]
    # fetch_k has no effect on candidates that are given.
    assert select_dataset(files, index, out=out, fetch_k=7, **settings).resumed == 4
    for change in ({"candidates_column": "other"}, {"relevance_scale": None}, {"relevance_column": None}):
        [name] = change
        with pytest.raises(InvalidParameterError, match=f"{name}: .* there, .* now"):
            select_dataset(files, index, out=out, **{**settings, **change})
