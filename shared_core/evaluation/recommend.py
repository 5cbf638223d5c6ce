"""The setting to take and how certain that is; or, if no query says what is right, the trade-off between settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .._argument_names import argument_name
from .._validation import quoted
from ..errors import InvalidParameterError
from ..selectors.registry import DEFAULT_SELECTOR
from .judging import Matrix
from .measures import bootstrap_interval, paired_test
from .results import Claim, Difference, Estimate, Fewer, Part, Recommendation, Setting, counted, number, percent
from .sentences import MISSING, NEEDS, OTHER_QUESTION, QUESTIONS, SENTENCES
from .summary import MeasureValues

# The measures that can decide by default. Those that use the most specific knowledge of what is right come first.
DECIDING = ("subtopic_recall", "answers", "p_recall", "point_recall", "recall")
# The measures that decide only on request.
ON_REQUEST = ("alpha_ndcg", "ndcg", "success", "precision", "topic_precision")
# The measures of what is found. Only these can be compared between different numbers of picks.
COUNTED = (*DECIDING, "success")
CHANCE = 0.05
# Sums of the same numbers in another order differ by less than this.
ROUNDING = 1e-9
# With fewer queries no difference has p < 0.05: the smallest p value is 2 / 2^queries.
FEWEST = 6
# With fewer queries the recommendation asks for more.
ENOUGH = 50
# Fewer queries than this share need two texts or more if few do.
FEW = 0.2
# A recommendation begins with "But" if the setting makes at least this share of the queries worse.
MANY = 0.1


class Decision(NamedTuple):
    """The setting to take, another that it is compared with, and its p values against similarity and that one."""

    setting: int
    rival: int | None
    p_similarity: float
    p_rival: float


def recommend(
    settings: Sequence[Setting],
    columns: Sequence[MeasureValues],
    values: Mapping[tuple[int, str], Estimate],
    differences: Mapping[tuple[int, str], Difference],
    of_sizes: Mapping[int, Sequence[MeasureValues]] = MappingProxyType({}),
    *,
    texts: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[int] = (),
    decide_by: str | None = None,
    repeats: str | None = None,
    missing: str | None = None,
) -> Recommendation:
    """The simplest of the settings that are best beyond chance; plain similarity if none is better than it.

    1. Each setting is tested against plain similarity, query by query. The p values allow for the number of settings
       (:func:`~shared_core.evaluation.measures.paired_test`): the best of many settings leads by chance more often
       than a single one. If no setting is better with p < 0.05, similarity is enough.
    2. Among the settings that are better than similarity, the one with the highest mean is the best. The others that
       are not worse than the best with p < 0.05, tested in the same way, tie with it.
    3. Of the tied settings the simplest is recommended. Simpler is what comes first in ``settings``. The values of a
       swept parameter are equally simple, and the highest mean decides between them.

    The measure ``decide_by`` decides, or by default the first of ``DECIDING`` that has at least half as many queries as
    any other of them. ``values`` and ``differences`` are those of :class:`Comparison`. ``of_sizes`` holds the measures
    for each number of picks. ``texts`` are those of the queries by their ids, and ``parts`` the numbers of texts that
    the queries need. ``repeats`` tells how many gold documents nearly repeat another one, and ``missing`` what
    the files lack for a deciding measure.
    """
    by_key = {column.measure.key: column for column in columns}
    check_deciding(decide_by, by_key)
    key = decide_by or _default_measure({key: by_key[key].values.shape[1] for key in DECIDING if key in by_key})
    if key is None:
        return Recommendation(None, None, None, (Claim(_describe_trade_off(by_key, missing)),), None, None)
    measure, of_queries, names = by_key[key]
    if not of_queries.any():
        nothing = SENTENCES["all zero"].format(measure=measure.name)
        return Recommendation(None, None, None, (Claim(nothing),), None, None)
    decision = decide(settings, of_queries)
    setting, rival = decision.setting, decision.rival
    by_size = {k: one.values for k, of_size in of_sizes.items() for one in of_size if one.measure.key == key}
    fewer = _find_fewer(settings, setting, by_size) if key in COUNTED and by_size else None
    claims = _make_claims(settings, by_key[key], decision, values, differences, fewer, by_size, texts)
    several = sum(number > 1 for number in parts)
    if several < FEW * len(parts):
        case = "few need two" if setting else "few need two, similarity"
        claims += (Claim(SENTENCES[case].format(needing=f"{several:,} of {len(parts):,}")),)
    if repeats is not None and key in QUESTIONS:
        other = OTHER_QUESTION[key]
        there = decide(settings, by_key[other].values).setting
        advice = f"take {settings[there].label}" if there else "similarity is enough"
        points = SENTENCES["points"].format(
            repeats=repeats,
            measure=measure.name,
            ours=QUESTIONS[key],
            theirs=QUESTIONS[other],
            other=by_key[other].measure.name,
            option=f"{argument_name('decide_by')}={other}",
            advice="the advice is the same" if there == setting else advice,
        )
        claims = (Claim(points, "values"), *claims)
    p_rival = decision.p_rival if rival is not None and len(names) > 1 else None
    return Recommendation(setting, rival, key, claims, p_rival, decision.p_similarity if setting else None, fewer)


def _make_claims(
    settings: Sequence[Setting],
    column: MeasureValues,
    decision: Decision,
    values: Mapping[tuple[int, str], Estimate],
    differences: Mapping[tuple[int, str], Difference],
    fewer: Fewer | None,
    by_size: Mapping[int, Matrix],
    texts: Mapping[str, str],
) -> tuple[Claim, ...]:
    """The sentences for a decision by this measure."""
    measure, _, names = column
    setting, rival, key = decision.setting, decision.rival, measure.key
    # The facts of every sentence.
    others = len(settings) - 1
    what = "root queries" if measure.needs == "perspectives" else "queries"
    lead = differences[setting, key]
    facts: dict[str, object] = {
        "measure": measure.name,
        "over": f"{len(names)} {what if len(names) != 1 else what.replace('queries', 'query')}",
        "what": what,
        "others": "other methods" if setting else "others",
        "label": settings[setting].label,
        "mean": _with_interval(values[setting, key]),
        "lead": _with_interval(lead),
        "p": _tested(decision.p_similarity, others),
        "better": percent(lead.better),
        "worse": percent(lead.worse),
        "loss": number(lead.loss),
        "worst_query": quoted(texts.get(lead.worst_query or "", lead.worst_query)),
        "worst_loss": number(lead.worst_loss),
    }
    claims: list[Claim] = []

    def add(case: str, shown_in: Part | None, about: int | None, query: str | None = None, **more: object) -> None:
        claims.append(Claim(SENTENCES[case].format(**facts, **more), shown_in, about, query))

    def explain_interval(about: int, p: float) -> None:
        """Say what decides, if the interval and the p value seem to contradict each other."""
        of = differences[about, key]
        if of.low != of.high and (of.low > 0) != (p < CHANCE):
            case = "interval" if others == 1 else "interval of one"
            add(case, "differences", about, one=settings[about].label, count=others)

    if setting:
        add("take", "values", setting)
        add("lead", "differences", setting)
        explain_interval(setting, decision.p_similarity)
        case = "none worse" if lead.worst_query is None else "many worse" if lead.worse >= MANY else "some worse"
        # For p-recall the worst query is the name of a root.
        add(case, "differences", setting, None if measure.needs == "perspectives" else lead.worst_query)
        if settings[setting].label in NEEDS:
            claims.append(Claim(NEEDS[settings[setting].label], setting=setting))
    else:
        add("enough", "values", 0)
    if rival is not None:
        mine, gap = values[rival, key], differences[rival, key]
        above = mine.mean > values[setting, key].mean
        case = "rival lower" if not above else "rival simpler" if setting else "rival few"
        if above and not setting and mine.queries >= ENOUGH:
            case = "rival chance"
        add(
            case,
            "values" if setting else "differences",
            rival,
            rival=settings[rival].label,
            rival_mean=number(mine.mean),
            gap=number(mine.mean - values[setting, key].mean) if setting else _with_interval(gap),
            rival_p=_tested(decision.p_rival, others),
            least=FEWEST if mine.queries < FEWEST else ENOUGH,
        )
        if above and not setting:
            explain_interval(rival, decision.p_rival)
    if fewer is not None:
        add(
            "fewer",
            "sizes",
            fewer.setting,
            texts=counted(fewer.k, "text"),
            than=fewer.than,
            fewer_label=settings[fewer.setting].label,
            find="finds" if fewer.k == 1 else "find",
            ours=number(by_size[fewer.k][fewer.setting].mean()),
            theirs=number(by_size[fewer.than][0].mean()),
            difference=_with_interval(Estimate(fewer.difference, fewer.low, fewer.high, len(names))),
        )
        if fewer.setting == setting:
            add("change the lines", None, None, k=fewer.k)
    return tuple(claims)


def decide(settings: Sequence[Setting], of_queries: Matrix) -> Decision:
    """Apply the rule of :func:`recommend` to the values of one measure, shape (settings, N)."""
    # Means that differ only by rounding are equal.
    means = of_queries.mean(axis=1).round(12).tolist()
    # The place of each setting in the order of simplicity; the settings of a sweep share the place of the first.
    sweeps: dict[str, int] = {}
    simplicity = [i if one.curve is None else sweeps.setdefault(one.curve, i) for i, one in enumerate(settings)]

    def best_of(among: Iterable[int]) -> int | None:
        return min(among, key=lambda i: (-means[i], simplicity[i], i), default=None)

    to_similarity = _p_values(of_queries, 0)
    better = [i for i, p in enumerate(to_similarity) if means[i] > means[0] and p < CHANCE]
    best = best_of(better)
    if best is None:
        rival = best_of(range(1, len(settings)))
        return Decision(0, rival, 1.0, 1.0 if rival is None else to_similarity[rival])
    to_best = _p_values(of_queries, best)
    setting = min((i for i in better if to_best[i] >= CHANCE), key=lambda i: (simplicity[i], -means[i], i))
    if setting != best:
        return Decision(setting, best, to_similarity[setting], to_best[setting])
    rival = best_of(i for i in range(1, len(settings)) if settings[i].method != settings[best].method)
    return Decision(best, rival, to_similarity[best], 1.0 if rival is None else to_best[rival])


def _p_values(of_queries: Matrix, against: int) -> list[float]:
    """For each setting the p value of its difference to the setting ``against``; 1 for that setting itself."""
    if len(of_queries) == 1:
        return [1.0]
    p = paired_test(np.delete(of_queries, against, axis=0), of_queries[against])
    p_values: list[float] = np.insert(p, against, 1.0).tolist()
    return p_values


def check_deciding(key: str | None, allowed: Collection[str] = (*DECIDING, *ON_REQUEST)) -> None:
    """Raise an error if ``key`` is not a deciding measure, or if the queries do not allow it."""
    deciding = [one for one in allowed if one in (*DECIDING, *ON_REQUEST)]
    if key is not None and key not in deciding:
        among = ", ".join(deciding) or "none: these queries allow no deciding measure"
        raise InvalidParameterError(f"{argument_name('decide_by')} must be one of {among}, got {quoted(key)}")


def _default_measure(queries: Mapping[str, int]) -> str | None:
    """The first measure with at least half as many queries as any other."""
    # p-recall counts root queries, which are fewer than their queries, so it is not compared.
    most = max((n for key, n in queries.items() if key != "p_recall"), default=0)
    return next((key for key, n in queries.items() if key == "p_recall" or 2 * n >= most), None)


def _find_fewer(settings: Sequence[Setting], recommended: int, by_size: Mapping[int, Matrix]) -> Fewer | None:
    """The fewest picks that find as much as plain similarity with the largest number of picks that was tried.

    They are those of the recommended setting, or of the default selector if similarity is recommended. If similarity
    finds as much with fewer picks than the largest number, the setting is compared with that number. Too few queries
    say nothing. ``by_size`` maps each number to the values of the deciding measure, (settings, N).
    """
    default = next((i for i, one in enumerate(settings) if one.label == DEFAULT_SELECTOR), None)
    setting = recommended or default
    if setting is None or by_size[min(by_size)].shape[1] < FEWEST:
        return None
    enough = by_size[max(by_size)][0].mean() - ROUNDING
    than = min(k for k, values in by_size.items() if values[0].mean() >= enough)
    k = min((k for k, values in by_size.items() if values[setting].mean() >= enough), default=than)
    if k >= than:
        return None
    gaps = by_size[k][setting] - by_size[than][0]
    return Fewer(setting, k, than, float(gaps.mean()), *bootstrap_interval(gaps))


def _describe_trade_off(by_key: Mapping[str, MeasureValues], missing: str | None) -> str:
    sentences = [SENTENCES["nothing known"].format(missing=missing or MISSING)]
    if "redundancy" in by_key:
        relevance, redundancy = (number(by_key[key].values[0].mean()) for key in ("relevance", "redundancy"))
        sentences.append(SENTENCES["trade-off"].format(relevance=relevance, redundancy=redundancy))
    return " ".join(sentences)


def _with_interval(of: Estimate | Difference) -> str:
    if of.low == of.high:
        return number(of.mean)
    return f"{number(of.mean)} (95 % interval {number(of.low)} to {number(of.high)})"


def _tested(p: float, others: int) -> str:
    return p_value(p) if others == 1 else f"{p_value(p)}, corrected for {others} comparisons"


def p_value(p: float) -> str:
    """A p value as papers print it: ``p = 0.031`` or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
