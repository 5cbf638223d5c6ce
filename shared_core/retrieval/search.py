"""One retrieval from a store: search, select, search wider while the set is short, and follow references in the set."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._parsing import is_text
from ..errors import warn
from ..selection.sizes import DEFAULT_K, share_fetch_k
from ..texts.names import find_names
from ..texts.references import as_address
from ..texts.titles import HEAD, as_key
from .extra import Extras, ask, read_answers
from .flow import Flow, Step, together
from .names import read_keys, read_links, read_titles
from .pool import FOLLOW, KEYWORD_SEARCH, VECTOR_SEARCH, ExtraSearch, ItemSelection, Pool, unite
from .question import EmbeddedQuery
from .request import Request
from .shadow import in_shadow
from .telling import (
    timed,
    warn_if_all_are_selected,
    warn_of_empty_store,
    warn_of_unused_references,
    warn_of_unused_retrievers,
)

if TYPE_CHECKING:
    from .settings import Settings


# The most names and links that ``follow`` follows, and how many items each search for a name returns.
FOLLOWED, FOLLOW_K = 20, 2


# The items nearest to a query, and how many.
Search = Callable[[EmbeddedQuery, int], Flow[Pool]]


class Store(NamedTuple):
    """What an adapter gives of a vector store and its embedding model."""

    search: Search
    # What the user had before, of k items: the answer in shadow.
    before: Callable[[int], Flow[Sequence[Any]]]
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]]
    # The vectors of names (n, d).
    embed: Callable[[list[str]], Flow[Any]]
    # The items with some ids, without those that the store does not have.
    fetch: Callable[[list[str]], Flow[Pool]]
    # The most candidates of one search. None, if there is no vector reader: there is no wider search, because it would
    # embed all texts that it finds.
    widest: int | None
    # Where the vectors come from, in words.
    vector_source: Callable[[], str]
    # None if there are no extra retrievers.
    extras: Extras | None = None
    # Whether the search has a filter, or another argument of the store.
    filtered: bool = False


def search_and_select(
    request: Request, owner: Settings, question: str, embedding: Flow[list[EmbeddedQuery]], store: Store
) -> Flow[ItemSelection]:
    """The set for the queries that ``embedding`` gives. A warning that comes once comes once for each ``owner``."""
    selecting = _search_and_select(request, owner, embedding, store)
    if not request.settings.shadow:
        return selecting
    return in_shadow(request, question, store.before(request.k or DEFAULT_K), store.read_ids, selecting)


def select_among(
    request: Request,
    owner: Settings,
    question: str,
    retrieved: Sequence[Any],
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]],
    embedding: Flow[list[EmbeddedQuery]],
    reading: Flow[Pool],
    tell: Callable[[ItemSelection], None],
    remedy: str,
    vector_source: Callable[[], str],
) -> Flow[ItemSelection]:
    """The set among items that were ``retrieved`` before; ``reading`` gives the items with their ids and vectors.

    ``tell`` warns of what the selection does not use.
    """

    def select() -> Flow[ItemSelection]:
        started = time.perf_counter()
        queries = yield from embedding
        if not retrieved:
            return ItemSelection.nothing()
        warn_if_all_are_selected(request, owner, len(retrieved), remedy)
        pool = (yield from reading).check_vectors()
        selected: ItemSelection = yield Step(partial(request.select, pool, queries))
        warn_of_unused_references(request, owner, selected)
        tell(selected)
        return timed(request, selected, started, vector_source)

    def before() -> Flow[Sequence[Any]]:
        yield from ()
        return retrieved

    return in_shadow(request, question, before(), read_ids, select()) if request.settings.shadow else select()


def _search_and_select(
    request: Request, owner: Settings, embedding: Flow[list[EmbeddedQuery]], store: Store
) -> Flow[ItemSelection]:
    started = time.perf_counter()
    queries = yield from embedding
    extras = store.extras
    if len(queries) == 1 and extras is None:
        warn_if_all_are_selected(request, owner, request.fetch_k - len(request.shown), "Raise fetch_k")
    fetch_k: int | None = request.fetch_k
    least = None if request.k is None else request.k + len(request.shown)
    joined: Pool | None = None
    reports: list[ExtraSearch] = []
    while fetch_k is not None:
        if extras is None or joined is not None:
            pool = yield from search_together(queries, store.search, fetch_k, least)
        else:
            extra_k = request.settings.extra_k
            pool, joined, reports = yield from search_beside(owner, queries, store, extras, fetch_k, extra_k, least)
        if joined is not None:
            pool, _ = unite(pool.found_by(VECTOR_SEARCH), [joined])
        selected: ItemSelection = yield Step(partial(request.select, pool, queries))
        fetch_k = _wider(selected, store.widest) if selected.cut_short else None
    if request.settings.follow and request.reads_references:
        selected = yield from _follow(request, selected, queries, store)
    selected = selected._replace(extras=reports)
    if not selected.pool.items and not store.filtered:
        warn_of_empty_store(owner, store.vector_source())
    warn_of_unused_references(request, owner, selected)
    warn_of_unused_retrievers(owner, selected)
    return timed(request, selected, started, store.vector_source)


def search_together(queries: Sequence[EmbeddedQuery], search: Search, fetch_k: int, least: int | None) -> Flow[Pool]:
    """What the queries find, united; ``fetch_k`` is shared out among them, at least ``least`` for each.

    A VectorSourceError if they find something, and nothing of it has a vector.
    """
    if len(queries) == 1:
        return (yield from search(queries[0], fetch_k)).check_vectors()
    each = share_fetch_k(fetch_k, least, len(queries))
    first, *others = yield from together([search(query, each) for query in queries])
    united, _ = unite(first, others)
    pools = first, *others
    return united._replace(
        fetch_k=fetch_k,
        exhausted=all(pool.exhausted for pool in pools),
        without_vector=[name for pool in pools for name in pool.without_vector],
    ).check_vectors()


def search_beside(
    owner: Settings,
    queries: Sequence[EmbeddedQuery],
    store: Store,
    extras: Extras,
    fetch_k: int,
    extra_k: int,
    least: int | None,
) -> Flow[tuple[Pool, Pool, list[ExtraSearch]]]:
    """What the vector search finds; what the extra retrievers find; and what happened to each of them."""
    asking: list[Flow[Any]] = [*ask(owner, extras, queries, extra_k, least)]
    pool, *answers = yield from together([search_together(queries, store.search, fetch_k, least), *asking])
    joined, reports = yield from read_answers(owner, pool, answers, extras, store.read_ids, store.embed)
    return pool, joined, reports


def search_with_words(
    owner: Settings, queries: Sequence[EmbeddedQuery], store: Store, fetch_k: int, extra_k: int, least: int
) -> Flow[tuple[Pool, int, list[int] | None]]:
    """For a comparison: the candidates, how many the vector search found, and the rows that a keyword search found.

    The rows are None if the ``store`` has no keyword search.
    """
    if store.extras is None:
        pool = yield from search_together(queries, store.search, fetch_k, least)
        return pool, len(pool.items), None
    pool, joined, _ = yield from search_beside(owner, queries, store, store.extras, fetch_k, extra_k, least)
    united, _ = unite(pool.found_by(VECTOR_SEARCH), [joined])
    rows = [row for row, names in enumerate(united.searches or ()) if KEYWORD_SEARCH in names]
    return united, len(pool.items), rows


def _wider(selected: ItemSelection, widest: int | None) -> int | None:
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


def _follow(
    request: Request, selected: ItemSelection, queries: Sequence[EmbeddedQuery], store: Store
) -> Flow[ItemSelection]:
    """The set that is selected when the documents that names and links lead to are candidates too.

    It is ``selected`` if the selected texts have no such names and links. There is one round, with one batch of
    embeddings and at most ``FOLLOWED`` searches, whatever the texts say.
    """
    links, names = _find_unknown(request, selected)
    if not links and not names:
        return selected
    fetched = [(yield from store.fetch(links))] if links else []
    ids = [str(name) for pool in fetched for name in pool.ids]
    # An address is no name, nor is a long text. A model may fail on what UTF-8 cannot hold.
    new = [link for link in links if link not in ids and "://" not in link and len(link) <= HEAD and is_text(link)]
    # A link may lead to several items.
    names = (new + names)[: max(FOLLOWED - len(ids), 0)]
    vectors = np.asarray((yield from store.embed(names)), np.float64) if names else np.zeros((0, 0))
    # A model of words gives a vector of zeros for a name that it does not know.
    searched = [EmbeddedQuery(v, None, v.tolist(), name) for v, name in zip(vectors, names, strict=True) if v.any()]
    named = yield from together([store.search(query, FOLLOW_K) for query in searched])
    # A hybrid search of LlamaIndex returns as many as its hybrid_top_k says.
    named = [pool.take(range(len(pool.items))[:FOLLOW_K]) for pool in named]
    united, added = unite(selected.pool, [pool.found_by(FOLLOW) for pool in (*fetched, *named)])
    if any(added):
        selected = yield Step(partial(request.select, united, queries))
    reached = [(link, [row for row in added[0] if str(united.ids[row]) == link]) for link in links if link in ids]
    reached += [(query.text, rows) for query, rows in zip(searched, added[len(fetched) :], strict=True)]
    return selected._replace(followed=reached)


def _find_unknown(request: Request, selected: ItemSelection) -> tuple[list[str], list[str]]:
    """Links of the selected items that lead to no candidate, and names in their texts that no candidate has."""
    settings, pool, view = request.settings, selected.pool, request.view
    if selected.texts is None:
        return [], []
    titles = read_titles(pool.items, settings.title, view, pool.body)
    known = {*titles, *(name for name, *_ in selected.texts.names)}
    links: list[tuple[str, ...] | None] = [None] * len(selected.items)
    if settings.links is not None:
        every = read_links(pool.items, settings.links, view, titles)
        links = [every[row] for row in selected.selection.indices.tolist()]
    targets = dict.fromkeys(link for row in links for link in row or ())
    keys = {as_address(key) for item in pool.items for key in read_keys(item)} | known
    known_keys = set(map(as_key, known)) - {()}
    unknown = [link for link in targets if as_address(link) not in keys and as_key(link) not in known_keys]
    unknown = unknown[:FOLLOWED]
    # A document with links refers to what they lead to, and to nothing else.
    searched = [pool.body(item) for item, row in zip(selected.items, links, strict=True) if row is None]
    return unknown, find_names(searched, [*known, *targets], FOLLOWED)
