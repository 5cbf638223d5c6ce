"""What a run over a table of queries is made of, and how two runs are told apart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_integer
from ...errors import InvalidInputError, InvalidParameterError
from ...selectors.base import Selector, resolve_selector

# (n, d) vectors and k in; for each of the n its ids and their vectors (m, d) out, m <= k.
Search = Callable[[NDArray[np.float32], int], tuple[Sequence[Any], Sequence[Any]]]

PICKED = ("ids", "gains", "relevance", "error")
# Enough of both ends of a file to tell it from another one; an index may be larger than the memory.
_ENDS = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Everything that the choice of a row depends on, checked."""

    index: Path | Search
    k: int
    fetch_k: int
    selector: Selector
    id_column: str | None
    vector_column: str | None
    text_column: str | None
    model: str | None
    threads: int

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        read = [self.id_column, self.vector_column, self.text_column]
        return [name for name in dict.fromkeys(read) if name is not None]

    @property
    def name_of_ids(self) -> str:
        """The first column that is written: the queries' own ids, or the number of the row."""
        return self.id_column or "row"

    def described(self) -> dict[str, Any]:
        """As plain data: equal for two runs whose rows come out alike."""
        from ...signals.embedding_models import fingerprint

        return {
            "index": fingerprint_of(self.index) if isinstance(self.index, Path) else described(self.index),
            "k": self.k,
            "fetch_k": self.fetch_k,
            "selector": described(self.selector),
            "id_column": self.id_column,
            "vector_column": self.vector_column,
            "text_column": self.text_column,
            "model": None if self.model is None else fingerprint(self.model),
        }


def make_settings(
    index: str | os.PathLike[str] | Search,
    k: int = 5,
    fetch_k: int = 100,
    selector: str | Selector = "vrsd",
    *,
    id_column: str | None = "id",
    vector_column: str | None = None,
    text_column: str | None = None,
    model: str | None = None,
    threads: int = 1,
    **parameters: Any,
) -> Settings:
    """The settings of a run; :func:`select_dataset` says what each is.

    Raises
    ------
    InvalidParameterError
        Something is out of its range or excludes something else.
    InvalidInputError
        There is no file of that name.

    Examples
    --------
    >>> make_settings(lambda vectors, k: ([], []), k=3, selector="mmr").selector
    MMR(lambda_d=0.75, lambda_b=0.95)
    """
    chosen_by = resolve_selector(selector, parameters)
    k = check_integer(k, "k", least=1)
    fetch_k = check_integer(fetch_k, "fetch_k", least=1)
    if fetch_k < k:
        raise InvalidParameterError(f"fetch_k must be at least k = {k}, got {fetch_k}")
    if text_column is not None and vector_column is not None:
        raise InvalidParameterError(
            f"queries are vectors (vector_column={vector_column!r}) or texts (text_column={text_column!r}), not both"
        )
    if text_column is None and model is not None:
        raise InvalidParameterError(f"model {model!r} embeds texts: name their column (text_column)")
    if text_column is not None and model is None:
        from ...signals.embedding_models import DEFAULT_MODEL

        model = DEFAULT_MODEL
    if text_column is None and vector_column is None:
        vector_column = "vector"
    if id_column in PICKED:
        raise InvalidParameterError(f"id_column is {id_column!r}, which is the name of a column that is written")
    if not callable(index):
        index = Path(index).absolute()
        if not index.is_file():
            raise InvalidInputError(f"there is no index file {index}")
    return Settings(
        index, k, fetch_k, chosen_by, id_column, vector_column, text_column, model,
        check_integer(threads, "threads", least=1),
    )  # fmt: skip


def described(value: Any) -> Any:
    """An object as plain data that says what it holds: arrays by their contents, not by their address.

    >>> from shared_core import VRSD
    >>> described(VRSD(refine=True))
    {'VRSD': {'refine': True}}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"{value.dtype} {value.shape} sha256 {digest}"
    if isinstance(value, (tuple, list)):
        if len(value) > 100:
            return f"{len(value)} items, sha256 {hashlib.sha256(repr(value).encode()).hexdigest()[:16]}"
        return [described(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__qualname__: {f.name: described(getattr(value, f.name)) for f in fields(value)}}
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def fingerprint_of(path: Path) -> str:
    """What tells a file from another, wherever it lies and whenever it was copied: its size and both of its ends."""
    size = path.stat().st_size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(size - _ENDS, 0))
        digest.update(file.read(_ENDS))
    return f"{size} bytes, sha256 of both ends {digest.hexdigest()[:16]}"
