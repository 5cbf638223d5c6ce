"""The work of one process: queries of a table in, their selections out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..._validation import as_numeric
from ...candidates import Candidates
from ...errors import InvalidInputError, SetSelectError, VectorSourceError
from ...selectors.base import Selection
from ...signals.embedding_models import load_model
from .._blocks import Block as QueryBlock
from .._blocks import max_queries
from .._threads import one_blas_thread
from ..select_many import BlockSelector
from ._faiss_file import FaissFile
from ._output_folder import OutputFolder
from ._queries import Block, check_schema, embed_texts, output_schema, read_block, read_vectors
from ._settings import Search, Settings

# Queries per search: 40 MB of candidates at fetch_k = 100 and d = 384.
_SEARCH_ROWS = 256


class Worker:
    """An open index, and an open model for texts, that select for one table after another.

    A row with an unusable query gets an error in place of a selection. An error that concerns all rows, such as a
    missing column or a database that does not answer, is raised.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        index = settings.index
        self._search: Search = FaissFile(index, settings.threads) if isinstance(index, Path) else index
        self._dimension: int | None = getattr(self._search, "dimension", None)
        self._embed = None if settings.model is None else load_model(settings.model).embed_queries
        self._blocks = BlockSelector(settings.selector)
        # A kernel may have a row for each id, so it needs the candidates' ids.
        self._needs_ids = getattr(settings.selector, "kernel", None) is not None

    def write_part(self, block: Block, folder: OutputFolder) -> None:
        """Read a block, select for its queries, and write its part."""
        folder.write(block.number, self(read_block(block, self.settings.columns), block.first_row))

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
        good = [i for i, problem in enumerate(problems) if problem is None]
        for start in range(0, len(good), _SEARCH_ROWS):
            rows = good[start : start + _SEARCH_ROWS]
            ids, candidates = self._search_candidates(vectors[rows])
            with one_blas_thread():
                selections = self._select(vectors[rows], ids, candidates)
            for i, own_ids, selection in zip(rows, ids, selections, strict=True):
                if isinstance(selection, str):
                    problems[i] = selection
                    continue
                columns["ids"][i] = self._take_ids(own_ids, selection.indices)
                columns["gains"][i], columns["relevance"][i] = selection.gains, selection.relevance
        if settings.id_column is None:
            first = pa.array(np.arange(first_row, first_row + len(problems)), pa.int64())
        else:
            first = queries[settings.id_column]
        return pa.table([first, *columns.values(), problems], schema=output_schema(settings, queries.schema))

    def _search_candidates(self, vectors: NDArray[np.float32]) -> tuple[Sequence[Any], Sequence[Any]]:
        # FAISS uses BLAS, so a single thread needs a limit on both.
        with one_blas_thread() if self.settings.threads == 1 else nullcontext():
            ids, candidates = self._search(vectors, self.settings.fetch_k)
        if len(ids) != len(vectors) or len(candidates) != len(vectors):
            raise VectorSourceError(
                f"the search got {len(vectors)} queries and returned {len(ids)} lists of ids and {len(candidates)} of "
                "vectors"
            )
        return ids, candidates

    def _select(
        self, queries: NDArray[np.float32], ids: Sequence[Any], candidates: Sequence[Any]
    ) -> list[Selection | str]:
        """The selection of each query, or the reason why there is none."""
        selections: list[Selection | str] = ["the search found nothing"] * len(queries)
        # Queries with candidates of one shape and dtype form blocks.
        alike: dict[Any, list[int]] = defaultdict(list)
        vectors: dict[int, NDArray[Any]] = {}
        for i, own in enumerate(candidates):
            if len(ids[i]) != len(own):
                raise VectorSourceError(f"the search returned {len(ids[i])} ids and {len(own)} vectors for a query")
            try:
                vectors[i] = as_numeric(own, "vectors")
            except InvalidInputError as error:
                selections[i] = _describe_error(error)
            else:
                if len(own):
                    alike[vectors[i].shape, vectors[i].dtype].append(i)
        for (shape, _), members in alike.items():
            k = min(self.settings.k, shape[0])
            step = max_queries(vectors[members[0]].nbytes)
            for piece in (members[start : start + step] for start in range(0, len(members), step)):
                found = None
                if self._blocks.loop is not None:
                    block = QueryBlock(0, queries[piece], vectors=np.stack([vectors[i] for i in piece]))
                    found = self._blocks.select(block, k)
                for place, i in enumerate(piece):
                    selections[i] = (
                        self._select_one(queries[i], ids[i], vectors[i], k) if found is None else found[place]
                    )
        return selections

    def _select_one(self, query: NDArray[np.float32], ids: Any, vectors: NDArray[Any], k: int) -> Selection | str:
        # tolist converts the ids to Python's values, which a kernel needs to find its rows.
        names = (ids.tolist() if isinstance(ids, np.ndarray) else list(ids)) if self._needs_ids else None
        try:
            return self.settings.selector.select(Candidates(query, vectors, ids=names, copy=False), k)
        except SetSelectError as error:
            return _describe_error(error)

    def _take_ids(self, ids: Any, indices: NDArray[np.int64]) -> Any:
        return ids[indices] if isinstance(self._search, FaissFile) else [str(ids[i]) for i in indices.tolist()]


def _describe_error(error: SetSelectError) -> str:
    return f"{type(error).__name__}: {error}"
