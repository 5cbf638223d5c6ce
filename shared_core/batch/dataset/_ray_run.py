"""The same choice on Ray Data (extra ``ray``): actors that each hold an index, and blocks that no death loses.

What is sent to the actors is a plan, a few numbers for each block of queries. An actor reads its block, chooses, and
writes the block's part under a name that the block alone decides. A block whose actor dies is run again by Ray: until
then its part is not there, afterwards there is one.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import InvalidInputError, InvalidParameterError, SetSelectError, SetSelectWarning
from ._worker import Chooser
from ._output_folder import STAGED, OutputFolder
from ._query_files import Block
from ._query_rows import check_schema
from .select_dataset import choose_block, shown
from ._settings import Settings

TRIES = 5
# Raised on purpose, or by a disk, a network or an installation.
_PLAIN = (SetSelectError, OSError, ImportError)
# The plan and its answers are all that passes through Ray's store; left alone, it takes a third of the memory.
_STORE_BYTES = 128 << 20


class BlockActor:
    """Chooses for the blocks of a plan and writes their parts."""

    def __init__(self, settings: Settings, out: str) -> None:
        self._settings = settings
        self._chooser: Chooser | None = None
        self._folder = OutputFolder(Path(out))

    def __call__(self, plan: dict[str, Any]) -> dict[str, Any]:
        """The numbers of the blocks whose parts are written, or what stood in the way, pickled.

        What is raised here, Ray prints twice, each time with a hundred lines of its own.
        """
        failure = b""
        try:
            # Not on the way up, where Ray would start the actor again and again.
            self._chooser = self._chooser or Chooser(self._settings)
            self._write(plan, self._chooser)
        except _PLAIN as error:
            failure = pickle.dumps(error)
            # One that cannot be made again from its pickle goes Ray's way after all.
            pickle.loads(failure)
        return {"number": plan["number"], "failure": [failure] * len(plan["number"])}

    def _write(self, plan: dict[str, Any], chooser: Chooser) -> None:
        for number, file, start, rows, first_row in zip(
            *(plan[name].tolist() for name in ("number", "file", "start", "rows", "first_row")), strict=True
        ):
            # The actor before this one may have died between its part and its answer.
            if self._folder.has(number, rows):
                continue
            # Ray runs a block again for ever; one that kills its actor each time is to end the run and not the budget.
            if self._folder.tried(number) >= TRIES:
                raise ChildProcessError(
                    f"rows {start} to {start + rows - 1} of {file} killed their worker {TRIES} times over "
                    "(out of memory? fewer block_rows take less); what is written is kept"
                )
            choose_block(chooser, Block(number, file, start, rows, first_row), self._folder)


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
        What an actor met with.
    ChildProcessError
        A block killed its actor five times over, or Ray gave up.
    """
    ray = _ray()
    actors = min(concurrency, len(blocks))
    folder.forget_tries()
    with _session(ray, actors), _quietly():
        plan = ray.data.from_items([asdict(block) for block in blocks], override_num_blocks=len(blocks))
        plan.context.enable_progress_bars = False
        plan.context.raise_original_map_exception = True
        done = plan.map_batches(
            BlockActor,
            fn_constructor_args=(settings, str(folder.path)),
            batch_size=1,
            # One block waits behind the one at hand, since the way to the driver and back is a twentieth of a block's
            # time; more would leave another actor idle at the end.
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=2),
            num_cpus=1,
        )
        with _plainly(ray):
            for answer in shown(done.iter_batches(batch_size=None), len(blocks), bar):
                for failure in filter(None, answer["failure"].tolist()):
                    raise pickle.loads(failure)


def choose_lazily(
    queries: Any, settings: Settings, dimension: int | None, concurrency: int | None, batch_rows: int
) -> Any:
    """The sets of a Ray Dataset as another one; each row comes once, in whatever order Ray keeps.

    Raises
    ------
    InvalidParameterError
        It is no Ray Dataset, or the actors would leave no CPU for what reads it, and both would wait for ever.
    """
    ray = _ray()
    _check_dataset(ray, queries, settings, dimension)
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


def staged(queries: Any, settings: Settings, dimension: int | None, out: Path) -> Path:
    """The folder in which a Ray Dataset's queries lie as Parquet, written there unless they are there already.

    A Ray Dataset promises neither its order nor its blocks from one run to the next; files do, and blocks of files are
    what a broken-off run goes on with. Whether a Dataset is the one of before cannot be told without running it, hence
    a :class:`SetSelectWarning`.

    Raises
    ------
    InvalidInputError
        It has no rows, or not the columns.
    InvalidParameterError
        It is no Ray Dataset, or ``out`` is somebody else's.
    """
    ray = _ray()
    _check_dataset(ray, queries, settings, dimension)
    OutputFolder(out).refuse_others()
    whole = out / STAGED
    if whole.is_dir():
        warnings.warn(
            f"the queries that an earlier call wrote to {whole} are taken; a dataset with others needs another out",
            SetSelectWarning,
            stacklevel=3,
        )
        return whole
    aside = out / f".{STAGED}.tmp"
    out.mkdir(parents=True, exist_ok=True)
    queries.select_columns(settings.columns).write_parquet(str(aside), mode="overwrite")
    if not any(aside.glob("*.parquet")):
        raise InvalidInputError("the dataset has no rows")
    aside.replace(whole)
    return whole


def _check_dataset(ray: Any, queries: Any, settings: Settings, dimension: int | None) -> None:
    if not isinstance(queries, ray.data.Dataset):
        raise InvalidParameterError(
            f"queries must be a path, paths or a ray.data.Dataset, got {type(queries).__name__} "
            "(for a table in memory there is select_table)"
        )
    if settings.id_column is None:
        raise InvalidParameterError("the rows of a Ray Dataset have no numbers: name their id_column")
    schema = queries.schema()
    if schema is not None and hasattr(schema.base_schema, "field"):
        check_schema(schema.base_schema, settings, "the dataset", dimension)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(
            "more workers than this process need Ray, and so do queries that are no paths of Parquet files (but for a "
            'table in memory there is select_table): pip install "setselect[ray]"'
        ) from error
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
        # Of each actor of Ray Data its core says in red that it may not be restarted, which it is.
        with _environment("RAY_BACKEND_LOG_LEVEL", "fatal"):
            ray.init(
                num_cpus=max(actors, os.cpu_count() or 1),
                object_store_memory=_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    # Whoever has set it wants it so.
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


@contextmanager
def _quietly() -> Iterator[None]:
    """Ray Data says what is wrong, and not how it goes."""
    levels = {"ray.data": logging.WARNING, "ray.data._internal.progress": logging.ERROR}
    before = {name: logging.getLogger(name).level for name in levels}
    try:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _plainly(ray: Any) -> Iterator[None]:
    """What Ray itself gives up on; an error nobody thought of comes as Ray tells it, with the actor's own lines."""
    try:
        yield
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        raise ChildProcessError(f"Ray gave up: {error}") from error
