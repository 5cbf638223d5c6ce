"""Where the vectors of nodes come from: the store, the nodes themselves or, if neither has them, the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.settings import Settings
from numpy.typing import ArrayLike

from shared_core import EmbeddingFallbackWarning, InvalidParameterError, VectorSourceError
from shared_core.errors import warn
from shared_core.retrieval.flow import Flow, Step
from shared_core.retrieval.lookup import find_registered
from shared_core.signals.embedding_models import as_embeddings

from .stores import READERS
from .stores.reader import AsyncFetch, Fetch, VectorReader

# The key is a class, or the full name of a class whose package need not be installed.
_READERS: dict[type[Any] | str, VectorReader] = dict(READERS)
_warned: set[type[Any] | None] = set()


def register_vector_source(
    store_class: type[Any] | str,
    function: Fetch,
    *,
    afunction: AsyncFetch | None = None,
    on_node: bool = False,
) -> None:
    """Register a function that reads the vectors of a store, so that no text is embedded again.

    Parameters
    ----------
    store_class : type or str
        The store's class, or its full name (``"package.module.Class"``), which is matched without an import of the
        class. Subclasses are included unless they have their own vector reader. A later registration replaces an
        earlier one.
    function : callable
        ``function(store, node_ids, index) -> {node_id: vector}``; ``index`` is the ``VectorStoreIndex`` or None. Ids
        that the store does not know are left out. If it knows all, an array of shape (n, d) with one row for each id
        is faster.
    afunction : async callable, optional
        The async version of ``function``. Without it, ``function`` runs in a thread in async code.
    on_node : bool
        True if the store's own search puts the vectors on the nodes, as ``node.embedding``. Then only nodes without
        one are looked up.

    Raises
    ------
    InvalidParameterError
        ``store_class`` is neither a class nor a name.

    Examples
    --------
    >>> from llama_index.core.vector_stores import SimpleVectorStore
    >>> class MyStore(SimpleVectorStore):
    ...     pass
    >>> def stored(store, node_ids, index):
    ...     return {i: store.get(i) for i in node_ids if i in store.data.embedding_dict}
    >>> register_vector_source(MyStore, stored)
    """
    if not isinstance(store_class, (type, str)):
        raise InvalidParameterError(f"store_class must be a class or its full name, got {store_class!r}")
    _READERS[store_class] = VectorReader(function, afunction, on_node)


@dataclass(frozen=True, eq=False)
class NodeVectors:
    """Reads vectors of nodes from a store (with the index over it), or makes them with an embedding model."""

    store: Any
    index: VectorStoreIndex | None
    model: BaseEmbedding | None

    @classmethod
    def of(cls, index: VectorStoreIndex | None, store: Any, model: BaseEmbedding | None) -> NodeVectors:
        """By default the store and the model are the index's; without an index, the model set in ``Settings``."""
        if store is None and index is not None:
            store = index.vector_store
        if model is None:
            # Settings.embed_model would create LlamaIndex's default model, which needs an OpenAI key.
            model = Settings._embed_model if index is None else index._embed_model
        return cls(store, index, model)

    @property
    def reader(self) -> VectorReader | None:
        """The vector reader of the store; None if there is no store, or none is registered for it."""
        return find_registered(_READERS, type(self.store))

    @property
    def words(self) -> str:
        """Where the vectors will come from, for ``vector_source``."""
        if self.reader is not None:
            return f"store: {type(self.store).__name__}"
        how = (
            "node embeddings only: there is no embed_model"
            if self.model is None
            else f"node embeddings or embedding with {type(self.model).__name__}"
            if self.model.embeddings_cache is None
            else f"node embeddings, the embeddings_cache of {type(self.model).__name__}, or embedding with it"
        )
        if self.store is None:
            return how
        return f"{how}; no vector reader is registered for {type(self.store).__name__}"

    def need_model(self, purpose: str) -> BaseEmbedding:
        """The embedding model, or an error that names the arguments for one."""
        if self.model is None:
            raise VectorSourceError(
                f"there is no embedding model for {purpose}: pass embed_model= with the model that filled the store, "
                "or index=, or set Settings.embed_model"
            )
        return self.model

    def embed(self, texts: list[str], purpose: str) -> Flow[Any]:
        """The vectors of texts, shape (n, d); ``purpose`` says what they are in the error of :meth:`need_model`."""
        model = self.need_model(purpose)
        answer = yield Step(
            partial(model.get_text_embedding_batch, texts), partial(model.aget_text_embedding_batch, texts)
        )
        return as_embeddings(answer, texts, type(model).__name__)

    def fetch(
        self, nodes: Sequence[NodeWithScore], *, embed_unknown: bool = False
    ) -> Flow[tuple[Sequence[NodeWithScore], list[str], Any]]:
        """The nodes, each id once, with their ids and their vectors, row by row.

        Nodes that the store does not know are embedded, or left out with a warning. ``embed_unknown`` is True for
        nodes of any retriever, which the store may never have held. It is False after the store's own search: a node
        without a vector has been deleted since, and is left out.
        """
        first: dict[str, NodeWithScore] = {}
        for scored in nodes:
            first.setdefault(scored.node.node_id, scored)
        nodes, ids = [*first.values()], [*first]
        found: dict[str, ArrayLike] = {}
        reader, wanted = self.reader, ids
        if reader is not None and reader.on_node:
            wanted = [scored.node.node_id for scored in nodes if scored.node.embedding is None]
        if reader is not None and wanted:
            arguments = self.store, wanted, self.index
            stored = yield Step(
                partial(reader.fetch, *arguments),
                None if reader.afetch is None else partial(reader.afetch, *arguments),
            )
            if isinstance(stored, np.ndarray):
                if len(stored) != len(wanted):
                    raise VectorSourceError(
                        f"the vector reader of {type(self.store).__name__} returned {len(stored)} vectors for "
                        f"{len(wanted)} nodes: an array needs one row for each id; return a mapping if the store does "
                        "not know all of them"
                    )
                if wanted is ids:
                    return nodes, ids, stored
                stored = zip(wanted, stored, strict=True)
            if stored is None:
                name = type(self.store).__name__
                raise VectorSourceError(f"the vector reader of {name} returned None in place of vectors by id")
            found = dict(stored)
        found = yield from self._complete(nodes, ids, found, embed_unknown=embed_unknown)
        if len(found) < len(ids):
            nodes = [scored for scored, name in zip(nodes, ids, strict=True) if name in found]
            ids = [name for name in ids if name in found]
        return nodes, ids, [found[name] for name in ids]

    def _complete(
        self, nodes: Sequence[NodeWithScore], ids: Sequence[str], found: dict[str, ArrayLike], *, embed_unknown: bool
    ) -> Flow[dict[str, ArrayLike]]:
        """``found``, and vectors of the other nodes: those on the nodes, and embeddings of the texts of the rest."""
        unknown = [scored.node for scored, name in zip(nodes, ids, strict=True) if name not in found]
        found |= {node.node_id: node.embedding for node in unknown if node.embedding is not None}
        missing = [node for node in unknown if node.embedding is None]
        if not missing:
            return found
        if self.reader is not None and not (embed_unknown and self.model is not None):
            warn(
                f"{type(self.store).__name__} has no vector for {len(missing)} of {len(nodes)} nodes: they were "
                "deleted since the search, or come from another index. They are left out: "
                f"{', '.join(repr(node.node_id) for node in missing)}"
            )
            return found
        purpose = f"the texts of {len(missing)} nodes that have no stored vector"
        self._warn_once(self.need_model(purpose), len(missing))
        texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in missing]
        vectors = yield from self.embed(texts, purpose)
        found.update(zip((node.node_id for node in missing), vectors, strict=True))
        return found

    def _warn_once(self, model: BaseEmbedding, number: int) -> None:
        kind = None if self.store is None else type(self.store)
        # A model with a cache embeds each text only once, so there is no repeated cost to warn about.
        if kind in _warned or model.embeddings_cache is not None:
            return
        _warned.add(kind)
        if kind is None:
            why, remedy = "there is no store to read vectors from", "Pass index= or vector_store="
        elif self.reader is not None:
            why, remedy = f"{kind.__name__} does not know these nodes", "Pass the store that holds them"
        else:
            why = f"no vector reader is registered for {kind.__name__}"
            remedy = f"Call register_vector_source({kind.__name__}, ...)"
        warn(
            f"{why}: each query embeds the texts of its nodes again ({number} this time) with {type(model).__name__}. "
            f"{remedy} to avoid that cost",
            EmbeddingFallbackWarning,
        )
