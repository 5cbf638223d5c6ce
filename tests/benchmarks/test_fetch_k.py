"""The table of benchmarks/fetch_k.py on figures by hand."""

from __future__ import annotations

from benchmarks import fetch_k
from benchmarks.fetch_k import Cost


def test_costs_are_compared_store_by_store() -> None:
    rows = fetch_k.cost_table([Cost("a", "x", (1, 2, 4, 8)), Cost("b", "x", (10, 10, 10, 40))]).splitlines()
    assert rows[2:] == [
        "| a | x | 1.0 | 2.0 (2.0) | 4.0 (4.0) | 8.0 (8.0) |",
        "| b | x | 10.0 | 10.0 (1.0) | 10.0 (1.0) | 40.0 (4.0) |",
        "| **median** |  |  | **+0.5 (1.5)** | **+1.5 (2.5)** | **+18.5 (6.0)** |",
    ]
