"""The arguments without effect, over every interface: each gives one warning that names it, or none if it has one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from setselect import References, SetSelectWarning, match_words, select, select_many
from shared_core.selection.effects import NEEDS, NEEDS_CAPABILITY
from shared_core.selectors.registry import make_selector
from tests.shared_core.cases import gaussian

QUERY, VECTORS = gaussian(90, 11, 5)
TEXTS = [f"Ann {letter}" for letter in "abcdefghijk"]
NUMBERS = [float(row) for row in range(11)]
PARTS = match_words("a b", TEXTS)
# A value of each argument that is a parameter of a selector, or that every interface takes in the same way.
VALUES: dict[str, Any] = {
    "lambda_b": 0.5,
    "word_weight": 0.5,
    "cover_weight": 0.5,
    "reference_weight": 0.5,
    "relevance_scale": "rank",
    "min_k": 3,
    "min_gain": 0.5,
    "budget": 1000.0,
    "max_per_source": 9,
    "drop_near_duplicates": 0.9,
}
ARRAYS = {"quality": NUMBERS, "cover": TEXTS, "costs": NUMBERS, "sources": TEXTS, "prefer": NUMBERS}
# For each interface: how it is called, the values of its arguments, and what an argument cannot do without.
INTERFACES: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, list[str]]]] = {
    "select": (
        lambda **given: select(QUERY, VECTORS, 2, **given),
        VALUES
        | ARRAYS
        | {"relevance": NUMBERS, "references": np.eye(11), "question": "a", "texts": TEXTS, "titles": TEXTS},
        {"max_per_source": ["sources"], "titles": ["texts"], "texts": ["question"], "question": ["texts"]}
        | {"budget": ["costs"]},
    ),
    "select_many": (
        lambda **given: select_many([QUERY], VECTORS, 2, **given),
        {name: VALUES[name] for name in ("lambda_b", "word_weight", "cover_weight", "reference_weight")}
        | {"relevance_scale": "rank", "relevance": [NUMBERS], "quality": NUMBERS, "cover": TEXTS}
        | {"words": [PARTS], "references": References(np.eye(11, dtype=np.float32), np.arange(11))},
        {},
    ),
    "select_table": (
        lambda **given: select_rows(**given),
        {name: VALUES[name] for name in ("lambda_b", "word_weight", "cover_weight", "reference_weight")}
        | {"relevance_scale": "rank", "relevance_column": "numbers", "texts": texts_by_id, "titles": texts_by_id}
        if (texts_by_id := lambda ids: dict(zip(map(str, range(11)), TEXTS, strict=True)))
        else {},
        {"relevance_column": ["candidates_column"], "texts": ["question_column"], "titles": ["texts"]},
    ),
}
