"""Azure AI Search: the requests that its clients send, fields that are not retrievable, and errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import VectorStore

from langchain_setselect import SetSelectRetriever
from shared_core import VectorSourceError
from tests.stores.cases.azure_search import (
    PACKAGES,
    alangchain_over,
    langchain_over,
    llamaindex_over,
    needed,
)
from tests.stores.harness import (
    BY_ID,
    QUERIES,
    ROWS,
    TableEmbeddings,
    afetch_nodes,
    fetch_nodes,
    fill,
    index_over,
    langchain_reader,
    needs,
    stored,
)
from tests.stores.replay.azure_search import AzureReplay, replaying

QUERY = QUERIES["query 3"]
IDS = [row.id for row in ROWS]
FILTER = "colour eq 'red' and search.in(colour, 'red,mauve', ',')"


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[AzureReplay]:
    needs("cryptography", "azure.search.documents")
    with replaying(tmp_path) as replay:
        yield replay


@pytest.mark.parametrize("package", PACKAGES)
class TestLangChain:
    @pytest.fixture
    def store(self, replay: AzureReplay, package: str) -> Iterator[VectorStore]:
        needs(*needed(package))
        with langchain_over(replay, TableEmbeddings(), package) as store:
            fill(store)
            yield store

    def test_select_gets_the_field_of_the_vectors(self, store: VectorStore, replay: AzureReplay) -> None:
        reader = langchain_reader(store)
        for select in (["id", "content", "colour"], "id, content,colour"):
            documents, vectors = reader.search(store, QUERY, 5, select=select)
            assert replay.requests[-1].body["select"] == "id,content,colour,content_vector"
            np.testing.assert_array_equal(vectors, stored(BY_ID[d.metadata["id"]] for d in documents))
            # Without the metadata field, the store puts all other fields into the metadata, but not the vector.
            assert all(set(d.metadata) >= {"id", "colour"} for d in documents)
            assert not any("content_vector" in d.metadata for d in documents)

    async def test_an_error_names_a_field_that_is_not_retrievable(self, replay: AzureReplay, package: str) -> None:
        needs(*needed(package))
        async with alangchain_over(replay, TableEmbeddings(), package, hidden=True) as store:
            fill(store)
            retriever = SetSelectRetriever(vectorstore=store)
            with pytest.raises(VectorSourceError, match="'content_vector' is not retrievable"):
                retriever.invoke("query 3")
            with pytest.raises(VectorSourceError, match="'content_vector' is not retrievable"):
                await retriever.ainvoke("query 3")


class TestLlamaIndex:
    @pytest.fixture
    def index(self, replay: AzureReplay) -> Iterator[Any]:
        needs("llama_index.vector_stores.azureaisearch")
        with llamaindex_over(replay) as store:
            yield index_over(store)

    async def test_ids_with_commas_and_quotes_are_one_id_each(self, index: Any) -> None:
        ids = [row.id for row in ROWS[:2]]
        assert fetch_nodes(index.vector_store, [",".join(ids), "it's"]) == {}
        # A store without an async client runs in a thread.
        assert set(await afetch_nodes(index.vector_store, ["it's", *ids])) == set(ids)
