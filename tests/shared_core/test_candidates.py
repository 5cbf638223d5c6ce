"""The checks of the input, and what Candidates keep of it."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_core import Candidates, InvalidInputError, SetSelectError
from shared_core.candidates import CandidateBlock, as_unit_rows
from tests import oracles
from tests.shared_core.cases import UNUSABLE, gaussian, random_cases

QUERY, VECTORS = gaussian(1, 11, 5)


def with_row(row: int, value: float) -> NDArray[np.float64]:
    vectors = VECTORS.copy()
    vectors[row, 2] = value
    return vectors


def test_relevance_is_the_cosine() -> None:
    for case in random_cases(10, 120):
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


def test_columns_and_ids_are_kept() -> None:
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
def test_the_query_takes_the_dtype_of_the_vectors(query_dtype: str) -> None:
    for dtype in (np.float32, np.float64):
        assert Candidates(QUERY.astype(query_dtype), VECTORS.astype(dtype)).query.dtype == dtype


@pytest.mark.parametrize("name", ["query", "vectors", "quality", "costs", "relevance"])
def test_arrays_are_read_only(name: str) -> None:
    candidates = Candidates(QUERY, VECTORS, quality=np.ones(11), costs=np.ones(11))
    array = getattr(candidates, name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_candidates_are_a_copy_by_default(dtype: Any) -> None:
    # Unit rows and a unit query need no computation, so a copy of them could be forgotten.
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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kind", ["unit", "any length", "zero", "tiny"])
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "not copied"])
def test_the_callers_arrays_are_never_changed(copy: bool, kind: str, dtype: Any) -> None:
    vectors = {
        "unit": np.eye(5),
        "any length": 7 * VECTORS,
        "zero": np.vstack([VECTORS, np.zeros(5)]),
        "tiny": np.vstack([VECTORS, 1e-30 * VECTORS]),
    }[kind].astype(dtype)
    given = QUERY.astype(dtype), vectors, np.ones(len(vectors)), np.ones(len(vectors))
    if not given[0].any():
        given[0][0] = 1
    before = [array.tobytes() for array in given]
    candidates = Candidates(given[0], given[1], quality=given[2], costs=given[3], copy=copy)
    candidates.with_query(given[0])
    candidates.take([0, 2])
    assert [array.tobytes() for array in given] == before
    assert all(array.flags.writeable for array in given)
    assert not candidates.vectors.flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_copy_only_unit_rows_share_memory(dtype: Any) -> None:
    unit = oracles.unit_rows(VECTORS).astype(dtype)
    assert np.shares_memory(Candidates(QUERY, unit, copy=False).vectors, unit)
    for vectors in (2 * unit, unit[:, ::-1], np.asfortranarray(unit), unit.astype(np.float16)):
        candidates = Candidates(QUERY, vectors, copy=False)
        assert not np.shares_memory(candidates.vectors, vectors)
        assert np.array_equal(candidates.vectors, Candidates(QUERY, vectors).vectors)
    assert not np.shares_memory(Candidates(QUERY, unit).vectors, unit)


def test_take_keeps_the_columns_of_the_rows() -> None:
    candidates = Candidates(QUERY, VECTORS, quality=range(11), ids=range(11), costs=range(11), sources="abcdefghijk")
    for rows in ([7, 0, 3], np.array([7, 0, 3]), (7, 0, 3)):
        part = candidates.take(rows)
        assert np.array_equal(part.vectors, candidates.vectors[[7, 0, 3]])
        assert part.relevance.tolist() == candidates.relevance[[7, 0, 3]].tolist()
        assert part.ids == (7, 0, 3)
        assert part.sources == ("h", "a", "d")
        assert part.quality is not None
        assert part.costs is not None
        assert part.quality.tolist() == part.costs.tolist() == [7.0, 0.0, 3.0]
        assert not part.vectors.flags.writeable


def test_other_vectors_must_be_as_many() -> None:
    candidates = Candidates(QUERY, VECTORS, ids=list("abcdefghijk"))
    assert candidates.with_vectors(QUERY, -VECTORS).ids == candidates.ids
    with pytest.raises(InvalidInputError, match="must have 11 rows, one for each candidate, got 10"):
        candidates.with_vectors(QUERY, VECTORS[:10])


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
def test_with_query_validates_the_query(query: NDArray[np.float64]) -> None:
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths_at_the_ends_of_the_range_give_finite_unit_rows(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    # The largest and the smallest length whose square the dtype can hold.
    for length in (float(np.finfo(dtype).max) ** 0.5, float(np.finfo(dtype).tiny) ** 0.5):
        for _ in range(50):
            direction = oracles.unit(rng.normal(size=48))
            row = (direction * length * (1 + rng.uniform(-3e-7, 3e-7))).astype(dtype)
            vectors = np.vstack([[row] * 4, np.ones((1, 48))]).astype(dtype)
            expected = oracles.unit_rows(vectors)
            candidates = Candidates(row, vectors)
            block = CandidateBlock.validate(row[None], as_unit_rows(vectors[None]))
            for rows, relevance in (
                (candidates.vectors, candidates.relevance),
                (block.vectors[0], block.relevance[0]),
            ):
                np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)
                np.testing.assert_allclose(relevance, expected @ expected[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 7, 10])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_row_that_is_not_finite_is_named(value: float, row: int, dtype: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"\b{row}\b"):
        Candidates(QUERY, with_row(row, value).astype(dtype))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["quality", "costs"])
def test_a_column_that_is_not_finite_is_rejected(value: float, name: str) -> None:
    column = np.ones(11)
    column[7] = value
    with pytest.raises(InvalidInputError, match=name[:4]):
        Candidates(QUERY, VECTORS, **{name: column})


def test_a_negative_cost_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="cost"):
        Candidates(QUERY, VECTORS, costs=[1.0] * 10 + [-1.0])


@pytest.mark.parametrize("name", ["quality", "ids", "costs"])
@pytest.mark.parametrize("length", [0, 10, 12])
def test_a_column_of_another_length_is_rejected_with_both_lengths(name: str, length: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"(?s)(\b{length}\b.*\b11\b|\b11\b.*\b{length}\b)"):
        Candidates(QUERY, VECTORS, **{name: list(range(length))})


@pytest.mark.parametrize("name", ["quality", "costs"])
def test_a_column_with_two_axes_is_rejected(name: str) -> None:
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
def test_values_that_are_not_numbers_are_rejected(query: Any, vectors: Any) -> None:
    with pytest.raises(InvalidInputError):
        Candidates(query, vectors)


def test_errors_are_value_errors_and_set_select_errors() -> None:
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(InvalidInputError, SetSelectError)


def test_attributes_cannot_be_replaced() -> None:
    candidates = Candidates(QUERY, VECTORS)
    with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
        candidates.vectors = VECTORS  # type: ignore[misc]


@pytest.mark.parametrize("values", list(UNUSABLE.values()), ids=list(UNUSABLE))
def test_an_argument_that_cannot_become_an_array_is_named(values: Any) -> None:
    words = "masked values" if isinstance(values, np.ma.MaskedArray) else "cannot be made into an array"
    query, vectors = [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(InvalidInputError, match=f"^vectors .*{words}"):
        Candidates(query, values)
    with pytest.raises(InvalidInputError, match=f"^query .*{words}"):
        Candidates(values, vectors)
    # The message about the shape of the vectors prints the shape of the query.
    with pytest.raises(InvalidInputError, match=f"^query .*{words}"):
        Candidates(values, [1.0, 2.0])
    for name in ("relevance", "quality", "costs"):
        with pytest.raises(InvalidInputError, match=f"^{name} .*{words}"):
            Candidates(query, vectors, **{name: values})
    with pytest.raises(InvalidInputError, match=words):
        Candidates(query, vectors).with_query(values)


@pytest.mark.parametrize("name", ["ids", "sources"])
def test_one_number_in_place_of_ids_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} must be a collection.*got 5"):
        Candidates(QUERY, VECTORS, **{name: 5})


# --- a given relevance ----------------------------------------------------------------------------

GIVEN = np.linspace(-3, 8, 11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_given_relevance_takes_the_place_of_the_cosines(dtype: Any) -> None:
    scores = GIVEN.copy()
    candidates = Candidates(QUERY, VECTORS.astype(dtype), relevance=scores)
    assert candidates.relevance_given
    assert candidates.relevance.dtype == np.float64
    assert candidates.relevance.tolist() == GIVEN.tolist()
    scores[0] = 99
    assert candidates.relevance[0] == -3
    assert scores.flags.writeable
    assert not candidates.relevance.flags.writeable
    assert repr(candidates) == f"Candidates(n=11, d=5, {np.dtype(dtype)}, relevance)"
    assert not Candidates(QUERY, VECTORS).relevance_given


def test_a_given_relevance_stays_with_its_rows() -> None:
    candidates = Candidates(QUERY, VECTORS, relevance=GIVEN)
    for other, expected in (
        (candidates.take([7, 2]), GIVEN[[7, 2]]),
        (candidates.with_query(-QUERY), GIVEN),
        (candidates.with_vectors(QUERY[:3], VECTORS[:, :3]), GIVEN),
        (candidates.with_query(-QUERY, GIVEN[::-1]), GIVEN[::-1]),
        (Candidates(QUERY, VECTORS).with_query(-QUERY, GIVEN), GIVEN),
        (pickle.loads(pickle.dumps(candidates)), GIVEN),
    ):
        assert other.relevance_given
        assert other.relevance.tolist() == expected.tolist()
        assert not other.relevance.flags.writeable
    plain = Candidates(QUERY, VECTORS).with_query(-QUERY)
    assert not plain.relevance_given
    np.testing.assert_allclose(plain.relevance, oracles.cosines(-QUERY, VECTORS), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("relevance", "says"),
    [
        (np.r_[GIVEN[:4], np.nan, GIVEN[5:]], "^relevance: row 4 is nan; every value must be finite"),
        (GIVEN[:10], r"^relevance must have shape \(11,\), one for each candidate, got \(10,\)"),
        (GIVEN[:, None], r"^relevance must have shape \(11,\), one for each candidate, got \(11, 1\)"),
        (0.5, r"^relevance must have shape \(11,\), one for each candidate, got \(\)"),
    ],
)
def test_relevance_that_does_not_fit_the_candidates_is_rejected(relevance: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Candidates(QUERY, VECTORS, relevance=relevance)
    with pytest.raises(InvalidInputError, match=says):
        Candidates(QUERY, VECTORS).with_query(QUERY, relevance)


# --- blocks of queries ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
@pytest.mark.parametrize("shared", [True, False], ids=["shared candidates", "own candidates"])
def test_a_block_holds_what_candidates_of_each_query_hold(shared: bool, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    queries = 10 * rng.normal(size=(4, 7))
    vectors = (100 * rng.normal(size=(1 if shared else 4, 9, 7))).astype(dtype)
    vectors[0, 3] = 0
    quality = rng.normal(size=(len(vectors), 9))
    block = CandidateBlock.validate(queries, as_unit_rows(vectors), quality)
    atol = 1e-12 if block.vectors.dtype == np.float64 else 1e-6
    for i, query in enumerate(queries):
        own = 0 if shared else i
        one = Candidates(query, vectors[own])
        assert block.vectors.dtype == block.queries.dtype == block.relevance.dtype == one.dtype
        np.testing.assert_allclose(block.vectors[own], one.vectors, rtol=0, atol=atol)
        np.testing.assert_allclose(block.queries[i], one.query, rtol=0, atol=atol)
        np.testing.assert_allclose(block.relevance[i], one.relevance, rtol=0, atol=atol)
    assert block.quality is not None
    assert np.array_equal(block.quality, quality)


ONES = np.ones((2, 3, 4))


def test_a_block_holds_the_given_relevance() -> None:
    relevance = np.arange(6).reshape(2, 3)
    for vectors in (ONES, ONES[:1]):
        block = CandidateBlock.validate(np.ones((2, 4)), as_unit_rows(vectors), relevance=relevance)
        assert block.relevance_given
        assert block.relevance.tolist() == relevance.tolist()
        for bad in (relevance[:1], relevance[:, :2], relevance[0], np.full((2, 3), np.nan)):
            with pytest.raises(InvalidInputError, match=r"^relevance must have shape \(2, 3\)"):
                CandidateBlock.validate(np.ones((2, 4)), as_unit_rows(vectors), relevance=bad)


@pytest.mark.parametrize(
    ("queries", "vectors", "quality"),
    [
        (np.zeros((2, 4)), ONES, None),
        (np.full((2, 4), np.nan), ONES, None),
        (np.ones((2, 5)), ONES, None),
        (np.ones((3, 4)), ONES, None),
        (np.ones((2, 4)), ONES, np.ones((2, 4))),
        (np.ones((2, 4)), ONES, np.full((2, 3), np.inf)),
        (np.ones((2, 4)), ONES[:1], np.ones((2, 3))),
    ],
)
def test_a_block_with_an_error_is_refused(queries: Any, vectors: Any, quality: Any) -> None:
    with pytest.raises(InvalidInputError):
        CandidateBlock.validate(queries, as_unit_rows(vectors), quality)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_unit_rows_of_a_block_name_the_row_that_is_not_finite(value: float) -> None:
    vectors = np.ones((3, 5, 4))
    vectors[1, 2, 0] = value
    with pytest.raises(InvalidInputError, match=r"^vectors: row 2 holds NaN or inf"):
        as_unit_rows(vectors)
