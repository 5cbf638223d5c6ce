"""What the commands share: exit codes, consoles, progress bars and messages (typer and rich)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text

from .._validation import quoted
from ..errors import InvalidParameterError
from ..signals.embedding_models import SentenceModel, Track, load_model

# 70 is EX_SOFTWARE of sysexits.h.
FINE, WITH_PROBLEMS, COULD_NOT_RUN, CRASHED = 0, 1, 2, 70
EXIT_CODES = """\b
Exit codes:
  0   done
  1   done, with problems: rows or selections failed, or learning did not help
  2   could not run, or has no result; the message says why
  70  a fault of setselect itself: please report it
  130 interrupted by Ctrl-C before the command began
"""


def stop(say: Console, why: str) -> NoReturn:
    """Print why the command could not run, and end it with its exit code (``typer.Exit``)."""
    say.print(Text(f"error: {why}"))
    raise typer.Exit(COULD_NOT_RUN)


def message_console() -> Console:
    """A console for messages and progress, on stderr."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def result_console() -> Console:
    """A console for results on stdout; into a file or pipe it writes lines of up to 160 columns, where rich uses 80."""
    show = Console(highlight=False)
    return show if show.is_terminal else Console(highlight=False, width=160)


def show_progress(say: Console) -> Track:
    """A function that passes items on and shows the progress: a bar, or without a terminal a line for every 10 %."""

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
    # The bars of transformers and of downloads would break the lines of this command.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with say.status(Text(f"Loading {name} ...")) if say.is_terminal else nullcontext():
        return load_model(name)


def import_attribute(option: str, given: str, what: str) -> Any:
    """What ``module:attribute`` names. Modules in the current folder are found, as application servers do."""
    name, _, attribute = given.partition(":")
    if not name or not attribute:
        raise InvalidParameterError(
            f"{option} must be module:attribute, such as my_app:{option.removeprefix('--')}, which names {what}, got "
            f"{quoted(given)}"
        )
    sys.path.insert(0, str(Path.cwd()))
    # A module of the user's may raise anything.
    try:
        return attrgetter(attribute)(import_module(name))
    except Exception as error:
        raise InvalidParameterError(
            f"{option}: {given} cannot be imported in {Path.cwd()}: {type(error).__name__}: {error}"
        ) from error
