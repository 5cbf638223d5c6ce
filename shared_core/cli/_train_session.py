"""The parts of ``setselect train``: files, feedback, consent, a fit that can be interrupted, and its result."""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._files import write_atomically
from .._validation import quoted
from ..errors import InvalidInputError, InvalidParameterError, SetSelectError, SetSelectWarning
from ..learning.feedback.coverage import CoverageFeedback, Feedback
from ..learning.feedback.language_model import LanguageModelFeedback
from ..learning.feedback.symbols import structural_symbols
from ..learning.settings import FitSettings
from ..signals.language_models import EndpointModel, TransformersModel
from ._pool_file import PoolFile
from ._terminal import COULD_NOT_RUN

if TYPE_CHECKING:
    from ..learning.results import Epoch, Fitted

# The key is read only from this environment variable: other users of the machine can read a command line, and the key
# in OPENAI_API_KEY is not meant for every server.
KEY = "SETSELECT_API_KEY"
Symbols = Callable[[str], Iterable[Any]]
SYMBOLS: dict[str, Symbols] = {"coverage": structural_symbols, "words": str.split}


class Files(NamedTuple):
    """The kernel's file and the files beside it."""

    kernel: Path
    labels: Path
    checkpoint: Path
    log: Path
    plot: Path

    @classmethod
    def beside(cls, out: Path) -> Files:
        """All paths, derived from the kernel's; a wrong suffix or a missing folder is an InvalidParameterError."""
        if out.suffix != ".safetensors":
            raise InvalidParameterError(f"--out must end in .safetensors, got {out}")
        if not out.absolute().parent.is_dir():
            raise InvalidParameterError(f"--out: the folder {out.absolute().parent} does not exist")
        return cls(out, *map(out.with_suffix, (".labels.jsonl", ".checkpoint", ".log.jsonl", ".svg")))


def feedback_of(name: str | None, endpoint: str | None, llm: str | None, **settings: Any) -> Feedback:
    """The feedback that the options name: coverage of symbols, a local model, or a model behind an endpoint."""
    if (endpoint is None) != (llm is None):
        raise InvalidParameterError("--endpoint (where the model is) and --llm (its name) need each other: give both")
    if endpoint is not None and llm is not None:
        if name is not None:
            raise InvalidParameterError(f"--feedback {name} and --endpoint exclude each other: leave one out")
        return LanguageModelFeedback(EndpointModel(endpoint, llm, api_key=os.environ.get(KEY)), **settings)
    if name is None or name in SYMBOLS:
        return CoverageFeedback(symbols=SYMBOLS[name or "coverage"])
    if ":" in name and not Path(name).exists():
        return CoverageFeedback(symbols=import_function(name))
    try:
        return LanguageModelFeedback(TransformersModel(name), **settings)
    except (InvalidParameterError, ImportError):
        raise
    # A wrong name, a network failure and a damaged folder raise exceptions of four libraries.
    except Exception as error:
        raise InvalidParameterError(
            f"--feedback {name} is none of {', '.join(SYMBOLS)}, does not have the form module:function, and cannot be "
            f"loaded as a model: {error}"
        ) from error


def import_function(name: str) -> Symbols:
    """The function that ``module:function`` names; modules in the current folder are found too.

    >>> import_function("shlex:split")("find . -name '*.c'")
    ['find', '.', '-name', '*.c']
    """
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        with _own_code(name):
            function: Symbols = operator.attrgetter(attribute)(importlib.import_module(module))
    finally:
        sys.path.pop(0)
    return function


def find_queries(items: Sequence[Mapping[str, str]], feedback: Feedback, name: str | None) -> list[int]:
    """Rows of the items that can be queries: all, or with coverage those whose answers have symbols."""
    if not isinstance(feedback, CoverageFeedback):
        return list(range(len(items)))
    rows = []
    for row, item in enumerate(items):
        with _own_code(f"{name} failed for the answer {quoted(item['answer'])}"):
            if frozenset(feedback.symbols(item["answer"])):
                rows.append(row)
    if not rows:
        raise InvalidInputError(
            "this feedback finds no symbols in any answer, so coverage cannot be measured: use --feedback words for "
            "prose, --feedback module:function with a function of your own, or a model"
        )
    return rows


@contextlib.contextmanager
def _own_code(what: str) -> Iterator[None]:
    """What the user's own module or function raises becomes a message of the command."""
    try:
        yield
    except Exception as error:
        raise InvalidParameterError(f"--feedback {what}: {type(error).__name__}: {error}") from error


def expected_errors() -> tuple[type[Exception], ...]:
    """The errors that end the command with a message: also those of the package openai, if it is in use."""
    of_endpoint = (sys.modules["openai"].OpenAIError,) if "openai" in sys.modules else ()
    return (SetSelectError, ImportError, OSError, *of_endpoint)


def ask_consent(say: Console, yes: bool, estimate: str) -> None:
    """Show the size of what will be sent to an endpoint; without a yes the command ends (``typer.Exit``)."""
    say.print(Text(estimate))
    # Without a terminal, confirm raises Abort: nobody can answer.
    with contextlib.suppress(typer.Abort):
        yes = yes or typer.confirm("Continue?", err=True)
    if not yes:
        say.print("Nothing was sent. With --yes the command does not ask.")
        raise typer.Exit(COULD_NOT_RUN)


def fit_or_best(
    console: Console, files: Files, pool: PoolFile, vectors: Any, feedback: Feedback, settings: FitSettings, **more: Any
) -> tuple[Fitted, bool]:
    """The result of :func:`fit` and True; after Ctrl-C the result of its checkpoint and False.

    Before the first epoch the KeyboardInterrupt is raised again.
    """
    from ..learning.fitting import fit

    lines: list[str] = []
    more |= {"ids": pool.ids, "checkpoint": files.checkpoint, "resume": files.labels}
    more["on_epoch"] = partial(_log, files.log, lines)
    try:
        return fit(pool.items, vectors, feedback, settings=settings, progress=console.is_terminal, **more), True
    except KeyboardInterrupt:
        if not lines or not files.checkpoint.exists():
            raise
    console.print("interrupted while fitting: this is the best epoch so far; run the same command again to resume")
    # The checkpoint holds at least one epoch, so a fit of one epoch trains no further.
    return fit(pool.items, vectors, feedback, settings=replace(settings, epochs=1), **more), False


def _log(path: Path, lines: list[str], epoch: Epoch) -> None:
    # A fit that resumes reports all its epochs again.
    del lines[epoch.number :]
    entry = {"epoch": epoch.number, "loss": epoch.loss, "likelihood": epoch.likelihood, "feedback": epoch.feedback}
    lines.append(json.dumps(entry) + "\n")
    write_atomically(path, "".join(lines))


@contextlib.contextmanager
def print_warnings(say: Console) -> Iterator[None]:
    """Print each warning once, as a plain line, while the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", SetSelectWarning)
        warnings.showwarning = lambda message, *_, **__: say.print(Text(f"warning: {message}"))
        yield


def show_result(show: Console, fitted: Fitted, files: Files) -> None:
    """Print the kernel's feedback beside that of selectors that learn nothing, the files, and how to use the kernel."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column(f"feedback, {len(fitted.held_out)} held-out items", justify="right")
    table.add_row(Text(f"learned (epoch {fitted.epoch} of {len(fitted.history) - 1})"), f"{fitted.feedback:.4f}")
    for name, value in fitted.unlearned.items():
        table.add_row(Text(name), f"{value:.4f}")
    show.print(table)
    difference = f"{fitted.gain:+.4f}, standard error {fitted.standard_error:.4f}"
    show.print(Text(f"\nlearned minus the best selector that learns nothing: {difference}"))
    for what, path in files._asdict().items():
        show.print(Text(f"{what:<11}{path}"))
    kind = type(fitted.kernel).__name__
    show.print(Text(f"\nfrom setselect import NDPP, {kind}\nselector = NDPP({kind}.load({str(files.kernel)!r}))"))
