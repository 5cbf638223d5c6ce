"""The command ``setselect train``: a file of questions with answers in, a learned kernel out."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._files import hold_lock, remove_leftovers
from .._parsing import parse_object
from .._validation import import_library
from ..errors import InvalidInputError, InvalidParameterError, SetSelectWarning
from ..evaluation.corpus import JSON_SUFFIXES, parse_lines, text_of
from ..learning import (
    CoverageFeedback,
    Feedback,
    FitSettings,
    Fitted,
    LanguageModelFeedback,
    fit,
    hold_out,
    structural_symbols,
)
from ..signals.embedding_models import DEFAULT_MODEL
from ..signals.language_models import LanguageModel
from ._program import COULD_NOT_RUN, FINE, WITH_PROBLEMS, import_attribute, message_console, result_console, stop
from ._vectors import VectorSource

DEFAULTS = FitSettings()
# The key is read only from this environment variable: other users of the machine can read a command line, and the key
# in OPENAI_API_KEY is not meant for every server.
KEY = "SETSELECT_API_KEY"
Symbols = Callable[[str], Iterable[Any]]
SYMBOLS: dict[str, Symbols] = {"coverage": structural_symbols, "words": str.split}


def train(
    context: typer.Context,
    pool: Annotated[Path, typer.Argument(help="JSON lines with the keys question and answer.")],
    out: Annotated[Path, typer.Option(help="File for the kernel: .safetensors.")],
    model: Annotated[str, typer.Option(help="Name or folder of a sentence-transformers model.")] = DEFAULT_MODEL,
    vectors: Annotated[
        Path | None, typer.Option(help="In place of a model: a .npy file with a row for each line that is not blank.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings. Default: SETSELECT_CACHE or ~/.cache/setselect.")
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            help="coverage (default: function names in programs and logical forms), words, module:function (your own "
            "function from an answer to its symbols), or the name or folder of a causal language model of transformers."
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help=f"URL of an OpenAI-compatible API with log-probabilities; key: {KEY}.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="Name of the model at the endpoint.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Call the endpoint without asking first.")] = False,
    objective: Annotated[str, typer.Option(help="listwise, or likelihood (the NDPP paper's).")] = DEFAULTS.objective,
    k: Annotated[int, typer.Option("--k", min=1, help="Number of examples to pick.")] = DEFAULTS.k,
    fetch_k: Annotated[
        int,
        typer.Option(min=1, help="Number of nearest items from which examples are picked and subsets are drawn."),
    ] = DEFAULTS.fetch_k,
    subsets: Annotated[
        int | None, typer.Option(min=1, help="Subsets for each item. Default: 96 k at most, or fetch-k // k.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Largest number of epochs.")] = DEFAULTS.epochs,
    device: Annotated[str, typer.Option(help="Device that trains the kernel: cpu, cuda.")] = DEFAULTS.device,
) -> None:
    """Learn an NDPP kernel from your own questions and answers: which examples help together.

    The labels, most of the work, are kept beside OUT: after Ctrl-C or a crash the same command resumes with them.
    Python's fit has further settings.

    Exit code: 0 success; 1 the kernel is written, but learning did not help; 2 there is no kernel.
    """
    say = message_console()
    names = [field.name for field in fields(FitSettings) if field.name in context.params]
    try:
        settings = FitSettings(**{name: context.params[name] for name in names})
        labels = find_labels(out)
        context.with_resource(hold_lock(out))
        remove_leftovers(out)
        # A missing package is reported here, before hours of labelling.
        for name in ("torch", "safetensors", "tqdm"):
            import_library(name, "train")
        items = read_pool(pool)
        scorer = feedback_of(feedback, endpoint, llm)
        queries = find_queries(items, scorer, feedback)
        if len(queries) < len(items):
            say.print(f"{len(items) - len(queries)} answers have no symbols: these items are used as examples only")
        # The questions are embedded as documents, because the store holds them as documents when the kernel is in use.
        rows = VectorSource(say, vectors, model=model, cache=cache).read_documents(len(items))
        rows = rows([item["question"] for item in items]) if callable(rows) else rows
        with print_warnings(say):
            split = hold_out(items, rows, queries=queries, held_out=settings.held_out, seed=settings.seed)
            fitted = fit(
                items, rows, scorer, **asdict(settings), split=split, resume=labels, progress=say.is_terminal,
                say=partial(ask_consent, say, yes),
            )  # fmt: skip
            fitted.kernel.save(out)
    except KeyboardInterrupt:
        stop(say, f"interrupted: the labels so far are kept in {labels}; run the same command again to resume")
    show_result(result_console(), fitted, out)
    raise typer.Exit(FINE if fitted.helped else WITH_PROBLEMS)


def find_labels(out: Path) -> Path:
    """The file beside the kernel's that keeps the labels; a wrong suffix or a missing folder is an error."""
    if out.suffix != ".safetensors":
        raise InvalidParameterError(f"--out must end in .safetensors, got {out}")
    if not out.absolute().parent.is_dir():
        raise InvalidParameterError(f"--out: the folder {out.absolute().parent} does not exist")
    return out.with_suffix(".labels.jsonl")


def read_pool(path: Path) -> list[dict[str, str]]:
    """The items of JSON lines, with the keys ``question`` and ``answer``. A bad line is an error."""
    if path.suffix.lower() not in JSON_SUFFIXES:
        raise InvalidParameterError(
            f"{path}: the pool must be a .jsonl file, with a JSON object with question and answer on each line"
        )

    def read_item(line: str) -> dict[str, str]:
        record = parse_object(line)
        return {key: text_of(record, (key,)) for key in ("question", "answer")}

    items = list(parse_lines(path, read_item))
    if not items:
        raise InvalidInputError(f"{path} has no item")
    return items


def feedback_of(name: str | None, endpoint: str | None, llm: str | None) -> Feedback:
    """The feedback that the options name: coverage of symbols, a local model, or a model behind an endpoint."""
    if (endpoint is None) != (llm is None):
        raise InvalidParameterError("--endpoint (where the model is) and --llm (its name) need each other: give both")
    if endpoint is not None and llm is not None:
        if name is not None:
            raise InvalidParameterError(f"--feedback {name} and --endpoint exclude each other: leave one out")
        return LanguageModelFeedback(LanguageModel(llm, base_url=endpoint, api_key=os.environ.get(KEY)))
    if name is None or name in SYMBOLS:
        return CoverageFeedback(symbols=SYMBOLS[name or "coverage"])
    if ":" in name and not Path(name).exists():
        return CoverageFeedback(symbols=import_attribute("--feedback", name, "a function"))
    # A wrong name, a network failure and a damaged folder raise exceptions of four libraries.
    try:
        return LanguageModelFeedback(LanguageModel(name))
    except (InvalidParameterError, ImportError):
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"--feedback {name} is not one of {', '.join(SYMBOLS)}, nor module:function, and cannot be loaded as a "
            f"model: {error}"
        ) from error


def find_queries(items: Sequence[Mapping[str, str]], feedback: Feedback, name: str | None) -> list[int]:
    """Rows of the items that can be queries: all, or with coverage those whose answers have symbols."""
    if not isinstance(feedback, CoverageFeedback):
        return list(range(len(items)))
    # A function of the user's may raise anything.
    try:
        rows = [row for row, item in enumerate(items) if frozenset(feedback.symbols(item["answer"]))]
    except Exception as error:
        raise InvalidParameterError(f"--feedback {name} failed: {type(error).__name__}: {error}") from error
    if not rows:
        raise InvalidInputError(
            "this feedback finds no symbols in any answer, so coverage cannot be measured: use --feedback words for "
            "prose, --feedback module:function with a function of your own, or a model"
        )
    return rows


def ask_consent(say: Console, yes: bool, estimate: str) -> None:
    """Show the size of what will be sent to an endpoint; without a yes the command ends (``typer.Exit``)."""
    say.print(Text(estimate))
    # Without a terminal, confirm raises Abort: nobody can answer.
    with contextlib.suppress(typer.Abort):
        yes = yes or typer.confirm("Continue?", err=True)
    if not yes:
        say.print("Nothing was sent. With --yes the command does not ask.")
        raise typer.Exit(COULD_NOT_RUN)


@contextlib.contextmanager
def print_warnings(say: Console) -> Iterator[None]:
    """Print each warning once, as a plain line, while the block runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", SetSelectWarning)
        warnings.showwarning = lambda message, *_, **__: say.print(Text(f"warning: {message}"))
        yield


def show_result(show: Console, fitted: Fitted, out: Path) -> None:
    """Print the kernel's feedback beside that of selectors that learn nothing, and how to use the kernel."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column(f"feedback, {len(fitted.held_out)} held-out items", justify="right")
    table.add_row(Text(f"learned (epoch {fitted.epoch} of {len(fitted.history) - 1})"), f"{fitted.feedback:.4f}")
    for name, value in fitted.unlearned.items():
        table.add_row(Text(name), f"{value:.4f}")
    show.print(table)
    difference = f"{fitted.gain:+.4f}, standard error {fitted.standard_error:.4f}"
    show.print(Text(f"\nlearned minus the best selector that learns nothing: {difference}"))
    kind = type(fitted.kernel).__name__
    show.print(Text(f"\nfrom setselect import NDPP, {kind}\nselector = NDPP({kind}.load({str(out)!r}))"))
