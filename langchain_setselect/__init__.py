"""setselect for LangChain: the best set of documents, not the k nearest ones."""

from typing import TYPE_CHECKING

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_setselect needs LangChain: pip install "setselect[langchain]"') from error

# If another shared_core is found first, this raises the error that names it.
import setselect  # noqa: F401
from shared_core.retrieval.extra import FilteredRetriever
from shared_core.retrieval.inputs import import_at_first_use

from .compressor import SetSelectCompressor
from .example_selector import SetSelectExampleSelector
from .perspective import extractor_from_chat_model
from .retriever import SetSelectRetriever
from .tools import aselect_tools, select_tools
from .vectors import register_vector_source
from .words import WordRetriever

if TYPE_CHECKING:
    from .compare import compare_store, diagnose_store
    from .middleware import SetSelectTools
    from .retriever_tool import create_setselect_tool

__all__ = [
    "FilteredRetriever",
    "SetSelectCompressor",
    "SetSelectExampleSelector",
    "SetSelectRetriever",
    "SetSelectTools",
    "WordRetriever",
    "aselect_tools",
    "compare_store",
    "create_setselect_tool",
    "diagnose_store",
    "extractor_from_chat_model",
    "register_vector_source",
    "select_tools",
]


# A comparison and an agent need packages and time that a retriever does not need.
__getattr__ = import_at_first_use(
    __name__,
    {
        "SetSelectTools": "middleware",
        "compare_store": "compare",
        "create_setselect_tool": "retriever_tool",
        "diagnose_store": "compare",
    },
)


def __dir__() -> list[str]:
    return __all__
