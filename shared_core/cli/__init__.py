"""The program ``setselect`` and its commands: compare, train, batch."""

from __future__ import annotations

import platform
import sys
import traceback
from importlib.metadata import version
from io import TextIOWrapper

from ..errors import SetSelectError

try:
    import typer

    from . import batch, compare, train
    from ._terminal import COULD_NOT_RUN, CRASHED, EXIT_CODES, message_console, show_last
except ImportError as error:
    if error.name not in ("typer", "rich"):
        raise
    raise ImportError(
        'the command setselect needs typer and rich: pip install "setselect[eval]" ("setselect[train]" to train)'
    ) from error

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(epilog=EXIT_CODES)
def _setselect() -> None:
    """Select the best set of k documents, not the k nearest ones."""


app.command()(compare.compare)
app.command()(train.train)
app.command()(batch.batch)


def main() -> None:
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
        show_last(
            say,
            f"{traceback.format_exc()}\nThis is a fault of {versions}, and not of your data. Please report it to the "
            "project, with all of these lines and the command that you ran.",
        )
        sys.exit(CRASHED)
