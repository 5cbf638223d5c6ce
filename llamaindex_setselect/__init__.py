"""setselect for LlamaIndex: the best set of nodes, not the k nearest ones."""

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError('llamaindex_setselect needs LlamaIndex: pip install "setselect[llamaindex]"') from error

from .postprocessor import SetSelectPostprocessor
from .retriever import SetSelectIndexRetriever
from .vectors import register_vector_source

__all__ = ["SetSelectIndexRetriever", "SetSelectPostprocessor", "register_vector_source"]
