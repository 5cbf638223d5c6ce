"""The program ``setselect`` and its commands: compare, train, batch."""

import sys
from importlib.metadata import version

# Each command is a function in the module of its name, and has an extra of its name, which installs all that it needs.
COMMANDS = ("compare", "train", "batch")


def main() -> None:
    """Run the program. Without typer and rich it only prints its version, or which extra to install."""
    try:
        from ._program import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        asked = sys.argv[1:]
        if asked == ["--version"]:
            sys.stdout.write(f"setselect {version('setselect')}\n")
            sys.exit(0)
        wanted = asked[:1] if asked and asked[0] in COMMANDS else COMMANDS
        extras = " or ".join(f'pip install "setselect[{name}]"' for name in wanted)
        what = f"setselect {asked[0]} needs" if len(wanted) == 1 else "the commands of setselect need"
        sys.stderr.write(f"error: {what} packages that are not installed: {extras}\n")
        sys.exit(2)
    run()
