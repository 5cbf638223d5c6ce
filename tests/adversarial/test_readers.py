"""Files damaged at random: they are read as they are, or refused by an error of setselect that names file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from shared_core import LinearKernel, LowRankKernel, SetSelectError
from shared_core.cli import _terminal
from shared_core.cli._pool_file import read_pool
from shared_core.cli._program import app
from shared_core.evaluation.corpus import ReadResult, read_documents, read_queries
from shared_core.evaluation.qrels import read_qrels
from shared_core.signals.embedding_models import CachedEmbedding
from tests.adversarial.conftest import Cases
from tests.embedding import embed
from tests.shared_core.cli.word_model import load_words

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
# Pieces that break readers more often than random bytes do.
NASTY = [
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\",
    b'"',
    b"\r\n",
    b"\t",
    b",",
    b";",
    b"{",
    b"]",
    b"null",
    b"NaN",
    b"1e999",
]


def damage(rng: np.random.Generator, data: bytes) -> bytes:
    """The data with one to four faults: bytes cut, doubled, replaced or inserted."""
    for _ in range(rng.integers(1, 5)):
        start = int(rng.integers(len(data) + 1))
        end = min(len(data), start + int(rng.integers(1, 40)))
        piece = [b"", data[start:end] * 2, rng.bytes(end - start), NASTY[rng.integers(len(NASTY))]][rng.integers(4)]
        data = data[:start] + piece + data[end if rng.random() < 0.7 else start :]
    return data


def check_message(error: SetSelectError, path: Path) -> None:
    assert str(path) in str(error)


def read_a_pool(path: Path) -> ReadResult[Any]:
    found = read_pool(path, ids=True)
    return ReadResult(found.items, found.problems)


@pytest.mark.parametrize("read", [read_documents, read_queries, read_a_pool])
@pytest.mark.parametrize("suffix", list(ORIGINALS))
def test_damaged_corpora(suffix: str, read: Callable[[Path], ReadResult[Any]], cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(rng, ORIGINALS[suffix]))
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
        path.write_bytes(damage(rng, JUDGEMENTS[kind]))
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
        damaged = damage(rng, lines[place]).replace(b"\n", b" ")
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


def test_compare_of_damaged_files(cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "load_model", load_words)
    for _, rng in cases(share=0.01, at_most=500):
        arguments = [
            "compare",
            "--k",
            "1",
            "--fetch-k",
            "2",
            "--cache",
            str(tmp_path),
            "--out",
            str(tmp_path / "r.html"),
        ]
        for option in ("--documents", "--queries"):
            suffix = str(rng.choice(list(ORIGINALS)))
            path = tmp_path / f"{option[2:]}.{suffix}"
            path.write_bytes(damage(rng, ORIGINALS[suffix]))
            arguments += [option, str(path)]
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in (0, 1, 2)
        assert (result.exit_code == 2) == result.stderr.splitlines()[-1].startswith("error: ")
