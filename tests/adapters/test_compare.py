"""What ``compare`` picks for a setting is what each class of both adapters returns with this setting, in order.

The first cases are random: texts that refer to each other, their copies, metadata (titles, links and words that
LlamaIndex embeds with the text), sources and costs; and every setting that ``compare`` has.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from langchain_setselect import compare_store
from llamaindex_setselect import compare_index
from setselect import make_selector
from setselect.evaluation import compare, named
from shared_core.evaluation.corpus import Query
from shared_core.evaluation.results import Comparison
from shared_core.evaluation.settings import OF_ADAPTERS
from shared_core.retrieval import extra as word_search
from shared_core.texts.word_index import WordIndex
from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RETRIEVERS,
    ROWS,
    SUBJECTS,
    Row,
    Subject,
    _node,
    numbers,
    over,
    unit,
)
from tests.embedding import DIMENSION, TOPICS, TRAITS, embed

# The seeds of the cases. In these each rule of the copies decides a selection.
CASES = range(18, 31)
SETTINGS = 6
NAMES = ["Ada Lovelace", "Red Harbour", "Old Mountain", "Violin School", "Grand Hotel", "Bread Street", "Silver River"]
QUESTIONS = ("hidden northern harbour engine", "loud violin and old bread", "northern river engine")

COMPARE: dict[str, Callable[..., Comparison]] = {"LangChain": compare_store, "LlamaIndex": compare_index}

pytestmark = pytest.mark.filterwarnings("ignore:nothing fits into budget")


class Case(NamedTuple):
    """A corpus, queries, and settings: the arguments of ``named``."""

    rows: list[Row]
    queries: list[Query]
    settings: list[dict[str, Any]]
    k: int
    fetch_k: int
    drop_duplicates: bool

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of every comparison. With a second ``k`` it adds none of its own."""
        settings = [named(**setting) for setting in self.settings]
        sizes = {"k": [self.k, 1], "fetch_k": self.fetch_k}
        return {**sizes, "settings": settings, "drop_duplicates": self.drop_duplicates}


@functools.cache
def draw_case(seed: int) -> Case:
    """A random case. Only a search for all rows is combined with what makes a set short, since classes search wider."""
    rng = np.random.default_rng(seed)
    rows = _draw_rows(rng)
    searches_all = rng.random() < 0.5
    queries = [Query(text, text) for text in QUESTIONS]
    settings = [{"name": "similarity"}, *(_draw_setting(rng, limited=searches_all) for _ in range(SETTINGS))]
    # Another generator, so that the cases are the same with and without it.
    words = np.random.default_rng([seed, 1])
    for setting in settings[1:]:
        if words.random() < 0.4:
            setting["keyword_search"] = True
    fetch_k = len(rows) + 1 if searches_all else int(rng.integers(18, len(rows)))
    return Case(rows, queries, settings, int(rng.integers(2, 6)), fetch_k, bool(rng.random() < 0.8))


def _draw_rows(rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []
    for number in range(int(rng.integers(20, 30))):
        original = rows[rng.integers(min(len(rows), 6))] if rows and rng.random() < 0.4 else None
        name, other, third = rng.choice(NAMES, 3)
        words = " ".join(rng.choice([*TOPICS, *TRAITS], 4))
        text = [
            f"{name} has {words} like {other}.",
            f"# {name}\n\n{words.capitalize()} near {other} and {third}.",
            f"The {words} of {number} is not far from {other}.",
        ][rng.integers(3)]
        if original is not None:
            text = original.text
        metadata: dict[str, Any] = {
            "number": number,
            "source": f"s{rng.integers(4)}",
            "cost": int(rng.choice([1, 2, 4, 30])),
        }
        more = {
            "title": str(rng.choice(NAMES)),
            "file_name": f"{rng.choice(NAMES)}.md",
            "page": f"{rng.integers(99)}",
            "keywords": " ".join(rng.choice([*TOPICS, *TRAITS], 2)),
            "links": [f"doc-{rng.integers(30)}"],
            "url": f"https://example.org/{number}",
        }
        metadata |= {key: value for key, value in more.items() if rng.random() < 0.3}
        vector = embed(text) + rng.normal(size=DIMENSION)
        if original is not None and rng.random() < 0.5:
            # Nearly the same. Stores differ in how they order equal cosines.
            vector = original.vector + 1e-4 * rng.normal(size=DIMENSION)
        embedded, points = ("page", "keywords", "title"), bool(rng.random() < 0.1)
        rows.append(Row(f"doc-{number}", text, metadata, unit(vector), embedded_keys=embedded, points=points))
    return rows


def _draw_setting(rng: np.random.Generator, *, limited: bool) -> dict[str, Any]:
    def draw(probability: float, **choices: Sequence[Any]) -> dict[str, Any]:
        return {
            name: values[rng.integers(len(values))] for name, values in choices.items() if rng.random() < probability
        }

    name = ["coverage", "coverage", "coverage", "ndpp", "mmr", "vrsd", "similarity"][rng.integers(7)]
    own: dict[str, dict[str, Sequence[Any]]] = {
        "coverage": {"word_weight": [0.0, 0.5, 3.0], "reference_weight": [0.0, 1.0, 3.0], "ridge": [0.2]},
        "ndpp": {"relevance_mapping": ["linear", "exponential"]},
        "mmr": {"lambda_mult": [0.3, 0.8]},
    }
    setting = {"name": name, **draw(0.7, **own.get(name, {}))}
    if limited:
        setting |= draw(0.25, max_per_source=[1, 2], drop_near_duplicates=[0.5, 0.9], budget=[9.0, 20.0, 40.0])
        setting |= draw(0.25, score_threshold=[0.1, 0.3])
        if rng.random() < 0.25:
            setting |= {"min_gain": [0.3, 0.7][rng.integers(2)], **draw(0.5, min_k=[2])}
    return setting


@functools.cache
def compared(adapter: str, seed: int) -> Comparison:
    """What the ``compare`` of an adapter finds for a case."""
    case = draw_case(seed)
    return COMPARE[adapter](opened(adapter, seed), case.queries, **case.options)


@functools.cache
def opened(adapter: str, seed: int) -> Any:
    """The store or index of a case."""
    subject = next(subject for subject in SUBJECTS if subject.name.startswith(adapter))
    return subject.open(draw_case(seed).rows, subject.kinds[0])


def picks(comparison: Comparison, query: Query, label: str) -> list[str]:
    """The ids that a comparison picks for a query with the setting of this label."""
    view = next(view for view in comparison.queries if view.id == query.id)
    position = next(i for i, setting in enumerate(comparison.settings) if setting.label == label)
    return [view.candidates[i].id for i in view.picks[position]]


def returned(subject: Subject, seed: int, query: Query, setting: dict[str, Any]) -> list[str]:
    """The ids of what a class returns for a query with a setting of ``named``."""
    case = draw_case(seed)
    given = {key: value for key, value in setting.items() if key in OF_ADAPTERS}
    own = {key: value for key, value in setting.items() if key not in OF_ADAPTERS}
    given["selector"] = make_selector(**own)
    with_words = given.get("keyword_search", False)
    if not subject.searches:
        given.pop("keyword_search", None)
    given |= {"k": case.k, "drop_duplicates": case.drop_duplicates}
    if "max_per_source" in given:
        given["source"] = "source"
    if "budget" in given:
        given["costs"] = "cost"
    if subject.searches:
        given["fetch_k"] = case.fetch_k
    made = subject.make(opened(subject.name.partition("'")[0], seed), **given)
    rows = _found(subject, seed, query, with_words)
    return [f"doc-{number}" for number in numbers(subject.run(made, rows, query=query.text))]


def _found(subject: Subject, seed: int, query: Query, with_words: bool) -> list[Row]:
    """What a search for the question finds, and a search by words too."""
    case = draw_case(seed)
    vectors = np.array([row.vector for row in case.rows])
    searches = [np.argsort(-(vectors @ embed(query.text)), kind="stable")[: case.fetch_k]]
    if with_words:
        index = _word_index(isinstance(subject.item(case.rows[0]), NodeWithScore), seed)
        searches.append(index.best_rows(query.text, 25)[0])
    return [case.rows[row] for row in dict.fromkeys(np.concatenate(searches).tolist())]


@functools.cache
def _word_index(of_nodes: bool, seed: int) -> WordIndex:
    """An index of what was embedded: in LlamaIndex some keys of the metadata, too."""
    rows = draw_case(seed).rows
    embedded = [_node(row).get_content(MetadataMode.EMBED) for row in rows] if of_nodes else [row.text for row in rows]
    return WordIndex(embedded)


def by_text(case: Case, ids: Sequence[str]) -> list[str]:
    """The ids; where texts count once, the text in place of each, since a comparison has one id for all copies."""
    texts = {row.id: row.text for row in case.rows}
    return [texts[name] for name in ids] if case.drop_duplicates else [*ids]


@over(SUBJECTS)
@pytest.mark.parametrize("seed", CASES)
def test_a_class_returns_what_compare_picks(subject: Subject, seed: int) -> None:
    case = draw_case(seed)
    comparison = compared(subject.name.partition("'")[0], seed)
    for query in case.queries:
        for setting in case.settings:
            # Examples name each other only if a setting says so.
            if setting["name"] == "coverage" and setting.get("reference_weight", 1) == 1 and subject in EXAMPLES:
                continue
            # A reranker has no index of words, by which they weigh.
            if setting.get("keyword_search") and not subject.searches:
                continue
            ids, expected = returned(subject, seed, query, setting), picks(comparison, query, named(**setting)[0].label)
            assert by_text(case, ids) == by_text(case, expected), (query.text, setting)


# Over a store


def compare_over(subject: Subject, store: Any, queries: list[Any], **options: Any) -> Comparison:
    return COMPARE[subject.name.partition("'")[0]](store, queries, **options)


@over(RETRIEVERS)
def test_a_store_is_compared_by_its_texts_and_vectors(subject: Subject) -> None:
    queries: list[dict[str, Any]] = [
        {"text": QUERY, "gold": ["doc-5", "doc-3"]},
        {"text": "old bread", "gold": ["doc-2"]},
        {"text": "loud violin river"},
        {"text": "old engine", "gold": ["doc-2"]},
    ]
    store, sizes = subject.corpus(), {"k": 4, "fetch_k": 20}
    subject.model(store).counts()
    found = compare_over(subject, store, queries, model="words", title="A store", **sizes)
    assert subject.model(store).counts()[:2] == (4, 0), "each question is embedded once, and no text"
    documents = [{"id": row.id, "text": row.text} for row in ROWS]
    expected = compare(documents, queries, lambda texts: [embed(text) for text in texts], **sizes)
    assert [[(c.id, c.beyond) for c in view.candidates] for view in found.queries] == [
        [(c.id, c.beyond) for c in view.candidates] for view in expected.queries
    ]
    # Hybrid search and the sum of scores are rows over a store too.
    assert found.settings == expected.settings
    assert sum(setting.keyword_search for setting in found.settings) == 1
    for (at, key), estimate in found.values.items():
        assert estimate.mean == pytest.approx(expected.values[at, key].mean, abs=1e-6)
    assert (found.title, found.corpus.model, found.corpus.documents) == ("A store", "words", None)


@over(RETRIEVERS)
def test_titles_that_are_not_embedded_are_noted(subject: Subject) -> None:
    for titles in (["Zebra"] * len(ROWS), [row.text[:4] for row in ROWS]):
        rows = [row._replace(metadata={"title": title}) for row, title in zip(ROWS, titles, strict=True)]
        notes = compare_over(subject, subject.open(rows, subject.kinds[0]), ["river harbour"], fetch_k=20).notes
        assert any("`title` in metadata" in note for note in notes) == (titles[0] == "Zebra")


@over(RETRIEVERS)
def test_the_filter_of_a_store_is_used(subject: Subject) -> None:
    rows = [row._replace(metadata={"odd": i % 2}) for i, row in enumerate(ROWS)]
    options: dict[str, Any] = {"search_kwargs": {"filter": lambda document: not document.metadata["odd"]}}
    if subject.framework == "LlamaIndex":
        options = {"filters": MetadataFilters(filters=[MetadataFilter(key="odd", value=0)])}
    queries = [{"text": "river harbour", "subtopics": {"even": [row.id for row in ROWS[::2]], "odd": ["doc-1"]}}]
    found = compare_over(subject, subject.open(rows, subject.kinds[0]), queries, fetch_k=20, **options)
    ids = [int(candidate.id.removeprefix("doc-")) for candidate in found.queries[0].candidates]
    assert len(ids) == 20
    assert not any(number % 2 for number in ids)
    # What the filter leaves out counts as a miss.
    assert {value.mean for (_, key), value in found.values.items() if key == "subtopic_recall"} == {0.5}


@over(RETRIEVERS)
def test_a_store_whose_texts_are_not_read_is_compared_without_keyword_search(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "MOST", len(ROWS) - 1)
    store, label = subject.corpus(), "coverage keyword_search=True"
    found = compare_over(subject, store, [QUERY], k=4)
    assert label not in [setting.label for setting in found.settings]
    assert sum(label in note for note in found.notes) == 1
    # No index is made for settings that do not use it.
    fresh = subject.open(ROWS, subject.kinds[0])
    compare_over(subject, fresh, [QUERY], k=4, settings=[named("similarity"), named("coverage")])
    assert id(fresh) not in word_search._SHARED
