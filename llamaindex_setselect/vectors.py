"""Where the vectors of nodes come from: the store, the nodes themselves or, if neither has them, the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.settings import Settings
from numpy.typing import NDArray

from shared_core import VectorSourceError
from shared_core.errors import warn
from shared_core.retrieval.events import warn_of_fallback
from shared_core.retrieval.flow import Flow, Step, gather
from shared_core.retrieval.inputs import check_instance, find_registered
from shared_core.signals.embedding_models import as_embeddings

from .stores import READERS, AsyncFetch, Fetch, VectorReader

# The key is a class, or the full name of a class whose package need not be installed.
_READERS: dict[type[Any] | str, VectorReader] = dict(READERS)


def register_vector_source(
    store_class: type[Any] | str,
    function: Fetch,
    *,
    afunction: AsyncFetch | None = None,
    on_node: bool = False,
    scope: Collection[str] = (),
) -> None:
    """Register a function that reads the vectors of a store, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class or its full name (``"package.module.Class"``); its subclasses are included.
    function : callable
        ``function(store, node_ids, index) -> {node_id: vector}``; ``index`` is the ``VectorStoreIndex``. Ids
        that the store does not know are left out.
    afunction : async callable, optional
        The async version of ``function``. Without it, ``function`` runs in a thread in async code.
    on_node : bool
        Whether the store's own search puts the vectors on the nodes, as ``node.embedding``. Then only nodes without
        one are looked up.
    scope : collection of str
        The arguments of a search that name a part of the store, such as a namespace. The functions get those of them
        that ``vector_store_kwargs`` holds.

    Examples
    --------
    >>> from llama_index.core.vector_stores import SimpleVectorStore
    >>> class MyStore(SimpleVectorStore):
    ...     pass
    >>> def stored(store, node_ids, index):
    ...     return {i: store.get(i) for i in node_ids if i in store.data.embedding_dict}
    >>> register_vector_source(MyStore, stored)
    """
    check_instance(store_class, (type, str), "store_class", ": pass a class or its full name")
    _READERS[store_class] = VectorReader(function, afunction, on_node, scope=scope)


def embed_as_queries(model: BaseEmbedding, texts: list[str]) -> Flow[NDArray[np.float64]]:
    """The embeddings of texts as queries, checked, shape (n, d)."""
    answer = yield Step(
        lambda: list(map(model.get_query_embedding, texts)),
        lambda: gather(map(model.aget_query_embedding, texts)),
    )
    return as_embeddings(answer, texts, f"{type(model).__name__}.get_query_embedding", np.float64)


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """Reads vectors of nodes from a store (with the index over it), or makes them with an embedding model."""

    index: VectorStoreIndex | None
    model: BaseEmbedding | None
    # Arguments of the store's search; the reader's ``scope`` says which of them its look-up takes.
    kwargs: Mapping[str, Any]

    @classmethod
    def of(
        cls, index: VectorStoreIndex | None, model: BaseEmbedding | None, kwargs: Mapping[str, Any] | None = None
    ) -> NodeVectors:
        """By default the model is the index's; without an index, the one set in ``Settings``."""
        if model is None:
            # Settings.embed_model would create LlamaIndex's default model, which needs an OpenAI key.
            model = Settings._embed_model if index is None else index._embed_model
        return cls(index, model, kwargs or {})

    @property
    def store(self) -> Any:
        """The store of the index."""
        return None if self.index is None else self.index.vector_store

    @property
    def reader(self) -> VectorReader | None:
        """The vector reader of the store; None if there is no store, or none is registered for it."""
        return find_registered(_READERS, type(self.store))

    @property
    def words(self) -> str:
        """Where the vectors will come from, for ``vector_source``."""
        if self.reader is not None:
            return f"store: {type(self.store).__name__}"
        how = f"node embeddings or embedding with {type(self.model).__name__}"
        if self.model is None:
            how = "node embeddings only: there is no embed_model"
        return how if self.store is None else f"{how}; no vector reader is registered for {type(self.store).__name__}"

    def need_model(self) -> BaseEmbedding:
        """The embedding model, or an error that names the arguments for one."""
        if self.model is None:
            raise VectorSourceError(
                "there is no embedding model: pass embed_model= with the model that filled the store, or index=, or "
                "set Settings.embed_model"
            )
        return self.model

    @property
    def model_name(self) -> str:
        """The class of the embedding model; empty if there is none, or it keeps what it has embedded."""
        return "" if self.model is None or self.model.embeddings_cache is not None else type(self.model).__name__

    def embed(self, texts: list[str]) -> Flow[Any]:
        """The vectors of texts, shape (n, d)."""
        model = self.need_model()
        answer = yield Step(
            partial(model.get_text_embedding_batch, texts), partial(model.aget_text_embedding_batch, texts)
        )
        return as_embeddings(answer, texts, f"{type(model).__name__}.get_text_embedding_batch")

    def fetch(
        self, nodes: Sequence[NodeWithScore], *, embed_unknown: bool = False
    ) -> Flow[tuple[Sequence[NodeWithScore], list[str], list[Any]]]:
        """The nodes, each id once, with their ids and their vectors, row by row.

        ``embed_unknown``: nodes of any retriever, which the store may never have held, are embedded. After the store's
        own search, a node without a vector has been deleted since. It is left out with a warning.
        """
        by_id: dict[str, NodeWithScore] = {}
        for scored in nodes:
            by_id.setdefault(scored.node.node_id, scored)
        reader = self.reader
        own = {name: scored.node.embedding for name, scored in by_id.items() if scored.node.embedding is not None}
        on_node = reader is not None and reader.on_node
        stored = yield from self._look_up([name for name in by_id if not (on_node and name in own)])
        vectors: dict[str, Any] = {**own, **stored}
        missing = [scored.node for name, scored in by_id.items() if name not in vectors]
        if missing and (reader is None or (embed_unknown and self.model is not None)):
            self._warn(self.need_model(), len(missing))
            texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in missing]
            vectors |= zip((node.node_id for node in missing), (yield from self.embed(texts)), strict=True)
        elif missing:
            warn(
                f"{type(self.store).__name__} has no vector for {len(missing)} of {len(by_id)} nodes: they were "
                "deleted since the search, or come from another index. They are left out: "
                f"{', '.join(repr(node.node_id) for node in missing)}"
            )
        ids = [name for name in by_id if name in vectors]
        return [by_id[name] for name in ids], ids, [vectors[name] for name in ids]

    def look_up(self, nodes: Sequence[NodeWithScore]) -> Flow[list[Any]]:
        """The vectors of nodes of any retriever, None if the store has none.

        A node's own vector counts only where no vector reader is registered: another index may have another model.
        """
        if self.reader is None:
            return [scored.node.embedding for scored in nodes]
        ids = [scored.node.node_id for scored in nodes]
        stored = yield from self._look_up(ids)
        return [stored.get(name) for name in ids]

    def _look_up(self, ids: Sequence[str]) -> Flow[Mapping[str, Any]]:
        """The vectors that the store has under these ids, by id."""
        reader = self.reader
        if reader is None or not ids:
            return {}
        where = {key: value for key, value in self.kwargs.items() if key in reader.scope}
        arguments = self.store, ids, self.index
        stored: Mapping[str, Any] = yield Step(
            partial(reader.fetch, *arguments, **where),
            None if reader.afetch is None else partial(reader.afetch, *arguments, **where),
        )
        return stored

    def _warn(self, model: BaseEmbedding, number: int) -> None:
        # A model with a cache embeds each text only once, so there is no repeated cost to warn about.
        if model.embeddings_cache is not None:
            return
        kind = None if self.store is None else type(self.store)
        why = "there is no store" if kind is None else f"no vectors of them can be read from {kind.__name__}"
        why += ": pass index= with the store that holds them, or call register_vector_source"
        warn_of_fallback(("LlamaIndex", kind), number, type(model).__name__, why)
