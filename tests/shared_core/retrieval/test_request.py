"""`Request`: its defaults, its checks, the selection among items, and the flows that the adapters build on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
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
    LinearKernel,
    PerspectiveError,
    SetSelectWarning,
    TopK,
)
from shared_core import select as core_select
from shared_core.retrieval import WIDEST, Flow, Found, Request, Selected, Step, run_flow, run_flow_async
from tests import oracles
from tests.shared_core.cases import gaussian


@dataclass(frozen=True)
class Item:
    """The fields of a LangChain document that the core reads."""

    id: str | None
    metadata: dict[str, Any] = field(default_factory=dict)
    text: str = ""


text_of = attrgetter("text")
KERNEL = LinearKernel(np.random.default_rng(5).normal(size=(8, 4)))


def parsed(**settings: Any) -> Request:
    request, rest = Request.parse(settings)
    assert rest == {}
    return request


def select(items: list[Item], query: Any, vectors: Any, **settings: Any) -> Selected:
    request = parsed(**settings)
    return request.select(Found(items, [item.id for item in items], text_of, vectors), request.as_query(query, None))


def picked(items: list[Item], query: Any, vectors: Any, **settings: Any) -> list[Item]:
    return select(items, query, vectors, **settings).items


def items_of(n: int) -> list[Item]:
    return [Item(f"id{i}", {"words": i % 4 + 1, "rank": -i / 10, "file": f"{i % 3}.md"}) for i in range(n)]


# --- parse ----------------------------------------------------------------------------------------


def test_defaults() -> None:
    request = parsed()
    assert (request.k, request.fetch_k, request.selector) == (4, 20, NDPP())
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
def test_fetch_k_follows_k_and_shown(settings: dict[str, Any], k: int | None, fetch_k: int) -> None:
    request = parsed(**settings)
    assert (request.k, request.fetch_k) == (k, fetch_k)


@pytest.mark.parametrize(
    ("settings", "selector"),
    [
        ({"selector": "mmr"}, MMR(lambda_mult=0.5)),
        ({"selector": "mmr", "lambda_mult": 0.3}, MMR(lambda_mult=0.3)),
        ({"selector": "mmr", "lambda_mult": 0.75}, MMR(lambda_mult=0.75)),
        ({"selector": "mmr", "lambda_b": 0.5, "quality": "rank"}, MMR(lambda_mult=0.5, lambda_b=0.5)),
        ({"selector": MMR(lambda_mult=0.75)}, MMR(lambda_mult=0.75)),
        ({"selector": "similarity"}, TopK()),
        ({"selector": "vrsd", "refine": True}, VRSD(refine=True)),
        ({"relevance_mapping": "linear"}, NDPP(relevance_mapping="linear")),
        ({"kernel": KERNEL}, NDPP(KERNEL)),
        ({"selector": "ndpp", "relevance_mapping": "exponential", "temperature": 2.0}, NDPP(None, "exponential", 2.0)),
    ],
)
def test_selectors_by_name_and_parameters(settings: dict[str, Any], selector: Any) -> None:
    assert parsed(**settings).selector == selector


def test_unknown_names_are_returned_for_the_store() -> None:
    settings = {"k": 3, "filter": {"a": 1}, "selector": "vrsd", "refine": True, "namespace": "x"}
    request, rest = Request.parse(settings)
    assert rest == {"filter": {"a": 1}, "namespace": "x"}
    assert request.selector == VRSD(refine=True)
    assert settings == {"k": 3, "filter": {"a": 1}, "selector": "vrsd", "refine": True, "namespace": "x"}


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
def test_a_misspelt_name_is_refused_with_the_right_one(typed: str, meant: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"'{typed}'.*'{meant}'\?"):
        Request.parse({typed: 1})


P = InvalidParameterError
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(({"k": k}, P, "k must be") for k in (0, -1, True, 2.5, "3", np.nan)),
    *(({"fetch_k": n}, P, r"fetch_k \(from which k=4") for n in (0, 3, -1, True, 20.0, "20")),
    ({"k": 30, "fetch_k": 20}, P, r"fetch_k \(from which k=30 are selected\) must be at least 30, got 20"),
    ({"budget": 9, "costs": len, "fetch_k": 0}, P, "fetch_k"),
    *(({"score_threshold": x}, P, r"score_threshold \(a cosine\)") for x in (1.01, -1.5, np.nan, np.inf, "0.5", True)),
    *(({"drop_near_duplicates": x}, P, "drop_near_duplicates") for x in (1.01, -1.5, np.nan, "0.9", False)),
    *(({"max_per_source": x, "source": "file"}, P, "max_per_source") for x in (0, -1, True, 1.5, "2")),
    *(({"budget": x, "costs": len}, P, "budget") for x in (np.nan, np.inf, "9", True)),
    ({"budget": 9}, BudgetError, "needs costs"),
    *(({name: 5, "selector": "mmr"}, P, f"{name} must be") for name in ("costs", "quality", "relevance", "source")),
    ({"shown": "a"}, P, r"\['a'\]"),
    ({"shown": ["a", None]}, P, "None"),
    ({"shown": 5}, P, "shown"),
    ({"shown": [["a"]]}, P, "shown"),
    ({"selector": "vsrd"}, P, "vrsd"),
    ({"selector": VRSD}, P, "selector"),
    ({"selector": 3}, P, "selector"),
    ({"selector": "similarity_score_threshold"}, P, "use 'similarity' and score_threshold="),
    ({"lambda_mult": 0.5}, P, r"'ndpp' has no parameter 'lambda_mult' \(a parameter of 'mmr'\)"),
    ({"refine": True}, P, r"'ndpp' has no parameter 'refine' \(a parameter of 'vrsd'\)"),
    ({"selector": "mmr", "lambda_mult": 1.5}, P, "lambda_mult"),
    ({"selector": MMR(), "lambda_mult": 0.5}, P, "is an object"),
    ({"selector": "ndpp", "temperature": 0}, P, "temperature"),
    ({"relevance_scale": "log"}, P, "relevance_scale must be one of minmax, rank, sigmoid"),
    ({"relevance": "votes", "score_threshold": "0.5"}, P, "score_threshold"),
    ({"drop_duplicates": "no"}, P, "drop_duplicates must be True or False"),
    ({"order": "best"}, P, "order must be one of selection, relevance, nearest_last, long_context"),
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
def test_values_out_of_range_are_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Request.parse(settings)


def test_the_ends_of_the_ranges_are_allowed() -> None:
    for cosine in (-1, 0, 1, np.float32(0.5)):
        assert parsed(score_threshold=cosine).score_threshold == cosine
        assert parsed(drop_near_duplicates=cosine).drop_near_duplicates == cosine
    assert parsed(k=20, fetch_k=20).fetch_k == 20
    assert parsed(max_per_source=1, source="file").max_per_source == 1
    assert parsed(perspective="against", direction="emphasize", corpus=True).corpus is True


# --- query ------------------------------------------------------------------------------------


def test_the_search_uses_the_projected_query() -> None:
    query, side = np.random.default_rng(0).normal(size=(2, 6))
    plain = parsed().as_query(query.tolist(), None)
    assert plain.pap is None
    assert plain.search_vector == query.tolist()
    projected = parsed(perspective=side).as_query(query.tolist(), None)
    np.testing.assert_allclose(projected.search_vector, oracles.pap(query, side), rtol=1e-12)
    by_text = parsed(perspective="against", direction="emphasize").as_query(query.tolist(), side.tolist())
    np.testing.assert_allclose(by_text.search_vector, oracles.pap(query, side, "emphasize"), rtol=1e-12)
    assert isinstance(by_text.search_vector, list)


@pytest.mark.parametrize(("query", "words"), [([0.0, 0.0], "zero"), ([np.nan, 1.0], "NaN"), ([np.inf, 1.0], "inf")])
def test_a_query_without_direction_is_refused(query: list[float], words: str) -> None:
    for settings in ({}, {"perspective": [1.0, 0.0]}):
        with pytest.raises(InvalidInputError, match=words):
            parsed(**settings).as_query(query, None)


# --- selection -----------------------------------------------------------------------------------


@pytest.mark.parametrize("as_lists", [False, True])
def test_the_picks_are_the_selectors(as_lists: bool) -> None:
    query, vectors = gaussian(1, 15, 8)
    given = vectors.tolist() if as_lists else vectors
    items = items_of(15)
    expected = oracles.vrsd(query, vectors, 5)
    assert picked(items, query.tolist(), given, k=5, selector="vrsd") == [items[i] for i in expected.picks]
    assert picked(items, query.tolist(), given, k=5, selector="mmr") == [
        items[i] for i in oracles.mmr(query, vectors, 5, lambda_mult=0.5).picks
    ]
    assert len(picked(items, query.tolist(), given, k=40)) == 15


def test_a_bad_row_and_a_missing_id_are_refused() -> None:
    query, vectors = gaussian(1, 15, 8, np.float32)
    with pytest.raises(InvalidInputError, match="ids must be 15"):
        picked(items_of(14), query, vectors, k=5)
    vectors[3, 1] = np.nan
    items = items_of(15)
    with pytest.raises(InvalidInputError, match=rf"^vectors: row 3 \(id {items[3].id!r}\) holds NaN"):
        picked(items, query, vectors, k=5)


@pytest.mark.parametrize("vectors", [np.float64(1.0), np.zeros(15), np.zeros((15, 2, 2))], ids=["0-d", "1-d", "3-d"])
def test_vectors_of_another_shape_are_refused(vectors: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^vectors must have shape \(n, d\)"):
        picked(items_of(15), [1.0, 0.0], np.asarray(vectors), k=5)


def test_of_items_with_one_id_the_first_counts() -> None:
    query, vectors = gaussian(2, 8, 6)
    items = [Item(name, {"row": row}) for row, name in enumerate("abacbdea")]
    picks = picked(items, query, vectors, k=8, selector="vrsd")
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
    selected = request.select(Found(items, list(names), text_of, vectors), request.as_query(query, None))
    selection = selected.selection
    assert [items[row] for row in selection.indices] == selected.items
    assert [names[row] for row in selection.indices] == selected.ids
    np.testing.assert_allclose(selection.relevance, oracles.cosines(query, vectors[selection.indices]), rtol=1e-9)


@pytest.mark.parametrize("selector", ["similarity", "vrsd", "mmr", "ndpp"])
def test_of_items_with_one_text_the_first_counts(selector: str) -> None:
    query, vectors = gaussian(2, 12, 6)
    vectors = np.repeat(vectors[:6], 2, axis=0)
    items = [Item(f"id{row}", {"row": row}, f"text {row // 2}") for row in range(12)]
    found = select(items, query, vectors, k=6, selector=selector)
    assert [item.text for item in found.items] == [
        f"text {i}" for i in core_select(query, vectors[::2], 6, selector).indices
    ]
    assert all(item.metadata["row"] % 2 == 0 for item in found.items)
    assert [items[row] for row in found.selection.indices] == found.items
    assert not found.cut_short
    assert len(picked(items, query, vectors, k=12, selector=selector)) == 6
    assert select(items, query, vectors, k=12, selector=selector).cut_short
    assert len(picked(items, query, vectors, k=12, selector=selector, drop_duplicates=False)) == 12


def test_of_items_with_one_text_the_one_with_the_highest_given_relevance_counts() -> None:
    query, vectors = gaussian(2, 3, 6)
    vectors = vectors[[0, 0, 1, 1, 2]]
    items = [
        Item(f"id{row}", {"worth": worth}, text)
        for row, (text, worth) in enumerate([("x", 0.9), ("x", 0.9), ("a", 0.1), ("a", 0.8), ("b", 0.3)])
    ]
    given: dict[str, Any] = {"selector": "similarity", "relevance": "worth"}
    assert [item.id for item in picked(items, query, vectors, k=3, **given)] == ["id0", "id3", "id4"]
    assert [item.id for item in picked(items, query, vectors, k=3, score_threshold=0.5, **given)] == ["id0", "id3"]
    # A shown item keeps its place, however little it is worth.
    assert [item.id for item in picked(items, query, vectors, k=3, shown=["id2"], **given)] == ["id0", "id4"]


def test_items_without_text_are_not_the_same() -> None:
    query, vectors = gaussian(2, 8, 6)
    assert len(picked(items_of(8), query, vectors, k=8)) == 8


def test_a_text_that_was_shown_is_not_returned_under_another_id() -> None:
    query, vectors = gaussian(2, 8, 6)
    items = [Item(f"id{row}", {}, f"text {row % 4}") for row in range(8)]
    # The shown ids are the second copies. They still count as shown.
    rest = picked(items, query, vectors, k=8, shown=["id4", "id5"])
    assert {item.text for item in rest} == {"text 2", "text 3"}
    assert len(rest) == 2
    assert len(picked(items, query, vectors, k=8, shown=["id4", "id5"], drop_duplicates=False)) == 6


def test_items_without_an_id_all_count_and_are_never_shown() -> None:
    query, vectors = gaussian(3, 6, 6)
    items = [Item(None, {"row": row}) for row in range(4)] + [Item("a", {"row": 4}), Item("b", {"row": 5})]
    assert len(picked(items, query, vectors, k=6)) == 6
    rest = picked(items, query, vectors, k=6, shown=["a", "elsewhere"])
    assert sorted(item.metadata["row"] for item in rest) == [0, 1, 2, 3, 5]


def test_the_selection_continues_from_what_was_shown() -> None:
    query, vectors = gaussian(4, 12, 8)
    items = items_of(12)
    expected = oracles.vrsd(query, vectors, 4, shown=[3, 7])
    for shown in (["id3", "id7"], np.array(["id3", "id7"])):
        assert picked(items, query, vectors, selector="vrsd", shown=shown) == [items[i] for i in expected.picks]
    assert picked(items, query, vectors, shown=[item.id for item in items]) == []


def by_key_function_and_mapping(items: list[Item], key: str) -> list[Any]:
    return [key, lambda item: item.metadata[key], {item.id: item.metadata[key] for item in items}]


def test_costs_by_key_function_and_mapping() -> None:
    query, vectors = gaussian(5, 12, 8)
    items = items_of(12)
    costs = [item.metadata["words"] for item in items]
    expected = [items[i] for i in oracles.vrsd(query, vectors, costs=costs, budget=7).picks]
    for source in by_key_function_and_mapping(items, "words"):
        assert picked(items, query, vectors, selector="vrsd", budget=7, costs=source) == expected


def test_quality_by_key_function_and_mapping() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    quality = [item.metadata["rank"] for item in items]
    given: dict[str, Any] = {"selector": "mmr", "lambda_b": 0.3}
    expected = [items[i] for i in oracles.mmr(query, vectors, 4, quality=quality, lambda_mult=0.5, lambda_b=0.3).picks]
    assert expected != picked(items, query, vectors, selector="mmr")
    for source in by_key_function_and_mapping(items, "rank"):
        assert picked(items, query, vectors, quality=source, **given) == expected


@pytest.mark.parametrize("selector", ["similarity", "mmr", "ndpp"])
@pytest.mark.parametrize("scale", ["minmax", "rank", "sigmoid", None])
def test_relevance_by_key_function_and_mapping(selector: str, scale: Any) -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    relevance = np.array([item.metadata["rank"] for item in items])
    wanted = core_select(query, vectors, 4, selector, relevance=relevance, relevance_scale=scale)
    for source in by_key_function_and_mapping(items, "rank"):
        found = select(items, query, vectors, relevance=source, relevance_scale=scale, selector=selector)
        assert found.selection.indices.tolist() == wanted.indices.tolist()
        assert found.selection.relevance.tolist() == relevance[wanted.indices].tolist(), "as given, not as scaled"
    assert wanted.indices.tolist() != select(items, query, vectors, selector=selector).selection.indices.tolist()


def test_relevance_and_a_kernel_need_no_selector() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    ranks = [item.metadata["rank"] for item in items]
    for settings, wanted in (
        ({"relevance": "rank"}, core_select(query, vectors, 4, "ndpp", relevance=ranks)),
        ({"kernel": KERNEL}, core_select(query, vectors, 4, "ndpp", kernel=KERNEL)),
    ):
        assert picked(items, query, vectors, **settings) == [items[i] for i in wanted.indices]
        assert picked(items, query, vectors, **settings) != picked(items, query, vectors)


def test_words_that_mean_no_key() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    plain = picked(items, query, vectors, selector="mmr")
    assert picked(items, query, vectors, selector="mmr", relevance="cosine") == plain
    assert parsed(selector="ndpp", relevance_mapping="exponential").selector == NDPP(relevance_mapping="exponential")
    assert parsed(relevance_mapping="exponential").selector == NDPP(relevance_mapping="exponential")
    with pytest.raises(InvalidParameterError, match=r"'vrsd' has no parameter 'relevance' \(a parameter of 'ndpp'\)"):
        parsed(selector="vrsd", relevance_mapping="exponential")


def test_vrsd_refuses_relevance_and_names_the_others() -> None:
    with pytest.raises(InvalidParameterError, match=r"mmr.*ndpp|ndpp.*mmr"):
        picked(items_of(12), *gaussian(6, 12, 8), selector="vrsd", relevance="rank")


def test_a_threshold_applies_to_relevance_before_it_is_scaled() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)  # ranks 0.0, -0.1, ..., -1.1
    for scale in ("minmax", "rank", "sigmoid", None):
        found = picked(
            items,
            query,
            vectors,
            selector="mmr",
            k=12,
            relevance="rank",
            relevance_scale=scale,
            score_threshold=-0.55,
        )
        assert {item.id for item in found} == {f"id{i}" for i in range(6)}


def test_orders_go_by_given_relevance() -> None:
    query, vectors = gaussian(6, 12, 8)
    items = items_of(12)
    found = select(items, query, vectors, k=5, selector="mmr", relevance="rank")
    ranks = [item.metadata["rank"] for item in found.items]
    assert ranks not in (sorted(ranks), sorted(ranks)[::-1]), "else this tests nothing"
    for order, wanted in (
        ("selection", ranks),
        ("relevance", sorted(ranks)[::-1]),
        ("nearest_last", sorted(ranks)),
        ("long_context", [sorted(ranks)[i] for i in (4, 2, 0, 1, 3)]),
    ):
        arranged = found.arrange(order)
        assert [relevance for _, relevance, _ in arranged] == wanted
        assert [item.metadata["rank"] for item, _, _ in arranged] == wanted
        assert sorted(gain for _, _, gain in arranged) == sorted(found.selection.gains)


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
    assert picked(items, query, vectors, selector="vrsd", k=6, source=source, max_per_source=1) == expected
    assert len(expected) == 3


def test_constraints_hold_among_items() -> None:
    query, vectors = gaussian(8, 10, 6)
    vectors[6] = 2 * vectors[2]
    items = items_of(10)
    picks = picked(items, query, vectors, k=10, drop_near_duplicates=0.999)
    assert len(picks) == 9
    assert len({"id2", "id6"} & {item.id for item in picks}) == 1
    with pytest.raises(InvalidParameterError, match="max_per_source needs source="):
        parsed(max_per_source=1)


def test_a_threshold_and_a_perspective() -> None:
    query, vectors = gaussian(9, 14, 6)
    side = np.random.default_rng(90).normal(size=6)
    items = items_of(14)
    projected, rows = oracles.pap_plus_explicit(query, side, vectors)
    cos = oracles.cosines(projected, rows)
    threshold = float(np.median(cos)) - 1e-3
    near = [i for i in np.argsort(-cos) if cos[i] >= threshold]
    assert 2 <= len(near) < 14, "this case would test nothing"
    request = parsed(perspective=side, corpus=True, score_threshold=threshold, k=14, selector="similarity")
    embedded = request.as_query(query, None)
    assert isinstance(embedded.pap, PAP)
    selected = request.select(Found(items, [item.id for item in items], text_of, vectors), embedded)
    assert selected.items == [items[i] for i in near]
    np.testing.assert_allclose(selected.selection.relevance, cos[near], rtol=1e-9)


@pytest.mark.parametrize("name", ["quality", "relevance", "costs", "source"])
def test_an_item_without_the_key_is_named(name: str) -> None:
    items = items_of(5)
    del items[3].metadata["words"]
    more = {"max_per_source": 1} if name == "source" else {"selector": "mmr"}
    with pytest.raises(InvalidInputError, match=rf"{name} .*'words'.*item 3"):
        picked(items, *gaussian(10, 5, 4), **{name: "words", **more})


def test_vectors_of_two_lengths_are_refused_by_id() -> None:
    query, vectors = gaussian(11, 4, 5)
    rows = vectors.tolist()
    rows[2] = rows[2][:3]
    with pytest.raises(InvalidInputError, match="'id2' has length 3, that of 'id0' has 5"):
        picked(items_of(4), query, rows)


def searches(
    n: int = 12, widest: int | None = WIDEST, text: Callable[[int], str] = lambda row: "", **settings: Any
) -> list[int]:
    """The sizes of the searches among n items of 3 files; each search returns all items up to its size."""
    query, vectors = gaussian(11, 12, 6)
    items = [Item(f"id{row}", {"file": f"{row % 3}.md"}, text(row)) for row in range(n)]
    request = parsed(**settings)
    sizes: list[int] = []

    def search(fetch_k: int) -> Flow[Found]:
        sizes.append(fetch_k)
        found = items[:fetch_k]
        yield Step(lambda: None)
        return Found(found, [item.id for item in found], text_of, vectors[: len(found)], fetch_k, len(found) < fetch_k)

    run_flow(request.search_and_select(request.as_query(query, None), search, widest))
    return sizes


def test_a_search_is_widened_only_if_a_constraint_cut_the_set_short() -> None:
    one_each: dict[str, Any] = {"max_per_source": 1, "source": "file"}
    assert searches(k=5, fetch_k=6, **one_each) == [6, 24], "three files, five wanted"
    assert searches(k=5, fetch_k=6, widest=12, **one_each, n=10) == [6, 12], "no wider than the store allows"
    assert searches(k=5, fetch_k=6, widest=None, **one_each) == [6]
    assert searches(k=3, fetch_k=6, **one_each) == [6], "all three are there"
    assert searches(k=5, fetch_k=6, drop_near_duplicates=-0.9) == [6, 24]
    assert searches(k=5, fetch_k=6) == [6], "no constraint"
    assert searches(k=5, fetch_k=20, **one_each) == [20], "the store is exhausted"
    assert searches(k=5, fetch_k=6, score_threshold=0.0, **one_each) == [6], "the others are below the threshold"
    affordable: dict[str, Any] = {"costs": lambda _: 1, **one_each}
    assert searches(k=5, fetch_k=6, budget=100, **affordable) == [6, 24], "some budget is left"
    assert searches(k=5, fetch_k=6, budget=3, **affordable) == [6], "the budget ended the selection"
    assert searches(fetch_k=6, budget=100, **affordable) == [6, 24]


def test_repeated_texts_widen_the_search() -> None:
    twice: dict[str, Any] = {"k": 5, "fetch_k": 6, "text": lambda row: f"text {row // 3}"}
    assert searches(**twice) == [6, 24], "two texts, five wanted"
    assert searches(**{**twice, "k": 2}) == [6]
    assert searches(**twice, drop_duplicates=False) == [6]
    assert searches(**twice, widest=None) == [6]


@pytest.mark.parametrize(
    ("settings", "candidates", "all_of_them"),
    [
        ({}, 4, True),
        ({}, 3, True),
        ({}, 5, False),
        ({}, 0, False),
        ({"selector": "mmr"}, 4, True),
        ({"selector": "similarity"}, 4, False),
        ({"order": "long_context"}, 4, False),
        ({"score_threshold": 0.1}, 4, False),
        ({"max_per_source": 1, "source": "file"}, 4, False),
        ({"drop_near_duplicates": 0.9}, 4, False),
        ({"budget": 9, "costs": "words", "k": 4}, 4, False),
        ({"budget": 9, "costs": "words"}, 4, False),
    ],
)
def test_all_are_selected_only_if_nothing_else_has_an_effect(
    settings: dict[str, Any], candidates: int, all_of_them: bool
) -> None:
    assert parsed(**settings).selects_all(candidates) is all_of_them


def test_widening_ends_with_a_warning() -> None:
    with pytest.warns(SetSelectWarning, match="No more than 12 candidates are fetched automatically.*fetch_k="):
        assert searches(k=5, fetch_k=12, max_per_source=1, source="file", widest=12) == [12]


def test_nothing_is_selected_from_nothing() -> None:
    selected = select([], [1.0, 0.0], [])
    assert (selected.items, selected.ids, len(selected.selection), selected.cut_short) == ([], [], 0, False)


# --- flows ----------------------------------------------------------------------------------------


async def both_ways(make: Callable[[], Flow[Any]]) -> list[Any]:
    return [run_flow(make()), await run_flow_async(make())]


async def test_a_flow_gets_the_result_of_each_step() -> None:
    def flow() -> Flow[list[int]]:
        first = yield Step(lambda: 1)
        second = yield Step(lambda: first + 1)
        return [first, second]

    assert await both_ways(flow) == [[1, 2], [1, 2]]


async def test_a_flow_may_handle_what_a_step_raises() -> None:
    def fail() -> None:
        raise KeyError("a")

    def careful() -> Flow[str]:
        try:
            yield Step(fail)
        except KeyError as error:
            return str(error)
        return "nothing was raised"

    def careless() -> Flow[None]:
        yield Step(fail)

    assert await both_ways(careful) == ["'a'", "'a'"]
    with pytest.raises(KeyError):
        run_flow(careless())
    with pytest.raises(KeyError):
        await run_flow_async(careless())


async def test_async_code_awaits_a_step_or_runs_it_in_a_thread() -> None:
    async def awaited() -> threading.Thread:
        return threading.current_thread()

    def flow() -> Flow[list[threading.Thread]]:
        return [(yield Step(threading.current_thread)), (yield Step(threading.current_thread, awaited))]

    here = threading.current_thread()
    assert run_flow(flow()) == [here, here]
    in_thread, on_loop = await run_flow_async(flow())
    assert in_thread is not here
    assert on_loop is here


async def test_sync_steps_in_a_row_run_in_one_thread_and_the_loop_goes_on_meanwhile() -> None:
    started, may_end = threading.Event(), threading.Event()

    def wait() -> threading.Thread:
        started.set()
        assert may_end.wait(5)
        return threading.current_thread()

    def flow() -> Flow[list[threading.Thread]]:
        return [(yield Step(wait)), (yield Step(threading.current_thread))]

    task = asyncio.ensure_future(run_flow_async(flow()))
    while not started.is_set():
        await asyncio.sleep(0)
    may_end.set()
    first, second = await task
    assert first is second is not threading.current_thread()


async def test_a_step_that_raises_stop_iteration_ends_in_an_error() -> None:
    def flow() -> Flow[None]:
        yield Step(lambda: next(iter(())))

    with pytest.raises(RuntimeError, match="StopIteration"):
        run_flow(flow())
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run_flow_async(flow()), timeout=5)
