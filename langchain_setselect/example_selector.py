"""Few-shot examples for LangChain prompts, selected as a set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors.base import BaseExampleSelector
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from shared_core import InvalidParameterError
from shared_core.retrieval.flow import Flow, Step, run_flow, run_flow_async
from shared_core.retrieval.inputs import check_instance, check_question, join_values
from shared_core.retrieval.request import read_some
from shared_core.retrieval.result import arrange

from ._settings import refuse_misspelt
from .retriever import SearchSettings


class SetSelectExampleSelector(SearchSettings, BaseExampleSelector):
    """Selects the best *set* of examples for a prompt; replaces ``SemanticSimilarityExampleSelector``.

    Parameters
    ----------
    vectorstore : VectorStore
        Holds the examples. Their text is embedded, and the example itself is the metadata (:meth:`from_examples` does
        this).
    example_keys : list of str, optional
        The keys of an example to return, with None for those that it lacks; by default all that it has.
    input_keys : list of str, optional
        Which inputs are embedded; by default all. What is missing (None, NaN) is left out.
    **settings
        As for :class:`SetSelectRetriever`. A function gets the example. ``scores`` has no effect. With
        ``order="nearest_last"`` the most relevant example is next to the question.

    Examples
    --------
    >>> from langchain_core import embeddings, vectorstores
    >>> examples = [{"question": f"{i} + {i}", "answer": str(2 * i)} for i in range(9)]
    >>> model, store_class = embeddings.DeterministicFakeEmbedding(size=8), vectorstores.InMemoryVectorStore
    >>> selector = SetSelectExampleSelector.from_examples(examples, model, store_class, k=2, input_keys=["question"])
    >>> len(selector.select_examples({"question": "3 + 3"}))
    2
    """

    example_keys: list[str] | None = None
    input_keys: list[str] | None = None

    _refer_by_default = False

    @staticmethod
    @override
    def _view(document: Document) -> Any:
        return document.metadata  # the example

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[dict[str, Any]],
        embeddings: Embeddings,
        vectorstore_cls: type[VectorStore],
        k: int | None = None,
        input_keys: list[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Put examples into a new store and select from them. Arguments that are not settings go to ``from_texts``."""
        return run_flow(cls._fill(examples, embeddings, vectorstore_cls, k, input_keys, **settings))

    @classmethod
    async def afrom_examples(cls, *arguments: Any, **settings: Any) -> Self:
        """The async version of :meth:`from_examples`, with the same arguments."""
        return await run_flow_async(cls._fill(*arguments, **settings))

    @classmethod
    def _fill(
        cls,
        examples: Any,
        embeddings: Any,
        vectorstore_cls: Any,
        k: Any = None,
        input_keys: Any = None,
        **settings: Any,
    ) -> Flow[Self]:
        check_instance(embeddings, Embeddings, "embeddings")
        if isinstance(vectorstore_cls, VectorStore):
            raise InvalidParameterError(
                f"vectorstore_cls must be the class of a store, got a {type(vectorstore_cls).__name__}. To select from "
                f"a store that holds examples: {cls.__name__}(vectorstore=...)"
            )
        settings |= {"input_keys": input_keys} if k is None else {"input_keys": input_keys, "k": k}
        rest = {name: settings.pop(name) for name in settings.keys() - cls.model_fields.keys()}
        refuse_misspelt(rest, cls.model_fields)
        texts = [join_values(example, input_keys, f"example {row}") for row, example in enumerate(examples)]
        rest["metadatas"] = [*map(dict, examples)]
        store: VectorStore = yield Step(
            partial(vectorstore_cls.from_texts, texts, embeddings, **rest),
            partial(vectorstore_cls.afrom_texts, texts, embeddings, **rest),
        )
        return cls(vectorstore=store, embeddings=embeddings, **settings)

    @override
    def add_example(self, example: dict[str, str]) -> str:
        text = join_values(example, self.input_keys, "the example")
        return self.vectorstore.add_texts([text], metadatas=[dict(example)])[0]

    @override
    async def aadd_example(self, example: dict[str, str]) -> str:
        text = join_values(example, self.input_keys, "the example")
        return (await self.vectorstore.aadd_texts([text], metadatas=[dict(example)]))[0]

    @override
    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return run_flow(self._examples(input_variables))

    @override
    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return await run_flow_async(self._examples(input_variables))

    def _examples(self, input_variables: dict[str, str]) -> Flow[list[dict[str, Any]]]:
        request, store_kwargs = self._configured
        question = join_values(input_variables, self.input_keys)
        for name in self.input_keys or input_variables:
            value = input_variables[name]
            parts = value if isinstance(value, list) else [value]
            if any(isinstance(part, (BaseMessage, PromptValue)) for part in parts):
                check_question(value)
        selected = yield from self._search(request, question, store_kwargs)
        examples = [dict(document.metadata) for document in arrange(request, selected, None)]
        if not self.example_keys:
            return examples
        for key in self.example_keys if selected.pool.items else ():
            read_some(selected.pool.items, key, "example_keys")  # warns of a key that none of them has
        return [{key: example.get(key) for key in self.example_keys} for example in examples]
