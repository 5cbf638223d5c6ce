"""Objects that no argument of the core means, and every public argument of the core to pass them as."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import math
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shared_core import (
    MMR,
    NDPP,
    PAP,
    VRSD,
    Candidates,
    LinearKernel,
    LowRankKernel,
    TopK,
    choose,
    make_selection,
    make_selector,
    perspective_scores,
    register_selector,
    scale_relevance,
    select,
    select_many,
    select_stream,
    selector_parameters,
)


class Refusing:
    """An object that raises an error in one of its methods, whichever asks first."""

    def __init__(self, *names: str) -> None:
        def refuse(*_: Any, **__: Any) -> Any:
            raise RuntimeError("an error of the caller's own object")

        self.__class__ = type(f"Refusing{''.join(names)}", (Refusing,), dict.fromkeys(names, refuse))


class Text(str):
    """A string whose methods raise."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError


class Number(float):
    """A number whose methods raise."""

    def __float__(self) -> float:
        raise RuntimeError

    def __format__(self, spec: str) -> str:
        raise RuntimeError


@dataclasses.dataclass
class Record:
    """A dataclass, which cannot be hashed."""

    value: int = 1


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def _recursive() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


# Functions, because generators are used up.
JUNK: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "1e308": lambda: 1e308,
    "5e-324": lambda: 5e-324,
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,
    "2**63": lambda: 2**63,
    "complex": lambda: 1j,
    "fraction": lambda: fractions.Fraction(1, 2),
    "decimal": lambda: decimal.Decimal("sNaN"),
    "date": lambda: datetime.date(2026, 1, 1),
    "timedelta": lambda: datetime.timedelta(1),
    "str": lambda: "abc",
    "long str": lambda: "x" * 200_000,
    "control characters": lambda: "\x1b[31m\0\r\n",
    "lone surrogate": lambda: "\ud800",
    "bytes": lambda: b"abc",
    "memoryview": lambda: memoryview(b"abc"),
    "list": lambda: [1, 2],
    "empty list": list,
    "list of None": lambda: [None],
    "list of str": lambda: ["a"],
    "list of objects": lambda: [object()],
    "list of huge": lambda: [[10**400, 1]],
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "deep": lambda: _nested(5000),
    "recursive": _recursive,
    "set": lambda: {1, 2},
    "dict": lambda: {"a": [1]},
    "range": lambda: range(3),
    "generator": lambda: (i for i in range(3)),
    "object": object,
    "type": lambda: int,
    "function": lambda: len,
    "module": lambda: sys,
    "path": lambda: Path("/nonexistent"),
    "dataclass": Record,
    "Ellipsis": lambda: ...,
    "error": lambda: ValueError("x"),
    "selector class": lambda: VRSD,
    "0-d array": lambda: np.array(1.0),
    "array": lambda: np.arange(3.0),
    "empty array": lambda: np.array([]),
    "matrix": lambda: np.eye(3),
    "array of objects": lambda: np.array([object(), None]),
    "array of str": lambda: np.array(["a", "b"]),
    "array of bools": lambda: np.array([True, False]),
    "complex array": lambda: np.array([1j, 2]),
    "array of dates": lambda: np.array(["2026-01-01"], "M8[D]"),
    "records": lambda: np.zeros(2, [("a", int)]),
    "array with nan": lambda: np.array([np.nan, 1.0]),
    "array of 1e308": lambda: np.full(3, 1e308),
    "long doubles": lambda: np.array([1, 2, np.longdouble("1e400")], np.longdouble),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "numpy bool": lambda: np.True_,
    "numpy timedelta": lambda: np.timedelta64(1, "s"),
    "numpy void": lambda: np.void(b"abc"),
    "long double": lambda: np.longdouble(1),
    "tensor": lambda: torch.ones(3),
    "0-d tensor": lambda: torch.tensor(1.0),
    "tensor with grad": lambda: torch.ones(3, requires_grad=True),
    "bfloat16": lambda: torch.ones(3, dtype=torch.bfloat16),
    "meta tensor": lambda: torch.ones(3, device="meta"),
    "sparse tensor": lambda: torch.eye(3).to_sparse(),
    "refuses repr": lambda: Refusing("__repr__"),
    "refuses bool": lambda: Refusing("__bool__"),
    "refuses index": lambda: Refusing("__index__"),
    "refuses eq": lambda: Refusing("__eq__", "__hash__"),
    "refuses iter": lambda: Refusing("__iter__"),
    "refuses len": lambda: Refusing("__len__", "__getitem__"),
    "refuses array": lambda: Refusing("__array__"),
    "refuses attributes": lambda: Refusing("__getattr__"),
    "refusing str": lambda: Text("vrsd"),
    "refusing float": lambda: Number(0.5),
}
if find_spec("pandas") is not None:
    import pandas as pd

    JUNK |= {
        "series": lambda: pd.Series([1.0, 2.0]),
        "frame": lambda: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        "NA": lambda: pd.NA,
        "NaT": lambda: pd.NaT,
        "nullable": lambda: pd.array([1, None], dtype="Int64"),
        "timestamp": lambda: pd.Timestamp("2026-01-01"),
    }

Call = Callable[[Any], Any]


def _calls(name: str, function: Callable[..., Any], **arguments: Any) -> Iterator[tuple[str, Call]]:
    """A call for each of the ``arguments``, with the value in its place and the others as they are."""
    for argument in arguments:
        yield f"{name}, {argument}", lambda value, argument=argument: function(**{**arguments, argument: value})


def _arguments() -> Iterator[tuple[str, Call]]:
    rng = np.random.default_rng(0)
    queries, own, rows = rng.normal(size=(3, 4)), rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 4))
    query, numbers = queries[0], [1.0, 2.0, 3.0]
    plain = Candidates(query, rows)
    full = Candidates(query, rows, costs=numbers, quality=numbers, ids=numbers, sources=numbers)
    given = Candidates(query, rows, relevance=numbers)
    low_rank, linear = LowRankKernel(rows), LinearKernel(rows.T, W_R=rows.T, temperature=1.0)
    skew = {"C": [[0.0, 1.0], [-1.0, 0.0]], "W_R": rows.T, "temperature": 1.0}

    more = {"quality": numbers, "ids": numbers, "costs": numbers, "sources": numbers}
    caps = {"max_per_source": 2, "drop_near_duplicates": 0.9}
    yield from _calls("Candidates", Candidates, query=query, vectors=rows, relevance=numbers, copy=True, **more, **caps)
    for name in ("relevance", *more):
        yield f"Candidates, each {name}", lambda value, name=name: Candidates(query, rows, **{name: [value] * 3})
    yield "Candidates, each number", lambda value: Candidates([1.0, 1.0], [[1.0, value], [value, 1.0]])
    yield from _calls("with_query", plain.with_query, query=query, relevance=numbers)
    yield from _calls("with_vectors", plain.with_vectors, query=query, vectors=rows)
    yield "take", plain.take
    yield "take, each", lambda value: plain.take([value] * 3)

    for selector in (TopK(), VRSD(refine=True), MMR(), NDPP(), NDPP(low_rank)):
        yield from _calls(f"{selector}.select", selector.select, candidates=full, k=2, budget=9.0, shown=[0])
        yield f"{selector}.select, each shown", lambda value, s=selector: s.select(plain, 1, shown=[value, 0])
    yield from _calls("MMR", lambda **values: MMR(**values).select(full, 2), lambda_d=0.5, lambda_b=0.5)
    yield from _calls("VRSD", VRSD, refine=True)
    ndpp = {"kernel": None, "relevance": "exponential", "temperature": 0.1}
    yield from _calls("NDPP", lambda **values: NDPP(**values).select(full, 2), **ndpp)

    arguments = {"query": query, "vectors": rows, "k": 2, "budget": 9.0, "shown": [0], **more, **caps}
    yield from _calls("select", select, selector="vrsd", refine=False, **arguments)
    scaled = {"relevance": numbers, "relevance_scale": "rank"}
    yield from _calls("select", select, selector="mmr", **arguments, **scaled, lambda_mult=0.5)
    yield from _calls("select", select, query=query, vectors=rows, k=2, selector="ndpp", **ndpp)
    many = {"k": 2, "selector": "mmr", "lambda_b": 0.5, "progress": False}
    yield from _calls("select_many", select_many, queries=queries, vectors=rows, ids=numbers, quality=numbers, **many)
    scores = rng.normal(size=(3, 5))
    blocks = {"quality": scores, "relevance": scores, "relevance_scale": "minmax"}
    yield from _calls("select_many", select_many, queries=queries, vectors=own, **blocks, **many)
    yield "select_many, a block", lambda value: select_many(iter([value]), iter([own]), 2)
    yield "select_many, a block of vectors", lambda value: select_many(queries, iter([value]), 2)
    # The number of threads is passed as it is, and some of the values are numbers.
    yield (
        "select_many, workers",
        lambda value: None if isinstance(value, int) else select_many(queries, rows, 2, workers=value),
    )
    yield "select_stream, block_size", lambda value: list(select_stream(queries, rows, 2, block_size=value))
    rest = {"selector": MMR(), "k": 2, "budget": 9.0, "shown": [0]}
    yield from _calls("choose", choose, candidates=full, score_threshold=0.0, **rest)
    threshold = {"score_threshold": 1.5, "threshold_on": numbers}
    yield from _calls("choose", choose, candidates=given, selector=TopK(), k=1, **threshold)

    yield from _calls("LowRankKernel", LowRankKernel, V=rows, B=rows[:, :2], ids=numbers, **skew)
    yield "LowRankKernel, each id", lambda value: LowRankKernel(rows, ids=[value, 1, 2])
    yield from _calls("LinearKernel", LinearKernel, W_V=rows.T, W_B=rows.T[:, :2], **skew)
    yield "LinearKernel.dense", LinearKernel(rows.T).dense
    for kernel in (low_rank, linear):
        yield f"{kernel}.factors", kernel.factors
        yield f"{kernel}.log_relevance", kernel.log_relevance

    yield from _calls("PAP", PAP, perspective=query, corpus=True, direction="remove")
    yield "PAP.project", PAP(rows[0]).project
    yield "PAP.apply", PAP(rows[0], corpus=True).apply
    for mode in ("tri-sum", "pap+"):
        vectors = {"query": query, "root": query, "perspective": rows[0], "vectors": rows}
        yield from _calls(f"perspective_scores {mode}", perspective_scores, mode=mode, **vectors)
    yield from _calls("scale_relevance", scale_relevance, relevance=numbers, scale="rank")

    yield "make_selector", make_selector
    yield "selector_parameters", selector_parameters
    # No junk can be registered: a class only under its own name again.
    yield "register_selector", register_selector
    yield "register_selector, class", lambda value: register_selector("vrsd")(value)
    yield from _calls("make_selection", make_selection, candidates=plain, picks=[0], gains=[1.0], filled_from=0)
    yield "make_selection, product", lambda value: make_selection(plain, [0], [1.0], product=value)
    yield "make_selection, each pick", lambda value: make_selection(plain, [value], [1.0])
    yield "make_selection, each gain", lambda value: make_selection(plain, [0], [value])


ARGUMENTS: dict[str, Call] = dict(_arguments())
