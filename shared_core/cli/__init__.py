"""The command ``setselect``: which method is best on your own documents, and a kernel learned from your own items."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer
    from rich import box
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise ImportError(
        'the command setselect needs typer and rich: pip install "setselect[eval]", or [train] for setselect train'
    ) from error

from ..errors import InvalidParameterError, SetSelectError
from ..signals.embedding_models import DEFAULT_MODEL
from ._terminal import FINE, WITH_PROBLEMS, report_problems, stop
from .batch import batch
from .train import train

if TYPE_CHECKING:
    from ..evaluation.corpus import Document, Problem, Query
    from ..evaluation.results import Comparison

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback()
def _setselect() -> None:
    """Choose the best set of k documents, not the k nearest ones."""


@app.command()
def compare(
    documents: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines ({'text', optionally 'id', 'subtopics'}), CSV, or a folder of .txt and .md files."
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines or CSV ('text', optionally 'gold', 'subtopics', 'root', 'answers'), or .txt, one a line."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="A sentence-transformers model: name or folder.")] = DEFAULT_MODEL,
    k: Annotated[int, typer.Option("--k", help="How many documents are picked for a query.")] = 5,
    fetch_k: Annotated[int, typer.Option(help="How many of the nearest they are picked from.")] = 50,
    out: Annotated[Path | None, typer.Option(help="Write the report there: .html, or .json for the figures.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on NumPy's docstrings, no files needed.")] = False,
    decide_by: Annotated[
        str | None,
        typer.Option(
            help="Measure that decides; by default the first there is of subtopic_recall, answers, p_recall, recall. "
            "Also ndcg, success, alpha_ndcg."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals and tests.")] = 0,
    views: Annotated[int, typer.Option(help="How many queries the report shows one by one.")] = 50,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings; default: SETSELECT_CACHE or ~/.cache/setselect.")
    ] = None,
) -> None:
    """Compare every method on your own documents and queries.

    Only texts are needed. With gold ids, subtopics or answers there is a recommended setting, and how sure that is.

    Exit code: 0 all is well, 1 done but with lines that could not be read or not to the end, 2 could not run.
    """
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        write = _writer(out)
        held, asked, problems = _corpus(documents, queries, demo)
        report_problems(say, problems)
        comparison = _compare(
            say, held, asked, problems, model=model, cache=cache, title=title or _title(documents, demo), k=k,
            fetch_k=fetch_k, decide_by=decide_by, seed=seed, views=views,
        )  # fmt: skip
        # First, lest anything about the terminal cost the report.
        write(comparison)
        _show(comparison)
    except (SetSelectError, ImportError, OSError) as error:
        stop(say, str(error))
    except KeyboardInterrupt:
        stop(say, "broken off before there was a result; what was embedded is kept: run it again to go on")
    if out is not None:
        typer.echo(f"\nWritten: {out}")
    raise typer.Exit(WITH_PROBLEMS if problems or comparison.partial else FINE)


app.command()(train)
app.command()(batch)


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show λ shows something else in its place.
            stream.reconfigure(errors="replace")
    app()


def _writer(out: Path | None) -> Callable[[Comparison], object]:
    """How the result is written; what stands in the way is found before anything takes time."""

    if out is None:
        return lambda comparison: None
    if out.suffix.lower() not in (".html", ".json"):
        raise InvalidParameterError(f"--out must end in .html or .json, got {out}")
    if not out.absolute().parent.is_dir():
        raise InvalidParameterError(f"--out: there is no folder {out.absolute().parent}")
    if out.suffix.lower() == ".json":
        return lambda comparison: out.write_text(comparison.to_json(indent=1) + "\n", encoding="utf-8")
    from ..evaluation.report.page import write_report

    return lambda comparison: write_report(comparison, out)


def _corpus(
    documents: Path | None, queries: Path | None, demo: bool
) -> tuple[list[Document], list[Query], list[Problem]]:
    from ..evaluation.corpus import read_documents, read_queries

    if demo:
        if documents or queries:
            raise InvalidParameterError(
                "--demo brings its own documents and queries: leave --documents and --queries out"
            )
        from ..evaluation.demo import demo_corpus

        return *demo_corpus(), []
    if documents is None or queries is None:
        raise InvalidParameterError("--documents and --queries are both needed, or --demo")
    held, asked = read_documents(documents), read_queries(queries)
    return held.items, asked.items, [*held.problems, *asked.problems]


def _title(documents: Path | None, demo: bool) -> str:
    return "NumPy's docstrings" if demo or documents is None else documents.absolute().name


def _compare(
    say: Console,
    documents: list[Document],
    queries: list[Query],
    problems: Sequence[Problem],
    *,
    model: str,
    cache: Path | None,
    **options: Any,
) -> Comparison:
    from ..evaluation.compare import compare, need_extra
    from ..signals.embedding_models import CachedEmbedding, load_model

    need_extra()

    def bar(items: Sequence[Any], description: str) -> Iterable[Any]:
        return track(items, description, console=say, disable=not say.is_terminal)

    with say.status(Text(f"Loading {model} ...")) if say.is_terminal else nullcontext():
        loaded = load_model(model)
    embed_documents = CachedEmbedding(
        loaded.embed_documents, f"{loaded.fingerprint} document", cache, track=bar, description="Embedding documents"
    )
    embed_queries = CachedEmbedding(
        loaded.embed_queries, f"{loaded.fingerprint} query", cache, track=bar, description="Embedding queries"
    )
    notes = []
    if problems:
        lines = "1 line or file" if len(problems) == 1 else f"{len(problems)} lines or files"
        notes.append(f"{lines} could not be read and were left out; the first: {problems[0]}")
    longer = sum(len(document.text) > loaded.max_characters for document in documents) if loaded.max_characters else 0
    if longer:
        notes.append(
            f"{longer} of {len(documents)} documents are longer than about {loaded.max_characters} characters; the model "
            "reads only their beginning: split them into passages."
        )
    return compare(documents, queries, (embed_documents, embed_queries), model=model, track=bar, notes=notes, **options)


def _show(comparison: Comparison) -> None:
    show = Console(highlight=False)
    if not show.is_terminal:
        # Not cut to the 80 columns that rich takes for a file or pipe.
        show = Console(highlight=False, width=160)
    facts = comparison.corpus
    broken_off = f" of {facts.planned_queries}, broken off" if comparison.partial else ""
    show.print(
        Text(
            f"{comparison.title}: {facts.documents} documents, {facts.queries} queries{broken_off}; "
            f"{facts.k} of the {facts.fetch_k} nearest; {facts.model}"
        )
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    best = {}
    for measure in comparison.measures:
        table.add_column(measure.name, justify="right")
        means = [_digits(comparison.values[i, measure.key].mean) for i in range(len(comparison.settings))]
        best[measure.key] = (max if measure.higher_is_better else min)(means, key=float)
    for i, setting in enumerate(comparison.settings):
        taken = i == comparison.recommendation.setting
        cells = []
        for measure in comparison.measures:
            mean = _digits(comparison.values[i, measure.key].mean)
            cells.append(Text(mean, "bold" if mean == best[measure.key] else ""))
        table.add_row(Text(f"{'→ ' if taken else '  '}{setting.label}", "bold" if taken else ""), *cells)
    show.print(table)
    show.print(Text(f"\n{comparison.recommendation.text}"))
    for note in comparison.notes:
        show.print(Text(f"Note: {note}"))


def _digits(value: float) -> str:
    return f"{value + 0.0:.3f}"


if __name__ == "__main__":
    main()
