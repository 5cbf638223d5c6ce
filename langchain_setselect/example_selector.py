"""Few-shot examples for LangChain prompts, selected as a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors.base import BaseExampleSelector
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from shared_core.retrieval import (
    SETTINGS,
    Flow,
    check_spelling,
    join_values,
    parameter_names,
    run_flow,
    run_flow_async,
)

from .retriever import RAISE_FETCH_K, Positive, SelectionSettings, SetSelectRetriever, Setting


class SetSelectExampleSelector(SelectionSettings, BaseExampleSelector):
    """Selects the best *set* of examples for a prompt; replaces ``SemanticSimilarityExampleSelector``.

    Parameters
    ----------
    vectorstore : VectorStore
        Holds the examples. Their text is embedded, and the example itself is the metadata (:meth:`from_examples` does
        this).
    k : int
        How many examples, 4 by default; with a ``budget`` and no ``k``, as many as fit.
    example_keys : list of str, optional
        The keys of an example to return; by default all.
    input_keys : list of str, optional
        Which inputs are embedded; by default all. The embedding of a stored example is that of its values under these
        keys.
    order : {"selection", "relevance", "nearest_last", "long_context"}
        Order of the result: as selected, the most relevant first, the most relevant last (next to the question), or
        the most relevant at both ends.
    relevance, quality, costs, source : str, callable or mapping, optional
        A key of the example, or a function of the example: ``costs=lambda e: len(tokenizer.encode(e["answer"]))``.
    vectorstore_kwargs : dict, optional
        Arguments of the store's search (``filter``, for example), which go to it unchanged.
    search_type, search_kwargs, fetch_k and further settings
        See :class:`SetSelectRetriever`. An example never contains scores, so ``scores`` has no effect.

    Raises
    ------
    InvalidParameterError
        A parameter is unknown or out of range.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> examples = [{"question": f"{i} + {i}", "answer": str(2 * i)} for i in range(9)]
    >>> selector = SetSelectExampleSelector.from_examples(
    ...     examples, DeterministicFakeEmbedding(size=8), InMemoryVectorStore, k=2, input_keys=["question"]
    ... )
    >>> len(selector.select_examples({"question": "3 + 3"}))
    2
    """

    vectorstore: VectorStore
    example_keys: list[str] | None = None
    input_keys: list[str] | None = None
    vectorstore_kwargs: dict[str, Any] | None = None
    fetch_k: Setting[Positive | None] = None

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
        """Put examples into a new store and select from them. Arguments that are not settings go to ``from_texts``.

        Raises
        ------
        InvalidParameterError
            A setting is wrong, or an example lacks one of ``input_keys``.
        """
        own, rest, texts = cls._split(examples, k, input_keys, settings)
        store = vectorstore_cls.from_texts(texts, embeddings, metadatas=[dict(e) for e in examples], **rest)
        return cls(vectorstore=store, **own)

    @classmethod
    async def afrom_examples(
        cls,
        examples: Sequence[dict[str, Any]],
        embeddings: Embeddings,
        vectorstore_cls: type[VectorStore],
        k: int | None = None,
        input_keys: list[str] | None = None,
        **settings: Any,
    ) -> Self:
        """The async version of :meth:`from_examples`."""
        own, rest, texts = cls._split(examples, k, input_keys, settings)
        store = await vectorstore_cls.afrom_texts(texts, embeddings, metadatas=[dict(e) for e in examples], **rest)
        return cls(vectorstore=store, **own)

    @classmethod
    def _split(
        cls, examples: Sequence[dict[str, Any]], k: int | None, keys: list[str] | None, settings: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """The selector's settings, the arguments of the store's ``from_texts``, and the texts to embed."""
        known = {*cls.model_fields, *SETTINGS, *parameter_names()}
        own = {name: value for name, value in settings.items() if name in known} | {"input_keys": keys}
        if k is not None:
            own["k"] = k
        rest = {name: value for name, value in settings.items() if name not in known}
        # A store that takes any argument would ignore a misspelt setting.
        check_spelling(rest)
        return own, rest, [join_values(example, keys) for example in examples]

    @override
    def add_example(self, example: dict[str, str]) -> str:
        return self.add_examples([example])[0]

    @override
    async def aadd_example(self, example: dict[str, str]) -> str:
        return (await self.aadd_examples([example]))[0]

    def add_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """Add examples in one call to the store; returns their ids."""
        texts = [join_values(example, self.input_keys) for example in examples]
        return self.vectorstore.add_texts(texts, metadatas=[dict(example) for example in examples])

    async def aadd_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """The async version of :meth:`add_examples`."""
        texts = [join_values(example, self.input_keys) for example in examples]
        return await self.vectorstore.aadd_texts(texts, metadatas=[dict(example) for example in examples])

    @override
    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return run_flow(self._select(input_variables))

    @override
    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return await run_flow_async(self._select(input_variables))

    @property
    def vector_source(self) -> str:
        """Where the examples' vectors will come from, in words."""
        return self._retriever().vector_source

    def _select(self, input_variables: dict[str, str]) -> Flow[list[dict[str, Any]]]:
        text, retriever = join_values(input_variables, self.input_keys), self._retriever()
        request, _, store_kwargs = retriever._request(self.vectorstore_kwargs or {})
        self._warn_if_all_are_selected(request, request.fetch_k - len(request.shown), RAISE_FETCH_K)
        selected = yield from retriever._select(request, text, store_kwargs)
        documents = [document for document, _, _ in selected.arrange(request.order)]
        keys = self.example_keys
        return [
            {key: document.metadata[key] for key in keys} if keys else dict(document.metadata) for document in documents
        ]

    def _retriever(self) -> SetSelectRetriever:
        names = self.model_fields_set & SetSelectRetriever.model_fields.keys()
        settings = {name: getattr(self, name) for name in names}
        if self.selector is not None:
            settings.pop("search_type", None)
        settings["search_kwargs"] = {**self.search_kwargs}
        for given in (settings, settings["search_kwargs"]):
            for name in ("quality", "relevance", "costs", "source"):
                if callable(given.get(name)):
                    given[name] = _as_function_of_document(given[name])
        # The settings are those of this object, which are checked already.
        return SetSelectRetriever.model_construct(**settings)


def _as_function_of_document(function: Callable[[dict[str, Any]], Any]) -> Any:
    return lambda document: function(document.metadata)
