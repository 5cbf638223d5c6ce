"""The forms in which vectors come: tensors of every type, numbers scaled to bytes, and packed bits."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from setselect import PAP, Candidates, InvalidInputError, select, select_many

# Vectors, and the cosines of the rows with the first one, by hand.
ROWS = [[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-0.5, 0.0]]
COSINES = [1.0, 0.0, 0.70710678, -1.0]

Form = Callable[[Any, list[list[float]]], Any]
# Each makes of a library and ROWS what a model or a store may return; the library is torch or ml_dtypes.
TORCH: dict[str, Form] = {
    "bfloat16": lambda torch, rows: torch.tensor(rows, dtype=torch.bfloat16),
    "bfloat16 with a gradient": lambda torch, rows: torch.tensor(rows, dtype=torch.bfloat16, requires_grad=True),
    "a list of tensors": lambda torch, rows: [torch.tensor(row, dtype=torch.bfloat16) for row in rows],
    "lists of scalars": lambda torch, rows: [list(torch.tensor(row, dtype=torch.bfloat16)) for row in rows],
    "a transposed view": lambda torch, rows: torch.tensor(rows, dtype=torch.bfloat16).T.contiguous().T,
}
ML_DTYPES: dict[str, Form] = {
    "bfloat16 array": lambda ml_dtypes, rows: np.array(rows, ml_dtypes.bfloat16),
    "list of arrays": lambda ml_dtypes, rows: list(np.array(rows, ml_dtypes.float8_e4m3fn)),
}
FORMS = [("torch", name) for name in TORCH] + [("ml_dtypes", name) for name in ML_DTYPES]


@pytest.mark.parametrize(("library", "form"), FORMS, ids=[name for _, name in FORMS])
def test_tensors_stand_wherever_a_vector_may_stand(library: str, form: str) -> None:
    pytest.importorskip(library)
    vectors = (TORCH | ML_DTYPES)[form](import_module(library), ROWS)
    candidates = Candidates(vectors[0], vectors)
    np.testing.assert_allclose(candidates.relevance, COSINES, atol=1e-7)
    assert candidates.dtype == np.float32
    # Candidates 0 and 2 are the nearest; without the first axis only the second row and the third have a direction.
    assert select(vectors[0], vectors, 2, "similarity").indices.tolist() == [0, 2]
    assert select_many(vectors[:2], vectors, 1, "similarity").indices.tolist() == [[0], [1]]
    assert PAP(vectors[0]).project(vectors[2]).tolist() == [0.0, 3.0]
    quality = [row[1] for row in vectors]
    assert Candidates(vectors[0], vectors, quality=quality).quality.tolist() == [0.0, 2.0, 3.0, 0.0]  # type: ignore[union-attr]


# 40 embeddings of length 384, by a seed, and their forms in bytes.
EMBEDDINGS = np.random.default_rng(5).normal(size=(40, 384))
BITS = np.packbits(EMBEDDINGS > 0, axis=1)


def scaled(rows: NDArray[np.float64], calibration: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers in 0..255, the range of each dimension in the calibration."""
    low, high = calibration.min(axis=0), calibration.max(axis=0)
    return np.clip((rows - low) / (high - low) * 255, 0, 255).round()


NUMBERS = scaled(EMBEDDINGS, np.random.default_rng(6).normal(size=(1000, 384)))

PACKED: dict[str, ArrayLike] = {
    "ubinary": BITS,
    "binary": (BITS.astype(np.int16) - 128).astype(np.int8),
    "as a store of floats returns them": BITS.astype(np.float32),
    "as a list of floats": (BITS.astype(float) - 128).tolist(),
    "with a zero row behind": np.vstack([BITS, np.zeros((1, 48), np.uint8)]),
}
COMPARABLE: dict[str, ArrayLike] = {
    "uint8, scaled": NUMBERS.astype(np.uint8),
    "int8 by the largest of each row": (EMBEDDINGS / np.abs(EMBEDDINGS).max(axis=1, keepdims=True) * 127)
    .round()
    .astype(np.int8),
    "bits that are unpacked": np.unpackbits(BITS, axis=1),
    "colours": np.array([[255, 0, 17], [3, 200, 90], [128, 64, 250]], np.uint8),
    "floats with a zero in front": np.hstack([np.zeros((40, 1)), EMBEDDINGS * 100]),
    "whole numbers beyond a byte": BITS.astype(int) * 3,
}


@pytest.mark.parametrize("form", PACKED)
def test_packed_bits_are_never_compared_as_numbers(form: str) -> None:
    vectors = np.asarray(PACKED[form])
    query = np.ones(vectors.shape[1])
    for call in (
        lambda: select(query, PACKED[form], 3),
        lambda: select_many([query, query], PACKED[form], 3),
        lambda: Candidates(query, query[None]).with_vectors(query, PACKED[form]),
    ):
        with pytest.raises(InvalidInputError, match=r"vectors.*unpackbits"):
            call()


@pytest.mark.parametrize("form", COMPARABLE)
def test_numbers_that_were_scaled_to_bytes_are_compared(form: str) -> None:
    vectors = np.asarray(COMPARABLE[form], np.float64)
    cosines = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[0])
    np.testing.assert_allclose(
        Candidates(COMPARABLE[form][0], COMPARABLE[form]).relevance,  # type: ignore[index]
        cosines,
        atol=1e-6,
    )


def test_a_packed_question() -> None:
    with pytest.raises(InvalidInputError, match=r"query.*unpackbits"):
        select(BITS[0], EMBEDDINGS[:, :48], 3)
    # A store that scales vectors to unit length returns bytes as fractions, but the question's are whole.
    with pytest.raises(InvalidInputError, match=r"query.*unpackbits"):
        select(BITS[0], BITS / np.linalg.norm(BITS, axis=1, keepdims=True), 3)


@pytest.mark.parametrize(
    ("question", "stored", "packed"),
    [(384, 48, True), (48, 384, True), (300, 38, True), (384, 47, False)],
)
def test_a_length_of_an_eighth_is_told(question: int, stored: int, packed: bool) -> None:
    with pytest.raises(InvalidInputError, match=f"{question}.*{stored}") as error:
        select(np.ones(question), np.ones((3, stored)) / 7, 2)
    assert ("ubinary" in str(error.value)) == packed
