"""The memory of an agent's retriever tool: the names of what its calls returned, and calls at the same time."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from weakref import WeakKeyDictionary

# What a tool says in place of texts.
NOTHING_NEW = "Nothing new was found for this query."
EMPTY_QUERY = "The query is empty: say in words what to look for."

_TEXT = "setselect-text:"
# A step of an agent is forgotten after so many later ones; its calls have long returned.
_STEPS = 1_000


def name_of_text(text: str) -> str:
    """The name by which ``shown`` recognises a text under any id."""
    return _TEXT + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def is_name_of_text(name: Hashable) -> bool:
    """Whether ``shown`` compares this name with texts, and not with ids."""
    return str(name).startswith(_TEXT)


def name_items(
    ids: Iterable[Hashable], texts: Iterable[str], *, by_id: bool, joined: Iterable[Sequence[str] | None] | None = None
) -> list[str]:
    """The names by which ``shown`` recognises items: those of their texts, or with ``by_id`` their ids.

    An item without a text has its id, and one without an id that of its text. An item that was ``joined`` has the names
    of its parts.
    """
    names: list[str] = []
    for item_id, text, parts in zip(ids, texts, repeat(None) if joined is None else joined, strict=False):
        if parts is not None:
            names += parts
        elif text and (item_id is None or not by_id):
            names.append(name_of_text(text))
        elif item_id is not None:
            names.append(str(item_id))
    return names


class ParallelCalls:
    """Calls that may run at the same time, such as those of one message. They search one after another.

    ``names`` holds what each call returned, by the id of the call. A call that runs again replaces its names.
    """

    def __init__(self) -> None:
        self.names: dict[Hashable, list[str]] = {}
        self.alone = threading.Lock()
        # A lock of asyncio belongs to one event loop.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def alone_async(self) -> asyncio.Lock:
        """The lock that a call holds while it runs in async code; ``alone`` is the one of sync code."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def names_of_others(self, call: Hashable) -> list[str]:
        """What the other calls returned."""
        return [name for other, names in self.names.items() if other != call for name in names]


class RecentSteps:
    """The calls of each recent step of the agents that use a tool, by a key of the step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: OrderedDict[Hashable, ParallelCalls] = OrderedDict()

    def calls_of(self, step: Hashable) -> ParallelCalls:
        """The calls of this step: the same object for each of them."""
        with self._lock:
            calls = self._calls.setdefault(step, ParallelCalls())
            self._calls.move_to_end(step)
            if len(self._calls) > _STEPS:
                self._calls.popitem(last=False)
            return calls
