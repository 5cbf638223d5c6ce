"""LangChain's own standard tests for retrievers."""

from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_setselect import SetSelectRetriever
from tests.langchain_setselect.conftest import WordEmbeddings, in_memory


class TestStandard(RetrieversIntegrationTests):
    retriever_query_example = "old river passage"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SetSelectRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": in_memory(WordEmbeddings())}
