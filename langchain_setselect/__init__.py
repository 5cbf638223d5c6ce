"""setselect for LangChain: retrievers that choose the best set of documents, not the k nearest ones."""

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_setselect needs LangChain: pip install "setselect[langchain]"') from error

from .retriever import SetSelectRetriever
from .vectors import register_vector_source

__all__ = ["SetSelectRetriever", "register_vector_source"]
