"""The page of the figures in Markdown. Equal figures give equal pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.racing import end_to_end, texts
from benchmarks.racing.bounds import NUMPY, WITH_NUMBA, verdicts
from benchmarks.racing.contenders import (
    DETERMINANTS,
    HAYSTACK,
    LANGCHAIN,
    LARGEST,
    NUMPY_ALONE,
    OURS,
    PEERS,
    PYVERSITY,
    PYVERSITY_DPP,
    SETS,
)
from benchmarks.racing.figures import Found, digits
from benchmarks.racing.points import ANY, BATCHES, SIZES, UNIT, Point
from benchmarks.racing.turns import SLOW


def page(found: Found) -> str:
    """All tables, what they mean and how they were measured."""
    unit, given = ([Point(*size, length) for size in SIZES] for length in (UNIT, ANY))
    blocks = ["# How fast selection is", _about(found)]
    blocks += ["## Bounds", _BOUNDS, _bounds(found)]
    blocks += [f"## Rows of {UNIT}", *_times_and_ratios(found, unit)]
    blocks += ["How many times as fast as LangChain's MMR on a float32 array:"]
    blocks += [table(_heading(unit), _ratios(found, SETS, LANGCHAIN, unit))]
    blocks += [f"## Rows of {ANY}", _ANY_LENGTH, *_times_and_ratios(found, given)]
    blocks += ["## Batches", _BATCHES, _batches(found)]
    blocks += ["## Texts", _TEXTS, _texts(found)]
    blocks += ["## From the question to the documents", _END_TO_END, _end_to_end(found)]
    blocks += ["## How it was measured", _how(found)]
    return "\n\n".join(blocks) + "\n"


def _about(found: Found) -> str:
    about = found.about
    machine = about.get("cpu_model_name", about["platform"])
    return (
        "Made by `make bench WRITE=1` (`benchmarks/speed.py`), with a plot of the figures ([light](speed.svg), "
        f"[dark](speed-dark.svg)). {machine}, {about['cpu_count']} cores, one BLAS thread; "
        f"{about['versions']}; setselect {about.get('setselect', 'in a state that changed during the run')}.\n\n"
        "Each ratio is the median over the turns, with its quartiles in brackets. In a turn every contender of a "
        "column runs once, one directly after the other, and is compared with the others of the same turn. On another "
        "machine the ratios are similar, and the microseconds are not. `select` gets raw float32 arrays in each call, "
        'checks them and normalises them. The rows "numpy alone" are measured in the same processes, with the compiled '
        "loops switched off. They show the speed without numba (extra `fast`)."
    )


def _bounds(found: Found) -> str:
    rows: list[tuple[str, ...]] = []
    for verdict in verdicts(found):
        name = verdict.bound.contender.removeprefix("setselect ")
        cells = (verdict.where, verdict.case, verdict.demand or "–", verdict.figure, verdict.word)
        rows.append((name, *cells))
    return table(("selector", "where", "case", "required", "measured", "verdict"), rows)


def _times_and_ratios(found: Found, points: Sequence[Point]) -> list[str]:
    rows = []
    for contender in (*OURS, *PEERS):
        cells = [_microseconds(found, point, contender) for point in points]
        if any(cell != "–" for cell in cells):
            rows.append((contender, *cells))
    ratios = [*_ratios(found, SETS, PYVERSITY, points), *_ratios(found, DETERMINANTS, PYVERSITY_DPP, points)]
    return [
        "Microseconds a call, medians:",
        table(_heading(points), rows),
        "How many times as fast as pyversity's MMR (the default and NDPP: as pyversity's DPP):",
        table(_heading(points), ratios),
    ]


def _microseconds(found: Found, race: object, contender: str) -> str:
    return digits(found.seconds(race, contender).median * 1e6) if found.has(race, contender) else "–"


def _heading(points: Sequence[Point]) -> tuple[str, ...]:
    return ("n, d, k", *(f"{point.n:,}, {point.d}, {point.k}" for point in points))


def _ratios(found: Found, contenders: Iterable[str], peer: str, points: Sequence[Point]) -> list[tuple[str, ...]]:
    return [(ours, *(str(found.ratio(point, peer, ours)) for point in points)) for ours in contenders]


def _batches(found: Found) -> str:
    rows = []
    for batch in BATCHES:
        for name, in_numpy in NUMPY_ALONE.items():
            if not found.has(batch, name):
                continue
            cells = [_microseconds(found, batch, contender) for contender in (name, in_numpy)]
            rows.append((f"{batch.n}, {batch.d}, {batch.k}: {name.removeprefix('setselect ')}", *cells))
    return table(("n, d, k: selector", WITH_NUMBA, NUMPY), rows)


def _texts(found: Found) -> str:
    rows = []
    for contender in (texts.WORDS, texts.TITLED, texts.UNTITLED):
        took = [found.seconds(texts.race_name(n), contender).median * 1e3 for n in texts.SIZES]
        limits = ["–" if contender == texts.WORDS else f"{texts.MOST[n]:g}" for n in texts.SIZES]
        rows.append((contender, *(cell for pair in zip(map(digits, took), limits, strict=True) for cell in pair)))
    heading = (cell for n in texts.SIZES for cell in (f"{n} texts", "at most"))
    return table(("milliseconds a query", *heading), rows)


def _end_to_end(found: Found) -> str:
    rows = []
    for way in end_to_end.WAYS:
        values = found.paired(end_to_end.RACE, *end_to_end.columns(way))
        if way.selection is None:
            values = [(*value[:2], 0.0, *value[2:]) for value in values]
        took = end_to_end.parts(values)
        each = (took.embedding, took.search, took.selection, took.framework)
        cells = [f"{1000 * part:.2f} ({100 * part / took.together:.1f} %)" for part in each]
        rows.append((way.name, f"{1000 * took.whole:.2f}", *cells))
    return table(("milliseconds a query", "whole", "embedding", "search", "selection", "framework"), rows)


def _how(found: Found) -> str:
    missing = [reason for name, (_, reason) in LARGEST.items() if name != HAYSTACK or found.has(Point(*SIZES[0]), name)]
    if not found.has(Point(*SIZES[0]), HAYSTACK):
        missing.append("Haystack was not installed (group `bench`)")
    counts = {"series": found.series, "unstable": found.unstable, "slow": SLOW}
    about = _HOW.format(processes=found.processes, turns=found.turns, load=found.load, **counts)
    return about + "- A dash means that nothing was measured: " + "; ".join(missing) + "."


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = ["| " + " | ".join(heading) + " |", "| ---" + " | ---:" * (len(heading) - 1) + " |"]
    return "\n".join((*lines, *("| " + " | ".join(row) + " |" for row in rows)))


_BOUNDS = """\
A bound is the speed that setselect requires of itself. The median of the ratios decides. A ratio says how many times as
fast the selector is as pyversity's MMR in the same turn. The default and NDPP are compared with pyversity's DPP. If a
bound applies to several sizes, the table shows the one with the worst figure. The bounds of the adapters are in
[adapters.md](adapters.md)."""

_ANY_LENGTH = """\
`select` copies these rows to normalise them. The peers from LangChain, LlamaIndex and Haystack are left out: their
speed does not depend on the lengths of the rows."""

_BATCHES = f"""\
Microseconds a query, medians, `select_many` with one worker. Each query has its own candidates, rows of unit length:
{BATCHES[0].queries:,} queries of {BATCHES[0].n} × {BATCHES[0].d}, {BATCHES[1].queries:,} of \
{BATCHES[1].n} × {BATCHES[1].d}."""

_TEXTS = f"""\
What `match_words` and `find_references` take for texts of {texts.LENGTH:,} characters, medians. Each text begins with
its name and names five others."""

_INDEX = f"{end_to_end.N:,} × {end_to_end.D}"
_END_TO_END = f"""\
LangChain's FAISS store with a flat index of {_INDEX}, {end_to_end.FETCH_K} candidates, {end_to_end.K} picks, λ = 0.5,
one thread. all-MiniLM-L6-v2 embeds the question. Only times are measured, so the documents are labels with random
vectors. *Search* is the index's own call. *Selection* is the function on vectors that are already read. *Framework* is
the rest: reading the candidates' vectors from the index and making documents of them. *Whole* is measured by itself,
in the same turns as the parts. A percentage is a share of the sum of the parts."""

_HOW = """\
- {processes} processes run one after the other, each with {turns} turns; a contender that takes over {slow} s a call
  runs in one turn. The first process finds how many calls make a value. Clock, runs and file format are pyperf's:
  `--json FILE` keeps the values for `python -m pyperf show`, `check` and `compare_to`.
- Load of the machine before the run: {load}. {unstable} of the {series} series of values have a standard
  deviation of at least a tenth of their mean; pyperf calls them unstable. A disturbance of the machine affects all
  contenders of a turn, so ratios are computed turn by turn.
- BLAS and OpenMP use one thread each: at these sizes more threads cost every contender more than they gain.
- The vectors are random with a common direction, as embeddings of texts on one subject have. The seed is fixed.
- MMR weighs relevance with λ = 0.5 everywhere.
- The default gets the words of the question as an array; matching them to the texts is not in these figures.
- pyversity gets relevance scores that are already computed. LangChain's function gets a float32 array, its fastest
  input, and lists of Python floats, as many stores return them. LlamaIndex's function gets a list of float32 rows,
  because it accepts no array.
- LlamaIndex's MMR penalises similarity to the last pick only, so it does less work. pyversity counts negative cosines
  as 0.
- Haystack's ranker takes texts, and embeds them in each call. In this benchmark its public attribute `model` is an
  object that returns given tensors, so only the ranker's MMR is timed.
"""
