"""What users of the adapters ask for: every default and check of `Request`, and the choice among items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from shared_core import (
    MMR,
    NDPP,
    PAP,
    VRSD,
    BudgetError,
    InvalidInputError,
    InvalidParameterError,
    PerspectiveError,
    SetSelectWarning,
    TopK,
)
from shared_core._validation import check_one_of
from shared_core.retrieval.items import ORDERS, item_names, ordered, stacked
from shared_core.retrieval.request import WIDEST, Asked, Request
from tests import oracles
from tests.shared_core.cases import gaussian


@dataclass(frozen=True)
class Item:
    """As much of a LangChain document as the core looks at."""

    id: str | None
    metadata: dict[str, Any] = field(default_factory=dict)


def parsed(**settings: Any) -> Request:
    request, rest = Request.parse(settings)
    assert rest == {}
    return request


def chosen(items: list[Item], query: Any, vectors: Any, **settings: Any) -> list[Item]:
    request = parsed(**settings)
    return request.choose(items, [item.id for item in items], vectors, request.asked(query, None))[0]


def items_of(n: int) -> list[Item]:
    return [Item(f"id{i}", {"words": i % 4 + 1, "rank": -i / 10, "file": f"{i % 3}.md"}) for i in range(n)]


# --- parse ----------------------------------------------------------------------------------------


def test_what_is_asked_for_by_nothing_at_all() -> None:
    request = parsed()
    assert (request.k, request.fetch_k, request.selector) == (4, 20, VRSD())
    assert (request.shown, request.corpus, request.direction, request.perspective_vector) == (
        (),
        False,
        "remove",
        "text",
    )
    for name in (
        "score_threshold",
        "budget",
        "costs",
        "quality",
        "source",
        "max_per_source",
        "drop_near_duplicates",
        "perspective",
    ):
        assert getattr(request, name) is None, name


@pytest.mark.parametrize(
    ("settings", "k", "fetch_k"),
    [
        ({"k": 1}, 1, 20),
        ({"k": 4}, 4, 20),
        ({"k": 5}, 5, 25),
        ({"k": np.int64(10)}, 10, 50),
        ({"k": 10, "fetch_k": 10}, 10, 10),
        ({"fetch_k": 7}, 4, 7),
        ({"budget": 100, "costs": len}, None, 50),
        ({"budget": 100, "costs": len, "fetch_k": 1}, None, 1),
        ({"budget": 100, "costs": len, "k": 6}, 6, 30),
        ({"shown": ["a", "b", "c"]}, 4, 23),
        ({"shown": ["a"], "k": 3, "fetch_k": 3}, 3, 4),
        ({"shown": {"a", "b"}, "budget": 9, "costs": "words"}, None, 52),
    ],
)
def test_how_many_are_fetched(settings: dict[str, Any], k: int | None, fetch_k: int) -> None:
    request = parsed(**settings)
    assert (request.k, request.fetch_k) == (k, fetch_k)


@pytest.mark.parametrize(
    ("settings", "selector"),
    [
        ({"selector": "mmr"}, MMR(lambda_d=0.5)),
        ({"selector": "mmr", "lambda_mult": 0.3}, MMR(lambda_d=0.3)),
        ({"selector": "mmr", "lambda_d": 0.75}, MMR(lambda_d=0.75)),
        ({"selector": "mmr", "lambda_b": 0.5}, MMR(lambda_d=0.5, lambda_b=0.5)),
        ({"selector": MMR()}, MMR(lambda_d=0.75)),
        ({"selector": "similarity"}, TopK()),
        ({"refine": True}, VRSD(refine=True)),
        ({"selector": "ndpp", "relevance": "exponential", "temperature": 2.0}, NDPP(None, "exponential", 2.0)),
    ],
)
def test_selectors_by_name_and_parameters(settings: dict[str, Any], selector: Any) -> None:
    assert parsed(**settings).selector == selector


def test_what_is_none_of_ours_is_handed_back() -> None:
    settings = {"k": 3, "filter": {"a": 1}, "refine": True, "namespace": "x"}
    request, rest = Request.parse(settings)
    assert rest == {"filter": {"a": 1}, "namespace": "x"}
    assert request.selector == VRSD(refine=True)
    assert settings == {"k": 3, "filter": {"a": 1}, "refine": True, "namespace": "x"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("fetchk", "fetch_k"),
        ("lambda_mul", "lambda_mult"),
        ("max_per_sources", "max_per_source"),
        ("drop_near_duplicate", "drop_near_duplicates"),
        ("score_treshold", "score_threshold"),
        ("budgets", "budget"),
        ("cost", "costs"),
        ("sources", "source"),
        ("selectors", "selector"),
        ("perspectives", "perspective"),
        ("refined", "refine"),
    ],
)
def test_a_name_almost_right_is_refused_with_the_right_one(typed: str, meant: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"'{typed}'.*'{meant}'\?"):
        Request.parse({typed: 1})


P = InvalidParameterError
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(({"k": k}, P, "k must be") for k in (0, -1, True, 2.5, "3", np.nan)),
    *(({"fetch_k": n}, P, r"fetch_k \(of which k=4") for n in (0, 3, -1, True, 20.0, "20")),
    ({"k": 30, "fetch_k": 20}, P, r"fetch_k \(of which k=30 are chosen\) must be at least 30, got 20"),
    ({"budget": 9, "costs": len, "fetch_k": 0}, P, "fetch_k"),
    *(({"score_threshold": x}, P, r"score_threshold \(a cosine\)") for x in (1.01, -1.5, np.nan, np.inf, "0.5", True)),
    *(({"drop_near_duplicates": x}, P, "drop_near_duplicates") for x in (1.01, -1.5, np.nan, "0.9", False)),
    *(({"max_per_source": x, "source": "file"}, P, "max_per_source") for x in (0, -1, True, 1.5, "2")),
    *(({"budget": x, "costs": len}, P, "budget") for x in (np.nan, np.inf, "9", True)),
    ({"budget": 9}, BudgetError, "needs costs"),
    *(({name: 5}, P, f"{name} must be") for name in ("costs", "quality", "source")),
    ({"shown": "a"}, P, r"\['a'\]"),
    ({"shown": ["a", None]}, P, "None"),
    ({"shown": 5}, P, "shown"),
    ({"shown": [["a"]]}, P, "shown"),
    ({"selector": "vsrd"}, P, "vrsd"),
    ({"selector": VRSD}, P, "selector"),
    ({"selector": 3}, P, "selector"),
    ({"selector": "similarity_score_threshold"}, P, "say 'similarity' and give score_threshold"),
    ({"lambda_mult": 0.5}, P, "vrsd.*lambda_mult"),
    ({"selector": "mmr", "lambda_mult": 0.5, "lambda_d": 0.5}, P, "same parameter"),
    ({"selector": "mmr", "lambda_mult": 1.5}, P, "lambda_mult"),
    ({"selector": MMR(), "lambda_mult": 0.5}, P, "is an object"),
    ({"selector": "ndpp", "temperature": 0}, P, "temperature"),
    ({"direction": "away"}, P, "direction must be one of remove, emphasize"),
    ({"corpus": "yes"}, P, "corpus must be True or False"),
    ({"perspective_vector": "root"}, P, "perspective_vector must be one of"),
    ({"perspective": "against", "perspective_vector": "difference"}, P, "needs the root query"),
    ({"perspective": "  "}, PerspectiveError, "empty text"),
    ({"perspective": [0.0, 0.0]}, PerspectiveError, "zero"),
    ({"perspective": [np.nan, 1.0]}, PerspectiveError, "NaN"),
    ({"perspective": 5}, PerspectiveError, "one vector"),
]


@pytest.mark.parametrize(("settings", "error", "words"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_out_of_range_is_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Request.parse(settings)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    for cosine in (-1, 0, 1, np.float32(0.5)):
        assert parsed(score_threshold=cosine).score_threshold == cosine
        assert parsed(drop_near_duplicates=cosine).drop_near_duplicates == cosine
    assert parsed(k=20, fetch_k=20).fetch_k == 20
    assert parsed(max_per_source=1, source="file").max_per_source == 1
    assert parsed(perspective="against", direction="emphasize", corpus=True).corpus is True


# --- the query ------------------------------------------------------------------------------------


def test_the_query_as_it_is_searched_for() -> None:
    query, side = np.random.default_rng(0).normal(size=(2, 6))
    plain = parsed().asked(query.tolist(), None)
    assert plain.pap is None
    assert plain.searched == query.tolist()
    seen = parsed(perspective=side).asked(query.tolist(), None)
    np.testing.assert_allclose(seen.searched, oracles.pap(query, side), rtol=1e-12)
    by_text = parsed(perspective="against", direction="emphasize").asked(query.tolist(), side.tolist())
    np.testing.assert_allclose(by_text.searched, oracles.pap(query, side, "emphasize"), rtol=1e-12)
    assert isinstance(by_text.searched, list)


@pytest.mark.parametrize(("query", "words"), [([0.0, 0.0], "zero"), ([np.nan, 1.0], "NaN"), ([np.inf, 1.0], "inf")])
def test_a_query_without_direction_is_refused(query: list[float], words: str) -> None:
    for settings in ({}, {"perspective": [1.0, 0.0]}):
        with pytest.raises(InvalidInputError, match=words):
            parsed(**settings).asked(query, None)


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_lists", [False, True])
def test_the_choice_is_the_selectors(as_lists: bool) -> None:
    query, vectors = gaussian(1, 15, 8)
    given = vectors.tolist() if as_lists else vectors
    items = items_of(15)
    expected = oracles.vrsd(query, vectors, 5)
    assert chosen(items, query.tolist(), given, k=5) == [items[i] for i in expected.picks]
    assert chosen(items, query.tolist(), given, k=5, selector="mmr") == [
        items[i] for i in oracles.mmr(query, vectors, 5, lambda_d=0.5).picks
    ]
    assert len(chosen(items, query.tolist(), given, k=40)) == 15


def test_a_bad_row_is_named_and_so_is_a_row_too_many() -> None:
    query, vectors = gaussian(1, 15, 8, np.float32)
    with pytest.raises(InvalidInputError, match="ids must be 15"):
        parsed(k=5).choose(items_of(14), [str(row) for row in range(14)], vectors, parsed().asked(query, None))
    vectors[3, 1] = np.nan
    items = items_of(15)
    with pytest.raises(InvalidInputError, match=rf"^vectors: row 3 \(id {items[3].id!r}\) holds NaN"):
        chosen(items, query, vectors, k=5)


@pytest.mark.parametrize("vectors", [np.float64(1.0), np.zeros(15), np.zeros((15, 2, 2))], ids=["0-d", "1-d", "3-d"])
def test_vectors_of_another_shape_are_refused(vectors: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^vectors must have shape \(n, d\)"):
        chosen(items_of(15), [1.0, 0.0], np.asarray(vectors), k=5)


def test_of_items_with_one_id_the_first_counts() -> None:
    query, vectors = gaussian(2, 8, 6)
    items = [Item(name, {"row": row}) for row, name in enumerate("abacbdea")]
    picks = chosen(items, query, vectors, k=8)
    assert sorted(item.metadata["row"] for item in picks) == [0, 1, 3, 5, 6]
    expected = oracles.vrsd(query, vectors[[0, 1, 3, 5, 6]], 5).picks
    assert [item.metadata["row"] for item in picks] == [[0, 1, 3, 5, 6][i] for i in expected]


@pytest.mark.parametrize(
    "names",
    [
        "abcdefgh",
        "abacbdea",
    ],
)
def test_the_indices_of_the_selection_are_rows_of_the_items(names: str) -> None:
    query, vectors = gaussian(2, 8, 6)
    items = [Item(name, {"row": row}) for row, name in enumerate(names)]
    request = parsed(k=8)
    picks, selection, _ = request.choose(items, list(names), vectors, request.asked(query, None))
    assert [items[row] for row in selection.indices] == picks
    np.testing.assert_allclose(selection.relevance, oracles.cosines(query, vectors[selection.indices]), rtol=1e-9)


def test_items_without_an_id_all_count_and_are_never_shown() -> None:
    query, vectors = gaussian(3, 6, 6)
    items = [Item(None, {"row": row}) for row in range(4)] + [Item("a", {"row": 4}), Item("b", {"row": 5})]
    assert len(chosen(items, query, vectors, k=6)) == 6
    rest = chosen(items, query, vectors, k=6, shown=["a", "elsewhere"])
    assert sorted(item.metadata["row"] for item in rest) == [0, 1, 2, 3, 5]


def test_what_was_shown_is_gone_on_from() -> None:
    query, vectors = gaussian(4, 12, 8)
    items = items_of(12)
    expected = oracles.vrsd(query, vectors, 4, shown=[3, 7])
    assert chosen(items, query, vectors, shown=["id3", "id7"]) == [items[i] for i in expected.picks]
    assert chosen(items, query, vectors, shown=np.array(["id3", "id7"])) == [items[i] for i in expected.picks]
    assert chosen(items, query, vectors, shown=[item.id for item in items]) == []


def by_key_function_and_mapping(items: list[Item], key: str) -> list[Any]:
    return [key, lambda item: item.metadata[key], {item.id: item.metadata[key] for item in items}]


def test_costs_by_key_function_and_mapping() -> None:
    query, vectors = gaussian(5, 12, 8)
    items = items_of(12)
    costs = [item.metadata["words"] for item in items]
    expected = [items[i] for i in oracles.vrsd(query, vectors, costs=costs, budget=7).picks]
    for source in by_key_function_and_mapping(items, "words"):
        assert chosen(items, query, vectors, budget=7, costs=source) == expected


def test_quality_by_key_function_and_mapping() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    quality = [item.metadata["rank"] for item in items]
    given: dict[str, Any] = {"selector": "mmr", "lambda_b": 0.3}
    expected = [items[i] for i in oracles.mmr(query, vectors, 4, quality=quality, lambda_d=0.5, lambda_b=0.3).picks]
    assert expected != chosen(items, query, vectors, **given)
    for source in by_key_function_and_mapping(items, "rank"):
        assert chosen(items, query, vectors, quality=source, **given) == expected


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(0, id="key"),
        pytest.param(1, id="function"),
        pytest.param(2, id="mapping"),
    ],
)
def test_sources_by_key_function_and_mapping(way: int) -> None:
    query, vectors = gaussian(7, 12, 8)
    items = items_of(12)
    sources = [item.metadata["file"] for item in items]
    expected = [items[i] for i in oracles.vrsd(query, vectors, 6, sources=sources, max_per_source=1).picks]
    source = by_key_function_and_mapping(items, "file")[way]
    assert chosen(items, query, vectors, k=6, source=source, max_per_source=1) == expected
    assert len(expected) == 3


def test_the_limits_hold_among_items() -> None:
    query, vectors = gaussian(8, 10, 6)
    vectors[6] = 2 * vectors[2]
    items = items_of(10)
    picks = chosen(items, query, vectors, k=10, drop_near_duplicates=0.999)
    assert len(picks) == 9
    assert len({"id2", "id6"} & {item.id for item in picks}) == 1
    with pytest.raises(InvalidParameterError, match="max_per_source needs source="):
        parsed(max_per_source=1)


def test_a_threshold_and_a_perspective() -> None:
    query, vectors = gaussian(9, 14, 6)
    side = np.random.default_rng(90).normal(size=6)
    items = items_of(14)
    seen, rows = oracles.pap_plus_explicit(query, side, vectors)
    cos = oracles.cosines(seen, rows)
    threshold = float(np.median(cos)) - 1e-3
    near = [i for i in np.argsort(-cos) if cos[i] >= threshold]
    assert 2 <= len(near) < 14, "a case that shows nothing"
    request = parsed(perspective=side, corpus=True, score_threshold=threshold, k=14, selector="similarity")
    asked = request.asked(query, None)
    assert isinstance(asked.pap, PAP)
    picks, selection, _ = request.choose(items, [item.id for item in items], vectors, asked)
    assert picks == [items[i] for i in near]
    np.testing.assert_allclose(selection.relevance, cos[near], rtol=1e-9)


@pytest.mark.parametrize("name", ["quality", "costs", "source"])
def test_an_item_without_the_key_is_named(name: str) -> None:
    items = items_of(5)
    del items[3].metadata["words"]
    more = {"max_per_source": 1} if name == "source" else {}
    with pytest.raises(InvalidInputError, match=rf"{name} .*'words'.*item 3"):
        chosen(items, *gaussian(10, 5, 4), **{name: "words"}, **more)


def test_vectors_of_two_lengths_are_refused_by_id() -> None:
    query, vectors = gaussian(11, 4, 5)
    rows = vectors.tolist()
    rows[2] = rows[2][:3]
    with pytest.raises(InvalidInputError, match="'id2' has length 3, that of 'id0' has 5"):
        chosen(items_of(4), query, rows)
    with pytest.raises(InvalidInputError, match="'c' has length 2, that of 'a' has 1"):
        stacked([[1.0], [2.0], [1.0, 2.0]], ["a", "b", "c"])
    assert stacked(vectors, ["a", "b", "c", "d"]) is vectors


def wider(fetch_k: int = 12, n: int = 12, widest: int = WIDEST, **settings: Any) -> int | None:
    """What a retriever is told after a choice among 12 items of 3 files that cost 1 each."""
    query, vectors = gaussian(11, 12, 6)
    items = [Item(f"id{row}", {"file": f"{row % 3}.md"}) for row in range(n)]
    request = parsed(**settings)
    choice = request.choose(items, [item.id for item in items], vectors[:n], request.asked(query, None))
    return request.wider(choice, n, fetch_k, widest)


def test_more_is_wanted_only_where_a_limit_cut_the_set_short() -> None:
    one_each: dict[str, Any] = {"max_per_source": 1, "source": "file"}
    assert wider(k=5, **one_each) == 48, "three files, five wanted"
    assert wider(k=3, **one_each) is None, "three are there"
    assert wider(k=5, drop_near_duplicates=-0.9) == 48
    assert wider(k=5) is None, "no limit"
    assert wider(k=5, fetch_k=20, **one_each) is None, "the store is used up"
    assert wider(k=5, score_threshold=0.0, **one_each) is None, "what lies beyond is below the threshold"
    assert wider(k=5, budget=100, costs=lambda _: 1, **one_each) == 48, "money is left"
    assert wider(k=5, budget=3, costs=lambda _: 1, **one_each) is None, "the budget ended the choice"
    assert wider(budget=100, costs=lambda _: 1, **one_each) == 48
    assert wider(k=5, fetch_k=6000, n=12, **one_each) is None


def test_widening_ends_with_a_warning() -> None:
    with pytest.warns(SetSelectWarning, match="no more than 12 are fetched unasked.*fetch_k="):
        assert wider(k=5, max_per_source=1, source="file", widest=12) is None


# --- the helpers ----------------------------------------------------------------------------------


def test_orders() -> None:
    relevance = [0.2, 0.9, 0.5, 0.9]
    assert ordered("abcd", relevance, "selection") == list("abcd")
    assert ordered("abcd", relevance, "relevance") == list("bdca")
    assert ordered("abcd", relevance, "nearest_last") == list("acbd")
    assert ordered([], [], "relevance") == []
    for order in ORDERS:
        assert check_one_of(order, "order", ORDERS) == order
    with pytest.raises(InvalidParameterError, match="selection, relevance, nearest_last, got 'newest'"):
        check_one_of("newest", "order", ORDERS)


def test_names_of_items() -> None:
    items = items_of(4)
    assert item_names(items, "file", "source") == ["0.md", "1.md", "2.md", "0.md"]
    assert item_names(items, lambda item: item.id, "source") == ["id0", "id1", "id2", "id3"]
    with pytest.raises(
        InvalidInputError, match=r"source .*'page', but item 0 \(id 'id0'\) has no such key; it has 'words'"
    ):
        item_names(items, "page", "source")
    with pytest.raises(InvalidInputError, match="none"):
        item_names([Item("a")], "page", "source")


def test_a_query_with_neither_items_nor_rows_is_the_callers_to_catch() -> None:
    with pytest.raises(InvalidInputError, match="n >= 1"):
        parsed().choose([], [], [], Asked([1.0], None))
