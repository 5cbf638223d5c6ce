"""The command ``setselect batch``: Parquet files of queries in, Parquet parts with the chosen sets out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..errors import InvalidParameterError, KernelError, SetSelectError
from ..selectors.base import make_selector
from ._terminal import FINE, WITH_PROBLEMS, stop


def batch(
    queries: Annotated[Path, typer.Option(help="A Parquet file of queries, or a folder of them.")],
    index: Annotated[Path, typer.Option(help="A FAISS index in a file; it is mapped, not loaded.")],
    out: Annotated[Path, typer.Option(help="A folder for the parts; Parquet readers take it as one table.")],
    k: Annotated[int, typer.Option("--k", help="How many are picked for a query.")] = 5,
    fetch_k: Annotated[int, typer.Option(help="How many of the nearest they are picked from.")] = 100,
    selector: Annotated[str, typer.Option(help="vrsd, mmr, ndpp, similarity.")] = "vrsd",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            help="Of the selector, as name=value: refine=true, lambda_d=0.5, kernel=FILE.safetensors. Repeat."
        ),
    ] = None,
    id_column: Annotated[str, typer.Option(help="The queries' own ids, carried through.")] = "id",
    row_numbers: Annotated[bool, typer.Option("--row-numbers", help="There are no ids: write row numbers.")] = False,
    vector_column: Annotated[str | None, typer.Option(help="Lists of floats; default: vector.")] = None,
    text_column: Annotated[str | None, typer.Option(help="Texts to embed instead.")] = None,
    model: Annotated[
        str | None, typer.Option(help="For texts: a sentence-transformers model; default: all-MiniLM-L6-v2.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; more than 1 are Ray actors.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="A single worker on Ray too.")] = False,
    threads: Annotated[int, typer.Option(min=1, help="Of FAISS in each worker.")] = 1,
    block_rows: Annotated[int, typer.Option(min=1, help="Queries of a part.")] = 10_000,
) -> None:
    """Choose the best set for each of many queries.

    After Ctrl-C or a crash the same command goes on: parts that are written are not made again.

    Exit code: 0 all is well, 1 done but there are rows with an error in place of a set, 2 could not run.
    """
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        from ..batch.dataset import select_dataset

        done = select_dataset(
            queries, index, out=out, k=k, fetch_k=fetch_k,
            selector=make_selector(selector, **_parameters(parameter or [])),
            id_column=None if row_numbers else id_column, vector_column=vector_column, text_column=text_column,
            model=model, concurrency=workers if ray or workers > 1 else None, threads=threads, block_rows=block_rows,
            progress=say.is_terminal,
        )  # fmt: skip
    except (SetSelectError, ImportError, OSError) as error:
        stop(say, str(error))
    except KeyboardInterrupt:
        stop(say, f"broken off; the parts in {out} are kept: run it again to go on")
    there = f", {done.resumed} of them there before" if done.resumed else ""
    typer.echo(f"{done.rows} rows in {done.parts} parts{there}: {done.out}")
    if done.errors:
        say.print(Text(f"{done.errors} rows have an error in place of a set; the first: {done.first_error}"))
    raise typer.Exit(WITH_PROBLEMS if done.errors else FINE)


def _parameters(given: list[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidParameterError(f"--parameter takes name=value, got {one!r}")
        if name in parameters:
            raise InvalidParameterError(f"--parameter {name} is given twice")
        parameters[name] = _kernel(value) if name == "kernel" else _value(value)
    return parameters


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _kernel(path: str) -> Any:
    from ..selectors.kernels import LinearKernel, LowRankKernel

    try:
        return LinearKernel.load(path)
    except KernelError:
        # Of the other kind, or no kernel, which this says.
        return LowRankKernel.load(path)
