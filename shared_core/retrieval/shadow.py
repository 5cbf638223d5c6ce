"""The setting ``shadow``: a call returns what it returned before, and the log says what would have been selected."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._files import SHADOW_LOG_VERSION
from .._validation import id_of_text
from ..candidates import as_unit_rows, as_unit_vector
from .flow import Flow
from .lookup import name_and_parameters
from .pool import ItemSelection, Pool
from .request import Request
from .telling import LOGGER
from .values import read_numbers

SHADOW_LOGGER = logging.getLogger("setselect.shadow")
_COSINES = "relevance", "redundancy", "sum_cosine"


def in_shadow(
    request: Request,
    question: str,
    before: Flow[Sequence[Any]],
    read_ids: Callable[[Sequence[Any]], Sequence[Hashable]],
    selecting: Flow[ItemSelection],
) -> Flow[ItemSelection]:
    """The result of ``selecting``, with the items that ``before`` returns, and their ids.

    ``before`` runs first and as it would without setselect. An error of the selection, or of ``read_ids``, goes to the
    log ``setselect``.
    """
    returned = yield from before
    ids: Sequence[Hashable] = [None] * len(returned)
    line: dict[str, Any] = {}
    try:
        ids = read_ids(returned)
        selected = yield from selecting
        if SHADOW_LOGGER.isEnabledFor(logging.INFO):
            line = _compare(request, selected, returned, ids)
    # Whatever the selection raises, a running system must get what it got before.
    except Exception as error:
        LOGGER.exception("the selection in shadow failed; the call returns what was there before")
        selected = ItemSelection.nothing()._replace(error=f"{type(error).__name__}: {error}")
    if SHADOW_LOGGER.isEnabledFor(logging.INFO):
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"version": SHADOW_LOG_VERSION, "time": now, "query": question, **line, "error": selected.error}
        # Characters outside of ASCII are escaped, so the encoding of the file does not matter.
        SHADOW_LOGGER.info("%s", json.dumps(line))
    return selected._replace(returned=[*returned], returned_ids=ids)


def _compare(
    request: Request, selected: ItemSelection, returned: Sequence[Any], ids: Sequence[Hashable]
) -> dict[str, Any]:
    """What a line of the log says about both sets. Of ``returned`` the first ``k`` are compared with the selection."""
    settings, pool, selection = request.settings, selected.pool, selected.selection
    names, texts = _names(pool, pool.items, pool.ids), list(map(pool.body, pool.items))
    places = {name: row for row, name in reversed([*enumerate(names)])}
    picked = selection.indices.tolist()
    before = _names(pool, returned, ids)
    cosines = {
        "returned": _cosines(selected, [places.get(name) for name in before[: request.k]]),
        "selected": _cosines(selected, picked),
    }
    first: dict[str, str] = {}
    repeated = {name: first.setdefault(text, name) for name, text in zip(names, texts, strict=True) if text}
    line = {
        "queries": [*selected.queries[1:]],
        "returned": before,
        "selected": [names[row] for row in picked],
        "k": request.k,
        "fetch_k": None if pool.fetch_k is None else request.fetch_k - len(request.shown),
        "candidates": len(pool.items),
        **{key: {name: figures[key] for name, figures in cosines.items()} for key in _COSINES},
        "gains": list(map(_as_figure, selection.gains.tolist())),
        "referred_by": [None if row is None else names[row] for row in selected.referring],
        "copies": {name: one for name, one in repeated.items() if name != one} if settings.drop_duplicates else {},
        "milliseconds": _as_figure(selected.milliseconds),
        "selector": repr(request.selector),
        "settings": _plain(request),
    }
    if settings.costs is not None:
        items = {"returned": returned[: request.k], "selected": selected.items}
        line["costs"] = {
            name: _as_figure(float(read_numbers(of_set, settings.costs, "costs", request.view).sum()))
            for name, of_set in items.items()
        }
    return line


def _names(pool: Pool, items: Sequence[Any], ids: Sequence[Hashable]) -> list[str]:
    """The ids as text; a hash of the text for an item without one."""
    return [id_of_text(pool.body(item)) if name is None else str(name) for item, name in zip(items, ids, strict=True)]


def _cosines(selected: ItemSelection, rows: Sequence[int | None]) -> dict[str, float | None]:
    """The relevance, redundancy and cos(sum, q) of the candidates in these rows, as a comparison defines them.

    None for a row means an item that is no candidate, and so has no vector. Then all figures are None. An empty set has
    0 of everything, and a single item repeats nothing.
    """
    known = [row for row in rows if row is not None]
    if selected.question is None or len(known) < len(rows):
        return dict.fromkeys(_COSINES)
    if not known:
        return dict.fromkeys(_COSINES, 0.0)
    unit = as_unit_rows(np.array([selected.pool.vectors[row] for row in known], np.float64))
    query = as_unit_vector(selected.question, unit.shape, unit.dtype)
    total = unit.sum(axis=0)
    length, pairs = float(np.linalg.norm(total)), len(unit) * (len(unit) - 1)
    relevance = float((unit @ query).mean())
    redundancy = (length**2 - float(np.vdot(unit, unit))) / pairs if pairs else 0.0
    sum_cosine = float(total @ query) / length if length > 1e-9 else 0.0
    return dict(zip(_COSINES, map(_as_figure, (relevance, redundancy, sum_cosine)), strict=True))


def _plain(request: Request) -> dict[str, Any]:
    """The settings that are not the default: numbers, texts and yes or no as they are, and None for an object."""
    settings = request.settings
    skipped = {"k", "fetch_k", "selector", "lambda_mult", "shadow", "shown", "queries"}
    # The source has a default of its own in each framework.
    skipped |= {"source"} if settings.max_per_source is None else set()
    given = {
        name: value
        for name, field in type(settings).model_fields.items()
        if name not in skipped and (value := getattr(settings, name)) != field.default
    }
    name, parameters = name_and_parameters(request.selector)
    plain = {
        key: value if isinstance(value, (str, bool, int, float)) else None
        for key, value in (given | parameters).items()
    }
    # A call may give its own perspective.
    plain |= {"perspective": None} if "perspective" in plain else {}
    return {"selector": name or type(request.selector).__name__, **plain}


def _as_figure(value: float) -> float | None:
    """Nine decimals are more than any vector has; JSON has no NaN."""
    return round(value, 9) if math.isfinite(value) else None
