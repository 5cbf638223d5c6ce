"""Whether anybody follows a call, which LlamaIndex does not ask before it makes spans and events."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from llama_index.core.instrumentation import (  # type: ignore[attr-defined]
    Dispatcher,
    NullEventHandler,
    NullSpanHandler,
)

_Method = TypeVar("_Method", bound=Callable[..., Any])
_DEAF = (NullEventHandler, NullSpanHandler)


def listening(dispatcher: Dispatcher) -> bool:
    """Whether a handler of this dispatcher, or of those above it, does anything.

    Examples
    --------
    >>> from llama_index.core.instrumentation import get_dispatcher
    >>> listening(get_dispatcher("llamaindex_setselect"))
    False
    """
    current = dispatcher
    while True:
        if any(type(handler) not in _DEAF for handler in (*current.event_handlers, *current.span_handlers)):
            return True
        if not current.propagate:
            return False
        current = current.parent


def without_span(method: _Method, dispatcher: Dispatcher) -> _Method:
    """``method`` without the span that LlamaIndex puts around it, unless somebody sees spans.

    Making one takes longer than a choice.

    Examples
    --------
    >>> from llama_index.core.instrumentation import get_dispatcher
    >>> without_span(len, get_dispatcher("llamaindex_setselect"))("abc")
    3
    """
    inner: Any = getattr(method, "__wrapped__", None)
    # A function would want the object as well; a method has it.
    silent: Any = inner if inspect.ismethod(inner) else method
    return method if listening(dispatcher) else silent
