"""What a vector reader for a LlamaIndex store is, and the one that most stores need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from shared_core.errors import VectorSourceError
from shared_core.stores import WIDEST

Fetch = Callable[..., Mapping[str, ArrayLike]]
AsyncFetch = Callable[..., Awaitable[Mapping[str, ArrayLike]]]


class VectorReader(NamedTuple):
    """How a store looks vectors up by node id, with ``fetch(store, node_ids, index)``."""

    fetch: Fetch
    afetch: AsyncFetch | None = None
    # The store's own search leaves the vectors on the nodes.
    on_node: bool = False
    # The most hits that the store returns; no search of setselect asks for more.
    widest: int = WIDEST
    # The arguments of a search that name a part of the store, such as partitions. ``fetch`` takes them too.
    scope: Collection[str] = ()


def read_with_client(
    core: ModuleType,
    client: Callable[[Any], Any],
    aclient: Callable[[Any], Any] | None = None,
    arguments: Callable[..., dict[str, Any]] = lambda store: {},
    *,
    on_node: bool = False,
    scope: Collection[str] = (),
) -> VectorReader:
    """A reader that calls ``core.vectors_by_id`` or ``core.avectors_by_id`` with the store's sync or async client.

    ``arguments(store, **where)`` makes further arguments of these functions; ``where`` holds those of the ``scope``.
    """

    def fetch(store: Any, node_ids: Sequence[str], index: Any, **where: Any) -> Mapping[str, ArrayLike]:
        sync = client(store)
        if sync is None:
            raise VectorSourceError(
                f"{type(store).__name__} has no sync client: give it one, or use the async methods of setselect"
            )
        found: Mapping[str, ArrayLike] = core.vectors_by_id(sync, ids=node_ids, **arguments(store, **where))
        return found

    async def afetch(store: Any, node_ids: Sequence[str], index: Any, **where: Any) -> Mapping[str, ArrayLike]:
        awaited = aclient(store) if aclient else None
        if awaited is None:
            return await asyncio.to_thread(fetch, store, node_ids, index, **where)
        found: Mapping[str, ArrayLike] = await core.avectors_by_id(awaited, ids=node_ids, **arguments(store, **where))
        return found

    return VectorReader(fetch, afetch if aclient else None, on_node, getattr(core, "WIDEST", WIDEST), scope)
