"""A vector store or an index in place of files: ``setselect compare --store module:attribute``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from .._validation import quoted
from ..errors import InvalidParameterError
from ..evaluation.diagnosis import Diagnosis
from ..evaluation.results import Comparison
from ..retrieval.inputs import find_registered
from ._terminal import import_attribute

_NEEDED = "a vector store of LangChain, a VectorStoreIndex of LlamaIndex, or a function that returns one"
# The adapter's functions for a store or an index, by the full name of its class. As in _vectors.py, import-linter
# cannot see the adapters' names.
_ADAPTERS: dict[type | str, tuple[str, str, str]] = {
    "langchain_core.vectorstores.base.VectorStore": ("langchain_setselect", "compare_store", "diagnose_store"),
    "llama_index.core.indices.vector_store.base.VectorStoreIndex": (
        "llamaindex_setselect", "compare_index", "diagnose_index",
    ),
}  # fmt: skip


class Store(NamedTuple):
    """A store or an index, and the functions of its adapter."""

    opened: Any
    compare: Callable[..., Comparison]
    diagnose: Callable[..., Diagnosis]


def load_store(given: str) -> Store:
    """The store or index that ``module:attribute`` names, or that the function of this name returns."""
    value = import_attribute("--store", given, _NEEDED)
    adapter = find_registered(_ADAPTERS, type(value))
    # A function of the user's may raise anything.
    if adapter is None and callable(value):
        try:
            value = value()
        except Exception as error:
            raise InvalidParameterError(f"--store: {given}() failed: {type(error).__name__}: {error}") from error
        adapter = find_registered(_ADAPTERS, type(value))
    if adapter is None:
        raise InvalidParameterError(f"--store: {given} must be {_NEEDED}, got {quoted(value)}")
    package, compare, diagnose = adapter
    functions = import_module(package)
    return Store(value, getattr(functions, compare), getattr(functions, diagnose))
