"""What the commands share: exit codes, consoles, progress bars and messages (typer and rich)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.progress import track
from rich.segment import Segment
from rich.text import Text

from .._validation import printable
from ..evaluation.corpus import Problem
from ..signals.embedding_models import SentenceModel, Track, load_model

# 70 is EX_SOFTWARE of sysexits.h.
FINE, WITH_PROBLEMS, COULD_NOT_RUN, CRASHED = 0, 1, 2, 70
EXIT_CODES = """\b
Exit codes:
  0   done
  1   done, with problems: something was left out, or the run was interrupted
  2   could not run, or has no result; the message says why
  70  a fault of setselect itself: please report it
  130 interrupted by Ctrl-C before the command began
"""
# At most this many bad lines are named: if a file has a wrong format, every line is bad.
SHOWN_PROBLEMS = 20


def stop(say: Console, why: str) -> NoReturn:
    """Print why the command could not run, and end it with its exit code (``typer.Exit``)."""
    show_last(say, f"error: {why}")
    raise typer.Exit(COULD_NOT_RUN)


def show_last(say: Console, message: str) -> None:
    """Print the last message of a run; a terminal that cannot show it does not change the exit code."""
    with suppress(OSError):
        say.print(Text(message))


def with_option_names(message: str, *parameters: str) -> str:
    """The message with the names of Python parameters replaced by those of command-line options.

    >>> with_option_names("fetch_k = 3 is below k = 5", "fetch_k", "k")
    '--fetch-k = 3 is below --k = 5'
    """
    names = "|".join(map(re.escape, parameters))
    return re.sub(rf"(?<![\w-])({names})(?= (=|must) )", lambda found: "--" + found[1].replace("_", "-"), message)


def report_problems(say: Console, problems: Sequence[Problem]) -> None:
    """Name the lines that could not be read; if there are many, the first of them."""
    for problem in problems[:SHOWN_PROBLEMS]:
        say.print(Text(f"skipped {problem}"))
    if len(problems) > SHOWN_PROBLEMS:
        say.print(f"... and {len(problems) - SHOWN_PROBLEMS} more")


class _Escaped(RenderHook):
    """Escapes the control characters of all that a console prints, so that data and file names cannot control it."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_EscapedRenderable(one) for one in renderables]


class _EscapedRenderable:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            # A control segment is made by rich itself, to move the cursor.
            yield segment if segment.control else segment._replace(text=_escape(segment.text))


def _escape(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def message_console() -> Console:
    """A console for messages and progress, on stderr."""
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    say.push_render_hook(_Escaped())
    return say


def result_console() -> Console:
    """A console for results on stdout; into a file or pipe it writes lines of up to 160 columns, where rich uses 80."""
    show = Console(highlight=False)
    show = show if show.is_terminal else Console(highlight=False, width=160)
    show.push_render_hook(_Escaped())
    return show


def show_progress(say: Console) -> Track:
    """A function that shows the progress with the items that it passes on: a bar, or lines where there is no terminal.

    The lines are for logs: ``Embedding documents: 40 %``, at most one for every ten per cent.
    """

    def bar(items: Sequence[Any], description: str) -> Iterable[Any]:
        return track(items, description, console=say)

    def lines(items: Sequence[Any], description: str) -> Iterable[Any]:
        said = 0
        for done, item in enumerate(items, 1):
            yield item
            tenths = 10 * done // len(items)
            if tenths > said:
                said = tenths
                say.print(Text(f"{description}: {100 * done // len(items)} %"))

    # FORCE_COLOR makes rich call a pipe a terminal, and a dumb terminal cannot redraw a line.
    return bar if say.is_interactive and say.file.isatty() else lines


def load_model_visibly(say: Console, name: str) -> SentenceModel:
    """Load an embedding model, and say so if there is a terminal."""
    with say.status(Text(f"Loading {printable(name)} ...")) if say.is_terminal else nullcontext():
        return load_model(name)
