from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared_core.batch.dataset import read_vectors_by_id
from shared_core.errors import InvalidInputError


def write(path: Path, ids: list[Any], vectors: Any, **names: str) -> None:
    pq.write_table(pa.table({names.get("id", "id"): ids, names.get("vector", "vector"): vectors}), path)


def test_vectors_are_found_by_id_in_a_file_or_a_folder_of_files(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", ["b", "more", "a"], [[0.0, 1.0], [5.0, 5.0], [1.0, 0.0]])
    write(tmp_path / "2.parquet", ["c"], pa.array([[0.0, 0.0]], pa.list_(pa.float64(), 2)))
    found = read_vectors_by_id(tmp_path, ["a", "b", "c"])
    # A vector of zeros is allowed: a document without any known word has one.
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 0], [0, 1], [0, 0]]
    write(tmp_path / "numbers.parquet", [7, 8], [[1.0], [2.0]], id="key", vector="embedding")
    found = read_vectors_by_id(tmp_path / "numbers.parquet", ["8"], id_column="key", vector_column="embedding")
    assert found.tolist() == [[2]]


def test_rows_without_an_id_are_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "vectors.parquet"
    write(path, [None, "a", None], [[1.0], [2.0], [3.0]])
    assert read_vectors_by_id(path, ["a"]).tolist() == [[2]]
    with pytest.raises(InvalidInputError, match=r"1 of 1 ids: 'None'.*'a'"):
        read_vectors_by_id(path, ["None"])


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "b", "b"], [[1.0]] * 3, "row 2 (id 'b'): the id occurs a second time"),
        (["a", "b"], [[1.0], [float("nan")]], "row 1 (id 'b'): the vector contains nan"),
        (["a", "b"], [[1.0], None], "row 1 (id 'b'): the vector is null"),
        (["a", "b", "c"], [[1.0, 2.0], [1.0], [1.0, 2.0]], "row 1 (id 'b'): the vector has length 1, not 2"),
        (["a", "x"], [[1.0]] * 2, "has no vector for 1 of 2 ids: 'b'; its first id is 'a'"),
        (["a", "b"], [1.0, 2.0], "'vector' must contain lists of floats or signed integers, but contains double"),
        (["a", "b"], pa.array([[1], [2]], pa.list_(pa.uint8())), "lists of floats or signed integers, but contains li"),
        ([1.5, 2.5], [[1.0]] * 2, "column 'id' must contain texts or whole numbers, but contains double"),
    ],
)
def test_vectors_that_cannot_be_used_are_an_error_that_names_row_and_id(
    tmp_path: Path, ids: list[Any], vectors: list[Any], message: str
) -> None:
    path = tmp_path / "vectors.parquet"
    write(path, ids, vectors)
    with pytest.raises(InvalidInputError) as error:
        read_vectors_by_id(path, ["a", "b"])
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_a_missing_column_is_an_error_that_lists_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "vectors.parquet"
    write(path, ["a"], [[1.0]], id="key")
    with pytest.raises(InvalidInputError) as error:
        read_vectors_by_id(path, ["a"])
    assert str(error.value) == f"{path}: no column id (id_column); there is key, vector"
    with pytest.raises(InvalidInputError, match="no ids"):
        read_vectors_by_id(path, [], id_column="key")
