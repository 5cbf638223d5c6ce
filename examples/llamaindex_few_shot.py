"""LlamaIndex: few-shot examples selected as a set when the prompt is formatted, the nearest next to the question."""

from __future__ import annotations

from typing import Any

from _minilm import minilm
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.embeddings.langchain import LangchainEmbedding

from llamaindex_setselect import SetSelectIndexRetriever
from setselect import Coverage

SQL = {
    "How many users signed up last week?": "SELECT count(*) FROM users WHERE joined > now() - 7",
    "How many users signed up last month?": "SELECT count(*) FROM users WHERE joined > now() - 30",
    "How many users signed up yesterday?": "SELECT count(*) FROM users WHERE joined = now() - 1",
    "How many users signed up today?": "SELECT count(*) FROM users WHERE joined = now()",
    "Which customers bought a bicycle?": "SELECT DISTINCT buyer FROM orders WHERE item = 'bicycle'",
    "What is the average price per country?": "SELECT country, avg(price) FROM orders GROUP BY country",
    "Name the five most expensive orders.": "SELECT * FROM orders ORDER BY price DESC LIMIT 5",
    "Which users never ordered anything?": "SELECT id FROM users WHERE id NOT IN (SELECT buyer FROM orders)",
}
QUESTION = "How many of the users who signed up last week bought something, per country?"
BUDGET = 75


def tokens(example: Any) -> float:
    """The number of tokens, at about four characters each; the tokenizer of your model gives the exact number."""
    return (len(example.text) + len(example.metadata["sql"])) / 4


# Only the question is embedded. Metadata that is not excluded would be too.
nodes = [
    TextNode(text=question, metadata={"sql": sql}, excluded_embed_metadata_keys=["sql"])
    for question, sql in SQL.items()
]
# Without similarity_top_k only the budget limits the selection. Examples do not refer to each other.
retriever = SetSelectIndexRetriever(
    VectorStoreIndex(nodes, embed_model=LangchainEmbedding(minilm())),
    selector=Coverage(reference_weight=0),
    order="nearest_last",
    budget=BUDGET,
    costs=tokens,
)


def write_examples(query_str: str, **_: Any) -> str:
    """The examples for the question, as the prompt holds them."""
    found = retriever.retrieve(query_str)
    return "\n\n".join(f"Question: {node.text}\nSQL: {node.metadata['sql']}" for node in found)


# A query engine takes such a prompt as text_qa_template, with {context_str} added.
prompt = PromptTemplate(
    "Translate questions into SQL.\n\n{examples}\n\nQuestion: {query_str}\nSQL:",
    function_mappings={"examples": write_examples},
)
print(prompt.format(query_str=QUESTION))

selected = retriever.retrieve(QUESTION)
print(f"\n{len(selected)} examples, {sum(map(tokens, selected)):.0f} of {BUDGET} tokens")
