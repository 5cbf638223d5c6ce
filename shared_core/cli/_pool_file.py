"""The pool of ``setselect train`` out of a file of JSON lines, and its vectors out of a .npy file."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError, InvalidParameterError
from ..evaluation.corpus import Problem, json_lines, text_of


class PoolFile(NamedTuple):
    """What was read, in the order of the file.

    Attributes
    ----------
    items : list of n dict
        Each with ``question`` and ``answer``, whatever these are called in the file, and nothing else.
    ids : list of n (str or int), or None
        None where they are not asked for, or no line has one.
    rows : list of n int
        The place of each item among the file's lines that are not blank, bad ones too.
    lines : int
        How many lines are not blank.
    problems : list of Problem
        The lines that are left out.
    """

    items: list[dict[str, str]]
    ids: list[str | int] | None
    rows: list[int]
    lines: int
    problems: list[Problem]


def read_pool(path: Path | str, question: str = "question", answer: str = "answer", *, ids: bool = False) -> PoolFile:
    """Read items from a file of JSON lines, an object with a question and an answer on each.

    Parameters
    ----------
    path : path
        ``.jsonl`` or ``.ndjson``.
    question, answer : str
        The keys. Other keys are ignored, ``id`` as well unless it is asked for.
    ids : bool
        Read ``id``, a string or a whole number: on every line or on none.

    Raises
    ------
    InvalidInputError
        The file cannot be read or holds not one item.
    InvalidParameterError
        The suffix is another.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pool.jsonl"
    >>> _ = path.write_text('{"id": 7, "q": "1 + 1?", "a": "2"}' + chr(10) + '{"q": "2 + 2?"}')
    >>> pool = read_pool(path, "q", "a", ids=True)
    >>> pool.items, pool.ids, [str(problem).rpartition(":")[2] for problem in pool.problems]
    ([{'question': '1 + 1?', 'answer': '2'}], [7], [" there is no 'a'; found 'q'"])
    """
    path = Path(path)
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InvalidParameterError(
            f"{path}: a pool is read from .jsonl: a JSON object with question and answer a line"
        )
    items: list[dict[str, str]] = []
    names: list[str | int | None] = []
    known: set[str | int | None] = set()
    rows: list[int] = []
    places: list[int | None] = []
    problems: list[Problem] = []
    lines = 0
    try:
        for lines, (file, line, _, record, wrong) in enumerate(json_lines(path), 1):
            try:
                if wrong is not None:
                    raise InvalidInputError(wrong)
                item = {"question": text_of(record, (question,)), "answer": text_of(record, (answer,))}
                name = _checked_id(record, known) if ids else None
            except InvalidInputError as error:
                problems.append(Problem(file, line, str(error)))
                continue
            items.append(item)
            names.append(name)
            known.add(name)
            rows.append(lines - 1)
            places.append(line)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not items:
        first = f"; the first problem: {problems[0]}" if problems else ""
        raise InvalidInputError(f"{path} holds not one item{first}")
    without = [place for place, name in zip(places, names, strict=True) if name is None]
    if ids and without and len(without) < len(names):
        raise InvalidInputError(f"{path}:{without[0]}: there is no 'id', though other lines have one: give all or none")
    return PoolFile(items, [name for name in names if name is not None] or None, rows, lines, problems)


def read_vectors(path: Path | str, pool: PoolFile) -> NDArray[Any]:
    """The items' vectors out of a .npy file with a row for each line of the pool's file that is not blank.

    Returns
    -------
    ndarray, shape (n, d)

    Raises
    ------
    InvalidInputError
        The file cannot be read as an array of numbers, or has another number of rows.
    """
    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InvalidInputError(f"{path} is no .npy file of numbers: {error}") from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or len(found) != pool.lines:
        shape = found.shape if isinstance(found, np.ndarray) else "several arrays"
        raise InvalidInputError(
            f"{path}: vectors must have shape ({pool.lines}, d), a row for each line of the pool that is not blank, "
            f"got {shape}"
        )
    return found[pool.rows]


def _checked_id(record: Mapping[str, Any], known: Container[Any]) -> str | int | None:
    name = record.get("id")
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise InvalidInputError(f"'id' must be a string or a whole number, got {name!r}")
    if name in known:
        raise InvalidInputError(f"id {name!r} occurs a second time")
    return name
