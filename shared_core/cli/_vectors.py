"""The vectors that commands work on: rows of .npy files, or made by a model that an option names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console

from .._parsing import open_npy
from .._validation import as_numeric
from ..errors import InvalidInputError, InvalidParameterError
from ..signals.embedding_models import DEFAULT_MODEL, CachedEmbedding, SentenceModel
from ._program import load_model_visibly, show_progress


@dataclass(frozen=True)
class VectorSource:
    """What the options of ``compare`` say about vectors: files of them, and the model that embeds what has no file."""

    say: Console
    documents: Path | None = None
    queries: Path | None = None
    model: str | None = None
    cache: Path | None = None

    def check(self) -> None:
        """Refuse a model where nothing is embedded, and the default model where a file has the other vectors."""
        if self.documents and self.queries and self.model:
            raise InvalidParameterError("--vectors and --query-vectors leave nothing to embed: leave out --model")
        if (self.documents is None) != (self.queries is None) and not self.model:
            raise InvalidParameterError(
                "--vectors and --query-vectors need each other, or --model with the model that made the vectors"
            )

    @property
    def name(self) -> str:
        """What the report calls the vectors: the names of the files, and the model."""
        names = [path.name for path in (self.documents, self.queries) if path is not None]
        return ", ".join(names if len(names) == 2 else [*names, self.model or DEFAULT_MODEL])

    @cached_property
    def loaded(self) -> SentenceModel:
        """The model. It loads at the first embedding, after all checks."""
        return load_model_visibly(self.say, self.model or DEFAULT_MODEL)

    def read_documents(self, count: int) -> Any:
        """The vectors of so many documents, or the function that embeds them."""
        if self.documents is not None:
            return read_rows(self.documents, range(count), count, "the documents")
        return self.embed_documents

    def embed_documents(self, texts: list[str]) -> ArrayLike:
        """Vectors of documents, which are kept in the cache."""
        return self._embed(self.loaded.embed_documents, "document", texts)

    def embed_queries(self, texts: list[str]) -> ArrayLike:
        """Vectors of queries, which are kept in the cache."""
        return self._embed(self.loaded.embed_queries, "query", texts)

    def _embed(self, make: Any, kind: str, texts: list[str]) -> ArrayLike:
        name, track = f"{self.loaded.fingerprint} {kind}", show_progress(self.say)
        return CachedEmbedding(make, name, self.cache, track=track, description=f"Embedding ({kind})")(texts)


def read_rows(path: Path, rows: Sequence[int], lines: int, what: str) -> NDArray[Any]:
    """These rows (n, d) of a .npy file that has a row for each of the ``lines`` that are not blank."""
    vectors = open_npy(path)
    if vectors.ndim != 2 or len(vectors) != lines or not vectors.shape[1]:
        raise InvalidInputError(
            f"{path}: vectors must have shape ({lines}, d), a row for each line of {what} that is not blank, got "
            f"{vectors.shape}"
        )
    taken = as_numeric(np.array(vectors[list(rows)]), f"the vectors in {path}")
    bad = np.flatnonzero(~np.isfinite(taken).all(axis=1))
    if len(bad):
        raise InvalidInputError(f"{path}: row {rows[bad[0]]}, counted from 0, holds NaN or inf: embed that text again")
    return taken
