"""Damaged files of every kind that setselect reads: only its own exceptions may leave, and only its own exit codes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from shared_core import NDPP, Candidates, LinearKernel, LowRankKernel, SetSelectError
from shared_core.cli import _terminal
from shared_core.cli._pool_file import read_pool
from shared_core.cli._program import app
from shared_core.cli._vectors import read_rows
from shared_core.evaluation.corpus import ReadResult, read_documents, read_queries
from shared_core.evaluation.qrels import read_qrels
from shared_core.signals.embedding_models import CachedEmbedding, SentenceModel
from tests.adversarial.conftest import Cases
from tests.embedding import DIMENSION, embed

ROOT = Path(__file__).resolve().parents[2]

JSON_LINES = b"""\
{"id": "a", "text": "The river carries water.", "subtopics": ["river", "water"]}
{"id": "b", "text": "Bread is baked from flour.", "gold": ["a", "b"], "root": "bread"}
{"id": "c", "question": "A violin has strings?", "answers": ["strings"], "subtopics": {"x": ["a"], "y": []}}

{"id": 4, "text": "\\u00c4 caf\\u00e9 \\ud83d\\ude00", "answer": "4", "gold": [4]}
{"text": "No id.", "question": "Q?", "answer": "A", "gold": "a", "subtopics": "river", "root_query": "r"}
"""
TABLE = b"""\
id,text,subtopics,gold,answers,root
a,The river carries water.,river;water,a;b,water,r
b,"Bread, baked
from ""flour"".","[""bread"", ""x;y""]",b,,r
c,A violin has strings.,"{""x"": [""a""], ""y"": []}",a,strings,

,No id.,,,,
"""
TEXTS = "The river carries water.\n\n  Bread is baked.  \r\nÄ café 😀\n".encode()

JUDGEMENTS = {
    "beir": b'query-id\tcorpus-id\tscore\nb\ta\t1\nb\t"<""c"">"\t0\n\n1\tb\t2\nc\ta\t1\n',
    "trec": b"b 0 a 1\nb 0 c 0\r\n1 0 b 2\n\nc\t0\ta\t-2\n",
    "diversity": b"b 1 a 1\nb 2 a 1\nb 2 c 0\n1 0 b 2\nc 1 a 1\n",
}
ORIGINALS = {"jsonl": JSON_LINES, "csv": TABLE, "tsv": TABLE.replace(b",", b"\t"), "txt": TEXTS}

# Pieces that break readers more often than random bytes do.
NASTY = [
    *(b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\", b'"', b"'"),
    *(b"\r", b"\n", b"\r\n", b"\t", b"\x1a", b"\x1b[2J", b"\x07", b"\xc2\x85", "\u2028\u202e".encode()),
    *(b",", b";", b":", b"{", b"}", b"[", b"]", b"[]", b"{}", b"()", b"(", b"#", b"%", b"lambda: 0"),
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"0x1", b"1.5", b'"id": null,', b'"text": [],'),
    *(b"[" * 5000, b'{"a":' * 3000, b"(" * 3000, b"-" * 3000, b"9" * 5000, b"9" * 20, b"x" * 200_000),
]


def damage(rng: np.random.Generator, data: bytes) -> bytes:
    """The data with one to four faults: bytes changed, cut, doubled, moved, inserted, or in another encoding."""
    for _ in range(rng.integers(1, 5)):
        start, end = sorted(rng.integers(len(data) + 1, size=2).tolist())
        end = min(end, start + int(rng.integers(1, 40)))
        insert = NASTY[rng.integers(len(NASTY))]
        match int(rng.integers(9)):
            case 0:
                data = data[:start]
            case 1:
                data = data[start:]
            case 2:
                data = data[:start] + data[end:]
            case 3:
                data = data[:end] + data[start:end] * int(rng.integers(1, 4)) + data[end:]
            case 4:
                data = data[:start] + rng.bytes(end - start) + data[end:]
            case 5 | 6:
                data = data[:start] + insert + data[start:]
            case 7:
                data = data[:start] + insert + data[end:]
            case _:
                if rng.random() < 0.2:
                    data = data.decode("latin-1").encode(str(rng.choice(["utf-8", "utf-16", "utf-32"])))
    return data


def check_message(error: BaseException | str, path: Path) -> None:
    said = str(error)
    assert said.isprintable(), ascii(said[:1000])
    assert len(said) < 1000 + 2 * len(str(path)), said[:1000]


# --- corpora ----------------------------------------------------------------------------------------------------------


def read_a_pool(path: Path) -> ReadResult[Any]:
    found = read_pool(path, ids=True)
    assert len(found.items) == len(found.rows)
    return ReadResult(found.items, found.problems)


@pytest.mark.parametrize("read", [read_documents, read_queries, read_a_pool])
@pytest.mark.parametrize("suffix", list(ORIGINALS))
def test_damaged_corpora(suffix: str, read: Callable[[Path], ReadResult[Any]], cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    limit = csv.field_size_limit()
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(rng, ORIGINALS[suffix]))
        try:
            found = read(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        finally:
            assert csv.field_size_limit() == limit
        assert found.items
        for problem in found.problems:
            check_message(str(problem), path)
        for item in found.items:
            text = item["question"] + item["answer"] if isinstance(item, dict) else item.id + item.text
            text.encode("utf-8")


@pytest.mark.parametrize("kind", list(JUDGEMENTS))
def test_damaged_judgements(kind: str, cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    limit = csv.field_size_limit()
    for _, rng in cases(share=0.03):
        path.write_bytes(damage(rng, JUDGEMENTS[kind]))
        try:
            found = read_qrels(path)
        except SetSelectError as error:
            check_message(error, path)
            continue
        finally:
            assert csv.field_size_limit() == limit
        assert found
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
        texts = [document.text for document in found.items]
        others = [f"text {i}" for i in range(len(lines)) if i != place]
        # A damaged line can take the id of a later line. The message then names the later line as the repetition.
        taken = [problem.line for problem in found.problems if "occurs a second time" in problem.what]
        assert [text for text in others if text not in texts] == [
            f"text {line - 1}" for line in taken if line != place + 1
        ]
        assert all(problem.line == place + 1 or problem.line in taken for problem in found.problems)


def test_damaged_folders(cases: Cases, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for _, rng in cases(share=0.02):
        folder.mkdir()
        for i in range(4):
            raw = bytes(rng.choice(list(b"ab\xff\x1b\n\xc3\xa4 "), size=5).tolist()) + str(i).encode()
            path = os.path.join(os.fsencode(folder), raw + (b".txt", b".md", b".TXT", b"")[i])
            match int(rng.integers(5)):
                case 0:
                    os.mkfifo(path)
                case 1:
                    os.mkdir(path)
                case 2:
                    os.symlink(os.fsencode(folder), path)
                case _:
                    Path(os.fsdecode(path)).write_bytes(damage(rng, TEXTS))
        try:
            found = read_documents(folder)
        except SetSelectError as error:
            check_message(error, folder)
        else:
            for problem in found.problems:
                check_message(str(problem), folder)
        shutil.rmtree(folder)


# --- vectors ----------------------------------------------------------------------------------------------------------

DESCRIPTIONS = [
    *(
        "'<f8'",
        "'>f4'",
        "'<f2'",
        "'<i8'",
        "'|u1'",
        "'|O'",
        "'<U3'",
        "'|V8'",
        "'<c16'",
        "'|b1'",
        "'<M8[s]'",
        "'a'",
        "'f999'",
    ),
    *("[('a', '<f8')]", "'<f8', (3,)", "(2, 'x')", "0", "None"),
]
SHAPES = [
    *(
        "(4, 2)",
        "(4,)",
        "()",
        "(4, 0)",
        "(0, 2)",
        "(8, 1)",
        "(4, 2, 1)",
        "(-4, -2)",
        "(4.0, 2)",
        "(True, 2)",
        "('4', 2)",
    ),
    *(
        "(4, 99999999999)",
        "(4, 10**30)",
        f"(4, {10**30})",
        "(2147483648, 4294967296)",
        "[4, 2]",
        "((4, 2),)",
        "4",
        "None",
    ),
]


def npy_file(rng: np.random.Generator) -> bytes:
    """A .npy file whose head may claim anything."""
    description, shape = "'<f8'", "(4, 2)"
    if rng.random() < 0.7:
        description = DESCRIPTIONS[rng.integers(len(DESCRIPTIONS))]
    if rng.random() < 0.7:
        shape = SHAPES[rng.integers(len(SHAPES))]
    order = rng.choice(["False", "True", "0", "'x'", "[]"])
    head = f"{{'descr': {description}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    if rng.random() < 0.3:
        head = damage(rng, head)
    version = bytes(rng.choice([(1, 0), (2, 0), (3, 0), (1, 1), (9, 9)]).tolist())
    length = min(len(head), 2**16 - 1) if rng.random() < 0.9 else int(rng.integers(2**16))
    return b"\x93NUMPY" + version + length.to_bytes(2 if version[0] == 1 else 4, "little") + head + rng.bytes(64)


def test_damaged_npy_files(cases: Cases, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, np.ones((4, 2)))
    original = path.read_bytes()
    assert read_rows(path, [0, 1, 3], 4, "the pool").shape == (3, 2)
    for _, rng in cases(share=0.05):
        path.write_bytes(npy_file(rng) if rng.random() < 0.6 else damage(rng, original))
        try:
            found = read_rows(path, [0, 1, 3], 4, "the pool")
        except SetSelectError as error:
            check_message(error, path)
        else:
            assert found.shape[0] == 3
            assert found.dtype.kind in "fiu"
            assert found.nbytes <= path.stat().st_size


# --- kernels ----------------------------------------------------------------------------------------------------------


def make_kernels() -> list[Any]:
    rng = np.random.default_rng(0)
    C = np.triu(rng.normal(size=(2, 2)), 1)
    V, B, W_R = rng.normal(size=(4, 3)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    return [
        LowRankKernel(V, B, C - C.T, ids=("a", "b", 3, "ä"), temperature=0.5),
        LowRankKernel(V),
        LinearKernel(V, B, C - C.T, W_R=W_R, temperature=0.1),
        LinearKernel(V),
    ]


# What the head of a kernel file may claim to be a dtype, a shape, offsets, a version, ids or a temperature.
CLAIMS: list[Any] = [
    *(None, -1, 0, 2**63, 1.5, {}, [], [0], [4, 3], [3, 4, 1], [0, 8], [8, 0], [2**40, 2**40]),
    *("", "F32", "BF16", "BOOL", "F8_E4M3", "low-rank", "linear", "1", "2", "-0", "\u0661", "9" * 5000),
    *("nan", "-1", "1e-400", "[" * 3000, '["a", "a"]', "[1e999]", "[[]]", "[true]", "[1, 2, 3, 4]"),
]


def damage_kernel(rng: np.random.Generator, data: bytes) -> bytes:
    """The file with faults in its head, in what its head claims, or anywhere."""
    size = int.from_bytes(data[:8], "little")
    head, body = data[8 : 8 + size], data[8 + size :]
    match int(rng.integers(5)):
        case 0:
            return damage(rng, data)
        case 1:
            return int(rng.choice([0, 1, size - 1, size + 1, len(data), 2**31, 2**62])).to_bytes(8, "little") + data[8:]
        case 2:
            head = damage(rng, head)
        case 3:
            values = np.frombuffer(body, np.float64).copy()
            values[rng.integers(len(values), size=3)] = rng.choice(
                [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0]
            )
            body = values.tobytes()
        case _:
            known = json.loads(head)
            name = str(rng.choice(list(known)))
            value = CLAIMS[rng.integers(len(CLAIMS))]
            if rng.random() < 0.15:
                known[name] = value
            elif rng.random() < 0.2:
                known[str(rng.choice(["V", "B", "C", "W_R", "x"]))] = known.pop(name)
            else:
                known[name][str(rng.choice(list(known[name])))] = value
            head = json.dumps(known, ensure_ascii=bool(rng.integers(2))).encode("utf-8", "surrogatepass")
    return len(head).to_bytes(8, "little") + head + body


@pytest.mark.parametrize("number_of_kernel", range(4))
def test_damaged_kernel_files(number_of_kernel: int, cases: Cases, tmp_path: Path) -> None:
    kernel = make_kernels()[number_of_kernel]
    path = tmp_path / "kernel.safetensors"
    kernel.save(path)
    original = path.read_bytes()
    vectors = np.eye(4)
    for _, rng in cases(share=0.03):
        path.write_bytes(damage_kernel(rng, original))
        for kind in (LowRankKernel, LinearKernel):
            try:
                loaded = kind.load(path)
                # The numbers of a file may be too large to compute with. The error must be ours in this case too.
                picked = NDPP(kernel=loaded).select(Candidates(vectors[0], vectors), 2)
            except SetSelectError as error:
                check_message(error, path)
            else:
                assert len(set(picked.indices.tolist())) == 2
                assert np.isfinite(picked.gains).all()


# --- the cache of embeddings ------------------------------------------------------------------------------------------


def test_a_damaged_cache_of_embeddings(cases: Cases, tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(40)]

    def embed_all(some: list[str]) -> np.ndarray:
        return np.array([embed(text) for text in some])

    folder = tmp_path / "cache"
    cached = CachedEmbedding(embed_all, "words", folder)
    whole = cached(texts)
    original = cached.path.read_bytes()
    for _, rng in cases(share=0.03, at_most=1000):
        shutil.rmtree(folder)
        folder.mkdir()
        if rng.random() < 0.5:
            data = bytearray(original)
            for place in rng.integers(len(data), size=rng.integers(1, 200)):
                data[place] = rng.integers(256)
            cached.path.write_bytes(bytes(data) if rng.random() < 0.5 else damage(rng, original))
        else:
            cached.path.write_bytes(original)
            cell: Any = [None, 5, 0.5, "text", b"", b"abc", b"\xff" * 4 * DIMENSION, b"\0" * 8][rng.integers(8)]
            with closing(sqlite3.connect(cached.path)) as database, database:
                update = "UPDATE embeddings SET vector = ? WHERE substr(hex(text_sha256), 1, 1) = ?"
                database.execute(update, (cell, "0123456789ABCDEF"[rng.integers(16)]))
        try:
            found = cached(texts)
        except SetSelectError as error:
            check_message(error, cached.path)
        else:
            assert found.shape == whole.shape
            assert np.isfinite(found).all()


# --- the program ------------------------------------------------------------------------------------------------------

# Runs the program with a model of hashed words in place of a language model.
PROGRAM = """
import sys
import numpy as np
from shared_core.cli import _terminal, main
from tests.adversarial.test_readers import load_words
_terminal.load_model = load_words
main()
"""


class Words:
    max_seq_length = 8

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        return np.array([embed(text) for text in texts], dtype=np.float32)

    encode_document = encode_query = encode


def load_words(name: str) -> SentenceModel:
    return SentenceModel(name, "words", Words())


def damaged_inputs(rng: np.random.Generator, folder: Path) -> list[str]:
    """The arguments of ``setselect compare`` for damaged documents, queries or both, and for damaged judgements."""
    arguments = ["compare", "--k", "1", "--fetch-k", "2", "--cache", str(folder / "cache")]
    damaged = int(rng.integers(3))
    for number, option in enumerate(("--documents", "--queries")):
        suffix = str(rng.choice(list(ORIGINALS)))
        path = folder / f"{option[2:]}.{suffix}"
        data = ORIGINALS[suffix]
        path.write_bytes(data if damaged == number else damage(rng, data))
        arguments += [option, str(path)]
    if rng.random() < 0.3:
        path = folder / "x.qrels"
        path.write_bytes(damage(rng, JUDGEMENTS[str(rng.choice(list(JUDGEMENTS)))]))
        arguments += ["--qrels", str(path)]
    return [*arguments, "--out", str(folder / rng.choice(["report.html", "report.json"]))]


def check_run(code: int, out: str, err: str) -> None:
    assert code in (0, 1, 2), err
    for text in (out, err):
        assert text.replace("\n", "").isprintable(), ascii(text)
        assert "Traceback" not in text
    if code == 2:
        assert err.splitlines()[-1].startswith("error: "), err
        assert len(err.splitlines()[-1]) < 2000, err


def test_compare_of_damaged_files(cases: Cases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "load_model", load_words)
    for _, rng in cases(share=0.01, at_most=500):
        result = CliRunner().invoke(app, damaged_inputs(rng, tmp_path))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        check_run(result.exit_code, result.stdout, result.stderr)


def test_compare_of_damaged_files_as_a_program(cases: Cases, tmp_path: Path) -> None:
    for _, rng in cases(share=0.003, at_most=30):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *damaged_inputs(rng, tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        check_run(done.returncode, done.stdout, done.stderr)
