from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.learning.labels.label_file import LabelFile, describe_callable

SETTINGS = {"k": 2, "subsets": None, "seed": 0, "feedback": "ours"}
FIRST = [((7, 1), 0.1 + 0.2), ((0, 5), -1e-300)]
SECOND = [((8, 0), 3.0)]


def begun(folder: Path) -> Path:
    path = folder / "labels.jsonl"
    file = LabelFile(path, SETTINGS, 9)
    file.journal.begin()
    file.append(3, FIRST)
    file.append(2, SECOND)
    return path


def test_labels_are_read_back_to_the_last_bit(tmp_path: Path) -> None:
    path = begun(tmp_path)
    assert LabelFile(path, SETTINGS, 9).known == {3: FIRST, 2: SECOND}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"format": "setselect labels", "version": 1, "settings": SETTINGS}
    assert lines[2] == {"query": 2, "subsets": [[8, 0]], "scores": [3.0]}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"query": 4}',
        b'{"query": 9, "subsets": [[1, 2]], "scores": [1.0]}',
        b'{"query": 4, "subsets": [[1, 2]], "scores": [NaN]}',
        b'{"query": 4, "subsets": [[1, 2, 3]], "scores": [1.0]}',
        b'{"query": 4, "subsets": [[1, 1]], "scores": [1.0]}',
        b'{"query": 4, "subsets": ["12"], "scores": [1.0]}',
        b'{"query": 4, "subsets": [[1, 2]], "scores": [1.0',
        b'{"key": "a", "log_probability": -1.0}',
    ],
)
def test_a_foreign_or_damaged_line_is_named_and_the_file_is_unchanged(tmp_path: Path, line: bytes) -> None:
    path = begun(tmp_path)
    content = path.read_bytes() + line + b"\n" + b'{"query": 5, "sub'
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"labels\.jsonl: line 4 .* 9 items"):
        LabelFile(path, SETTINGS, 9)
    assert path.read_bytes() == content


def test_an_item_that_is_labelled_twice_is_refused(tmp_path: Path) -> None:
    path = begun(tmp_path)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(InvalidInputError, match=r"line 4 .*item 3 "):
        LabelFile(path, SETTINGS, 9)


@pytest.mark.parametrize("content", [b"notes", b'{"format": "other", "version": 1}\n'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"notes\.txt: line 1 is"):
        LabelFile(path, SETTINGS, 9)
    assert path.read_bytes() == content


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = begun(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"version": 1', b'"version": 2', 1))
    with pytest.raises(InvalidParameterError, match=r"version 2, .*version 1"):
        LabelFile(path, SETTINGS, 9)


@dataclass
class Plain:
    weight: float = 0.5


class Addressed:
    pass


class Named:
    def fingerprint(self) -> str:
        return "gpt2, template 1"


class Told:
    fingerprint = "as a string"


def test_descriptions_are_the_same_after_a_restart_and_depend_on_settings() -> None:
    assert describe_callable("random") == "random"
    assert describe_callable(test_a_later_version_is_refused) == f"{__name__}.test_a_later_version_is_refused"
    assert describe_callable(Plain()) == describe_callable(Plain()) != describe_callable(Plain(0.6))
    assert describe_callable(Addressed()) == describe_callable(Addressed())
    assert " at 0x" not in describe_callable(functools.partial(pow, 2))
    assert describe_callable(Named()) == "gpt2, template 1"
    assert describe_callable(Told()) == "as a string"
