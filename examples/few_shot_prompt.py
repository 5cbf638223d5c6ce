"""LangChain: few-shot examples selected as a set, as many as fit, with the nearest one next to the question."""

from __future__ import annotations

from typing import Any

from _minilm import minilm
from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectExampleSelector

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
EXAMPLES = [{"question": question, "sql": sql} for question, sql in SQL.items()]
QUESTION = "How many of the users who signed up last week bought something, per country?"
BUDGET = 75


def tokens(example: dict[str, Any]) -> float:
    """The number of tokens, at about four characters each; the tokenizer of your model gives the exact number."""
    return (len(example["question"]) + len(example["sql"])) / 4


# Replaces SemanticSimilarityExampleSelector.from_examples. Without k only the budget limits the selection.
selector = SetSelectExampleSelector.from_examples(
    EXAMPLES,
    minilm(),
    InMemoryVectorStore,
    input_keys=["question"],
    order="nearest_last",
    budget=BUDGET,
    costs=tokens,
)
prompt = FewShotPromptTemplate(
    example_selector=selector,
    example_prompt=PromptTemplate.from_template("Question: {question}\nSQL: {sql}"),
    prefix="Translate questions into SQL.",
    suffix="Question: {question}\nSQL:",
    input_variables=["question"],
)
print(prompt.format(question=QUESTION))

selected = selector.select_examples({"question": QUESTION})
print(f"\n{len(selected)} examples, {sum(map(tokens, selected)):.0f} of {BUDGET} tokens")
