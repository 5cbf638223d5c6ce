"""What a call says: the log, warnings, the event, and the line of the setting ``shadow``."""

from __future__ import annotations

import json
import logging
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..candidates import REFERENCE_KINDS
from ..errors import EmbeddingFallbackWarning, warn
from .flow import Flow
from .pool import ItemSelection
from .request import Request
from .settings import Settings

LOGGER, SHADOW_LOGGER = logging.getLogger("setselect"), logging.getLogger("setselect.shadow")
LOGGER.addHandler(logging.NullHandler())
# The keys for which ``warn_of_fallback`` has warned.
FALLBACKS: set[Hashable] = set()


def describe(request: Request, selected: ItemSelection) -> dict[str, Any]:
    """What the events say about a selection, in the order of the picks; the page on recipes names the keys."""
    ids, selection = selected.pool.ids, selected.selection
    picked, found_by = selection.indices.tolist(), selected.pool.searches or [()] * len(ids)
    searches = {
        "found_by": [[*found_by[row]] for row in picked],
        "extra_retrievers": [
            {
                "name": extra.name,
                "found": [name for name, names in zip(ids, found_by, strict=True) if extra.name in names],
                "left_out": [*extra.left_out],
                "error": extra.error,
            }
            for extra in selected.extras
        ],
    }
    return {
        "selector": repr(request.selector),
        "fetch_k": selected.pool.fetch_k,
        "candidates": len(ids),
        "queries": [*selected.queries],
        "ids": selected.ids,
        "serves": selected.read_each(selection.serves, selected.queries),
        "referred_by": selected.read_each(selection.referred_by, ids),
        "reference_kinds": selected.read_each(selection.reference_kinds, REFERENCE_KINDS),
        "reasons": selected.explain(),
        "shares": None if selection.shares is None else selection.shares.tolist(),
        "gains": selection.gains.tolist(),
        "relevance": selection.relevance.tolist(),
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
        "joined": [[selected.ids[at] for at in run] for run in selected.runs if len(run) > 1],
        **(searches if selected.extras else {}),
        **({} if selected.shadow is None else {"shadow": selected.shadow}),
    }


def warn_of_ignored_scores(request: Request, owner: Settings, selected: ItemSelection, name: str) -> None:
    """Warn, once for each ``owner``, if the candidates came with scores under ``name`` that order them otherwise."""
    # With sub-questions the scores are of one of them, or of a fusion, which the selection replaces.
    if request.settings.relevance is not None or selected.cosines is None or len(selected.queries) > 1:
        return
    scores = np.array(selected.pool.scores or [], np.float64)
    known = np.flatnonzero(np.isfinite(scores))
    cosines = selected.cosines[known]
    # Stores give cosines, rescaled cosines or distances. Quantized vectors change the order of those that are near.
    steps = np.diff(cosines[np.lexsort((-cosines, -scores[known]))])
    if (steps > 0.01).any() and (steps < -0.01).any() and is_first(owner, "_warned_of_scores"):
        warn(
            f"the {name} of the candidates is ignored: it orders them otherwise than their cosine with the query, "
            f"which is the relevance here. If a reranker gave it, relevance={name!r} selects by it. If a fusion of "
            "searches did, the cosine selects better: relevance='cosine' keeps it without this warning"
        )


def warn_of_fallback(key: Hashable, number: int, model: str, why: str) -> None:
    """Warn, once for each ``key``, that each query embeds texts again; ``why`` says what to do about it."""
    if number and key not in FALLBACKS:
        FALLBACKS.add(key)
        again = f"each query embeds the texts of its candidates again ({number} this time) with {model}"
        warn(f"{again}: {why}", EmbeddingFallbackWarning)


def is_first(owner: object, flag: str) -> bool:
    """Whether ``flag`` was not set for this owner before; it is set then."""
    # Pydantic compares private attributes. The flag is not one, so equal objects stay equal after a warning.
    first = flag not in owner.__dict__
    owner.__dict__[flag] = True
    return first


def in_shadow(
    request: Request, question: str, returned: Sequence[Any], ids: Sequence[Hashable], selecting: Flow[ItemSelection]
) -> Flow[ItemSelection]:
    """What is selected; the call returns what was there before, and a log says what is selected."""
    line: dict[str, Any] = {"query": question, "returned": ids, "error": None}
    try:
        selected = yield from selecting
        line |= {"selected": selected.ids, "k": request.k, "fetch_k": selected.pool.fetch_k}
        line |= {"selector": repr(request.selector), "milliseconds": round(selected.milliseconds, 3)}
    # Whatever the selection raises, a running system must get what it got before.
    except Exception as error:
        LOGGER.exception("the selection in shadow failed; the call returns what was there before")
        selected, line["error"] = ItemSelection.nothing(), f"{type(error).__name__}: {error}"
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    # Characters outside of ASCII are escaped, so the encoding of the file does not matter.
    SHADOW_LOGGER.info("%s", json.dumps({"time": now, **line}, default=str))
    return selected._replace(returned=[*returned], shadow=line)
