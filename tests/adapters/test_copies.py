"""What the store holds now counts: changed stores, filters for each candidate, and metadata of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from setselect import SetSelectError
from shared_core.facts import ADDRESS_KEYS, DOCUMENT_ID, IDENTIFIER_KEYS, PAGE_KEYS, PLACE_KEYS, SOURCE_KEYS, TITLE_KEYS
from tests.adapters.bindings import ROWS, numbers
from tests.adapters.test_extra_retrievers import LANGCHAIN

KEYS = [*TITLE_KEYS, *IDENTIFIER_KEYS, *SOURCE_KEYS, *ADDRESS_KEYS, *PLACE_KEYS, *PAGE_KEYS, DOCUMENT_ID, "start_index"]


# Arrays as metadata


@pytest.mark.parametrize("array", [np.array(["a.md", "b.md"]), np.array([1.0, 2.0]), np.array([])], ids=str)
def test_an_array_is_a_missing_value_or_a_list(array: Any) -> None:
    arrays, lists = dict.fromkeys(KEYS, array), dict.fromkeys(KEYS, array.tolist())

    def run(values: dict[str, Any], **settings: Any) -> Any:
        store = LANGCHAIN.open([row._replace(metadata=values | row.metadata) for row in ROWS[:20]], "in memory")
        try:
            settings |= {"k": 3, "follow": True, "join_neighbours": True, "scores": True}
            return numbers(LANGCHAIN.run(LANGCHAIN.make(store, **settings)))
        except SetSelectError as error:
            return str(error)

    assert run(arrays) == run(lists)
    for setting in ("source", "title", "identifier", "cover"):
        assert run(arrays, **{setting: "title"}) == run(lists, **{setting: "title"})
    assert run(arrays, max_per_source=1) == run(lists, max_per_source=1)
