"""What the words of the question, and the values of ``cover``, change in each class of both adapters."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import ImageNode, MetadataMode, NodeWithScore, QueryBundle, TextNode

from langchain_setselect import SetSelectExampleSelector
from llamaindex_setselect import SetSelectPostprocessor
from setselect import Coverage, select
from tests.adapters.bindings import (
    QUERY,
    ROWS,
    SUBJECTS,
    VECTORS,
    Subject,
    expected,
    falling,
    nearest,
    numbers,
    over,
)
from tests.embedding import embed
from tests.langchain_setselect.conftest import WordEmbeddings
from tests.llamaindex_setselect.nodes_and_indexes import embedding

OVER_ALL_CLASSES = over(SUBJECTS)
LAST = 19


@OVER_ALL_CLASSES
@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How old is the ENGINE?", "its engine, and more"),
        ("does numpy.fft.rfft2 scale", "see rfft2"),
        ("运河有多长", "大运河的历史"),
    ],
)
async def test_a_text_with_a_rare_word_of_the_question_is_found(subject: Subject, question: str, words: str) -> None:
    rows = falling([*(f"passage {i}" for i in range(LAST)), words], question)
    store = subject.open(rows, subject.kinds[0])
    assert LAST in numbers(subject.run(subject.make(store, k=3), rows, query=question))
    for selector in (Coverage(word_weight=0), "ndpp"):
        assert numbers(subject.run(subject.make(store, k=3, selector=selector), rows, query=question)) == [0, 1, 2]


@OVER_ALL_CLASSES
def test_each_value_of_cover_gets_its_place_and_an_item_may_have_several(subject: Subject) -> None:
    labels = [["a"], ["a", "b"], ["a"], ["a"], ["c", "b"], [], ["b"], None] * 3
    rows = [row._replace(metadata={**row.metadata, "label": labels[i]}) for i, row in enumerate(ROWS[:20])]
    store, order = subject.open(rows, subject.kinds[0]), nearest(20, among=range(20))
    found = [
        numbers(subject.run(subject.make(store, cover="label", selector=selector), [rows[i] for i in order]))
        for selector in (Coverage(cover_weight=0), Coverage(cover_weight=2))
    ]
    assert found == [expected(order, cover=[labels[i] for i in order], cover_weight=weight) for weight in (0, 2)]
    covered = [{label for row in picks for label in labels[row] or ()} for picks in found]
    assert covered[0] < covered[1] == {"a", "b", "c"}


# Which words count


EXAMPLES = [{"question": row.text, "answer": QUERY if i % 3 else "", "number": i} for i, row in enumerate(ROWS)]


def test_the_words_of_an_example_are_those_of_its_inputs() -> None:
    ours = SetSelectExampleSelector.from_examples(
        EXAMPLES, WordEmbeddings(), InMemoryVectorStore, input_keys=["question"], fetch_k=60
    )
    inputs = {"question": QUERY, "answer": "old red bread"}
    assert numbers(ours.select_examples(inputs)) == expected(nearest(60))


def postprocessed(nodes: list[Any], question: str = QUERY, **settings: Any) -> list[str]:
    bundle = QueryBundle(question, embedding=embedding(QUERY))
    found = SetSelectPostprocessor(**settings).postprocess_nodes([NodeWithScore(node=node) for node in nodes], bundle)
    return [node.node_id for node in found]


def test_a_node_is_matched_by_the_text_that_was_embedded() -> None:
    nodes = [
        TextNode(text=row.text, id_=row.id, metadata={"title": "hidden engine" if i % 5 else "", "note": QUERY})
        for i, row in enumerate(ROWS)
    ]
    for node in nodes:
        node.excluded_embed_metadata_keys = ["note"]
        node.embedding = embedding(node.get_content(MetadataMode.EMBED))
    texts = [node.get_content(MetadataMode.EMBED) for node in nodes]
    vectors = [node.embedding for node in nodes]
    wanted = select(embedding(QUERY), vectors, 4, question=QUERY, texts=texts).indices
    assert postprocessed(nodes) == [ROWS[row].id for row in wanted]
    assert list(wanted) != list(
        select(embedding(QUERY), vectors, 4, question=QUERY, texts=[r.text for r in ROWS]).indices
    )


def test_a_query_without_words_and_nodes_without_texts_are_selected_by_their_vectors() -> None:
    named = [TextNode(text=row.text, id_=row.id, embedding=row.vector.tolist()) for row in ROWS]
    empty = [TextNode(id_=row.id, embedding=row.vector.tolist()) for row in ROWS[:30]]
    empty += [ImageNode(id_=row.id, image="0", embedding=row.vector.tolist()) for row in ROWS[30:]]
    by_vectors = [f"doc-{row}" for row in expected(range(60), question="")]
    for nodes, question in ((named, ""), (named, "?!"), (empty, QUERY)):
        assert postprocessed(nodes, question) == by_vectors
    assert postprocessed(named) != by_vectors
    assert select(embed(QUERY), VECTORS, 4).indices.tolist() == [int(name[4:]) for name in by_vectors]
