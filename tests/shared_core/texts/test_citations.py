"""Which texts cite which others, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shared_core import REFERENCE_KINDS, InvalidInputError, find_references, select


def cited(texts: Sequence[str], identifiers: Sequence[Any], sources: Sequence[Any] | None = None) -> dict[Any, float]:
    """How clearly each row cites another one."""
    strength, _, kinds = find_references(texts, identifiers=identifiers, sources=sources)
    assert kinds is not None
    rows = zip(*strength.nonzero(), strict=True)
    return {
        (int(i), int(j)): float(strength[i, j]) for i, j in rows if kinds[i, j] == REFERENCE_KINDS.index("citation")
    }


@pytest.mark.parametrize(
    ("texts", "identifiers", "sources", "expected"),
    [
        # A cycle, and a text that cites itself.
        (["see Rule 1.2", "see Rule 1.1 and Rule 1.2"], ["1.1", "1.2"], "aa", {(0, 1): 1, (1, 0): 1}),
        # Numbers that begin with each other.
        (["see Rule 1.1", "", ""], ["3", "1.10", "1.1"], "aaa", {(0, 2): 1}),
        # Another source, and a source that is named.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], "aba", {(0, 2): 1}),
        (["see Rule 1.1 of COBS", "", ""], ["3", "1.1", "1.1"], ["AML", "COBS", "AML"], {(0, 1): 1}),
        (["see Rule 1.1 of MIR", ""], ["3", "1.1"], "aa", {}),
        # Two parts of a section, one that is cited by its own number, and one that is in the text of its section.
        (["see Rule 1.1", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 1): 0.5, (0, 2): 0.5}),
        (["see Rule 1.1(2)", "", ""], ["3", "1.1(1)", "1.1(2)"], "aaa", {(0, 2): 1}),
        (["see Rule 1.1(2)(b)", "", ""], ["3", "1.1", "1.2"], "aaa", {(0, 1): 1}),
        # Sources that are not known.
        (["see Rule 1.1", "", ""], ["3", "1.1", "1.1"], None, {(0, 1): 0.5, (0, 2): 0.5}),
        # Another kind, where the number has one level.
        (["see Article 6 and Section 7", "", ""], ["3", "§ 6", "Section 7"], "aaa", {(0, 2): 1}),
        # Codes and files mean the same in every document.
        (["error E10 is E1042", "", ""], ["3", "E1042", "E10"], "aab", {(0, 1): 1}),
        (["open io.py", "", ""], ["3", "src/io.py", "src/rio.py"], "abc", {(0, 1): 1}),
        (["call parse_it(1)", "def parse_it(x):"], [None, None], "ab", {(0, 1): 1}),
    ],
)
def test_what_is_cited(texts: list[str], identifiers: list[Any], sources: Any, expected: dict[Any, float]) -> None:
    assert cited(texts, identifiers, None if sources is None else list(sources)) == expected


def test_many_identifiers_in_one_text() -> None:
    texts = [", ".join(f"Rule {i}.1" for i in range(1, 10_001)), ""]
    assert cited(texts, [None, "9.1"]) == {(0, 1): 1}


def test_a_section_brings_one_bonus_though_all_texts_have_one_title() -> None:
    texts = ["bread: see Rule 1.1", "bread and butter", "a", "b"]
    vectors = [[1, 0, 0, 0], [0.9, 0.5, 0, 0], [0.1, 0, 1, 0], [0.1, 0, 0, 1]]
    columns: dict[str, Any] = {"texts": texts, "identifiers": ["2", "3", "1.1(1)", "1.1(2)"], "sources": ["a"] * 4}
    found = select([1, 0.1, 0, 0], vectors, 4, question="what", titles=["Book"] * 4, **columns)
    assert found.reference_kinds is not None
    assert sorted(found.reference_kinds.tolist()) == [-1, -1, -1, REFERENCE_KINDS.index("citation")]


@pytest.mark.parametrize(
    ("identifiers", "sources", "message"),
    [
        ("ab", None, "identifiers"),
        (["a", 5], None, "row 1.*5"),
        (["a", [5]], None, "row 1"),
        (["a"], None, "2 rows.*got 1"),
    ],
)
def test_identifiers_that_are_refused(identifiers: Any, sources: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        find_references(["a", "b"], identifiers=identifiers, sources=sources)
