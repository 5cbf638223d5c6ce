"""What a worker does: queries of a table in, their sets out."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...candidates import Candidates
from ...errors import SetSelectError, VectorSourceError
from .._threads import one_blas_thread
from ._faiss_file import open_search
from ._query_rows import check_schema, vectors_given, vectors_of_texts, written_schema
from ._settings import Settings

# So many queries are searched at once: 40 MB of candidates at fetch_k = 100 and d = 384.
_AT_ONCE = 256


class Chooser:
    """Opens index and model once and chooses for table after table.

    A row whose query is unusable has an error in place of a set; what concerns all rows (no such column, a database
    that does not answer) is raised.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._search = open_search(settings.index, settings.threads)
        self.dimension: int | None = getattr(self._search, "dimension", None)
        self._embed: Any = None
        if settings.model is not None:
            from ...signals.embedding_models import load_model

            self._embed = load_model(settings.model).embed_queries
        # A kernel may have a row for each id; nothing else asks for them.
        self._by_id = getattr(settings.selector, "kernel", None) is not None

    def choose(self, queries: Any, first_row: int | None = None) -> Any:
        """The sets of the queries of a pyarrow Table, row by row in the same order.

        ``first_row`` is the number of the first row, for tables without ids of their own.
        """
        settings = self.settings
        check_schema(queries.schema, settings, "the queries", self.dimension)
        if settings.text_column is not None:
            vectors, problems = vectors_of_texts(queries[settings.text_column], self._embed, self.dimension)
        else:
            vectors, problems = vectors_given(queries[settings.vector_column], self.dimension)
        columns: dict[str, list[Any]] = {"ids": [], "gains": [], "relevance": []}
        picked: dict[int, tuple[Any, Any, Any]] = {}
        good = np.array([i for i, problem in enumerate(problems) if problem is None], dtype=np.intp)
        for start in range(0, len(good), _AT_ONCE):
            rows = good[start : start + _AT_ONCE]
            # FAISS multiplies by BLAS too: one thread is one thread only if both hold still.
            with one_blas_thread() if settings.threads == 1 else nullcontext():
                found, candidates = self._search(vectors[rows], settings.fetch_k)
            if len(found) != len(rows) or len(candidates) != len(rows):
                raise VectorSourceError(
                    f"the search was given {len(rows)} queries and answered {len(found)} with ids and "
                    f"{len(candidates)} with vectors"
                )
            with one_blas_thread():
                for i, ids, own in zip(rows.tolist(), found, candidates, strict=True):
                    picked[i], problems[i] = self._one(vectors[i], ids, own)
        for i in range(len(problems)):
            for column, values in zip(columns.values(), picked.get(i) or (None, None, None), strict=True):
                column.append(values)
        schema = written_schema(settings, queries.schema)
        if settings.id_column is not None:
            own_ids = queries[settings.id_column]
        else:
            assert first_row is not None, "tables without ids come with the number of their first row"
            own_ids = pa.array(np.arange(first_row, first_row + len(problems)), pa.int64())
        return pa.table([own_ids, *columns.values(), problems], schema=schema)

    def _one(self, query: NDArray[np.float32], ids: Any, vectors: Any) -> tuple[Any, str | None]:
        if not len(ids):
            return None, "the search found nothing"
        if len(ids) != len(vectors):
            raise VectorSourceError(f"the search answered a query with {len(ids)} ids and {len(vectors)} vectors")
        try:
            # A list, so that a kernel knows ids as what they are and not as numpy's.
            names = (ids.tolist() if isinstance(ids, np.ndarray) else list(ids)) if self._by_id else None
            candidates = Candidates(query, vectors, ids=names)
            selection = self.settings.selector.select(candidates, min(self.settings.k, len(ids)))
        except SetSelectError as error:
            return None, f"{type(error).__name__}: {error}"
        if callable(self.settings.index):
            taken: Any = [str(ids[j]) for j in selection.indices.tolist()]
        else:
            taken = ids[selection.indices]
        return (taken, selection.gains, selection.relevance), None
