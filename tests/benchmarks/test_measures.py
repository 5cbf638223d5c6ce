from __future__ import annotations

from fractions import Fraction as F

import pytest

from benchmarks.papers._measures import p_recall_at_k, perspective_shares


def test_p_recall_by_hand() -> None:
    # Roots r1 (1, 0, 1), r2 (0), r3 (1, 0): (2/3 + 0 + 1/2) / 3, where plain recall would be 3/6.
    success = [True, False, False, True, True, False]
    roots = ["r1", "r1", "r2", "r3", "r1", "r3"]
    assert p_recall_at_k(success, roots) == pytest.approx(float((F(2, 3) + 0 + F(1, 2)) / 3))


def test_perspective_shares_are_the_fractions_of_table_3() -> None:
    # BM25 on AllSides: 27.9, 44.3 and 27.9 percent, of 17, 27 and 17 documents found.
    sides = ["left"] * 17 + ["right"] * 27 + ["center"] * 17
    gold = [{side: [f"{side} {i}"] for side in ("left", "right", "center")} for i in range(len(sides))]
    ranked = [["x", f"{side} {i}", "y"] for i, side in enumerate(sides)]
    shares = perspective_shares(ranked, gold, k=2)
    assert [round(100 * shares[side], 1) for side in ("left", "right", "center")] == [27.9, 44.3, 27.9]
