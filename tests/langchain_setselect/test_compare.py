from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect.compare import compare_store, diagnose_store
from setselect import SetSelectError, VectorSourceError
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory
from tests.langchain_setselect.test_vectors import Wrapped

QUERIES = ["old bread", "loud violin river"]


@pytest.mark.parametrize("table", [pd.DataFrame, pa.Table.from_pylist], ids=["pandas", "Arrow"])
def test_the_queries_may_be_a_table(embeddings: WordEmbeddings, table: Any) -> None:
    records = [{"text": text, "gold": gold} for text, gold in zip(QUERIES, (["text 1", "text 2"], None), strict=True)]
    found, expected = (compare_store(in_memory(embeddings), given, k=2) for given in (table(records), records))
    assert [view.text for view in found.queries] == QUERIES
    assert found.values == expected.values


def test_a_store_without_embeddings_asks_for_them() -> None:
    class Bare(InMemoryVectorStore):
        @property
        def embeddings(self) -> Embeddings | None:  # type: ignore[override]
            return None

    store = Bare(WordEmbeddings())
    store.add_texts(["one", "two", "three"])
    with pytest.raises(VectorSourceError, match="embeddings="):
        compare_store(store, ["one"], k=2)
    assert compare_store(store, ["one"], k=2, embeddings=WordEmbeddings()).corpus.queries == 1


def test_a_store_is_diagnosed_by_its_own_vectors_with_the_links_of_its_metadata(embeddings: WordEmbeddings) -> None:
    store = InMemoryVectorStore(embeddings)
    links = {"a": ["b"], "b": [], "c": ["a", "elsewhere"]} | {name: [] for name in "defg"}
    for name, targets in links.items():
        store.add_texts([f"text {name}"], [{"links": targets, "source": f"s{name}"}], ids=[name])
    embeddings.counts()
    found = diagnose_store(store, k=2, title="Linked")
    assert embeddings.counts() == (1, 0, 0)
    shares = {finding.key: finding.share for finding in found.findings}
    assert (shares["link"], shares["sources"], found.documents, found.title) == (1, 1, 7, "Linked")


def test_a_store_that_cannot_be_diagnosed_says_what_is_missing(embeddings: WordEmbeddings) -> None:
    class Bare(InMemoryVectorStore):
        @property
        def embeddings(self) -> Embeddings | None:  # type: ignore[override]
            return None

    with pytest.raises(VectorSourceError, match="embeddings="):
        diagnose_store(Bare(embeddings))
    with pytest.raises(VectorSourceError, match="register_vector_source"):
        diagnose_store(Wrapped(in_memory(embeddings)))
    with pytest.raises(SetSelectError, match="no texts"):
        diagnose_store(InMemoryVectorStore(embeddings))
