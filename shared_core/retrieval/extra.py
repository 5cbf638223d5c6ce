"""Extra retrievers, which search beside the vector search: what they find joins the candidates."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .._validation import quoted
from ..errors import InvalidParameterError
from ..selection.sizes import share_fetch_k
from ..texts.words import Weigh
from .flow import Flow, together
from .pool import FOLLOW, KEYWORD_SEARCH, VECTOR_SEARCH, ExtraSearch, Pool, drop_ambiguous, unite
from .question import EmbeddedQuery
from .telling import log_failure, warn_of_embedding, warn_of_failure, warn_of_unknown_filter
from .word_search import ItemKind, WordSearch, share_search

if TYPE_CHECKING:
    from .settings import Call, Settings

# The methods of a retriever of either framework.
_RETRIEVES = "invoke", "retrieve"


class ExtraRetriever(NamedTuple):
    """A retriever of an adapter's framework: its name, and its items for a text."""

    name: str
    retrieve: Callable[[str], Flow[Sequence[Any]]]


class KnownItems(NamedTuple):
    """What a store knows of items that its search did not find, row by row.

    ``vectors``: None if the store has none. ``admitted``: whether the filter of the search lets the item in; None if
    that cannot be known.
    """

    ids: Sequence[Hashable]
    vectors: Sequence[Any]
    admitted: Sequence[bool | None]


class Extras(NamedTuple):
    """What an adapter gives for the extra retrievers: themselves, and the store's knowledge of what they find."""

    retrievers: Sequence[ExtraRetriever]
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]]
    # The name of the model that embeds texts; empty if it keeps the vectors of texts that it has embedded.
    model: Callable[[], str]
    # Called if the keyword search finds documents that are not in the store any more. None if that cannot be known.
    refresh: Callable[[], None] | None = None
    # What words weigh in the corpus, if one of the retrievers has an index of words.
    weigh: Weigh | None = None


class Answer(NamedTuple):
    """What a retriever found."""

    name: str
    items: list[Any]
    error: str | None
    milliseconds: float


def check_retrievers(
    retrievers: Sequence[Any],
    is_retriever: Callable[[Any], bool],
    size_of: Callable[[Any], int | None],
    framework: str,
    extra_k: int,
) -> list[str]:
    """Refuse what is no retriever of the framework; a message for each that returns fewer than ``extra_k`` items.

    ``size_of`` gives the most items that a retriever returns, if that is known.
    """
    few = []
    for value in retrievers:
        if isinstance(value, type):
            fault = f"the class {value.__name__}: make an object of it, and pass that"
        elif is_retriever(value):
            size = size_of(value)
            if size is not None and size < extra_k:
                few.append(
                    f"extra_retrievers: {type(value).__name__} returns at most {size} documents, so fewer than "
                    f"extra_k={extra_k} join the candidates. Set its own number (k, similarity_top_k) to {extra_k}, or "
                    f"pass extra_k={size}"
                )
            continue
        elif callable(getattr(value, "as_retriever", None)):
            fault = f"a {type(value).__name__}, which is no retriever: pass its as_retriever(...)"
        elif any(callable(getattr(value, name, None)) for name in _RETRIEVES):
            fault = f"a {type(value).__name__} of another framework: pass retrievers of {framework}"
        else:
            fault = f"{quoted(value)}: pass retrievers of {framework}, such as a search by words"
        raise InvalidParameterError(f"extra_retrievers holds {fault}")
    return few


def gather_extras(
    kind: ItemKind[Any],
    store: Any,
    settings: Call,
    name_of: Callable[[Any], str],
    retrieve: Callable[[Any, str], Flow[Sequence[Any]]],
    search_words: Callable[[WordSearch[Any], str], Flow[Sequence[Any]]],
    look_up: Callable[[Sequence[Any], Sequence[Hashable]], Flow[KnownItems]],
    model: Callable[[], str],
    *,
    knows_ids: bool,
) -> Extras | None:
    """The extra retrievers and the search by words of the settings, whose names differ; None if there are none.

    ``knows_ids``: whether the store says which ids it has.
    """
    named: dict[str, ExtraRetriever] = {}
    words = share_search(kind, store) if settings.keyword_search else None
    if words is not None:
        named[KEYWORD_SEARCH] = ExtraRetriever(KEYWORD_SEARCH, partial(search_words, words))
    for retriever in settings.extra_retrievers:
        first = name = name_of(retriever)
        number = 1
        while name in named or name in (VECTOR_SEARCH, KEYWORD_SEARCH, FOLLOW):
            number += 1
            name = f"{first} {number}"
        named[name] = ExtraRetriever(name, partial(retrieve, retriever))
    if not named:
        return None
    indexes = [words, *(getattr(one, "words", None) for one in settings.extra_retrievers)]
    weigh = next((one.weigh for one in indexes if isinstance(one, WordSearch)), None)
    return Extras([*named.values()], look_up, model, words.refresh if words is not None and knows_ids else None, weigh)


def ask(
    owner: Settings, extras: Extras, queries: Sequence[EmbeddedQuery], extra_k: int, least: int | None
) -> list[Flow[Answer]]:
    """One flow for each retriever, which asks it for each of the queries; ``extra_k`` is shared out among them."""
    each = extra_k if len(queries) == 1 else share_fetch_k(extra_k, least, len(queries))
    return [_ask(owner, retriever, queries, each) for retriever in extras.retrievers]


def _ask(owner: Settings, retriever: ExtraRetriever, queries: Sequence[EmbeddedQuery], each: int) -> Flow[Answer]:
    started = time.perf_counter()
    # A question of which only the embedding is known has no text. If all of its words are removed, its text counts.
    texts = [query.words if query.words.strip() else query.text for query in queries]
    texts = [text for text in texts if text.strip()]
    answers = yield from together([_ask_once(owner, retriever, text) for text in texts])
    items = [item for found, _ in answers for item in found[:each]]
    errors = [error for _, error in answers if error is not None] if texts else ["the question has no text"]
    milliseconds = 1000 * (time.perf_counter() - started)
    return Answer(retriever.name, items, errors[0] if errors else None, milliseconds)


def _ask_once(owner: Settings, retriever: ExtraRetriever, text: str) -> Flow[tuple[Sequence[Any], str | None]]:
    try:
        return (yield from retriever.retrieve(text)), None
    # Every call would fail: the store holds too many documents for a keyword search, for example.
    except InvalidParameterError:
        raise
    # A retriever may raise anything, and the vector search has its candidates nevertheless.
    except Exception as failure:
        log_failure(retriever.name)
        error = f"{type(failure).__name__}: {failure}"
    warn_of_failure(owner, retriever.name, error)
    return [], error


def read_answers(
    owner: Settings,
    pool: Pool,
    answers: Sequence[Answer],
    extras: Extras,
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]],
    embed: Callable[[list[str]], Flow[Any]],
) -> Flow[tuple[Pool, list[ExtraSearch]]]:
    """The items that the retrievers found, each with its vector and the searches that found it.

    ``pool`` is what the vector search found. One call looks up what is not in it, and one embeds what the store does
    not have.
    """
    found = []
    for answer in answers:
        ids = drop_ambiguous(read_ids(answer.items), list(map(pool.text, answer.items)))
        one = pool._replace(items=answer.items, ids=ids, vectors=[None] * len(ids), scores=None)
        found.append(one.found_by(answer.name))
    first = len(pool.items)
    united, _ = unite(pool.found_by(VECTOR_SEARCH), found)
    new = range(first, len(united.items))
    searches = united.searches or ()
    joined = united.take([row for row in range(first) if len(searches[row]) > 1])
    left_out: list[int] = []
    if new:
        known = yield from extras.look_up(united.items[first:], united.ids[first:])
        united = united._replace(ids=[*united.ids[:first], *known.ids])
        left_out = [row for row, admitted in zip(new, known.admitted, strict=True) if not admitted]
        if extras.refresh is not None:
            # The index of words may be older than the store.
            deleted = [row for row in new if searches[row] == (KEYWORD_SEARCH,) and known.vectors[row - first] is None]
            if deleted:
                extras.refresh()
                left_out = sorted({*left_out, *deleted})
        unknown = sum(admitted is None for admitted in known.admitted)
        if unknown:
            warn_of_unknown_filter(owner, unknown, [answer.name for answer in answers])
        rows = [row for row in new if row not in {*left_out}]
        vectors = yield from _complete(owner, united, first, rows, known.vectors, extras, embed)
        more = united.take(rows)._replace(vectors=vectors)
        joined, _ = unite(joined, [more])
    names = [
        united.ids[row] if united.ids[row] is not None else united.text(united.items[row])[:60] for row in left_out
    ]
    reports = [
        ExtraSearch(
            answer.name,
            [name for name, row in zip(names, left_out, strict=True) if answer.name in searches[row]],
            answer.error,
            answer.milliseconds,
        )
        for answer in answers
    ]
    return joined, reports


def _complete(
    owner: Settings,
    united: Pool,
    first: int,
    rows: Sequence[int],
    stored: Sequence[Any],
    extras: Extras,
    embed: Callable[[list[str]], Flow[Any]],
) -> Flow[list[Any]]:
    """The vectors of ``rows``: stored ones, those of candidates with the same text, and embeddings of other texts."""
    missing = [row for row in rows if stored[row - first] is None]
    vectors: dict[str, Any] = {}
    texts: list[str] = []
    if missing:
        texts = list(map(united.text, united.items))
        vectors = dict(zip(texts[:first], united.vectors[:first], strict=True))
        unknown = list(dict.fromkeys(texts[row] for row in missing if texts[row] not in vectors))
        if unknown:
            model = extras.model()
            nameless = sum(united.ids[row] is None for row in missing if texts[row] not in vectors)
            if model:
                warn_of_embedding(owner, len(unknown), nameless, model)
            vectors |= zip(unknown, (yield from embed(unknown)), strict=True)
    is_missing = {*missing}
    return [vectors[texts[row]] if row in is_missing else stored[row - first] for row in rows]
