"""``setselect compare --store module:attribute``: a store of LangChain, an index of LlamaIndex, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shared_core.cli._program import app

LANGCHAIN = """
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
store.add_texts([f"text {i}" for i in range(9)], ids=[f"id {i}" for i in range(9)])
"""
LLAMAINDEX = """
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode
def store():
    nodes = [TextNode(text=f"text {i}", id_=f"id {i}", embedding=[1.0, i]) for i in range(9)]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=2))
"""
WRONG = "number, error = 3, None\ndef fails(): raise KeyError('a key')\ndef nothing(): pass\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which holds the modules and questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in {"of_langchain": LANGCHAIN, "of_llamaindex": LLAMAINDEX, "wrong": WRONG}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "broken.py").write_text("import no_such_package", encoding="utf-8")
    (tmp_path / "asked.jsonl").write_text(json.dumps({"text": "text 3", "gold": ["id 3"]}), encoding="utf-8")
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.mark.parametrize("store", ["of_langchain:store", "of_llamaindex:store"])
def test_a_store_or_index_is_diagnosed_without_questions_and_compared_with_them(store: str, folder: Path) -> None:
    result = run("--store", store, "--k", 3, "--out", "diagnosis.json")
    assert result.exit_code == 0, result.output
    written = json.loads((folder / "diagnosis.json").read_text(encoding="utf-8"))
    assert (written["typical"], written["documents"]) == (9, 9)
    result = run("--store", store, "--queries", "asked.jsonl", "--k", 3, "--fetch-k", 9, "--out", "found.json")
    assert result.exit_code == 0, result.output
    written = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    assert written["title"] == store
    assert {candidate["id"] for candidate in written["queries"][0]["candidates"]} == {f"id {i}" for i in range(9)}
    assert written["settings"][0]["label"] == "similarity"


@pytest.mark.parametrize(
    ("store", "names"),
    [
        ("chroma", ["module:attribute", "my_app:store"]),
        ("my_app:", ["module:attribute"]),
        ("no_such_module:store", ["no_such_module"]),
        ("broken:store", ["broken", "no_such_package"]),
        ("of_langchain:index", ["of_langchain", "index"]),
        ("wrong:number", ["wrong:number", "3", "LlamaIndex"]),
        ("wrong:fails", ["wrong:fails", "KeyError"]),
        ("wrong:nothing", ["wrong:nothing", "None"]),
    ],
)
def test_what_is_no_store_is_named(store: str, names: list[str]) -> None:
    result = run("--store", store)
    assert result.exit_code == 2, result.output
    assert all(name in result.output for name in names), result.output


@pytest.mark.parametrize(
    "arguments", [["--setting", "mmr"], ["--documents", "a.jsonl"], ["--queries", "asked.jsonl", "--model", "words"]]
)
def test_what_does_not_go_with_a_store_is_refused(arguments: list[str]) -> None:
    result = run("--store", "of_langchain:store", *arguments)
    assert (result.exit_code, arguments[-2] in result.output) == (2, True)
