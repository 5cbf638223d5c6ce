"""One retrieval from a store: search, select, search wider while the set is short, and follow references in the set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import quoted, warn
from ..facts import Facts
from ..texts import Texts
from .events import is_first, warn_of_ignored_scores
from .extra import Extras, Search, Store, ask, read_answers
from .flow import Flow, Step, together
from .follow import follow
from .inputs import EmbeddedQuery
from .pool import (
    KEYWORD_SEARCH,
    VECTOR_SEARCH,
    ExtraSearch,
    ItemSelection,
    Pool,
    is_name_of_text,
    stack_vectors,
    unite,
)
from .request import Request
from .settings import Settings


def search_and_select(
    request: Request, owner: Settings, embedding: Flow[list[EmbeddedQuery]], store: Store
) -> Flow[ItemSelection]:
    """The set for the queries that ``embedding`` gives. A warning that comes once comes once for each ``owner``."""
    started = time.perf_counter()
    queries, extras = (yield from embedding), store.extras
    candidates = request.fetch_k - len(request.shown)
    if len(queries) == 1 and extras is None and candidates <= request.all_of:
        _warn_of_all(request, owner, candidates, "Raise fetch_k")
    fetch_k: int | None = request.fetch_k
    joined: Pool | None = None
    reports: list[ExtraSearch] = []
    weigh = None if extras is None or extras.words is None else extras.words.weigh
    while fetch_k is not None:
        if extras is None or joined is not None:
            pool = yield from search_together(request, queries, store.search, fetch_k)
        else:
            pool, joined, reports = yield from search_beside(request, owner, queries, store, extras)
        if joined is not None:
            pool, _ = unite(pool.found_by(VECTOR_SEARCH), [joined])
        selected: ItemSelection = yield Step(partial(request.select, pool, queries, weigh))
        fetch_k = _widen(selected, store.widest) if selected.cut_short else None
    if request.settings.follow and (request.reads_references or request.reads_neighbours):
        selected = yield from follow(request, selected, queries, store, weigh)
    # Tools count what they have shown by its text, under names that are no ids.
    unknown = [str(name) for name in request.shown if name not in selected.pool.ids and not is_name_of_text(name)]
    asked = unknown and selected.pool.items and store.widest is not None and not store.filtered
    if asked and is_first(owner, "_checked_shown"):
        # Not every store looks up documents by their ids.
        probe = str(selected.pool.ids[0])
        known = [str(name) for name in (yield from store.fetch([*unknown, probe])).ids]
        if probe in known and (lost := [name for name in unknown if name not in known]):
            warn(f"shown holds {quoted(lost[0])}, and the store has no document with this id: was it deleted?")
    if not selected.pool.items and not store.filtered and is_first(owner, "_warned_of_nothing"):
        warn("the search found no documents: add some, or check that the store is over the collection that was filled")
    return selected._replace(extras=reports, milliseconds=1000 * (time.perf_counter() - started))


def select_among(
    request: Request,
    owner: Settings,
    candidates: int,
    embedding: Flow[list[EmbeddedQuery]],
    reading: Flow[Pool],
    score: str,
    remedy: str,
) -> Flow[ItemSelection]:
    """The set among so many ``candidates`` that were found before; ``reading`` gives them with their ids and vectors.

    ``score`` is the name of the scores in the pool, and ``remedy`` says how more items are retrieved.
    """
    started = time.perf_counter()
    queries = yield from embedding
    if not candidates:
        return ItemSelection.nothing()
    if candidates <= request.all_of:
        _warn_of_all(request, owner, candidates, remedy)
    pool = yield from reading
    if pool.without_vector and not pool.items:
        raise pool.no_vectors()
    selected: ItemSelection = yield Step(partial(request.select, pool, queries))
    warn_of_ignored_scores(request, owner, selected, score)
    return selected._replace(milliseconds=1000 * (time.perf_counter() - started))


def _warn_of_all(request: Request, owner: Settings, candidates: int, remedy: str) -> None:
    """Warn, once for each ``owner``, that there is nothing to select from."""
    if is_first(owner, "_warned"):
        every = f"{owner.size_name}={request.k}"
        warn(f"{every} of {candidates} candidates: all of them are selected, whatever the method. {remedy}")


def search_together(request: Request, queries: Sequence[EmbeddedQuery], search: Search, fetch_k: int) -> Flow[Pool]:
    """What the queries find, united; ``fetch_k`` is shared out among them.

    A VectorSourceError if they find something, and nothing of it has a vector.
    """
    if len(queries) == 1:
        found = yield from search(queries[0], fetch_k)
    else:
        each = request.share(fetch_k, len(queries))
        pools = yield from together([search(query, each) for query in queries])
        united, _ = unite(pools[0], pools[1:])
        found = united._replace(
            fetch_k=fetch_k,
            exhausted=all(pool.exhausted for pool in pools),
            without_vector=[name for pool in pools for name in pool.without_vector],
        )
    if found.without_vector and not found.items:
        raise found.no_vectors()
    return found


def search_beside(
    request: Request, owner: Settings, queries: Sequence[EmbeddedQuery], store: Store, extras: Extras
) -> Flow[tuple[Pool, Pool, list[ExtraSearch]]]:
    """What the vector search finds; what the extra retrievers find; and what happened to each of them."""
    extra_k = request.settings.extra_k
    each = extra_k if len(queries) == 1 else request.share(extra_k, len(queries))
    asking: list[Flow[Any]] = [ask(owner, *named, queries, each) for named in extras.retrievers.items()]
    searching = search_together(request, queries, store.search, request.fetch_k)
    pool, *answers = yield from together([searching, *asking])
    joined, reports = yield from read_answers(owner, pool, answers, extras, store.read_ids, store.embed)
    return pool, joined, reports


def search_to_compare(
    owner: Settings,
    request: Request,
    store: Store,
    read: Callable[[Any], tuple[str, Mapping[str, Any]]],
    text: str,
    vector: NDArray[np.float64],
) -> Flow[tuple[list[tuple[str | None, str, str, Mapping[str, Any], Facts]], dict[str, Any]]]:
    """For a comparison: id, text, title, metadata and facts of each candidate, and the columns of a ``SearchResult``.

    The question has this ``text`` and this ``vector``. ``read`` gives the text and the metadata of an item.
    """
    queries = [EmbeddedQuery(vector, None, vector.tolist(), text)]
    by_words = bm25 = weigh = None
    if store.extras is None:
        pool = yield from search_together(request, queries, store.search, request.fetch_k)
        candidates = len(pool.items)
    else:
        words = store.extras.words
        assert words is not None
        pool, joined, _ = yield from search_beside(request, owner, queries, store, store.extras)
        candidates = len(pool.items)
        pool, _ = unite(pool.found_by(VECTOR_SEARCH), [joined])
        by_words = [row for row, names in enumerate(pool.searches or ()) if KEYWORD_SEARCH in names]
        bm25, weigh = words.score(text, list(map(pool.text, pool.items))), words.weigh
    pool = pool.with_each_id_once()
    items, facts = pool.items, request.read_facts(pool)
    bodies = list(map(pool.body, items))
    names = (None if name is None else str(name) for name in pool.ids)
    columns = zip(names, map(read, items), Texts(bodies, facts).titles, facts, strict=True)
    rows = [(name, text, title, metadata, fact) for name, (text, metadata), title, fact in columns]
    return rows, {
        "vectors": stack_vectors(pool.vectors, pool.ids),
        "texts": list(map(pool.text, items)),
        "bodies": bodies,
        "candidates": candidates,
        "by_words": by_words,
        "bm25": bm25,
        "weigh": weigh,
    }


def search_near(
    request: Request, store: Store, source_of: Callable[[Any], Any], vector: NDArray[np.float64], number: int
) -> Flow[tuple[list[str], Any, list[Any], Callable[[], Texts]]]:
    """For a diagnosis: the texts nearest to a vector, their vectors and sources, and how references are read."""
    pool = yield from store.search(EmbeddedQuery(vector, None, vector.tolist()), number)
    pool = pool.with_each_id_once()
    texts, sources = list(map(pool.body, pool.items)), list(map(source_of, pool.items))
    return texts, stack_vectors(pool.vectors, pool.ids), sources, lambda: request.read_texts(pool) or Texts([])


def _widen(selected: ItemSelection, widest: int | None) -> int | None:
    """The size of the next search, if a constraint or repeated texts cut the set short; else None.

    A query after one that found nothing more is widened too: whether there is more depends on the query and on what was
    added to the store since, and the same query has the same result whatever was asked before.
    """
    pool = selected.pool
    if widest is None or pool.exhausted or pool.fetch_k is None:
        return None
    if pool.fetch_k >= widest:
        warn(
            f"only {len(selected.items)} of {len(pool.items)} candidates are selected: the others have the same "
            f"text as one of them, or a constraint forbids them. No more than {widest} candidates are fetched "
            "automatically; a larger fetch_k= fetches more. Each query for which this happens takes the time of such a "
            "search: lower the number of documents, or loosen the constraint"
        )
        return None
    return min(4 * pool.fetch_k, widest)
