"""Speed of the selectors beside that of their peers and of the machine, in one interleaved run, on one BLAS thread.

A run starts several processes, one after the other; in each, all contenders of a size take turns. Ratios are made
turn by turn. With a quiet machine it takes about ten minutes.

    python benchmarks/speed.py                      # prints the page and what the speed is held to
    python benchmarks/speed.py --write              # and writes benchmarks/results/speed.md and the two drawings
    python benchmarks/speed.py --fast               # a try: fewer and shorter turns
    python benchmarks/speed.py --json FILE          # keeps all values in pyperf's format
    python benchmarks/speed.py --read FILE --write  # the page and the drawings from such a file
"""

from __future__ import annotations

import os

# Before numpy is imported; the processes that measure have it from here.
os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "HF_HUB_OFFLINE": "1"}

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pyperf

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.racing import end_to_end
from benchmarks.racing.asked import checked
from benchmarks.racing.contenders import contenders
from benchmarks.racing.figures import Found
from benchmarks.racing.limits import limits
from benchmarks.racing.page import page
from benchmarks.racing.plot import DARK, LIGHT, plot
from benchmarks.racing.points import LAMBDA, POINTS, data
from benchmarks.racing.turns import Race, calls, run

RESULTS = ROOT / "benchmarks" / "results"
# Processes, turns in each, and the seconds that a value takes at least. Many short turns: what disturbs the machine for
# a moment should fall on few of them.
FULL, FAST = (5, 8, 0.01), (2, 2, 0.004)
PACKAGES = (
    "numba",
    "numpy",
    "pyversity",
    "langchain-core",
    "llama-index-core",
    "sentence-transformers-haystack",
    "haystack-ai",
)
ALSO = ("simsimd", "faiss-cpu", "langchain-community", "sentence-transformers", "torch", "pyperf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}/speed.md and .svg")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all values, as pyperf does")
    parser.add_argument("--read", type=Path, metavar="FILE", help="measure nothing: take what --json kept")
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    processes, turns, least = FAST if asked.fast else FULL
    if asked.process is not None:
        known = {} if asked.first is None else calls(pyperf.BenchmarkSuite.load(str(asked.first)))
        suite = run(races(), process=asked.process, turns=turns, least=least, known=known, about=about())
        suite.dump(str(asked.json))
        return
    suite = pyperf.BenchmarkSuite.load(str(asked.read)) if asked.read else measured(processes, asked.fast)
    if asked.json:
        suite.dump(str(asked.json), replace=True)
    found = Found(suite)
    text = page(found)
    print(text)
    print("\n".join(checked(found)))
    if asked.write:
        (RESULTS / "speed.md").write_text(text, encoding="utf-8")
        plot(RESULTS / "speed.svg", found, LIGHT)
        plot(RESULTS / "speed-dark.svg", found, DARK)


def measured(processes: int, fast: bool) -> pyperf.BenchmarkSuite:
    """The values of so many processes, each in a run of its own."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{process}.json" for process in range(processes)]
        print(
            "A process takes about two minutes, the first one three; with --fast one and two.",
            file=sys.stderr,
            flush=True,
        )
        for process, file in enumerate(files):
            command = [sys.executable, __file__, "--process", str(process), "--json", str(file)]
            command += ["--fast"] if fast else []
            command += ["--first", str(files[0])] if process else []
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - begun
            print(f"process {process + 1} of {processes}: {seconds:.0f} s", file=sys.stderr, flush=True)
        suites = [pyperf.BenchmarkSuite.load(str(file)) for file in files]
    for other in suites[1:]:
        for benchmark in other.get_benchmarks():
            suites[0].add_runs(benchmark)
    return suites[0]


def races() -> Iterator[Race]:
    """One for each size, and one from the text of a question to documents; each is made when it is its turn."""
    for point in POINTS:
        given = data(point)
        runs = contenders(point, given) | (limits(given) if point.lambda_mult == LAMBDA else {})
        facts: dict[str, str | int | float] = {
            "n": point.n,
            "d": point.d,
            "k": point.k,
            "rows": point.length,
            "lambda_mult": point.lambda_mult,
        }
        yield Race(str(point), runs, facts)
    yield end_to_end.race()


def about() -> dict[str, str]:
    """Versions, commit, load: what pyperf does not know."""
    load = ", ".join(f"{minutes:.1f}" for minutes in os.getloadavg())
    return {"versions": versions(), "setselect": commit(), "load": f"{load} over 1, 5 and 15 minutes"}


def versions() -> str:
    return ", ".join((f"Python {platform.python_version()}", *installed((*PACKAGES, *ALSO)), blas()))


def installed(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            # What is chosen by itself where it is there: by setselect, and by LangChain's function.
            if name in ("numba", "simsimd"):
                yield f"no {name}"


def blas() -> str:
    from threadpoolctl import threadpool_info

    # Others bring one too; arrays are multiplied by numpy's.
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas" and "numpy" in pool["filepath"]]
    return ", ".join(f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')})" for pool in pools)


def commit() -> str:
    """The commit measured, and whether the packages were changed since."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout

    try:
        changed = git("status", "--porcelain", "--", "shared_core", "langchain_setselect")
        return git("rev-parse", "--short=10", "HEAD").strip() + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return version("setselect")


if __name__ == "__main__":
    main()
