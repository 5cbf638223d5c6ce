from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

from shared_core.learning.feedback.symbols import structural_symbols

DATA = Path(os.environ.get("SETSELECT_DATA", Path(__file__).resolve().parents[5] / "shared" / "data"))


def texts(name: str, key: str) -> list[str]:
    file = DATA / name
    if not file.is_file():
        pytest.skip(f"no {name} under {DATA}; set SETSELECT_DATA")
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line)[key] for line in lines]


def parsed(text: str) -> set[Any]:
    """By Python's parser, whose calls look like FunQL's and Prolog's; what it groups alone is passed through."""
    found: set[Any] = set()

    def visit(node: ast.AST, outer: str) -> None:
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            found.update({node.func.id} | ({(outer, node.func.id)} if outer else set()))
            outer = node.func.id
        for child in ast.iter_child_nodes(node):
            visit(child, outer)

    visit(ast.parse(text, mode="eval"), "")
    return found


@pytest.mark.parametrize("key", ["funql", "prolog"])
def test_geoquery_as_pythons_parser_reads_it(key: str) -> None:
    for text in texts("geoquery/geoquery.jsonl", key):
        # Prolog's not is a keyword in Python.
        readable = text.replace("not(", "is_not(")
        assert structural_symbols(readable) == parsed(readable), text


def test_mtop_agrees_with_its_tokens() -> None:
    for text in texts("mtop/mtop.jsonl", "logical_form"):
        wanted: set[Any] = set()
        around: list[str] = []
        for token in text.split():
            if token.startswith("["):
                wanted.add(token[1:])
                wanted.update({(around[-1], token[1:])} if around else set())
                around.append(token[1:])
            elif token == "]":
                around.pop()
        assert around == []
        assert structural_symbols(text) == wanted, text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("answer(state(all))", {"answer", "state", ("answer", "state")}),
        ("f(g(x), h(g(y)))", {"f", "g", "h", ("f", "g"), ("f", "h"), ("h", "g")}),
        ("f('g(x)', \"h(y)\", 'it''s k(z)')", {"f"}),
        (r"f('it\'s g(x)', h(x))", {"f", "h", ("f", "h")}),
        ("f(cityid(coeur d'alene), g(d'x))", {"f", "cityid", "g", ("f", "cityid"), ("f", "g")}),
        ("f(2(x), 3)", {"f"}),
        ("np.sum(x).mean(f(y))", {"np.sum", "mean", "f", ("mean", "f")}),
        ("größe(fläche(x))", {"größe", "fläche", ("größe", "fläche")}),
        ("(argmax (state all) (size))", {"argmax", "state", "size", ("argmax", "state"), ("argmax", "size")}),
        ('(f \'x (g "(h y)") ((k) z))', {"f", "g", "k", ("f", "g"), ("f", "k")}),
        ("(> (state:t $0) 3)", {">", "state:t", (">", "state:t")}),
        ("[IN:A b(c) [SL:B x's ] d ]", {"IN:A", "SL:B", ("IN:A", "SL:B")}),
        ("Paris", {}),
        ("", {}),
    ],
)
def test_forms(text: str, wanted: set[Any]) -> None:
    assert structural_symbols(text) == frozenset(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f(g(x", {"f", "g", ("f", "g")}),
        ("f(x)))) g(h(y))", {"f", "g", "h", ("g", "h")}),
        ("[IN:A [SL:B x", {"IN:A", "SL:B", ("IN:A", "SL:B")}),
        ("[IN:A ] ] ] [IN:B ]", {"IN:A", "IN:B"}),
        ("f('g(x)", {"f", "g", ("f", "g")}),
    ],
)
def test_brackets_too_few_or_too_many(text: str, wanted: set[Any]) -> None:
    assert structural_symbols(text) == frozenset(wanted)


@pytest.mark.parametrize("piece", ["f(", "[A ", "'", "\\"])
def test_the_time_for_long_and_odd_texts_is_linear_in_their_length(piece: str) -> None:
    assert len(structural_symbols(piece * 20_000)) <= 2
