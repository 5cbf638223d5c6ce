"""Texts as converters of web pages and PDFs write them; tests/data/converters/README.md says how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from numpy.typing import NDArray

from langchain_setselect import SetSelectRetriever

FOLDER = Path(__file__).resolve().parents[1] / "data" / "converters"
EMBEDDED = ["html2text", "markdownify", "docling", "pymupdf4llm", "pymupdf4llm_without_layout"]
# The share of the questions whose documents are selected, and that of the documents that are the same.
LEAST_SHARE, LEAST_SAME = 0.9, 0.95


class Known(Embeddings):
    """Vectors that were computed before."""

    def __init__(self, vectors: Mapping[str, NDArray[Any]]) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [*map(float, self.vectors[text])]


@cache
def read(name: str) -> list[dict[str, Any]]:
    rows = map(json.loads, (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [row for row in rows if "converter" not in row]


@cache
def select(name: str, vectors_of: str) -> list[set[str]]:
    """The ids that the default selects for each question, from the texts of a file and the vectors of a file."""
    texts = {row["id"]: row["text"] for row in read(name)}
    questions = [row["question"] for row in read("questions")]
    vectors = np.load(FOLDER / "vectors.npz")
    known = dict(zip(texts.values(), vectors[vectors_of], strict=True))
    known |= dict(zip(questions, vectors["questions"], strict=True))
    store = InMemoryVectorStore.from_texts([*texts.values()], Known(known), ids=[*texts])
    retriever = SetSelectRetriever(vectorstore=store)
    return [{str(document.id) for document in retriever.invoke(question)} for question in questions]


def test_what_a_question_needs_is_selected_from_the_clean_texts() -> None:
    """So the sets with which those of converted texts are compared are good ones."""
    needs = [set(row["needs"]) for row in read("questions")]
    assert sum(map(set.issubset, needs, select("clean", "clean"))) >= LEAST_SHARE * len(needs)


@pytest.mark.parametrize(
    ("name", "vectors_of"),
    # With the vectors of the clean texts, only words and names differ.
    [*zip(EMBEDDED, EMBEDDED, strict=True), *((name, "clean") for name in (*EMBEDDED, "pymupdf"))],
)
def test_the_same_documents_are_selected_from_converted_texts(name: str, vectors_of: str) -> None:
    sets = [*zip(select("clean", "clean"), select(name, vectors_of), strict=True)]
    others = [(clean - found, found - clean) for clean, found in sets if found != clean]
    assert sum(len(clean & found) for clean, found in sets) >= LEAST_SAME * sum(len(clean) for clean, _ in sets), others
