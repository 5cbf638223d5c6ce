"""The smallest real use of a bare install and of each extra: ``python uses.py NAME``, in the environment to test."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("setselect")


def setselect(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr, done
    return done


def bare() -> None:
    import setselect as core

    assert core.select([1.0, 0.9], [[1.0, 0.0], [1.0, 0.02], [0.0, 1.0]], k=2).indices.tolist() == [1, 2]
    assert setselect("--version").stdout == f"setselect {core.__version__}\n"
    for command in ("compare", "train", "batch"):
        told = setselect(command, "--help", code=2).stderr
        assert told.count("\n") == 1, told
        assert f'pip install "setselect[{command}]"' in told, told
    assert setselect("--help", code=2).stderr.count("\n") == 1
    for package in ("langchain", "llamaindex"):
        told = subprocess.run([sys.executable, "-c", f"import {package}_setselect"], capture_output=True, text=True)
        assert f'pip install "setselect[{package}]"' in told.stderr.splitlines()[-1], told


def langchain() -> None:
    from langchain.agents import create_agent
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.vectorstores import InMemoryVectorStore

    from langchain_setselect import SetSelectRetriever, SetSelectTools, select_tools

    embeddings = DeterministicFakeEmbedding(size=16)
    functions = [langchain, llamaindex, bare]
    assert langchain in select_tools("call langchain", functions, 2, embeddings=embeddings)
    model = GenericFakeChatModel(messages=iter(["Hello"]))
    agent = create_agent(model, tools=[], middleware=[SetSelectTools(embeddings)])
    assert agent.invoke({"messages": "Hi"})["messages"][-1].text == "Hello"
    store = InMemoryVectorStore(embeddings)
    store.add_texts([f"text {i}" for i in range(20)])
    assert len(SetSelectRetriever(vectorstore=store, search_kwargs={"k": 3, "fetch_k": 10}).invoke("text")) == 3


def llamaindex() -> None:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode
    from llama_index.core.tools import FunctionTool

    from llamaindex_setselect import SetSelectIndexRetriever, SetSelectToolRetriever

    tools = [FunctionTool.from_defaults(lambda: None, name=f"tool_{i}") for i in range(20)]
    chosen = SetSelectToolRetriever(tools, MockEmbedding(embed_dim=3), similarity_top_k=3).retrieve("use tool_7")
    assert "tool_7" in [tool.metadata.name for tool in chosen]
    nodes = [TextNode(text=f"text {i}", embedding=[1.0, i / 20, (i % 7) / 7]) for i in range(20)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3))
    assert len(SetSelectIndexRetriever(index, similarity_top_k=3, fetch_k=10).retrieve("text")) == 3


def faiss() -> None:
    import faiss
    import numpy as np

    from shared_core.stores.faiss import vectors_by_label

    index = faiss.IndexFlatIP(4)
    index.add(np.eye(4, dtype=np.float32))
    assert np.array_equal(vectors_by_label(index, [2, 0]), np.eye(4)[[2, 0]])


def huggingface() -> None:
    from setselect import load_model

    assert load_model().embed_documents(["a text", "another"]).shape == (2, 384)


def openai() -> None:
    import openai

    from setselect import LanguageModel, LogPerplexityQuality

    # Nothing listens at this port, so the client reports that.
    quality = LogPerplexityQuality(LanguageModel("a model", base_url="http://127.0.0.1:9/v1", max_retries=0))
    try:
        quality.score(["a question"], ["an answer"])
    except openai.APIConnectionError:
        return
    raise AssertionError("there is a server at port 9")


def kernel() -> None:
    import numpy as np

    import setselect as core

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.safetensors")
        core.LowRankKernel(np.eye(4), np.eye(4), np.zeros((4, 4))).save(path)
        assert core.LowRankKernel.load(path).V.shape == (4, 4)


def fast() -> None:
    import numba
    import numpy as np

    import setselect as core

    rows = np.random.default_rng(0).normal(size=(40, 8))
    assert numba.__version__
    assert len(core.select_many(rows[:5], np.broadcast_to(rows, (5, 40, 8)), k=3).indices) == 5


def words() -> None:
    from shared_core.retrieval.extra import ItemKind, WordSearch

    kind = ItemKind(str, hash, str, lambda store: (None, store))
    search = WordSearch(kind, ["red lamp"] + [f"fuse {i}" for i in range(20_000)])
    assert search.search("A lamp", 5)[0][0] == "red lamp"


def _files(folder: Path) -> list[object]:
    documents, queries = folder / "documents.jsonl", folder / "queries.jsonl"
    texts = {"fft": "The discrete Fourier transform", "pad": "Pad an array with zeros", "sort": "Sort an array"}
    documents.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items()))
    queries.write_text(json.dumps({"text": "pad, then transform", "gold": ["fft", "pad"]}) + "\n")
    return ["--documents", documents, "--queries", queries, "--cache", folder, "--k", 2, "--fetch-k", 3]


def eval() -> None:
    import numpy as np

    from setselect.evaluation import compare
    from shared_core.evaluation.report import render

    documents = [{"id": name, "text": name} for name in ("fft", "pad", "sort")]
    vectors = np.array([[1.0, 0.1], [0.1, 1.0], [0.3, 0.2]]), np.array([[1.0, 0.8]])
    found = compare(documents, [{"text": "both", "gold": ["fft", "pad"]}], vectors, k=2, fetch_k=3)
    assert "<html" in render(found)
    with tempfile.TemporaryDirectory() as folder:
        told = setselect("compare", *_files(Path(folder)), code=2).stderr
        assert 'pip install "setselect[compare]"' in told, told
        files = []
        for option, rows in zip(("--vectors", "--query-vectors"), vectors, strict=True):
            files += [option, Path(folder, f"{option.strip('-')}.npy")]
            np.save(files[-1], rows)
        assert "recall" in setselect("compare", *_files(Path(folder)), *files).stdout.lower()


def compare() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.html")
        assert "recall" in setselect("compare", *_files(Path(folder)), "--out", out).stdout.lower()
        assert "<html" in out.read_text()


def train() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pool, out = Path(folder, "pool.jsonl"), Path(folder, "kernel.safetensors")
        lines = ({"question": f"question {i} of {i % 4}", "answer": f"f{i % 4}(g{i % 3}(x))"} for i in range(24))
        pool.write_text("".join(json.dumps(line) + "\n" for line in lines))
        tiny = ["--k", 2, "--fetch-k", 8, "--epochs", 2, "--cache", folder]
        done = subprocess.run(
            [PROGRAM, *map(str, ["train", pool, "--out", out, *tiny])], capture_output=True, text=True
        )
        # 1: the kernel is written, and the few examples did not help.
        assert done.returncode in (0, 1), done
        assert out.stat().st_size


def batch(*options: str) -> None:
    import faiss
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        index = faiss.IndexFlatIP(8)
        index.add(rows)
        faiss.write_index(index, f"{folder}/index.faiss")
        pq.write_table(pa.table({"id": range(4), "vector": list(rows[:4])}), f"{folder}/queries.parquet")
        files = [
            "--queries",
            f"{folder}/queries.parquet",
            "--index",
            f"{folder}/index.faiss",
            "--out",
            f"{folder}/sets",
        ]
        assert "4 rows in 1 parts" in setselect("batch", *files, "--k", 3, "--fetch-k", 20, *options).stdout
        assert pq.read_table(f"{folder}/sets").num_rows == 4


def ray() -> None:
    batch("--ray")


USES = {use.__name__: use for use in (
    bare, langchain, llamaindex, faiss, huggingface, openai, kernel, fast, words, eval, compare, train, batch, ray,
)}  # fmt: skip

if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    for name in sys.argv[1:]:
        USES[name]()
