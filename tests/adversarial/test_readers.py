"""Files damaged at random: they are read as they are, or refused by an error of setselect that names file and line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import LinearKernel, LowRankKernel, SetSelectError
from shared_core.evaluation.corpus import ReadResult, read_documents, read_queries
from shared_core.evaluation.qrels import read_qrels
from shared_core.signals.embedding_models import CachedEmbedding
from tests.adversarial.conftest import Cases, damage, run_program
from tests.embedding import embed

JSON_LINES = b"""\
{"id": "a", "text": "The river carries water.", "subtopics": ["river", "water"]}
{"id": "b", "text": "Bread is baked from flour.", "gold": ["a", "b"], "root": "bread"}
{"id": "c", "question": "A violin has strings?", "answers": ["strings"], "subtopics": {"x": ["a"], "y": []}}

{"id": 4, "text": "\\u00c4 caf\\u00e9", "question": "Q?", "answer": "4", "gold": [4]}
"""
TABLE = b"""\
id,text,subtopics,gold,answers,root
a,The river carries water.,river;water,a;b,water,r
b,"Bread, baked
from ""flour"".","[""bread"", ""x;y""]",b,,r

,No id.,,,,
"""
TEXTS = "The river carries water.\n\n  Bread is baked.  \r\nÄ café 😀\n".encode()
ORIGINALS = {"jsonl": JSON_LINES, "csv": TABLE, "tsv": TABLE.replace(b",", b"\t"), "txt": TEXTS}
JUDGEMENTS = {
    "beir": b'query-id\tcorpus-id\tscore\nb\ta\t1\nb\t"<""c"">"\t0\n\n1\tb\t2\nc\ta\t1\n',
    "diversity": b"b 1 a 1\nb 2 a 1\nb 2 c 0\n1 0 b 2\nc 1 a 1\n",
}


def check_message(error: SetSelectError, path: Path) -> None:
    assert str(path) in str(error)


@pytest.mark.parametrize("read", [read_documents, read_queries])
@pytest.mark.parametrize("suffix", list(ORIGINALS))
def test_damaged_corpora(suffix: str, read: Callable[[Path], ReadResult[Any]], cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(ORIGINALS[suffix], rng))
        try:
            found = read(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        assert found.items
        assert all(str(problem).startswith(f"{path}:{problem.line}: ") for problem in found.problems)


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
        for relevant in found.values():
            covered = {document for documents in relevant.subtopics.values() for document in documents}
            assert not relevant.subtopics or covered == set(relevant.documents)


def test_a_damaged_line_costs_no_other_line(cases: Cases, tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"line {i}", "text": f"text {i}"}).encode() for i in range(8)]
    path = tmp_path / "x.jsonl"
    for _, rng in cases(share=0.05):
        place = int(rng.integers(len(lines)))
        damaged = damage(lines[place], rng).replace(b"\n", b" ")
        path.write_bytes(b"\n".join([*lines[:place], damaged, *lines[place + 1 :]]))
        found = read_documents(path)
        # A damaged line can take the id of a later line. The message then names the later line as the repetition.
        taken = {problem.line for problem in found.problems if "occurs a second time" in problem.what}
        others = {f"text {i}" for i in range(len(lines)) if i != place and i + 1 not in taken}
        assert others <= {document.text for document in found.items}
        assert {problem.line for problem in found.problems} <= {place + 1, *taken}


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


def test_compare_of_damaged_files(cases: Cases, tmp_path: Path) -> None:
    fixed = ["compare", "--k", 1, "--fetch-k", 2, "--out", tmp_path / "r.html"]
    for _, rng in cases(share=0.01, at_most=500):
        files: list[object] = []
        for name, option in (("documents", "vectors"), ("queries", "query-vectors")):
            suffix = str(rng.choice(list(ORIGINALS)))
            path, rows = tmp_path / f"{name}.{suffix}", tmp_path / f"{name}.npy"
            path.write_bytes(damage(ORIGINALS[suffix], rng))
            np.save(rows, rng.normal(size=(3, 8)))
            files += [f"--{name}", path, f"--{option}", rows]
        code, _, told = run_program(*fixed, *files)
        while known := re.search(r"(\S+\.npy): .*\((\d+), d\)", told):
            np.save(known[1], rng.normal(size=(int(known[2]), 8)))
            code, _, told = run_program(*fixed, *files)
        assert code in (0, 1, 2), told
        assert (code == 2) == told.splitlines()[-1].startswith("error: "), told


def test_a_damaged_pool_is_read_or_named(cases: Cases, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pool = tmp_path / "pool.jsonl"
    # There are no vectors, so that training does not begin.
    command = ["train", pool, "--vectors", tmp_path / "none.npy", "--out", tmp_path / "kernel.safetensors"]
    for _, rng in cases(share=0.05, at_most=500):
        pool.write_bytes(damage(JSON_LINES, rng))
        code, _, told = run_program(*command)
        assert code == 2, told
        assert "pool.jsonl" in told or "none.npy" in told, told
