"""The command ``setselect train``: a file of questions with answers in, a learned kernel out."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .._files import hold_lock, remove_leftovers
from .._libraries import import_library
from ..learning.feedback.prompts import EXAMPLE
from ..learning.settings import FitSettings
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding
from ._pool_file import PoolFile, read_pool
from ._terminal import (
    FINE,
    WITH_PROBLEMS,
    load_model_visibly,
    message_console,
    report_problems,
    result_console,
    show_progress,
    stop,
)
from ._train_session import (
    KEY,
    Files,
    ask_consent,
    expected_errors,
    feedback_of,
    find_queries,
    fit_or_best,
    print_warnings,
    show_result,
)
from ._vectors import read_rows

DEFAULTS = FitSettings()


def train(
    context: typer.Context,
    pool: Annotated[Path, typer.Argument(help="JSON lines with the keys question, answer and, optionally, id.")],
    out: Annotated[Path, typer.Option(help="File for the kernel: .safetensors.")],
    question: Annotated[str, typer.Option(help="Key of the question in a line.")] = "question",
    answer: Annotated[str, typer.Option(help="Key of the answer in a line.")] = "answer",
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
    instruction: Annotated[str, typer.Option(help="Start of a model's prompt.")] = "",
    example: Annotated[str, typer.Option(help="Form of an example; ends with {answer}.")] = EXAMPLE,
    llm_batch_size: Annotated[
        int,
        typer.Option(min=1, help="Prompts in one request. A pass of a local model has room for 256 tokens per prompt."),
    ] = 8,
    price: Annotated[float | None, typer.Option(min=0, help="Price of a million tokens, for the estimate.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Call the endpoint without asking first.")] = False,
    objective: Annotated[str, typer.Option(help="listwise, or likelihood (the NDPP paper's).")] = DEFAULTS.objective,
    kernel: Annotated[
        str, typer.Option(help="linear: also serves items that are added later. rows: one row for each id.")
    ] = DEFAULTS.kernel,
    k: Annotated[int, typer.Option("--k", min=1, help="Number of examples to pick.")] = DEFAULTS.k,
    fetch_k: Annotated[
        int,
        typer.Option(min=1, help="Number of nearest items from which examples are picked and subsets are drawn."),
    ] = DEFAULTS.fetch_k,
    subsets: Annotated[
        int | None,
        typer.Option(min=1, help="Subsets for each item. Default: at most 96 k for listwise, else fetch-k // k."),
    ] = None,
    skew_rank: Annotated[
        int, typer.Option(min=0, help="Columns of B, the skew-symmetric part; 0 gives a symmetric kernel.")
    ] = DEFAULTS.skew_rank,
    epochs: Annotated[int, typer.Option(min=1, help="Largest number of epochs.")] = DEFAULTS.epochs,
    held_out: Annotated[
        float,
        typer.Option(help="Share of the items that is not used in training, but to measure what the kernel gains."),
    ] = DEFAULTS.held_out,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the drawn subsets, the split, the initial kernel and the batches.")
    ] = DEFAULTS.seed,
    device: Annotated[str, typer.Option(help="Device that trains the kernel: cpu, cuda.")] = DEFAULTS.device,
) -> None:
    """Learn an NDPP kernel from your own questions and answers: which examples help together.

    All files are kept beside OUT: after Ctrl-C or a crash the same command resumes where it stopped. Python's fit has
    further settings.

    Exit code: 0 success; 1 the kernel is written, but learning did not help, lines could not be read, or the fit
    was interrupted; 2 there is no kernel.
    """
    say = message_console()
    names = [field.name for field in fields(FitSettings) if field.name in context.params]
    try:
        settings = FitSettings(**{name: context.params[name] for name in names})
        files = Files.beside(out)
        context.with_resource(hold_lock(files.kernel))
        for path in (files.kernel, files.log, files.plot):
            remove_leftovers(path)
        # A missing package is reported here, before hours of labelling.
        for name in ("torch", "safetensors", "matplotlib", "tqdm"):
            import_library(name, "train")
        from ..learning.results import plot

        contents = read_pool(pool, question, answer, ids=kernel == "rows")
        report_problems(say, contents.problems)
        scorer = feedback_of(
            feedback, endpoint, llm, instruction=instruction, example=example, batch_size=llm_batch_size, price=price
        )
        queries = find_queries(contents.items, scorer, feedback)
        rows = (
            _embed(say, contents, model, cache)
            if vectors is None
            else read_rows(vectors, contents.rows, contents.lines, "the pool")
        )
        if len(queries) < len(contents.items):
            say.print(
                f"{len(contents.items) - len(queries)} answers have no symbols: these items are used as examples only"
            )
        with print_warnings(say):
            fitted, whole = fit_or_best(
                say, files, contents, rows, scorer, settings, queries=queries, say=partial(ask_consent, say, yes)
            )
            fitted.kernel.save(files.kernel)
            plot(files.plot, fitted, f"{pool.name}: {objective}, k = {k}")
    except expected_errors() as error:
        stop(say, "; ".join([str(error), *getattr(error, "__notes__", [])]))
    except KeyboardInterrupt:
        stop(say, f"interrupted: what is done so far is kept beside {out}; run the same command again to resume")
    show_result(result_console(), fitted, files)
    raise typer.Exit(FINE if whole and fitted.helped and not contents.problems else WITH_PROBLEMS)


def _embed(say: Console, pool: PoolFile, model: str, cache: Path | None) -> Any:
    loaded = load_model_visibly(say, model)
    # The questions are embedded as documents, because the store holds them as documents when the kernel is in use.
    name = f"{loaded.fingerprint} document"
    embedding = CachedEmbedding(loaded.embed_documents, name, cache, track=show_progress(say))
    return embedding([item["question"] for item in pool.items])
