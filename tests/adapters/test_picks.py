"""Each class of both adapters selects what the core selects from the same arrays, with each setting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setselect import MMR, NDPP, VRSD, Coverage, LowRankKernel, PerspectiveExtractor, QueryParts, SetSelectWarning
from tests import oracles
from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RETRIEVERS,
    ROWS,
    SUBJECTS,
    VECTORS,
    Subject,
    expected,
    name_of,
    nearest,
    numbers,
    over,
    reader,
    unit,
    values,
)
from tests.embedding import embed

OVER_ALL_CLASSES = over(SUBJECTS)
SELECTORS: list[dict[str, Any]] = [
    {"selector": "similarity"},
    {"selector": "vrsd"},
    {"selector": "mmr"},
    {"selector": "mmr", "lambda_mult": 0.3},
    {"selector": MMR(lambda_mult=0.2)},
    {"selector": VRSD(refine=True)},
    {"selector": NDPP(relevance_mapping="linear", ridge=0.5)},
    {"selector": Coverage(word_weight=0.0)},
    {"selector": Coverage(word_weight=0.3, ridge=0.5)},
]


@OVER_ALL_CLASSES
async def test_by_default_four_of_the_fifty_nearest_by_coverage(subject: Subject) -> None:
    store = subject.corpus()
    made = subject.make(store)
    subject.model(store).counts()
    rows = nearest()
    given = [ROWS[row] for row in rows]
    assert numbers(subject.run(made, given)) == expected(rows) == expected(rows, 4, Coverage())
    assert subject.model(store).counts() == (1, 0, 0), "vectors come from the store"
    assert numbers(await subject.arun(made, given)) == expected(rows)
    assert subject.model(store).counts() == (1, 0, 1), "the model's async method is awaited"
    assert subject.make(store).vector_source.startswith("store: ")


@pytest.mark.parametrize(
    ("settings", "searched"),
    [
        ({"k": 10}, 50),
        ({"k": 11}, 55),
        ({"k": 5, "fetch_k": 5, "order": "relevance"}, 5),
        ({"fetch_k": 40}, 40),
        ({"k": 100}, 60),
    ],
    ids=name_of,
)
@over(RETRIEVERS + EXAMPLES)
def test_fetch_k_follows_k(subject: Subject, settings: dict[str, Any], searched: int) -> None:
    found = numbers(subject.run(subject.make(subject.corpus(), **settings)))
    wanted = expected(nearest(searched), min(settings.get("k", 4), searched))
    assert found == (sorted(wanted, key=nearest(60).index) if "order" in settings else wanted)


@OVER_ALL_CLASSES
@pytest.mark.parametrize("settings", SELECTORS, ids=name_of)
async def test_selectors_by_name_with_parameters_or_as_objects(subject: Subject, settings: dict[str, Any]) -> None:
    rows = nearest()
    made = subject.make(subject.corpus(), k=6, **settings)
    given = [ROWS[row] for row in rows]
    assert (
        numbers(subject.run(made, given)) == numbers(await subject.arun(made, given)) == expected(rows, 6, **settings)
    )


@OVER_ALL_CLASSES
def test_a_kernels_rows_are_found_by_id(subject: Subject, tmp_path: Path) -> None:
    rows = nearest()
    factors = np.random.default_rng(0).normal(size=(len(ROWS), 6))
    kernel = LowRankKernel(factors[::-1], ids=[row.id for row in ROWS][::-1])
    wanted = expected(rows, selector="ndpp", kernel=LowRankKernel(factors[rows]))
    assert subject.select(rows, selector=NDPP(kernel)) == wanted
    kernel.save(tmp_path / "kernel.safetensors")
    assert subject.select(rows, selector=NDPP(str(tmp_path / "kernel.safetensors"))) == wanted


# Each setting


DAYS = {row.id: f"2026-{1 + i // 28:02d}-{1 + i % 28:02d}" for i, row in enumerate(ROWS)}
CAPPED: dict[str, Any] = {"k": 9, "selector": "similarity"}


def of_items(name: str, key: str, **settings: Any) -> list[Any]:
    """The setting from a metadata key, a function and a mapping by id; and its values for the core."""

    def read(rows: list[int]) -> dict[str, Any]:
        return {"sources" if name == "source" else name: values(rows, key)}

    ways: list[Any] = [key, reader(key), {row.id: row.metadata[key] for row in ROWS}]
    return [pytest.param({name: way, **settings}, read, id=f"{name} {i}") for i, way in enumerate(ways)]


@OVER_ALL_CLASSES
@pytest.mark.parametrize(
    ("settings", "read"),
    [
        *of_items("costs", "tokens", budget=41, k=None),
        *of_items("quality", "quality", selector=MMR(lambda_b=0.3)),
        *of_items("relevance", "number", selector="mmr"),
        *of_items("source", "topic", max_per_source=1, selector="similarity", k=6),
        *of_items("cover", "topic", selector=Coverage(cover_weight=20.0)),
        *of_items("prefer", "number", drop_near_duplicates=0.6, **CAPPED),
        ({"prefer": DAYS, "drop_near_duplicates": 0.6, **CAPPED}, lambda rows: {"prefer": rows}),
        ({"drop_near_duplicates": 0.6, **CAPPED}, lambda rows: {}),
        ({"min_gain": 0.3, "k": 10}, lambda rows: {}),
        ({"selector": "mmr", "min_gain": 0.6, "min_k": 3, "k": 10}, lambda rows: {}),
    ],
    ids=name_of,
)
def test_each_setting_selects_what_the_core_selects_with_it(
    subject: Subject, settings: dict[str, Any], read: Callable[[list[int]], dict[str, Any]]
) -> None:
    rows, k, selector = nearest(), settings.get("k", 4), settings.get("selector", "coverage")
    given = {name: value for name, value in settings.items() if name not in ("k", "selector", "source")}
    wanted = expected(rows, k, selector, **given | read(rows))
    assert wanted != expected(rows, k or len(wanted), selector), "it must have an effect"
    if k is None:
        assert 41 - 8 < sum(values(wanted, "tokens")) <= 41
        settings = {name: value for name, value in settings.items() if name != "k"}
    assert subject.select(rows, **settings) == wanted


@OVER_ALL_CLASSES
def test_a_threshold_is_a_cosine_and_applies_before_the_selection(subject: Subject) -> None:
    rows = nearest(30)
    near = [row for row in rows if VECTORS[row] @ embed(QUERY) >= 0.25 * np.linalg.norm(embed(QUERY))]
    assert 4 < len(near) < 30
    settings: dict[str, Any] = {"selector": "mmr", "lambda_mult": 0.0}
    assert subject.select(rows, score_threshold=0.25, **settings) == expected(near, **settings)
    assert subject.select(rows, score_threshold=1.0) == []


@OVER_ALL_CLASSES
def test_shown_items_count_as_picked_and_do_not_come_back(subject: Subject) -> None:
    shown = expected(nearest(), 3)
    rows = nearest(23)
    wanted = expected(rows, shown=[rows.index(row) for row in sorted(shown, key=rows.index)])
    ids = [ROWS[row].id for row in shown]
    for given in ([*ids], np.array(ids), set(ids)):
        assert subject.select(rows, shown=given) == wanted
    with pytest.warns(SetSelectWarning, match="shown holds 'elsewhere'") if subject.searches else nullcontext():
        found = subject.select([*rows, *nearest(24)[23:]], shown=[*ids, "elsewhere"])
    assert found
    assert not set(shown) & set(found)


# Perspectives


ROOT, SIDE = "hidden harbour engine", "northern"
SPLIT = PerspectiveExtractor(lambda query: QueryParts(ROOT, SIDE))
# The value of ``perspective``, the vector on which the query is projected, and what is left of the question's words if
# the perspective is removed: those of a perspective do not count, where its text is known.
FORMS: list[tuple[dict[str, Any], Any, str]] = [
    ({"perspective": SIDE}, embed(SIDE), ROOT),
    ({"perspective": embed(SIDE)}, embed(SIDE), QUERY),
    ({"perspective": list(embed(SIDE))}, embed(SIDE), QUERY),
    ({"perspective": lambda query: query.split()[1]}, embed(SIDE), ROOT),
    ({"perspective": lambda query: QueryParts(ROOT, SIDE)}, embed(SIDE), ROOT),
    ({"perspective": SPLIT}, embed(SIDE), ROOT),
    ({"perspective": SPLIT, "perspective_vector": "difference"}, "difference", ROOT),
    ({"perspective": lambda query: None}, None, QUERY),
    ({"perspective": lambda query: None, "perspective_vector": "difference"}, None, QUERY),
    # Without the perspective the root is the whole query, so there is no difference.
    ({"perspective": lambda query: QueryParts(query, SIDE), "perspective_vector": "difference"}, None, QUERY),
]


@OVER_ALL_CLASSES
@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("direction", ["remove", "emphasize"])
async def test_perspectives_in_each_form(subject: Subject, direction: Any, corpus: bool) -> None:
    # LlamaIndex's model gives embeddings of unit length.
    own = unit if subject.framework == "LlamaIndex" else np.asarray
    for settings, form, root in FORMS:
        p = own(embed(QUERY)) - own(embed(ROOT)) if isinstance(form, str) else form
        query = embed(QUERY) if p is None else oracles.pap(embed(QUERY), p, direction)
        rows = nearest(50, query)
        vectors = VECTORS[rows]
        if corpus and p is not None:
            vectors = np.array([oracles.pap(vector, p, direction) for vector in vectors])
        wanted = expected(rows, query=query, vectors=vectors, question=root if direction == "remove" else QUERY)
        made = subject.make(subject.corpus(), direction=direction, corpus=corpus, **settings)
        assert numbers(subject.run(made, [ROWS[row] for row in rows])) == wanted, settings
        assert numbers(await subject.arun(made, [ROWS[row] for row in rows])) == wanted, settings


@OVER_ALL_CLASSES
async def test_async_code_awaits_the_extractor_and_the_model(subject: Subject) -> None:
    def split(query: str) -> QueryParts:
        raise AssertionError("async code must not block")

    async def asplit(query: str) -> QueryParts:
        return QueryParts(ROOT, SIDE)

    made = subject.make(subject.corpus(), perspective=PerspectiveExtractor(split, asplit))
    subject.model(subject.corpus()).counts()
    await subject.arun(made, [ROWS[row] for row in nearest()])
    assert subject.model(subject.corpus()).counts() == (2, 0, 2)
