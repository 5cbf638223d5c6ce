"""Every store's cases, one line a store."""

from tests.stores import chroma_cases, local_cases
from tests.stores.harness import LangChainCase, LlamaIndexCase

_MODULES = (local_cases, chroma_cases)

LANGCHAIN: list[LangChainCase] = [case for module in _MODULES for case in module.LANGCHAIN]
LLAMAINDEX: list[LlamaIndexCase] = [case for module in _MODULES for case in module.LLAMAINDEX]
