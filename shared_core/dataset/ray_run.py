"""The same choice on Ray Data (extra ``ray``): actors that each hold an index, and blocks that no death loses.

What is sent to the actors is a plan, a few numbers for each block of queries. An actor reads its block, chooses, and
writes the block's part under a name that the block alone decides. A block whose actor dies is run again by Ray: until
then its part is not there, afterwards there is one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import InvalidParameterError, SetSelectError
from .choosing import Chooser
from .output_folder import STAGED, OutputFolder
from .query_files import Block
from .query_rows import check_schema
from .run import choose_block
from .settings import Settings

TRIES = 5
# The plan and its answers are all that passes through Ray's store; left alone, it takes a third of the memory.
_STORE_BYTES = 128 << 20


class BlockActor:
    """Chooses for the blocks of a plan and writes their parts."""

    def __init__(self, settings: Settings, out: str) -> None:
        self._chooser = Chooser(settings)
        self._folder = OutputFolder(Path(out))

    def __call__(self, plan: dict[str, Any]) -> dict[str, Any]:
        """The numbers of the blocks whose parts are written."""
        for number, file, start, rows, first_row in zip(
            *(plan[name].tolist() for name in ("number", "file", "start", "rows", "first_row")), strict=True
        ):
            # The actor before this one may have died between its part and its answer.
            if self._folder.part(number).is_file():
                continue
            # Ray runs a block again for ever; one that kills its actor each time is to end the run and not the budget.
            if self._folder.tried(number) >= TRIES:
                raise ChildProcessError(
                    f"rows {start} to {start + rows - 1} of {file} killed their worker {TRIES} times over "
                    "(out of memory? fewer block_rows take less); what is written is kept"
                )
            choose_block(self._chooser, Block(number, file, start, rows, first_row), self._folder)
        return {"number": plan["number"]}


class TableActor:
    """Chooses for the batches of a Ray Dataset."""

    def __init__(self, settings: Settings) -> None:
        self._chooser = Chooser(settings)

    def __call__(self, queries: Any) -> Any:
        """A table of sets for a table of queries."""
        return self._chooser.choose(queries)


def choose_blocks(blocks: list[Block], settings: Settings, folder: OutputFolder, concurrency: int, bar: bool) -> None:
    """Choose for these blocks with so many actors, and write their parts.

    Raises
    ------
    SetSelectError, OSError, ImportError
        What an actor raised.
    ChildProcessError
        A block killed its actor five times over, or Ray gave up.
    """
    ray = _ray()
    actors = min(concurrency, len(blocks))
    folder.forget_tries()
    with _session(ray, actors):
        plan = ray.data.from_items([asdict(block) for block in blocks], override_num_blocks=len(blocks))
        plan.context.enable_progress_bars = bar
        plan.context.raise_original_map_exception = True
        done = plan.map_batches(
            BlockActor,
            fn_constructor_args=(settings, str(folder.path)),
            batch_size=1,
            # One block at a time for each: blocks waiting behind a busy actor would leave another idle at the end.
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
        )
        with _plainly(ray):
            for _ in done.iter_batches(batch_size=None):
                pass


def choose_lazily(queries: Any, settings: Settings, concurrency: int | None, batch_rows: int) -> Any:
    """The sets of a Ray Dataset as another one; each row comes once, in whatever order Ray keeps.

    Raises
    ------
    InvalidParameterError
        It is no Ray Dataset, or the actors would leave no CPU for what reads it, and both would wait for ever.
    """
    ray = _ray()
    _check_dataset(ray, queries, settings)
    cpus = int(ray.cluster_resources().get("CPU", 1)) if ray.is_initialized() else os.cpu_count() or 1
    actors = concurrency or max(1, cpus - 1)
    if actors >= cpus:
        raise InvalidParameterError(
            f"concurrency must be less than the cluster's {cpus} CPUs, got {actors}: the queries' own tasks need one"
        )
    return queries.map_batches(
        TableActor,
        fn_constructor_args=(settings,),
        batch_size=batch_rows,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=1,
    )


def staged(queries: Any, settings: Settings, out: Path) -> Path:
    """The folder in which a Ray Dataset's queries lie as Parquet, written there unless they are there already.

    A Ray Dataset promises neither its order nor its blocks from one run to the next; files do, and blocks of files are
    what a broken-off run goes on with.
    """
    ray = _ray()
    _check_dataset(ray, queries, settings)
    whole = out / STAGED
    if not whole.is_dir():
        aside = out / f".{STAGED}.tmp"
        out.mkdir(parents=True, exist_ok=True)
        queries.select_columns(settings.columns).write_parquet(str(aside), mode="overwrite")
        aside.replace(whole)
    return whole


def _check_dataset(ray: Any, queries: Any, settings: Settings) -> None:
    if not isinstance(queries, ray.data.Dataset):
        raise InvalidParameterError(
            f"queries must be a path, paths or a ray.data.Dataset, got {type(queries).__name__} "
            "(for a table in memory there is select_table)"
        )
    if settings.id_column is None:
        raise InvalidParameterError("the rows of a Ray Dataset have no numbers: name their id_column")
    schema = queries.schema()
    if schema is not None and hasattr(schema.base_schema, "field"):
        check_schema(schema.base_schema, settings, "the dataset")


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError('more workers than this process need Ray: pip install "setselect[ray]"') from error
    return ray


@contextmanager
def _session(ray: Any, actors: int) -> Iterator[None]:
    """Ray as it runs already, or the cluster that RAY_ADDRESS names, or one of our own on this machine."""
    if ray.is_initialized():
        yield
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level=logging.WARNING)
    else:
        ray.init(
            num_cpus=max(actors, os.cpu_count() or 1),
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _plainly(ray: Any) -> Iterator[None]:
    """What an actor raised on purpose, without Ray's wrapping."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, (SetSelectError, OSError, ImportError)):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        raise ChildProcessError(f"Ray gave up: {error}") from error
