"""The objects themselves: settings that change, copies, warnings, threads, and calls with nothing to select from."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from setselect import MMR, Coverage, InvalidInputError, InvalidParameterError, SetSelectWarning
from tests.adapters.bindings import (
    QUERY,
    RERANKERS,
    RETRIEVERS,
    ROWS,
    SUBJECTS,
    Subject,
    expected,
    name_of,
    nearest,
    numbers,
    over,
    unit,
)
from tests.embedding import embed

OVER_ALL_CLASSES = over(SUBJECTS)
GIVEN = [ROWS[row] for row in nearest()]


@OVER_ALL_CLASSES
def test_fields_set_anew_count_at_the_next_call(subject: Subject) -> None:
    rows = nearest()
    given = [ROWS[row] for row in rows]
    made = subject.make(subject.corpus(), k=5, selector="mmr", lambda_mult=0.9)
    assert numbers(subject.run(made, given)) == expected(rows, 5, "mmr", lambda_mult=0.9)
    made.lambda_mult = 0.1
    assert numbers(subject.run(made, given)) == expected(rows, 5, "mmr", lambda_mult=0.1)
    setattr(made, subject.size, 3)
    assert numbers(subject.run(made, given)) == expected(rows, 3, "mmr", lambda_mult=0.1)
    made.lambda_mult, made.selector = None, "similarity"
    assert numbers(subject.run(made, given)) == nearest(3)
    copied = copy.copy(made)
    copied.selector = MMR(lambda_mult=0.2)
    copies = [copied]
    if isinstance(made, BaseModel):
        copies.append(made.model_copy(update={"selector": MMR(lambda_mult=0.2)}))
    for other in copies:
        assert numbers(subject.run(other, given)) == expected(rows, 3, MMR(lambda_mult=0.2))
    assert numbers(subject.run(made, given)) == nearest(3)
    # pydantic's models say so in the call, the others at once.
    with pytest.raises(InvalidParameterError, match=subject.size):
        subject.run(_changed(made, subject.size, 0), given)


def _changed(made: Any, name: str, value: Any) -> Any:
    setattr(made, name, value)
    return made


@OVER_ALL_CLASSES
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_copies_select_the_same_and_calls_leave_no_trace(subject: Subject, way: Any) -> None:
    settings = {"selector": MMR(lambda_mult=0.4), "quality": "quality", "perspective": "northern", "shown": ["doc-5"]}
    more = {
        "max_per_source": 1,
        "source": "topic",
        "order": "relevance",
        "score_threshold": 0.05,
        "queries": ["loud bread"],
    }
    made = subject.make(subject.corpus(), k=3, **settings, **more)
    before = pickle.dumps(made)
    wanted = numbers(subject.run(made, GIVEN))
    assert len(wanted) == 3
    assert numbers(subject.run(way(made), GIVEN)) == wanted
    assert numbers(subject.run(pickle.loads(before), GIVEN)) == wanted
    if isinstance(made, BaseModel):
        assert made == made.model_copy()
    other = _changed(way(made), subject.size, 2)
    assert len(subject.run(other, GIVEN)) == 2
    assert numbers(subject.run(made, GIVEN)) == wanted


@OVER_ALL_CLASSES
def test_fewer_candidates_than_k_are_all_selected_with_one_warning_where_more_might_help(subject: Subject) -> None:
    store = subject.corpus()
    # "The retriever in front" of a reranker can find more.
    word = "fetch_k" if subject.searches else "retriever"
    sizes = {"k": 4, "fetch_k": 4} if subject.searches else {"k": 4}
    made = subject.make(store, **sizes)
    with pytest.warns(SetSelectWarning, match=rf"4 of 4.*{word}") as told:
        found = subject.run(made, GIVEN[:4])
    assert len(told) == 1
    # Any warning would be an error here.
    assert subject.run(made, GIVEN[:4]) == found
    assert sorted(numbers(found)) == sorted(nearest(4))
    for settings in ({"selector": "similarity"}, {"order": "relevance"}, {"score_threshold": 0.0}):
        subject.run(subject.make(store, **sizes, **settings), GIVEN[:4])


@pytest.mark.filterwarnings("ignore:the search found no documents:setselect.SetSelectWarning")
@OVER_ALL_CLASSES
async def test_nothing_is_selected_from_nothing(subject: Subject) -> None:
    for kind in subject.kinds:
        if kind == "FAISS":
            continue  # It cannot be made without a vector.
        made = subject.make(subject.open([], kind))
        assert subject.run(made) == await subject.arun(made) == []
    store = subject.corpus()
    assert subject.run(subject.make(store, shown=[row.id for row in ROWS]), GIVEN) == []


@OVER_ALL_CLASSES
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"quality": "quality"}, "quality .*mmr"),
        ({"prefer": "number", "drop_duplicates": False}, "prefer .*drop_near_duplicates .*drop_duplicates"),
        ({"title": "topic", "selector": Coverage(reference_weight=0)}, "title .*reference_weight"),
        ({"cover": "topic", "selector": "mmr"}, "cover .*coverage"),
        ({"links": "links", "title": "title", "selector": "ndpp"}, "title and links .*NDPP"),
    ],
    ids=name_of,
)
def test_a_setting_without_effect_is_warned_of_when_the_object_is_made(
    subject: Subject, settings: dict[str, Any], words: str
) -> None:
    with pytest.warns(SetSelectWarning, match=words) as told:
        made = subject.make(subject.corpus(), **settings)
    assert len(told) == 1
    assert told[0].filename.startswith(str(Path(__file__).parent)), "the warning names the user's line"
    # A call does not repeat the warning, which would be an error here.
    wanted = expected(nearest(), 4, settings.get("selector", Coverage(reference_weight=0)))
    assert numbers(subject.run(made, GIVEN)) == wanted


async def test_an_argument_of_a_call_without_effect_is_warned_of() -> None:
    """LangChain's retriever is the only class whose calls take settings."""
    subject = RETRIEVERS[0]
    with pytest.warns(SetSelectWarning, match="relevance_scale"):
        made = subject.make(subject.corpus(), relevance_scale="rank")
    # A call does not repeat the warning of the constructor, whether it has arguments or not.
    made.invoke(QUERY)
    made.invoke(QUERY, k=3)
    for _ in range(2):
        with pytest.warns(SetSelectWarning, match="cover") as told:
            made.invoke(QUERY, selector="mmr", cover="topic")
        assert [warning.filename for warning in told] == [__file__]
    with pytest.warns(SetSelectWarning, match="cover") as told:
        await made.ainvoke(QUERY, selector="mmr", cover="topic")
    assert len(told) == 1


def test_a_perspective_without_effect_is_warned_of_by_rerankers_only() -> None:
    settings: dict[str, Any] = {"relevance": "number", "perspective": "northern"}
    for subject in RERANKERS:
        with pytest.warns(SetSelectWarning, match="perspective"):
            subject.make(subject.corpus(), **settings)
    # They project the documents, or the search.
    for subject, corpus in [*((subject, True) for subject in RERANKERS), *((subject, False) for subject in RETRIEVERS)]:
        subject.make(subject.corpus(), **settings, corpus=corpus)


# What a reranker in front of the class sets.
NAMES = {"LangChain": "relevance_score", "LlamaIndex": "score"}


@over(RERANKERS)
async def test_scores_that_nobody_asked_for_are_warned_of_once(subject: Subject) -> None:
    rows = [row._replace(score=place * 7 % 20 / 2 - 4) for place, row in enumerate(GIVEN[:20])]
    rows[3] = rows[3]._replace(score=None)
    name = NAMES[subject.framework]
    made = subject.make(subject.corpus())
    with pytest.warns(SetSelectWarning, match=rf"the {name} .*ignored.*relevance='{name}'.*'cosine'") as told:
        found = numbers(subject.run(made, rows))
    assert len(told) == 1
    assert told[0].filename.startswith(str(Path(__file__).parent)), "the warning names the user's line"
    # Any warning would be an error here.
    assert numbers(subject.run(made, rows)) == numbers(await subject.arun(made, rows)) == found == expected(nearest(20))
    assert numbers(subject.run(subject.make(subject.corpus(), relevance="cosine"), rows)) == found


@over(RERANKERS)
@pytest.mark.parametrize("selector", ["similarity", "mmr", "ndpp", "coverage"])
async def test_a_rerankers_scores_decide_and_stay_on_request(subject: Subject, selector: str) -> None:
    settings: dict[str, Any] = {"k": 5, "selector": selector, "relevance": NAMES[subject.framework]}
    for sign in (1, -1):
        # Logits, which have nothing to do with the cosine.
        rows = [row._replace(score=sign * (row.metadata["number"] * 37 % 60 - 30) / 4) for row in GIVEN[:20]]
        score_of = {row.metadata["number"]: row.score for row in rows}
        wanted, told = expected(nearest(20), 5, selector, relevance=[*score_of.values()]), list[Any]()
        assert wanted != expected(nearest(20), 5, selector)
        made = subject.make(subject.corpus(), **settings)
        found = subject.run(made, rows, told)
        assert numbers(found) == numbers(await subject.arun(made, rows)) == wanted
        assert told[0]["relevance"] == [score_of[number] for number in wanted], "not the scaled ones"
        left = [item.metadata["relevance_score"] if subject.framework == "LangChain" else item.score for item in found]
        assert left == told[0]["relevance"]
        best = sorted(score_of, key=lambda number: -score_of[number])[:3]
        made = subject.make(subject.corpus(), score_threshold=score_of[best[-1]], **settings)
        assert sorted(numbers(subject.run(made, rows))) == sorted(best)
    for missing in (None, float("nan")):
        rows[3] = rows[3]._replace(score=missing)
        with pytest.raises(InvalidInputError, match=rf"{settings['relevance']}.*{rows[3].id}"):
            subject.run(made, rows)


@over(RERANKERS)
@pytest.mark.parametrize("score", [lambda cosine: round(cosine, 2), lambda cosine: 2 - 2 * cosine, lambda cosine: None])
def test_scores_of_a_store_are_no_rerankers(subject: Subject, score: Any) -> None:
    rows = [row._replace(score=score(float(row.vector @ unit(embed(QUERY))))) for row in GIVEN]
    # Any warning would be an error here.
    subject.run(subject.make(subject.corpus()), rows)


@OVER_ALL_CLASSES
async def test_an_own_model_replaces_that_of_the_store(subject: Subject) -> None:
    other, store = subject.open(ROWS[:1], subject.kinds[0]), subject.corpus()
    model = subject.model(other)
    subject.model(other).counts(), subject.model(store).counts()
    made = subject.make(store, **{"embeddings" if subject.framework == "LangChain" else "embed_model": model})
    assert numbers(subject.run(made, GIVEN)) == numbers(await subject.arun(made, GIVEN)) == expected(nearest())
    assert subject.model(other).counts() == (2, 0, 1)
    assert subject.model(store).counts() == (0, 0, 0)
