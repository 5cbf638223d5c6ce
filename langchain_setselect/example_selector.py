"""Few-shot examples for LangChain prompts, selected as a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors.base import BaseExampleSelector
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.retrieval.events import warn_of_foreign_examples
from shared_core.retrieval.flow import Flow, run_flow, run_flow_async
from shared_core.retrieval.inputs import (
    check_instance,
    check_question,
    join_examples,
    join_values,
    nearest_name,
    where_to_pass_parameters,
)
from shared_core.retrieval.request import read_some
from shared_core.retrieval.result import arrange

from .retriever import SearchSettings, text_of
from .vectors import reader_of


def _is_message(value: Any) -> bool:
    return isinstance(value, (BaseMessage, PromptValue))


class SetSelectExampleSelector(SearchSettings, BaseExampleSelector):
    """Selects the best *set* of examples for a prompt; replaces ``SemanticSimilarityExampleSelector``.

    Parameters
    ----------
    vectorstore : VectorStore
        Holds the examples. Their text is embedded, and the example itself is the metadata (:meth:`from_examples` does
        this).
    example_keys : list of str, optional
        The keys of an example to return; by default all. With them each example has all of these keys, with None for
        those that it lacks.
    input_keys : list of str, optional
        Which inputs are embedded; by default all. The embedding of a stored example is that of its values under these
        keys; what is missing (None, NaN) is left out.
    search_type, search_kwargs, k, vectorstore_kwargs, fetch_k, **settings
        See :class:`SelectionSettings` and :class:`Settings`. A function gets the example. An example never contains
        scores, so ``scores`` has no effect. With ``order="nearest_last"`` the most relevant example is next to the
        question.

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
    # The texts and the keys of the examples that the selector has added; None if the store was filled before.
    _texts: set[str] | None = PrivateAttr(default=None)
    _keys: frozenset[str] = PrivateAttr(default=frozenset())

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
        own, rest, texts = cls._split_arguments(examples, embeddings, vectorstore_cls, k, input_keys, settings)
        store = vectorstore_cls.from_texts(texts, embeddings, metadatas=[dict(e) for e in examples], **rest)
        return cls._over(store, embeddings, own)._remember(examples, texts)

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
        own, rest, texts = cls._split_arguments(examples, embeddings, vectorstore_cls, k, input_keys, settings)
        store = await vectorstore_cls.afrom_texts(texts, embeddings, metadatas=[dict(e) for e in examples], **rest)
        return cls._over(store, embeddings, own)._remember(examples, texts)

    @classmethod
    def _split_arguments(
        cls,
        examples: Sequence[dict[str, Any]],
        embeddings: Any,
        store_class: Any,
        k: int | None,
        keys: list[str] | None,
        settings: dict[str, Any],
    ) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        """The selector's settings, the arguments of the store's ``from_texts``, and the texts to embed."""
        check_instance(embeddings, Embeddings, "embeddings")
        if not isinstance(store_class, type):
            raise InvalidParameterError(
                f"vectorstore_cls must be the class of a store, got a {type(store_class).__name__}. To select from a "
                f"store that holds examples: {cls.__name__}(vectorstore=...)"
            )
        known = cls.model_fields
        own = {name: value for name, value in settings.items() if name in known} | {"input_keys": keys}
        if k is not None:
            own["k"] = k
        rest = {name: value for name, value in settings.items() if name not in known}
        for name in rest:
            near = nearest_name(name, known)
            # A store that takes any argument would ignore a misspelt setting.
            remedy = f"did you mean {near!r}?" if near else where_to_pass_parameters().get(name)
            if remedy is not None:
                raise InvalidParameterError(f"there is no {name!r}: {remedy}")
        texts = join_examples(examples, keys)
        for key in own.get("example_keys") or ():
            if examples and not any(key in example for example in examples):
                raise InvalidParameterError(f"example_keys names {key!r}, but no example has this key")
        return own, rest, texts

    @classmethod
    def _over(cls, store: VectorStore, embeddings: Embeddings, settings: dict[str, Any]) -> Self:
        # The store of langchain-lancedb does not tell its embeddings.
        more = {} if store.embeddings is not None else {"embeddings": embeddings}
        return cls(vectorstore=store, **more, **settings)

    def _remember(self, examples: Sequence[dict[str, Any]], texts: Sequence[str]) -> Self:
        """The selector, which knows that these examples are its own."""
        self._texts = {*(self._texts or ()), *texts}
        self._keys = self._keys.union(*examples)
        return self

    @override
    def add_example(self, example: dict[str, str]) -> str:
        return self.add_examples([example])[0]

    @override
    async def aadd_example(self, example: dict[str, str]) -> str:
        return (await self.aadd_examples([example]))[0]

    def add_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """Add examples in one call to the store; returns their ids."""
        return self.vectorstore.add_texts(self._read(examples), metadatas=[*map(dict, examples)])

    async def aadd_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """The async version of :meth:`add_examples`."""
        return await self.vectorstore.aadd_texts(self._read(examples), metadatas=[*map(dict, examples)])

    def _read(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """The texts of further examples."""
        texts = join_examples(examples, self.input_keys)
        if self._texts is not None:
            self._remember(examples, texts)
        return texts

    @override
    def select_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return run_flow(self._examples(input_variables))

    @override
    async def aselect_examples(self, input_variables: dict[str, str]) -> list[dict[str, Any]]:
        return await run_flow_async(self._examples(input_variables))

    def _examples(self, input_variables: dict[str, str]) -> Flow[list[dict[str, Any]]]:
        request, store_kwargs = self._configured
        question = join_values(input_variables, self.input_keys)
        values = [input_variables[name] for name in self.input_keys or input_variables]
        for value in values:
            if _is_message(value) or (isinstance(value, (list, tuple)) and any(map(_is_message, value))):
                check_question(value)
        if all(value is None for value in values):
            keys = ", ".join(input_variables) or "none"
            raise InvalidInputError(
                f"there is no text to select examples for; the keys of the input are {keys}. A prompt passes the "
                "variables that its input_variables name"
            )
        selected = yield from self._search(request, question, store_kwargs)
        found, reader = selected.pool.items, reader_of(self.vectorstore)
        warn_of_foreign_examples(self, map(text_of, found), self._texts, self.vectorstore)
        examples = [document.metadata for document in arrange(request, selected, lambda document, *_: document)]
        if self.example_keys:
            # A key that no example has is refused by from_examples; here it gives a warning.
            for key in self.example_keys if found and self._texts is None else ():
                read_some(found, key, "example_keys")
            return [{key: example.get(key) for key in self.example_keys} for example in examples]
        hidden = {*(reader.added_keys(self.vectorstore) if reader else ())} - self._keys
        return [{key: value for key, value in example.items() if key not in hidden} for example in examples]
