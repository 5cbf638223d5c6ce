"""What ``setselect train`` does: files, feedback, labels, a fit that can be broken off, and what is said of it."""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import InvalidInputError, InvalidParameterError, SetSelectWarning
from ..learning.feedback.coverage import CoverageFeedback, Feedback
from ..learning.feedback.language_model import LanguageModelFeedback
from ..learning.feedback.symbols import structural_symbols
from ..learning.plot import SUFFIXES
from ._terminal import COULD_NOT_RUN

if TYPE_CHECKING:
    from ..learning.labels.labelling import LabelledSubset
    from ..learning.results import Epoch, Fitted

# The key comes from here alone: not from the command line, which others on the machine can read, nor from
# OPENAI_API_KEY, which is not meant for any server.
KEY = "SETSELECT_API_KEY"
Symbols = Callable[[str], Iterable[Any]]
SYMBOLS: dict[str, Symbols] = {"coverage": structural_symbols, "words": str.split}


@dataclass(frozen=True)
class Files:
    """Where everything goes: the kernel, and beside it what is made on the way.

    Examples
    --------
    >>> str(Files.beside(Path("kernel.safetensors")).labels)
    'kernel.labels.jsonl'
    """

    kernel: Path
    labels: Path
    checkpoint: Path
    log: Path
    plot: Path

    @classmethod
    def beside(cls, out: Path, labels: Path | None = None, plot: Path | None = None) -> Files:
        """The names, from that of the kernel.

        Raises
        ------
        InvalidParameterError
            A suffix is another, or a folder is not there.
        """
        if out.suffix != ".safetensors":
            raise InvalidParameterError(f"--out must end in .safetensors, got {out}")
        if plot is not None and plot.suffix.lower() not in SUFFIXES:
            raise InvalidParameterError(f"--plot must end in .svg or .png, got {plot}")
        for option, path in (("--out", out), ("--labels", labels), ("--plot", plot)):
            if path is not None and not path.absolute().parent.is_dir():
                raise InvalidParameterError(f"{option}: there is no folder {path.absolute().parent}")
        return cls(
            out,
            labels or out.with_suffix(".labels.jsonl"),
            out.with_suffix(".checkpoint"),
            out.with_suffix(".log.jsonl"),
            plot or out.with_suffix(".svg"),
        )


def feedback_of(name: str | None, endpoint: str | None, llm: str | None, **settings: Any) -> Feedback:
    """The feedback that the options name: coverage of symbols, a local model, or a model behind an endpoint.

    Raises
    ------
    InvalidParameterError
        The options exclude each other, a function cannot be imported, or a model cannot be loaded.
    ImportError
        torch, transformers or openai is missing.
    """
    if (endpoint is None) != (llm is None):
        raise InvalidParameterError("--endpoint (where the model is) and --llm (its name) need each other: give both")
    if endpoint is not None and llm is not None:
        if name is not None:
            raise InvalidParameterError(f"--feedback {name} and --endpoint exclude each other: leave one out")
        return LanguageModelFeedback.from_endpoint(endpoint, llm, api_key=os.environ.get(KEY), **settings)
    if name is None or name in SYMBOLS:
        return CoverageFeedback(symbols=SYMBOLS[name or "coverage"])
    if ":" in name and not Path(name).exists():
        return CoverageFeedback(symbols=import_function(name))
    try:
        return LanguageModelFeedback.from_transformers(name, **settings)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidParameterError):
            raise
        raise InvalidParameterError(
            f"--feedback {name} is none of {', '.join(SYMBOLS)}, has not the form module:function, and cannot be "
            f"loaded as a model: {error}"
        ) from error


def import_function(name: str) -> Symbols:
    """The function that ``module:function`` names; modules in the current folder are found too.

    Raises
    ------
    InvalidParameterError
        The module or the function does not exist or fails; the message says which of the two.

    Examples
    --------
    >>> import_function("shlex:split")("find . -name '*.c'")
    ['find', '.', '-name', '*.c']
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise InvalidParameterError(f"--feedback {name} must have the form module:function")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise InvalidParameterError(
            f"--feedback {name}: importing the module {module_name!r} failed: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.pop(0)
    try:
        found = operator.attrgetter(attribute)(module)
    except AttributeError:
        raise InvalidParameterError(f"--feedback {name}: the module {module_name!r} has no {attribute!r}") from None
    if not callable(found):
        raise InvalidParameterError(f"--feedback {name}: {attribute!r} is not a function, but {found!r}")
    function: Symbols = found
    return function


def teaching(items: Sequence[Mapping[str, str]], feedback: Feedback) -> list[int]:
    """Rows of the items that can be queries: by coverage, those whose answers have symbols.

    Raises
    ------
    InvalidInputError
        There is none.

    Examples
    --------
    >>> teaching([{"answer": "count(all)"}, {"answer": "seven"}], CoverageFeedback())
    [0]
    """
    if not isinstance(feedback, CoverageFeedback):
        return list(range(len(items)))
    rows = [row for row, item in enumerate(items) if any(True for _ in feedback.symbols(item["answer"]))]
    if not rows:
        raise InvalidInputError(
            "no answer has symbols of a program or command by this feedback, so nothing can be covered: "
            "take --feedback words for prose, or a model"
        )
    return rows


class Consent:
    """Asks once before anything is sent to an endpoint."""

    def __init__(self, say: Console, feedback: Feedback, given: bool, prompts: int) -> None:
        self._say, self._prompts = say, prompts
        self._needed = bool(getattr(feedback, "remote", False))
        self._given = given

    def ask(self, estimate: str | None = None) -> None:
        """Show what it is about, and go on only with a yes.

        Raises
        ------
        typer.Exit
            There was none.
        """
        if not self._needed:
            return
        self._needed = False
        if estimate is not None:
            self._say.print(Text(estimate))
        more = " more" if estimate else ""
        self._say.print(Text(f"to fit: at most {self._prompts:,} prompts{more}, for the picks of held-out items"))
        if self._given:
            return
        agreed = False
        # Without a terminal there is nobody to answer.
        with contextlib.suppress(typer.Abort):
            agreed = typer.confirm("Go on?", err=True)
        if not agreed:
            self._say.print("Nothing was sent. --yes goes on without the question.")
            raise typer.Exit(COULD_NOT_RUN)


class Log:
    """A file of JSON lines, one for each epoch, begun anew with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __call__(self, epoch: Epoch) -> None:
        """Write the epoch's line."""
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8")
        told = {"epoch": epoch.number, "loss": epoch.loss, "likelihood": epoch.likelihood, "feedback": epoch.feedback}
        self._file.write(json.dumps(told) + "\n")
        self._file.flush()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def fitted_or_best(
    say: Console,
    files: Files,
    items: Sequence[Mapping[str, Any]],
    vectors: Any,
    feedback: Feedback,
    labels: Iterable[LabelledSubset],
    settings: Mapping[str, Any],
) -> tuple[Fitted, bool]:
    """What :func:`fit` gives and True; broken off with Ctrl-C, what its checkpoint has and False.

    Raises
    ------
    KeyboardInterrupt
        There is no checkpoint yet.
    """
    from ..learning.fitting import fit

    known: list[LabelledSubset] = []

    def kept() -> Iterator[LabelledSubset]:
        for entry in labels:
            known.append(entry)
            yield entry

    # What is asked of an endpoint was said before.
    given = {**settings, "checkpoint": files.checkpoint, "say": lambda line: None}
    try:
        with Log(files.log) as log:
            return fit(items, vectors, feedback, kept(), **given, progress=say.is_terminal, on_epoch=log), True
    except KeyboardInterrupt:
        if not known or not files.checkpoint.exists():
            raise
    say.print("broken off while fitting: this is the best epoch so far; run the same again to go on")
    with Log(files.log) as log:
        # With an epoch behind it, it trains no more.
        return fit(items, vectors, feedback, known, **{**given, "epochs": 1}, on_epoch=log), False


@contextlib.contextmanager
def spoken_warnings(say: Console) -> Iterator[None]:
    """Our warnings as plain lines, each once, while the block runs."""

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        if isinstance(message, SetSelectWarning):
            say.print(Text(f"warning: {message}"))
        else:
            usual(message, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", SetSelectWarning)
        usual = warnings.showwarning
        warnings.showwarning = show
        yield


def show_result(show: Console, fitted: Fitted, files: Files) -> None:
    """The kernel beside what learns nothing, where the files are, and how to use it."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column(f"feedback, {len(fitted.held_out)} held-out items", justify="right")
    table.add_row(Text(f"learned (epoch {fitted.epoch} of {len(fitted.history) - 1})"), f"{fitted.feedback:.4f}")
    for name, value in fitted.unlearned.items():
        table.add_row(Text(name), f"{value:.4f}")
    show.print(table)
    difference = f"{fitted.gain:+.4f}, standard error {fitted.standard_error:.4f}"
    show.print(Text(f"\nlearned, against the best that learns nothing: {difference}"))
    written = {"kernel": files.kernel, "labels": files.labels, "checkpoint": files.checkpoint, "log": files.log}
    for what, path in {**written, "plot": files.plot}.items():
        show.print(Text(f"{what:<11}{path}"))
    kind = type(fitted.kernel).__name__
    show.print(Text(f"\nfrom shared_core import NDPP, {kind}\nselector = NDPP({kind}.load({str(files.kernel)!r}))"))
