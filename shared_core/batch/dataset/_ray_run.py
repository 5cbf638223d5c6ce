"""The run of :func:`select_dataset` on Ray Data (extra ``ray``): an actor gets a range of rows, and writes its part."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..._libraries import import_library
from ...errors import InvalidInputError, InvalidParameterError, SetSelectError, warn
from ._output_folder import STAGED, OutputFolder
from ._row_ranges import RowRange
from ._schema import check_schema
from ._settings import DatasetSettings
from ._worker import Worker

# How often Ray runs a block again whose actor died. A block that always kills its actor must end the run.
MAX_RETRIES = 4
# Errors raised on purpose, or by a disk, a network or an installation.
_EXPECTED = (SetSelectError, OSError, ImportError)
# Only the plan and its answers are in Ray's object store, which takes 30 % of the memory by default.
_STORE_BYTES = 128 << 20


class PartWriter:
    """An actor that writes parts."""

    def __init__(self, settings: DatasetSettings, folder: OutputFolder) -> None:
        self._settings, self._folder = settings, folder
        self._worker: Worker | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Write the part of a block; the answer holds the pickled error, if there was one."""
        rows = RowRange(**row)
        try:
            # The worker is made here, because Ray restarts an actor that fails in __init__ again and again.
            self._worker = self._worker or Worker(self._settings)
            # Another actor may have died after it wrote the part and before it answered.
            if self._folder.read_errors(rows) is None:
                self._worker.write_part(rows, self._folder)
        except _EXPECTED as error:
            # The error is returned: if it were raised, Ray would print it twice, with a hundred lines of its own.
            return {"error": pickle.dumps(error)}
        return {"error": b""}


def write_parts(
    plan: list[RowRange], settings: DatasetSettings, folder: OutputFolder, concurrency: int
) -> Iterator[None]:
    """Write the parts with ``concurrency`` actors; yields after each part, raises the actors' errors."""
    ray = _import_ray()
    actors = min(concurrency, len(plan))
    with _ray_session(ray, actors):
        rows = ray.data.from_items([asdict(one) for one in plan], override_num_blocks=len(plan))
        rows.context.enable_progress_bars = False
        rows.context.raise_original_map_exception = True
        answers = rows.map(
            PartWriter,
            fn_constructor_args=(settings, folder),
            # A second block waits at each actor, because the way to the driver and back takes a twentieth of a block's
            # time. With more, another actor would be idle at the end.
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=2),
            num_cpus=1,
            max_task_retries=MAX_RETRIES,
        )
        try:
            for answer in answers.iter_rows():
                if answer["error"]:
                    raise pickle.loads(answer["error"])
                yield
        except ray.exceptions.RayTaskError:
            # An unexpected error in an actor; Ray shows the actor's own traceback.
            raise
        except ray.exceptions.RayError as error:
            raise ChildProcessError(
                f"Ray ended the run, and the parts that are written are kept. A block that kills its worker "
                f"{1 + MAX_RETRIES} times may need more memory than there is: try fewer block_rows. Ray says: {error}"
            ) from error


def map_dataset(queries: Any, settings: DatasetSettings, concurrency: int | None, batch_rows: int) -> Any:
    """A Ray Dataset of the selections of a Ray Dataset, computed lazily: each row once, in the order that Ray gives."""
    ray = _import_ray()
    cpus = int(ray.cluster_resources().get("CPU", 1)) if ray.is_initialized() else os.cpu_count() or 1
    actors = concurrency or max(1, cpus - 1)
    if actors >= cpus:
        raise InvalidParameterError(
            f"concurrency must be less than the cluster's {cpus} CPUs, got {actors}: the tasks that read the queries "
            "need one, and both would wait forever"
        )
    return queries.map_batches(
        Worker,
        fn_constructor_args=(settings,),
        batch_size=batch_rows,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=1,
    )


def stage_queries(queries: Any, settings: DatasetSettings, out: Path) -> Path:
    """The folder with a Ray Dataset's queries as Parquet files, which is written unless it exists."""
    # The order and the blocks of a Ray Dataset may change from run to run, and resuming needs the same ones.
    staged = out / STAGED
    if staged.is_dir():
        # Only running the Dataset would show whether it is the same as before.
        warn(f"the queries that an earlier call wrote to {staged} are used; for another dataset name another out")
        return staged
    unfinished = out / f".{STAGED}.tmp"
    queries.select_columns(settings.columns).write_parquet(str(unfinished), mode="overwrite")
    if not any(unfinished.glob("*.parquet")):
        raise InvalidInputError("the dataset has no rows")
    unfinished.replace(staged)
    return staged


def check_dataset(queries: Any, settings: DatasetSettings, dimension: int | None) -> None:
    """Raise InvalidParameterError or InvalidInputError if this is not a Ray Dataset, or lacks a column."""
    ray = _import_ray()
    if not isinstance(queries, ray.data.Dataset):
        raise InvalidParameterError(
            f"queries must be a path, paths or a ray.data.Dataset, got {type(queries).__name__} "
            "(select_table takes a table in memory)"
        )
    if settings.id_column is None:
        raise InvalidParameterError("the rows of a Ray Dataset have no numbers: name their id_column")
    schema = queries.schema()
    if schema is not None and hasattr(schema.base_schema, "field"):
        check_schema(schema.base_schema, settings, "the dataset", dimension)


def _import_ray() -> Any:
    import_library("ray.data", "ray")
    return import_library("ray", "ray")


@contextmanager
def _ray_session(ray: Any, actors: int) -> Iterator[None]:
    """The Ray that runs already, or the cluster that RAY_ADDRESS names, or a new Ray on this machine; it is quiet."""
    if ray.is_initialized():
        yield
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level=logging.WARNING)
    else:
        # At other levels Ray's core prints in red for each actor that it may not be restarted, although it may.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        ray.init(
            num_cpus=max(actors, os.cpu_count() or 1),
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()
