"""The program ``setselect`` and its commands: compare, train, batch."""

from __future__ import annotations

import sys
from io import TextIOWrapper

try:
    import typer

    from . import batch, compare, train
except ImportError as error:
    if error.name not in ("typer", "rich"):
        raise
    raise ImportError(
        'the command setselect needs typer and rich: pip install "setselect[eval]" ("setselect[train]" to train)'
    ) from error

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
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
    app()
