"""Embeddings kept on disk by model and text, so that a text is embedded once, even when a run is broken off."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import as_numeric
from ..errors import InvalidInputError

Vectors = NDArray[np.float32]
# ``track(items, description)`` hands the items on and may show how far it is.
Track = Callable[[Sequence[Any], str], Iterable[Any]]
_DTYPE = np.dtype("<f4")
# As many as one SQL statement may ask for in every build of SQLite.
_AT_ONCE = 900


def untracked(items: Sequence[Any], description: str) -> Iterable[Any]:
    """The items, with no sign of progress."""
    return items


def default_cache() -> Path:
    """The folder in which setselect keeps embeddings: ``SETSELECT_CACHE``, else ``~/.cache/setselect``."""
    given = os.environ.get("SETSELECT_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "setselect"


class CachedEmbedding:
    """A function that embeds texts, with a memory on disk.

    Each batch is written when it is done: whatever ends the run, what was embedded stays. Several processes may share
    a cache. Vectors are kept as float32.

    Parameters
    ----------
    embed : callable
        ``embed(texts) -> array-like (n, d)``.
    model : str
        What the cache goes by besides the text: everything that changes the vectors must change it (the model's name
        and version, "query" or "document" where the model tells them apart).
    folder : path, optional
        By default :func:`default_cache`.
    batch : int
    track : callable, optional
        ``track(batches, description)``, for a progress bar.

    Raises
    ------
    InvalidInputError
        When called: ``embed`` gives other than one finite vector of one length for each text, or the cache's file
        cannot be used.

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
        track: Track = untracked,
        description: str = "Embedding",
    ) -> None:
        self.embed = embed
        self.model = model
        self.path = Path(default_cache() if folder is None else folder) / "embeddings.sqlite"
        self.batch = batch
        self.track = track
        self.description = description

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (n, d), float32, row by row those of ``texts``."""
        if not texts:
            raise InvalidInputError("there are no texts to embed")
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        unique = dict(zip(keys, texts, strict=True))
        with closing(self._open()) as database:
            with self._usable():
                found = self._known(database, list(unique))
            # Texts of like length share a batch, since models pad each batch to its longest.
            missing = sorted((key for key in unique if key not in found), key=lambda key: len(unique[key]))
            batches = [missing[start : start + self.batch] for start in range(0, len(missing), self.batch)]
            for batch in self.track(batches, self.description) if batches else ():
                made = self._embed(batch, [unique[key] for key in batch])
                found |= made
                with self._usable(), database:
                    database.executemany(
                        "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)",
                        [(self.model, key, vector.tobytes()) for key, vector in made.items()],
                    )
        lengths = {len(vector) for vector in found.values()}
        if len(lengths) > 1:
            raise InvalidInputError(
                f"model {self.model!r} has given vectors of lengths {sorted(lengths)}: if it has changed under its "
                f"name, delete {self.path}"
            )
        return np.stack([found[key] for key in keys])

    def _open(self) -> sqlite3.Connection:
        with self._usable():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may be writing.
            return sqlite3.connect(self.path, timeout=60)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise InvalidInputError(f"the cache of embeddings, {self.path}, cannot be used: {error}") from error

    def _known(self, database: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, Vectors]:
        database.execute(
            "CREATE TABLE IF NOT EXISTS embeddings (model TEXT, text_sha256 BLOB, vector BLOB,"
            " PRIMARY KEY (model, text_sha256)) WITHOUT ROWID"
        )
        found = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            rows = database.execute(
                "SELECT text_sha256, vector FROM embeddings WHERE model = ? AND text_sha256 IN "
                f"({','.join('?' * len(some))})",
                [self.model, *some],
            )
            found.update({key: np.frombuffer(vector, _DTYPE) for key, vector in rows})
        return found

    def _embed(self, keys: list[bytes], texts: list[str]) -> dict[bytes, Vectors]:
        vectors = as_numeric(self.embed(texts), f"what {self.model} gave").astype(_DTYPE)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise InvalidInputError(f"{self.model} gave shape {vectors.shape} for {len(texts)} texts")
        if not np.isfinite(vectors).all():
            bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise InvalidInputError(f"{self.model} gave NaN or inf for {texts[bad][:60]!r}")
        return dict(zip(keys, vectors, strict=True))
