"""What each reader does with a bad line or a damaged file, with its exit code: the table of docs/reliability.md."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("faiss")
pytest.importorskip("torch")

import pyarrow.parquet as pq  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from setselect import LowRankKernel  # noqa: E402
from shared_core.cli import _program  # noqa: E402
from shared_core.cli._program import app  # noqa: E402
from tests.shared_core.batch.corpus import D, N, flat_index, table  # noqa: E402
from tests.shared_core.cli.test_train import SMALL, write_pool  # noqa: E402
from tests.shared_core.cli.word_model import load_words  # noqa: E402

DOCS = Path(__file__).parents[3] / "docs" / "reliability.md"
Change = Callable[[bytes], bytes]

# Lines that no reader of JSON can use.
NO_JSON = {
    "no JSON": b'{"id": "x", oops',
    "no object": b"[1, 2]",
    "nested 100,000 deep": b'{"id": "x", "a": ' + b"[" * 100_000,
    "nested 101 deep": b'{"id": "x", "a": ' + b"[" * 100 + b"]" * 100 + b"}",
    "an integer of 5,000 digits": b'{"id": "x", "text": "x", "a": ' + b"9" * 5000 + b"}",
    "a lone surrogate": b'{"id": "x", "text": "half a character: \\ud83d", "question": "x", "answer": "f(x)"}',
    "not UTF-8": b'{"id": "x", "text": "caf\xe9", "question": "x", "answer": "f(x)"}',
}
TOO_LARGE = b"9" * 400
DOCUMENTS = {**NO_JSON, "a text of another type": b'{"text": 5}', "a cost": b'{"text": "x", "cost": %s}' % TOO_LARGE}
QUERIES = {
    **NO_JSON,
    "gold of another type": b'{"text": "x", "gold": {"a": 1}}',
}
CELLS = {
    "one cell too many": b'x,"x",a,b',
    "nested 5,000 deep": b'x,x,"%s"' % (b"[" * 5000),
    "an integer of 5,000 digits": b"x,x,[%s]" % (b"9" * 5000),
    "a lone surrogate": b'x,x,"[""\\ud83d""]"',
    "not UTF-8": b"x,caf\xe9,a",
}


LABELS = {
    **NO_JSON,
    "a row beyond the pool": b'{"query": 99, "subsets": [[1, 2]], "scores": [1.0]}',
    "a score": b'{"query": 1, "subsets": [[2, 3]], "scores": [%s]}' % TOO_LARGE,
    "subsets of another type": b'{"query": 1, "subsets": 5, "scores": [1.0]}',
    "scores of another type": b'{"query": 1, "subsets": [[2, 3]], "scores": [[1.0]]}',
    "a query of another type": b'{"query": [1], "subsets": [[2, 3]], "scores": [1.0]}',
}
QRELS = {"two columns": b"q1\tbread", "a score": b"q1\tbread\tx", "not UTF-8": b"q1\tcaf\xe9\t1"}


def constant(content: bytes) -> Change:
    return lambda whole: content


def cut(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def as_npy(change: Callable[[Any], Any], whole: bytes) -> bytes:
    content = io.BytesIO()
    np.save(content, change(np.load(io.BytesIO(whole))))
    return content.getvalue()


def as_parquet(change: Callable[[dict[str, Any]], dict[str, Any]], whole: bytes) -> bytes:
    content = io.BytesIO()
    pq.write_table(pa.table(change(pq.read_table(io.BytesIO(whole)).to_pydict())), content)
    return content.getvalue()


class Case(NamedTuple):
    """A change of a file. The message names the file, and behind it ``place``, or the ``bad`` last lines by ``place``.

    ``place`` is None where there is no message.
    """

    file: str
    change: Change
    place: str | None = ""
    bad: int = 0


def lines_in(file: str, lines: Mapping[str, bytes], place: str = ":{}") -> dict[str, Case]:
    """A case for each of these lines at the end of the file."""
    return {f"{file}: {name}": Case(file, partial(append, [line]), place, 1) for name, line in lines.items()}


def append(lines: Sequence[bytes], whole: bytes) -> bytes:
    return b"\n".join([whole.rstrip(b"\n"), *lines]) + b"\n"


def files(file: str, changes: Mapping[str, Change | bytes], place: str | None = "") -> dict[str, Case]:
    """A case for each other content of the file."""
    return {
        f"{file}: {name}": Case(file, constant(change) if isinstance(change, bytes) else change, place)
        for name, change in changes.items()
    }


class Row(NamedTuple):
    """A row of the table: the file, what happens, the exit code; the command, and the cases that the test runs."""

    file: str
    happens: str
    code: str
    run: Callable[[Path], tuple[str, str]]
    cases: dict[str, Case]


def command(*arguments: str) -> Callable[[Path], tuple[str, str]]:
    """Runs the command for a folder, which ``@`` in an argument stands for; gives its exit code and its messages."""

    def run(folder: Path) -> tuple[str, str]:
        result = CliRunner().invoke(app, [argument.replace("@", f"{folder}/") for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return str(result.exit_code), result.stderr

    return run


def compare(*more: str, documents: str = "docs.jsonl", queries: str = "queries.jsonl") -> Any:
    corpus = ("--documents", f"@{documents}", "--queries", f"@{queries}", "--cache", "@cache")
    return command("compare", *corpus, "--k", "1", "--fetch-k", "3", "--out", "@report.html", *more)


def batch(out: str, *more: str) -> Any:
    data = ("--queries", "@batch.parquet", "--index", "@index.faiss", "--out", out, "--block-rows", "100")
    return command("batch", *data, *(more or ("--selector", "mmr")))


def train(out: str, *more: str) -> Any:
    def run(folder: Path) -> tuple[str, str]:
        code, said = command("train", "@train/pool.jsonl", "--out", out, *more, *SMALL)(folder)
        # So few items do not tell the selectors apart, which has the exit code 1 too.
        return "0" if "learning did not help" in said else code, said

    return run


VECTORS = ("--vectors", "@vectors.npy", "--query-vectors", "@query_vectors.npy")
TRAIN = train("@train/k.safetensors", "--vectors", "@train/vectors.npy")
CUT = {"truncated": cut, "empty": b""}
ENDS = "the message names the file"
AT_LINE = "the message names file and line"

TABLE = [
    Row(
        "documents and queries: `.jsonl`", AT_LINE, "2", compare(),
        lines_in("docs.jsonl", DOCUMENTS) | lines_in("queries.jsonl", QUERIES),
    ),
    Row("documents and queries: `.csv`, `.tsv`", AT_LINE, "2", compare(queries="queries.csv"),
        lines_in("queries.csv", CELLS)),
    Row("documents and queries: `.txt`, `.md`", AT_LINE, "2", compare(documents="docs.txt", queries="queries.txt"),
        lines_in("docs.txt", {"not UTF-8": b"caf\xe9"}) | lines_in("queries.txt", {"not UTF-8": b"caf\xe9"})),
    Row("a folder of texts", ENDS, "2",
        compare(documents="texts", queries="queries.txt"),
        files("texts/sea.md", {"not UTF-8": b"caf\xe9", "empty": b" \n"})),
    Row("judgements (qrels)", AT_LINE, "2",
        compare("--qrels", "@qrels.tsv"), lines_in("qrels.tsv", QRELS)),
    Row("vectors: `.npy`", ENDS, "2", compare(*VECTORS), files("vectors.npy", {
        **CUT, "one row less": partial(as_npy, lambda rows: rows[:-1]),
        "NaN": partial(as_npy, lambda rows: rows * np.nan),
    })),
    Row("the cache of embeddings", ENDS, "2", compare(), files("cache/embeddings.sqlite", {
        "truncated": cut, "no database": b"no database at all" * 9,
    })),
    Row("kernels", ENDS, "2", compare(*VECTORS, "--setting", "ndpp kernel=@kernel.safetensors"),
        files("kernel.safetensors", CUT)),
    Row("the pool of `setselect train`", AT_LINE, "2", train("@train/words.safetensors", "--cache", "@cache"),
        lines_in("train/pool.jsonl", {
            **NO_JSON, "no answer": b'{"question": "x"}', "another type": b'{"question": "x", "answer": [1]}',
        })),
    Row("labels", AT_LINE, "2", TRAIN, lines_in("train/k.labels.jsonl", LABELS, ": line {}")
        | files("train/k.labels.jsonl", {"a bad header": NO_JSON["nested 100,000 deep"] + b"\n"}, ": line 1")
        | files("train/k.labels.jsonl", {
            "no version": lambda whole: whole.replace(b'"version"', b'"v"', 1),
            "settings": b'{"format": "setselect labels", "version": 1, "settings": [1]}\n',
        })),
    Row("labels with an incomplete last line", "the line is removed, and the run resumes", "0", TRAIN,
        files("train/k.labels.jsonl", {"torn": lambda whole: whole[:-9]}, None)),
    Row("queries of `setselect batch`", ENDS, "2", batch("@new"), files("batch.parquet", CUT)),
    Row("a query of `setselect batch` without a usable vector", "its row has an error in place of a selection", "1",
        batch("@new"), files("batch.parquet", {"null and zero": partial(as_parquet, lambda columns: columns | {
            "vector": [None, [0.0] * D, *columns["vector"][2:]]
        })}, None)),
    Row("the index of `setselect batch`", ENDS, "2", batch("@new"), files("index.faiss", {
        **CUT, "no index": b"no index at all" * 9,
    })),
    Row("texts of `setselect batch`", ENDS, "2", batch("@new", "--texts", "@texts.parquet", "--question-column", "id"),
        files("texts.parquet", {
            **CUT, "not UTF-8": lambda whole: whole.replace(b"text 17", b"t\xe9xt 17"),
            "numbers": partial(as_parquet, lambda columns: columns | {"text": [*range(N)]}),
            "an id twice": partial(as_parquet, lambda columns: columns | {"id": [0, 0, *columns["id"][2:]]}),
        })),
    Row("a part of a batch that a crash or a copy has damaged", "the part is written again", "0", batch("@sets"),
        files("sets/part-00001.parquet", CUT, None)),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def word_model() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_program, "load_model", load_words)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good file of each kind, and with what good runs leave behind."""
    folder = tmp_path_factory.mktemp("whole")
    texts = {"bread": "Bread is baked.", "river": "A river flows.", "bow": "A violin has a bow.", "sea": "The sea."}
    documents = [{"id": name, "text": text} for name, text in texts.items()]
    queries = [{"id": "q1", "text": "How is bread baked?", "gold": ["bread"]}, {"id": "q2", "text": "A bow?"}]
    for name, records in {
        "docs.jsonl": documents, "queries.jsonl": queries,
    }.items():  # fmt: skip
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    (folder / "queries.csv").write_text('id,text,gold\nq1,How?,bread\nq2,"Where, then?",[""]\n', encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tbread\t1\n", encoding="utf-8")
    (folder / "docs.txt").write_text("\n".join(texts.values()), encoding="utf-8")
    (folder / "queries.txt").write_text("How is bread baked?\nA bow?\n", encoding="utf-8")
    (folder / "texts").mkdir()
    for name, text in texts.items():
        (folder / f"texts/{name}.md").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(0)
    for name, ids in {"vectors": [*texts], "query_vectors": ["q1", "q2"]}.items():
        np.save(folder / f"{name}.npy", rng.normal(size=(len(ids), 8)))
    LowRankKernel(rng.normal(size=(4, 3)), ids=[*texts], temperature=0.5).save(folder / "kernel.safetensors")
    (folder / "train").mkdir()
    write_pool(folder / "train")
    flat_index(folder / "index.faiss")
    pq.write_table(table(), folder / "batch.parquet")
    texts = pa.table({"id": [*range(N)], "text": [f"text {i}" for i in range(N)]})
    pq.write_table(texts, folder / "texts.parquet", compression="none")
    for row in TABLE:
        shutil.rmtree(folder / "new", ignore_errors=True)
        code, said = row.run(folder)
        assert code == "0", (row.file, said)
    return folder


@pytest.mark.parametrize(
    ("row", "case"),
    [pytest.param(row, case, id=f"{row.file}-{name}") for row in TABLE for name, case in row.cases.items()],
)
def test_a_bad_line_or_file_is_named_and_ends_with_its_exit_code(row: Row, case: Case, whole: Path) -> None:
    path = whole / case.file
    good = path.read_bytes()
    changed = case.change(good)
    assert changed != good
    path.write_bytes(changed)
    shutil.rmtree(whole / "new", ignore_errors=True)
    try:
        code, said = row.run(whole)
    finally:
        path.write_bytes(good)
    assert code == row.code, said
    if case.place is None:
        return
    last = changed.rstrip(b"\n").count(b"\n") + 1
    for number in range(last - case.bad + 1, last + 1) if case.bad else [0]:
        assert f"{path}{case.place.format(number)}" in said


def test_the_table_of_the_docs_has_the_rows_of_these_tests() -> None:
    head, *rows = ["| file | a bad line, or damage | exit code |", "| --- | --- | --- |"]
    table = "\n".join([head, *rows, *(f"| {row.file} | {row.happens} | {row.code} |" for row in TABLE)])
    assert table in DOCS.read_text(encoding="utf-8"), f"put this table into {DOCS}:\n{table}"
