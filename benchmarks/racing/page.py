"""The page of the figures, in Markdown. Equal figures, equal pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.racing import end_to_end
from benchmarks.racing.contenders import (
    HAYSTACK,
    KERNELS,
    LANGCHAIN,
    LEFT_OUT,
    MMR,
    MMR_NUMPY,
    OURS,
    PEERS,
    PYVERSITY,
    PYVERSITY_DPP,
    SETS,
    VRSD,
    VRSD_NUMPY,
)
from benchmarks.racing.figures import Found, written
from benchmarks.racing.limits import CALLS, PASS, STEP
from benchmarks.racing.points import LENGTHS, OTHER_LAMBDA, SIZES, Point
from benchmarks.racing.turns import SLOW


def page(found: Found) -> str:
    """All tables, with what they mean and how they came about."""
    blocks = ["# How fast the choice is", _about(found)]
    for length in LENGTHS:
        points = [Point(*size, length) for size in SIZES]
        blocks += [f"## Rows of {length}", "Microseconds a call, medians.", _times(found, points)]
        blocks += ["Times as fast as pyversity's MMR; the NDPP: as pyversity's DPP.", _ratios(found, points)]
        blocks += ["Times as fast as LangChain's MMR on a float32 array.", _against(found, SETS, LANGCHAIN, points)]
    blocks += [f"## MMR with λ = {OTHER_LAMBDA:g}", _OTHER_LAMBDA, _other_lambda(found)]
    blocks += ["## The limit", _LIMIT, _limits(found)]
    blocks += ["## From the question to the documents", _END_TO_END, _end_to_end(found)]
    blocks += ["## How it was measured", _how(found)]
    return "\n\n".join(blocks) + "\n"


def _about(found: Found) -> str:
    about = found.about
    machine = about.get("cpu_model_name", about["platform"])
    return (
        "Made by `make bench WRITE=1` (`benchmarks/speed.py`), with the drawing beside it ([light](speed.svg), "
        f"[dark](speed-dark.svg)). {machine}, {about['cpu_count']} cores, one BLAS thread for all; "
        f"{about['versions']}; setselect {about.get('setselect', 'in a state that changed meanwhile')}.\n\n"
        "Each ratio is the median over the turns, with its quartiles in brackets. In a turn every contender of a "
        "table's column runs, one right after the other; it is compared with what the others took in the same turn. "
        "Ratios carry over to other machines, microseconds do not. `select` gets raw float32 arrays each time and "
        "checks and normalises them. Where numba is installed (extra `fast`), MMR and VRSD choose by themselves "
        'whether to use it; "without numba" is what they take where it is not.'
    )


def _times(found: Found, points: Sequence[Point]) -> str:
    rows = []
    for contender in (*OURS, *PEERS):
        cells = [
            written(found.seconds(point, contender) * 1e6) if found.has(point, contender) else "–" for point in points
        ]
        if any(cell != "–" for cell in cells):
            rows.append((contender, *cells))
    return table(("n, d, k", *map(_size, points)), rows)


def _ratios(found: Found, points: Sequence[Point]) -> str:
    heading = ("n, d, k", *map(_size, points))
    return table(heading, [*_rows(found, SETS, PYVERSITY, points), *_rows(found, KERNELS, PYVERSITY_DPP, points)])


def _against(found: Found, contenders: Iterable[str], peer: str, points: Sequence[Point]) -> str:
    return table(("n, d, k", *map(_size, points)), _rows(found, contenders, peer, points))


def _rows(found: Found, contenders: Iterable[str], peer: str, points: Sequence[Point]) -> list[tuple[str, ...]]:
    there = [ours for ours in contenders if found.points(ours)]
    return [(ours, *(str(found.ratio(point, peer, ours)) for point in points)) for ours in there]


def _other_lambda(found: Found) -> str:
    rows = []
    ours = [name for name in (MMR, MMR_NUMPY) if found.points(name)]
    for point in found.points(MMR):
        if point.lambda_mult == OTHER_LAMBDA:
            times = [written(found.seconds(point, name) * 1e6) for name in (*ours, PYVERSITY)]
            ratios = [str(found.ratio(point, PYVERSITY, name)) for name in ours]
            rows.append((f"{_size(point)}, {point.length}", *times, *ratios))
    heading = ("n, d, k, rows", *(f"{name}, µs" for name in (*ours, PYVERSITY)))
    return table((*heading, *(f"{name}, times as fast" for name in ours)), rows)


def _limits(found: Found) -> str:
    rows = []
    ours = [name for name in (MMR, MMR_NUMPY, VRSD, VRSD_NUMPY) if found.points(name)]
    for point in (Point(*size) for size in SIZES):
        passes, calls, steps = (point.k * found.seconds(point, limit) for limit in (PASS, CALLS, STEP))
        rate = point.k * point.n * point.d * 4 / passes / 1e9
        ratios = [_scaled(found, point, name) for name in ours]
        cells = (written(rate), *(written(limit * 1e6) for limit in (passes, calls, steps)), *ratios)
        rows.append((_size(point), *cells))
    heading = ("n, d, k", "GB/s", "k passes, µs", "k times the calls, µs", "k steps, µs")
    return table((*heading, *(name.removeprefix("setselect ") for name in ours)), rows)


def _scaled(found: Found, point: Point, ours: str) -> str:
    times = found.ratio(point, ours, STEP)
    low, median, high = (written(value / point.k) for value in (times.low, times.median, times.high))
    return f"{median} ({low}–{high})"


def _end_to_end(found: Found) -> str:
    rows = []
    for way in end_to_end.WAYS:
        values = found.end_to_end(*end_to_end.columns(way))
        if way.choice is None:
            values = [(*value[:2], 0.0, *value[2:]) for value in values]
        took = end_to_end.parts(values)
        each = (took.embedding, took.search, took.choice, took.framework)
        cells = [f"{1000 * part:.2f} ({100 * part / took.together:.1f} %)" for part in each]
        rows.append((way.name, f"{1000 * took.whole:.2f}", *cells))
    return table(("milliseconds a query", "whole", "embedding", "search", "choice", "framework"), rows)


def _size(point: Point) -> str:
    return f"{point.n:,}, {point.d}, {point.k}"


def _how(found: Found) -> str:
    out = [reason for name, (_, reason) in LEFT_OUT.items() if name != HAYSTACK or found.points(HAYSTACK)]
    if not found.points(HAYSTACK):
        out.append("Haystack was not installed (extra `bench`)")
    counted = {"contenders": found.contenders, "unstable": found.unstable, "slow": SLOW}
    return _HOW.format(processes=found.processes, turns=found.turns, load=found.load, **counted) + (
        "- Where there is a dash: " + "; ".join(out) + ".\n- No peer's time depends on λ."
    )


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first hold figures."""
    lines = ["| " + " | ".join(heading) + " |", "| ---" + " | ---:" * (len(heading) - 1) + " |"]
    return "\n".join((*lines, *("| " + " | ".join(row) + " |" for row in rows)))


_OTHER_LAMBDA = """\
Of many candidates MMR passes over most: the more, the more relevance weighs. It picks what it would have picked. Times
as fast: as pyversity's MMR."""

_LIMIT = """\
Rows of unit length, λ = 0.5. A selector that scores every candidate at each step reads the vectors k times: that is
*k passes*, in *GB/s* (a few MB come out of the caches, more out of the memory). In numpy each step is four calls at
least (product, maximum, difference, argmax), all writing into arrays that are there: on vectors of one number each they
take *k times the calls*, on the real ones *k steps*. The last columns say how many times the k steps `select` takes,
checking its input included: below 1 where it reads less than everything, or makes fewer calls."""

_INDEX = f"{end_to_end.N:,} × {end_to_end.D}"
_END_TO_END = f"""\
LangChain's FAISS store, flat, {_INDEX}, {end_to_end.FETCH_K} candidates, {end_to_end.K} picks, λ = 0.5, one thread;
all-MiniLM-L6-v2 embeds the question. Only times count here, so the documents' vectors are drawn and their texts are
labels. *Search* is the index's own call, *choice* the function on vectors that are there; *framework* is the rest:
reading the candidates' vectors from the index, and making documents of them. *Whole* was measured by itself, the parts
in the same turns; each share is of the parts' sum."""

_HOW = """\
- {processes} processes, one after the other; in each, {turns} turns (one, for what takes over {slow} s a call). How
  many calls make a value is found once, by the first process. Clock, runs and file are those of pyperf: `--json FILE`
  keeps them for `python -m pyperf show`, `check` and `compare_to`.
- Load of the machine as it began: {load}. Of the {contenders} series of values
  {unstable} have a standard deviation of a tenth of their mean or more, which pyperf calls unstable. What the machine
  does meanwhile falls on all contenders of a turn alike, which is why ratios are made turn by turn.
- One BLAS thread and one OpenMP thread for all: at these sizes more of them cost all contenders more than they bring.
- Vectors are drawn with a common direction, as embeddings of texts on one subject have; the seed is fixed.
- pyversity gets its relevance scores ready-made; LangChain's function a float32 array, the form it is fastest with, and
  lists of Python floats, what many stores hand it; LlamaIndex's a list of float32 rows, since it refuses an array.
- LlamaIndex's MMR penalises likeness to the last pick only, so it does less. pyversity counts negative cosines as 0.
- Haystack's ranker takes no vectors, but texts, and embeds them at each call. Its public attribute `model` was set to
  an object that hands out ready tensors; what is timed is its MMR.
"""
