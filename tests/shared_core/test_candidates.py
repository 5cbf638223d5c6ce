from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import Candidates, InvalidInputError, SetSelectError
from tests import oracles
from tests.shared_core.cases import UNUSABLE, gaussian, random_cases

QUERY, VECTORS = gaussian(1, 11, 5)


def with_row(row: int, value: float) -> NDArray[np.float64]:
    vectors = VECTORS.copy()
    vectors[row, 2] = value
    return vectors


def test_relevance_is_the_cosine() -> None:
    for case in random_cases(10, 200):
        expected = oracles.cosines(case.query, case.vectors)
        actual = case.candidates.relevance
        atol = 1e-12 if case.vectors.dtype == np.float64 else 5e-7
        np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=str(case))


def test_rows_have_length_one_or_zero() -> None:
    vectors = VECTORS.copy()
    vectors[3] = 0
    candidates = Candidates(QUERY, vectors)
    np.testing.assert_allclose(candidates.vectors, oracles.unit_rows(vectors), rtol=0, atol=1e-15)
    assert np.all(candidates.vectors[3] == 0)
    assert candidates.relevance[3] == 0


def test_length_and_shapes() -> None:
    candidates = Candidates(QUERY, VECTORS)
    assert len(candidates) == 11
    assert candidates.query.shape == (5,)
    assert candidates.vectors.shape == (11, 5)
    assert candidates.relevance.shape == (11,)
    assert candidates.quality is None
    assert candidates.ids is None
    assert candidates.costs is None


def test_companions_are_kept() -> None:
    candidates = Candidates(QUERY, VECTORS, quality=range(11), ids=list("abcdefghijk"), costs=[1] * 11)
    assert candidates.ids == tuple("abcdefghijk")
    assert candidates.quality is not None
    assert candidates.costs is not None
    assert candidates.quality.dtype == candidates.costs.dtype == np.float64
    assert candidates.quality.tolist() == [float(i) for i in range(11)]
    assert candidates.costs.tolist() == [1.0] * 11


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "float32"),
        ("uint8", "float32"),
        ("int16", "float32"),
        ("int64", "float64"),
    ],
)
def test_dtype(given: str, kept: str) -> None:
    vectors = np.array([[1, 2, 3], [4, 5, 6]], dtype=given)
    candidates = Candidates([1.0, 0.0, 1.0], vectors)
    assert candidates.vectors.dtype == np.dtype(kept)
    assert candidates.query.dtype == np.dtype(kept)
    np.testing.assert_allclose(candidates.relevance, oracles.cosines([1, 0, 1], vectors), rtol=1e-6)


def test_lists_of_floats_are_float64() -> None:
    candidates = Candidates(QUERY.tolist(), VECTORS.tolist())
    assert candidates.vectors.dtype == np.float64
    assert np.array_equal(candidates.vectors, Candidates(QUERY, VECTORS).vectors)


@pytest.mark.parametrize("query_dtype", ["float16", "float32", "float64"])
def test_query_follows_the_vectors(query_dtype: str) -> None:
    for dtype in (np.float32, np.float64):
        assert Candidates(QUERY.astype(query_dtype), VECTORS.astype(dtype)).query.dtype == dtype


@pytest.mark.parametrize("name", ["query", "vectors", "quality", "costs", "relevance"])
def test_arrays_are_read_only(name: str) -> None:
    candidates = Candidates(QUERY, VECTORS, quality=np.ones(11), costs=np.ones(11))
    array = getattr(candidates, name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_callers_arrays_stay_theirs(dtype: Any) -> None:
    # Unit rows and a unit query are where a copy could most easily be saved by mistake.
    query, vectors = np.array([1, 0], dtype=dtype), np.array([[1, 0], [0, 1]], dtype=dtype)
    quality, costs = np.ones(2), np.ones(2)
    given = (query, vectors, quality, costs)
    before = [array.tobytes() for array in given]
    candidates = Candidates(query, vectors, quality=quality, costs=costs)
    assert [array.tobytes() for array in given] == before
    assert all(array.flags.writeable for array in given)
    for array in given:
        array[:] = 7
    assert candidates.vectors.tolist() == [[1, 0], [0, 1]]
    assert candidates.relevance.tolist() == [1, 0]
    assert candidates.quality is not None
    assert candidates.quality.tolist() == [1, 1]
    assert candidates.costs is not None
    assert candidates.costs.tolist() == [1, 1]


def test_with_query() -> None:
    other = np.roll(QUERY, 1)
    first = Candidates(QUERY, VECTORS, quality=range(11), ids=range(11), costs=range(11))
    second = first.with_query(other)
    fresh = Candidates(other, VECTORS)
    assert np.array_equal(second.vectors, first.vectors)
    np.testing.assert_allclose(second.relevance, fresh.relevance, rtol=0, atol=1e-15)
    assert second.ids == first.ids
    assert second.quality is not None
    assert first.quality is not None
    assert np.array_equal(second.quality, first.quality)
    assert second.costs is not None
    assert first.costs is not None
    assert np.array_equal(second.costs, first.costs)
    np.testing.assert_allclose(first.relevance, Candidates(QUERY, VECTORS).relevance, rtol=0, atol=0)


@pytest.mark.parametrize("query", [np.zeros(5), np.ones(4), np.full(5, np.nan), np.ones((1, 5))])
def test_with_query_goes_through_the_same_gate(query: NDArray[np.float64]) -> None:
    with pytest.raises(InvalidInputError):
        Candidates(QUERY, VECTORS).with_query(query)


@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        (np.float32, 1e-30),
        (np.float32, 1e-37),
        (np.float32, 1e30),
        (np.float32, 1e38),
        (np.float64, 1e-30),
        (np.float64, 1e-200),
        (np.float64, 1e-305),
        (np.float64, 1e30),
        (np.float64, 1e200),
        (np.float64, 1e307),
    ],
)
def test_rows_of_any_length_are_normalised(dtype: Any, length: float) -> None:
    directions = oracles.unit_rows(VECTORS)
    vectors = directions.astype(dtype)
    vectors[4] = (directions[4] * length).astype(dtype)
    tolerance = 5e-7 if dtype == np.float32 else 1e-12
    candidates = Candidates(QUERY.astype(dtype), vectors)
    np.testing.assert_allclose(candidates.vectors, directions, rtol=0, atol=tolerance)
    np.testing.assert_allclose(candidates.relevance, oracles.cosines(QUERY, VECTORS), rtol=0, atol=tolerance)
    query = (oracles.unit(QUERY) * length).astype(dtype)
    np.testing.assert_allclose(
        Candidates(query, directions.astype(dtype)).relevance,
        oracles.cosines(QUERY, VECTORS),
        rtol=0,
        atol=tolerance,
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 7, 10])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_row_that_is_not_finite_is_named(value: float, row: int, dtype: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"\b{row}\b"):
        Candidates(QUERY, with_row(row, value).astype(dtype))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["quality", "costs"])
def test_a_companion_that_is_not_finite_is_rejected(value: float, name: str) -> None:
    column = np.ones(11)
    column[7] = value
    with pytest.raises(InvalidInputError, match=name[:4]):
        Candidates(QUERY, VECTORS, **{name: column})


def test_a_negative_cost_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="cost"):
        Candidates(QUERY, VECTORS, costs=[1.0] * 10 + [-1.0])


@pytest.mark.parametrize("name", ["quality", "ids", "costs"])
@pytest.mark.parametrize("length", [0, 10, 12])
def test_a_companion_of_another_length_names_both(name: str, length: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"(?s)(\b{length}\b.*\b11\b|\b11\b.*\b{length}\b)"):
        Candidates(QUERY, VECTORS, **{name: list(range(length))})


@pytest.mark.parametrize("name", ["quality", "costs"])
def test_a_companion_with_two_axes_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInputError):
        Candidates(QUERY, VECTORS, **{name: np.ones((11, 1))})


def test_ids_that_cannot_be_hashed_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="id"):
        Candidates(QUERY, VECTORS, ids=[[i] for i in range(11)])  # type: ignore[misc]


@pytest.mark.parametrize(
    ("query", "vectors", "numbers"),
    [
        (np.ones(4), VECTORS, ("4", "5")),
        (np.ones(6), VECTORS, ("6", "5")),
        (np.ones((1, 5)), VECTORS, ("1, 5", "11, 5")),
        (QUERY, VECTORS[0], ("5",)),
        (QUERY, VECTORS[None], ("1, 11, 5",)),
        (QUERY, np.ones((0, 5)), ("0",)),
        (np.float64(1.0), VECTORS, ("11, 5",)),
    ],
)
def test_wrong_shapes_are_printed(query: Any, vectors: Any, numbers: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Candidates(query, vectors)
    assert all(number in str(caught.value) for number in numbers), str(caught.value)


@pytest.mark.parametrize(
    "query", [np.zeros(5), -np.zeros(5), [np.nan, 1, 1, 1, 1], [np.inf, 1, 1, 1, 1], [1, 1, 1, 1, -np.inf]]
)
def test_a_query_without_direction_is_rejected(query: Any) -> None:
    with pytest.raises(InvalidInputError, match="query"):
        Candidates(query, VECTORS)


@pytest.mark.parametrize(
    ("query", "vectors"),
    [
        (["a"] * 5, VECTORS),
        (QUERY, [["a"] * 5] * 2),
        (QUERY, VECTORS.astype(complex)),
        (QUERY.astype(complex), VECTORS),
        (QUERY, [[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0]]),
        (QUERY, [[None] * 5]),
        (None, VECTORS),
        (QUERY, None),
    ],
)
def test_what_is_not_numbers_is_rejected(query: Any, vectors: Any) -> None:
    with pytest.raises(InvalidInputError):
        Candidates(query, vectors)


def test_errors_are_value_errors_of_the_family() -> None:
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(InvalidInputError, SetSelectError)


def test_attributes_cannot_be_replaced() -> None:
    candidates = Candidates(QUERY, VECTORS)
    with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
        candidates.vectors = VECTORS  # type: ignore[misc]


@pytest.mark.parametrize("values", list(UNUSABLE.values()), ids=list(UNUSABLE))
def test_what_cannot_become_an_array_is_refused_by_name(values: Any) -> None:
    words = "masked values" if isinstance(values, np.ma.MaskedArray) else "cannot be made into an array"
    query, vectors = [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]
    for make in (Candidates, Candidates.borrow):
        with pytest.raises(InvalidInputError, match=f"^vectors .*{words}"):
            make(query, values)
        with pytest.raises(InvalidInputError, match=f"^query .*{words}"):
            make(values, vectors)
        # The message about the vectors' shape would print the query's.
        with pytest.raises(InvalidInputError, match=f"^query .*{words}"):
            make(values, [1.0, 2.0])
        for name in ("quality", "costs"):
            with pytest.raises(InvalidInputError, match=f"^{name} .*{words}"):
                make(query, vectors, **{name: values})
    with pytest.raises(InvalidInputError, match=words):
        Candidates(query, vectors).with_query(values)


@pytest.mark.parametrize("name", ["ids", "sources"])
def test_one_number_is_no_collection_of_names(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} must be a collection.*got 5"):
        Candidates(QUERY, VECTORS, **{name: 5})
