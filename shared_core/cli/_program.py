"""The commands as one program, which needs typer and rich, and its exit codes."""

from __future__ import annotations

import platform
import sys
import traceback
from importlib.metadata import metadata, version
from io import TextIOWrapper
from typing import Annotated

import typer

from ..errors import SetSelectError
from . import batch, compare, train
from ._terminal import COULD_NOT_RUN, CRASHED, EXIT_CODES, message_console, show_last

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


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


app.command()(compare.compare)
app.command()(train.train)
app.command()(batch.batch)


def run() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # If the terminal's encoding lacks a character such as λ, a question mark is shown.
            stream.reconfigure(errors="replace")
    say = message_console()
    try:
        app()
    except MemoryError:
        show_last(say, "error: there is not enough memory")
        sys.exit(COULD_NOT_RUN)
    except (SetSelectError, OSError) as error:
        show_last(say, f"error: {error}")
        sys.exit(COULD_NOT_RUN)
    except Exception:
        versions = f"setselect {version('setselect')} (Python {platform.python_version()})"
        addresses = dict(url.split(", ", 1) for url in metadata("setselect").get_all("Project-URL", []))
        show_last(
            say,
            f"{traceback.format_exc()}\nThis is a fault of {versions}, and not of your data. Please report it at "
            f"{addresses['Issues']}, with all of these lines and the command that you ran.",
        )
        sys.exit(CRASHED)
