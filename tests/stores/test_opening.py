"""``setselect compare --store``: each kind of store that LangChain filled, opened by its path or URL."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_core.documents import Document
from typer.testing import CliRunner, Result

from langchain_setselect import opening
from langchain_setselect.opening import open_store
from setselect import InvalidInputError, InvalidParameterError, VectorSourceError
from shared_core.cli import _terminal
from shared_core.cli._program import app
from shared_core.evaluation import compare as compare_module
from tests.embedding import DIMENSION, corpus, embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.shared_core.cli.word_model import load_words
from tests.stores.cases import sqlite_vec
from tests.stores.harness import needs

DOCUMENTS = [
    Document(text, id=str(UUID(int=i + 1)), metadata={"topic": data["topic"]})
    for i, (text, data) in enumerate(corpus())
]
QUESTIONS = ["old bread", "loud violin river"]


class UnitEmbeddings(WordEmbeddings):
    """Vectors of length 1, with which each metric gives the order of the cosine."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [(np.array(row) / np.linalg.norm(row)).tolist() for row in super().embed_documents(texts)]


def chroma(folder: Path, documents: list[Document], name: str) -> str:
    needs("langchain_chroma")
    import chromadb
    from langchain_chroma import Chroma

    store = Chroma(name, UnitEmbeddings(), client=chromadb.PersistentClient(str(folder)))
    if documents:
        store.add_documents(documents)
    return f"chroma:{folder}"


def faiss(folder: Path, documents: list[Document], name: str) -> str:
    import faiss as library
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    store = FAISS(UnitEmbeddings(), library.IndexFlatL2(DIMENSION), InMemoryDocstore(), {})
    if documents:
        store.add_documents(documents)
    store.save_local(str(folder), name)
    return f"faiss:{folder}"


def lancedb(folder: Path, documents: list[Document], name: str) -> str:
    needs("langchain_lancedb")
    from langchain_lancedb import LanceDB

    texts, metadatas, ids = split(documents or DOCUMENTS)
    LanceDB(UnitEmbeddings(), folder, name).add_texts(texts, metadatas, ids)
    if not documents:
        import lancedb as library

        library.connect(folder).open_table(name).delete("true")
    return f"lancedb:{folder}"


def lancedb_community(folder: Path, documents: list[Document], name: str) -> str:
    needs("lancedb")
    import lancedb as library
    from langchain_community.vectorstores import LanceDB

    database = library.connect(folder)
    texts, metadatas, ids = split(documents or DOCUMENTS)
    LanceDB(database, UnitEmbeddings(), table_name=name).add_texts(texts, metadatas, ids)
    if not documents:
        database.open_table(name).delete("true")
    return f"lancedb:{folder}"


def qdrant(folder: Path, documents: list[Document], name: str) -> str:
    needs("langchain_qdrant")
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    with closing(QdrantClient(path=str(folder))) as client:
        client.create_collection(name, models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE))
        if documents:
            QdrantVectorStore(client, name, UnitEmbeddings()).add_documents(documents)
    return f"qdrant:{folder}"


def sqlite(folder: Path, documents: list[Document], name: str) -> str:
    needs("sqlite_vec")
    from langchain_community.vectorstores import SQLiteVec

    folder.mkdir(exist_ok=True)
    with closing(sqlite_vec.connect(folder / "store.db")) as connection:
        store = SQLiteVec(name, connection, UnitEmbeddings())
        if documents:
            store.add_texts(*split(documents)[:2])
    return f"sqlite:{folder / 'store.db'}"


KINDS: dict[str, Callable[[Path, list[Document], str], str]] = {
    "chroma": chroma,
    "faiss": faiss,
    "lancedb": lancedb,
    "lancedb of langchain-community": lancedb_community,
    "qdrant": qdrant,
    "sqlite": sqlite,
}


def split(documents: list[Document]) -> tuple[list[str], list[dict[str, Any]], list[str]]:
    return (
        [document.page_content for document in documents],
        [document.metadata for document in documents],
        [document.id or "" for document in documents],
    )


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of hashed words; and an SQLite that loads sqlite-vec where Python was built without extensions."""
    monkeypatch.setattr(_terminal, "load_model", load_words)
    monkeypatch.setattr(compare_module, "find_spec", lambda name: True)
    monkeypatch.setattr(opening, "_connect", lambda uri: sqlite_vec.connect(uri, uri=True))


@pytest.fixture(params=[*KINDS, "pgvector"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What ``--store`` gets, for each kind of store filled with DOCUMENTS."""
    if request.param in KINDS:
        yield KINDS[request.param](tmp_path / "db", DOCUMENTS, "passages")
        return
    with postgres(DOCUMENTS) as place:
        yield place


@contextmanager
def postgres(documents: list[Document]) -> Iterator[str]:
    needs("langchain_postgres")
    from tests.stores.cases.postgres import collection
    from tests.stores.cases.postgres_server import database

    with database() as (_, address):
        with collection(address("psycopg"), UnitEmbeddings(), collection_name="passages") as store:
            if documents:
                store.add_documents(documents)
        yield f"pgvector:{address('psycopg').replace('+psycopg', '')}"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.startswith(".")}


def test_a_store_is_diagnosed_without_questions(tmp_path: Path) -> None:
    place = faiss(tmp_path / "db", DOCUMENTS, "index")
    result = run("--store", place, "--k", 3, "--out", tmp_path / "report.json")
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (written["documents"], written["typical"], written["questions"]) == (60, 60, 0)
    assert written["text"] in " ".join(result.stdout.split())


def picks_of(source: tuple[object, ...], folder: Path) -> list[dict[str, set[str]]]:
    """The texts that each setting picks for each question, without those that search by words."""
    out, asked = folder / "report.json", folder / "asked.txt"
    asked.write_text("\n".join(QUESTIONS), encoding="utf-8")
    more = ("--model", "words", "--k", 3, "--fetch-k", 20, "--cache", folder / "cache", "--out", out)
    result = run(*source, "--queries", asked, *more)
    assert result.exit_code == 0, result.output
    written = json.loads(out.read_text(encoding="utf-8"))
    assert (written["corpus"]["documents"], written["corpus"]["model"]) == (60, "words")
    assert written["diagnosis"]["questions"] == 2
    labels = [setting["label"] for setting in written["settings"]]
    return [
        {
            labels[int(setting)]: {view["candidates"][i]["text"] for i in picks}
            for setting, picks in view["picks"].items()
            if "keyword_search" not in labels[int(setting)] and labels[int(setting)] != "hybrid search"
        }
        for view in written["queries"]
    ]


_OF_FILES: list[Any] = []


# Documents without ids are embedded for the row of keyword search.
@pytest.mark.filterwarnings("ignore:extra_retrievers. each query embeds")
def test_the_picks_on_a_store_are_those_on_its_documents_and_nothing_is_added_to_it(
    filled: str, tmp_path: Path
) -> None:
    before = files_of(tmp_path / "db")
    work = tmp_path / "work"
    work.mkdir()
    if not _OF_FILES:
        records = [{"id": str(i), "text": document.page_content} for i, document in enumerate(DOCUMENTS)]
        (work / "docs.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        _OF_FILES.extend(picks_of(("--documents", work / "docs.jsonl"), work))
    assert picks_of(("--store", filled), work) == _OF_FILES
    assert files_of(tmp_path / "db") == before


def test_questions_with_gold_ids_decide(tmp_path: Path) -> None:
    store = faiss(tmp_path / "db", DOCUMENTS, "index")
    asked = [{"text": text, "gold": [DOCUMENTS[i].id]} for text, i in zip(QUESTIONS, (2, 10), strict=True)]
    (tmp_path / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    out = tmp_path / "report.html"
    result = run("--store", store, "--queries", tmp_path / "asked.jsonl", "--model", "words", "--k", 3, "--out", out)
    assert result.exit_code == 0, result.output
    page = out.read_text(encoding="utf-8")
    assert "recall@3" in page
    assert "diagnosis-title" not in page


@pytest.mark.parametrize("kind", [*KINDS, "pgvector"])
def test_an_empty_store_is_refused(kind: str, tmp_path: Path) -> None:
    made = postgres([]) if kind == "pgvector" else nullcontext(KINDS[kind](tmp_path / "db", [], "passages"))
    with made as given, pytest.raises(InvalidInputError, match="'passages' is empty"):
        open_store(given)


@pytest.mark.parametrize("kind", KINDS)
def test_of_several_collections_one_has_to_be_named(kind: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        given = KINDS[kind](tmp_path / "db", DOCUMENTS, name)
    with pytest.raises(InvalidParameterError, match=r"--collection.*'first', 'second'|--collection.*'second', 'first'"):
        open_store(given)
    with pytest.raises(InvalidParameterError, match="'third'"):
        open_store(given, "third")
    opened = open_store(given, "second")
    assert (opened.collection, opened.texts, opened.dimension) == ("second", 60, DIMENSION)
    opened.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_that_does_not_exist_is_named_and_not_created(kind: str, tmp_path: Path) -> None:
    given, place = kind.split()[0], tmp_path / "gone"
    needs(*opening.KINDS[given].packages)
    with pytest.raises(InvalidParameterError, match=r"no (folder|file) .*gone"):
        open_store(f"{given}:{place}")
    assert not place.exists()
    place.mkdir()
    with pytest.raises(InvalidParameterError):
        open_store(f"{given}:{place}")
    assert [*place.rglob("*.sqlite3"), *place.rglob("*.json"), *place.rglob("*.lance")] == []


@pytest.mark.parametrize(
    ("given", "message"),
    [("chrom:./db", "chroma"), ("./db", "chroma, faiss, lancedb, pgvector, qdrant, sqlite"), ("chroma:", "kind:path")],
)
def test_an_unknown_kind_of_store_is_refused_with_the_known_ones(given: str, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        open_store(given)


def test_a_missing_package_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    for name, kind in opening.KINDS.items():
        with pytest.raises(ImportError, match=re.escape(f"pip install {' '.join(kind.packages.values())}")):
            open_store(f"{name}:./db")


def test_an_error_of_the_client_is_one_line_without_the_password(tmp_path: Path) -> None:
    needs("langchain_postgres")
    with pytest.raises(VectorSourceError) as error:
        open_store("pgvector:postgresql://reader:swordfish@127.0.0.1:1/documents")
    assert "127.0.0.1" in str(error.value)
    assert "swordfish" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pickle_with_another_class_is_not_loaded(tmp_path: Path) -> None:
    given = faiss(tmp_path / "db", DOCUMENTS, "index")
    (tmp_path / "db" / "index.pkl").write_bytes(pickle.dumps((Path("code"), {})))
    with pytest.raises(InvalidParameterError, match=r"pathlib\..*compare_store"):
        open_store(given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "asked.txt"], "--model"),
        (["--queries", "asked.txt", "--model", "other"], "0\\.\\d\\d"),
        (["--queries", "asked.txt", "--model", "short"], f"length 3, .* {DIMENSION}"),
        (["--queries", "asked.txt", "--model", "words", "--vectors", "a.npy"], "--vectors"),
        (["--documents", "asked.txt"], "--documents"),
        (["--setting", "mmr"], "--setting"),
        (["--demo"], "--demo"),
    ],
)
def test_what_does_not_go_with_the_store_is_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: dict[str, Callable[[str], Any]] = {
        "words": embed,
        "other": lambda text: embed(f"{text}!")[::-1],
        "short": lambda text: [1.0, 0.0, 0.0],
    }

    def load(name: str) -> Any:
        model = load_words(name)
        encode = lambda texts, **options: np.array([models[name](text) for text in texts], np.float32)  # noqa: E731
        for method in ("encode", "encode_document", "encode_query"):
            monkeypatch.setattr(model.model, method, encode, raising=False)
        return model

    monkeypatch.setattr(_terminal, "load_model", load)
    given = faiss(tmp_path / "db", DOCUMENTS, "index")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked.txt").write_text("\n".join(QUESTIONS), encoding="utf-8")
    result = run("--store", given, *arguments)
    assert result.exit_code == 2, result.output
    assert re.search(message, result.output), result.output


def test_a_collection_without_a_store_is_refused() -> None:
    result = run("--collection", "passages")
    assert (result.exit_code, "--store" in result.output) == (2, True)


def test_a_store_embeds_the_questions_with_its_own_function(tmp_path: Path) -> None:
    needs("langchain_chroma")
    import chromadb
    from chromadb import Documents, EmbeddingFunction

    class Words(EmbeddingFunction[Documents]):
        def __init__(self) -> None:
            pass

        def __call__(self, input: Documents) -> Any:
            return [embed(text).astype(np.float32) for text in input]

        @staticmethod
        def name() -> str:
            return "setselect-words"

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Any:
            return Words()

        def get_config(self) -> dict[str, Any]:
            return {}

    chromadb.utils.embedding_functions.register_embedding_function(Words)
    collection = chromadb.PersistentClient(str(tmp_path / "db")).create_collection("own", embedding_function=Words())
    texts, _, ids = split(DOCUMENTS)
    collection.add(ids=ids, documents=texts)
    (tmp_path / "asked.txt").write_text("\n".join(QUESTIONS), encoding="utf-8")
    result = run("--store", f"chroma:{tmp_path / 'db'}", "--queries", tmp_path / "asked.txt", "--k", 3)
    assert result.exit_code == 0, result.output
    assert "the store's own embedding function" in result.stdout
