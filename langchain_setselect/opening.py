"""Open a vector store by its kind and its path or URL, for ``setselect compare --store``. Nothing is created there."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from shared_core.errors import InvalidInputError, InvalidParameterError, SetSelectError, VectorSourceError
from shared_core.retrieval.flow import run_flow
from shared_core.retrieval.inputs import nearest_name
from shared_core.retrieval.question import EmbeddedQuery
from shared_core.signals.embedding_models import as_embeddings

from .retriever import search_store
from .vectors import reader_of

# Texts of the store that are embedded, to see whether the model is the one that filled it; and the least median cosine.
_COMPARED, _SAME = 5, 0.5


@dataclass(frozen=True, eq=False)
class ModelEmbedding(Embeddings):
    """Functions that embed texts and questions, as an embedding of LangChain."""

    texts: Callable[[list[str]], Any]
    questions: Callable[[list[str]], Any]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        return [list(map(float, vector)) for vector in self.texts(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return list(map(float, self.questions([text])[0]))


def _refuse(texts: list[str]) -> Any:
    raise VectorSourceError("a store that was opened for a comparison embeds no text")


# What the constructors of stores need, and a comparison never uses.
_UNUSED = ModelEmbedding(_refuse, _refuse)


class OpenedStore(NamedTuple):
    """A store, its collection, how many texts it holds, the length of the vectors, and its own embedding function."""

    store: VectorStore
    collection: str
    texts: int
    dimension: int
    embeddings: Embeddings | None = None
    close: Callable[[], object] = lambda: None


class _Kind(NamedTuple):
    """How a kind of store is opened: ``open(place, collection)``; and its modules, with the packages to install."""

    open: Callable[[str, str | None], OpenedStore]
    packages: Mapping[str, str]


def open_store(given: str, collection: str | None = None) -> OpenedStore:
    """Open what ``kind:place`` names.

    ``place`` is a path or a URL, and ``collection`` the name of the collection, table or index; without it, the store
    must have only one.

    Raises
    ------
    InvalidParameterError
        The kind is unknown, there is no such store at the place, or the collection has to be named.
    InvalidInputError
        The collection is empty, or holds no vectors.
    VectorSourceError
        The store's own client cannot open it.
    ImportError
        A package is missing; the message names the ones to install.
    """
    kind, colon, place = given.partition(":")
    if kind not in KINDS or not place:
        near = nearest_name(kind, KINDS) if colon else None
        hint = f"did you mean {near}:?" if near and near != kind else f"the kinds are {', '.join(KINDS)}"
        raise InvalidParameterError(f"a store is named as kind:path or kind:url, such as chroma:./db; {hint}")
    _need(KINDS[kind].packages)
    try:
        return KINDS[kind].open(place, collection)
    except (SetSelectError, ImportError):
        raise
    # Each client has exceptions of its own: for a damaged file, a lock, a refused connection.
    except Exception as error:
        lines = " ".join(str(error).replace(place, _without_password(place)).split())[:400]
        where = _without_password(place)
        raise VectorSourceError(f"{kind}:{where} cannot be opened: {type(error).__name__}: {lines}") from error


def check_model(opened: OpenedStore, embeddings: Embeddings, name: str) -> None:
    """Refuse a model that gives some texts of the store other vectors than the store has."""
    reader = reader_of(opened.store)
    vector = np.random.default_rng(0).standard_normal(opened.dimension)
    query = EmbeddedQuery(vector, None, vector.tolist())
    pool = run_flow(search_store(opened.store, reader, embeddings, {}, query, _COMPARED)).with_array()
    texts = [document.page_content for document in pool.items]
    if not texts:
        return
    made = as_embeddings(embeddings.embed_documents(texts), texts, name, np.float64)
    if made.shape[1] != opened.dimension:
        raise InvalidInputError(
            f"{name} gives vectors of length {made.shape[1]}, and the store holds vectors of length "
            f"{opened.dimension}: name the model that filled the store"
        )
    stored = np.asarray(pool.vectors, np.float64)
    lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(stored, axis=1)
    cosine = float(np.median((made * stored).sum(axis=1) / np.where(lengths > 0, lengths, 1)))
    if cosine < _SAME:
        raise InvalidInputError(
            f"{name} did not fill this store: its vectors of {len(texts)} texts have a median cosine of {cosine:.2f} "
            "with those in the store. Name the model that filled it"
        )


def _open_chroma(place: str, collection: str | None) -> OpenedStore:
    import chromadb
    from langchain_chroma import Chroma

    if _is_url(place):
        url = urlsplit(place)
        client = chromadb.HttpClient(url.hostname or "localhost", url.port or 8000, ssl=url.scheme == "https")
    else:
        client = chromadb.PersistentClient(_existing(place, "chroma.sqlite3"))
    name = _pick(collection, [one.name for one in client.list_collections()], "collection")
    store = Chroma(name, client=client, create_collection_if_not_exists=False)
    held: Any = store._collection.get(limit=1, include=["embeddings"])["embeddings"]
    own: Any = store._collection.configuration.get("embedding_function")
    sizes = _check_sizes(name, store._collection.count(), len(held[0]) if len(held) else 0)
    return OpenedStore(store, name, *sizes, None if own is None else ModelEmbedding(own, own))


def _open_faiss(place: str, collection: str | None) -> OpenedStore:
    import faiss
    from langchain_community.vectorstores import FAISS

    folder = Path(_existing(place))
    indexes = [file.stem for file in sorted(folder.glob("*.faiss")) if file.with_suffix(".pkl").exists()]
    name = _pick(collection, indexes, "index (a file .faiss beside a file .pkl)")
    index = faiss.read_index(str(folder / f"{name}.faiss"))
    with (folder / f"{name}.pkl").open("rb") as file:
        docstore, ids = _Unpickler(file).load()
    return OpenedStore(FAISS(_UNUSED, index, docstore, ids), name, *_check_sizes(name, index.ntotal, index.d))


class _Unpickler(pickle.Unpickler):
    """Reads what LangChain's FAISS store writes. A pickle can run any code, so no other class is loaded."""

    def find_class(self, module: str, name: str) -> Any:
        if name in _UNPICKLED.get(module, ()):
            return super().find_class(module, name)
        raise InvalidParameterError(
            f"the .pkl file holds {module}.{name}, which may run code: load the store yourself, and pass it to "
            "langchain_setselect.compare_store"
        )


_UNPICKLED = {
    "builtins": ("set", "frozenset"),
    "datetime": ("datetime", "date", "timedelta", "timezone"),
    "langchain_community.docstore.in_memory": ("InMemoryDocstore",),
    "langchain_core.documents.base": ("Document",),
    "uuid": ("UUID",),
}


def _open_lancedb(place: str, collection: str | None) -> OpenedStore:
    import lancedb

    database = lancedb.connect(place if _is_url(place) else _existing(place))
    name = _pick(collection, list(database.list_tables().tables), "table")
    table = database.open_table(name)
    schema = table.schema
    if not {"text", "vector"} <= {*schema.names}:
        raise InvalidInputError(
            f"the table {name!r} has the columns {', '.join(schema.names)}: LangChain's LanceDB needs text and vector"
        )
    length = getattr(schema.field("vector").type, "list_size", 0)
    sizes = _check_sizes(name, table.count_rows(), length)
    own = next((one.function for one in (table.embedding_functions or {}).values()), None)
    embeddings = (
        None if own is None else ModelEmbedding(own.compute_source_embeddings, _each(own.compute_query_embeddings))
    )
    # LangChain has two classes. One writes metadata as JSON, the other as columns.
    kind = str(schema.field("metadata").type) if "metadata" in schema.names else ""
    store: VectorStore
    if kind.endswith("string"):
        _need({"langchain_lancedb": "langchain-lancedb"})
        from langchain_lancedb import LanceDB

        store = LanceDB(_UNUSED, place, name)
    else:
        _need({"langchain_community": "langchain-community"})
        from langchain_community.vectorstores import LanceDB as CommunityLanceDB

        store = CommunityLanceDB(database, _UNUSED, table_name=name)
    return OpenedStore(store, name, *sizes, embeddings)


def _each(embed: Callable[[str], Any]) -> Callable[[list[str]], Any]:
    """A function of one text, which returns a list of one vector, as a function of several texts."""
    return lambda texts: [embed(text)[0] for text in texts]


def _open_qdrant(place: str, collection: str | None) -> OpenedStore:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    client = QdrantClient(url=place) if _is_url(place) else QdrantClient(path=_existing(place, "meta.json"))
    name = _pick(collection, [one.name for one in client.get_collections().collections], "collection")
    vectors: Any = client.get_collection(name).config.params.vectors
    if not isinstance(vectors, dict):
        vectors = {"": vectors}
    if len(vectors) != 1:
        raise InvalidInputError(
            f"the collection {name!r} has {len(vectors)} vectors for a point ({', '.join(vectors)}): open it yourself, "
            "and pass it to langchain_setselect.compare_store"
        )
    [(vector, parameters)] = vectors.items()
    store = QdrantVectorStore(
        client,
        name,
        _UNUSED,
        vector_name=vector,
        validate_embeddings=False,
        validate_collection_config=False,
    )
    return OpenedStore(store, name, *_check_sizes(name, client.count(name).count, parameters.size), close=client.close)


def _open_pgvector(place: str, collection: str | None) -> OpenedStore:
    from langchain_postgres import PGVector
    from sqlalchemy import NullPool, create_engine, inspect, text

    scheme, separator, rest = place.partition("://")
    if not separator:
        raise InvalidParameterError("pgvector needs a URL: pgvector:postgresql://user:password@host:5432/database")
    # LangChain's store is tested with the driver psycopg 3.
    engine = create_engine(
        f"{'postgresql+psycopg' if scheme in ('postgres', 'postgresql') else scheme}://{rest}", poolclass=NullPool
    )
    if not inspect(engine).has_table("langchain_pg_collection"):
        raise InvalidParameterError(
            "the database has no collection of LangChain's PGVector: there is no table langchain_pg_collection"
        )
    with engine.connect() as connection:
        names = connection.execute(text("SELECT name FROM langchain_pg_collection ORDER BY name")).scalars()
        name = _pick(collection, list(names), "collection")
        count, dimension = connection.execute(
            text(
                "SELECT count(*), max(vector_dims(e.embedding)) FROM langchain_pg_embedding e "
                "JOIN langchain_pg_collection c ON e.collection_id = c.uuid WHERE c.name = :name"
            ),
            {"name": name},
        ).one()
    sizes = _check_sizes(name, count, dimension or 0)
    # What the constructor would create is there.
    store = PGVector(_UNUSED, connection=engine, collection_name=name, create_extension=False)
    return OpenedStore(store, name, *sizes)


def _open_sqlite(place: str, collection: str | None) -> OpenedStore:
    from langchain_community.vectorstores import SQLiteVec

    connection = _connect(f"file:{quote(_existing(place, kind='file'))}?mode=ro")
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    name = _pick(collection, [table for table in tables if f"{table}_vec" in tables], "table")
    held = connection.execute(f'SELECT count(*), max(length(text_embedding)) / 4 FROM "{name}"').fetchone()
    count, dimension = _check_sizes(name, held[0], held[1] or 0)

    class Opened(SQLiteVec):
        """Takes the length of the vectors from the table; the original embeds a text."""

        def get_dimensionality(self) -> int:
            return dimension

    return OpenedStore(Opened(name, connection, _UNUSED), name, count, dimension, close=connection.close)


def _connect(uri: str) -> sqlite3.Connection:
    """A connection that has loaded sqlite-vec, and writes nothing."""
    import sqlite_vec

    connection = sqlite3.connect(uri, uri=True)
    if not hasattr(connection, "enable_load_extension"):
        raise VectorSourceError("the sqlite3 of this Python cannot load extensions: use another build of Python")
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.enable_load_extension(False)
    connection.row_factory = sqlite3.Row
    return connection


def _is_url(place: str) -> bool:
    return "://" in place


def _without_password(place: str) -> str:
    """The place as messages show it."""
    url = urlsplit(place)
    return place if url.password is None else place.replace(f":{url.password}@", ":***@")


def _existing(place: str, file: str = "", kind: str = "folder") -> str:
    """The path, if there is a folder, with this ``file`` in it, or a file; clients would create an empty store."""
    path = Path(place).expanduser()
    if not (path.is_file() if kind == "file" else path.is_dir()):
        raise InvalidParameterError(f"there is no {kind} {path.absolute()}")
    if file and not (path / file).exists():
        raise InvalidParameterError(f"the folder {path.absolute()} holds no such store: it has no {file}")
    return str(path)


def _pick(collection: str | None, names: Iterable[str], what: str) -> str:
    """The collection that was named, or the only one."""
    known = list(names)
    if collection is None and len(known) == 1:
        return known[0]
    if collection in known:
        return str(collection)
    listed = ", ".join(map(repr, known[:10])) or "none"
    if collection is None and known:
        raise InvalidParameterError(f"the store has {len(known)} of them, so name one with --collection: {listed}")
    missing = f"there is no {what} {collection!r}" if collection else f"there is no {what}"
    raise InvalidParameterError(f"{missing}: the store has {listed}")


def _check_sizes(name: str, count: int, length: int) -> tuple[int, int]:
    """The number of texts in a collection, and the length of its vectors; an error if it holds none."""
    if not count:
        raise InvalidInputError(f"{name!r} is empty: fill it, or name another collection")
    if not length:
        raise InvalidInputError(f"{name!r} holds {count} texts without vectors, or vectors of no fixed length")
    return count, int(length)


def _need(packages: Mapping[str, str]) -> None:
    missing = [package for module, package in packages.items() if find_spec(module) is None]
    if missing:
        raise ImportError(f"this store needs {', '.join(missing)}: pip install {' '.join(missing)}")


KINDS = {
    "chroma": _Kind(_open_chroma, {"langchain_chroma": "langchain-chroma"}),
    "faiss": _Kind(_open_faiss, {"langchain_community": "langchain-community", "faiss": "faiss-cpu"}),
    "lancedb": _Kind(_open_lancedb, {"lancedb": "lancedb"}),
    "pgvector": _Kind(_open_pgvector, {"langchain_postgres": "langchain-postgres", "psycopg": "'psycopg[binary]'"}),
    "qdrant": _Kind(_open_qdrant, {"langchain_qdrant": "langchain-qdrant"}),
    "sqlite": _Kind(_open_sqlite, {"langchain_community": "langchain-community", "sqlite_vec": "sqlite-vec"}),
}
