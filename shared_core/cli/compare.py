"""The command ``setselect compare``: documents and queries in, the best method for them out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import ArrayLike
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .._files import write_atomically
from ..errors import InvalidParameterError, SetSelectError
from ..evaluation.compare import check_options
from ..evaluation.compare import compare as compare_methods
from ..evaluation.corpus import read_documents, read_queries
from ..evaluation.demo import demo_corpus
from ..evaluation.qrels import JudgedCorpus, beir_files, read_judged
from ..evaluation.results import Comparison, percent
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding, SentenceModel
from ._terminal import (
    FINE,
    WITH_PROBLEMS,
    load_model_visibly,
    message_console,
    progress_bars,
    report_problems,
    result_console,
    stop,
    with_option_names,
)


def compare(
    folder: Annotated[
        Path | None,
        typer.Argument(help="BEIR folder: corpus.jsonl, queries.jsonl and qrels/*.tsv. Else: --documents, --queries."),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines ({'text', optionally 'id', 'title', 'subtopics'}), CSV, or a folder of .txt and .md files."
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines or CSV ('text', optionally 'gold', 'subtopics', 'root', 'answers'), or .txt with one "
            "query a line."
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the BEIR folder: a file of its qrels/. Default: test, or the only one there is."),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            help="Judgements in place of gold and subtopics: TREC (query, 0 or subtopic, document, score) or BEIR "
            "(query, document, score)."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Name or folder of a sentence-transformers model.")] = DEFAULT_MODEL,
    k: Annotated[int, typer.Option("--k", min=1, help="Number of documents to pick for each query.")] = 5,
    fetch_k: Annotated[
        int, typer.Option(min=1, help="Number of nearest documents (candidates) to pick them from.")
    ] = 50,
    out: Annotated[Path | None, typer.Option(help="File for the report: .html, or .json for the figures only.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Compare on NumPy's docstrings; no files are needed.")] = False,
    decide_by: Annotated[
        str | None,
        typer.Option(
            help="Measure that decides: subtopic_recall, answers, p_recall, recall, ndcg, success or alpha_ndcg. "
            "Default: the first of subtopic_recall, answers, p_recall, recall that at least half as many queries "
            "allow as any other of them."
        ),
    ] = None,
    keep_duplicates: Annotated[
        bool,
        typer.Option(
            "--keep-duplicates",
            help="Count documents with the same text as several. By default a text counts once, as in the retrievers.",
        ),
    ] = False,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for bootstrap intervals and permutation tests.")] = 0,
    views: Annotated[int, typer.Option(min=0, help="Number of queries that the report shows one by one.")] = 50,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for embeddings. Default: SETSELECT_CACHE, or ~/.cache/setselect.")
    ] = None,
) -> None:
    """Compare every method on your own documents and queries, or on a BEIR folder.

    Only texts are needed. If queries have gold (ids of the right documents), subtopics or answers, the result
    recommends a setting, or says that similarity is enough, and tells which queries each setting makes worse.

    Exit code 1 means that some lines could not be read, or that the run was interrupted and the report is partial.
    """
    say = message_console()
    try:
        check_options(k, fetch_k, decide_by, seed, views)
        write = _report_writer(out)
        default_title, corpus = _read_corpus(folder, documents, queries, split, qrels, demo)
        report_problems(say, corpus.problems)
        comparison = _compare(
            say, corpus, model=model, cache=cache, title=title or default_title, k=k, fetch_k=fetch_k,
            decide_by=decide_by, drop_duplicates=not keep_duplicates, seed=seed, views=views,
        )  # fmt: skip
        show = result_console()
        try:
            # The report is written first, so that no failure of the terminal can lose it.
            write(comparison)
        finally:
            _show(show, comparison)
        if out is not None:
            show.print(Text(f"\nWritten: {out}"), soft_wrap=True)
    except InvalidParameterError as error:
        stop(say, with_option_names(str(error), "k", "fetch_k", "decide_by", "seed", "views", "split"))
    except (SetSelectError, ImportError, OSError) as error:
        stop(say, str(error))
    except KeyboardInterrupt:
        stop(
            say,
            "interrupted before there was a result; finished embeddings are kept: run the same command again to resume",
        )
    raise typer.Exit(WITH_PROBLEMS if corpus.problems or comparison.partial else FINE)


def _report_writer(out: Path | None) -> Callable[[Comparison], None]:
    """A function that writes the result. A wrong path or a missing jinja2 is an error now, before the comparison."""
    if out is None:
        return lambda comparison: None
    folder = out.absolute().parent
    if out.suffix.lower() not in (".html", ".json"):
        raise InvalidParameterError(f"--out must end in .html or .json, got {out}")
    if not folder.is_dir():
        raise InvalidParameterError(f"--out: there is no folder {folder}")
    if out.is_dir():
        raise InvalidParameterError(f"--out: {out} is a folder; give the name of a file in it, such as report.html")
    if not os.access(folder, os.W_OK):
        raise InvalidParameterError(f"--out: the folder {folder} cannot be written to")
    if out.suffix.lower() == ".json":

        def render(comparison: Comparison) -> str:
            return comparison.to_json(indent=1) + "\n"

    else:
        from ..evaluation.report import render

    def write(comparison: Comparison) -> None:
        try:
            write_atomically(out, render(comparison))
        except OSError as error:
            why = f"--out: {out} cannot be written: {error.strerror or error}; an earlier report is kept"
            raise InvalidParameterError(why) from error

    return write


def _read_corpus(
    folder: Path | None,
    documents: Path | None,
    queries: Path | None,
    split: str | None,
    qrels: Path | None,
    demo: bool,
) -> tuple[str, JudgedCorpus]:
    """A title for the corpus, and the corpus."""
    if demo:
        if folder or documents or queries or qrels or split:
            raise InvalidParameterError("--demo has its own documents and queries: leave out folders and files")
        return "NumPy's docstrings", JudgedCorpus(*demo_corpus(), [], [])
    if folder is not None:
        if documents or queries:
            raise InvalidParameterError(f"{folder} has its own documents and queries: leave out --documents, --queries")
        if split and qrels:
            raise InvalidParameterError("--split names judgements of the folder, --qrels a file of them: leave out one")
        found = beir_files(folder, split, qrels)
        return f"{folder.absolute().name}, {found.qrels.stem}", read_judged(*found)
    if documents is None or queries is None:
        raise InvalidParameterError("--documents and --queries are both needed, or a BEIR folder, or --demo")
    if split:
        raise InvalidParameterError("--split is for a BEIR folder: name the file of the judgements by --qrels")
    title = documents.absolute().name
    if qrels is not None:
        return title, read_judged(documents, queries, qrels)
    corpus, questions = read_documents(documents), read_queries(queries)
    return title, JudgedCorpus(corpus.items, questions.items, [*corpus.problems, *questions.problems], [])


def _compare(
    say: Console,
    corpus: JudgedCorpus,
    *,
    model: str,
    cache: Path | None,
    **options: Any,
) -> Comparison:
    bars = progress_bars(say)

    @lru_cache
    def loaded() -> SentenceModel:
        # The model loads at the first embedding, which comes after the checks of options and ids.
        return load_model_visibly(say, model)

    def embed_documents(texts: list[str]) -> ArrayLike:
        name = f"{loaded().fingerprint} document"
        make = loaded().embed_documents
        return CachedEmbedding(make, name, cache, track=bars, description="Embedding documents")(texts)

    def embed_queries(texts: list[str]) -> ArrayLike:
        name = f"{loaded().fingerprint} query"
        return CachedEmbedding(loaded().embed_queries, name, cache, track=bars, description="Embedding queries")(texts)

    embed = (embed_documents, embed_queries)
    documents, queries, problems, notes = corpus
    comparison = compare_methods(documents, queries, embed, model=model, track=bars, notes=notes, **options)
    said = []
    if problems:
        lines = "1 line or file" if len(problems) == 1 else f"{len(problems)} lines or files"
        said.append(f"{lines} could not be read and were left out; the first: {problems[0]}")
    limit = loaded().max_characters
    longer = sum(len(document.text) > limit for document in documents) if limit else 0
    if longer:
        said.append(
            f"{longer} of {len(documents)} documents are longer than about {limit} characters. The model reads only "
            "the beginning of them: split them into passages."
        )
    return replace(comparison, notes=(*said, *comparison.notes))


def _show(show: Console, comparison: Comparison) -> None:
    facts = comparison.corpus
    interrupted = f" of {facts.planned_queries}, interrupted" if comparison.partial else ""
    show.print(
        Text(
            f"{comparison.title}: {facts.documents} documents, {facts.queries} queries{interrupted}; "
            f"{facts.k} of the {facts.fetch_k} nearest; {facts.model}"
        )
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    columns = []
    for measure in comparison.measures:
        table.add_column(measure.name, justify="right")
        means = [f"{comparison.values[i, measure.key].mean + 0.0:.3f}" for i in range(len(comparison.settings))]
        best = (max if measure.higher_is_better else min)(means, key=float)
        columns.append([Text(mean, "bold" if mean == best else "") for mean in means])
    for i, setting in enumerate(comparison.settings):
        recommended = i == comparison.recommendation.setting
        label = Text(f"{'→ ' if recommended else '  '}{setting.label}", "bold" if recommended else "")
        table.add_row(label, *(column[i] for column in columns))
    show.print(table)
    _show_differences(show, comparison)
    show.print(Text(f"\n{comparison.recommendation.text}"))
    for note in comparison.notes:
        show.print(Text(f"Note: {note}"))


def _show_differences(show: Console, comparison: Comparison) -> None:
    """What each setting gains and loses against similarity by the measure that decides; nothing if none decides."""
    deciding = next((one for one in comparison.measures if one.key == comparison.recommendation.measure), None)
    if deciding is None or len(comparison.settings) == 1:
        return
    # The names of the settings may take two lines, so that a terminal of 80 columns cuts no figure.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("setting", min_width=17)
    for name in ("mean", "95 % interval", "better", "worse", "loss", "most"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("query", no_wrap=True, overflow="ellipsis", max_width=24)
    for i, setting in enumerate(comparison.settings[1:], 1):
        to = comparison.differences[i, deciding.key]
        recommended = i == comparison.recommendation.setting
        table.add_row(
            Text(f"{'→ ' if recommended else '  '}{setting.label}", "bold" if recommended else ""),
            f"{to.mean:+.3f}",
            f"{to.low:+.3f} to {to.high:+.3f}",
            percent(to.better),
            percent(to.worse),
            "" if to.worst_query is None else f"{to.loss:.3f}",
            "" if to.worst_query is None else f"{to.worst_loss:.3f}",
            Text(to.worst_query or ""),
        )
    show.print(
        Text(
            f"\n{deciding.name} against similarity, query by query: the mean difference, the shares of queries that a "
            "setting makes better and worse, what the worse ones lose on average and at most, and the query that loses "
            "most"
        )
    )
    show.print(table)
