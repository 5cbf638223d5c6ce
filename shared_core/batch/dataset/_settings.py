"""The settings of a run over a table of queries, and a description that tells two runs apart."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_integer, check_one_of, quoted
from ...errors import InvalidInputError, InvalidParameterError
from ...scaling import SCALES, Scale
from ...selectors.base import DEFAULT_SELECTOR, Selector, resolve_selector
from ...selectors.vrsd import NO_RELEVANCE, VRSD
from ...signals.embedding_models import DEFAULT_MODEL, fingerprint

# search(vectors (n, d), k) -> for each vector its ids (m,) and their vectors (m, d), m <= k
Search = Callable[[NDArray[np.float32], int], tuple[Sequence[Any], Sequence[Any]]]
# vectors_by_id(ids) -> the vector of each id that is known
VectorsById = Callable[[list[Any]], Mapping[Any, Any]]

OUTPUT_COLUMNS = ("ids", "gains", "relevance", "error")


@dataclass(frozen=True)
class Settings:
    """All settings that the selection of a row depends on; ``threads`` has no effect on it."""

    index: Path | Search | VectorsById
    k: int
    fetch_k: int
    selector: Selector
    id_column: str | None
    vector_column: str | None
    text_column: str | None
    model: str | None
    candidates_column: str | None
    relevance_column: str | None
    relevance_scale: Scale | None
    threads: int

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        read = [
            self.id_column, self.vector_column, self.text_column, self.candidates_column, self.relevance_column,
        ]  # fmt: skip
        return [name for name in dict.fromkeys(read) if name is not None]

    def describe(self) -> dict[str, Any]:
        """The settings as JSON values: equal for two runs that write the same rows."""
        # No search is made for candidates that are given, so fetch_k has no effect on them.
        without = ("threads",) if self.candidates_column is None else ("threads", "fetch_k")
        named = {field.name: describe(getattr(self, field.name)) for field in fields(self) if field.name not in without}
        if self.model is None:
            return named
        folder = Path(self.model).expanduser()
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        # A model that was trained further in its folder has the same name.
        contents = "".join(f"{file.relative_to(folder)} {describe(file)}\n" for file in files)
        return named | {"model": f"sha256 {_hash(contents.encode())}" if files else fingerprint(self.model)}


def make_settings(
    index: str | os.PathLike[str] | Search | VectorsById,
    k: int = 5,
    fetch_k: int = 100,
    selector: str | Selector = DEFAULT_SELECTOR,
    *,
    id_column: str | None = "id",
    vector_column: str | None = None,
    text_column: str | None = None,
    model: str | None = None,
    candidates_column: str | None = None,
    relevance_column: str | None = None,
    relevance_scale: Scale | None = "minmax",
    threads: int = 1,
    **parameters: Any,
) -> Settings:
    """The settings of a run, checked; :func:`select_dataset` describes each."""
    resolved = resolve_selector(selector, parameters)
    k = check_integer(k, "k", least=1)
    fetch_k = check_integer(fetch_k, "fetch_k", least=1)
    threads = check_integer(threads, "threads", least=1)
    if relevance_scale is not None:
        check_one_of(relevance_scale, "relevance_scale", SCALES)
    if relevance_column is None:
        relevance_scale = None
    elif candidates_column is None:
        raise InvalidParameterError(
            f"relevance_column={relevance_column!r} has a number for each candidate, so candidates_column must name "
            "the candidates"
        )
    elif isinstance(resolved, VRSD):
        raise InvalidParameterError(NO_RELEVANCE)
    if candidates_column is None and fetch_k < k:
        raise InvalidParameterError(f"fetch_k must be at least k = {k}, got {fetch_k}")
    if text_column is not None and vector_column is not None:
        raise InvalidParameterError(
            f"queries are vectors (vector_column={vector_column!r}) or texts (text_column={text_column!r}), not both"
        )
    if text_column is None and model is not None:
        raise InvalidParameterError(f"model {model!r} embeds texts: name their column (text_column)")
    if text_column is not None:
        model = model or DEFAULT_MODEL
    else:
        vector_column = vector_column or "vector"
    if id_column in OUTPUT_COLUMNS:
        raise InvalidParameterError(f"id_column is {id_column!r}, the name of a column that is written; rename it")
    if callable(index) and candidates_column is not None:
        _check_takes_ids(index)
    if not callable(index):
        index = Path(index).absolute()
        if not index.is_file():
            raise InvalidInputError(f"there is no index file {index}")
    return Settings(
        index, k, fetch_k, resolved, id_column, vector_column, text_column, model, candidates_column, relevance_column,
        relevance_scale, threads,
    )  # fmt: skip


def _check_takes_ids(index: Callable[..., Any]) -> None:
    """Refuse a function that searches, where a function of ids is needed."""
    try:
        inspect.signature(index).bind([])
    except TypeError:
        raise InvalidParameterError(
            "with candidates_column no search is made: index must be a function vectors_by_id(ids) that returns a "
            f"mapping of ids to vectors, got {quoted(index)}"
        ) from None
    except ValueError:
        # Some functions that are not written in Python have no signature to check.
        return


def describe(value: Any) -> Any:
    """An object as JSON values that depend on its contents: the hash of an array, the length and hash of a file.

    A file is read whole. Its date may be restored after a change, and maps and network drives set it late, so an
    unchanged date does not prove an unchanged content.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path) and value.is_file():
        with value.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return f"{file.tell()} bytes, sha256 {digest}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} sha256 {_hash(np.ascontiguousarray(value).tobytes())}"
    if isinstance(value, (tuple, list)):
        if len(value) > 100:
            return f"{len(value)} items, sha256 {_hash(repr(value).encode())}"
        return [describe(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__qualname__: {f.name: describe(getattr(value, f.name)) for f in fields(value)}}
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
