"""Arguments without effect, over every interface: each gives one warning that names it, and none where it has one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from setselect import Coverage, References, Selector, SetSelectWarning, match_words, select, select_many
from shared_core.selection.effects import NEEDS, NEEDS_CAPABILITY
from tests.shared_core.cases import gaussian

QUERY, VECTORS = gaussian(90, 11, 5)
TEXTS = [f"Ann {letter}" for letter in "abcdefghijk"]
NUMBERS = [float(row) for row in range(11)]


def texts_by_id(ids: Iterable[Any]) -> dict[Any, str]:
    return {name: TEXTS[int(name)] for name in ids}


def select_rows(**settings: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from shared_core.batch.tables import TableSelector

    columns = {"id": [0], "vector": [QUERY], "question": ["a"], "hits": [[*range(11)]], "numbers": [NUMBERS]}
    given = {"candidates_column": "hits", **settings}
    TableSelector(lambda ids: dict(enumerate(VECTORS)), 2, **given)(pa.table(columns))


def make_adapter(place: int) -> Callable[..., Any]:
    def make(**settings: Any) -> None:
        pytest.importorskip("langchain_core")
        pytest.importorskip("llama_index.core")
        from tests.adapters.bindings import RETRIEVERS

        # Copies are left out by default, and ``prefer`` says which.
        RETRIEVERS[place].make(RETRIEVERS[place].corpus(), **{"drop_duplicates": False, **settings})

    return make


@dataclass(frozen=True)
class Interface:
    """How it is called, a value for each of its arguments, and with which others an argument must come."""

    call: Callable[..., Any]
    values: dict[str, Any]
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Arguments that it lacks although its messages name them.
    lacking: tuple[str, ...] = ()
    # Arguments that have no effect without others, and of which it does not warn: a later call may give the others.
    silent: tuple[str, ...] = ()

    def warnings_of(self, selector: str | Selector, *given: str, **more: Any) -> list[str]:
        """The messages if these arguments are given."""
        values = {name: self.values[name] for name in given}
        for name in given:
            values = {**self.others.get(name, {}), **values}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.call(selector=selector, **values, **more)
        return [str(warning.message) for warning in caught if warning.category is SetSelectWarning]


WORDS = {"question": "a", "texts": TEXTS}
SELECT = Interface(
    lambda **given: select(QUERY, VECTORS, 2, **given),
    {
        **WORDS, "relevance_scale": "rank", "relevance": NUMBERS, "quality": NUMBERS, "cover": TEXTS,
        "references": np.eye(11), "titles": TEXTS, "identifiers": TEXTS, "neighbours": [*range(11)],
        "costs": NUMBERS, "budget": 99, "sources": TEXTS,
        "max_per_source": 9, "prefer": NUMBERS, "drop_near_duplicates": 0.9, "min_k": 3, "min_gain": 0.5,
    },
    {
        **dict.fromkeys(("question", "texts", "titles", "identifiers"), WORDS),
        "neighbours": {**WORDS, "sources": TEXTS},
    },
)  # fmt: skip
MANY = Interface(
    lambda **given: select_many([QUERY], VECTORS, 2, **given),
    {
        "relevance_scale": "rank", "relevance": [NUMBERS], "quality": NUMBERS, "cover": TEXTS,
        "words": [match_words("a b", TEXTS)], "references": References(np.eye(11, dtype=np.float32), np.arange(11)),
    },
)  # fmt: skip
BY_ID = {"texts": texts_by_id, "question_column": "question"}
TABLE = Interface(
    select_rows,
    {"relevance_scale": "rank", "relevance_column": "numbers", "texts": texts_by_id, "titles": texts_by_id},
    {"texts": BY_ID, "titles": BY_ID},
    lacking=("quality", "cover"),
)
SETTINGS = {
    "relevance_scale": "rank", "relevance": "number", "quality": "number", "cover": "topic",
    "costs": "number", "prefer": "number", "drop_near_duplicates": 0.9, "drop_duplicates": True, "min_k": 3,
    "min_gain": 0.5, "title": "topic", "identifier": "topic", "links": "topic", "neighbours": "number",
    "follow": True, "perspective": str.upper,
    "perspective_vector": "difference", "direction": "emphasize", "corpus": True, "extra_k": 20, "keyword_search": True,
}  # fmt: skip
ADAPTERS = [Interface(make_adapter(place), SETTINGS, silent=("costs",)) for place in (0, 1)]
INTERFACES = {
    "select": SELECT,
    "select_many": MANY,
    "TableSelector": TABLE,
    "LangChain": ADAPTERS[0],
    "LlamaIndex": ADAPTERS[1],
}


def rows_of(table: Iterable[str]) -> pytest.MarkDecorator:
    rows = [(interface, name) for interface, made in INTERFACES.items() for name in table if name in made.values]
    return pytest.mark.parametrize(("interface", "name"), rows)


def assert_names(messages: list[str], name: str) -> None:
    assert len(messages) == 1
    assert name in messages[0].partition(" no effect ")[0].split()


def test_every_row_is_one_of_some_interface() -> None:
    assert {*NEEDS, *NEEDS_CAPABILITY} <= {name for made in INTERFACES.values() for name in made.values}


@rows_of(NEEDS)
def test_an_argument_without_another_one(interface: str, name: str) -> None:
    made, selector = INTERFACES[interface], "mmr" if name == "quality" else "coverage"
    needed = [need for need in NEEDS[name] if need in made.values]
    alone = made.warnings_of(selector, name)
    if name in made.silent or not {*needed, *made.lacking} & {*NEEDS[name]}:
        assert alone == []
    else:
        assert_names(alone, name)
        assert all(need in alone[0] for need in needed)
    for need in needed:
        assert made.warnings_of(selector, name, need) == []


@rows_of(NEEDS_CAPABILITY)
def test_an_argument_that_the_selector_cannot_use(interface: str, name: str) -> None:
    made = INTERFACES[interface]
    assert_names(made.warnings_of("similarity", name), name)
    assert made.warnings_of("mmr" if name == "quality" else "coverage", name) == []
    if NEEDS_CAPABILITY[name] == "references":
        assert_names(made.warnings_of(Coverage(reference_weight=0), name), name)


def test_titles_beside_references() -> None:
    assert_names(SELECT.warnings_of("coverage", "titles", "references"), "titles")
