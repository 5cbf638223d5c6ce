"""A question with sub-questions: one set for all of them, in each class of both adapters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.runnables import RunnableLambda
from numpy.typing import NDArray

from setselect import (
    Candidates,
    InvalidInputError,
    InvalidParameterError,
    PerspectiveError,
    make_selector,
    match_words,
)
from tests.adapters.bindings import (
    EXAMPLES,
    QUERY,
    RERANKERS,
    RETRIEVERS,
    SUBJECTS,
    Row,
    Subject,
    falling,
    metadata,
    name_of,
    numbers,
    over,
    unit,
)
from tests.embedding import embed

PARTS = ["violin bread", "red mountain"]
QUERIES = [QUERY, *PARTS]
COUNT = 30
# The only rows that are near to the first and to the second part.
FIRST, SECOND = 28, 29
OVER_READERS = over(RETRIEVERS + RERANKERS)
OVER_SEARCHES = over(RETRIEVERS + EXAMPLES)
SELECTORS = ("coverage", "ndpp", "mmr", "similarity")


def story() -> list[Row]:
    """Rows whose cosine with the question falls from 0.6 to 0.3; the last two are nearer to the parts of it."""
    texts = [f"passage {i}" for i in range(COUNT)]
    rows = [row._replace(metadata={**row.metadata, "tokens": 5}) for row in falling(texts, lowest=0.3, apart=PARTS)]
    for row, text in ((FIRST, PARTS[0]), (SECOND, PARTS[1])):
        rows[row] = rows[row]._replace(vector=0.3 * rows[row].vector + 0.9 * unit(embed(text)))
    return rows


def splits(question: str) -> list[str]:
    """What a model would do."""
    assert question == QUERY
    return PARTS


async def asplits(question: str) -> list[str]:
    """The same in async code."""
    return splits(question)


def run(subject: Subject, rows: Sequence[Row] | None = None, told: list[Any] | None = None, **settings: Any) -> Any:
    """The numbers that a new object selects; k is 3."""
    rows = story() if rows is None else rows
    made = subject.make(subject.open(rows, subject.kinds[0]), **{"k": 3, **settings})
    return numbers(subject.run(made, rows, told))


def every(subject: Subject) -> dict[str, Any]:
    """Settings with which each query finds all rows."""
    return {"fetch_k": 3 * COUNT} if subject.searches else {}


def core(rows: list[Row], among: Sequence[int], k: int, name: str = "coverage", **more: Any) -> list[int]:
    """What the core selects for the question and its parts."""
    words = match_words(" ".join(QUERIES), [rows[i].text for i in among]) if name == "coverage" else None
    candidates = Candidates([embed(text) for text in QUERIES], vectors(rows)[list(among)], words=words, **more)
    return [among[i] for i in make_selector(name).select(candidates, k).indices]


def vectors(rows: Sequence[Row]) -> NDArray[np.float64]:
    return unit([row.vector for row in rows])


def nearest(rows: Sequence[Row], text: str, count: int) -> list[int]:
    """What a search finds."""
    found: list[int] = np.argsort(-vectors(rows) @ embed(text), kind="stable")[:count].tolist()
    return found


# What a set for several queries is


@over(SUBJECTS)
@pytest.mark.parametrize("selector", SELECTORS)
def test_the_set_is_that_of_the_core(subject: Subject, selector: str) -> None:
    rows = story()
    assert run(subject, rows, k=5, selector=selector, queries=PARTS, **every(subject)) == core(
        rows, range(COUNT), 5, selector
    )


@over(SUBJECTS)
def test_order_and_repetition_change_nothing_and_without_sub_questions_the_question_counts(subject: Subject) -> None:
    both, alone = run(subject, queries=PARTS), run(subject)
    for queries in (PARTS[::-1], [*PARTS, *PARTS], [QUERY, *PARTS], [f" {PARTS[0]} ", "", PARTS[1], "\r"]):
        assert run(subject, queries=queries) == both
    nothing: tuple[Any, ...] = ([], [QUERY], lambda question: [], lambda question: None, lambda question: [question])
    for queries in nothing:
        assert run(subject, queries=queries) == alone


@over(SUBJECTS)
async def test_async_code_selects_the_same_and_embeds_each_text_once(subject: Subject) -> None:
    rows = story()
    store = subject.open(rows, subject.kinds[0])
    wanted = numbers(subject.run(subject.make(store, k=3, queries=PARTS), rows))
    for queries in (PARTS, splits, asplits, RunnableLambda(splits, asplits)):
        made = subject.make(store, k=3, queries=queries)
        subject.model(store).counts()
        assert numbers(await subject.arun(made, rows)) == wanted
        assert subject.model(store).counts() == (3, 0, 3)


# The search


@OVER_SEARCHES
@pytest.mark.parametrize(("k", "fetch_k", "each"), [(3, 20, 7), (3, 3, 3), (8, 9, 8), (2, 90, 30)])
def test_fetch_k_is_shared_out(subject: Subject, k: int, fetch_k: int, each: int) -> None:
    rows = story()
    found = list(dict.fromkeys(row for text in QUERIES for row in nearest(rows, text, each)))
    picked = run(subject, rows, k=k, fetch_k=fetch_k, queries=PARTS)
    assert sorted(picked) == sorted(core(rows, found, k))


# Together with other settings


@OVER_READERS
def test_sub_questions_are_projected_and_words_of_the_perspective_do_not_count(subject: Subject) -> None:
    rows = [row._replace(text=f"{row.text} bread" if row.metadata["number"] == 5 else row.text) for row in story()]
    picked = run(subject, rows, queries=PARTS, perspective="bread", **every(subject))
    p = unit(embed("bread"))
    queries = [embed(text) - (embed(text) @ p) * p for text in QUERIES]
    words = match_words("hidden northern harbour engine violin red mountain", [row.text for row in rows])
    wanted = make_selector("coverage").select(Candidates(queries, vectors(rows), words=words), 3)
    assert picked == wanted.indices.tolist()
    with pytest.raises(PerspectiveError, match=r"sub-question 'violin bread'.*parallel"):
        run(subject, queries=PARTS, perspective=PARTS[0])


# What is reported


@OVER_READERS
def test_the_event_and_the_scores_say_which_query_a_pick_serves(subject: Subject) -> None:
    told: list[Any] = []
    rows = story()
    rows[SECOND].metadata["selection_serves"] = "mine"
    made = subject.make(subject.open(rows, subject.kinds[0]), k=4, queries=splits, scores=True, score_threshold=0.3)
    picked = {metadata(item)["number"]: metadata(item) for item in subject.run(made, rows, told)}
    assert told[0]["queries"] == QUERIES
    serves = dict(zip(told[0]["ids"], told[0]["serves"], strict=True))
    assert (serves.pop("doc-28"), serves.pop("doc-29")) == (*PARTS,)
    assert {*serves.values()} == {QUERY}
    reasons = {number: data["selection_reason"] for number, data in picked.items()}
    assert [number for part in PARTS for number, reason in reasons.items() if f"covers: {part}" in reason] == [
        FIRST,
        SECOND,
    ]
    assert (picked[FIRST]["selection_serves"], picked[SECOND]["selection_serves"]) == (PARTS[0], "mine")
    made = subject.make(subject.open(story(), subject.kinds[0]), k=4, scores=True)
    assert all("selection_serves" not in metadata(item) for item in subject.run(made, rows[:9], told))
    assert (told[1]["queries"], told[1]["serves"]) == ([QUERY], [None] * 4)


# What goes wrong


def fails(question: str) -> list[str]:
    """A model that cannot be reached."""
    raise ConnectionError("no network")


@over(SUBJECTS)
async def test_a_failing_split_is_named(subject: Subject) -> None:
    rows = story()
    for queries in (fails, RunnableLambda(fails, name="fails")):
        made = subject.make(subject.open(rows, subject.kinds[0]), queries=queries)
        for call in (asyncio.to_thread(subject.run, made, rows), subject.arun(made, rows)):
            with pytest.raises(InvalidInputError, match=r"queries=fails .*ConnectionError: no network") as info:
                await call
            assert isinstance(info.value.__cause__, ConnectionError)


@over(SUBJECTS)
@pytest.mark.parametrize(
    ("answer", "words"),
    [("one\ntwo", "lines"), (["one", 2], "texts"), ({"one": 1}, "texts"), (5, "texts")],
    ids=name_of,
)
def test_what_is_no_list_of_texts_is_refused(subject: Subject, answer: Any, words: str) -> None:
    def answers(question: str) -> Any:
        return answer

    with pytest.raises(InvalidInputError, match=rf"queries=answers .*{words}"):
        run(subject, queries=answers)
    with pytest.raises(InvalidParameterError, match=rf"queries .*{words}"):
        subject.make(subject.corpus(), queries=answer)


@over(SUBJECTS)
def test_an_async_function_needs_an_async_call(subject: Subject) -> None:
    with pytest.raises(InvalidInputError, match=r"queries=asplits .*async"):
        run(subject, queries=asplits)
