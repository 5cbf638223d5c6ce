"""How each LangChain store searches and hands back what it stores: a module a store, none of which imports a client."""

from . import chroma, faiss, in_memory
from .source import Source

# By the full name of the store's class, so that a store whose package is missing costs nothing.
SOURCES: dict[type | str, Source] = {
    name: source for module in (in_memory, faiss, chroma) for name, source in module.SOURCES.items()
}
