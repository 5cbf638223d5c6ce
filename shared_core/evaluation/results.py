"""What a comparison of selectors found: plain data without arrays, so that it can be shown anywhere or kept as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

Needs = Literal["nothing", "gold", "subtopics", "perspectives", "answers"]


@dataclass(frozen=True)
class CorpusFacts:
    """What was compared on what.

    ``queries`` counts those that were compared; it is less than ``planned_queries`` where the run was broken off.
    ``documents`` is None where a store was searched that does not say how many it holds. ``versions`` maps package
    names (``python`` among them) to versions.
    """

    documents: int | None
    queries: int
    planned_queries: int
    model: str
    k: int
    fetch_k: int
    seed: int
    versions: dict[str, str]


@dataclass(frozen=True)
class Setting:
    """One way to choose: its method (``"MMR"``), its label (``"MMR λ .5"``) and the selector's repr.

    ``parameter`` is the position in a sweep of the method (λ, temperature), None where nothing is swept: settings of
    the same ``method`` with a ``parameter`` make one curve, in that order.
    """

    method: str
    label: str
    parameter: float | None
    selector: str


@dataclass(frozen=True)
class Measure:
    """One column: its ``name`` for people, its ``key`` in ``Comparison.values``, and what the queries must bring."""

    name: str
    key: str
    description: str
    higher_is_better: bool
    needs: Needs


@dataclass(frozen=True)
class Estimate:
    """A mean over ``queries`` queries with its bootstrap 95 % interval, ``low <= mean <= high``.

    For a single query ``low == mean == high``.
    """

    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Recommendation:
    """Which setting to take, and how sure that is.

    ``setting`` and ``runner_up`` are positions in ``Comparison.settings``, ``measure`` is the key that decided; all
    are None where nothing in the queries says what is right, or nothing was measured. ``text`` is one or more whole
    sentences, plain text. ``p_runner_up`` and ``p_similarity`` are p values of paired tests of the setting against
    the runner-up and against plain similarity; None where there was nothing to test (too few queries; the setting is
    similarity itself).
    """

    setting: int | None
    runner_up: int | None
    measure: str | None
    text: str
    p_runner_up: float | None
    p_similarity: float | None


@dataclass(frozen=True)
class CandidateView:
    """One candidate of a query: an excerpt of its text, its cosine with the query, its place ``x, y`` on the map."""

    id: str
    text: str
    cosine: float
    x: float
    y: float


@dataclass(frozen=True)
class QueryView:
    """One query for looking at: its candidates in descending cosine, and what each setting picked.

    ``picks`` maps a position in ``Comparison.settings`` to positions in ``candidates``, in the order of choice.
    ``gold`` are the ids known to be right (empty where none are known); they need not be among the candidates.
    ``x, y`` is the query's own place on the map, a principal component analysis of the candidates and the query.
    """

    id: str
    text: str
    gold: tuple[str, ...]
    x: float
    y: float
    candidates: tuple[CandidateView, ...]
    picks: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison found.

    Attributes
    ----------
    title : str
    corpus : CorpusFacts
    settings : tuple of Setting
        Plain similarity is always the first.
    measures : tuple of Measure
        Only those that these queries allow; the cosine measures first.
    values : dict
        ``values[setting index, measure key]``; each measure has a value for each setting.
    recommendation : Recommendation
    relevance, redundancy : tuple of float or None, one per setting
        Mean cosine of the picks with their query; mean cosine between the picks of a query. ``redundancy`` holds
        None throughout where every set is one text.
    queries : tuple of QueryView
        The first few queries, for looking at.
    partial : bool
        Whether the run was broken off before the last query.
    notes : tuple of str
        What a reader should know: lines that could not be read, gold ids that no document has, ...

    Examples
    --------
    >>> facts = CorpusFacts(2, 1, 1, "a model", k=1, fetch_k=2, seed=0, versions={"numpy": "2.4.6"})
    >>> setting = Setting("similarity", "similarity", None, "TopK()")
    >>> measure = Measure("relevance", "relevance", "mean cosine with the query", True, "nothing")
    >>> nothing = Recommendation(None, None, None, "No winner can be named.", None, None)
    >>> found = Comparison(
    ...     "Notes", facts, (setting,), (measure,), {(0, "relevance"): Estimate(0.5, 0.5, 0.5, 1)}, nothing,
    ...     relevance=(0.5,), redundancy=(None,), queries=(),
    ... )
    >>> found.to_json()[:18]
    '{"title": "Notes",'
    """

    title: str
    corpus: CorpusFacts
    settings: tuple[Setting, ...]
    measures: tuple[Measure, ...]
    values: dict[tuple[int, str], Estimate]
    recommendation: Recommendation
    relevance: tuple[float, ...]
    redundancy: tuple[float | None, ...]
    queries: tuple[QueryView, ...]
    partial: bool = False
    notes: tuple[str, ...] = ()

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON; ``values`` as a list of objects with ``setting``, ``measure`` and the estimate."""
        plain = asdict(self)
        plain["values"] = [
            {"setting": setting, "measure": measure, **asdict(estimate)}
            for (setting, measure), estimate in self.values.items()
        ]
        return json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False)
