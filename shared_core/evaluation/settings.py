"""What a comparison tries: selectors with the settings that the adapters have, by name or as a line of text."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_fields, check_number
from ..candidates import Candidates, check_constraints, standardise
from ..errors import InvalidParameterError, argument_name, nearest_name, quoted
from ..selection.route import DEFAULT_MIN_K, Limits, select_set
from ..selectors.registry import (
    DEFAULT_SELECTOR,
    Capabilities,
    Selector,
    capabilities_of,
    make_selector,
    selector_names,
    selector_parameters,
)
from ..selectors.selection import Selection
from .results import Setting

Settings: TypeAlias = Sequence[tuple[Setting, Selector]]

HYBRID_SEARCH, SUM_OF_SCORES = "hybrid search", "sum of scores"
# The weight of BM25 in the sum of scores: the one that the benchmarks choose.
_WORDS = 0.7
# The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), as the frameworks have it.
_RRF_CONSTANT = 60


@dataclass(frozen=True)
class Adapted:
    """A selector with the settings that the adapters have.

    With ``keyword_search`` the documents that a search by words finds are candidates too.
    """

    selector: Selector
    max_per_source: int | None = None
    drop_near_duplicates: float | None = None
    budget: float | None = None
    score_threshold: float | None = None
    min_gain: float | None = None
    min_k: int = DEFAULT_MIN_K
    keyword_search: bool = False

    def __post_init__(self) -> None:
        check_constraints(self.max_per_source, self.drop_near_duplicates, has_sources=True)
        check_fields(self)
        if self.score_threshold is not None:
            check_number(self.score_threshold, "score_threshold", -1, 1)

    @property
    def capabilities(self) -> Capabilities:
        """What its selector can use."""
        return capabilities_of(self.selector)

    def select(
        self, candidates: Candidates, k: int | None = None, *, budget: float | None = None, shown: Iterable[int] = ()
    ) -> Selection:
        """The selection that the adapters make; it may have fewer than ``k`` picks."""
        return self.select_set(candidates, k, shown=tuple(shown))

    def select_set(self, candidates: Candidates, k: int | None, *, drop_copies: bool = False, **more: Any) -> Selection:
        """:func:`select_set` with these settings."""
        limits = Limits(self.budget, self.score_threshold, self.min_gain, self.min_k, drop_copies)
        sourced = candidates.sources is not None
        checked = check_constraints(self.max_per_source, self.drop_near_duplicates, has_sources=sourced)
        return select_set(candidates.with_checked(**checked), self.selector, k, limits=limits, **more)


def as_adapted(selector: Selector) -> Adapted:
    """The selector with settings of the adapters, which are their defaults if it has none."""
    return selector if isinstance(selector, Adapted) else Adapted(selector)


# The settings of the adapters that named() takes besides a selector's own parameters, and those that come after it.
OF_ADAPTERS = tuple(field.name for field in fields(Adapted)[1:])
_AFTER = {"follow", "join_neighbours"}


def sweep() -> list[tuple[Setting, Selector]]:
    """The settings that are tried by default, simplest first; the last one needs an index of words.

    >>> [setting.label for setting, _ in sweep()][:4]
    ['similarity', 'coverage', 'ndpp', 'vrsd']
    """
    return [
        named("similarity"),
        named("coverage"),
        named("ndpp"),
        named("vrsd"),
        # 0.5 is the default of LangChain and LlamaIndex, and 1 would be similarity.
        *(named("mmr", lambda_mult=value) for value in (0.5, 0.8)),
        *(named("coverage", word_weight=value) for value in (0.5, 2.0)),
        named("coverage", reference_weight=0),
        named(DEFAULT_SELECTOR, keyword_search=True),
    ]


def named(name: str, **parameters: Any) -> tuple[Setting, Selector]:
    """The selector of this name with these parameters, and its setting.

    ``parameters`` are the selector's own, and these settings of the adapters: ``max_per_source``, for documents with a
    ``source``; ``drop_near_duplicates``; ``budget``, for the ``cost`` of documents; ``score_threshold``; ``min_gain``
    and ``min_k``; and ``keyword_search=True``, for documents that a search by words finds as candidates too. A set may
    then have fewer than ``k`` members.

    >>> named("coverage", max_per_source=2, drop_near_duplicates=0.9)[0].label
    'coverage max_per_source=2 drop_near_duplicates=0.9'
    """
    for key in sorted(_AFTER & parameters.keys()):
        raise InvalidParameterError(
            f"{key} looks up more texts where a retriever searches, so no row can show it: run the retriever with and "
            "without it, and compare what both return by setselect.evaluation.measures.recall"
        )
    adapted = {key: value for key, value in parameters.items() if key in OF_ADAPTERS}
    own = {key: value for key, value in parameters.items() if key not in OF_ADAPTERS}
    for key in own if name in selector_names() else ():
        near = nearest_name(key, (*selector_parameters(name), *OF_ADAPTERS))
        if key not in selector_parameters(name) and near in OF_ADAPTERS:
            raise InvalidParameterError(f"there is no setting {quoted(key)}: did you mean {quoted(near)}?")
    selector = make_selector(name, **own)
    source = {key: _as_source(key, value) for key, value in parameters.items()}
    shown = ", ".join([repr(selector), *(f"{key}={source[key]}" for key in adapted)])
    if "min_k" in adapted and "min_gain" not in adapted:
        raise InvalidParameterError("min_k has no effect without min_gain")
    if adapted:
        selector = Adapted(selector, **adapted)
    label = " ".join([name, *(f"{key}={_as_typed(value)}" for key, value in parameters.items())])
    return Setting(name, label, shown, tuple(source.items())), selector


def parse_setting(text: str) -> tuple[Setting, Selector]:
    """The setting that a label names: a selector's name, and ``parameter=value`` with a space between them.

    >>> parse_setting("mmr lambda_mult=0.7") == named("mmr", lambda_mult=0.7)
    True
    """
    name, *parts = text.split() or [""]
    parameters: dict[str, Any] = {}
    try:
        for part in parts:
            key, _, value = part.partition("=")
            if not value or key in parameters:
                raise InvalidParameterError(
                    f"{quoted(part)} must be parameter=value, each parameter once, as in 'mmr lambda_mult=0.7'"
                )
            # A number, True, False or None; else a text.
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(value)
            parameters[key] = value
        return named(name, **parameters)
    except (InvalidParameterError, OSError) as error:
        raise InvalidParameterError(f"{argument_name('setting')} {quoted(text)}: {error}") from None


def fuse_rankings(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: for each row the sum of 1 / (60 + rank) over the rankings, the highest sum first.

    >>> list(fuse_rankings([[7, 8, 9], [9, 5]]))
    [9, 7, 8, 5]
    """
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            sums[row] = sums.get(row, 0.0) + 1 / (_RRF_CONSTANT + rank)
    return dict(sorted(sums.items(), key=lambda of_row: -of_row[1]))


def rank_with_words(cosines: NDArray[np.floating], bm25: ArrayLike) -> dict[str, list[int]]:
    """What needs no selection: candidates by reciprocal ranks, and by the sum of both scores in standard deviations.

    >>> rank_with_words(np.array([0.9, 0.8, 0.1]), [0.0, 2.0, 3.0])
    {'hybrid search': [2, 1, 0], 'sum of scores': [1, 0, 2]}
    """
    words = np.asarray(bm25, np.float64)
    by_words = [row for row in np.argsort(-words, kind="stable").tolist() if words[row] > 0]
    total = standardise(cosines)[0] + _WORDS * standardise(words, any_size=True)[0]
    fused = fuse_rankings([np.argsort(-cosines, kind="stable").tolist(), by_words])
    return {HYBRID_SEARCH: [*fused], SUM_OF_SCORES: np.argsort(-total.round(9), kind="stable").tolist()}


def distinct(settings: Settings) -> list[tuple[Setting, Selector]]:
    """The settings, each label once."""
    return list({setting.label: (setting, selector) for setting, selector in settings}.values())


def _as_typed(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    # The repr of a kernel is too long for a label.
    return str(value) if isinstance(value, str | bool | None) else type(value).__name__


def _as_source(key: str, value: Any) -> str:
    """The value as Python source; a kernel or another object is the variable of its parameter's name."""
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if isinstance(value, int | float | None) else key
