"""The program ``setselect`` with its exit codes, and what its commands share: consoles, progress and messages.

It needs typer and rich.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import traceback
from contextlib import nullcontext
from importlib.metadata import metadata, version
from io import TextIOWrapper
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text
from typer.core import TyperCommand, TyperGroup, TyperOption

from ..errors import InvalidParameterError, SetSelectError, quoted, rename_arguments
from ..signals.embedding_models import SentenceModel, Track, load_model
from . import COMMANDS

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
    """A function that passes items on, and shows a bar on a terminal."""
    # FORCE_COLOR makes rich call a pipe a terminal, and a dumb terminal cannot redraw a line.
    hidden = not (say.is_interactive and say.file.isatty())
    return lambda items, description: track(items, description, console=say, disable=hidden)


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
        return attrgetter(attribute)(importlib.import_module(name))
    except Exception as error:
        raise InvalidParameterError(
            f"{option}: {given} cannot be imported in {Path.cwd()}: {type(error).__name__}: {error}"
        ) from error


_STYLE: dict[str, Any] = {
    "add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False,
}  # fmt: skip


class _Command(TyperCommand):
    """A command that ends with a message and the exit code 2 where its files, its options or the machine are at fault.

    In its messages the arguments of the library have the names of the command's options.
    """

    def invoke(self, ctx: Any) -> Any:
        options = [parameter for parameter in self.params if isinstance(parameter, TyperOption)]
        try:
            with rename_arguments({option.name: option.opts[0] for option in options if option.name}):
                return super().invoke(ctx)
        except MemoryError:
            stop(message_console(), "there is not enough memory")
        except _expected_errors() as error:
            stop(message_console(), "; ".join([str(error), *getattr(error, "__notes__", [])]))


def _expected_errors() -> tuple[type[Exception], ...]:
    """The errors that are no fault of setselect: also those of the package openai, if it is in use."""
    of_endpoint = (sys.modules["openai"].OpenAIError,) if "openai" in sys.modules else ()
    return (SetSelectError, ImportError, OSError, *of_endpoint)


class _Program(TyperGroup):
    """The commands; the module of a command is loaded when the command is used, or the help of the program shown."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # For an unknown name typer suggests one of all commands.
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                alone = typer.Typer(**_STYLE)
                alone.command(name, cls=_Command)(getattr(importlib.import_module(f".{name}", __package__), name))
                self.commands[name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)


app = typer.Typer(cls=_Program, no_args_is_help=True, **_STYLE)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"setselect {version('setselect')}")
        raise typer.Exit


@app.callback(epilog=EXIT_CODES)
def _setselect(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Select the best set of k documents, not the k nearest ones."""


def run() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # If the terminal's encoding lacks a character such as λ, a question mark is shown.
            stream.reconfigure(errors="replace")
    say = message_console()
    try:
        app()
    # Any exception: a fault of ours has an exit code of its own, and the message says where to report it.
    except Exception:
        versions = f"setselect {version('setselect')} (Python {platform.python_version()})"
        addresses = dict(url.split(", ", 1) for url in metadata("setselect").get_all("Project-URL", []))
        say.print(
            Text(
                f"{traceback.format_exc()}\nThis is a fault of {versions}, and not of your data. Please report it at "
                f"{addresses['Issues']}, with all of these lines and the command that you ran."
            )
        )
        sys.exit(CRASHED)
