"""Numbers, names, order and text of a framework's items."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import TextNode

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.retrieval.inputs import join_values
from shared_core.retrieval.request import read_numbers, read_some
from shared_core.retrieval.result import sort_items
from shared_core.retrieval.settings import Settings

itself = lambda item: item  # noqa: E731
DOCUMENTS: list[Any] = [Document("x", id="a", metadata={"good": 1}), Document("y", id="b", metadata={"good": 2.5})]
NODES = [TextNode(text="x", id_="a", metadata={"good": 1}), TextNode(text="y", id_="b", metadata={"good": 2.5})]


@pytest.mark.parametrize("items", [DOCUMENTS, NODES], ids=["documents", "nodes"])
@pytest.mark.parametrize(
    "source",
    ["good", {"a": 1, "b": 2.5, "c": 9}, {"b": np.float32(2.5), "a": np.int64(1)}, lambda item: item.metadata["good"]],
    ids=["key", "mapping", "numpy", "function"],
)
def test_every_source_gives_the_same(items: list[Any], source: Any) -> None:
    before = copy.deepcopy(items)
    assert read_numbers(items, source, "quality", itself).tolist() == [1.0, 2.5]
    assert items == before


@pytest.mark.parametrize("items", [DOCUMENTS, NODES], ids=["documents", "nodes"])
def test_an_id_that_the_mapping_lacks_is_named(items: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"quality of item 1 \(id 'b'\) is missing"):
        read_numbers(items, {"a": 1.0}, "quality", itself)


def test_a_mapping_needs_ids() -> None:
    with pytest.raises(InvalidInputError, match=r"quality .*mapping by id"):
        read_numbers([Document("x")], {"a": 1.0}, "quality", itself)


@pytest.mark.parametrize("value", [np.nan, "7", None])
def test_a_value_that_is_no_number_is_named(value: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"costs of item 1 \(id 'b'\) is ('{value}', which is not|missing)"):
        read_numbers([SimpleNamespace(id="a"), SimpleNamespace(id="b")], {"a": 1, "b": value}, "costs", itself)


def test_a_key_that_the_metadata_lacks_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'best'.*'good'"):
        read_numbers(DOCUMENTS, "best", "quality", itself)


def test_names_are_read_like_numbers() -> None:
    assert read_some(DOCUMENTS, "good", "source") == [1, 2.5]
    assert read_some(DOCUMENTS, lambda item: item.id, "source") == ["a", "b"]
    assert read_some(DOCUMENTS, {"b": "y.md", "a": "x.md"}, "source") == ["x.md", "y.md"]


def test_orders() -> None:
    relevance = [0.2, 0.9, 0.5, 0.9]
    assert sort_items("abcd", relevance, "relevance") == list("bdca")
    assert sort_items("abcd", relevance, "nearest_last") == list("acbd")
    for order in get_args(Settings.model_fields["order"].annotation):
        assert sort_items([], [], order) == []


# Examples, the keys that are embedded, and the text: in the order of the keys' names, without what is missing.
TEXTS: list[tuple[dict[str, Any], list[str] | None, str]] = [
    ({"question": "1 + 1", "answer": "2"}, None, "2 1 + 1"),
    ({"b": "y", "a": "x", "c": "z"}, ["c", "a"], "x z"),
    ({"question": "1 + 1", "hint": None}, ["question", "hint"], "1 + 1"),
    ({"question": "1 + 1", "hint": np.datetime64("NaT")}, ["hint", "question"], "1 + 1"),
    ({"question": "1 + 1", "number": 0, "sure": False}, None, "0 1 + 1 False"),
]
# Examples that have no text, the keys, the type of the error, and words of its message.
WITHOUT_TEXT: list[tuple[Any, list[str] | None, type[Exception], str]] = [
    ({"p": "y"}, ["q"], InvalidParameterError, "'q'.*example 1.*p"),
    ({"q": None}, ["q"], InvalidInputError, "example 1.*'q'"),
    ({}, None, InvalidInputError, "example 1.*any key.*input_variables"),
    ("x", None, InvalidInputError, "example 1.*'x'"),
]


@pytest.mark.parametrize(("example", "keys", "text"), TEXTS)
def test_the_text_of_an_example(example: dict[str, Any], keys: list[str] | None, text: str) -> None:
    assert join_values(example, keys) == text


@pytest.mark.parametrize(("example", "keys", "error", "words"), WITHOUT_TEXT)
def test_an_example_without_text_is_named(
    example: Any, keys: list[str] | None, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        join_values(example, keys, "example 1")
