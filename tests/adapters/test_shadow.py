"""Shadow mode: each class returns what was there before, and tells what it would have selected."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RERANKERS,
    RETRIEVERS,
    ROWS,
    Subject,
    nearest,
    numbers,
    over,
)
from tests.langchain_setselect.conftest import WordEmbeddings

LANGCHAIN = RETRIEVERS[0]
# Nothing of this may show in what is returned.
SETTINGS: dict[str, Any] = {"order": "nearest_last", "max_per_source": 1, "source": "topic", "budget": 12}
SETTINGS |= {"costs": "tokens", "scores": True, "queries": ["loud bread"], "perspective": "engine"}


def plain(subject: Subject, store: Any, k: int, query: str = QUERY) -> list[Any]:
    """What the framework's own retriever over the store returns."""
    if subject is LANGCHAIN:
        return list(store.as_retriever(search_kwargs={"k": k}).invoke(query))
    return list(store.as_retriever(similarity_top_k=k).retrieve(query))


@pytest.fixture
def log(tmp_path: Path) -> Any:
    """The file that the logger writes during the test."""
    logger, path = logging.getLogger("setselect.shadow"), tmp_path / "shadow.jsonl"
    handler = logging.FileHandler(path)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield path
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)
    handler.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@pytest.mark.parametrize("kind", [0, 1], ids=["in memory", "FAISS"])
@pytest.mark.parametrize("settings", [{}, SETTINGS, {"k": 50}], ids=["default", "many", "all"])
@over(RETRIEVERS)
async def test_a_retriever_returns_what_the_stores_own_search_returns(
    subject: Subject, kind: int, settings: dict[str, Any]
) -> None:
    store = subject.corpus(subject.kinds[kind])
    made = subject.make(store, shadow=True, **settings)
    expected = plain(subject, store, settings.get("k", 4))
    # All of 50 candidates are selected, and the warning of it is an error here: no result changes.
    assert subject.run(made) == await subject.arun(made) == expected
    assert numbers(expected) == nearest(settings.get("k", 4))


@over(EXAMPLES)
async def test_an_example_selector_returns_the_nearest_examples(subject: Subject) -> None:
    made = subject.make(subject.corpus(), shadow=True)
    found = subject.run(made)
    assert found == await subject.arun(made)
    assert numbers(found) == nearest(4)


@over(RERANKERS)
async def test_a_reranker_returns_what_it_got(subject: Subject) -> None:
    rows = [ROWS[row]._replace(score=0.1 * i) for i, row in enumerate(nearest(20))]
    made = subject.make(subject.corpus(), shadow=True, **SETTINGS)
    items = [subject.item(row) for row in [*rows, rows[3]]]
    for run in (subject.methods[0], subject.methods[1]):
        arguments, more = subject.arguments(items, QUERY, [])
        found = getattr(made, run)(*arguments, **more)
        found = found if isinstance(found, list) else await found
        assert [id(item) for item in found] == [id(item) for item in items]
    assert items == [subject.item(row) for row in [*rows, rows[3]]]


@over(RETRIEVERS + RERANKERS)
async def test_the_event_has_the_selection_and_what_was_returned(subject: Subject, log: Path) -> None:
    rows = [ROWS[row] for row in nearest(20)]
    selected: list[dict[str, Any]] = []
    told: list[dict[str, Any]] = []
    settings = {"fetch_k": 20} if subject.searches else {}
    subject.run(subject.make(subject.corpus(), **settings), rows, selected)
    made = subject.make(subject.corpus(), shadow=True, **settings)
    subject.run(made, rows, told)
    await subject.arun(made, rows, told)
    returned = [ROWS[row].id for row in nearest(4 if subject.searches else 20)]
    for event in told:
        shadow = event.pop("shadow")
        assert (shadow["returned"], shadow["error"]) == (returned, None)
        assert event | {"milliseconds": 0} == selected[0] | {"milliseconds": 0}
    first, second = lines(log)
    assert (first["query"], first["returned"], first["selected"]) == (QUERY, returned, selected[0]["ids"])
    assert (first["k"], first["fetch_k"]) == (4, settings.get("fetch_k"))
    timed = {"time": "", "milliseconds": 0}
    assert first | timed == second | timed


@over(RETRIEVERS + RERANKERS)
async def test_a_selection_that_fails_changes_nothing_and_is_logged(
    subject: Subject, log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [ROWS[row] for row in nearest(20)]

    def fails(*arguments: Any) -> Any:
        raise RuntimeError("no such thing")

    settings: list[dict[str, Any]] = [
        {"costs": "none", "budget": 5},
        {"queries": fails},
        {"perspective": fails},
        {"relevance": fails},
    ]
    for given in settings:
        made = subject.make(subject.corpus(), shadow=True, **given)
        told: list[Any] = []
        found = [subject.run(made, rows, told), await subject.arun(made, rows, told)]
        assert [numbers(one) for one in found] == [nearest(4 if subject.searches else 20)] * 2
        assert all(event["shadow"]["error"] and not event["ids"] for event in told)
    assert len(told) == 2
    assert all(line["error"] and "selected" not in line for line in lines(log))
    assert sum(record.exc_info is not None for record in caplog.records) == 2 * len(settings)
    # What is wrong at construction is an error at once.
    with pytest.raises(ValueError, match="lambda_mult"):
        subject.make(subject.corpus(), shadow=True, lambda_mult=2)


def test_the_search_that_was_there_before_raises_its_own_errors() -> None:
    class Broken(WordEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            raise ConnectionError("no model")

    store = LANGCHAIN.open(ROWS, "in memory")
    store.embedding = Broken()
    with pytest.raises(ConnectionError, match="model"):
        LANGCHAIN.run(LANGCHAIN.make(store, shadow=True))
