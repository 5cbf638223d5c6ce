"""The speed benchmark: every contender selects what it should."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.racing import contenders
from benchmarks.racing.races import LAMBDA, Batch, Point, batch_data, data
from shared_core import select

SMALL = Point(12, 8, 4)


def rows_of(result: Any) -> list[int]:
    """The picks, from any form in which a contender returns them."""
    if isinstance(result, tuple):
        result = result[1]
    rows: Any = result if isinstance(result, list) else result.indices
    return [int(getattr(row, "content", row)) for row in rows]


def test_every_contender_selects_what_it_should() -> None:
    picks = {name: rows_of(run()) for name, run in contenders.contenders(SMALL, data(SMALL)).items()}
    expected = {*contenders.OURS, *contenders.PEERS} - (set() if contenders.has_haystack() else {contenders.HAYSTACK})
    assert set(picks) == expected
    assert all(len(set(rows)) == SMALL.k for rows in picks.values())
    # LlamaIndex's MMR is left out: it compares with the last pick only.
    same = expected & {contenders.MMR_NUMPY, contenders.LANGCHAIN, contenders.LANGCHAIN_LISTS, contenders.HAYSTACK}
    assert {name: picks[name] for name in same} == dict.fromkeys(same, picks[contenders.MMR])


def test_every_query_of_a_batch_has_its_own_candidates() -> None:
    batch = Batch(3, 12, 8, 4)
    queries, vectors = batch_data(batch)
    assert (queries.shape, vectors.shape) == ((3, 8), (3, 12, 8))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=2), 1, rtol=1e-5)
    runs = contenders.batch_contenders(batch)
    selectors = [contenders.MMR, contenders.VRSD, contenders.REFINED, contenders.NDPP_PLAIN]
    assert set(runs) == {*selectors, *(contenders.NUMPY_ALONE[name] for name in selectors)}
    answers: dict[str, Any] = {name: run() for name, run in runs.items()}
    for name in selectors:
        in_numpy = contenders.NUMPY_ALONE[name]
        assert answers[name].indices.shape == (3, 4)
        np.testing.assert_array_equal(answers[name].indices, answers[in_numpy].indices)
    single = select(queries[1], vectors[1], batch.k, "mmr", lambda_mult=LAMBDA).indices
    np.testing.assert_array_equal(answers[contenders.MMR].indices[1], single)
