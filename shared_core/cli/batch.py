"""The command ``setselect batch``: Parquet files of queries in, Parquet parts with their selections out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from .._parsing import parse_json
from ..errors import InvalidInputError, InvalidParameterError, quoted
from ..selection.route import DEFAULT_K
from ..selectors.registry import DEFAULT_SELECTOR, capabilities_of, make_selector
from ._program import FINE, WITH_PROBLEMS, message_console, result_console, stop


def batch(
    queries: Annotated[Path, typer.Option(help="A Parquet file of queries, or a folder of such files.")],
    index: Annotated[Path, typer.Option(help="File of a FAISS index.")],
    out: Annotated[Path, typer.Option(help="A folder for the parts. Readers of Parquet take it as one table.")],
    k: Annotated[int, typer.Option("--k", help="Number of picks for each query.")] = DEFAULT_K,
    fetch_k: Annotated[
        int | None, typer.Option(help="Number of nearest candidates to select from. Default: 5 k, at least 50.")
    ] = None,
    selector: Annotated[str, typer.Option(help="coverage, ndpp, mmr, vrsd or similarity.")] = DEFAULT_SELECTOR,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="A parameter of the selector as name=value: refine=true, lambda_mult=0.5, kernel=FILE.safetensors. "
            "Can be repeated."
        ),
    ] = None,
    id_column: Annotated[str, typer.Option(help="Column of the queries' ids, which are written unchanged.")] = "id",
    vector_column: Annotated[str, typer.Option(help="Column of the queries' vectors, lists of numbers.")] = "vector",
    candidates_column: Annotated[
        str | None,
        typer.Option(help="Column of lists of labels of the index: the candidates of each query, without a search."),
    ] = None,
    relevance_column: Annotated[
        str | None,
        typer.Option(help="Column of lists of numbers, one for each candidate: relevance in place of the cosine."),
    ] = None,
    question_column: Annotated[
        str | None, typer.Option(help="Column of the queries' texts, whose words coverage reads; needs --texts.")
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="The candidates' texts: a Parquet file or folder with id (label), text, title, source, ..."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes. Two or more run on Ray.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="Run a single worker on Ray too.")] = False,
    block_rows: Annotated[int, typer.Option(min=1, help="Queries in each part.")] = 10_000,
) -> None:
    """Select the best set for each of many queries.

    After Ctrl-C or a crash the same command resumes: parts that exist are not written again.

    Exit code: 0 success; 1 done, but some rows have an error in place of a selection; 2 could not run.
    """
    say = message_console()
    try:
        from ..batch.tables import select_dataset

        chosen = make_selector(selector, **_parameters(parameter or []))
        if capabilities_of(chosen).words and texts is None:
            say.print(Text(f"{selector} selects by the vectors alone: with --texts it reads the words too"))
        done = select_dataset(
            queries, index, out=out, k=k, selector=chosen, fetch_k=fetch_k, id_column=id_column,
            vector_column=vector_column, candidates_column=candidates_column, relevance_column=relevance_column,
            question_column=question_column, texts=texts, block_rows=block_rows,
            concurrency=workers if ray or workers > 1 else None, progress=say.is_terminal,
        )  # fmt: skip
    except KeyboardInterrupt:
        stop(say, f"stopped; the parts in {out} are kept, and the same command resumes")
    result_console().print(Text(f"{done.rows} rows in {done.parts} parts: {done.out}"), soft_wrap=True)
    if done.errors:
        say.print(Text(f"{done.errors} rows have an error in place of a selection; the first: {done.first_error}"))
    raise typer.Exit(WITH_PROBLEMS if done.errors else FINE)


def _parameters(texts: list[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidParameterError(f"--parameter takes name=value, got {quoted(text)}")
        try:
            parameters[name] = parse_json(value)
        except InvalidInputError:
            parameters[name] = value
    return parameters
