"""Stored vectors are found in every store and belong to their node, and nothing is embedded without need."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from llama_index.core import MockEmbedding, Settings, StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.vector_stores.faiss import FaissMapVectorStore
from numpy.typing import ArrayLike

from llamaindex_setselect import SetSelectIndexRetriever, SetSelectPostprocessor, register_vector_source, vectors
from shared_core import (
    EmbeddingFallbackWarning,
    InvalidParameterError,
    SetSelectWarning,
    VectorSourceError,
)
from shared_core.retrieval.flow import run_flow
from tests.llamaindex_setselect.nodes_and_indexes import (
    ALL,
    QUERY,
    STORES,
    TEXTS,
    CountingEmbedding,
    PlainStore,
    bundle,
    embedding,
    expected,
    ids_of,
    make_index,
    make_nodes,
    scored,
)


def over(store: Any) -> VectorStoreIndex:
    """An index over a store that was filled before, without an embedding model."""
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex([], storage_context=storage, embed_model=MockEmbedding(embed_dim=2))
    index._embed_model = None
    return index


def fetch(post: SetSelectPostprocessor, nodes: Sequence[TextNode]) -> dict[str, ArrayLike]:
    _, ids, rows = run_flow(post._vectors.fetch(scored(nodes)))
    return dict(zip(ids, rows, strict=True))


def assert_same_vector(found: ArrayLike, text: str) -> None:
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(embedding(text), np.float32), err_msg=text)


def assert_own_vectors(found: Mapping[str, ArrayLike], ids: Sequence[str]) -> None:
    assert list(found) == list(ids)
    for node_id in ids:
        assert_same_vector(found[node_id], TEXTS[int(node_id[1:])])


@pytest.mark.parametrize("kind", STORES)
def test_every_store_returns_its_vectors_without_embedding(kind: str, model: CountingEmbedding) -> None:
    post = SetSelectPostprocessor(index=make_index(kind, model))
    shuffled = [make_nodes()[i] for i in np.random.default_rng(3).permutation(len(TEXTS))]
    assert_own_vectors(fetch(post, shuffled), [n.node_id for n in shuffled])
    assert model.texts == []
    assert post.vector_source == f"store: {type(post.index.vector_store).__name__}"  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "deleted"), [("idmap", ["n0"]), ("idmap2", ["n7", "n3"]), ("idmap", ["n39"])])
def test_faiss_map_after_deletes_and_inserts(kind: str, deleted: list[str], model: CountingEmbedding) -> None:
    index = make_index(kind, model)
    index.vector_store.delete_nodes(deleted)
    kept = [n for n in make_nodes() if n.node_id not in deleted]
    post = SetSelectPostprocessor(index=index)
    assert_own_vectors(fetch(post, kept), [n.node_id for n in kept])

    # The store gives the new node a label that is in use (an error of the store). The node that the label names now
    # gets its own vector, and the other one gets none.
    index.insert_nodes([TextNode(id_="new", text="coffee and mood")])
    store = index.vector_store
    assert isinstance(store, FaissMapVectorStore)
    labels = store._node_id_to_faiss_id_map
    lost = [n.node_id for n in kept if labels[n.node_id] == labels["new"]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fetch(post, [*kept, TextNode(id_="new", text="coffee and mood")])
    assert_same_vector(found.pop("new"), "coffee and mood")
    assert_own_vectors(found, [n.node_id for n in kept if n.node_id not in lost])
    assert len(caught) == len(lost)


def test_faiss_labels_follow_inserts(model: CountingEmbedding) -> None:
    nodes = make_nodes()
    index = make_index("flat ip", model, nodes[:20])
    post = SetSelectPostprocessor(index=index)
    fetch(post, nodes[:20])
    index.insert_nodes(nodes[20:])
    assert_own_vectors(fetch(post, nodes), ALL)

    # The same id again, with another text: the last vector counts.
    index.insert_nodes([TextNode(id_="n0", text="water")])
    assert_same_vector(fetch(post, nodes[:1])["n0"], "water")


def test_a_deleted_node_is_left_out_and_named_unless_it_has_an_embedding(
    index: VectorStoreIndex, model: CountingEmbedding
) -> None:
    best, nodes = expected(ALL, 1)[0], make_nodes()
    index.vector_store.delete_nodes([best])
    post = SetSelectPostprocessor(index=over(index.vector_store), top_n=39)
    with pytest.warns(SetSelectWarning, match=f"1 of 40 nodes.*{best!r}") as caught:
        chosen = post.postprocess_nodes(scored(nodes), bundle())
    assert not any(isinstance(w.message, EmbeddingFallbackWarning) for w in caught)
    assert ids_of(chosen) == expected([i for i in ALL if i != best], 39)
    nodes[ALL.index(best)].embedding = embedding(TEXTS[ALL.index(best)])
    found = fetch(SetSelectPostprocessor(index=index), nodes)
    assert_own_vectors(dict(sorted(found.items())), sorted(ALL))
    assert model.texts == []


@pytest.mark.parametrize("without", [0, 5])
async def test_without_a_store_only_nodes_without_an_embedding_are_embedded(
    without: int, model: CountingEmbedding
) -> None:
    nodes = make_nodes()
    for node in nodes[without:]:
        node.embedding = embedding(node.text)
    post = SetSelectPostprocessor(top_n=6, embed_model=model if without else None)
    warned = pytest.warns(EmbeddingFallbackWarning, match=r"5 this time.*CountingEmbedding.*index=")
    with warned if without else nullcontext():
        assert ids_of(post.postprocess_nodes(scored(nodes), bundle())) == expected(ALL, 6)
    assert ids_of(await post.apostprocess_nodes(scored(nodes), bundle())) == expected(ALL, 6)
    assert model.texts == 2 * TEXTS[:without]
    assert model.asynchronous == TEXTS[:without]
    assert ("CountingEmbedding" in post.vector_source) == bool(without)


async def test_a_cache_of_embeddings_embeds_each_text_once(model: CountingEmbedding) -> None:
    model.embeddings_cache = SimpleKVStore()
    post = SetSelectPostprocessor(embed_model=model)
    nodes = scored(make_nodes())
    # A warning would be an error here. Each text is embedded once.
    picked = ids_of(post.postprocess_nodes(nodes, bundle()))
    assert len(model.texts) == len(TEXTS)
    assert ids_of(post.postprocess_nodes(nodes, bundle())) == picked == expected(ALL, 4)
    assert ids_of(await post.apostprocess_nodes(nodes, bundle())) == picked
    assert len(model.texts) == len(TEXTS), "the second and third calls use the cache"


async def test_a_reader_serves_subclasses_sync_and_async(model: CountingEmbedding) -> None:
    class Remote(PlainStore):
        pass

    class Child(Remote):
        pass

    called: list[str] = []

    def stored(store: Any, node_ids: Sequence[str], index: Any) -> dict[str, ArrayLike]:
        called.append(f"sync {type(store).__name__}")
        return {i: np.asarray(embedding(TEXTS[int(i[1:])]), np.float16) for i in node_ids}

    async def astored(store: Any, node_ids: Sequence[str], index: Any) -> dict[str, ArrayLike]:
        called.append(f"async {type(store).__name__}")
        return {i: store.get(i) for i in node_ids}

    register_vector_source(Remote, stored, afunction=astored)
    storage = StorageContext.from_defaults(vector_store=Child())
    retriever = SetSelectIndexRetriever(VectorStoreIndex(make_nodes(), storage_context=storage, embed_model=model))
    assert retriever.vector_source == "store: Child"
    assert len(await retriever.aretrieve(bundle())) == len(retriever.retrieve(bundle())) == 4
    assert called == ["async Child", "sync Child"]
    with pytest.raises(InvalidParameterError, match="store_class"):
        register_vector_source(Remote(), stored)  # type: ignore[arg-type]


def test_fallback_warns_once_per_store_class(
    model: CountingEmbedding, nodes: list[NodeWithScore], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unknown(PlainStore):
        pass

    class OtherUnknown(PlainStore):
        pass

    monkeypatch.delitem(vectors._READERS, "llama_index.core.vector_stores.simple.SimpleVectorStore")
    for store, word in ((Unknown(), " Unknown.*register_vector_source"), (OtherUnknown(), "OtherUnknown"), (None, "")):
        index = None if store is None else over(store)
        post = SetSelectPostprocessor(index=index, embed_model=model)
        assert ("no vector reader" in post.vector_source) == (store is not None)
        with pytest.warns(EmbeddingFallbackWarning, match=word):
            post.postprocess_nodes(nodes, bundle())
        # A second warning would be an error here.
        post.postprocess_nodes(nodes, bundle())
        SetSelectPostprocessor(index=index, embed_model=model).postprocess_nodes(nodes, bundle())


def test_settings_model_is_used_if_set(
    model: CountingEmbedding, nodes: list[NodeWithScore], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(VectorSourceError, match="embed_model="):
        SetSelectPostprocessor().postprocess_nodes(nodes, bundle())
    assert Settings._embed_model is None, "LlamaIndex's default model must not be resolved"
    monkeypatch.setattr(Settings, "_embed_model", model)
    with pytest.warns(EmbeddingFallbackWarning):
        chosen = SetSelectPostprocessor().postprocess_nodes(nodes, query_str=QUERY)
    assert ids_of(chosen) == expected(ALL, 4)
