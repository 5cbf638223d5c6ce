"""Every form of a setting ``perspective=`` comes to the projection that the core would make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import PAP, InvalidParameterError, PerspectiveError
from shared_core.signals.extraction import (
    PerspectiveExtractor,
    QueryParts,
    aread_perspective,
    check_perspective_vector,
    make_pap,
    read_perspective,
    find_text_to_embed,
)

QUERY = "Which letters argue against a lower speed limit?"
GOOD = QueryParts("a lower speed limit", "argue against")
NONE = QueryParts(QUERY, None)


def at_comma(query: str) -> list[str]:
    return query.split(", ")


@pytest.mark.parametrize(
    ("perspective", "wanted"),
    [
        (None, None),
        ([1.0, 0.0], None),
        (np.ones(3), None),
        ("against", QueryParts("", "against")),
        (lambda query: "for", QueryParts("", "for")),
        (lambda query: " ", None),
        (lambda query: None, None),
        (lambda query: GOOD, GOOD),
        (lambda query: NONE, None),
        (PerspectiveExtractor(lambda query: GOOD), GOOD),
        (PerspectiveExtractor(lambda query: (query, "")), None),
    ],
)
async def test_what_each_form_of_perspective_means(perspective: Any, wanted: QueryParts | None) -> None:
    assert read_perspective(perspective, QUERY) == wanted
    assert await aread_perspective(perspective, QUERY) == wanted


async def test_functions_that_return_something_else() -> None:
    async def later(query: str) -> str:
        return "against"

    for function, message in (
        (lambda query: 3, "must return a text, QueryParts or None, got 3"),
        (lambda query: ("limit", "against"), "must return a text, QueryParts or None"),
        (later, r"async function: pass PerspectiveExtractor\(split, asplit=...\)"),
    ):
        with pytest.raises(PerspectiveError, match=message):
            read_perspective(function, QUERY)
        with pytest.raises(PerspectiveError, match=message):
            await aread_perspective(function, QUERY)


async def test_an_extractor_is_awaited_by_its_own_way() -> None:
    def split(query: str) -> QueryParts:
        raise AssertionError("the async path must not block")

    async def asplit(query: str) -> QueryParts:
        return GOOD

    assert await aread_perspective(PerspectiveExtractor(split, asplit), QUERY) == GOOD


def test_the_ways_to_a_vector() -> None:
    for perspective in (None, "against", [1.0], at_comma):
        assert check_perspective_vector("text", perspective) == "text"
    for perspective in (None, at_comma, PerspectiveExtractor(at_comma)):
        assert check_perspective_vector("difference", perspective) == "difference"
    for perspective in ("against", [1.0], np.ones(2)):
        with pytest.raises(InvalidParameterError, match="needs the root query"):
            check_perspective_vector("difference", perspective)
    with pytest.raises(InvalidParameterError, match="must be one of text, difference, got 'root'"):
        check_perspective_vector("root", None)


def test_what_is_embedded() -> None:
    assert find_text_to_embed(None, QUERY, "text") is None
    assert find_text_to_embed(None, QUERY, "difference") is None
    assert find_text_to_embed(GOOD, QUERY, "text") == "argue against"
    assert find_text_to_embed(GOOD, QUERY, "difference") == "a lower speed limit"
    assert find_text_to_embed(NONE, QUERY, "difference") is None
    assert find_text_to_embed(QueryParts(QUERY + " ", "against"), QUERY, "difference") is None
    with pytest.raises(PerspectiveError, match=r"return QueryParts\(root, perspective\)"):
        find_text_to_embed(QueryParts("", "against"), QUERY, "difference")


def test_the_projection_is_the_cores() -> None:
    query, side, root = np.random.default_rng(0).standard_normal((3, 6))
    by_text = make_pap("against", query, side.tolist(), corpus=True, direction="emphasize")
    by_vector = make_pap(side, query, None)
    by_difference = make_pap(at_comma, query, root.tolist(), perspective_vector="difference")
    assert by_text is not None
    assert by_vector is not None
    assert by_difference is not None
    assert (by_text.corpus, by_text.direction) == (True, "emphasize")
    np.testing.assert_array_equal(by_text.project(query), PAP(side, direction="emphasize").project(query))
    np.testing.assert_array_equal(by_vector.project(query), PAP(side).project(query))
    np.testing.assert_array_equal(by_difference.project(query), PAP(query - root).project(query))
    for perspective in (None, "against", at_comma):
        assert make_pap(perspective, query, None) is None


def test_a_difference_of_nothing_is_no_projection() -> None:
    query = np.random.default_rng(1).standard_normal(6)
    for root in (query, query.astype(np.float32)):
        assert make_pap(at_comma, query, root.tolist(), perspective_vector="difference") is None
    with pytest.raises(PerspectiveError, match=r"shape \(6,\), the root's \(2,\)"):
        make_pap(at_comma, query, [1.0, 0.0], perspective_vector="difference")
