"""The command ``setselect train``: a file of questions with answers in, a learned kernel out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text

from ..errors import SetSelectError
from ..learning.feedback.prompts import EXAMPLE
from ..learning.labels.labelling import LabelledSubset, label
from ..signals.embedding_models import DEFAULT_MODEL
from ..signals.language_models import import_library
from ._pool_file import PoolFile, read_pool, read_vectors
from ._terminal import FINE, WITH_PROBLEMS, report_problems, stop
from ._train_session import KEY, Consent, Files, feedback_of, fitted_or_best, show_result, spoken_warnings, teaching

_LIKELIHOOD, _LISTWISE = "For the likelihood: ", "For listwise: "


def train(
    pool: Annotated[Path, typer.Argument(help="JSON lines: {'question', 'answer', optionally 'id'}.")],
    out: Annotated[Path, typer.Option(help="Where the kernel goes: a .safetensors file.")],
    question: Annotated[str, typer.Option(help="The key of a line's question.")] = "question",
    answer: Annotated[str, typer.Option(help="The key of a line's answer.")] = "answer",
    model: Annotated[str, typer.Option(help="A sentence-transformers model: name or folder.")] = DEFAULT_MODEL,
    vectors: Annotated[
        Path | None, typer.Option(help="Instead of a model: a .npy file with a row for each line.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings; default: SETSELECT_CACHE or ~/.cache/setselect.")
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            help="coverage (the default: function names in programs and logical forms), words, module:function (a "
            "function of yours from an answer to its symbols), or a causal language model of transformers: name or "
            "folder."
        ),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(help=f"URL of an OpenAI-compatible API with log-probabilities; key: {KEY}.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="The model's name at the endpoint.")] = None,
    instruction: Annotated[str, typer.Option(help="What stands first in a model's prompt.")] = "",
    example: Annotated[str, typer.Option(help="How an example is put; ends with {answer}.")] = EXAMPLE,
    llm_batch_size: Annotated[int, typer.Option(min=1, help="Prompts at once.")] = 8,
    price: Annotated[float | None, typer.Option(min=0, help="Of a million tokens, for the estimate.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the endpoint is called.")] = False,
    objective: Annotated[str, typer.Option(help="listwise, or likelihood (the paper's).")] = "listwise",
    kernel: Annotated[
        str, typer.Option(help="linear serves items that come later too; rows has a row for each id.")
    ] = "linear",
    k: Annotated[int, typer.Option("--k", min=1, help="How many examples are picked.")] = 4,
    fetch_k: Annotated[int, typer.Option(min=1, help="Out of how many of the nearest, and subsets drawn.")] = 100,
    subsets: Annotated[
        int | None, typer.Option(min=1, help="Subsets for each item; default: as many as fit, 96 k for greedy.")
    ] = None,
    draw: Annotated[
        str | None, typer.Option(help="greedy (default for listwise) or random (default for the likelihood).")
    ] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Columns of V; default: the vectors' length.")] = None,
    skew_rank: Annotated[int, typer.Option(min=0, help="Columns of B; 0: symmetric.")] = 32,
    temperature: Annotated[float, typer.Option(help="Of the relevance, to begin with.")] = 0.1,
    learn_relevance: Annotated[bool, typer.Option(help=_LISTWISE + "train the relevance along.")] = True,
    sharpness: Annotated[float, typer.Option(help=_LISTWISE + "of the target, in standard deviations.")] = 0.6,
    pull: Annotated[float, typer.Option(min=0, help=_LISTWISE + "towards the start.")] = 1e-3,
    share: Annotated[float, typer.Option(help=_LIKELIHOOD + "the share of the labels to keep.")] = 0.1,
    normalisation: Annotated[str, typer.Option(help=_LIKELIHOOD + "pool or candidates.")] = "pool",
    alpha: Annotated[float, typer.Option(min=0, help=_LIKELIHOOD + "regulariser of V.")] = 0.01,
    beta: Annotated[float, typer.Option(min=0, help=_LIKELIHOOD + "regulariser of B.")] = 0.01,
    ridge: Annotated[float, typer.Option(min=0, help=_LIKELIHOOD + "of a subset's determinant.")] = 1e-5,
    learning_rate: Annotated[
        float | None, typer.Option(help="Adam's; default: .001 for listwise, .01 for the likelihood.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Default: 32 queries for listwise; for the likelihood a fortieth of the subsets, at least 64."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="At most.")] = 30,
    patience: Annotated[int, typer.Option(min=1, help="Epochs without anything better before it ends.")] = 8,
    held_out: Annotated[float, typer.Option(help="The share of the items that measures.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Of draws, split, start and batches.")] = 0,
    device: Annotated[str, typer.Option(help="Where the kernel is fitted: cpu, cuda.")] = "cpu",
    labels: Annotated[Path | None, typer.Option(help="Where labels are kept; default: beside OUT.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Drawing of the fit, .svg or .png; default: beside OUT.")] = None,
) -> None:
    """Learn an NDPP kernel from your own questions and answers: which examples help together.

    Everything on the way is kept beside OUT: after Ctrl-C or a crash the same command goes on.

    Exit code: 0 all is well; 1 the kernel is written, but learning did not help, lines could not be read, or the fit
    was broken off; 2 there is no kernel.
    """
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    settings: dict[str, Any] = {
        "objective": objective, "kernel": kernel, "k": k, "fetch_k": fetch_k, "rank": rank, "skew_rank": skew_rank,
        "temperature": temperature, "learn_relevance": learn_relevance, "sharpness": sharpness, "pull": pull,
        "share": share, "normalisation": normalisation, "alpha": alpha, "beta": beta, "ridge": ridge,
        "learning_rate": learning_rate, "batch_size": batch_size, "epochs": epochs, "patience": patience,
        "held_out": held_out, "seed": seed, "device": device,
    }  # fmt: skip
    phase = "before there was a label; what was embedded is kept"
    try:
        files = Files.beside(out, labels, plot)
        # What is missing is to come to light now, not after hours of labelling.
        for name in ("torch", "safetensors", "matplotlib", "tqdm"):
            import_library(name, "train")
        from ..learning.plot import plot as draw_plot

        held = read_pool(pool, question, answer, ids=kernel == "rows")
        report_problems(say, held.problems)
        helps = feedback_of(
            feedback, endpoint, llm, instruction=instruction, example=example, batch_size=llm_batch_size, price=price
        )
        queries = teaching(held.items, helps)
        rows = _embedded(say, held, model, cache) if vectors is None else read_vectors(vectors, held)
        if len(queries) < len(held.items):
            say.print(f"{len(held.items) - len(queries)} answers have no symbols: these items are examples only")
        # Each epoch, the one before the first, and four selectors that learn nothing.
        consent = Consent(say, helps, yes, round(held_out * len(queries)) * (epochs + 5))

        def labelled() -> Iterator[LabelledSubset]:
            # Called once fit has found nothing to refuse, lest hours of labelling come before that.
            nonlocal phase
            phase = f"while labelling; the labels so far are kept in {files.labels}"
            known = label(
                held.items, rows, helps, k=k, candidates=fetch_k, subsets=subsets,
                draw=draw or ("greedy" if objective == "listwise" else "random"), queries=queries, seed=seed,
                resume=files.labels, progress=say.is_terminal, say=consent.ask,
            )  # fmt: skip
            phase = f"before the first epoch was done; the labels are kept in {files.labels}"
            consent.ask()
            yield from known

        with spoken_warnings(say):
            fitted, whole = fitted_or_best(
                say, files, held.items, rows, helps, labelled(), {**settings, "ids": held.ids}
            )
            phase = f"while writing; labels and checkpoint are kept beside {files.kernel}"
            fitted.kernel.save(files.kernel)
            draw_plot(files.plot, fitted, f"{pool.name}: {objective}, k = {k}")
    except (SetSelectError, ImportError, OSError) as error:
        stop(say, "; ".join([str(error), *getattr(error, "__notes__", [])]))
    except KeyboardInterrupt:
        stop(say, f"broken off {phase}: run it again to go on")
    except Exception as error:
        # Whatever a server does wrong; openai need not be installed to name it.
        if type(error).__module__.partition(".")[0] != "openai":
            raise
        stop(say, f"{endpoint}: {error}; the labels so far are kept in {files.labels}: run it again to go on")
    show = Console(highlight=False)
    show_result(show if show.is_terminal else Console(highlight=False, width=160), fitted, files)
    raise typer.Exit(FINE if whole and fitted.helped and not held.problems else WITH_PROBLEMS)


def _embedded(say: Console, pool: PoolFile, model: str, cache: Path | None) -> Any:
    from ..signals.embedding_cache import CachedEmbedding
    from ..signals.embedding_models import load_model

    def bar(items: Sequence[Any], description: str) -> Iterable[Any]:
        return track(items, description, console=say, disable=not say.is_terminal)

    with say.status(Text(f"Loading {model} ...")) if say.is_terminal else nullcontext():
        loaded = load_model(model)
    # As documents: at the time of use they lie in a store.
    name = f"{loaded.fingerprint} document"
    return CachedEmbedding(loaded.embed_documents, name, cache, track=bar)([item["question"] for item in pool.items])
