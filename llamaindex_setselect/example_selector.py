"""Few-shot examples for LlamaIndex prompts, chosen as a set."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store.base import VectorStoreIndex
from llama_index.core.schema import BaseNode, NodeWithScore, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from shared_core import InvalidInputError, InvalidParameterError
from shared_core._validation import check_one_of
from shared_core.retrieval.items import ORDERS, ordered

from .retriever import SetSelectIndexRetriever


class SetSelectExampleSelector:
    """Chooses the best *set* of examples for a prompt; a function for a prompt template's ``function_mappings``.

    ``PromptTemplate("{examples}\\n\\nQ: {query_str}\\nA:", function_mappings={"examples": selector})`` asks it with
    the prompt's own variables whenever the prompt is formatted.

    Parameters
    ----------
    index : VectorStoreIndex
        Holds the examples: their text embedded, the example itself as metadata (:meth:`from_examples` does that).
    template : str
        How one example is written; its keys in braces: ``"Q: {question}\\nA: {answer}"``.
    separator : str
        What stands between two examples.
    input_variable : str
        The prompt's variable that examples are chosen for.
    order : {"selection", "relevance", "nearest_last"}
        Order of the result: as chosen, most similar first, or most similar last, next to the question.
    **options
        Those of :class:`SetSelectIndexRetriever` (``top_n``, ``fetch_k``, ``selector`` and its parameters,
        ``filters``, ``perspective``, ``budget``, ...). ``quality``, ``costs`` and ``source`` are a key of the
        example, or a function of the example; ``max_per_source`` needs ``source``; ``scores`` is off.

    Raises
    ------
    InvalidParameterError
        An option is unknown or out of range.
    InvalidInputError
        When called: the prompt has no ``input_variable``, or an example lacks a key of the template.

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

    def __init__(
        self,
        index: VectorStoreIndex,
        *,
        template: str,
        separator: str = "\n\n",
        input_variable: str = "query_str",
        order: str = "selection",
        **options: Any,
    ) -> None:
        self.template = template
        self.separator = separator
        self.input_variable = input_variable
        self.order = check_one_of(order, "order", ORDERS)
        self._input_keys: Sequence[str] | None = None
        self._index = index
        for name in ("quality", "costs", "source"):
            if callable(options.get(name)):
                options[name] = _OfNode(options[name])
        if options.get("max_per_source") is not None and options.get("source") is None:
            raise InvalidParameterError("max_per_source needs source=: a key of the example or a function of it")
        # An example's keys are its own: no score among them.
        self._retriever = SetSelectIndexRetriever(index, **{"scores": False, **options})

    @classmethod
    def from_examples(
        cls,
        examples: Sequence[dict[str, Any]],
        embed_model: BaseEmbedding,
        *,
        input_keys: Sequence[str],
        vector_store: BasePydanticVectorStore | None = None,
        **settings: Any,
    ) -> Self:
        """Put examples into a new index, embedded by their values under ``input_keys``, and choose from them.

        Raises
        ------
        InvalidParameterError
            As the class; or an example lacks one of ``input_keys``.
        """
        from llama_index.core import StorageContext

        storage = None if vector_store is None else StorageContext.from_defaults(vector_store=vector_store)
        nodes = [_node(example, input_keys) for example in examples]
        index = VectorStoreIndex(nodes, embed_model=embed_model, storage_context=storage)
        selector = cls(index, **settings)
        selector._input_keys = list(input_keys)
        return selector

    def add_examples(self, examples: Sequence[dict[str, Any]]) -> list[str]:
        """Add examples to the index; their ids.

        Raises
        ------
        InvalidParameterError
            The selector was not made by :meth:`from_examples`, so nobody knows which keys are embedded.
        """
        if self._input_keys is None:
            raise InvalidParameterError("add_examples needs to know input_keys: make the selector with from_examples")
        nodes = [_node(example, self._input_keys) for example in examples]
        self._index.insert_nodes(nodes)
        return [node.node_id for node in nodes]

    def select_examples(self, query: str) -> list[dict[str, Any]]:
        """The examples for a query, in the order asked for."""
        return self._examples(self._retriever.retrieve(query))

    async def aselect_examples(self, query: str) -> list[dict[str, Any]]:
        """As :meth:`select_examples`."""
        return self._examples(await self._retriever.aretrieve(query))

    def __call__(self, **variables: Any) -> str:
        """The examples as text, for ``function_mappings``; none for an empty variable.

        LlamaIndex formats a prompt with empty variables to see how long it is.
        """
        if self.input_variable not in variables:
            raise InvalidInputError(
                f"the prompt has no variable {self.input_variable!r} to choose examples for; it has "
                f"{', '.join(variables) or 'none'}. Name it with input_variable="
            )
        query = str(variables[self.input_variable])
        return self.format(self.select_examples(query)) if query else ""

    def format(self, examples: Sequence[dict[str, Any]]) -> str:
        """Examples written with the template."""
        try:
            return self.separator.join(self.template.format(**example) for example in examples)
        except (KeyError, IndexError) as error:
            raise InvalidInputError(
                f"the template asks for {error.args[0]!r}, which an example lacks; write its keys in braces"
            ) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # PromptTemplate.partial_format copies its functions: without this, all examples and vectors with each query.
        return copy.copy(self)

    @property
    def vector_source(self) -> str:
        """Where the examples' vectors will come from, in words."""
        return self._retriever.vector_source

    def _examples(self, found: Sequence[NodeWithScore]) -> list[dict[str, Any]]:
        nodes = ordered(found, [node.score or 0.0 for node in found], self.order)
        return [dict(scored.node.metadata) for scored in nodes]


@dataclass(frozen=True)
class _OfNode:
    """A function of the example as one of the node; a lambda could not be pickled."""

    function: Callable[[dict[str, Any]], Any]

    def __call__(self, node: BaseNode) -> Any:
        return self.function(node.metadata)


def _node(example: dict[str, Any], input_keys: Sequence[str]) -> TextNode:
    try:
        # In the order of the keys' names, as the LangChain adapter has it.
        text = " ".join(str(example[key]) for key in sorted(input_keys))
    except KeyError as error:
        raise InvalidParameterError(f"input_keys asks for {error.args[0]!r}, there is {', '.join(example)}") from None
    # Only the text is embedded: the answer would be part of it otherwise.
    keys = list(example)
    return TextNode(
        text=text, metadata=dict(example), excluded_embed_metadata_keys=keys, excluded_llm_metadata_keys=keys
    )
