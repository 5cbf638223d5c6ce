"""setselect for LlamaIndex: the best set of nodes, not the k nearest ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError('llamaindex_setselect needs LlamaIndex: pip install "setselect[llamaindex]"') from error

# If another shared_core is found first, this raises the error that names it.
import setselect  # noqa: F401

from .example_selector import SetSelectExampleSelector
from .perspective import extractor_from_llm
from .postprocessor import SetSelectPostprocessor
from .retriever import SetSelectIndexRetriever
from .tools import SetSelectToolRetriever
from .vectors import register_vector_source
from .words import WordRetriever

if TYPE_CHECKING:
    from .compare import compare_index, diagnose_index
    from .retriever_tool import create_setselect_tool

__all__ = [
    "SetSelectExampleSelector",
    "SetSelectIndexRetriever",
    "SetSelectPostprocessor",
    "SetSelectToolRetriever",
    "WordRetriever",
    "compare_index",
    "create_setselect_tool",
    "diagnose_index",
    "extractor_from_llm",
    "register_vector_source",
]


# A comparison and an agent need packages and time that a retriever does not need.
_IMPORTED_AT_FIRST_USE = {
    "compare_index": "compare",
    "create_setselect_tool": "retriever_tool",
    "diagnose_index": "compare",
}


def __getattr__(name: str) -> Any:
    if name not in _IMPORTED_AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_IMPORTED_AT_FIRST_USE[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
