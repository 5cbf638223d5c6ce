"""Runs scripts one after the other in this process; writes what each of them printed to a JSON file.

python run_scripts.py REPORT SCRIPT ...

One process imports the frameworks once for many scripts. Output is captured at the file descriptors, so that it
includes what libraries in C and child processes write.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def main(report: str, *scripts: str) -> None:
    results = {}
    for script in scripts:
        sys.argv = [script]
        sys.path[0] = str(Path(script).parent)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with _redirected(1, out), _redirected(2, err):
                code = _run(script)
            results[Path(script).name] = {"code": code, "out": _text(out), "err": _text(err)}
    Path(report).write_text(json.dumps(results), encoding="utf-8")


def _run(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _redirected(descriptor: int, file: BinaryIO) -> Iterator[None]:
    stream = sys.stdout if descriptor == 1 else sys.stderr
    kept = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        yield
    finally:
        stream.flush()
        os.dup2(kept, descriptor)
        os.close(kept)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
