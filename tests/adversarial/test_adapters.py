"""Both adapters against the core with random settings, under threads and cancelled tasks, and with odd stores.

The rows, stores and classes are those of tests/adapters/bindings.py.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_setselect import SetSelectRetriever, register_vector_source
from setselect import (
    MMR,
    PAP,
    Candidates,
    Coverage,
    PerspectiveExtractor,
    QueryParts,
    SetSelectWarning,
    VectorSourceError,
    make_selector,
    match_words,
)
from shared_core.retrieval.result import sort_items
from shared_core.selection.route import Limits, select_set
from tests.adapters.bindings import (
    RETRIEVERS,
    ROWS,
    SUBJECTS,
    VECTORS,
    Subject,
    nearest,
    numbers,
    over,
    reader,
    values,
)
from tests.adversarial.conftest import Cases
from tests.embedding import TOPICS, TRAITS, embed
from tests.langchain_setselect.conftest import WordEmbeddings

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*all of them are selected:setselect.SetSelectWarning"),
    pytest.mark.filterwarnings("ignore:perspective (has no effect|does not change):setselect.SetSelectWarning"),
]
OVER_ALL_CLASSES = over(SUBJECTS)
SELECTORS = ("similarity", "vrsd", "mmr", "ndpp", "coverage")
THREADS = 8


def pick(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def question(rng: np.random.Generator) -> str:
    return f"{pick(rng, TRAITS)} {pick(rng, TOPICS)} {pick(rng, TOPICS)}"


def read_from(rng: np.random.Generator, key: str) -> Any:
    """A key of the metadata, a function of the item, or a mapping by id."""
    return pick(rng, (key, reader(key), {row.id: row.metadata[key] for row in ROWS}))


def draw(rng: np.random.Generator) -> dict[str, Any]:
    """Random settings of any class, under the names that all share."""
    settings: dict[str, Any] = {"selector": pick(rng, SELECTORS), "k": int(rng.integers(1, 9))}
    more: list[dict[str, Any]] = [
        {
            "perspective": pick(rng, TRAITS),
            "direction": pick(rng, ("remove", "emphasize")),
            "corpus": rng.random() < 0.5,
        },
        {"shown": [f"doc-{number}" for number in rng.choice(60, size=3, replace=False)]},
        {"score_threshold": float(rng.uniform(-0.2, 0.2))},
        {"drop_near_duplicates": float(rng.uniform(0.8, 1)), "prefer": pick(rng, (None, read_from(rng, "quality")))},
        {"order": pick(rng, ("selection", "relevance", "nearest_last", "long_context"))},
        {"budget": float(rng.uniform(10, 40)), "costs": read_from(rng, "tokens")},
        {"max_per_source": int(rng.integers(2, 4)), "source": read_from(rng, "topic")},
        {"min_gain": float(rng.random()), "min_k": int(rng.integers(1, 4))},
    ]
    for some in more:
        if rng.random() < 0.3:
            settings |= some
    if settings["selector"] == "mmr":
        settings |= {"selector": MMR(float(rng.random())), "quality": read_from(rng, "quality")}
    if settings["selector"] == "coverage":
        settings["selector"] = Coverage(pick(rng, (0.0, 0.5, 1.0, 3.0)), float(2 * rng.random()))
        if rng.random() < 0.5:
            settings["cover"] = read_from(rng, "topic")
    if settings["selector"] != "vrsd" and "score_threshold" not in settings and rng.random() < 0.3:
        settings |= {"relevance": read_from(rng, "number"), "relevance_scale": pick(rng, ("minmax", "rank", None))}
    if settings["selector"] != "vrsd" and rng.random() < 0.3:
        settings["queries"] = [question(rng) for _ in range(rng.integers(1, 4))]
    return settings


def brute_force(text: str, rows: list[int], settings: dict[str, Any]) -> list[int]:
    """What the core selects among the rows, in the order asked for."""
    given = {**settings}
    texts = list(dict.fromkeys([text, *given.pop("queries", ())]))
    selector, k, order = given.pop("selector"), given.pop("k"), given.pop("order", "selection")
    shown = [rows.index(int(i[4:])) for i in given.pop("shown", ()) if int(i[4:]) in rows]
    arrays = {"quality": "quality", "costs": "tokens", "source": "topic", "cover": "topic", "prefer": "quality"}
    read = {{"source": "sources"}.get(n, n): values(rows, key) for n, key in arrays.items() if given.pop(n, None)}
    if given.pop("relevance", None) is not None:
        read["relevance"] = rows
    constraints = {n: given.pop(n) for n in ("max_per_source", "drop_near_duplicates") if n in given}
    removed = given["perspective"] if given.get("direction") == "remove" else None
    asked = " ".join(word for query in texts for word in query.split() if word != removed)
    words = match_words(asked, [ROWS[row].text for row in rows])
    candidates = Candidates([embed(query) for query in texts], VECTORS[rows], words=words, **read, **constraints)
    pap = projection(given)
    selection = select_set(
        candidates if pap is None else pap.apply(candidates),
        make_selector(selector) if isinstance(selector, str) else selector,
        k,
        relevance_scale=given.pop("relevance_scale", None),
        shown=shown,
        limits=Limits(**given),
    )
    picks = [rows[i] for i in selection.indices]
    return picks if order == "selection" else sort_items(picks, selection.relevance.tolist(), order)


def projection(settings: dict[str, Any]) -> PAP | None:
    names = ("perspective", "corpus", "direction")
    given = {name: settings.pop(name) for name in names if name in settings}
    return PAP(embed(given.pop("perspective")), **given) if given else None


@OVER_ALL_CLASSES
async def test_random_settings_select_what_the_core_selects(subject: Subject, cases: Cases) -> None:
    for number, rng in cases(share=0.05, at_most=3000):
        settings, text = draw(rng), question(rng)
        fetch_k, pap = int(rng.integers(9, 40)), projection({**settings})
        queries = [embed(query) for query in dict.fromkeys([text, *settings.get("queries", ())])]
        shown = len(settings.get("shown", ()))
        each = max(settings["k"] + shown, -(-(fetch_k + shown) // len(queries)))
        found = [nearest(each, query if pap is None else pap.project(query)) for query in queries]
        rows = list(dict.fromkeys(row for some in found for row in some))
        wanted = brute_force(text, rows, settings)
        limits = {"max_per_source", "drop_near_duplicates"} & settings.keys()
        if subject.searches and limits and len(wanted) < settings["k"]:
            continue  # A wider search would find more.
        made = subject.make(subject.corpus(), **settings, **({"fetch_k": fetch_k} if subject.searches else {}))
        assert numbers(subject.run(made, [ROWS[row] for row in rows], query=text)) == wanted, (number, settings)


@over(RETRIEVERS)
def test_a_budget_and_repeated_texts_leave_no_set_short(subject: Subject, cases: Cases) -> None:
    for _, rng in cases(share=0.02, at_most=2000):
        # A few of the texts have most of the copies, so that the first search often finds one text only.
        text_of = rng.choice(12, size=len(ROWS), p=rng.dirichlet(np.full(12, 0.3))).tolist()
        source_of = rng.integers(3, size=12).astype(str).tolist()
        rows = [
            row._replace(text=f"text {text}", metadata={**row.metadata, "source": source_of[text]})
            for row, text in zip(ROWS, text_of, strict=True)
        ]
        k, cost, budget, cap = (int(rng.integers(*bounds)) for bounds in ((1, 9), (1, 4), (3, 25), (1, 5)))
        settings = {
            "k": k,
            "fetch_k": int(rng.integers(k, 30)),
            "costs": lambda item, cost=cost: cost,
            "budget": budget,
        }
        capped = rng.random() < 0.5
        if capped:
            settings |= {"max_per_source": cap, "source": "source"}
        made = subject.make(subject.open(rows, subject.kinds[0]), selector=pick(rng, SELECTORS), **settings)
        found = [text_of[number] for number in numbers(subject.run(made))]
        texts = [source_of[text] for text in set(text_of)]
        possible = sum(min(cap if capped else 12, texts.count(source)) for source in set(texts))
        assert len(set(found)) == len(found) == min(k, budget // cost, possible)
        picked = [source_of[text] for text in found]
        assert not capped or max(map(picked.count, picked)) <= cap


# Threads and cancelled tasks


@pytest.fixture
def _hurried_threads() -> Iterator[None]:
    """Let Python change threads every 10 µs instead of every 5 ms."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("_hurried_threads")
@OVER_ALL_CLASSES
def test_threads_that_share_an_object_get_their_own_answers(subject: Subject, cases: Cases) -> None:
    given = [ROWS[row] for row in nearest(30)]
    with ThreadPoolExecutor(THREADS) as pool:
        for _, rng in cases(share=0.005, at_most=100):
            settings = {"k": 5, "selector": pick(rng, SELECTORS), "perspective": lambda text: text.split()[0]}
            questions = [question(rng) for _ in range(16)]
            alone = [subject.run(subject.make(subject.corpus(), **settings), given, query=text) for text in questions]
            shared = subject.make(subject.corpus(), **settings)
            together = [pool.submit(subject.run, shared, given, query=text) for text in questions]
            assert [future.result() for future in together] == alone


PARTS = QueryParts("hidden harbour engine", "northern")


async def dawdle(rng: np.random.Generator) -> None:
    for _ in range(rng.integers(6)):
        await asyncio.sleep(0)


@OVER_ALL_CLASSES
async def test_cancelled_calls_leave_nothing_behind(subject: Subject, cases: Cases) -> None:
    given = [ROWS[row] for row in nearest(30)]
    for _, rng in cases(share=0.01, at_most=500):

        async def asplit(text: str, rng: np.random.Generator = rng) -> QueryParts:
            await dawdle(rng)
            return PARTS

        extractor = PerspectiveExtractor(lambda text: PARTS, asplit, cache_size=0)
        shared = subject.make(subject.corpus(), k=4, perspective=extractor)
        right = subject.run(shared, given)
        told: list[list[Any]] = [[] for _ in range(8)]
        tasks = [asyncio.ensure_future(subject.arun(shared, given, heard)) for heard in told]
        for row in rng.permutation(8)[:4]:
            await dawdle(rng)
            # A selection runs in a thread, which the event loop waits for without a turn of its own.
            await asyncio.sleep(float(rng.random()) * 0.002)
            tasks[row].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(answer, asyncio.CancelledError) or answer == right for answer in answers), answers
        assert sum(answer == right for answer in answers) >= 4
        assert await subject.arun(shared, given) == right


# Odd stores


class Shelf(InMemoryVectorStore):
    """A store that returns the hits that a test has put in, whatever it is asked for."""

    hits: tuple[list[Document], list[Any]]


register_vector_source(Shelf, lambda store, query, fetch_k, **kwargs: store.hits)


async def test_a_store_that_returns_anything_but_what_was_asked_gives_a_set_of_it(cases: Cases) -> None:
    for _, rng in cases(share=0.1, at_most=5000):
        n = int(rng.integers(0, 60))
        documents = [Document(f"text {row}", id=pick(rng, (f"id {row}", f"id {row // 2}", None))) for row in range(n)]
        gone = rng.random(n) < pick(rng, (0.0, 0.2, 1.0))
        store, k = Shelf(WordEmbeddings()), int(rng.integers(1, 12))
        store.hits = documents, [None if lost else v for lost, v in zip(gone, rng.normal(size=(n, 48)), strict=True)]
        retriever = SetSelectRetriever(vectorstore=store, k=k, fetch_k=20)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if n and gone.all():
                with pytest.raises(VectorSourceError, match=f"none of the {n} "):
                    retriever.invoke("text 3")
                with pytest.raises(VectorSourceError, match=f"none of the {n} "):
                    await retriever.ainvoke("text 3")
                continue
            found = retriever.invoke("text 3")
            assert found == await retriever.ainvoke("text 3")
        assert {warning.category for warning in told} <= {SetSelectWarning}
        assert any("has no vector" in str(warning.message) for warning in told) == bool(gone.any())
        left = [document for document, lost in zip(documents, gone, strict=True) if not lost]
        firsts = {document.id or document.page_content: document for document in reversed(left)}
        texts = [document.page_content for document in found]
        assert len(found) == len(set(texts)) == min(k, len(firsts))
        assert set(texts) <= {document.page_content for document in firsts.values()}
