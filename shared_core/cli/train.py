"""The command ``setselect train``: a file of questions with answers in, a learned kernel out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .._files import hold_lock, remove_leftovers
from ..errors import SetSelectError
from ..learning.feedback.prompts import EXAMPLE
from ..learning.held_out import hold_out
from ..learning.labels.labelling import LabelledSubset, label
from ..learning.settings import FitSettings
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding
from ..signals.language_models import import_library
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
    with_option_names,
)
from ._train_session import KEY, Consent, Files, feedback_of, find_queries, fit_or_best, print_warnings, show_result
from ._vectors import read_rows

_LISTWISE, _LIKELIHOOD = "Listwise: ", "Likelihood: "


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
    objective: Annotated[str, typer.Option(help="listwise, or likelihood (the NDPP paper's).")] = "listwise",
    kernel: Annotated[
        str, typer.Option(help="linear: also serves items that are added later. rows: one row for each id.")
    ] = "linear",
    k: Annotated[int, typer.Option("--k", min=1, help="Number of examples to pick.")] = 4,
    fetch_k: Annotated[
        int,
        typer.Option(min=1, help="Number of nearest items from which examples are picked and subsets are drawn."),
    ] = 100,
    subsets: Annotated[
        int | None, typer.Option(min=1, help="Subsets for each item. Default: fetch-k // k; at most 96 k for greedy.")
    ] = None,
    draw: Annotated[
        str | None, typer.Option(help="greedy (default for listwise) or random (default for the likelihood).")
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(min=1, help="Columns of V, the symmetric part of the kernel. Default: length of the vectors."),
    ] = None,
    skew_rank: Annotated[
        int, typer.Option(min=0, help="Columns of B, the skew-symmetric part; 0 gives a symmetric kernel.")
    ] = 32,
    temperature: Annotated[float, typer.Option(help="Temperature of the exponential relevance at the start.")] = 0.1,
    learn_relevance: Annotated[bool, typer.Option(help=_LISTWISE + "train the map of the relevance too.")] = True,
    sharpness: Annotated[
        float, typer.Option(help=_LISTWISE + "temperature of the target, in standard deviations of the scores.")
    ] = 0.6,
    pull: Annotated[
        float, typer.Option(min=0, help=_LISTWISE + "weight of the penalty on the distance from the start.")
    ] = 1e-3,
    share: Annotated[
        float, typer.Option(help=_LIKELIHOOD + "share of the labels to train on, those with the highest scores.")
    ] = 0.1,
    normalisation: Annotated[
        str, typer.Option(help=_LIKELIHOOD + "pool or candidates: a probability is over all subsets of these items.")
    ] = "pool",
    alpha: Annotated[float, typer.Option(min=0, help=_LIKELIHOOD + "weight of the penalty on V.")] = 0.01,
    beta: Annotated[float, typer.Option(min=0, help=_LIKELIHOOD + "weight of the penalty on B.")] = 0.01,
    ridge: Annotated[
        float, typer.Option(min=0, help=_LIKELIHOOD + "added to the diagonal of a subset's matrix.")
    ] = 1e-5,
    learning_rate: Annotated[
        float | None, typer.Option(help="Learning rate of Adam. Default: 0.001 for listwise, 0.01 for the likelihood.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Default: 32 queries for listwise; a fortieth of the subsets, at least 64, for the likelihood.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Largest number of epochs.")] = 30,
    patience: Annotated[int, typer.Option(min=1, help="Stop after this many epochs without improvement.")] = 8,
    held_out: Annotated[
        float,
        typer.Option(help="Share of the items that is not used in training, but to measure what the kernel gains."),
    ] = 0.2,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the drawn subsets, the split, the initial kernel and the batches.")
    ] = 0,
    device: Annotated[str, typer.Option(help="Device that trains the kernel: cpu, cuda.")] = "cpu",
    labels: Annotated[Path | None, typer.Option(help="File for the labels. Default: beside OUT.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot of the fit, .svg or .png. Default: beside OUT.")] = None,
) -> None:
    """Learn an NDPP kernel from your own questions and answers: which examples help together.

    All files are kept beside OUT: after Ctrl-C or a crash the same command resumes where it stopped.

    Exit code: 0 success; 1 the kernel is written, but learning did not help, lines could not be read, or the fit
    was interrupted; 2 there is no kernel.
    """
    say = message_console()
    phase = "before the first label; embeddings are kept"
    names = [field.name for field in fields(FitSettings)]
    try:
        settings = FitSettings(**{name: context.params[name] for name in names})
        files = Files.beside(out, labels, plot)
        context.with_resource(hold_lock(files.kernel))
        for path in (files.kernel, files.log, files.plot):
            remove_leftovers(path)
        # A missing package is reported here, before hours of labelling.
        for name in ("torch", "safetensors", "matplotlib", "tqdm"):
            import_library(name, "train")
        from ..learning.results import plot as draw_plot

        found = read_pool(pool, question, answer, ids=kernel == "rows")
        report_problems(say, found.problems)
        scorer = feedback_of(
            feedback, endpoint, llm, instruction=instruction, example=example, batch_size=llm_batch_size, price=price
        )
        queries = find_queries(found.items, scorer, feedback)
        rows = (
            _embed(say, found, model, cache)
            if vectors is None
            else read_rows(vectors, found.rows, found.lines, "the pool")
        )
        if len(queries) < len(found.items):
            say.print(
                f"{len(found.items) - len(queries)} answers have no symbols: these items are used as examples only"
            )
        # The items are held out before subsets are drawn, so no label that is paid for is lost to the split.
        split = hold_out(found.items, rows, queries=queries, held_out=settings.held_out, seed=settings.seed)
        consent = Consent(say, scorer, yes, settings.count_prompts(len(split.held_out)))

        def make_labels() -> Iterator[LabelledSubset]:
            # fit starts this generator after it has checked its input, so that nothing is refused after the labelling.
            nonlocal phase
            phase = f"while labelling; the labels so far are kept in {files.labels}"
            known = label(
                found.items, rows, scorer, k=k, candidates=fetch_k, subsets=subsets,
                draw=draw or ("greedy" if settings.listwise else "random"), queries=split.labelled(settings.listwise),
                examples=split.examples, seed=seed, resume=files.labels, progress=say.is_terminal, say=consent.ask,
            )  # fmt: skip
            phase = f"before the end of the first epoch; the labels are kept in {files.labels}"
            consent.ask()
            yield from known

        with print_warnings(say):
            fitted, whole = fit_or_best(say, files, found, rows, scorer, make_labels(), settings, split)
            phase = f"while writing; labels and checkpoint are kept beside {files.kernel}"
            fitted.kernel.save(files.kernel)
            draw_plot(files.plot, fitted, f"{pool.name}: {objective}, k = {k}")
    except (SetSelectError, ImportError, OSError) as error:
        message = with_option_names(str(error), *names, "draw", "subsets", "example", "price")
        message = re.sub("(?<=needs )candidates|candidates(?= = )", "--fetch-k", message)
        stop(say, "; ".join([message, *getattr(error, "__notes__", [])]))
    except KeyboardInterrupt:
        stop(say, f"interrupted {phase}: run the same command again to resume")
    except Exception as error:
        # The package openai may be missing, so its errors are recognised by the name of their module.
        if type(error).__module__.partition(".")[0] != "openai":
            raise
        stop(
            say,
            f"{endpoint}: {error}; the labels so far are kept in {files.labels}: run the same command again to resume",
        )
    show_result(result_console(), fitted, files)
    raise typer.Exit(FINE if whole and fitted.helped and not found.problems else WITH_PROBLEMS)


def _embed(say: Console, pool: PoolFile, model: str, cache: Path | None) -> Any:
    loaded = load_model_visibly(say, model)
    # The questions are embedded as documents, because the store holds them as documents when the kernel is in use.
    name = f"{loaded.fingerprint} document"
    embedding = CachedEmbedding(loaded.embed_documents, name, cache, track=show_progress(say))
    return embedding([item["question"] for item in pool.items])
