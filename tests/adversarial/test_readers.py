"""Files damaged at random: they are read as they are, or refused by an error of setselect that names file and line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import SetSelectError
from shared_core.cli._vectors import read_rows
from shared_core.evaluation.corpus import read_documents, read_qrels, read_queries
from shared_core.learning.labels import LabelFile, LabelledSubset
from shared_core.signals.embedding_models import CachedEmbedding
from tests.adversarial.conftest import Cases, change_values, damage, run_program
from tests.embedding import embed

JSON_LINES = b"""\
{"id": "a", "text": "The river carries water.", "subtopics": {"river": ["a", "b"]}}
{"id": "b", "text": "Bread is baked from flour.", "gold": ["a", "b"]}
{"id": "c", "question": "A violin has strings?", "subtopics": {"x": ["a"], "y": []}}

{"id": 4, "text": "\\u00c4 caf\\u00e9", "question": "Q?", "answer": "4", "gold": [4]}
"""
TABLE = b"""\
id,text,subtopics,gold
a,The river carries water.,river;water,a;b
b,"Bread, baked
from ""flour"".","[""bread"", ""x;y""]",b

,No id.,,
"""
TEXTS = "The river carries water.\n\n  Bread is baked.  \r\nÄ café 😀\n".encode()
ORIGINALS = {"jsonl": JSON_LINES, "csv": TABLE, "tsv": TABLE.replace(b",", b"\t"), "txt": TEXTS}
JUDGEMENTS = {
    "beir": b'query-id\tcorpus-id\tscore\nb\ta\t1\nb\t"<""c"">"\t0\n\n1\tb\t2\nc\ta\t1\n',
    "diversity": b"b 1 a 1\nb 2 a 1\nb 2 c 0\n1 0 b 2\nc 1 a 1\n",
}
_DOCUMENT = '{"id": "%s", "text": "It holds %s.", "title": "%s", "subtopics": ["x"], "source": "s", "cost": 3}\n'
_QUERY = '{"id": "%s", "text": "What holds %s?", "gold": ["%s"], "subtopics": {"x": ["a", "b"]}}\n'
COMPARED = {
    name: "".join(line % (id, id, id) for id in "abcd").encode()
    for name, line in (("documents", _DOCUMENT), ("queries", _QUERY))
}


def as_written(read: Callable[[Path], list[Any]], path: Path) -> bytes:
    """What is read can be written."""
    found = read(path)
    assert found
    return json.dumps([dataclasses.asdict(item) for item in found], default=dict, ensure_ascii=False).encode()


def read_labels(path: Path) -> None:
    known = LabelFile(path, {"k": 2, "subsets": 1, "seed": 0}, 9).known
    assert all(isinstance(row, int) for made in known.values() for entry in made for row in entry.subset)


def read_array(path: Path) -> None:
    assert read_rows(path, [0, 1, 2], 3, "the texts").shape[0] == 3


READERS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    **{
        f"{read.__name__}, {suffix}": (f"x.{suffix}", content, partial(as_written, read))
        for suffix, content in ORIGINALS.items()
        for read in (read_documents, read_queries)
    },
    **{kind: ("x.qrels", content, read_qrels) for kind, content in JUDGEMENTS.items()},
    "labels": ("labels.jsonl", b"", read_labels),
    "array": ("rows.npy", b"", read_array),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_named(kind: str, cases: Cases, tmp_path: Path) -> None:
    name, content, read = READERS[kind]
    path = tmp_path / name
    if kind == "labels":
        labels = LabelFile(path, {"k": 2, "subsets": 1, "seed": 0}, 9)
        labels.begin()
        labels.append([LabelledSubset(row, (row + 1, row + 2), 0.5) for row in range(3)])
    if kind == "array":
        np.save(path, np.arange(24.0).reshape(3, 8))
    content = content or path.read_bytes()
    for number, rng in cases(share=0.2, at_most=20_000):
        path.write_bytes((change_values if name.endswith("jsonl") and number % 4 else damage)(content, rng))
        try:
            read(path)
        except SetSelectError as error:
            if str(path) not in str(error):
                raise


def test_a_cache_that_is_cut_off_is_read_or_named(cases: Cases, tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(40)]
    cached = CachedEmbedding(lambda some: np.array([embed(text) for text in some]), "words", tmp_path / "cache")
    shape, cache = cached(texts).shape, cached.path.read_bytes()
    for _, rng in cases(share=0.03, at_most=1000):
        cached.path.write_bytes(cache[: rng.integers(len(cache))])
        try:
            assert np.isfinite(cached(texts)).all()
            assert cached(texts).shape == shape
        except SetSelectError as error:
            if str(cached.path) not in str(error):
                raise


def test_compare_of_corpora_with_other_values(cases: Cases, tmp_path: Path) -> None:
    for _, rng in cases(share=0.05, at_most=1000):
        for name, n in (("documents", 4), ("queries", 4)):
            (tmp_path / f"{name}.jsonl").write_bytes(change_values(COMPARED[name], rng))
            np.save(tmp_path / f"{name}.npy", rng.normal(size=(n, 8)))
        out = tmp_path / f"report.{rng.choice(['html', 'json'])}"
        files = [f"--{name}={tmp_path / name}.jsonl" for name in ("documents", "queries")]
        rows = [f"--vectors={tmp_path}/documents.npy", f"--query-vectors={tmp_path}/queries.npy"]
        code, _, told = run_program("compare", *files, *rows, "--k", 1, "--fetch-k", 3, "--out", out)
        assert code in (0, 2), told
        assert (code == 2) == ("error: " in told), told
        assert code != 0 or out.exists()
