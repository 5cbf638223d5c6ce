"""Milvus Lite: a file, served by this process. LangChain's store needs pymilvus 3 and LlamaIndex's needs pymilvus 2, so
no environment runs all of these cases."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from tests.stores.harness import BY_ID, BY_TEXT, DIMENSION, ROWS, LangChainCase, LlamaIndexCase, Row, fill, needs


@contextmanager
def database(folder: Path) -> Iterator[str]:
    """The name of Milvus Lite's file; stops the server at the end."""
    from milvus_lite.server_manager import server_manager_instance

    path = str(folder / "milvus.db")
    yield path
    server_manager_instance.release_server(path)


@contextmanager
def langchain_store(embeddings: Any, folder: Path, index: str, metric: str, **settings: Any) -> Iterator[Any]:
    needs("langchain_milvus", "milvus_lite")
    from langchain_milvus import Milvus

    # By default the store's HNSW search considers only ten rows.
    search_params = {"metric_type": metric, "params": {"ef": 240} if index in ("HNSW", "AUTOINDEX") else {}}
    with database(folder) as path:
        store = Milvus(
            embeddings,
            connection_args={"uri": path},
            **{
                "index_params": {"index_type": index, "metric_type": metric, "params": {}},
                "search_params": search_params,
                **settings,
            },
        )
        yield store
        store.client.close()


def seal(client: Any, path: str, collection: str) -> None:
    """Have the index built: without one, Milvus Lite compares new rows one by one."""
    from milvus_lite.server_manager import server_manager_instance

    client.flush(collection)
    # Milvus Lite builds the index in the background, and no request waits for it.
    server_manager_instance._servers[path][1].get_collection(collection)._wait_for_bg()


@contextmanager
def _langchain(
    index: str, metric: str, settings: dict[str, Any], embeddings: Embeddings, folder: Path
) -> Iterator[VectorStore]:
    with langchain_store(embeddings, folder, index, metric, **settings) as store:
        if store.auto_id:
            store.add_texts([row.text for row in ROWS], [dict(row.metadata) for row in ROWS])
        else:
            fill(store)
        seal(store.client, store._connection_args["uri"], store.collection_name)
        yield store


@contextmanager
def llamaindex_store(folder: Path, index: str, metric: str, **settings: Any) -> Iterator[Any]:
    needs("llama_index.vector_stores.milvus", "milvus_lite")
    from llama_index.vector_stores.milvus import MilvusVectorStore

    with database(folder) as path:
        store = MilvusVectorStore(
            path,
            **{
                "dim": DIMENSION,
                "similarity_metric": metric,
                "index_config": {"index_type": index},
                "search_config": {"params": {"ef": 240}} if index == "HNSW" else None,
                **settings,
            },
        )
        yield store
        store.client.close()


@contextmanager
def _llamaindex(index: str, metric: str, folder: Path) -> Iterator[BasePydanticVectorStore]:
    with llamaindex_store(folder, index, metric) as store:
        yield store


@asynccontextmanager
async def _awaited(open: Callable[..., AbstractContextManager[Any]], *arguments: Any) -> AsyncIterator[Any]:
    """The store that ``open`` opens, with its async client closed at the end."""
    with open(*arguments) as store:
        yield store
        await store.aclient.close()


def _by_pk(document: Document) -> Row:
    return BY_ID[document.metadata["pk"]]


def _by_text(document: Document) -> Row:
    return BY_TEXT[document.page_content]


def _case(index: str, metric: str, ids: str, **settings: Any) -> LangChainCase:
    settings["auto_id"] = ids == "auto ids"
    return LangChainCase(
        f"Milvus Lite {index}, {metric}, {ids}",
        partial(_langchain, index, metric, settings),
        {"expr": 'colour == "red"'},
        row_of=_by_text if settings["auto_id"] else _by_pk,
        aopen=partial(_awaited, _langchain, index, metric, settings),
        arguments=(
            {"expr": 'number in [3, 5, 8] or (colour like "gr%" and number > 100)'},
            {"param": {"metric_type": metric, "params": {"ef": 240}}, "timeout": 30},
            {"partition_names": ["_default"], "offset": 7},
        ),
        refused="filter",
    )


LANGCHAIN = [
    _case("FLAT", "COSINE", "given ids"),
    _case("HNSW", "L2", "auto ids"),
    _case("AUTOINDEX", "IP", "given ids", enable_dynamic_field=True),
]
LLAMAINDEX = [
    LlamaIndexCase(
        f"Milvus Lite {index}, {metric}",
        partial(_llamaindex, index, metric),
        aopen=partial(_awaited, _llamaindex, index, metric),
    )
    for index, metric in (("FLAT", "COSINE"), ("HNSW", "L2"), ("FLAT", "IP"))
]
