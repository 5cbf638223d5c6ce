"""setselect for LangChain: the best set of documents, not the k nearest ones."""

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_setselect needs LangChain: pip install "setselect[langchain]"') from error

try:
    from shared_core import SetSelectError as _ours  # noqa: F401
except ImportError:
    # If another shared_core is found first, this raises the error that names it.
    import setselect  # noqa: F401

    raise

from .compare import compare_store
from .compressor import SetSelectCompressor
from .example_selector import SetSelectExampleSelector
from .perspective import extractor_from_chat_model
from .retriever import SetSelectRetriever
from .vectors import register_vector_source

__all__ = [
    "SetSelectCompressor",
    "SetSelectExampleSelector",
    "SetSelectRetriever",
    "compare_store",
    "extractor_from_chat_model",
    "register_vector_source",
]
