"""setselect for LlamaIndex: the best set of nodes, not the k nearest ones."""

from typing import TYPE_CHECKING

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError('llamaindex_setselect needs LlamaIndex: pip install "setselect[llamaindex]"') from error

# If another shared_core is found first, this raises the error that names it.
import setselect  # noqa: F401
from shared_core.retrieval.extra import FilteredRetriever
from shared_core.retrieval.inputs import import_at_first_use

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
    "FilteredRetriever",
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
__getattr__ = import_at_first_use(
    __name__, {"compare_index": "compare", "create_setselect_tool": "retriever_tool", "diagnose_index": "compare"}
)


def __dir__() -> list[str]:
    return __all__
