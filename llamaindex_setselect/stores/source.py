"""What a LlamaIndex store must be able to do for setselect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llama_index.core.indices.vector_store.base import VectorStoreIndex
from numpy.typing import ArrayLike

from shared_core.retrieval.request import WIDEST

VectorSource = Callable[[Any, Sequence[str], VectorStoreIndex | None], Mapping[str, ArrayLike]]
AsyncVectorSource = Callable[[Any, Sequence[str], VectorStoreIndex | None], Awaitable[Mapping[str, ArrayLike]]]


class Source(NamedTuple):
    """How a store looks vectors up by node id, and whether its own search leaves them on the nodes anyway."""

    fetch: VectorSource
    afetch: AsyncVectorSource | None = None
    on_node: bool = False
    # The most that the store gives at a time, beyond which a search is not widened unasked.
    widest: int = WIDEST
