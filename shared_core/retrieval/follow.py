"""Follow the names in the selected texts that no candidate has: search for them, and select the set again.

There is one round, with one batch of embeddings and at most ``follow_names`` searches, whatever the texts say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..signals.references import HEAD, as_key, find_names, read_name
from .flow import Flow, Step, together
from .items import read_keys, read_links, read_titles
from .request import EmbeddedQuery, Found, Request, Search, Selected, unite


def follow(
    request: Request,
    selected: Selected,
    queries: Sequence[EmbeddedQuery],
    *,
    embed: Callable[[list[str]], Flow[Any]],
    search: Search,
    fetch: Callable[[list[str]], Flow[Found]],
) -> Flow[Selected]:
    """The set that is selected when the documents that names and links lead to are candidates too.

    It is ``selected`` if the selected texts have no such names and links.

    ``embed`` returns the vectors of names, ``search`` the items nearest to a vector, and ``fetch`` the items with some
    ids. ``fetch`` leaves out ids that the store does not have.
    """
    settings = request.settings
    links, names = _find_unknown(request, selected)
    if not links and not names:
        return selected
    fetched: Found | None = None
    if links:
        fetched = yield from fetch(links)
    ids = [] if fetched is None else list(map(str, fetched.ids))
    # An address is no name, nor is a long text.
    names = [link for link in links if link not in ids and "://" not in link and len(link) <= HEAD] + names
    names = names[: settings.follow_names - len(ids)]
    vectors = np.asarray((yield from embed(names)), np.float64) if names else np.zeros((0, 0))
    # A model of words gives a vector of zeros for a name that it does not know.
    searched = [EmbeddedQuery(v, None, v.tolist(), name) for v, name in zip(vectors, names, strict=True) if v.any()]
    found = yield from together([search(query, settings.follow_k) for query in searched])
    sources = [*([] if fetched is None else [fetched]), *found]
    united, added = unite(selected.found, sources)
    if any(added):
        selected = yield Step(partial(request.select, united, queries))
    reached = [(link, [row for row in added[0] if str(united.ids[row]) == link]) for link in links if link in ids]
    reached += [(query.text, rows) for query, rows in zip(searched, added[len(sources) - len(found) :], strict=True)]
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
