"""The vectors that commands work on: read from files, or made by a model that an option names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console

from .._parsing import open_npy
from .._validation import as_numeric, quoted
from ..errors import InvalidInputError, InvalidParameterError
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding
from ._terminal import load_model_visibly, show_progress


@dataclass(frozen=True)
class VectorSource:
    """What the options of ``compare`` say about vectors: files of them, and the model that embeds what has no file."""

    say: Console
    documents: Path | None = None
    queries: Path | None = None
    model: str | None = None
    embedding: str | None = None
    cache: Path | None = None
    # Whether there are queries to embed.
    asks: bool = True

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        files = {"--vectors": self.documents, "--query-vectors": self.queries}
        named = [option for option, path in files.items() if path is not None]
        models = [f"--{name}" for name in ("model", "embedding") if getattr(self, name) is not None]
        if len(models) == 2:
            raise InvalidParameterError("--model and --embedding both name a model: leave out one")
        if len(named) == 2 and models:
            raise InvalidParameterError(f"{' and '.join(named)} leave nothing to embed: leave out {models[0]}")
        if len(named) == 1 and not models and self.asks:
            [other] = files.keys() - named
            raise InvalidParameterError(
                f"{named[0]} needs {other} too, or --model or --embedding with the model that made the vectors"
            )

    @property
    def embeds(self) -> bool:
        """Whether a model is needed."""
        return self.documents is None or (self.asks and self.queries is None)

    @property
    def name(self) -> str:
        """What the report calls the vectors: the names of the files, and the model."""
        names = [path.name for path in (self.documents, self.queries) if path is not None]
        if self.embedding is not None:
            provider, _, model = self.embedding.partition(":")
            # Of a folder only its name, so that the report does not tell where it is.
            names.append(f"{provider}:{Path(model).name if Path(model).expanduser().is_dir() else model}")
        elif self.embeds:
            names.append(self.model or DEFAULT_MODEL)
        return ", ".join(names)

    @cached_property
    def loaded(self) -> Any:
        """The model. It loads at the first embedding, after all checks."""
        if self.embedding is None:
            return load_model_visibly(self.say, self.model or DEFAULT_MODEL)
        # The one place where the core reaches a framework: through the adapter, whose name import-linter cannot see.
        return import_module("langchain_setselect.compare").load_embedding(self.embedding)

    def embed_documents(self, texts: list[str]) -> ArrayLike:
        """Vectors of documents, which are kept in the cache."""
        return self._embed(self.loaded.embed_documents, "document", "Embedding documents", texts)

    def embed_queries(self, texts: list[str]) -> ArrayLike:
        """Vectors of queries, which are kept in the cache."""
        return self._embed(self.loaded.embed_queries, "query", "Embedding queries", texts)

    def _embed(self, make: Any, kind: str, description: str, texts: list[str]) -> ArrayLike:
        name, track = f"{self.loaded.fingerprint} {kind}", show_progress(self.say)
        return CachedEmbedding(make, name, self.cache, track=track, description=description)(texts)


def read_vectors(
    path: Path, ids: list[str], rows: Sequence[int] | None = None, lines: int | None = None
) -> NDArray[Any]:
    """The vectors of the texts with these ids; in a .npy file they are at these ``rows`` of all ``lines``."""
    if path.suffix.lower() != ".npy":
        from ..batch.parquet import read_vectors_by_id

        return read_vectors_by_id(path, ids)
    places = range(len(ids)) if rows is None else rows
    vectors = read_rows(path, places, lines or len(ids), "the texts")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise InvalidInputError(
            f"{path}: row {places[bad[0]]}, counted from 0 (id {quoted(ids[bad[0]])}), holds NaN or inf: embed that "
            "text again"
        )
    return vectors


def read_rows(path: Path | str, rows: Sequence[int], lines: int, what: str) -> NDArray[Any]:
    """These rows (n, d) of a .npy file that has a row for each of the ``lines`` that are not blank."""
    vectors = open_npy(path)
    if vectors.ndim != 2 or len(vectors) != lines or not vectors.shape[1]:
        raise InvalidInputError(
            f"{path}: vectors must have shape ({lines}, d), a row for each line of {what} that is not blank, got "
            f"{vectors.shape}"
        )
    return as_numeric(np.array(vectors[list(rows)]), f"the vectors in {path}")
