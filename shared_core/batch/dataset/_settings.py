"""The settings of a run over a table of queries, and a description that tells two runs apart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._argument_names import argument_name
from ..._validation import check_integer, check_one_of
from ...errors import InvalidInputError, InvalidParameterError
from ...scaling import SCALES, Scale
from ...selection.effects import warn_of_no_effect
from ...selection.route import DEFAULT_K, default_fetch_k
from ...selectors.registry import DEFAULT_SELECTOR, Selector, capabilities_of, check_capability, resolve_selector
from ...signals.embedding_models import DEFAULT_MODEL, fingerprint

# search(vectors (n, d), k) -> for each vector its ids (m,) and their vectors (m, d), m <= k
Search = Callable[[NDArray[np.float32], int], tuple[Sequence[Any], Sequence[Any]]]
# vectors_by_id(ids) -> the vector of each id that is known
VectorsById = Callable[[list[Any]], Mapping[Any, Any]]
Index = str | os.PathLike[str] | Search | VectorsById
# texts_by_id(ids) -> the text of each id that is known
TextsById = Callable[[list[Any]], Mapping[Any, str]]
Texts = str | os.PathLike[str] | TextsById
# values_by_id(ids) -> what each id that is known has
ValuesById = Callable[[list[Any]], Mapping[Any, Any]]

OUTPUT_COLUMNS = ("ids", "gains", "relevance", "error")
# Written too where the names in the texts are read.
REFERRED_BY = "referred_by"
# How texts call each other: columns of the files of texts, or functions of ids.
CALLED = ("titles", "identifiers", "sources", "neighbours")
# A setting, the setting that it needs, and for the message: why, and what that setting names.
_NEEDED = (
    ("relevance_column", "candidates_column", "has a number for each candidate", "the candidates"),
    ("question_column", "texts", "is for the words of questions and candidates", "the candidates' texts"),
    ("texts", "question_column", "are for the words of questions and candidates", "the queries' texts"),
    ("titles", "texts", "are the names by which the candidates' texts mention each other", "these texts"),
    ("identifiers", "texts", "are the numbers and codes by which the candidates' texts cite each other", "these texts"),
    ("sources", "texts", "are the documents in which the candidates' texts cite each other", "these texts"),
    ("neighbours", "texts", "are the numbers of the candidates' texts in their sources", "these texts"),
    ("model", "text_column", "embeds texts", "their column"),
)


@dataclass(frozen=True, kw_only=True)
class DatasetSettings:
    """All settings that the selection of a row depends on; ``threads`` has no effect on it."""

    index: Path | Search | VectorsById
    selector: Selector
    k: int = DEFAULT_K
    # None until __post_init__.
    fetch_k: int | None = None
    id_column: str | None = "id"
    vector_column: str | None = None
    text_column: str | None = None
    model: str | None = None
    candidates_column: str | None = None
    relevance_column: str | None = None
    relevance_scale: Scale | None = "minmax"
    question_column: str | None = None
    texts: Path | TextsById | None = None
    titles: str | TextsById | None = None
    identifiers: str | ValuesById | None = None
    sources: str | ValuesById | None = None
    neighbours: str | ValuesById | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        name, question_column = argument_name, self.question_column or self.text_column
        k = check_integer(self.k, "k", least=1)
        fetch_k = default_fetch_k(k) if self.fetch_k is None else check_integer(self.fetch_k, "fetch_k", least=1)
        check_integer(self.threads, "threads", least=1)
        if self.relevance_scale is not None:
            check_one_of(self.relevance_scale, "relevance_scale", SCALES)
        for setting, needed, why, what in _NEEDED:
            present = question_column if needed == "question_column" else getattr(self, needed)
            if getattr(self, setting) is not None and present is None:
                raise InvalidParameterError(f"{name(setting)} {why}, so {name(needed)} must name {what}")
        if self.relevance_column is not None:
            check_capability(self.selector, "relevance")
        if self.candidates_column is None and fetch_k < k:
            raise InvalidParameterError(f"{name('fetch_k')} must be at least {name('k')} = {k}, got {fetch_k}")
        if self.text_column is not None and self.vector_column is not None:
            raise InvalidParameterError(
                f"queries are vectors ({name('vector_column')}={self.vector_column!r}) or texts "
                f"({name('text_column')}={self.text_column!r}), not both"
            )
        for setting in CALLED:
            if isinstance(column := getattr(self, setting), str) and callable(self.texts):
                raise InvalidParameterError(
                    f"{setting}={column!r} is a column of files, but texts is a function: pass a function of ids"
                )
        if self.id_column in (*OUTPUT_COLUMNS, REFERRED_BY):
            raise InvalidParameterError(
                f"{name('id_column')} is {self.id_column!r}, the name of a column that is written; rename it"
            )
        if isinstance(self.texts, Path) and not self.texts.exists():
            raise InvalidInputError(f"there is no file or folder {self.texts}")
        if isinstance(self.index, Path) and not self.index.is_file():
            raise InvalidInputError(f"there is no index file {self.index}")
        texts = self.text_column is not None
        reads_words = self.texts is not None and capabilities_of(self.selector).words
        derived = {
            "fetch_k": fetch_k,
            "relevance_scale": None if self.relevance_column is None else self.relevance_scale,
            "vector_column": None if texts else self.vector_column or "vector",
            "model": self.model or DEFAULT_MODEL if texts else None,
            "question_column": question_column if reads_words else None,
            "texts": self.texts if reads_words else None,
            **{setting: getattr(self, setting) if reads_words else None for setting in CALLED},
        }
        for field, value in derived.items():
            object.__setattr__(self, field, value)

    @property
    def reads_references(self) -> bool:
        """Whether it is read which texts lead to which others."""
        capabilities = capabilities_of(self.selector)
        return self.texts is not None and (capabilities.references or capabilities.neighbours)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        read = [
            self.id_column, self.vector_column, self.text_column, self.question_column, self.candidates_column,
            self.relevance_column,
        ]  # fmt: skip
        return [name for name in dict.fromkeys(read) if name is not None]

    def describe(self) -> dict[str, Any]:
        """The settings as JSON values: equal for two runs that write the same rows."""
        # No search is made for candidates that are given, so fetch_k has no effect on them.
        without = ("threads",) if self.candidates_column is None else ("threads", "fetch_k")
        named = {field.name: describe(getattr(self, field.name)) for field in fields(self) if field.name not in without}
        # The fingerprint depends on the files of a model: one that was trained further in its folder has the same name.
        return named | {"model": None if self.model is None else fingerprint(self.model)}


def make_settings(
    index: Index, selector: str | Selector = DEFAULT_SELECTOR, *, texts: Texts | None = None, **given: Any
) -> DatasetSettings:
    """The settings of a run, checked; what is given and is no setting is a parameter of the selector."""
    names = {field.name for field in fields(DatasetSettings)}
    parameters = {name: given.pop(name) for name in list(given) if name not in names}
    chosen = resolve_selector(selector, parameters)
    values = {"texts": texts, **{name: given.get(name) for name in (*CALLED, "relevance_column")}}
    named = [name for name, value in values.items() if value is not None]
    named += ["relevance_scale"] if given.get("relevance_scale", "minmax") != "minmax" else []
    warn_of_no_effect(chosen, named, {*values, "quality", "cover"})
    return DatasetSettings(
        index=index if callable(index) else Path(index).absolute(),
        texts=texts if texts is None or callable(texts) else Path(texts).absolute(),
        selector=chosen,
        **given,
    )


def describe(value: Any) -> Any:
    """An object as JSON values that depend on its contents: the hash of an array, the length and hash of a file."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path) and value.is_dir():
        return [describe(file) for file in sorted(value.glob("*.parquet"))]
    if isinstance(value, Path) and value.is_file():
        # Its date proves nothing: it may be restored after a change, and maps and network drives set it late.
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
