"""Files damaged at random: they are read as they are, or refused by an error of setselect that names file and line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import LinearKernel, LowRankKernel, SetSelectError
from shared_core.cli._vectors import read_rows
from shared_core.evaluation.corpus import read_documents, read_qrels, read_queries
from shared_core.learning.labels import LabelFile, LabelledSubset
from shared_core.signals.embedding_models import CachedEmbedding
from tests.adversarial.conftest import Cases, change_values, damage, run_program
from tests.embedding import embed

JSON_LINES = b"""\
{"id": "a", "text": "The river carries water.", "subtopics": ["river", "water"]}
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


def check_message(error: SetSelectError, path: Path) -> None:
    assert str(path) in str(error)


@pytest.mark.parametrize("read", [read_documents, read_queries])
@pytest.mark.parametrize("suffix", list(ORIGINALS))
def test_damaged_corpora(suffix: str, read: Callable[[Path], list[Any]], cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(ORIGINALS[suffix], rng))
        try:
            found = read(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        assert found


@pytest.mark.parametrize("kind", list(JUDGEMENTS))
def test_damaged_judgements(kind: str, cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(JUDGEMENTS[kind], rng))
        try:
            found = read_qrels(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        assert found


def test_truncated_kernels_and_caches(cases: Cases, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    V, B, C = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), np.array([[0.0, 1.0], [-1.0, 0.0]])
    kernels = [LowRankKernel(V, B, C, ids=("a", "b", 3, "ä")), LinearKernel(V, B, C)]
    texts = [f"text {i}" for i in range(40)]
    cached = CachedEmbedding(lambda some: np.array([embed(text) for text in some]), "words", tmp_path / "cache")
    whole = cached(texts)
    cache = cached.path.read_bytes()
    for _, rng in cases(share=0.03, at_most=1000):
        for kernel in kernels:
            path = tmp_path / "kernel.safetensors"
            kernel.save(path)
            path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])
            with pytest.raises(SetSelectError):
                type(kernel).load(path)
        cached.path.write_bytes(cache[: rng.integers(len(cache))])
        try:
            assert np.isfinite(cached(texts)).all()
            assert cached(texts).shape == whole.shape
        except SetSelectError as error:
            check_message(error, cached.path)


@pytest.mark.parametrize("read", [read_documents, read_queries])
def test_corpora_with_other_values(read: Callable[[Path], list[Any]], cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for _, rng in cases(share=0.5, at_most=20_000):
        path.write_bytes(change_values(JSON_LINES, rng))
        try:
            found = read(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        # What is read can be written.
        json.dumps([dataclasses.asdict(item) for item in found], default=dict, ensure_ascii=False).encode()


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


def test_headers_of_arrays(cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.arange(24.0).reshape(3, 8))
    content = path.read_bytes()
    for number, rng in cases(share=1, at_most=20_000):
        header = damage(content[:128], rng) if number % 2 else damage(content[:80], rng).ljust(128, b" ")
        path.write_bytes(header + content[128:])
        try:
            rows = read_rows(path, [0, 1, 2], 3, "the texts")
        except SetSelectError as error:
            check_message(error, path)
            continue
        assert rows.shape[0] == 3


def test_labels_with_other_values(cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    settings = {"k": 2, "subsets": 1, "seed": 0}
    labels = LabelFile(path, settings, 9)
    labels.begin()
    for row in range(3):
        labels.append([LabelledSubset(row, (row + 1, row + 2), 0.5)])
    content = path.read_bytes()
    for number, rng in cases(share=0.5, at_most=20_000):
        path.write_bytes((damage if number % 4 == 3 else change_values)(content, rng))
        try:
            known = LabelFile(path, settings, 9).known
            assert all(isinstance(row, int) for made in known.values() for entry in made for row in entry.subset)
        except SetSelectError as error:
            check_message(error, path)


def test_settings_of_a_batch_with_other_values(cases: Cases, tmp_path: Path) -> None:
    open_folder = pytest.importorskip("shared_core.batch.tables")._open_folder
    settings = {"selector": "MMR(lambda_mult=0.5)", "files": ["a", "b"], "k": 4, "texts": None}
    open_folder(tmp_path, settings)
    path = tmp_path / "_settings.json"
    content = json.dumps(json.loads(path.read_bytes())).encode()
    for number, rng in cases(share=0.5, at_most=20_000):
        changed = (damage if number % 4 == 3 else change_values)(content, rng)
        path.write_bytes(changed)
        try:
            open_folder(tmp_path, settings)
        except SetSelectError as error:
            check_message(error, tmp_path)
        else:
            assert json.loads(changed) == settings


def test_a_damaged_pool_is_read_or_named(cases: Cases, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pool = tmp_path / "pool.jsonl"
    # There are no vectors, so that training does not begin.
    command = ["train", pool, "--vectors", tmp_path / "none.npy", "--out", tmp_path / "kernel.safetensors"]
    for number, rng in cases(share=0.1, at_most=500):
        pool.write_bytes((change_values if number % 2 else damage)(JSON_LINES, rng))
        code, _, told = run_program(*command)
        assert code == 2, told
        assert "pool.jsonl" in told or "none.npy" in told, told
