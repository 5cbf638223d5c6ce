"""Few-shot examples for LangChain prompts, chosen as a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors.base import BaseExampleSelector
from langchain_core.vectorstores import VectorStore
from pydantic import Field
from typing_extensions import override

from shared_core import InvalidParameterError
from shared_core._validation import check_one_of
from shared_core.retrieval._names import CHOICE_KEYS, all_parameters, refuse_near_misses
from shared_core.retrieval.items import ORDERS, ordered

from ._settings import ChoiceSettings, Chosen
from .retriever import SetSelectRetriever


class SetSelectExampleSelector(ChoiceSettings, BaseExampleSelector):
    """Chooses the best *set* of examples for a prompt; stands where ``SemanticSimilarityExampleSelector`` stood.

    Parameters
    ----------
    vectorstore : VectorStore
        Holds the examples: their text embedded, the example itself as metadata (:meth:`from_examples` does that).
    k : int
        How many examples, 4 by default; with a ``budget`` and no ``k``, as many as fit.
    example_keys : list of str, optional
        Keys of an example to return; by default all.
    input_keys : list of str, optional
        Which inputs are embedded; by default all. For a stored example, its values under these keys.
    order : {"selection", "relevance", "nearest_last"}
        Order of the result: as chosen, most similar first, or most similar last, next to the question.
    quality, costs, source : str or callable, optional
        A key of the example, or a function of the example: ``costs=lambda e: len(tokenizer.encode(e["answer"]))``.
    vectorstore_kwargs : dict, optional
        What goes to the store's search unchanged, ``filter`` for one.
    search_type, selector, search_kwargs, perspective, perspective_vector, direction, corpus, embeddings
        As in :class:`SetSelectRetriever`.

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
    order: str = "selection"
    vectorstore_kwargs: dict[str, Any] | None = None
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, **settings: Any) -> None:
        check_one_of(settings.get("order", "selection"), "order", ORDERS)
        super().__init__(**settings)

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
        """Put examples into a new store and choose from them; what is no setting goes to ``from_texts``.

        Raises
        ------
        InvalidParameterError
            As the class; or an example lacks one of ``input_keys``.
        """
        own, rest = cls._split(settings, k, input_keys)
        texts = [_text(example, input_keys) for example in examples]
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
        """As :meth:`from_examples`."""
        own, rest = cls._split(settings, k, input_keys)
        texts = [_text(example, input_keys) for example in examples]
        store = await vectorstore_cls.afrom_texts(texts, embeddings, metadatas=[dict(e) for e in examples], **rest)
        return cls(vectorstore=store, **own)

    @override
    def add_example(self, example: dict[str, str]) -> str:
        return self.add_examples([example])[0]

    @override
    async def aadd_example(self, example: dict[str, str]) -> str:
        return (await self.aadd_examples([example]))[0]

    def add_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """Add examples in one call to the store; their ids."""
        texts = [_text(example, self.input_keys) for example in examples]
        return self.vectorstore.add_texts(texts, metadatas=[dict(e) for e in examples])

    async def aadd_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """As :meth:`add_examples`."""
        texts = [_text(example, self.input_keys) for example in examples]
        return await self.vectorstore.aadd_texts(texts, metadatas=[dict(e) for e in examples])

    @override
    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        text = _text(input_variables, self.input_keys)
        return self._examples(self._retriever()._choose(text, self.vectorstore_kwargs or {}))

    @override
    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        text = _text(input_variables, self.input_keys)
        return self._examples(await self._retriever()._achoose(text, self.vectorstore_kwargs or {}))

    @property
    def vector_source(self) -> str:
        """Where the examples' vectors will come from, in words."""
        return self._retriever().vector_source

    @classmethod
    def _split(
        cls, settings: dict[str, Any], k: int | None, input_keys: list[str] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        known = {*cls.model_fields, *CHOICE_KEYS, *all_parameters()}
        own = {name: value for name, value in settings.items() if name in known}
        own |= {"input_keys": input_keys} if k is None else {"input_keys": input_keys, "k": k}
        rest = {name: value for name, value in settings.items() if name not in known}
        # Stores that take any argument would swallow a misspelt one of ours.
        refuse_near_misses(rest)
        return own, rest

    def _retriever(self) -> SetSelectRetriever:
        settings = {name: getattr(self, name) for name in ChoiceSettings.model_fields if name != "scores"}
        if self.selector is not None:
            del settings["search_type"]
        # An example's keys are its own.
        settings["search_kwargs"] = {**self.search_kwargs, "scores": False}
        for given in (settings, settings["search_kwargs"]):
            for name in ("quality", "costs", "source"):
                if name in given:
                    given[name] = _of_document(given[name])
        return SetSelectRetriever(vectorstore=self.vectorstore, **settings)

    def _examples(self, chosen: Chosen) -> list[dict[str, Any]]:
        relevance = [] if chosen.selection is None else chosen.selection.relevance.tolist()
        examples = [dict(document.metadata) for document in ordered(chosen.documents, relevance, self.order)]
        if not self.example_keys:
            return examples
        return [{key: example[key] for key in self.example_keys} for example in examples]


def _of_document(value: Any) -> Any:
    """A function of an example as a function of the document that holds it; a key serves both."""
    if not callable(value):
        return value
    function: Callable[[dict[str, Any]], Any] = value
    return lambda document: function(document.metadata)


def _text(values: dict[str, Any], keys: list[str] | None) -> str:
    # As LangChain's own selectors make it, so that their stores serve here too.
    try:
        chosen = {key: values[key] for key in keys} if keys else values
    except KeyError as error:
        raise InvalidParameterError(f"input_keys asks for {error.args[0]!r}, there is {', '.join(values)}") from None
    return " ".join(str(chosen[key]) for key in sorted(chosen))
