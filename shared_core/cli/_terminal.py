"""What the commands share: exit codes, and how problems are shown (typer and rich)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from ..evaluation.corpus import Problem

FINE, WITH_PROBLEMS, COULD_NOT_RUN = 0, 1, 2
# So many bad lines are shown; of a file in a wrong format every line is bad.
SHOWN_PROBLEMS = 20


def stop(say: Console, why: str) -> NoReturn:
    """Say why, and end the command: it could not run.

    Raises
    ------
    typer.Exit
        Always.

    Examples
    --------
    >>> import sys
    >>> try:
    ...     stop(Console(file=sys.stdout), "no such file")
    ... except typer.Exit as end:
    ...     end.exit_code
    error: no such file
    2
    """
    say.print(Text(f"error: {why}"))
    raise typer.Exit(COULD_NOT_RUN)


def report_problems(say: Console, problems: Sequence[Problem]) -> None:
    """Name the lines that could not be read, or the first of them where they are many.

    Examples
    --------
    >>> import sys
    >>> from shared_core.evaluation.corpus import Problem
    >>> report_problems(Console(file=sys.stdout), [Problem("pool.jsonl", 3, "there is no 'answer'")])
    skipped pool.jsonl:3: there is no 'answer'
    """
    for problem in problems[:SHOWN_PROBLEMS]:
        say.print(Text(f"skipped {problem}"))
    if len(problems) > SHOWN_PROBLEMS:
        say.print(f"... and {len(problems) - SHOWN_PROBLEMS} more")
