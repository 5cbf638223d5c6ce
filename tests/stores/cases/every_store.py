"""The cases of all stores."""

from importlib import import_module

from tests.stores.harness import LangChainCase, LlamaIndexCase

_NAMES = (
    *("local", "chroma", "qdrant", "lancedb", "postgres", "elasticsearch", "opensearch", "milvus", "pinecone"),
    *("azure_search", "weaviate"),
)
_MODULES = [import_module(f"tests.stores.cases.{name}") for name in _NAMES]
LANGCHAIN: list[LangChainCase] = [case for module in _MODULES for case in module.LANGCHAIN]
LLAMAINDEX: list[LlamaIndexCase] = [case for module in _MODULES for case in module.LLAMAINDEX]
