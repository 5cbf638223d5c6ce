"""A missing value means the same as no value, for every key: some stores keep it, others drop it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from setselect import Coverage, InvalidInputError
from tests.adapters.bindings import QUERY, RETRIEVERS, Subject, falling, numbers, over

# The cosine with the question falls from row to row. Row 4 is a copy of row 0.
PARK = "It flows through Lys Park, nan, NaT and None."
TEXTS = [PARK, "A sea.", "A lake.", "A hill.", PARK, "A wood."]
M = object()  # stands for the missing value in the table
NEAREST: dict[str, Any] = {"selector": "similarity", "k": 4}
# What the rows have under the key, the settings that read it, and the picks; or the id that the error names.
CASES: list[tuple[list[Any], dict[str, Any], list[int] | str]] = [
    (["a", M, "a", M, "a", "b"], {"source": "key", "max_per_source": 1, **NEAREST}, [0, 1, 3, 5]),
    ([M, M, M, M, 1, M], {"prefer": "key", **NEAREST, "k": 3}, [1, 2, 3]),
    (["x", M, M, "y", M, "x"], {"cover": "key", "selector": Coverage(cover_weight=99), "k": 2}, [0, 3]),
    ([M, M, M, "Lys Park", M, M], {"title": "key", "selector": Coverage(reference_weight=99), "k": 2}, [0, 3]),
    (["doc-5", M, M, M, M, M], {"links": "key", "selector": Coverage(reference_weight=99), "k": 2}, [0, 5]),
    ([1, 1, M, 1, 1, 1], {"costs": "key", "budget": 2, **NEAREST}, "doc-2"),
    ([1, 1, M, 1, 1, 1], {"quality": "key", "selector": "mmr", "k": 2}, "doc-2"),
    ([1, 1, M, 1, 1, 1], {"relevance": "key", "selector": "mmr", "k": 2}, "doc-2"),
]
ABSENT: dict[str, Any] = {}


@over(RETRIEVERS)
@pytest.mark.parametrize("held", [ABSENT, *({"key": value} for value in (None, float("nan"), " \n", pd.NA))], ids=repr)
def test_a_missing_value_is_that_of_a_document_without_the_key(subject: Subject, held: dict[str, Any]) -> None:
    if subject is RETRIEVERS[1] and held.get("key") is pd.NA:
        pytest.skip("LlamaIndex writes its nodes as JSON, also those in memory")
    for values, settings, picks in CASES:
        rows = [
            row._replace(metadata={"number": i, **(held if value is M else {"key": value})})
            for i, (row, value) in enumerate(zip(falling(TEXTS), values, strict=True))
        ]
        made = subject.make(subject.open(rows, subject.kinds[0]), **settings)
        if isinstance(picks, str):
            with pytest.raises(InvalidInputError, match=f"{next(iter(settings))}.*{picks}"):
                subject.run(made)
        else:
            assert numbers(subject.run(made, query=QUERY)) == picks, settings
