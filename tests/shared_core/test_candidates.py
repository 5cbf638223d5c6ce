"""The checks of the input, and what Candidates keep of it."""

from __future__ import annotations

import dataclasses
import pickle
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from shared_core import Candidates, InvalidInputError, InvalidParameterError, Parts
from shared_core.candidates import References, as_parts, as_unit_rows, standardise
from tests import oracles
from tests.shared_core.cases import gaussian, random_cases

QUERY, VECTORS = gaussian(1, 11, 5)
COLUMNS: dict[str, Any] = {"quality": range(11), "costs": range(11), "ids": range(11), "sources": "abcdefghijk"}
PREFER: dict[str, Any] = {"prefer": range(11), "drop_near_duplicates": 0.9}
GIVEN = np.linspace(-3, 8, 11)


def test_relevance_is_the_cosine() -> None:
    for case in random_cases(10, 120):
        expected = oracles.cosines(case.query, case.vectors)
        atol = 1e-12 if case.vectors.dtype == np.float64 else 5e-7
        np.testing.assert_allclose(case.candidates.relevance, expected, rtol=0, atol=atol, err_msg=str(case))


@pytest.mark.parametrize("given", ["float16", "float32", "float64", "int8", "uint8", "int16", "int64", "list"])
def test_small_numbers_become_float32_and_large_ones_float64(given: str) -> None:
    vectors = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]] if given == "list" else np.array([[1, 2, 3], [4, 5, 6]], given)
    kept = np.float64 if given in ("float64", "int64", "list") else np.float32
    for query in ([1.0, 0.0, 1.0], np.ones(3, np.float16)):
        candidates = Candidates(query, vectors)
        assert candidates.vectors.dtype == candidates.query.dtype == kept
        np.testing.assert_allclose(candidates.relevance, oracles.cosines(query, vectors), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("kind", ["unit", "any length", "zero", "tiny"])
@pytest.mark.parametrize("copy", [True, False], ids=["copied", "not copied"])
def test_the_callers_arrays_are_never_changed_and_what_is_kept_is_read_only(copy: bool, kind: str, dtype: Any) -> None:
    vectors = {
        "unit": np.eye(5),
        "any length": 7 * VECTORS,
        "zero": np.vstack([VECTORS, np.zeros(5)]),
        "tiny": np.vstack([VECTORS, 1e-30 * VECTORS]),
    }[kind].astype(dtype)
    query = np.ones(5, dtype)
    given = query, vectors, np.ones(len(vectors)), np.ones(len(vectors)), np.ones(len(vectors))
    before = [array.tobytes() for array in given]
    candidates = Candidates(query, vectors, quality=given[2], costs=given[3], relevance=given[4], copy=copy)
    candidates.with_query(query)
    candidates.take([0, 2])
    assert [array.tobytes() for array in given] == before
    assert all(array.flags.writeable for array in given)
    for name in ("query", "vectors", "relevance", "quality", "costs"):
        assert not getattr(candidates, name).flags.writeable
        assert not np.shares_memory(getattr(candidates, name), query)
    with pytest.raises(dataclasses.FrozenInstanceError):
        candidates.vectors = vectors  # type: ignore[misc]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_copy_only_unit_rows_share_memory(dtype: Any) -> None:
    unit = oracles.unit_rows(VECTORS).astype(dtype)
    assert np.shares_memory(Candidates(QUERY, unit, copy=False).vectors, unit)
    assert not np.shares_memory(Candidates(QUERY, unit).vectors, unit)
    for vectors in (2 * unit, unit[:, ::-1], np.asfortranarray(unit), unit.astype(np.float16)):
        candidates = Candidates(QUERY, vectors, copy=False)
        assert not np.shares_memory(candidates.vectors, vectors)
        assert np.array_equal(candidates.vectors, Candidates(QUERY, vectors).vectors)


COVERED = np.random.default_rng(8).random((11, 3))
SEVERAL = np.random.default_rng(9).normal(size=(3, 5))
LABELS = list("aabbccddaab")


@pytest.mark.parametrize("queries", [QUERY, SEVERAL], ids=["one query", "several queries"])
@pytest.mark.parametrize("given", [None, GIVEN], ids=["cosine", "given relevance"])
def test_the_columns_stay_with_their_rows(given: Any, queries: Any) -> None:
    references = References(np.asfortranarray(COVERED.dot(COVERED.T) / 3), range(5, 16))  # type: ignore[arg-type]
    parts: dict[str, Any] = {"references": references, "cover": LABELS}
    parts["words"] = Parts(COVERED, np.ones(3), COVERED[:, :2] < 0.5)
    one_hot = np.array([[label == name for name in "abcd"] for label in LABELS], dtype=float)
    whole = Candidates(queries, VECTORS, relevance=given, max_per_source=2, **PREFER, **COLUMNS, **parts)
    # The candidates, and the queries, vectors and rows that they should have.
    others: dict[str, tuple[Candidates, Any, Any, list[int]]] = {
        "itself": (whole, queries, VECTORS, [*range(11)]),
        "take": (whole.take(np.array([7, 0, 3])), queries, VECTORS, [7, 0, 3]),
        "with_query": (whole.with_query(-queries), -queries, VECTORS, [*range(11)]),
        "one of them": (whole.with_query(SEVERAL[1]), SEVERAL[1], VECTORS, [*range(11)]),
        "with_vectors": (
            whole.with_vectors(queries[..., :3], VECTORS[:, :3]), queries[..., :3], VECTORS[:, :3], [*range(11)]
        ),
        "pickle": (pickle.loads(pickle.dumps(whole)), queries, VECTORS, [*range(11)]),
    }  # fmt: skip
    for name, (other, asked, vectors, rows) in others.items():
        asked = np.atleast_2d(asked)
        expected = (
            np.max([oracles.cosines(one, vectors[rows]) for one in asked], axis=0) if given is None else given[rows]
        )
        np.testing.assert_allclose(other.relevance, expected, rtol=0, atol=1e-12, err_msg=name)
        cosines = [oracles.cosines(one, vectors[rows]) for one in asked]
        np.testing.assert_allclose(other.cosines, cosines, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(other.questions, oracles.unit_rows(asked), rtol=0, atol=1e-12, err_msg=name)
        assert np.array_equal(other.query, other.questions[0]), name
        assert other.relevance_given == (given is not None)
        assert (other.max_per_source, other.drop_near_duplicates) == (2, 0.9)
        assert (other.ids, other.sources) == (tuple(rows), tuple("abcdefghijk"[row] for row in rows)), name
        assert (other.prefer - 1).tolist() == other.costs.tolist() == other.quality.tolist() == rows, name  # type: ignore[operator, union-attr]
        assert other.words is not None
        assert other.cover is not None
        assert other.references is not None
        for part, covered in ((other.words, COVERED), (other.cover, one_hot)):
            assert part.covered.tolist() == covered[rows].tolist(), name
            assert part.weights.tolist() == [1.0] * covered.shape[1], name
        assert other.words.exact.tolist() == (COVERED[rows, :2] < 0.5).tolist(), name
        strength, documents, _ = other.references
        assert strength.tolist() == np.float32(references.strength)[np.ix_(rows, rows)].tolist(), name
        assert documents.tolist() == [5 + row for row in rows]
        assert strength.flags.c_contiguous
        arrays = [
            other.relevance,
            other.cosines,
            other.questions,
            other.vectors,
            other.quality,
            other.costs,
            other.prefer,
        ]
        arrays += [*other.words, *other.cover, strength, documents]
        assert not any(array.flags.writeable for array in arrays if array is not None), name
    assert COVERED.flags.writeable


def test_other_values_take_the_place_of_those_that_were_given() -> None:
    whole = Candidates(QUERY, VECTORS, relevance=GIVEN, words=Parts(COVERED, np.ones(3)), references=np.ones((11, 11)))
    assert whole.take((7, 0)).relevance.tolist() == whole.take([7, 0]).relevance.tolist() == GIVEN[[7, 0]].tolist()
    words = Parts(COVERED[:, :1], np.array([2.0]))
    replaced = whole.with_query(QUERY, GIVEN[::-1], words=words, references=np.eye(11))
    assert replaced.relevance.tolist() == GIVEN[::-1].tolist()
    assert replaced.words is not None
    assert replaced.words.weights.tolist() == [2.0]
    assert replaced.references is not None
    assert [array.tolist() for array in replaced.references[:2]] == [np.eye(11).tolist(), [*range(11)]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "b", "a"], [[1, 0], [0, 1], [1, 0]]),
        ([["x", "y"], ("y", "y"), {"z"}], [[1, 1, 0], [0, 1, 0], [0, 0, 1]]),
        (np.array([2, 1, 2]), [[1, 0], [0, 1], [1, 0]]),
        ((label for label in "aba"), [[1, 0], [0, 1], [1, 0]]),
        (["a", pd.NA, pd.NaT], [[1], [0], [0]]),
        (["a", "", [" ", "b"]], [[1, 0], [0, 0], [0, 1]]),
        ([["a", None], [np.float32("nan")], ["b"]], [[1, 0], [0, 0], [0, 1]]),
        ([np.array(["x", "y"]), np.array([]), np.array(["y"])], [[1, 1], [0, 0], [0, 1]]),
        ([[0, 1], [1], []], [[1, 1], [0, 1], [0, 0]]),
        (np.array([[0.5], [1], [0]], np.float16), [[0.5], [1], [0]]),
        (np.array([[True, False], [False, True], [True, True]]), [[1, 0], [0, 1], [1, 1]]),
        (pd.DataFrame({"a": [0.5, 1, 0]}), [[0.5], [1], [0]]),
        (Parts([[1], [0], [1]], [3]), [[1], [0], [1]]),  # type: ignore[arg-type]
    ],
)
def test_parts_are_values_or_numbers(given: Any, expected: Any) -> None:
    found = as_parts(given, 3, "cover")
    assert found.covered.tolist() == expected
    assert found.covered.dtype == found.weights.dtype == np.float64


@pytest.mark.parametrize("given", [[2, 1, 2], [[0.5], [1], [0]], [[True], [False], [True]]], ids=str)
def test_parts_of_a_tensor_are_those_of_the_array(given: Any) -> None:
    tensor = pytest.importorskip("torch").tensor(given)
    assert as_parts(tensor, 3, "cover").covered.tolist() == as_parts(np.array(given), 3, "cover").covered.tolist()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("abc", ".*'abc'"),
        (["a", {"b": 1}, "c"], "row 1 .*'b'.* hashed"),
        ([["a"], ["b"], [["c"]]], "row 2 .* hashed"),
        ([[0, 1], [0.5, 1], [1, 0]], r"row 1 .*\[0.5, 1\].*\(3, m\)"),
        (np.ones((2, 4)), r".*\(3, m\).*\(2, 4\)"),
        (np.array([[0.0, 1.0], [np.nan, 0.0], [0.0, 0.0]]), "row 1 .*part 0 .*nan"),
        (np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.5]]), "row 2 .*part 1 .*1.5"),
        (Parts(np.ones((3, 2)), np.ones(3)), r".*\(2,\).*\(3,\)"),
        *((Parts(np.ones((3, 1)), np.array([w])), ".*finite") for w in (-1.0, np.nan, np.inf)),
        (Parts(np.ones((3, 1)), np.ones(1), np.ones((2, 1), bool)), r"\.exact .*\(3, r\).*\(2, 1\)"),
    ],
)
def test_parts_that_are_wrong_are_refused_by_row(given: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=f"cover:? ?{says}"):
        Candidates([1.0], np.ones((3, 1)), cover=given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_that_is_there_twice_is_one_query(dtype: Any) -> None:
    for copy in (QUERY, 3 * QUERY, QUERY * (1 + 1e-16)):
        both = Candidates(np.stack([QUERY, copy]), VECTORS.astype(dtype))
        assert len(both.questions) == 1
        assert np.array_equal(both.relevance, Candidates(QUERY, VECTORS.astype(dtype)).relevance)
    np.testing.assert_allclose(Candidates(1e200 * SEVERAL, VECTORS).relevance, Candidates(SEVERAL, VECTORS).relevance)
    assert len(Candidates(QUERY[None], VECTORS).questions) == 1
    assert len(Candidates([QUERY, -QUERY], VECTORS).questions) == 2


@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        *((np.float32, length) for length in (1e-37, 1e38)),
        *((np.float64, length) for length in (1e-305, 1e307)),
    ],
)
def test_rows_and_queries_of_any_length_are_normalised(dtype: Any, length: float) -> None:
    directions, expected = oracles.unit_rows(VECTORS), oracles.cosines(QUERY, VECTORS)
    vectors = directions.astype(dtype)
    vectors[4] = (directions[4] * length).astype(dtype)
    tolerance = 5e-7 if dtype == np.float32 else 1e-12
    candidates = Candidates(QUERY.astype(dtype), vectors)
    np.testing.assert_allclose(candidates.vectors, directions, rtol=0, atol=tolerance)
    np.testing.assert_allclose(candidates.relevance, expected, rtol=0, atol=tolerance)
    query = (oracles.unit(QUERY) * length).astype(dtype)
    np.testing.assert_allclose(Candidates(query, directions.astype(dtype)).relevance, expected, rtol=0, atol=tolerance)


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
            np.testing.assert_allclose(candidates.vectors, expected, rtol=0, atol=1e-6)
            np.testing.assert_allclose(candidates.relevance, expected @ expected[0], rtol=0, atol=1e-6)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "dtype"), [(np.nan, np.float16), (np.inf, np.float32), (-np.inf, np.float64)])
def test_a_row_that_is_not_finite_is_named(value: float, dtype: Any) -> None:
    for row in (0, 7, 10):
        vectors = VECTORS.astype(dtype)
        vectors[row, 2] = value
        with pytest.raises(InvalidInputError, match=f"^vectors: row {row} "):
            Candidates(QUERY, vectors)
        with pytest.raises(InvalidInputError, match=rf"row {row} \(id 'doc {row}'\)"):
            Candidates(QUERY, vectors, ids=[f"doc {i}" for i in range(11)])
        with pytest.raises(InvalidInputError, match=f"^vectors: row {row} "):
            as_unit_rows(np.stack([VECTORS.astype(dtype), vectors]))


def spoiled(value: float) -> NDArray[np.float64]:
    return np.r_[np.ones(7), value, np.ones(3)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"query": query}, r"query .*vectors .*\(11, 5\)") for query in (np.ones(4), np.ones((1, 1, 5)))),
    ({"query": np.float64(1.0)}, r"query has shape \(\)"),
    *(({"query": query}, "query: row 0 .*zero") for query in (np.zeros(5), -np.zeros(5))),
    *(({"query": [1, 1, 1, 1, x]}, "query: row 0 .*NaN") for x in (np.nan, np.inf, -np.inf)),
    ({"query": np.ones((0, 5))}, "query .*no row"),
    ({"query": [QUERY, np.zeros(5)]}, "query: row 1 .* zero"),
    ({"query": [QUERY, QUERY, QUERY * np.nan]}, "query: row 2 .* NaN"),
    ({"query": np.ones((2, 4))}, r"query .*\(2, 4\).*\(11, 5\)"),
    *(({"vectors": v}, r"vectors must have shape \(n, d\)") for v in (VECTORS[0], VECTORS[None], VECTORS[:0])),
    *(({"query": query}, "query") for query in (["a"] * 5, QUERY.astype(complex), None, "cosine")),
    *(({"vectors": v}, "vectors") for v in ([["a"] * 5] * 2, VECTORS.astype(complex), [[None] * 5], None)),
    *(({name: spoiled(np.nan)}, f"{name}: row 7 is nan") for name in ("relevance", "quality", "costs")),
    *(({name: range(10)}, f"{name} must .*11.*10") for name in (*COLUMNS, "relevance")),
    *(({name: np.ones((11, 1))}, r"\(11,\).*\(11, 1\)") for name in ("relevance", "quality", "costs")),
    *(({name: 5}, f"{name} must") for name in (*COLUMNS, "relevance")),
    ({"relevance": "cosine"}, "relevance .*'cosine'"),
    ({"costs": spoiled(-1)}, "costs: row 7 .*-1.0"),
    ({"ids": [[i] for i in range(11)]}, "ids .* hashed"),
    ({"max_per_source": 1}, "needs sources"),
    *(
        ({"references": np.ones(shape)}, r"^references .*\(11, 11\)")
        for shape in ((11, 10), (10, 10), (11,), (1, 11, 11))
    ),
    *(
        ({"references": np.where(np.eye(11, k=4) > 0, x, 0.5)}, f"^references: row 0 .* 4 .*{x}")
        for x in (np.nan, np.inf, -0.1, 1.01)
    ),
    ({"references": [["a"] * 11] * 11}, "references must"),
    ({"references": References(np.ones((11, 11)), np.arange(10))}, r"11 documents.*\(10,\)"),
    ({"references": References(np.ones((11, 11)), np.array(["a"] * 11))}, "documents of references"),
]


def test_what_is_wrong_is_refused_by_its_name() -> None:
    for given, words in REFUSED:
        with pytest.raises(InvalidInputError, match=words):
            Candidates(**{"query": QUERY, "vectors": VECTORS, **given})
        if given.keys() <= {"query", "relevance"}:
            with pytest.raises(InvalidInputError, match=words):
                Candidates(QUERY, VECTORS).with_query(**{"query": QUERY, **given})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("max_per_source", most) for most in (0, -1, True, 1.5, "1")),
        *(("drop_near_duplicates", cosine) for cosine in (1.5, -1.01, np.nan, np.inf, "0.9", True)),
    ],
)
def test_a_constraint_out_of_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        Candidates(QUERY, VECTORS, **COLUMNS, **{name: value})


def test_an_argument_that_cannot_become_an_array_is_named(unusable: Any) -> None:
    words = "masked values" if isinstance(unusable, np.ma.MaskedArray) else "cannot be made into an array"
    good: dict[str, Any] = {"query": [1.0, 2.0], "vectors": [[1.0, 2.0], [3.0, 4.0]]}
    for name in ("vectors", "query", "relevance", "quality", "costs"):
        with pytest.raises(InvalidInputError, match=f"^{name} .*{words}"):
            Candidates(**{**good, name: unusable})


@pytest.mark.parametrize(
    "values", [[1 - 1.3e-13, 1.0, 1.0], [0.3, 0.3 + 1e-13, 0.3 + 3e-13], [7e200, 7e200, 7e200 * (1 + 1e-13)]]
)
def test_standard_scores_of_values_that_hardly_differ_are_exact(values: list[float]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    sigma = Fraction(statistics.pstdev(values))
    expected = [float((value - mean) / sigma) for value in exact]
    np.testing.assert_allclose(standardise(np.array(values), any_size=True)[0], expected, rtol=1e-12)
