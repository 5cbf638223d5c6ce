"""A set for each row of a table of queries: in this process, or on Ray Data (extra ``ray``). See docs/cluster.md."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._files import write_atomically
from .._parsing import parse_object
from .._validation import argument_name as name_of
from .._validation import as_numeric, check_fields, check_ranges, import_library, is_missing, quoted
from ..candidates import Candidates
from ..errors import InvalidInputError, InvalidParameterError, SetSelectError, VectorSourceError
from ..scaling import Scale
from ..selection.effects import warn_of_no_effect
from ..selection.route import DEFAULT_K, default_fetch_k, select_set
from ..selectors.registry import DEFAULT_SELECTOR, Selector, capabilities_of, check_capability, resolve_selector
from ..signals.embedding_models import DEFAULT_MODEL, fingerprint, load_model
from ..texts import as_texts
from . import parquet
from ._faiss_file import FaissFile
from .parquet import Paths, Rows, pa, pq

__all__ = ["Summary", "TableSelector", "select_dataset"]

# search(vectors (n, d), k) -> for each vector its ids (m,) and their vectors (m, d), m <= k
Search = Callable[[NDArray[np.float32], int], tuple[Sequence[Any], Sequence[Any]]]
# by_id(ids) -> what is known of these ids: the vector, the text, the title and so on of each
ById = Callable[[list[Any]], Mapping[Any, Any]]
Index = str | os.PathLike[str] | Search | ById

# referred_by is written where the references in the texts are read.
OUTPUT_COLUMNS = ("ids", "gains", "relevance", "referred_by", "error")
# How texts call each other: columns of the files of texts, or functions of ids.
CALLED = ("titles", "identifiers", "sources", "neighbours")
SETTINGS = "_settings.json"
# Queries per search: 40 MB of candidates at fetch_k = 100 and d = 384.
_SEARCH_ROWS = 256
# A setting, and the setting that it needs.
_NEEDED = (
    ("relevance_column", "candidates_column"),
    ("question_column", "texts"),
    ("texts", "question_column"),
    *((name, "texts") for name in CALLED),
    ("model", "text_column"),
)


@dataclass
class TableSelector:
    """Select for each row of a table of queries: ``selector(table)`` gives a table of selections.

    It works on a pyarrow Table or RecordBatch, and as the class of ``ray.data.Dataset.map_batches`` with
    ``batch_format="pyarrow"``. The candidates and their relevance may also come from columns of the queries: the hits
    of a hybrid search, the scores of a reranker. The default selector reads the words of questions and candidates, and
    which candidates refer to each other, if ``texts`` gives those of the candidates. It selects by the vectors alone
    otherwise.

    Each query gets a row with its id, ``ids`` (the picks in their order), ``gains``, ``relevance`` (cosines with the
    query, or what was given) and ``error``. With ``texts``, ``referred_by`` has for each pick the id of the candidate
    that refers to it and brought it a bonus, or null. ``error`` is null, or says why there is no selection: a vector
    that is zero, has another length or holds NaN; a null; a blank text; a search that found nothing; or an id that the
    index does not have. If there are fewer than ``k`` candidates, all of them are picked.

    Parameters
    ----------
    index : path, or callable
        The file of a FAISS index, opened read-only by memory map; or ``search(vectors, k) -> ids, vectors`` over a
        vector database. A search gets n query vectors, float32 (n, d). For each of them it returns the ids (m,) and
        the vectors (m, d) of the nearest items, m <= k. With ``candidates_column`` a callable is
        ``vectors_by_id(ids) -> mapping`` instead: it gets the ids of the candidates of up to 256 queries, each id once,
        and returns the vectors of those that it knows. Ids of a callable are written as text. On Ray the callable is
        pickled, so it must open its connection at its first call.
    k, fetch_k : int
        The number of picks for each query, and the number of nearest candidates to select from (default: 5 k, at
        least 50). ``fetch_k`` has no effect with ``candidates_column``.
    selector : str or Selector
        ``"coverage"`` (default), another registered name, or an object with parameters of its own.
    id_column : str or None
        The column of the queries' ids, which are written unchanged. None writes the number of the row, in a column
        ``row``.
    vector_column, text_column : str, optional
        The column of the queries: vectors (default: ``vector``; lists of floats or signed integers) or texts, which
        ``model`` embeds.
    model : str, optional
        A sentence-transformers model, name or folder; default all-MiniLM-L6-v2.
    candidates_column : str, optional
        The column of lists of ids: the candidates of each query, for which no search is made then. The ids of a FAISS
        index are its labels.
    relevance_column : str, optional
        The column of lists of numbers, one for each candidate in ``candidates_column``: its worth for the query, in
        place of the cosine. :class:`VRSD` refuses it.
    relevance_scale : {"minmax", "rank", "sigmoid", "zscore"} or None
        How the given relevance of each query is scaled for the selector; see :func:`shared_core.rescale`. It is written
        as it was given.
    question_column : str, optional
        The column of the queries' texts, of which :class:`Coverage` reads the words; default: ``text_column``.
    texts : path, or callable
        The candidates' texts: a Parquet file, or a folder of them, with the columns ``id`` and ``text``; or
        ``texts_by_id(ids) -> mapping``, which gets the ids of the candidates of up to 256 queries. Each process holds
        the texts of the files in memory.
    titles, identifiers, sources, neighbours : str or callable, optional
        How the texts call each other, see :func:`shared_core.find_references`: a column of the files of ``texts``, or
        ``values_by_id(ids) -> mapping``. By default the files' usual columns are read: ``title``; ``section``,
        ``clause``, ``article``, ``rule``, ``number``, ``key``, ``code`` and ``symbol``; ``source``; and
        ``chunk_index``, ``chunk`` or ``seq_num``.
    threads : int
        Threads of FAISS in each process.

    Raises
    ------
    InvalidInputError
        A column is missing or of the wrong kind, or the index cannot be read.
    InvalidParameterError
        A setting is out of its range, or needs another one.
    VectorSourceError
        The index does not return vectors, or the search returns the wrong number of results.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> def search(vectors, k):
    ...     return [["a", "b"]] * len(vectors), [np.eye(2, dtype=np.float32)] * len(vectors)
    >>> table = pa.table({"id": [7, 8], "vector": [[2.0, 0.0], [0.0, float("nan")]]})
    >>> for row in TableSelector(search, k=1)(table).to_pylist():
    ...     print(row["id"], row["ids"], row["relevance"], row["error"])
    7 ['a'] [1.0] None
    8 None None the vector contains nan (as float32)
    """

    index: Index
    k: int = DEFAULT_K
    selector: str | Selector = DEFAULT_SELECTOR
    _: KW_ONLY
    fetch_k: int | None = None
    id_column: str | None = "id"
    vector_column: str | None = None
    text_column: str | None = None
    model: str | None = None
    candidates_column: str | None = None
    relevance_column: str | None = None
    relevance_scale: Scale | None = "minmax"
    question_column: str | None = None
    texts: str | os.PathLike[str] | ById | None = None
    titles: str | ById | None = None
    identifiers: str | ById | None = None
    sources: str | ById | None = None
    neighbours: str | ById | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        self.selector = resolve_selector(self.selector, {})
        check_fields(self)
        self.fetch_k = self.fetch_k or default_fetch_k(self.k)
        for name, needed in _NEEDED:
            value = self.text_column if needed == "question_column" else None
            if getattr(self, name) is not None and getattr(self, needed) is None and value is None:
                raise InvalidParameterError(f"{name_of(name)} has no use without {name_of(needed)}")
        given = [name for name in ("texts", *CALLED, "relevance_column") if getattr(self, name) is not None]
        given += ["relevance_scale"] if self.relevance_scale != "minmax" else []
        warn_of_no_effect(self.selector, given, {"texts", *CALLED, "relevance_column", "quality", "cover"})
        if self.relevance_column is not None:
            check_capability(self.selector, "relevance")
        if self.candidates_column is None and self.fetch_k < self.k:
            raise InvalidParameterError(
                f"{name_of('fetch_k')} must be at least {name_of('k')} = {self.k}, got {self.fetch_k}"
            )
        if self.text_column is not None and self.vector_column is not None:
            raise InvalidParameterError(
                f"queries are vectors ({name_of('vector_column')}) or texts ({name_of('text_column')}), not both"
            )
        if self.id_column in OUTPUT_COLUMNS:
            raise InvalidParameterError(
                f"{name_of('id_column')} is {self.id_column!r}, the name of a column that is written; rename it"
            )
        if self.text_column is None:
            self.vector_column = self.vector_column or "vector"
        else:
            self.model, self.question_column = self.model or DEFAULT_MODEL, self.question_column or self.text_column
        capabilities = capabilities_of(self.selector)
        if self.texts is None or not capabilities.words:
            self.texts = self.question_column = None
        self._refers = self.texts is not None and (capabilities.references or capabilities.neighbours)
        for name in ("index", "texts"):
            path = getattr(self, name)
            if not callable(path) and path is not None:
                setattr(self, name, Path(path).absolute())
                if not Path(path).exists():
                    raise InvalidInputError(f"{name}: there is no file {path}")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        kinds = ("id", "vector", "text", "question", "candidates", "relevance")
        return list(dict.fromkeys(filter(None, (getattr(self, f"{kind}_column") for kind in kinds))))

    def __call__(self, queries: Any, first_row: int = 0) -> Any:
        """The selections of a table of queries, row by row; row numbers count from ``first_row``."""
        queries = pa.Table.from_pylist(queries) if isinstance(queries, list) else pa.table(queries)
        parquet.check_columns(queries.schema.names, self.columns, "the queries")
        vectors, faults = self._read_queries(queries)
        rows: list[dict[str, Any]] = [{"error": fault} for fault in faults]
        good = [i for i, fault in enumerate(faults) if fault is None]
        for start in range(0, len(good), _SEARCH_ROWS):
            places = good[start : start + _SEARCH_ROWS]
            for i, row in zip(
                places, self._find_candidates(queries, places, [vectors[i] for i in places]), strict=True
            ):
                try:
                    rows[i] = self._select(vectors[i], **row) if row["error"] is None else {"error": row["error"]}
                except SetSelectError as error:
                    rows[i] = {"error": f"{type(error).__name__}: {error}"}
        name, first = self.id_column or "row", pa.array(range(first_row, first_row + len(rows)), pa.int64())
        # A vector database may have ids of any type; as text they have the same type in all parts.
        ids, numbers = pa.list_(pa.string() if callable(self.index) else pa.int64()), pa.list_(pa.float64())
        kinds = {"ids": ids, "gains": numbers, "relevance": numbers, "referred_by": ids, "error": pa.string()}
        columns = {key: pa.array([row.get(key) for row in rows], kind) for key, kind in kinds.items()}
        table = pa.table({name: first if self.id_column is None else queries[name]} | columns)
        return table if self._refers else table.drop_columns("referred_by")

    @cached_property
    def _faiss(self) -> FaissFile | None:
        return FaissFile(self.index, self.threads) if isinstance(self.index, Path) else None

    @cached_property
    def _model(self) -> Any:
        return load_model(self.model or DEFAULT_MODEL)

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        """What the files of texts say, by id."""
        if not isinstance(self.texts, Path):
            return {}
        named = {name: getattr(self, name) for name in CALLED if isinstance(getattr(self, name), str)}
        return parquet.read_texts(self.texts, named)

    def _read_queries(self, queries: Any) -> tuple[list[Any], list[str | None]]:
        """The vector of each row, and why it has none."""
        dimension = None if self._faiss is None else self._faiss.dimension
        if self.text_column is None:
            assert self.vector_column is not None
            return parquet.read_vectors(queries, self.vector_column, dimension)
        texts = queries[self.text_column].to_pylist()
        faults = [_name_missing(text, "text") for text in texts]
        good = [i for i, fault in enumerate(faults) if fault is None]
        vectors: list[Any] = [None] * len(texts)
        for i, vector in zip(good, self._model.embed_queries([texts[i] for i in good]) if good else (), strict=True):
            vectors[i] = np.asarray(vector, np.float32)
            if dimension not in (None, len(vector)):
                raise InvalidInputError(
                    f"the model's vectors have length {len(vector)}, the index's {dimension}: name the model that "
                    "embedded the index's texts"
                )
            faults[i] = parquet.find_fault(vectors[i], len(vector))
        return vectors, faults

    def _find_candidates(self, queries: Any, places: list[int], vectors: list[Any]) -> list[dict[str, Any]]:
        """What is known of the candidates of these rows, and why a row has none as its ``error``."""
        rows: list[dict[str, Any]]
        if self.candidates_column is None:
            search: Any = self._faiss or self.index
            ids, found = search(np.stack(vectors), self.fetch_k)
            if not len(ids) == len(found) == len(places):
                raise VectorSourceError(
                    f"the search got {len(places)} queries and returned {len(ids)} lists of ids and {len(found)} of "
                    "vectors"
                )
            rows = [{"ids": np.asarray(own).tolist(), "vectors": its} for own, its in zip(ids, found, strict=True)]
        else:
            column = queries[self.candidates_column]
            rows = [{"ids": column[i].as_py() or []} for i in places]
            known = _ask(self._faiss.vectors_by_id if self._faiss else self.index, rows, "vectors")
            for row in rows:
                row["error"] = _find_fault(row["ids"], known, "vector")
                row["vectors"] = [known.get(name) for name in row["ids"]]
        said = {} if self.texts is None else self._read_texts(rows)
        for i, row in zip(places, rows, strict=True):
            error = row.setdefault("error", None if row["ids"] else "the search found nothing")
            if self.relevance_column is not None:
                row["relevance"] = queries[self.relevance_column][i].as_py()
                error = error or (None if row["relevance"] is not None else "the list of relevance is null")
            if said:
                row["question"], row["said"] = queries[self.question_column][i].as_py(), said
                error = error or _name_missing(row["question"], "question")
                error = error or _find_fault(row["ids"], said["texts"], "text")
            row["error"] = error
        return rows

    def _read_texts(self, rows: list[dict[str, Any]]) -> dict[str, Mapping[Any, Any]]:
        """The texts of the candidates, and how they call each other."""
        names = {name for row in rows for name in row["ids"] if str(name) in self._records}
        said: dict[str, Any] = {}
        if isinstance(self.texts, Path):
            said = {key: {name: self._records[str(name)][key] for name in names} for key in ("texts", *CALLED)}
        asked = {key: getattr(self, key) for key in ("texts", *CALLED)}
        return said | {key: _ask(by_id, rows, key) for key, by_id in asked.items() if callable(by_id)}

    def _select(
        self, query: Any, ids: list[Any], vectors: Any, relevance: Any = None, question: str = "", said: Any = None,
        error: None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The row of a query."""
        assert not isinstance(self.selector, str)
        # A kernel may have a row for each id.
        names = ids if getattr(self.selector, "kernel", None) is not None else None
        candidates = Candidates(query, as_numeric(vectors, "vectors"), relevance=relevance, ids=names, copy=False)
        texts = None
        if said is not None:
            called = {key: [*map(said[key].get, ids)] for key in CALLED if key in said and self._refers}
            texts = as_texts([said["texts"][name] for name in ids], **called, refer=self._refers)
        scale, k = self.relevance_scale, min(self.k, len(ids))
        chosen = select_set(candidates, self.selector, k, question=question, texts=texts, relevance_scale=scale)
        written = [None, *(ids if self._faiss else map(str, ids))]
        columns = {"ids": chosen.indices, "referred_by": chosen.referred_by}
        row = {key: None if own is None else [written[i + 1] for i in own] for key, own in columns.items()}
        return row | {"gains": chosen.gains, "relevance": chosen.relevance}

    def describe(self) -> dict[str, Any]:
        """The settings as JSON values: equal for two runs that write the same rows."""
        kernel = getattr(self.selector, "kernel", None)
        settings = {field.name: _describe(getattr(self, field.name)) for field in fields(self)}
        settings["kernel"] = None if kernel is None else hashlib.sha256(pickle.dumps(kernel)).hexdigest()
        # The fingerprint depends on the files of a model: one that was trained further in its folder has the same name.
        settings["model"] = None if self.model is None else fingerprint(self.model)
        # Neither has an effect: no search is made for candidates that are given.
        without = ("threads",) if self.candidates_column is None else ("threads", "fetch_k")
        return {name: value for name, value in settings.items() if name not in without}


def _describe(value: Any) -> Any:
    """A setting as a JSON value: the length and the hash of a file."""
    if isinstance(value, Path):
        # Its date proves nothing: it may be restored after a change, and maps and network drives set it late.
        files = parquet.list_files(value) if value.is_dir() else [value]
        return [f"{file.stat().st_size} bytes, sha256 {_hash(file)}" for file in files]
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ask(by_id: Any, rows: list[dict[str, Any]], what: str) -> Mapping[Any, Any]:
    """What a function of ids says of all candidates, each of them once."""
    ids = list(dict.fromkeys(name for row in rows for name in row["ids"] if not is_missing(name)))
    said = by_id(ids) if ids else {}
    if not isinstance(said, Mapping):
        raise VectorSourceError(f"{what}_by_id(ids) must return a mapping of ids to {what}, got {quoted(said)}")
    return said


def _find_fault(ids: list[Any], known: Mapping[Any, Any], what: str) -> str | None:
    """Why a list of candidates cannot be used; None if it can."""
    unknown = [name for name in ids if name not in known]
    if not ids or unknown:
        return f"there is no {what} of candidate {quoted(unknown[0])}" if ids else "there are no candidates"
    return "a candidate is in the list twice" if len(set(ids)) < len(ids) else None


def _name_missing(text: str | None, what: str) -> str | None:
    return f"the {what} is {'null' if text is None else 'blank'}" if is_missing(text) else None


class Summary(NamedTuple):
    """What :func:`select_dataset` has written.

    ``out`` is the folder, with ``rows`` in all ``parts``. ``errors`` of them have an error in place of a selection, and
    ``first_error`` is the first one, or None. ``resumed`` parts existed before this run.
    """

    out: Path
    rows: int
    errors: int
    parts: int
    resumed: int
    first_error: str | None


def select_dataset(
    queries: Paths,
    index: Index,
    *,
    out: str | os.PathLike[str],
    concurrency: int | None = None,
    block_rows: int = 10_000,
    progress: bool = False,
    **settings: Any,
) -> Summary:
    """Select for each query of Parquet files of any length with a :class:`TableSelector`, into Parquet files.

    Parameters
    ----------
    queries : path or paths
        Parquet files, or a folder of them.
    index, **settings
        Those of :class:`TableSelector`.
    out : path
        A folder for ``_settings.json`` and one part (a Parquet file) for each block of queries. Readers of Parquet
        take it as one table. Blocks whose parts are complete are skipped, so the same call resumes a run that was
        stopped. On a cluster all machines must see the folder, the queries, the index and the texts under the same
        path.
    concurrency : int, optional
        The number of Ray's workers. None: in this process, without Ray.
    block_rows : int
        Queries per part.
    progress : bool
        Show a bar over the blocks on the error output (rich).

    Raises
    ------
    InvalidInputError, InvalidParameterError, VectorSourceError
        As :class:`TableSelector`; or ``out`` has parts that were made with other settings, which the message names.

    Examples
    --------
    >>> import faiss, tempfile, numpy as np, pyarrow as pa, pyarrow.parquet as pq
    >>> index = faiss.IndexFlatIP(2)
    >>> index.add(np.eye(2, dtype=np.float32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     faiss.write_index(index, f"{folder}/index.faiss")
    ...     pq.write_table(pa.table({"id": ["x"], "vector": [[2.0, 1.0]]}), f"{folder}/queries.parquet")
    ...     done = select_dataset(f"{folder}/queries.parquet", f"{folder}/index.faiss", out=f"{folder}/sets", k=2)
    ...     pq.read_table(f"{folder}/sets").to_pylist()[0]["ids"], done.rows, done.errors
    ([0, 1], 1, 0)
    """
    selector, folder = TableSelector(index, **settings), Path(out).absolute()
    files = parquet.list_files(queries)
    checked = check_ranges({"block_rows": block_rows, "concurrency": concurrency, "progress": progress})
    plan = parquet.cut_into_rows(files, checked["block_rows"], selector.columns)
    if isinstance(selector.index, Path):
        # An index that cannot be read is refused here, and not in each worker.
        FaissFile(selector.index)
    described = selector.describe() | {"queries": [_describe(file) for file in files], "block_rows": block_rows}
    _open_folder(folder, described)
    missing = [rows for rows in plan if _read_errors(folder, rows) is None]
    parts: Iterable[None] = map(partial(_write_part, selector, folder), missing)
    if concurrency is not None:
        parts = _write_on_ray(missing, selector, folder, concurrency)
    if progress:
        console = import_library("rich.console", "batch").Console(stderr=True)
        track = import_library("rich.progress", "batch").track
        parts = track(parts, "Selecting", total=len(missing), console=console)
    for _ in parts:
        pass
    columns = [_read_errors(folder, rows) for rows in plan]
    errors = [text for column in columns for text in column.drop_null().to_pylist()]
    resumed = len(plan) - len(missing)
    return Summary(folder, sum(map(len, columns)), len(errors), len(plan), resumed, errors[0] if errors else None)


def _write_part(selector: TableSelector, folder: Path, rows: Rows) -> None:
    """Read these queries, select for them, and write their part."""
    content = pa.BufferOutputStream()
    pq.write_table(selector(parquet.read_rows(rows, selector.columns), rows.first_row), content)
    # A part that exists is complete, because it is written under another name and renamed.
    write_atomically(_part(folder, rows), content.getvalue().to_pybytes())


class _RayWriter:
    """A worker that writes parts, and returns an error raised on purpose: Ray would raise one of its own."""

    def __init__(self, selector: TableSelector, folder: Path) -> None:
        self._write = partial(_write_part, selector, folder)

    def __call__(self, batch: Any) -> Any:
        try:
            self._write(Rows(**batch.to_pylist()[0]))
        except (SetSelectError, OSError, ImportError) as error:
            return pa.table({"error": [pickle.dumps(error)]})
        return pa.table({"error": [b""]})


def _write_on_ray(missing: list[Rows], selector: TableSelector, folder: Path, workers: int) -> Iterator[None]:
    # At other levels Ray's core prints for each worker that it may not be restarted, although it may.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    data, ray = import_library("ray.data", "ray"), import_library("ray", "ray")
    if not missing:
        return
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    written = data.from_items([rows._asdict() for rows in missing], override_num_blocks=len(missing)).map_batches(
        _RayWriter, fn_constructor_args=(selector, folder), batch_size=1, batch_format="pyarrow",
        concurrency=min(workers, len(missing)), num_cpus=1,
    )  # fmt: skip
    for row in written.iter_rows():
        if row["error"]:
            raise pickle.loads(row["error"])
        yield


def _part(folder: Path, rows: Rows) -> Path:
    return folder / f"part-{rows.number:05d}.parquet"


def _read_errors(folder: Path, rows: Rows) -> Any:
    """The errors of a part; None if it is missing or incomplete: a copy or a full disk can have truncated it."""
    try:
        column = pq.read_table(_part(folder, rows), columns=["error"], partitioning=None)["error"]
        column.validate(full=True)
    # A KeyError says that the column is missing.
    except (*parquet.PARQUET_ERRORS, KeyError):
        return None
    return column if len(column) == rows.size else None


def _open_folder(folder: Path, settings: dict[str, Any]) -> None:
    """Make the folder and write the settings, or check that those of earlier parts are the same."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / SETTINGS
    others = sorted(other.name for other in folder.iterdir() if not other.name.endswith(".tmp"))
    if not others:
        write_atomically(file, json.dumps(settings, indent=1))
        return
    try:
        known = parse_object(file.read_bytes())
    except (InvalidInputError, FileNotFoundError) as error:
        raise InvalidParameterError(
            f"{file} is missing or damaged ({error}), and there is {others[0]}: name an empty folder"
        ) from None
    pairs = {name: (known.get(name), settings.get(name)) for name in settings | known}
    differing = [f"{name}: {old!r} there, {now!r} now" for name, (old, now) in pairs.items() if old != now]
    if differing:
        raise InvalidParameterError(
            f"{folder} has parts that were made with other settings ({'; '.join(differing)}); name another folder"
        )
