"""Few-shot examples for LlamaIndex prompts, selected as a set."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from typing_extensions import override

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.retrieval.inputs import check_instance, join_examples

from .retriever import IndexSettings, SetSelectIndexRetriever, takes_fields_of


class ExampleSettings(IndexSettings):
    """The fields of :class:`SetSelectExampleSelector`."""

    template: str
    """The format of one example, with its keys in braces: ``"Q: {question}\\nA: {answer}"``."""

    separator: str = "\n\n"
    """The text between two examples."""

    input_variable: str = "query_str"
    """The prompt's variable that examples are selected for."""

    input_keys: Sequence[str] | None = None
    """The keys of an example whose values are embedded; needed to add examples."""

    _owner = "SetSelectExampleSelector"
    _refer_by_default = False
    _default_source = None

    @staticmethod
    @override
    def _view(scored: NodeWithScore) -> Any:
        return scored.node.metadata  # the example


class SetSelectExampleSelector(SetSelectIndexRetriever):
    """Selects the best *set* of examples for a prompt; a function for a prompt template's ``function_mappings``.

    Parameters
    ----------
    index : VectorStoreIndex
        Holds the examples. Their text is embedded, and the example itself is the metadata (:meth:`from_examples` does
        this).
    template, separator, input_variable, input_keys
        See :class:`ExampleSettings`.
    **options
        See :class:`SetSelectIndexRetriever`. A function gets the example. ``max_per_source`` needs ``source``. With
        ``scores=True`` the scores are further keys of the examples.

    Examples
    --------
    >>> from llama_index.core import MockEmbedding, PromptTemplate
    >>> selector = SetSelectExampleSelector.from_examples(
    ...     [{"question": "1 + 1", "answer": "2"}, {"question": "2 + 2", "answer": "4"}],
    ...     MockEmbedding(embed_dim=4), input_keys=["question"], template="{question} = {answer}", top_n=1,
    ... )
    >>> prompt = PromptTemplate("{examples}\\n{query_str} =", function_mappings={"examples": selector})
    >>> [line.endswith("=") for line in prompt.format(query_str="3 + 3").splitlines()]
    [False, True]
    """

    _fields = ExampleSettings

    if TYPE_CHECKING:
        template: str
        separator: str
        input_variable: str
        input_keys: Sequence[str] | None

        @takes_fields_of(ExampleSettings)
        def __init__(self, index: VectorStoreIndex, **options: Any) -> None: ...

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[dict[str, Any]],
        embed_model: BaseEmbedding,
        vector_store: BasePydanticVectorStore | None = None,
        **options: Any,
    ) -> Self:
        """Put examples into a new index, embedded by their values under ``input_keys``, and select from them.

        The index is in ``vector_store`` if that is given, else in memory.
        """
        check_instance(embed_model, BaseEmbedding, "embed_model")
        # The options are checked before the examples are embedded and stored.
        fields = ExampleSettings(**options)
        if not fields.input_keys:
            raise InvalidParameterError("from_examples needs input_keys: the keys whose values are embedded")
        nodes = _nodes(examples, fields.input_keys)
        storage = None if vector_store is None else StorageContext.from_defaults(vector_store=vector_store)
        return cls(VectorStoreIndex(nodes, embed_model=embed_model, storage_context=storage), **options)

    def add_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """Add examples to the index of a selector with ``input_keys``; returns their ids."""
        if self.input_keys is None:
            raise InvalidParameterError("add_examples needs input_keys: make the selector with from_examples")
        nodes = _nodes(examples, self.input_keys)
        self._index.insert_nodes(nodes)
        return [node.node_id for node in nodes]

    def select_examples(self, query: str) -> list[dict[str, Any]]:
        """The examples for a query, in the selector's ``order``."""
        return [dict(scored.node.metadata) for scored in self.retrieve(query)]

    async def aselect_examples(self, query: str) -> list[dict[str, Any]]:
        """The async version of :meth:`select_examples`."""
        return [dict(scored.node.metadata) for scored in await self.aretrieve(query)]

    def __call__(self, **variables: Any) -> str:
        """The examples as text, for ``function_mappings``; an empty text if the variable is empty.

        LlamaIndex formats a prompt with empty variables to measure its length.
        """
        if self.input_variable not in variables:
            raise InvalidInputError(
                f"the prompt has no variable {self.input_variable!r} to select examples for; it has "
                f"{', '.join(variables) or 'none'}. Name the variable with input_variable="
            )
        query = str(variables[self.input_variable])
        return self.format(self.select_examples(query)) if query else ""

    def format(self, examples: Sequence[dict[str, Any]]) -> str:
        """The examples in the template's format."""
        try:
            return self.separator.join(self.template.format(**example) for example in examples)
        except KeyError as error:
            (name,) = error.args
            lacking = next((example for example in examples if name not in example), {})
            raise InvalidInputError(
                f"the template has the key {name!r}, which an example lacks, whose keys are {', '.join(lacking)}: name "
                "only keys that all examples have"
            ) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # PromptTemplate.partial_format copies its functions. A deep copy would copy all examples and vectors per query.
        return copy.copy(self)


def _nodes(examples: Sequence[dict[str, Any]], input_keys: Sequence[str]) -> list[TextNode]:
    # Without the exclusions LlamaIndex would embed the metadata too, and with them the answer.
    return [
        TextNode(
            text=text,
            metadata=dict(example),
            excluded_embed_metadata_keys=list(example),
            excluded_llm_metadata_keys=list(example),
        )
        for example, text in zip(examples, join_examples(examples, input_keys), strict=True)
    ]
