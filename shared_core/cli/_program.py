"""The commands as one program, which needs typer and rich, and its exit codes."""

from __future__ import annotations

import importlib
import platform
import sys
import traceback
from importlib.metadata import metadata, version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup, TyperOption

from .._validation import rename_arguments
from ..errors import SetSelectError
from . import COMMANDS
from ._terminal import CRASHED, EXIT_CODES, message_console, stop

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
