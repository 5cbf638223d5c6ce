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
from shared_core.candidates import CandidateBlock, References, as_parts, as_unit_rows, standardise
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


def test_rows_have_length_one_or_zero() -> None:
    vectors = VECTORS.copy()
    vectors[3] = 0
    candidates = Candidates(QUERY, vectors)
    np.testing.assert_allclose(candidates.vectors, oracles.unit_rows(vectors), rtol=0, atol=1e-15)
    assert np.all(candidates.vectors[3] == 0)
    assert candidates.relevance[3] == 0


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


@pytest.mark.parametrize("given", [None, GIVEN], ids=["cosine", "given relevance"])
def test_the_columns_stay_with_their_rows(given: Any) -> None:
    candidates = Candidates(QUERY, VECTORS, relevance=given, max_per_source=2, **PREFER, **COLUMNS)
    rows = [7, 0, 3]
    for index in (rows, np.array(rows), tuple(rows)):
        part = candidates.take(index)
        assert (part.ids, part.sources) == ((7, 0, 3), ("h", "a", "d"))
        for name in ("vectors", "relevance", "quality", "costs", "prefer"):
            assert np.array_equal(getattr(part, name), getattr(candidates, name)[rows])
            assert not getattr(part, name).flags.writeable
    others = {
        "query": (candidates.with_query(-QUERY), -QUERY, VECTORS),
        "vectors": (candidates.with_vectors(QUERY[:3], VECTORS[:, :3]), QUERY[:3], VECTORS[:, :3]),
        "pickle": (pickle.loads(pickle.dumps(candidates)), QUERY, VECTORS),
    }
    for name, (other, query, vectors) in others.items():
        expected = oracles.cosines(query, vectors) if given is None else given
        np.testing.assert_allclose(other.relevance, expected, rtol=0, atol=1e-12, err_msg=name)
        assert other.relevance_given == (given is not None)
        assert not other.relevance.flags.writeable
        assert (other.ids, other.sources, other.max_per_source) == (tuple(range(11)), tuple("abcdefghijk"), 2)
        assert other.drop_near_duplicates == 0.9
        assert np.array_equal(other.prefer, range(1, 12))
        assert np.array_equal(other.costs, range(11))
        assert np.array_equal(other.quality, range(11))
    assert candidates.with_query(-QUERY, GIVEN[::-1]).relevance.tolist() == GIVEN[::-1].tolist()


COVERED = np.random.default_rng(8).random((11, 3))


def test_words_parts_and_names_stay_with_their_rows() -> None:
    words, labels = Parts(COVERED, np.ones(3)), list("aabbccddaab")
    references = References(np.asfortranarray(COVERED.dot(COVERED.T) / 3), range(5, 16))  # type: ignore[arg-type]
    candidates = Candidates(QUERY, VECTORS, words=words, references=references, cover=labels)
    one_hot = np.array([[label == name for name in "abcd"] for label in labels], dtype=float)
    rows = [7, 0, 3]
    others = {
        "take": (candidates.take(rows), rows),
        "with_query": (candidates.with_query(-QUERY), range(11)),
        "with_vectors": (candidates.with_vectors(QUERY[:3], VECTORS[:, :3]), range(11)),
        "pickle": (pickle.loads(pickle.dumps(candidates)), range(11)),
    }
    for name, (other, index) in others.items():
        for parts, covered in ((other.words, COVERED), (other.cover, one_hot)):
            assert parts.covered.tolist() == covered[list(index)].tolist(), name
            assert parts.weights.tolist() == [1.0] * covered.shape[1], name
            assert not parts.covered.flags.writeable, name
            assert not parts.weights.flags.writeable, name
        assert other.references is not None
        named, names, _ = other.references
        assert named.tolist() == np.float32(references.strength)[np.ix_(index, index)].tolist(), name
        assert names.tolist() == [5 + i for i in index]
        assert named.flags.c_contiguous
        assert not named.flags.writeable, name
        assert not names.flags.writeable, name
    replaced = candidates.with_query(QUERY, words=Parts(COVERED[:, :1], np.array([2.0])), references=np.eye(11))
    assert replaced.words is not None
    assert replaced.words.weights.tolist() == [2.0]
    assert replaced.references is not None
    assert [array.tolist() for array in replaced.references[:2]] == [np.eye(11).tolist(), [*range(11)]]
    assert COVERED.flags.writeable


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a", "b", "a"], [[1, 0], [0, 1], [1, 0]]),
        (("b", None, 3), [[1, 0], [0, 0], [0, 1]]),
        ([["x", "y"], ("y", "y"), {"z"}], [[1, 1, 0], [0, 1, 0], [0, 0, 1]]),
        ([[], None, float("nan")], [[], [], []]),
        (np.array([2, 1, 2]), [[1, 0], [0, 1], [1, 0]]),
        ((label for label in "aba"), [[1, 0], [0, 1], [1, 0]]),
        (["a", pd.NA, pd.NaT], [[1], [0], [0]]),
        ([["a", None], [np.float32("nan")], ["b"]], [[1, 0], [0, 0], [0, 1]]),
        ([np.array(["x", "y"]), np.array([]), np.array(["y"])], [[1, 1], [0, 0], [0, 1]]),
        ([[0, 1], [1], []], [[1, 1], [0, 1], [0, 0]]),
        (np.array([[0.5], [1], [0]], np.float16), [[0.5], [1], [0]]),
        (np.asfortranarray([[0.5, 1], [1, 0], [0, 0]]), [[0.5, 1], [1, 0], [0, 0]]),
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
        ("abc", "must be a collection, one for each candidate, got 'abc'"),
        (["a", "b"], "must be 3, one for each candidate, got 2"),
        (["a", {"b": 1}, "c"], "row 1 is .*'b'.* cannot be hashed"),
        ([["a"], ["b"], [["c"]]], "row 2 is .*cannot be hashed"),
        ([[0, 1], [0.5, 1], [1, 0]], r"row 1 is \[0.5, 1\]; pass .* as an array of shape \(3, m\)"),
        ([(0.5, 0.1), (0.5, 1.0), (1.0, 0.0)], r"row 0 is \(0.5, 0.1\); pass .* as an array"),
        ([[0, 1, 1], [0, 1, 0], [1, 0, 0]], r"row 0 is \[0, 1, 1\]; pass .* as an array"),
        (np.ones((2, 4)), r"must have shape \(3, m\), one row for each candidate, got \(2, 4\)"),
        (np.array([["a"], ["b"], ["c"]]), "must be numbers"),
        (np.array([[0.0, 1.0], [np.nan, 0.0], [0.0, 0.0]]), r"row 1 covers part 0 by nan; it must be in \[0, 1\]"),
        (np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.5]]), "row 2 covers part 1 by 1.5"),
        (np.full((3, 1), -0.1), "row 0 covers part 0 by -0.1"),
        (Parts(np.ones((3, 2)), np.ones(3)), r"must have shape \(2,\), one for each part, got \(3,\)"),
        (Parts(np.ones(3), np.ones(3)), r"must have shape \(3, m\)"),
        *((Parts(np.ones((3, 1)), np.array([w])), "must be finite and at least 0") for w in (-1.0, np.nan, np.inf)),
    ],
)
def test_parts_that_are_wrong_are_refused_by_row(given: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=f"cover:? {says}"):
        Candidates([1.0], np.ones((3, 1)), cover=given)


SEVERAL = np.random.default_rng(9).normal(size=(3, 5))


def test_of_several_queries_the_highest_cosine_counts() -> None:
    candidates, rows = Candidates(SEVERAL, VECTORS), [7, 0, 3]
    others = {
        "itself": (candidates, SEVERAL, VECTORS),
        "scaled": (Candidates(1e200 * SEVERAL, VECTORS), SEVERAL, VECTORS),
        "take": (candidates.take(rows), SEVERAL, VECTORS[rows]),
        "with_query": (Candidates(QUERY, VECTORS).with_query(SEVERAL), SEVERAL, VECTORS),
        "one of them": (candidates.with_query(SEVERAL[1]), SEVERAL[1:2], VECTORS),
        "with_vectors": (candidates.with_vectors(SEVERAL[:, :3], VECTORS[:, :3]), SEVERAL[:, :3], VECTORS[:, :3]),
        "pickle": (pickle.loads(pickle.dumps(candidates)), SEVERAL, VECTORS),
    }
    for name, (other, queries, vectors) in others.items():
        cosines = np.max([oracles.cosines(query, vectors) for query in queries], axis=0)
        np.testing.assert_allclose(other.relevance, cosines, rtol=0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(other.questions, oracles.unit_rows(queries), rtol=0, atol=1e-12, err_msg=name)
        assert np.array_equal(other.query, other.questions[0]), name
        assert not other.questions.flags.writeable, name
    given = Candidates(SEVERAL, VECTORS, relevance=GIVEN)
    assert given.relevance.tolist() == given.with_query(-SEVERAL).relevance.tolist() == GIVEN.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_that_is_there_twice_is_one_query(dtype: Any) -> None:
    for copy in (QUERY, 3 * QUERY, QUERY * (1 + 1e-16)):
        both = Candidates(np.stack([QUERY, copy]), VECTORS.astype(dtype))
        assert len(both.questions) == 1
        assert np.array_equal(both.relevance, Candidates(QUERY, VECTORS.astype(dtype)).relevance)
    assert len(Candidates(QUERY[None], VECTORS).questions) == 1
    assert len(Candidates([QUERY, -QUERY], VECTORS).questions) == 2


def test_the_repr_names_what_was_given() -> None:
    assert repr(Candidates(SEVERAL, VECTORS)) == "Candidates(n=11, d=5, float64, 3 questions)"
    assert repr(Candidates(QUERY, VECTORS)) == "Candidates(n=11, d=5, float64)"
    assert repr(Candidates(QUERY, VECTORS, references=np.eye(11))).endswith("float64, references)")
    assert repr(Candidates(QUERY, VECTORS, relevance=GIVEN, ids=range(11))).endswith("float64, relevance, ids)")


@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        *((np.float32, length) for length in (1e-37, 1e-30, 1e30, 1e38)),
        *((np.float64, length) for length in (1e-305, 1e-200, 1e-30, 1e30, 1e200, 1e307)),
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
            block = CandidateBlock.validate(row[None], as_unit_rows(vectors[None]))
            for rows, relevance in ((candidates.vectors, candidates.relevance), (block.vectors[0], block.relevance[0])):
                np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-6)
                np.testing.assert_allclose(relevance, expected @ expected[0], rtol=0, atol=1e-6)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_row_that_is_not_finite_is_named(value: float, dtype: Any) -> None:
    for row in (0, 7, 10):
        vectors = VECTORS.astype(dtype)
        vectors[row, 2] = value
        with pytest.raises(InvalidInputError, match=rf"^vectors: row {row} holds NaN or inf"):
            Candidates(QUERY, vectors)
        with pytest.raises(InvalidInputError, match=rf"row {row} \(id 'doc {row}'\)"):
            Candidates(QUERY, vectors, ids=[f"doc {i}" for i in range(11)])
        with pytest.raises(InvalidInputError, match=rf"^vectors: row {row} holds NaN or inf"):
            as_unit_rows(np.stack([VECTORS.astype(dtype), vectors]))


def spoiled(value: float) -> NDArray[np.float64]:
    return np.r_[np.ones(7), value, np.ones(3)]


REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"query": query}, r"query has shape .*vectors have shape \(11, 5\)")
        for query in (np.ones(4), np.ones((1, 1, 5)))
    ),
    ({"query": np.float64(1.0)}, r"query has shape \(\)"),
    *(({"query": query}, "query is the zero vector") for query in (np.zeros(5), -np.zeros(5))),
    *(({"query": [1, 1, 1, 1, x]}, "query holds NaN or inf") for x in (np.nan, np.inf, -np.inf)),
    ({"query": np.ones((0, 5))}, "query has no row"),
    ({"query": [QUERY, np.zeros(5)]}, "row 1 of the query: query is the zero vector"),
    ({"query": [QUERY, QUERY, QUERY * np.nan]}, "row 2 of the query: query holds NaN or inf"),
    ({"query": np.ones((2, 4))}, r"row 0 of the query: query has shape \(4,\), vectors have shape \(11, 5\)"),
    *(({"vectors": v}, r"vectors must have shape \(n, d\)") for v in (VECTORS[0], VECTORS[None], VECTORS[:0])),
    *(({"query": query}, "query") for query in (["a"] * 5, QUERY.astype(complex), None, "cosine")),
    *(({"vectors": v}, "vectors") for v in ([["a"] * 5] * 2, VECTORS.astype(complex), [[None] * 5], None)),
    *(({name: spoiled(np.nan)}, f"{name}: row 7 is nan") for name in ("relevance", "quality", "costs")),
    *(({name: range(10)}, f"{name} must .*11.*10") for name in (*COLUMNS, "relevance")),
    *(({name: np.ones((11, 1))}, r"\(11,\).*\(11, 1\)") for name in ("relevance", "quality", "costs")),
    *(({name: 5}, f"{name} must") for name in (*COLUMNS, "relevance")),
    ({"relevance": "cosine"}, "relevance must be numbers, got 'cosine'"),
    ({"costs": spoiled(-1)}, "costs: row 7 is -1.0; every value must be finite and at least 0"),
    ({"ids": [[i] for i in range(11)]}, "ids: row 0 .*cannot be hashed"),
    ({"max_per_source": 1}, "needs sources"),
    *(
        (
            {"references": np.ones(shape)},
            r"^references must have shape \(11, 11\), a row and a column for each candidate",
        )
        for shape in ((11, 10), (10, 10), (11,), (1, 11, 11))
    ),
    *(
        (
            {"references": np.where(np.eye(11, k=4) > 0, x, 0.5)},
            rf"^references: row 0 refers to candidate 4 by {x}; it must",
        )
        for x in (np.nan, np.inf, -0.1, 1.01)
    ),
    ({"references": [["a"] * 11] * 11}, "references must"),
    ({"references": References(np.ones((11, 11)), np.arange(10))}, r"with 11 documents, got \(10,\)"),
    (
        {"references": References(np.ones((11, 11)), np.array(["a"] * 11))},
        "the documents of references must be numbers",
    ),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_wrong_is_refused_by_its_name(given: dict[str, Any], words: str) -> None:
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


def test_other_vectors_must_be_as_many() -> None:
    with pytest.raises(InvalidInputError, match="must have 11 rows, one for each candidate, got 10"):
        Candidates(QUERY, VECTORS).with_vectors(QUERY, VECTORS[:10])


def test_an_argument_that_cannot_become_an_array_is_named(unusable: Any) -> None:
    words = "masked values" if isinstance(unusable, np.ma.MaskedArray) else "cannot be made into an array"
    good: dict[str, Any] = {"query": [1.0, 2.0], "vectors": [[1.0, 2.0], [3.0, 4.0]]}
    for name in ("vectors", "query", "relevance", "quality", "costs"):
        with pytest.raises(InvalidInputError, match=f"^{name} .*{words}"):
            Candidates(**{**good, name: unusable})


# --- blocks of queries ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
@pytest.mark.parametrize("shared", [True, False], ids=["shared candidates", "own candidates"])
def test_a_block_holds_what_candidates_of_each_query_hold(shared: bool, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    queries, relevance = 10 * rng.normal(size=(4, 7)), rng.normal(size=(4, 9))
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
    assert np.array_equal(block.quality, quality)
    given = CandidateBlock.validate(queries, as_unit_rows(vectors), relevance=relevance)
    assert (block.relevance_given, given.relevance_given) == (False, True)
    assert np.array_equal(given.relevance, relevance)


ONES = np.ones((2, 3, 4))


@pytest.mark.parametrize(
    ("queries", "vectors", "more"),
    [
        (np.zeros((2, 4)), ONES, {}),
        (np.full((2, 4), np.nan), ONES, {}),
        (np.ones((2, 5)), ONES, {}),
        (np.ones((3, 4)), ONES, {}),
        *((np.ones((2, 4)), ONES, {"quality": q}) for q in (np.ones((2, 4)), np.full((2, 3), np.inf))),
        (np.ones((2, 4)), ONES[:1], {"quality": np.ones((2, 3))}),
        *((np.ones((2, 4)), ONES, {"relevance": r}) for r in (np.ones((1, 3)), np.ones(3), np.full((2, 3), np.nan))),
    ],
)
def test_a_block_with_an_error_is_refused(queries: Any, vectors: Any, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        CandidateBlock.validate(queries, as_unit_rows(vectors), **more)


@pytest.mark.parametrize(
    "values", [[1 - 1.3e-13, 1.0, 1.0], [0.3, 0.3 + 1e-13, 0.3 + 3e-13], [7e200, 7e200, 7e200 * (1 + 1e-13)]]
)
def test_standard_scores_of_values_that_hardly_differ_are_exact(values: list[float]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    sigma = Fraction(statistics.pstdev(values))
    expected = [float((value - mean) / sigma) for value in exact]
    np.testing.assert_allclose(standardise(np.array(values), None)[0], expected, rtol=1e-12)
