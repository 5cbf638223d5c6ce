"""One retrieval from a store: search, select, search wider while the set is short, and follow the names in the set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import warn
from ..selectors.base import share_fetch_k
from ..signals.names import HEAD, as_key, find_names, read_name
from .flow import Flow, Step, together
from .items import read_keys, read_links, read_titles
from .question import EmbeddedQuery
from .request import Found, Request, Selected

if TYPE_CHECKING:
    from .settings import Settings


class Store(NamedTuple):
    """What an adapter gives of a vector store and its embedding model."""

    # The items nearest to a query.
    search: Callable[[EmbeddedQuery, int], Flow[Found]]
    # The vectors of names (n, d).
    embed: Callable[[list[str]], Flow[Any]]
    # The items with some ids, without those that the store does not have.
    fetch: Callable[[list[str]], Flow[Found]]
    # The most candidates of one search. None, if there is no vector reader: there is no wider search, because it would
    # embed all texts that it finds.
    widest: int | None


def search_and_select(
    request: Request, owner: Settings, embedding: Flow[list[EmbeddedQuery]], store: Store
) -> Flow[Selected]:
    """The set for the queries that ``embedding`` gives. A warning that comes once comes once for each ``owner``."""
    queries = yield from embedding
    if len(queries) == 1:
        request.warn_if_all_are_selected(owner, request.fetch_k - len(request.shown), "Raise fetch_k")
    fetch_k: int | None = request.fetch_k
    while fetch_k is not None:
        found = yield from _search(request, queries, store, fetch_k)
        selected: Selected = yield Step(partial(request.select, found, queries))
        fetch_k = _wider(selected, store.widest)
    if request.settings.follow and request.reads_names:
        return (yield from _follow(request, selected, queries, store))
    return selected


def _search(request: Request, queries: Sequence[EmbeddedQuery], store: Store, fetch_k: int) -> Flow[Found]:
    """What the queries find, united; ``fetch_k`` is shared out among them."""
    least = None if request.k is None else request.k + len(request.shown)
    each = share_fetch_k(fetch_k, least, len(queries))
    first, *others = yield from together([store.search(query, each) for query in queries])
    if not others:
        return first
    united, _ = unite(first, others)
    return united._replace(fetch_k=fetch_k, exhausted=first.exhausted and all(found.exhausted for found in others))


def unite(found: Found, others: Sequence[Found]) -> tuple[Found, list[list[int]]]:
    """``found`` with the items of other searches that it lacks, and for each of these the rows of what it added.

    Items are the same if they have the same id, or without ids the same text. Their score is the highest of their
    scores.
    """
    items, ids, vectors, added = [*found.items], [*found.ids], [*found.vectors], []
    scores: list[float | None] = [None] * len(items) if found.scores is None else [*found.scores]

    def key(item: Any, name: Hashable) -> Hashable:
        return ("text", found.text(item)) if name is None else ("id", name)

    rows: dict[Hashable, int] = {}
    for row, (item, name) in enumerate(zip(items, ids, strict=True)):
        rows.setdefault(key(item, name), row)
    for other in others:
        first = len(items)
        others_scores = other.scores or [None] * len(other.items)
        for item, name, vector, score in zip(other.items, other.ids, other.vectors, others_scores, strict=True):
            row = rows.setdefault(key(item, name), len(items))
            if row == len(items):
                items.append(item)
                ids.append(name)
                vectors.append(vector)
                scores.append(score)
            else:
                scores[row] = max((one for one in (scores[row], score) if one is not None), default=None)
        added.append([*range(first, len(items))])
    kept = None if found.scores is None else scores
    return found._replace(items=items, ids=ids, vectors=vectors, scores=kept), added


def _wider(selected: Selected, widest: int | None) -> int | None:
    """The size of the next search, if a constraint or repeated texts cut the set short; else None."""
    found = selected.found
    if widest is None or not selected.cut_short or found.exhausted or found.fetch_k is None:
        return None
    if found.fetch_k >= widest:
        warn(
            f"only {len(selected.items)} of {len(found.items)} candidates are selected: the others have the same "
            f"text as one of them, or a constraint forbids them. No more than {widest} candidates are fetched "
            "automatically; a larger fetch_k= fetches more"
        )
        return None
    return min(4 * found.fetch_k, widest)


def _follow(request: Request, selected: Selected, queries: Sequence[EmbeddedQuery], store: Store) -> Flow[Selected]:
    """The set that is selected when the documents that names and links lead to are candidates too.

    It is ``selected`` if the selected texts have no such names and links. There is one round, with one batch of
    embeddings and at most ``follow_names`` searches, whatever the texts say.
    """
    settings = request.settings
    links, names = _find_unknown(request, selected)
    if not links and not names:
        return selected
    fetched = [(yield from store.fetch(links))] if links else []
    ids = [str(name) for one in fetched for name in one.ids]
    # An address is no name, nor is a long text.
    names = [link for link in links if link not in ids and "://" not in link and len(link) <= HEAD] + names
    names = names[: settings.follow_names - len(ids)]
    vectors = np.asarray((yield from store.embed(names)), np.float64) if names else np.zeros((0, 0))
    # A model of words gives a vector of zeros for a name that it does not know.
    searched = [EmbeddedQuery(v, None, v.tolist(), name) for v, name in zip(vectors, names, strict=True) if v.any()]
    found = yield from together([store.search(query, settings.follow_k) for query in searched])
    # A hybrid search of LlamaIndex returns as many as its hybrid_top_k says.
    found = [one.take(range(len(one.items))[: settings.follow_k]) for one in found]
    united, added = unite(selected.found, [*fetched, *found])
    if any(added):
        selected = yield Step(partial(request.select, united, queries))
    reached = [(link, [row for row in added[0] if str(united.ids[row]) == link]) for link in links if link in ids]
    reached += [(query.text, rows) for query, rows in zip(searched, added[len(fetched) :], strict=True)]
    return selected._replace(followed=reached)


def _find_unknown(request: Request, selected: Selected) -> tuple[list[str], list[str]]:
    """Links of the selected items that lead to no candidate, and names in their texts that no candidate has."""
    settings, found, view = request.settings, selected.found, request.view
    texts = [found.comparable_text(item) for item in found.items]
    titles = read_titles(found.items, settings.title, view)
    known = {title or read_name(text) for title, text in zip(titles, texts, strict=True)}
    links: list[tuple[str, ...] | None] = [None] * len(selected.items)
    if settings.links is not None:
        every = read_links(found.items, settings.links, view)
        links = [every[row] for row in selected.selection.indices.tolist()]
    targets = dict.fromkeys(link for row in links for link in row or ())
    keys = {key for item in found.items for key in read_keys(item)} | known
    borne = set(map(as_key, known)) - {()}
    unknown = [link for link in targets if link not in keys and as_key(link) not in borne]
    unknown = unknown[: settings.follow_names]
    # A document with links refers to what they lead to, and to nothing else.
    searched = [found.comparable_text(item) for item, row in zip(selected.items, links, strict=True) if row is None]
    return unknown, find_names(searched, [*known, *targets], settings.follow_names)
