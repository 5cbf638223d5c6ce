"""Chroma: in this process, on disk, and on a server on loopback, one per process of the tests."""

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import LangChainCase, LlamaIndexCase, fill, free_port, needs, wait_for


@cache
def server() -> int:
    """The port of a server that stops with this process."""
    folder, port = tempfile.mkdtemp(prefix="setselect-chroma-"), free_port()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", folder, "--port", str(port)]
    process = subprocess.Popen([*command, "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(_stop, process)
    wait_for(process, lambda: urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=5).close(), OSError)
    return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(30)


@contextmanager
def client(kind: str, folder: Path) -> Iterator[Any]:
    import chromadb

    match kind:
        case "in memory":
            yield chromadb.EphemeralClient()
        case "on disk":
            yield chromadb.PersistentClient(str(folder))
        case _:
            http = chromadb.HttpClient("127.0.0.1", server())
            yield http
            # The client's close() leaves its connections open.
            for part in (http, http._admin_client):  # type: ignore[attr-defined]
                part._server._session.close()


# For cosine, Chroma's index keeps unit vectors and lengths. Their product may differ from the vector in the last bit.
LAST_BIT = 2.0**-22
KINDS = {"in memory": "l2", "on disk": "cosine", "on a server": "ip"}


@contextmanager
def _langchain(kind: str, embeddings: Embeddings, folder: Path) -> Iterator[VectorStore]:
    needs("langchain_chroma")
    from langchain_chroma import Chroma

    with client(kind, folder) as chroma:
        store = Chroma(
            f"c{uuid4().hex}", embeddings, client=chroma, collection_configuration={"hnsw": {"space": KINDS[kind]}}
        )
        fill(store)
        yield store


@contextmanager
def _llamaindex(kind: str, folder: Path) -> Iterator[BasePydanticVectorStore]:
    needs("llama_index.vector_stores.chroma")
    from llama_index.vector_stores.chroma import ChromaVectorStore

    with client(kind, folder) as chroma:
        collection = chroma.create_collection(f"c{uuid4().hex}", configuration={"hnsw": {"space": KINDS[kind]}})
        yield ChromaVectorStore(chroma_collection=collection)


LANGCHAIN = [
    LangChainCase(
        f"Chroma {kind}, {metric}",
        partial(_langchain, kind),
        {"filter": {"colour": "red"}},
        precision=LAST_BIT if metric == "cosine" else 0,
        arguments=({"filter": {"number": {"$lt": 100}}, "where_document": {"$contains": "9"}},),
    )
    for kind, metric in KINDS.items()
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"Chroma {kind}, {metric}", partial(_llamaindex, kind), precision=LAST_BIT if metric == "cosine" else 0
    )
    for kind, metric in KINDS.items()
]
