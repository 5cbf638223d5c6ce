"""LangChain's own standard tests for retrievers, once for each search type."""

from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_setselect import SetSelectRetriever
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory


class _Standard(RetrieversIntegrationTests):
    search_type: str

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SetSelectRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": in_memory(WordEmbeddings()), "search_type": self.search_type}

    @property
    def retriever_query_example(self) -> str:
        return "old river passage"


class TestSimilarity(_Standard):
    search_type = "similarity"


class TestVRSD(_Standard):
    search_type = "vrsd"


class TestMMR(_Standard):
    search_type = "mmr"


class TestNDPP(_Standard):
    search_type = "ndpp"
