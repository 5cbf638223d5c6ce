"""A vector store or an index in place of files: ``setselect compare --store module:attribute``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from .._validation import quoted
from ..errors import InvalidParameterError
from ..evaluation.diagnosis import Diagnosis
from ..evaluation.results import Comparison
from ..retrieval.inputs import find_registered

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
    """The store that ``module:attribute`` names. Modules in the current folder are found, as application servers do."""
    name, _, attribute = given.partition(":")
    if not name or not attribute:
        raise InvalidParameterError(
            f"--store must be module:attribute, got {quoted(given)}: in my_app.py assign {_NEEDED} to store, and write "
            "--store my_app:store"
        )
    sys.path.insert(0, str(Path.cwd()))
    # A module and a function of the user's may raise anything.
    try:
        module = import_module(name)
    except Exception as error:
        raise InvalidParameterError(
            f"--store: module {quoted(name)} cannot be imported in {Path.cwd()}: {type(error).__name__}: {error}"
        ) from error
    try:
        value = attrgetter(attribute)(module)
    except AttributeError:
        raise InvalidParameterError(
            f"--store: module {quoted(name)} has no {quoted(attribute)}: assign {_NEEDED} to it"
        ) from None
    adapter = find_registered(_ADAPTERS, type(value))
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
