"""The work of one process: queries of a table in, their selections out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..._validation import as_numeric, is_missing, quoted
from ...candidates import Candidates
from ...errors import InvalidInputError, SetSelectError, VectorSourceError
from ...selection.route import select_set
from ...selectors.selection import Selection
from ...signals.embedding_models import load_model
from ...texts import Texts, as_texts
from ..select_many import one_blas_thread
from ._by_id import read_texts
from ._columns import check_schema, embed_texts, output_schema, read_candidates, read_vectors
from ._faiss_file import FaissFile
from ._output_folder import OutputFolder
from ._row_ranges import RowRange, read_rows
from ._settings import CALLED, REFERRED_BY, DatasetSettings

# Queries per search: 40 MB of candidates at fetch_k = 100 and d = 384.
_SEARCH_ROWS = 256


class _Found(NamedTuple):
    """The candidates of a query: their ids and vectors (m, d), and what else is known of them."""

    ids: Sequence[Any]
    vectors: NDArray[Any]
    relevance: NDArray[np.float64] | None = None
    question: str = ""
    texts: Texts | None = None


class Worker:
    """An open index and model that select for one table after another; only errors that concern all rows are raised."""

    def __init__(self, settings: DatasetSettings) -> None:
        self.settings = settings
        index = settings.index
        self._index: Any = FaissFile(index, settings.threads) if isinstance(index, Path) else index
        self._vectors_by_id: Callable[..., Any] = (
            self._index.vectors_by_id if isinstance(self._index, FaissFile) else self._index
        )
        self._dimension: int | None = getattr(self._index, "dimension", None)
        self._texts_by_id: Callable[..., Any] | None = None
        called = {name: getattr(settings, name) for name in CALLED}
        # How texts call each other, by id.
        self._called: dict[str, Callable[..., Any]] = {}
        if isinstance(settings.texts, Path):
            columns = {name: value if isinstance(value, str) else None for name, value in called.items()}
            self._texts_by_id, self._called = read_texts(settings.texts, columns)
        elif settings.texts is not None:
            self._texts_by_id = settings.texts
        self._called |= {name: value for name, value in called.items() if callable(value)}
        self._embed = None if settings.model is None else load_model(settings.model).embed_queries
        # A kernel may have a row for each id, so it needs the candidates' ids.
        self._needs_ids = getattr(settings.selector, "kernel", None) is not None

    def write_part(self, rows: RowRange, folder: OutputFolder) -> None:
        """Read these queries, select for them, and write their part."""
        folder.write(rows.number, self(read_rows(rows, self.settings.columns), rows.first_row))

    def __call__(self, queries: Any, first_row: int = 0) -> Any:
        """The selections of a pyarrow Table of queries, row by row; row numbers count from ``first_row``."""
        settings = self.settings
        check_schema(queries.schema, settings, "the queries", self._dimension)
        if settings.text_column is not None:
            assert self._embed is not None
            vectors, problems = embed_texts(queries[settings.text_column], self._embed, self._dimension)
        else:
            vectors, problems = read_vectors(queries[settings.vector_column], self._dimension)
        columns: dict[str, list[Any]] = {name: [None] * len(problems) for name in ("ids", "gains", "relevance")}
        if settings.reads_references:
            columns[REFERRED_BY] = [None] * len(problems)
        good = [i for i, problem in enumerate(problems) if problem is None]
        for start in range(0, len(good), _SEARCH_ROWS):
            rows = good[start : start + _SEARCH_ROWS]
            if settings.candidates_column is None:
                found = self._search_candidates(vectors[rows])
            else:
                found = self._fetch_candidates(queries, rows)
            if self._texts_by_id is not None:
                found = self._read_texts(queries[settings.question_column].take(rows).to_pylist(), found)
            with one_blas_thread():
                selections = [
                    own if isinstance(own, str) else self._select(query, own)
                    for query, own in zip(vectors[rows], found, strict=True)
                ]
            for i, own, selection in zip(rows, found, selections, strict=True):
                if isinstance(own, str) or isinstance(selection, str):
                    problems[i] = str(selection)
                    continue
                columns["ids"][i] = self._written(own.ids, selection.indices)
                if selection.referred_by is not None:
                    columns[REFERRED_BY][i] = self._written(own.ids, selection.referred_by)
                columns["gains"][i] = selection.gains
                columns["relevance"][i] = selection.relevance
        if settings.id_column is None:
            first = pa.array(np.arange(first_row, first_row + len(problems)), pa.int64())
        else:
            first = queries[settings.id_column]
        return pa.table([first, *columns.values(), problems], schema=output_schema(settings, queries.schema))

    def _written(self, ids: Sequence[Any], rows: NDArray[np.int64]) -> list[Any]:
        """The ids at these rows as they are written; None for row -1."""
        as_id = (lambda name: name) if isinstance(self._index, FaissFile) else str
        return [None if row < 0 else as_id(ids[row]) for row in rows.tolist()]

    def _search_candidates(self, vectors: NDArray[np.float32]) -> list[_Found | str]:
        """The nearest candidates of each query, or the reason why there are none."""
        with self._blas():
            ids, candidates = self._index(vectors, self.settings.fetch_k)
        if len(ids) != len(vectors) or len(candidates) != len(vectors):
            raise VectorSourceError(
                f"the search got {len(vectors)} queries and returned {len(ids)} lists of ids and {len(candidates)} of "
                "vectors"
            )
        found: list[_Found | str] = []
        for own_ids, own in zip(ids, candidates, strict=True):
            if len(own_ids) != len(own):
                raise VectorSourceError(f"the search returned {len(own_ids)} ids and {len(own)} vectors for a query")
            found.append(_as_found(own_ids, own) if len(own) else "the search found nothing")
        return found

    def _fetch_candidates(self, queries: Any, rows: list[int]) -> list[_Found | str]:
        """The candidates that the rows of a table name, or the reason why they are unusable."""
        given = read_candidates(queries, rows, self.settings)
        wanted = list(dict.fromkeys(i for one in given if not isinstance(one, str) for i in one[0]))
        with self._blas():
            vectors = self._vectors_by_id(wanted) if wanted else {}
        _check_mapping(vectors, "vectors")
        found: list[_Found | str] = []
        for one in given:
            if isinstance(one, str):
                found.append(one)
                continue
            ids, relevance = one
            unknown = [i for i in ids if i not in vectors]
            if unknown:
                found.append(f"there is no vector of candidate {quoted(unknown[0])}")
            else:
                found.append(_as_found(ids, [vectors[i] for i in ids], relevance))
        return found

    def _read_texts(self, questions: Sequence[str | None], found: Sequence[_Found | str]) -> list[_Found | str]:
        """The candidates with their texts and the question, or why they are unusable."""
        assert self._texts_by_id is not None
        ids = [[] if isinstance(own, str) else _as_values(own.ids) for own in found]
        wanted = list(dict.fromkeys(i for of_query in ids for i in of_query))
        texts = self._texts_by_id(wanted) if wanted else {}
        _check_mapping(texts, "texts")
        refer = self.settings.reads_references
        called = {name: by_id(wanted) for name, by_id in self._called.items()} if refer and wanted else {}
        for name, values in called.items():
            _check_mapping(values, name)
        matched: list[_Found | str] = []
        for question, own, of_query in zip(questions, found, ids, strict=True):
            if isinstance(own, str):
                matched.append(own)
            elif question is None or is_missing(question):
                matched.append(f"the question is {'null' if question is None else 'blank'}")
            elif missing := [i for i in of_query if i not in texts]:
                matched.append(f"there is no text of candidate {quoted(missing[0])}")
            else:
                own_texts = [texts[i] for i in of_query]
                columns: dict[str, Any] = {name: [*map(values.get, of_query)] for name, values in called.items()}
                # Usual columns of numbers say nothing without sources.
                if "sources" not in columns and self.settings.neighbours is None:
                    columns.pop("neighbours", None)
                matched.append(own._replace(question=question, texts=as_texts(own_texts, **columns, refer=refer)))
        return matched

    def _blas(self) -> AbstractContextManager[None]:
        # FAISS uses BLAS, so a single thread needs a limit on both.
        return one_blas_thread() if self.settings.threads == 1 else nullcontext()

    def _select(self, query: NDArray[np.float32], found: _Found) -> Selection | str:
        names = _as_values(found.ids) if self._needs_ids else None
        settings = self.settings
        try:
            candidates = Candidates(query, found.vectors, relevance=found.relevance, ids=names, copy=False)
            return select_set(
                candidates,
                settings.selector,
                min(settings.k, len(found.ids)),
                question=found.question,
                texts=found.texts,
                relevance_scale=settings.relevance_scale,
            )
        except SetSelectError as error:
            return _describe_error(error)


def _as_found(ids: Sequence[Any], vectors: Any, relevance: NDArray[np.float64] | None = None) -> _Found | str:
    try:
        return _Found(ids, as_numeric(vectors, "vectors"), relevance)
    except InvalidInputError as error:
        return _describe_error(error)


def _as_values(ids: Sequence[Any]) -> list[Any]:
    """The ids as Python's values, by which a kernel finds its rows, and a function the texts."""
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def _check_mapping(found: Any, what: str) -> None:
    if not isinstance(found, Mapping):
        raise VectorSourceError(f"{what}_by_id(ids) must return a mapping of ids to {what}, got {quoted(found)}")


def _describe_error(error: SetSelectError) -> str:
    return f"{type(error).__name__}: {error}"
