"""setselect for LlamaIndex: the best set of nodes, not the k nearest ones."""

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError('llamaindex_setselect needs LlamaIndex: pip install "setselect[llamaindex]"') from error

try:
    from shared_core import SetSelectError as _ours  # noqa: F401
except ImportError:
    # If another shared_core is found first, this raises the error that names it.
    import setselect  # noqa: F401

    raise

from .compare import compare_index
from .example_selector import SetSelectExampleSelector
from .perspective import extractor_from_llm
from .postprocessor import SetSelectPostprocessor
from .retriever import SetSelectIndexRetriever
from .vectors import register_vector_source

__all__ = [
    "SetSelectExampleSelector",
    "SetSelectIndexRetriever",
    "SetSelectPostprocessor",
    "compare_index",
    "extractor_from_llm",
    "register_vector_source",
]
