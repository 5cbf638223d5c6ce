"""What the modules of stores share: arrays out of a client's vectors, and one function for its sync and async form."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

P = ParamSpec("P")
T = TypeVar("T")
Id = TypeVar("Id")
Row = NDArray[np.float32]
# An array of shape (m, d). If a row has no vector: a list of m rows, with None for that row.
Vectors = Row | list[Row | None]
# A function that yields what each call of a client gives, and gets the client's answer back.
Calls = Generator[Any, Any, T]


class TwoWays(Generic[P, T]):
    """A function of :data:`Calls` for a store's sync client; ``awaited`` is the same for its async client."""

    def __init__(self, calls: Callable[P, Calls[T]]) -> None:
        self._calls = calls
        update_wrapper(self, calls)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined,no-any-return]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run each call."""
        calls = self._calls(*args, **kwargs)
        try:
            answer = next(calls)
            while True:
                answer = calls.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def awaited(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await each call."""
        calls = self._calls(*args, **kwargs)
        try:
            call = next(calls)
            while True:
                try:
                    answer = await call
                # The function gets the error at its line, as in sync code.
                except Exception as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result


def as_row(stored: Any) -> Row | None:
    """One vector as float32; None if ``stored`` is None or empty."""
    return None if stored is None or len(stored) == 0 else np.asarray(stored, dtype=np.float32)


def stack_rows(rows: Sequence[Row | None], dimension: int = 0) -> Vectors:
    """The rows as an array of shape (m, d); as a list if one of them is None. Without rows, of shape (0, dimension)."""
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        return list(rows)
    return np.stack(found) if found else np.empty((0, dimension), dtype=np.float32)


def rows_by_id(pairs: Iterable[tuple[Id, Row | None]]) -> dict[Id, Row]:
    """The vectors by id, without the ids that have none."""
    return {name: row for name, row in pairs if row is not None}


def nearest_of(ids: Sequence[str], vectors: Mapping[str, ArrayLike], query: list[float], k: int) -> list[str]:
    """The ``k`` ids whose vectors have the highest cosine with the query, of those that have one."""
    known = [name for name in ids if name in vectors]
    rows = np.array([vectors[name] for name in known], np.float64).reshape(len(known), -1)
    cosines = rows @ np.asarray(query) / np.maximum(np.linalg.norm(rows, axis=1), 1e-300) if known else np.zeros(0)
    return [known[row] for row in np.argsort(-cosines, kind="stable")[:k].tolist()]
