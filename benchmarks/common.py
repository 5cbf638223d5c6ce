"""Shared by all benchmarks: where the data lies, Markdown tables, and the pages of benchmarks/results.

The text of a page stands in the page alone. A script replaces the figures in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shared_core.evaluation.measures import bootstrap_interval

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "examples"))

DATA = Path(os.environ.get("SETSELECT_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"
CACHE = ROOT / ".cache"
# The last digits of a model's vectors depend on the processor, and the picks among almost equal candidates on these.
REPEATED = (
    "A second run on the same kind of processor gives the same figures. Other kinds round differently, which moves "
    "some of them a little."
)
# A new paragraph of a page: its text, or what the old paragraph contains and its text.
Block = str | tuple[str, str]
_skipped: list[str] = []


def say(text: str) -> None:
    """Print a line about the progress."""
    print(text, file=sys.stderr, flush=True)


def skip(what: str) -> None:
    """Say what is left out; no page is written then."""
    _skipped.append(what)
    say(f"skipped {what}")


def is_there(*files: str) -> bool:
    """Whether every file is under ``DATA``; what is missing is said."""
    missing = [name for name in files if not (DATA / name).is_file()]
    if missing:
        skip(f"{', '.join(missing)}: not under {DATA}; set SETSELECT_DATA")
    return not missing


def require(*files: str) -> None:
    """Unless every file is there, say what is missing and end the script with exit code 0."""
    if not is_there(*files):
        sys.exit(0)


def records(name: str) -> list[dict[str, Any]]:
    """The records of a JSON-lines file under ``DATA``, in order."""
    with (DATA / name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def best(scores: np.ndarray, size: int) -> np.ndarray:
    """Indices of the ``size`` highest scores (all if there are fewer); among equals the lower index is first."""
    return np.argsort(-scores, kind="stable")[:size]


def bm25_scores(items: Sequence[str], queries: Sequence[str]) -> list[np.ndarray]:
    """BM25 of every item for each query (bm25s' defaults: Lucene's variant, English stop words, no stemming)."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(items), show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries), return_ids=False, show_progress=False)
    known = [[word for word in words if word in index.vocab_dict] for words in tokens]
    return [index.get_scores(words).astype(np.float64) if words else np.zeros(len(items)) for words in known]


def take_turns(
    runs: Mapping[str, Callable[[str], object]], queries: Sequence[str], most: int, seconds: float = np.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:  # fmt: skip
    """The seconds of each call of each contender, which take turns with the same query in an order that changes.

    There are ``most`` turns, or at least 25 if they take longer than ``seconds`` together. With
    ``time.process_time`` as the clock, other work on the machine does not count, nor does another process of a run.
    """
    took: dict[str, list[float]] = {name: [] for name in runs}
    names, begun = list(runs), time.perf_counter()
    # The first two turns warm up.
    for turn in range(-2, most):
        if turn >= 25 and time.perf_counter() - begun > seconds:
            break
        for name in np.roll(names, turn).tolist():
            start = clock()
            runs[name](queries[turn % len(queries)])
            if turn >= 0:
                took[name].append(clock() - start)
    return took


def parser(doc: str | None, page: str = "") -> argparse.ArgumentParser:
    """The command line of a script; with ``page`` it has --write."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if page:
        made.add_argument("--write", action="store_true", help=f"write the figures into benchmarks/results/{page}")
    return made


def table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    head = list(head)
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def with_interval(values: ArrayLike, digits: int = 3, seed: int = 0, *, bold: str = "") -> str:
    """The mean and its 95 % bootstrap interval; the "mean" or "all" of it is bold if the interval excludes 0.

    >>> with_interval([2.0, 2.0], 1), with_interval([2.0, 2.0], 1, bold="mean")
    ('+2.0 (+2.0 to +2.0)', '**+2.0** [+2.0, +2.0]')
    """
    low, high = bootstrap_interval(values, seed=seed)
    mean, start, end = (f"{value:+.{digits}f}" for value in (np.mean(values), low, high))
    if not bold:
        return f"{mean} ({start} to {end})"
    if low <= 0 <= high:
        return f"{mean} [{start}, {end}]"
    return f"**{mean}** [{start}, {end}]" if bold == "mean" else f"**{mean} [{start}, {end}]**"


def holds(condition: bool) -> str:
    """The first words of a verdict."""
    return "Holds" if condition else "Does not hold"


def facts(files: Iterable[str], packages: Iterable[str], seed: int | str | None = None, *more: str) -> Block:
    """The list at the head of a page: versions, seed, and the sha256 of each data file."""
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])
    lines = [f"Versions: {versions}", f"Seed: {'none needed' if seed is None else seed}"]
    for name in dict.fromkeys(files):
        lines.append(f"Data: `{name}`, sha256 `{hashlib.sha256((DATA / name).read_bytes()).hexdigest()}`")
    return "- Versions: ", "\n".join(f"- {line}" for line in (*lines, *more))


def refresh(page: str, blocks: Iterable[Block]) -> str:
    """The page with new figures. Each block replaces the next paragraph of the page that it fits.

    A heading fits itself, a table fits a table whose head has the same first cell, and (part, text) fits a paragraph
    that contains the part.

    >>> refresh("Some text.\\n\\n| a | b |\\n| --- | ---: |\\n| x | 1 |\\n", [table(["a", "b"], [["x", "2"]])])
    'Some text.\\n\\n| a | b |\\n| --- | ---: |\\n| x | 2 |\\n'
    """
    paragraphs, at = page.strip("\n").split("\n\n"), -1
    for block in blocks:
        part, text = block if isinstance(block, tuple) else (_beginning(block), block)
        begins = isinstance(block, str)
        at = next(
            (i for i in range(at + 1, len(paragraphs))
             if (paragraphs[i] + "\n").startswith(part) or (not begins and part in paragraphs[i])), -1
        )  # fmt: skip
        if at < 0:
            sys.exit(f"not written: the page has no paragraph with {part.strip()!r} where it is expected")
        paragraphs[at] = text.strip("\n")
    return "\n\n".join(paragraphs) + "\n"


def _beginning(block: str) -> str:
    first = block.strip("\n").splitlines()[0]
    return f"{first}\n" if first.startswith("#") else "|".join(first.split("|")[:2]) + "|"


def publish(page: str, blocks: Iterable[Block], write: bool, to: str = "") -> None:
    """Print the blocks; with ``write`` also put them into benchmarks/results/``page``, or a copy of it, ``to``."""
    made = []
    for block in blocks:
        made.append(block)
        print(block if isinstance(block, str) else block[1], end="\n\n", flush=True)
    if write and _skipped:
        sys.exit("not written, because something was left out (see above)")
    if write:
        text = refresh((RESULTS / page).read_text(encoding="utf-8"), made)
        (RESULTS / (to or page)).write_text(text, encoding="utf-8")


def slug(text: str) -> str:
    """A text as a part of a file's name.

    >>> slug("MMR (λ = 0.5)")
    'mmr-lambda-0-5'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower().replace("λ", "lambda")).strip("-")
