"""What is said about a selection: the event of the adapters, a line in the log, and warnings."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quoted
from ..errors import EmbeddingFallbackWarning, warn
from ..texts.texts import NameCounts
from .pool import VECTOR_SEARCH, ItemSelection, Pool
from .request import Request

if TYPE_CHECKING:
    from .settings import Settings

LOGGER = logging.getLogger("setselect")
LOGGER.addHandler(logging.NullHandler())
# After so many searches in which an extra retriever was of no use, there is a warning.
SEARCHES = 20
# The keys for which ``warn_of_fallback`` has warned.
FALLBACKS: set[Hashable] = set()
# Searches of one object may run in several threads.
_COUNTING = threading.Lock()


def timed(request: Request, selected: ItemSelection, started: float, vector_source: Callable[[], str]) -> ItemSelection:
    """The selection with its time since ``started``, a value of ``time.perf_counter``; writes one line to the log.

    The line holds no query, text or id. ``vector_source`` is called only if the line is written.
    """
    milliseconds = 1000 * (time.perf_counter() - started)
    if LOGGER.isEnabledFor(logging.DEBUG):
        fields = {
            "selector": repr(request.selector),
            "k": request.k,
            "fetch_k": selected.pool.fetch_k,
            "candidates": len(selected.pool.items),
            "selected": len(selected.items),
            "vector_source": vector_source(),
            "milliseconds": milliseconds,
        }
        LOGGER.debug(
            "%(selector)s selected %(selected)d of %(candidates)d candidates (k=%(k)s, fetch_k=%(fetch_k)s, "
            "vectors from %(vector_source)s) in %(milliseconds).1f ms",
            fields,
            extra={"setselect": fields},
        )
    return selected._replace(milliseconds=milliseconds)


def describe(request: Request, selected: ItemSelection) -> dict[str, Any]:
    """What the adapters' events say about a selection, in the order of the picks.

    ``referred_by`` holds, for each pick, the id of the earlier pick (or ``shown`` item) whose text refers to it, or
    None, and ``reference_kinds`` how it does. ``reasons`` says in words why each pick is there, and ``shares`` which
    shares of its worth relevance, what it covers, and references have; see :class:`Selection`. ``followed`` holds what
    was searched for: its kind (``"name"``, ``"link"``, ``"citation"`` or ``"neighbour"``), its name (for a neighbour
    the id of the pick that it stands next to), the ids of the candidates that it added, and those of them that were
    selected. ``queries`` holds the question and its sub-questions, and ``serves`` for each pick the one that it serves
    best, or None if there is only the question. ``with_name``, ``named``, ``linked``, ``cited`` and ``next_to`` count
    the candidates that have a name, whose name stands in the text of another one, and to which another one leads by a
    link, a citation or its place, without copies; None if no references are read. With ``shadow`` all of this is about
    what the selection would have returned, and ``returned`` holds the ids of what the call returned.

    With ``join_neighbours``, ``joined`` holds, for each document that the call returns, the ids of its parts. All other
    keys are about the parts.

    With ``extra_retrievers``, ``candidates_by`` counts what each search found, ``found_by`` holds the names of the
    searches that found each pick, and ``extra_retrievers`` says for each retriever which candidates it found, which of
    them only an extra retriever did (``added``), which were selected, which the filter left out, its error and its
    time.
    """
    ids, selection = selected.pool.ids, selected.selection
    counts = selected.name_counts
    picked = {*selection.indices.tolist()}
    shadow = {"shadow": True, "returned": [*selected.returned_ids], "error": selected.error}
    return {
        "selector": repr(request.selector),
        "fetch_k": selected.pool.fetch_k,
        "candidates": len(ids),
        **(dict.fromkeys(NameCounts._fields) if counts is None else counts._asdict()),
        "queries": [*selected.queries],
        "ids": selected.ids,
        "serves": selected.serving,
        "referred_by": [None if row is None else ids[row] for row in selected.referring],
        "reference_kinds": selected.reference_kinds,
        "reasons": selected.explain(),
        "shares": None if selection.shares is None else selection.shares.tolist(),
        "gains": selection.gains.tolist(),
        "relevance": selection.relevance.tolist(),
        "objective": selection.objective if ids else None,
        "filled_from": selection.filled_from,
        "followed": [
            {
                "kind": kind,
                "name": name,
                "found": [ids[row] for row in rows],
                "selected": [ids[row] for row in rows if row in picked],
            }
            for kind, name, rows in selected.followed
        ],
        "milliseconds": selected.milliseconds,
        **(
            {}
            if selected.neighbours is None
            else {"joined": [[selected.ids[at] for at in run] for run in selected.runs]}
        ),
        **(_describe_searches(selected) if selected.extras else {}),
        **({} if selected.returned is None else shadow),
    }


def _describe_searches(selected: ItemSelection) -> dict[str, Any]:
    pool, picked = selected.pool, {*selected.selection.indices.tolist()}
    found: dict[str, list[int]] = {VECTOR_SEARCH: [], **{extra.name: [] for extra in selected.extras}}
    for row, names in enumerate(pool.searches or ()):
        for name in names:
            found.setdefault(name, []).append(row)
    by_vector = {*found[VECTOR_SEARCH]}
    return {
        "candidates_by": {name: len(rows) for name, rows in found.items()},
        "found_by": [[*(names or ())] for names in selected.found_by],
        "extra_retrievers": [
            {
                "name": extra.name,
                "found": [pool.ids[row] for row in found[extra.name]],
                "added": [pool.ids[row] for row in found[extra.name] if row not in by_vector],
                "selected": [pool.ids[row] for row in found[extra.name] if row in picked],
                "left_out": [*extra.left_out],
                "error": extra.error,
                "milliseconds": extra.milliseconds,
            }
            for extra in selected.extras
        ],
    }


def warn_if_all_are_selected(request: Request, owner: Settings, candidates: int, remedy: str) -> None:
    """Warn, once for each ``owner``, if there is nothing to select from."""
    if 0 < candidates <= request.all_of and is_first(owner, "_warned"):
        every = f"{owner.size_name}={request.k}"
        warn(f"{every} of {candidates} candidates: all of them are selected, whatever the method. {remedy}")


def warn_of_empty_store(owner: Settings, vector_source: str) -> None:
    """Warn, once for each ``owner``, that a search without a filter found nothing."""
    if is_first(owner, "_warned_of_nothing"):
        warn(
            f"the search found no documents ({vector_source}): the store is empty. Add documents, or check that the "
            "store is over the collection that was filled"
        )


def warn_of_unused_perspective(request: Request) -> None:
    """For callers that do not search: warn if a perspective has no effect, because relevance is given."""
    settings = request.settings
    if settings.perspective is not None and settings.has_relevance and not settings.corpus:
        warn(
            "perspective has no effect here: it projects the query, and the given relevance takes the place of "
            "the cosine with the query. corpus=True projects the candidates too"
        )


def warn_of_ignored_scores(request: Request, owner: Settings, selected: ItemSelection, name: str) -> None:
    """Warn, once for each ``owner``, if the candidates came with scores under ``name`` that no search gives."""
    if request.settings.relevance is not None or selected.pool.scores is None or selected.cosines is None:
        return
    scores = np.array(selected.pool.scores, np.float64)
    known = np.isfinite(scores)
    scores, cosines = scores[known], selected.cosines[known]
    if "_checked_scores" in owner.__dict__ or not _orders_otherwise(scores, cosines):
        return
    # The vectors are looked at once for each owner.
    is_first(owner, "_checked_scores")
    if selected.question is not None and not _are_of_search(
        scores, np.asarray(selected.pool.vectors)[known], selected.question
    ):
        warn(
            f"the {name} of the candidates is ignored: it orders them otherwise than their cosine with the query, "
            f"which is the relevance here. If a reranker gave it, relevance={name!r} selects by it. If a fusion of "
            "searches did, the cosine selects better: relevance='cosine' keeps it without this warning"
        )


def log_failure(retriever: str) -> None:
    """Write the exception that an extra retriever raised to the log."""
    LOGGER.warning("the extra retriever %s failed; the set is selected without it", retriever, exc_info=True)


def log_failed_look_up(kind: str) -> None:
    """Write the exception of a store that failed to look up what the picks refer to to the log."""
    LOGGER.warning(
        "follow: the look-up of a %s by metadata failed; the set is selected without it", kind, exc_info=True
    )


def warn_of_failure(owner: Settings, retriever: str, error: str) -> None:
    """Warn, once for each ``owner`` and retriever, that an extra retriever failed."""
    if is_first(owner, f"_failed_{retriever}"):
        warn(
            f"extra_retrievers: {retriever} failed ({error}), so the set is selected without what it would have found. "
            "Later failures are in the log 'setselect' and in the event only"
        )


def warn_of_unknown_filter(owner: Settings, number: int, retrievers: Sequence[str]) -> None:
    """Warn, once for each ``owner``, that it is not known whether the filter lets some documents in."""
    if is_first(owner, "_warned_of_filter"):
        warn(
            f"extra_retrievers: {number} documents that {' or '.join(retrievers)} found are left out, because the "
            "search has a filter or another argument of the store, and it is not known whether it lets them in: they "
            "have no ids, or the store cannot be asked. Documents that the vector search finds too are candidates"
        )


def warn_of_embedding(owner: Settings, number: int, nameless: int, model: str) -> None:
    """Warn, once for each ``owner``, that texts of extra retrievers are embedded; ``nameless`` of them have no id."""
    if not is_first(owner, "_warned_of_embedding"):
        return
    if nameless == number:
        why, remedy = "they have no id to look vectors up by", "Give them the ids that they have in the store"
    else:
        why = "the store has no vectors for them"
        why += f", and {nameless} of them have no id to look vectors up by" if nameless else ""
        remedy = "Search the documents that are in the store, with the ids that they have there"
    warn(
        f"extra_retrievers: each query embeds the texts of further documents ({number} this time) with {model}: {why}. "
        f"{remedy}, or use a cache of embeddings",
        EmbeddingFallbackWarning,
    )


def warn_of_fallback(key: Hashable, number: int, model: str, why: str) -> None:
    """Warn, once for each ``key``, that each query embeds texts again; ``why`` says what to do about it."""
    if number and key not in FALLBACKS:
        FALLBACKS.add(key)
        again = f"each query embeds the texts of its candidates again ({number} this time) with {model}"
        warn(f"{again}: {why}", EmbeddingFallbackWarning)


def warn_of_unused_retrievers(owner: Settings, selected: ItemSelection) -> None:
    """Warn, once for each ``owner`` and retriever, if an extra retriever never added a candidate.

    A search counts if the retriever did not fail, and if the vector search may have left out documents.
    """
    pool, idle = selected.pool, []
    for extra in selected.extras:
        if extra.error is None and not pool.exhausted:
            added = _has_added(pool, extra.name) or extra.left_out
            with _COUNTING:
                # Not private attributes of pydantic, for the reason that is_first gives.
                searches = owner.__dict__.get(f"_idle_{extra.name}", 0) + 1
                owner.__dict__[f"_idle_{extra.name}"] = -math.inf if added else searches
            if searches == SEARCHES and not added:
                idle.append(extra.name)
    if idle:
        warn(
            f"extra_retrievers: in {SEARCHES} searches {' and '.join(idle)} found nothing that the vector search did "
            "not find. Compare what it returns with the documents of the store, or leave it out"
        )


def _has_added(pool: Pool, search: str) -> bool:
    return any(search in names and VECTOR_SEARCH not in names for names in pool.searches or ())


def warn_of_foreign_examples(
    owner: object, candidates: Iterable[Hashable], own: Container[Hashable] | None, store: object
) -> None:
    """Warn, once for each ``owner``, if the store found examples that the owner did not add.

    ``own`` holds the texts or ids of those that it added; None if that is not known.
    """
    foreign = [] if own is None else [name for name in candidates if name not in own]
    if foreign and is_first(owner, "_warned_of_examples"):
        warn(
            f"{type(store).__name__} found {len(foreign)} examples that this selector did not add, such as "
            f"{quoted(foreign[0])}: another selector or an earlier run put them into the same collection. Give each "
            "selector a collection of its own. In LangChain, from_examples passes collection_name= on to the store"
        )


def is_first(owner: object, flag: str) -> bool:
    """Whether ``flag`` was not set for this owner before; it is set then."""
    # Pydantic compares private attributes. The flag is not one, so equal objects stay equal after a warning.
    first = flag not in owner.__dict__
    owner.__dict__[flag] = True
    return first


def _are_of_search(scores: NDArray[np.float64], vectors: NDArray[Any], query: NDArray[np.float64]) -> bool:
    """Whether scores order the candidates as a search by product or distance does."""
    rows = vectors.astype(np.float64)
    products, squares = rows @ query, np.vecdot(rows, rows)
    scale = math.sqrt(query @ query * squares.mean())
    return not all(_orders_otherwise(scores, values / scale) for values in (products, products - squares / 2))


def _orders_otherwise(scores: NDArray[np.float64], cosines: NDArray[Any]) -> bool:
    """Whether scores order the candidates neither as their cosines do nor the other way round.

    Stores give cosines, rescaled cosines or distances. Quantized vectors may change the order of cosines that differ
    by less than 0.01.
    """

    def largest_rise(values: NDArray[Any]) -> float:
        ordered = values[np.lexsort((-values, -scores))]
        return float((ordered - np.minimum.accumulate(ordered)).max(initial=0))

    return min(largest_rise(cosines), largest_rise(-cosines)) > 0.01
