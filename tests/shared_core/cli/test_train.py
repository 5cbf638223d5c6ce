"""setselect train: run as its users run it, on small pools with vectors that need no model."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from examples._tiny_lm import tiny_model, tiny_tokenizer
from shared_core import NDPP, LinearKernel
from shared_core._files import hold_lock
from shared_core.cli._program import app
from shared_core.learning import CoverageFeedback, fit
from tests.shared_core.signals.completions_server import Completions, serving

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_torch_thread")

SMALL = ("--k", "2", "--epochs", "2", "--fetch-k", "12")


def write_pool(folder: Path, n: int = 60, d: int = 8) -> None:
    """Each answer calls three functions; a vector shows which they are, and noise."""
    rng = np.random.default_rng(5)
    called = [rng.choice(9, 3, replace=False) for _ in range(n)]
    towards = rng.standard_normal((9, d))
    vectors = np.array([towards[names].sum(0) for names in called]) + 0.3 * rng.standard_normal((n, d))
    np.save(folder / "vectors.npy", vectors)
    answers = ["f{}(g{}(h{}(x)))".format(*names) for names in called]
    lines = [{"id": f"q{row}", "question": f"question {row}?", "answer": text} for row, text in enumerate(answers)]
    (folder / "pool.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pool(tmp_path)
    return tmp_path


def arguments(folder: Path, *more: object, out: str = "kernel.safetensors") -> list[str]:
    files = (folder / "pool.jsonl", "--vectors", folder / "vectors.npy", "--out", folder / out)
    return ["train", *map(str, (*files, *more))]


def run(folder: Path, *more: object, out: str = "kernel.safetensors", typed: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments(folder, *more, out=out), input=typed)


def arrays_of(path: Path) -> dict[str, Any]:
    """Everything a kernel's file holds; the order of its header differs from run to run."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        return {**file.metadata(), **{name: file.get_tensor(name).tolist() for name in file.keys()}}  # noqa: SIM118


def quiet_fit(*given: Any, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="learning did not help")
        return fit(*given, **settings)


def read(folder: Path) -> tuple[list[dict[str, str]], np.ndarray]:
    records = [json.loads(line) for line in (folder / "pool.jsonl").read_text(encoding="utf-8").splitlines()]
    items = [{"question": record["question"], "answer": record["answer"]} for record in records]
    return items, np.load(folder / "vectors.npy")


def test_with_no_options_it_writes_the_kernel_of_the_python_call(folder: Path) -> None:
    write_pool(folder, n=36)
    command = run(folder)
    out = command.stdout
    assert command.exit_code in (0, 1), command.stderr
    items, vectors = read(folder)
    fitted = quiet_fit(items, vectors, CoverageFeedback())
    assert command.exit_code == (0 if fitted.helped else 1)
    fitted.kernel.save(folder / "python.safetensors")
    assert arrays_of(folder / "kernel.safetensors") == arrays_of(folder / "python.safetensors")
    assert f"learned (epoch {fitted.epoch} of {len(fitted.history) - 1})" in out
    assert f"{fitted.feedback:.4f}" in out
    assert f"{fitted.gain:+.4f}, standard error {fitted.standard_error:.4f}" in out
    # The last lines of the output are Python code that runs.
    code = out[out.index("from setselect import") :]
    found: dict[str, Any] = {}
    exec(code, found)
    assert isinstance(found["selector"], NDPP)
    assert found["selector"].kernel.temperature == fitted.kernel.temperature


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{oops", "not JSON"),
        ('{"id": "z", "question": "no answer?"}', "there is no 'answer'; found ['id', 'question']"),
    ],
)
def test_a_bad_line_of_the_pool_is_named(folder: Path, line: str, message: str) -> None:
    with (folder / "pool.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"\n\n{line}")
    result = run(folder, *SMALL)
    assert (result.exit_code, f"{folder / 'pool.jsonl'}:62: {message}" in result.stderr) == (2, True), result.output


def test_a_custom_function_for_symbols(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "my_symbols.py").write_text("def words(text):\n    return text.split('(')\n", encoding="utf-8")
    try:
        assert run(folder, *SMALL, "--epochs", "1", "--feedback", "my_symbols:words").exit_code in (0, 1)
    finally:
        sys.modules.pop("my_symbols", None)
    header = json.loads((folder / "kernel.labels.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    assert "my_symbols.words" in header["settings"]["feedback"]


def test_learning_that_does_not_help_gives_a_warning_and_its_exit_code(folder: Path) -> None:
    # A set with an answer of each kind covers everything, and any six of the nearest are such a set.
    items, _ = read(folder)
    for row, item in enumerate(items):
        item["answer"] = "f(g(x))" if row % 2 else "f(h(x))"
    (folder / "pool.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    result = run(folder, *SMALL, "--k", "6", "--epochs", "1")
    assert result.exit_code == 1, result.output
    assert "warning: learning did not help" in result.stderr
    assert LinearKernel.load(folder / "kernel.safetensors").temperature is not None


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    # A shell that runs the tests in the background lets them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_while_labelling_keeps_the_labels_and_the_next_run_resumes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, taken = folder / "kernel.labels.jsonl", 0

    def score(self: CoverageFeedback, pairs: Any) -> list[float]:
        nonlocal taken
        taken += 1
        if taken == 8:
            signal.raise_signal(signal.SIGINT)
        return whole_score(self, pairs)

    whole_score = CoverageFeedback.score
    monkeypatch.setattr(CoverageFeedback, "score", score)
    result = run(folder, *SMALL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "interrupted: the labels so far are kept in" in result.stderr
    begun = labels.read_bytes()
    assert begun.count(b"\n") == 8, "a header and seven items"
    assert not list(folder.glob("*.lock"))
    assert not (folder / "kernel.safetensors").exists()
    assert run(folder, *SMALL).exit_code in (0, 1)
    assert labels.read_bytes().startswith(begun)
    run(folder, *SMALL, out="whole.safetensors")
    assert arrays_of(folder / "kernel.safetensors") == arrays_of(folder / "whole.safetensors")


@pytest.mark.parametrize("busy", ["kernel.safetensors", "kernel.labels.jsonl"])
def test_files_that_another_run_writes_are_left_alone(folder: Path, busy: str) -> None:
    before = set(os.listdir(folder))
    with hold_lock(folder / busy):
        result = run(folder, *SMALL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {folder / busy} is in use by another run" in result.stderr
    assert "wait until it ends, or name another file" in result.stderr
    assert set(os.listdir(folder)) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objective", "loss"], "--objective must be one of listwise, likelihood"),
        (["--k", "5", "--fetch-k", "4"], "--fetch-k must be at least --k = 5"),
        (["--vectors", "absent.npy"], "absent.npy cannot be read"),
        (["--feedback", "./no-such-model"], "cannot be loaded as a model"),
        (["--feedback", "no_such_module:f"], "no_such_module:f cannot be imported in"),
        (["--endpoint", "http://127.0.0.1:9/v1"], "--llm (its name) need each other"),
        (["--endpoint", "http://127.0.0.1:9/v1", "--llm", "m", "--feedback", "words"], "exclude each other"),
    ],
)
def test_what_cannot_run_says_why_before_anything_is_labelled(folder: Path, more: list[str], message: str) -> None:
    result = run(folder, *more)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "error: " in result.stderr
    assert result.stdout == ""
    assert not (folder / "kernel.labels.jsonl").exists()


def test_other_settings_than_those_of_the_files_are_refused(folder: Path) -> None:
    run(folder, *SMALL)
    result = run(folder, *SMALL, "--fetch-k", "13")
    assert result.exit_code == 2
    assert "the labels were made with other settings: --fetch-k = 12 then, 13 now. Use" in result.stderr


def test_a_function_for_symbols_that_fails_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "my_symbols.py").write_text("def words(text):\n    return text.split('(')[9]\n", encoding="utf-8")
    try:
        result = run(folder, *SMALL, "--feedback", "my_symbols:words")
    finally:
        sys.modules.pop("my_symbols", None)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error: --feedback my_symbols:words failed: IndexError" in result.stderr
    assert "IndexError: list index out of range" in result.stderr


@pytest.fixture
def gpt() -> tuple[Any, Any]:
    tokenizer = tiny_tokenizer(["question?", "f1(g2(h3(x)))"])
    return tiny_model(len(tokenizer), positions=256), tokenizer


def test_an_endpoint_is_not_called_before_a_yes(folder: Path, gpt: tuple[Any, Any], monkeypatch: Any) -> None:
    write_pool(folder, n=14)
    server = Completions(*gpt)
    monkeypatch.setenv("SETSELECT_API_KEY", "a key")
    with serving(server) as url:
        small = ("--k", 1, "--fetch-k", 5, "--epochs", 1, "--subsets", 2)
        more = (*small, "--endpoint", url, "--llm", "tiny")
        for typed in ("n\n", ""):
            result = run(folder, *more, typed=typed)
            assert result.exit_code == 2, result.output
            assert "to label 11 items: 22 prompts" in result.stderr
            assert "to fit: at most 24 prompts, for" in result.stderr
            assert "Nothing was sent. With --yes the command does not ask." in result.stderr
            assert server.requests == []
            assert not (folder / "kernel.labels.jsonl").exists()
        result = run(folder, *more, typed="y\n")
        assert result.exit_code in (0, 1), result.output
        assert set(server.authorization) == {"Bearer a key"}
        asked = sum(len(request["prompt"]) for request in server.requests)
        assert 22 < asked <= 22 + 24
        result = run(folder, *more, "--yes", out="again.safetensors")
        assert result.exit_code in (0, 1), result.output
    assert arrays_of(folder / "again.safetensors") == arrays_of(folder / "kernel.safetensors")


def test_questions_are_embedded_with_the_model(tmp_path: Path) -> None:
    write_pool(tmp_path, n=20)
    given = ["train", str(tmp_path / "pool.jsonl"), "--out", str(tmp_path / "k.safetensors")]
    result = CliRunner().invoke(app, [*given, "--cache", str(tmp_path / "cache"), *SMALL])
    assert result.exit_code in (0, 1), result.output
    assert np.shape(LinearKernel.load(tmp_path / "k.safetensors").W_V)[0] == 384
