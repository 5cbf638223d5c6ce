"""Speed of the selectors and of their peers in one interleaved run, on one BLAS thread.

A run starts several processes, one after the other. In each process the contenders of a size take turns, setselect's
selectors with numba and in numpy alone, and ratios are taken turn by turn. A run takes under ten minutes on a quiet
machine.

    python -m benchmarks.speed --json FILE          # keeps all values in pyperf's format
    python -m benchmarks.speed --read FILE --write  # the page from such a file
"""

from __future__ import annotations

import os

# These are set before numpy is imported; the measuring processes inherit them.
os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pyperf

from benchmarks.common import ROOT, parser, publish, say
from benchmarks.racing.contenders import batch_contenders, contenders
from benchmarks.racing.page import blocks, verdicts
from benchmarks.racing.races import BATCHES, POINTS, Found, Race, calls, data, run

# Processes, turns in each, and the least seconds of a value. Turns are many and short, so that a disturbance of the
# machine falls on few of them.
FULL, FAST = (3, 8, 0.01), (2, 2, 0.004)
PACKAGES = (
    "numba", "numpy", "pyversity", "langchain-core", "llama-index-core", "sentence-transformers-haystack",
    "haystack-ai", "simsimd", "pyperf",
)  # fmt: skip


def main() -> None:
    made = parser(__doc__, "speed.md")
    made.add_argument("--fast", action="store_true", help="a short trial: fewer and shorter turns; nothing is written")
    made.add_argument("--json", type=Path, metavar="FILE", help="keep all values, as pyperf does")
    made.add_argument("--read", type=Path, metavar="FILE", help="measure nothing: take what --json kept")
    made.add_argument("--process", type=int, help=argparse.SUPPRESS)
    made.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    options = made.parse_args()
    processes, turns, least = FAST if options.fast else FULL
    if find_spec("numba") is None and not options.read:
        sys.exit('the benchmark needs numba: pip install "setselect[fast]"')
    if options.process is not None:
        known = {} if options.first is None else calls(pyperf.BenchmarkSuite.load(str(options.first)))
        suite = run(races(), process=options.process, turns=turns, least=least, known=known, about=about())
        suite.dump(str(options.json))
        return
    suite = pyperf.BenchmarkSuite.load(str(options.read)) if options.read else measure(processes, options.fast)
    if options.json:
        suite.dump(str(options.json), replace=True)
    found = Found(suite)
    publish("speed.md", blocks(found), options.write and not options.fast)
    print("\n".join(", ".join(verdict) for verdict in verdicts(found)))


def measure(processes: int, fast: bool) -> pyperf.BenchmarkSuite:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{process}.json" for process in range(processes)]
        say("A process takes up to two minutes, with --fast about one.")
        for process, file in enumerate(files):
            command = [sys.executable, "-m", "benchmarks.speed", "--process", str(process), "--json", str(file)]
            command += ["--fast"] if fast else []
            command += ["--first", str(files[0])] if process else []
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - begun
            say(f"process {process + 1} of {processes}: {seconds:.0f} s")
        suites = [pyperf.BenchmarkSuite.load(str(file)) for file in files]
    for other in suites[1:]:
        for benchmark in other.get_benchmarks():
            suites[0].add_runs(benchmark)
    return suites[0]


def races() -> Iterator[Race]:
    """One race for each point, and one for each batch."""
    for point in POINTS:
        yield Race(str(point), contenders(point, data(point)))
    for batch in BATCHES:
        yield Race(str(batch), batch_contenders(batch), inner=batch.queries)


def about() -> dict[str, str]:
    """Versions, commit and load, which pyperf's metadata lack."""
    load = ", ".join(f"{minutes:.1f}" for minutes in os.getloadavg())
    return {"versions": versions(), "setselect": commit(), "load": f"{load} over 1, 5 and 15 minutes"}


def versions() -> str:
    return ", ".join((f"Python {platform.python_version()}", *installed(PACKAGES), blas()))


def installed(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            # LangChain's function uses simsimd where it is installed.
            if name == "simsimd":
                yield f"no {name}"


def blas() -> str:
    from threadpoolctl import threadpool_info

    # Other packages bring a BLAS too; the arrays here are multiplied by numpy's.
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas" and "numpy" in pool["filepath"]]
    return ", ".join(f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')})" for pool in pools)


def commit() -> str:
    """The measured commit, and whether the packages differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True).stdout

    try:
        changed = git("status", "--porcelain", "--", "shared_core", "langchain_setselect")
        return git("rev-parse", "--short=10", "HEAD").strip() + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return version("setselect")


if __name__ == "__main__":
    main()
