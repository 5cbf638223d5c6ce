"""The run of :func:`select_dataset` on Ray (extra ``ray``): an actor gets a range of rows, and writes its part."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..._libraries import import_library
from ...errors import InvalidInputError, InvalidParameterError, SetSelectError, warn
from ._columns import check_schema
from ._output_folder import STAGED, OutputFolder
from ._row_ranges import RowRange
from ._settings import DatasetSettings
from ._worker import Worker

# How often Ray runs a block again whose actor died. A block that always kills its actor must end the run.
MAX_RETRIES = 4
# Only the plan and its answers are in Ray's object store, which takes 30 % of the memory by default.
_STORE_BYTES = 128 << 20


class PartWriter:
    """An actor that writes parts."""

    def __init__(self, settings: DatasetSettings, folder: OutputFolder) -> None:
        # ray.data registers the types of Arrow in which a Ray Dataset writes its arrays.
        _import_ray()
        self._settings, self._folder = settings, folder
        self._worker: Worker | None = None

    def write(self, rows: RowRange | None) -> bytes | None:
        """Write the part of a block, and return the pickled error or nothing; with None only answer None."""
        if rows is None:
            return None
        try:
            # The worker is made here, so that its error is the error of a block.
            self._worker = self._worker or Worker(self._settings)
            # Another actor may have died after it wrote the part and before it answered.
            if self._folder.read_errors(rows) is None:
                self._worker.write_part(rows, self._folder)
        # Errors raised on purpose, or by a disk, a network or an installation. Ray would raise a class of its own.
        except (SetSelectError, OSError, ImportError) as error:
            return pickle.dumps(error)
        return b""


def write_parts(
    plan: list[RowRange], settings: DatasetSettings, folder: OutputFolder, concurrency: int
) -> Iterator[None]:
    """Write the parts with ``concurrency`` actors; yields after each part, raises the actors' errors."""
    ray = _import_ray()
    count = min(concurrency, len(plan))
    with _ray_session(ray, count):
        actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=MAX_RETRIES)(PartWriter)
        writers = [actor.remote(settings, folder) for _ in range(count)]
        # An actor gets a block when it has answered, because some may never start: the cluster may be too small.
        running = {writer.write.remote(None): writer for writer in writers}
        blocks, written = iter(plan), 0
        try:
            while written < len(plan):
                [answer], _ = ray.wait(list(running))
                writer = running.pop(answer)
                result = ray.get(answer)
                if result:
                    raise pickle.loads(result)
                rows = next(blocks, None)
                if rows is not None:
                    running[writer.write.remote(rows)] = writer
                if result is not None:
                    written += 1
                    yield
        except ray.exceptions.RayTaskError:
            # An unexpected error in an actor, with the actor's own traceback.
            raise
        except ray.exceptions.RayError as error:
            raise ChildProcessError(
                f"Ray ended the run, and the parts that are written are kept. A block that kills its worker "
                f"{1 + MAX_RETRIES} times may need more memory than there is: try fewer block_rows. Ray says: {error}"
            ) from error
        finally:
            for writer in writers:
                ray.kill(writer)


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
