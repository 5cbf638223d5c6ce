"""The result of a comparison: plain data without arrays, which can be shown anywhere and stored as JSON."""

from __future__ import annotations

import html
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from .._validation import quoted

if TYPE_CHECKING:
    import pandas

Needs = Literal["nothing", "gold", "subtopics", "perspectives", "answers"]


@dataclass(frozen=True)
class CorpusFacts:
    """The corpus and the conditions of the comparison.

    ``queries`` counts the queries that were compared; it is less than ``planned_queries`` if the run was interrupted.
    ``documents`` is None if a store was searched whose size is unknown. ``versions`` maps packages, and ``python``, to
    their versions.
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
    """One selector of the comparison: its method (``"MMR"``), its label (``"MMR λ 0.5"``) and the selector's repr.

    ``parameter`` is the value of the swept parameter (λ, temperature), or None. Settings of one ``method`` that have a
    ``parameter`` form one curve, in the order of its values.
    """

    method: str
    label: str
    parameter: float | None
    selector: str


@dataclass(frozen=True)
class Measure:
    """One measure: its ``name`` for people, its ``key`` in ``Comparison.values``, and what the queries must hold."""

    name: str
    key: str
    description: str
    higher_is_better: bool
    needs: Needs


@dataclass(frozen=True)
class Estimate:
    """A mean over ``queries`` queries with its bootstrap 95 % interval; for one query ``low == mean == high``."""

    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Recommendation:
    """The setting to take, and how certain that is.

    ``setting`` and ``runner_up`` are positions in ``Comparison.settings``, ``measure`` is the key that decided. All are
    None if no query says what is right. ``text`` is plain text, one or more whole sentences. ``p_runner_up`` and
    ``p_similarity`` are p values of paired tests of the setting against the runner-up and against plain similarity.
    They are None if there are too few queries to test, or the setting is similarity itself.
    """

    setting: int | None
    runner_up: int | None
    measure: str | None
    text: str
    p_runner_up: float | None
    p_similarity: float | None


@dataclass(frozen=True)
class CandidateView:
    """A candidate of a query: an excerpt of its text, its cosine with the query, and its place ``x, y`` on the map."""

    id: str
    text: str
    cosine: float
    x: float
    y: float


@dataclass(frozen=True)
class QueryView:
    """One query with its candidates, in descending order of their cosine, and the picks of each setting.

    ``picks`` maps a position in ``Comparison.settings`` to positions in ``candidates``, in the order of the picks.
    ``gold`` holds the ids that are known to be right; they need not be among the candidates. ``x, y`` is the query's
    place on the map, which shows the first two principal components of the candidates and the query.
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
    """The result of a comparison.

    Attributes
    ----------
    title : str
    corpus : CorpusFacts
    settings : tuple of Setting
        Plain similarity is always the first.
    measures : tuple of Measure
        The measures that these queries allow; those from the vectors alone come first.
    values : dict
        ``values[position of a setting, key of a measure]``, an :class:`Estimate` for each pair.
    recommendation : Recommendation
    relevance, redundancy : tuple of float or None, one per setting
        Mean cosine of the picks with their query; mean cosine between the picks of a query. Every ``redundancy`` is
        None if each query has one pick.
    queries : tuple of QueryView
        The first queries in full, for the report.
    partial : bool
        Whether the run was interrupted before the last query.
    notes : tuple of str
        Remarks for the reader: lines that could not be read, gold ids that no document has, ...

    Examples
    --------
    >>> from shared_core.evaluation.compare import compare
    >>> found = compare(["A", "B"], ["?"], ([[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0]]), k=1, title="Notes")
    >>> found.values[0, "relevance"], found.to_json()[:18]
    (Estimate(mean=1.0, low=1.0, high=1.0, queries=1), '{"title": "Notes",')
    >>> found
    Comparison('Notes', 18 settings, 2 measures, 1 queries, k=1 of 2, recommended=None)
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

    def __repr__(self) -> str:
        return (
            f"Comparison({quoted(self.title)}, {len(self.settings)} settings, {len(self.measures)} measures, "
            f"{self.corpus.queries} queries, k={self.corpus.k} of {self.corpus.fetch_k}, "
            f"recommended={self._recommended()!r})"
        )

    def _repr_html_(self) -> str:
        """A table for notebooks: the mean of each measure for each setting, the recommended one in bold."""
        head = "".join(f"<th>{html.escape(measure.name)}</th>" for measure in self.measures)
        rows = []
        for position, setting in enumerate(self.settings):
            label, best = html.escape(setting.label), position == self.recommendation.setting
            means = (self.values[position, measure.key].mean for measure in self.measures)
            cells = "".join(f"<td>{mean:.3f}</td>" for mean in means)
            rows.append(f"<tr><th>{f'<b>{label}</b>' if best else label}</th>{cells}</tr>")
        caption = f"<caption>{html.escape(self.title)}. {html.escape(self.recommendation.text)}</caption>"
        return f"<table>{caption}<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def _recommended(self) -> str | None:
        position = self.recommendation.setting
        return None if position is None else self.settings[position].label

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with one row for each setting and measure.

        Its columns are ``setting`` (the label), ``method``, ``parameter``, ``measure`` (the key), ``mean``, ``low``,
        ``high`` and ``queries``. ``frame.pivot(index="setting", columns="measure", values="mean")`` has one row for
        each setting.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("Comparison.to_frame needs pandas: pip install pandas") from error
        rows = []
        for (position, key), estimate in self.values.items():
            setting = self.settings[position]
            about = {"setting": setting.label, "method": setting.method, "parameter": setting.parameter}
            rows.append({**about, "measure": key, **asdict(estimate)})
        return pandas.DataFrame(rows)

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON; ``values`` is a list of objects with ``setting``, ``measure`` and the estimate."""
        plain = asdict(self)
        plain["values"] = [
            {"setting": setting, "measure": measure, **asdict(estimate)}
            for (setting, measure), estimate in self.values.items()
        ]
        text = json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False)
        # A file name or a broken text can hold half of a surrogate pair, which UTF-8 cannot encode.
        return text.encode("utf-8", "replace").decode("utf-8")
