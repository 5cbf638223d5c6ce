"""The pool of ``setselect train``, read from a file of JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .._validation import quoted
from ..errors import InvalidInputError, InvalidParameterError
from ..evaluation.corpus import Problem, text_of
from ..evaluation.reading import json_lines


class PoolFile(NamedTuple):
    """The items of a pool in the order of the file, and the lines that are left out."""

    # With the keys ``question`` and ``answer``.
    items: list[dict[str, str]]
    ids: list[str | int] | None
    # The place of each item among the ``lines`` lines that are not blank.
    rows: list[int]
    lines: int
    problems: list[Problem]


def read_pool(path: Path | str, question: str = "question", answer: str = "answer", *, ids: bool = False) -> PoolFile:
    """Read items from a file of JSON lines (.jsonl or .ndjson) with a question and an answer under these keys.

    With ``ids`` the key ``id`` is read too, a string or a whole number: all lines must have one, or none. Other keys
    are ignored.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pool.jsonl"
    >>> _ = path.write_text('{"id": 7, "q": "1 + 1?", "a": "2"}' + chr(10) + '{"q": "2 + 2?"}')
    >>> pool = read_pool(path, "q", "a", ids=True)
    >>> pool.items, pool.ids, [str(problem).rpartition(":")[2] for problem in pool.problems]
    ([{'question': '1 + 1?', 'answer': '2'}], [7], [" there is no 'a'; found ['q']"])
    """
    path = Path(path)
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InvalidParameterError(
            f"{path}: the pool must be a .jsonl file, with a JSON object with question and answer on each line"
        )
    items: list[dict[str, str]] = []
    known: dict[str | int, None] = {}
    rows: list[int] = []
    problems: list[Problem] = []
    without, lines = "", 0
    try:
        for lines, (file, line, _, record, wrong) in enumerate(json_lines(path), 1):
            try:
                if wrong is not None:
                    raise InvalidInputError(wrong)
                item = {"question": text_of(record, (question,)), "answer": text_of(record, (answer,))}
                name = record.get("id") if ids else None
                if name is not None and (type(name) not in (str, int) or name in known):
                    raise InvalidInputError(
                        f"'id' must be a string or a whole number that no other line has, got {quoted(name)}"
                    )
            except InvalidInputError as error:
                problems.append(Problem(file, line, str(error)))
                continue
            if name is not None:
                known[name] = None
            elif ids:
                without = without or f"{file}:{line}"
            items.append(item)
            rows.append(lines - 1)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not items:
        first = f"; the first problem: {problems[0]}" if problems else ""
        raise InvalidInputError(f"{path} has no item that can be read{first}")
    if without and known:
        raise InvalidInputError(f"{without}: there is no 'id', but other lines have one: give all lines an id, or none")
    return PoolFile(items, list(known) or None, rows, lines, problems)
