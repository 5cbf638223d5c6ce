"""The result of a comparison: plain data without arrays, which can be shown anywhere and stored as JSON."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import quoted

if TYPE_CHECKING:
    import pandas

Needs = Literal["nothing", "gold", "subtopics"]


@dataclass(frozen=True)
class CorpusFacts:
    """The corpus and the conditions of the comparison; ``queries`` are those with candidates.

    ``documents`` is None for a store of unknown size. ``gold_in_reach`` is the mean share of the gold documents that
    are candidates; None if it is not known.
    """

    documents: int | None
    queries: int
    model: str
    k: int
    fetch_k: int
    versions: dict[str, str]
    gold_in_reach: float | None = None


@dataclass(frozen=True)
class Setting:
    """One row: its method (``"mmr"``), its label (``"mmr lambda_mult=0.5"``, as users type it) and its repr.

    ``parameters`` are names and values as Python source.
    """

    method: str
    label: str
    selector: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def keyword_search(self) -> bool:
        """Whether it selects from the documents that a search by words finds, too."""
        return ("keyword_search", "True") in self.parameters


@dataclass(frozen=True)
class Measure:
    """A measure: its ``name`` for people, its ``key`` in ``Comparison.values``, and what the queries must hold.

    ``most`` is the highest mean that this number of picks allows: of precision it is below 1 if queries have fewer gold
    documents than picks, of recall if they have more.
    """

    name: str
    key: str
    description: str
    higher_is_better: bool
    needs: Needs
    most: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """A mean over ``queries`` queries with its bootstrap 95 % interval; for one query ``low == mean == high``."""

    mean: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Difference:
    """What a row gains and loses against plain similarity, query by query, in units of the measure.

    ``mean`` is that of the row minus that of similarity, with its bootstrap 95 % interval; for a measure of which less
    is better, a gain is negative. ``better`` and ``worse`` are the shares of the queries that gain and lose. ``loss``
    is the mean loss of those that lose, and ``worst_loss`` the largest, of ``worst_query``; 0, 0 and None without any.
    """

    mean: float
    low: float
    high: float
    better: float
    worse: float
    loss: float
    worst_loss: float
    worst_query: str | None


@dataclass(frozen=True)
class Recommendation:
    """The best row, and how certain that is.

    ``setting`` is the position of the row with the highest mean of ``measure``, which decided, and ``runner_up`` that
    of the simplest row that ties with it, else the next best. All are None if no query says what is right. ``claims``
    are whole sentences. ``p_similarity`` is the p value of the best row against similarity
    (:func:`~shared_core.evaluation.measures.paired_test`), None if that is the best or there is a single query.
    ``needed`` is about how many queries a difference of this size needs; None if they are enough.
    """

    setting: int | None
    runner_up: int | None
    measure: str | None
    claims: tuple[str, ...]
    p_similarity: float | None = None
    needed: int | None = None

    @property
    def text(self) -> str:
        """The claims as plain text."""
        return " ".join(self.claims)

    @property
    def best_other(self) -> int | None:
        """The best row, or the runner-up if that is similarity: ``Comparison.changes`` are about it."""
        return self.setting or self.runner_up


@dataclass(frozen=True)
class CandidateView:
    """A candidate of a query: an excerpt of its text, and its cosine with the query.

    ``beyond``: it is not among the nearest; a search by words or a ranking found it. ``parts`` are those of the view
    that it covers.
    """

    id: str
    text: str
    cosine: float
    beyond: bool = False
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class QueryView:
    """One query with its candidates, in descending order of their cosine, and the picks of each row.

    ``picks`` maps the position of a row to positions in ``candidates``, in the order of the picks, and ``reasons`` to a
    sentence for each of them, if the selector has any. ``gold`` ids need not be among the candidates. ``parts`` are the
    labels of its subtopics. ``words`` are those of the query that at most half of the candidates have, the rarest
    first.
    """

    id: str
    text: str
    gold: tuple[str, ...]
    candidates: tuple[CandidateView, ...]
    picks: dict[int, tuple[int, ...]]
    parts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    reasons: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Size:
    """What every row finds with ``k`` picks: ``values`` as in :class:`Comparison`, and for each row the mean length."""

    k: int
    values: dict[tuple[int, str], Estimate]
    characters: tuple[float, ...]


@dataclass(frozen=True)
class QueryChange:
    """What a row changes for one query: the deciding measure for the picks of similarity, and of the row."""

    query: str
    similarity: float
    setting: float


@dataclass(frozen=True)
class Replacement:
    """How a row changes what plain similarity returns. Nothing says which of both is right.

    ``changed`` is the share of the queries whose texts change (another order is no change), ``replaced`` the mean
    number of texts, and ``most`` has the ids of the queries that change most, each with its number of texts.
    """

    changed: float
    replaced: float
    most: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    Attributes
    ----------
    title, corpus : str, CorpusFacts
        The heading of the report; the corpus and the conditions.
    settings, measures : tuple of Setting, tuple of Measure
        The rows, of which plain similarity is the first, and the measures that these queries allow.
    values, differences : dict
        ``values[position of a setting, key of a measure]``, an :class:`Estimate` for each pair; and a
        :class:`Difference` to similarity for each pair.
    recommendation : Recommendation
        The best row, and how certain that is.
    queries : tuple of QueryView
        The first queries in full, for the report, and those of ``changes``.
    changes : tuple of QueryChange
        The queries that the best row, or the runner-up if that is similarity, makes worse or better by most, five each.
    sizes : tuple of Size
        What is found with other numbers of picks, in ascending order; the number of the comparison is among them.
    notes : tuple of str
        Remarks for the reader: gold ids that no document has, ...
    replacements : tuple of Replacement
        For each setting, how it changes what plain similarity returns.
    questions : dict
        The texts of the queries that the figures name, by their ids.

    Examples
    --------
    >>> from shared_core.evaluation.compare import compare
    >>> found = compare(["A", "B"], ["?"], ([[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0]]), k=1, title="Notes")
    >>> found
    Comparison('Notes', 12 settings, 1 query, k=1 of 2, recommended=None)
    """

    title: str
    corpus: CorpusFacts
    settings: tuple[Setting, ...]
    measures: tuple[Measure, ...]
    values: dict[tuple[int, str], Estimate]
    differences: dict[tuple[int, str], Difference]
    recommendation: Recommendation
    queries: tuple[QueryView, ...]
    changes: tuple[QueryChange, ...] = ()
    sizes: tuple[Size, ...] = ()
    notes: tuple[str, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    questions: dict[str, str] = field(default_factory=dict)

    @property
    def deciding(self) -> Measure | None:
        """The measure that decides; None if no query says what is right."""
        return next((one for one in self.measures if one.key == self.recommendation.measure), None)

    def question(self, query: str) -> str:
        """The text of the query with this id; the id itself if its text is not known."""
        return self.questions.get(query, query)

    def __repr__(self) -> str:
        best = self.recommendation.setting
        recommended = None if best is None else self.settings[best].label
        queries = counted(self.corpus.queries, "query", "queries")
        settings, size = counted(len(self.settings), "setting"), f"k={self.corpus.k} of {self.corpus.fetch_k}"
        return f"Comparison({quoted(self.title)}, {settings}, {queries}, {size}, recommended={recommended!r})"

    def _repr_html_(self) -> str:
        """A table for notebooks: the mean of each measure for each setting, the best one in bold.

        If one measure decides, the last columns compare each setting with similarity by it.
        """
        names, deciding = [measure.name for measure in self.measures], self.deciding
        if deciding is not None:
            names += [f"{deciding.name} − similarity", "queries worse", "mean loss", "worst loss"]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = []
        for position, setting in enumerate(self.settings):
            label, best = html.escape(setting.label), position == self.recommendation.setting
            cells = [f"{self.values[position, measure.key].mean:.3f}" for measure in self.measures]
            if deciding is not None:
                to = self.differences[position, deciding.key]
                cells += [f"{to.mean:+.3f}", percent(to.worse), f"{to.loss:.3f}", f"{to.worst_loss:.3f}"]
            row = "".join(f"<td><b>{cell}</b></td>" if best else f"<td>{cell}</td>" for cell in cells)
            rows.append(f"<tr><th>{label}</th>{row}</tr>")
        caption = f"<caption>{html.escape(self.title)}. {html.escape(self.recommendation.text)}</caption>"
        return f"<table>{caption}<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with one row for each setting and measure.

        Its columns are ``setting`` (the label), ``method``, ``measure`` (the key), ``mean``, ``low``, ``high``,
        ``queries``, and those of :class:`Difference`: ``difference``, ``difference_low``, ``difference_high``,
        ``better``, ``worse``, ``loss``, ``worst_loss``, ``worst_query``.
        ``frame.pivot(index="setting", columns="measure", values="mean")`` has one row for each setting.
        """
        import pandas

        rows = []
        for (position, key), estimate in self.values.items():
            setting = self.settings[position]
            to = asdict(self.differences[position, key])
            gaps = {
                f"difference{end}": to.pop(name) for name, end in {"mean": "", "low": "_low", "high": "_high"}.items()
            }
            about = {"setting": setting.label, "method": setting.method, "measure": key}
            rows.append({**about, **asdict(estimate), **gaps, **to})
        return pandas.DataFrame(rows)

    def to_json(self, *, indent: int | None = None) -> str:
        """The comparison as JSON.

        ``values`` and ``differences`` are lists of objects with ``setting``, ``measure`` and the fields of
        :class:`Estimate` or :class:`Difference`, and so are the ``values`` of each size.
        """
        plain = asdict(self)
        plain["recommendation"]["text"] = self.recommendation.text
        plain |= {"values": _as_rows(self.values), "differences": _as_rows(self.differences)}
        plain["sizes"] = [{**asdict(size), "values": _as_rows(size.values)} for size in self.sizes]
        return json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False)


def _as_rows(figures: Mapping[tuple[int, str], Estimate | Difference]) -> list[dict[str, Any]]:
    return [{"setting": setting, "measure": measure, **asdict(one)} for (setting, measure), one in figures.items()]


def number(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` decimals and a real minus; a dash for NaN and inf.

    >>> number(0.4821), number(-0.05, 2), number(-0.0001), number(float("nan")), number(2315.2, 0)
    ('0.482', '−0.05', '0.000', '–', '2,315')
    """
    if not math.isfinite(value):
        return "–"
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in whole per cent; only 0 is ``0 %``, and only 1 is ``100 %``.

    >>> percent(0.123), percent(0.001), percent(0.999), percent(0.0)
    ('12 %', '< 1 %', '> 99 %', '0 %')
    """
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def clip(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, with an ellipsis in place of the end."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``count`` with its noun.

    >>> counted(1, "query", "queries"), counted(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
