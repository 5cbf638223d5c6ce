"""Entries registered for a class, and names that are not known."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from setselect import InvalidParameterError
from shared_core.retrieval.inputs import find_registered, refuse_unknown


def test_the_nearest_base_class_counts_by_the_class_or_its_full_name() -> None:
    class Own(OrderedDict[str, int]):
        pass

    table: dict[type | str, str] = {dict: "dict"}
    assert find_registered(table, Own) == "dict"
    table["collections.OrderedDict"] = "ordered"
    assert find_registered(table, Own) == "ordered"
    table[Own] = "own"
    assert find_registered(table, Own) == "own"
    assert find_registered(table, list) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("lambda", "lambda_mult"),  # as other libraries call it
        ("fetchk", "fetch_k"),  # misspelt
        ("lamda_mult", "lambda_mult"),  # a misspelt parameter of a selector
        ("banana", "fetch_k, .*lambda_mult"),  # near to none: all are named
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, word: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"Retriever.*{name}.*{word}"):
        refuse_unknown("Retriever", [name], ["k", "fetch_k", "lambda_mult"])
    refuse_unknown("Retriever", ["fetch_k", "lambda_mult"], ["k", "fetch_k", "lambda_mult"])
