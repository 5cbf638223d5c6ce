"""What a comparison says: the best row and how certain that is, and notes on the figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from .._validation import import_library
from ..errors import InvalidParameterError, argument_name, quoted
from ..selectors.registry import DEFAULT_SELECTOR
from .judging import JudgedQuery, Matrix
from .measures import bootstrap_interval, paired_test
from .results import Difference, Estimate, Recommendation, Replacement, Setting, counted, number, percent
from .settings import HYBRID_SEARCH, SUM_OF_SCORES, Settings, as_adapted
from .summary import MeasureValues, gold_in_reach

# The measures that can decide by default. Those that use the most specific knowledge of what is right come first.
DECIDING = ("subtopic_recall", "point_recall", "recall")
# The measures that decide only on request.
ON_REQUEST = ("alpha_ndcg", "ndcg", "success", "precision", "topic_precision")
# The measures of what is found. Only these can be compared between different numbers of picks.
COUNTED = (*DECIDING, "success")
CHANCE, POWER = 0.05, 0.8
# With fewer queries no difference has p < 0.05: the smallest p value is 2 / 2^queries.
_FEWEST = 6
# Fewer queries than this share need two texts or more if few do.
_FEW = 0.2

_POINTS = {"point_recall": ("each point once", "recall"), "recall": ("every copy", "point_recall")}
_EXAMPLE = '{"subtopics": {"reset": ["a", "b"], "disk": ["c"]}}'
SENTENCES = {
    "nothing known": "No row can be called the best: no query says which picks are right. Add gold ids or subtopics to "
    "at least some of the queries.",
    "would change": "{label}, the default, would change the texts of {changed} of the queries, and replace {replaced} "
    "of {k} texts on average.",
    "all zero": "No row can be called the best: {measure} is 0 for all. None picked what the queries ask for.",
    "best": "{label} is best: its {measure} is {mean} over {over}. It is {lead} above {rival}, more than chance ({p}).",
    "too few": "Too few to tell: {label} has the highest {measure}, {mean} over {over}. It is {lead} above {rival}, "
    "which may be chance ({p}). A difference of this size needs about {needed:,} queries.",
    "equal": "No row is better than similarity: {rival} has the same {measure}, {mean} over {over}.",
    "worse": "Against similarity it makes {better} of the queries better and {worse} worse, by {loss} on average. "
    "{worst_query} loses most: {worst_loss}.",
    "none worse": "Against similarity it makes {better} of the queries better, and none worse.",
    "simpler": "{simple} has {simple_mean}. The difference may be chance ({simple_p}), and it is simpler.",
    "selected": "Of what setselect selects, {simple} has the highest: {simple_mean} (the difference: {simple_p}).",
    "default": "{default}, the default, finds {gap} similarity ({ends}){so}.",
    "few need two": "Few of your questions need two texts or more ({needing}). Where one text is enough, a set adds "
    "little to it.",
    "points": "{repeats} Point recall counts near-repeats as one point. This comparison is for readers who need "
    "{ours}: {measure} decides. If you need {theirs}, pass {option}: then {there} is best. To name the points, write "
    "them into the query: " + _EXAMPLE.replace("{", "{{").replace("}", "}}") + ".",
}
# What a row needs besides the vectors, by its label.
NEEDS = {
    HYBRID_SEARCH: "Hybrid search needs an index of words. Many stores offer it, and nothing of setselect is needed.",
    SUM_OF_SCORES: "The sum of scores needs an index of words and a sort, and nothing of setselect.",
    "coverage keyword_search=True": "It needs an index of words, which is made from the texts of your documents.",
}


def recommend(
    settings: Sequence[Setting],
    columns: Sequence[MeasureValues],
    values: Mapping[tuple[int, str], Estimate],
    differences: Mapping[tuple[int, str], Difference],
    *,
    texts: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[int] = (),
    decide_by: str | None = None,
    repeats: str | None = None,
) -> Recommendation:
    """The row with the highest mean, whatever it is, and how certain that is.

    It is tested, query by query, against plain similarity, or if that is the best itself, against the next row. The p
    value allows for the number of rows (:func:`~shared_core.evaluation.measures.paired_test`). If it is 0.05 or more,
    the queries are too few to tell, and the spread of the differences says about how many are needed. Of the settings
    that are not worse than the best beyond chance, the first in the list is named too: it is the simplest.

    The measure ``decide_by`` decides, or by default the first of ``DECIDING`` that has at least half as many queries as
    any other. ``texts`` are those of the queries, ``parts`` the numbers of texts that the queries need, and ``repeats``
    tells how many gold documents nearly repeat another one.
    """
    by_key = {column.measure.key: column for column in columns}
    counts = {key: len(by_key[key].queries) for key in DECIDING if key in by_key}
    key = decide_by or next((key for key, n in counts.items() if 2 * n >= max(counts.values())), None)
    if key is None:
        return Recommendation(None, None, None, (SENTENCES["nothing known"],))
    measure, of_queries, names = by_key[key]
    if not of_queries.any():
        return Recommendation(None, None, None, (SENTENCES["all zero"].format(measure=measure.name),))
    best, *others = rank_rows(of_queries)
    to_similarity, to_best = (_p_values(of_queries, row) for row in (0, best))
    rival = 0 if best else others[0]
    gaps = of_queries[best] - of_queries[rival]
    p = to_similarity[best or rival]
    ranked = settings[best].method == "ranking"
    if ranked:
        simple = next((row for row in others if row and settings[row].method != "ranking"), None)
    else:
        simple = next((row for row in range(1, best) if p < CHANCE <= to_best[row]), None)
    needed = None if p < CHANCE else count_needed(gaps, len(others))
    lead = differences[best, key]
    facts: dict[str, object] = {
        "measure": measure.name,
        "over": counted(len(names), "query", "queries"),
        "label": settings[best].label,
        "mean": _with_interval(values[best, key]),
        "rival": settings[rival].label,
        "lead": _with_interval(Estimate(float(gaps.mean()), *bootstrap_interval(gaps), len(names))),
        "p": p_value(p) + (f", corrected for {len(others)} comparisons" if len(others) > 1 else ""),
        "needed": needed,
        "better": percent(lead.better),
        "worse": percent(lead.worse),
        "loss": number(lead.loss),
        "worst_query": quoted(texts.get(lead.worst_query or "", lead.worst_query)),
        "worst_loss": number(lead.worst_loss),
    }
    cases = ["best" if p < CHANCE else "equal" if needed is None else "too few"]
    if best:
        cases.append("none worse" if lead.worst_query is None else "worse")
    if simple is not None:
        facts |= {"simple": settings[simple].label, "simple_mean": number(values[simple, key].mean)}
        facts["simple_p"] = p_value(to_best[simple])
        cases.append("selected" if ranked else "simpler")
    default = next((row for row, setting in enumerate(settings) if setting.label == DEFAULT_SELECTOR), best)
    if default != best:
        facts |= _compare_default(differences[default, key], len(names), keeps=not best or p >= CHANCE)
        cases.append("default")
    several = sum(number > 1 for number in parts)
    # Where a set is clearly better, its words are what helps.
    if p >= CHANCE and several < _FEW * len(parts):
        facts["needing"] = f"{several:,} of {len(parts):,}"
        cases.append("few need two")
    claims = [SENTENCES[case].format(**facts) for case in cases]
    if settings[best].label in NEEDS:
        claims.insert(1, NEEDS[settings[best].label])
    if repeats is not None and key in _POINTS:
        ours, other = _POINTS[key]
        option, there = f"{argument_name('decide_by')}={other}", settings[rank_rows(by_key[other].values)[0]].label
        more = {"ours": ours, "theirs": _POINTS[other][0], "option": option, "there": there, "measure": measure.name}
        claims.append(SENTENCES["points"].format(repeats=repeats, **more))
    second = rival if best == 0 else simple or next((row for row in others if row), 0)
    p_similarity = to_similarity[best] if best and len(names) > 1 else None
    return Recommendation(best, second, key, tuple(claims), p_similarity, needed)


def _compare_default(to: Difference, queries: int, *, keeps: bool) -> dict[str, str]:
    """What the sentence on the default says; ``keeps``: no other row is known to be better than similarity."""
    amount, so = number(abs(to.mean)), ": keep similarity" if to.mean < 0 and keeps else ""
    gap = "as much as" if amount == number(0) else f"{amount} {'more' if to.mean > 0 else 'less'} than"
    if queries < _FEWEST or to.low <= 0 <= to.high:
        so = ", which may be chance" if gap != "as much as" else ""
    return {"default": DEFAULT_SELECTOR, "gap": gap, "ends": f"{number(to.low)} to {number(to.high)}", "so": so}


def rank_rows(of_queries: Matrix) -> list[int]:
    """The rows (rows, N) by their means, the highest first; of equal ones the first."""
    # Means that differ only by rounding are equal.
    ranked: list[int] = np.argsort(-of_queries.mean(axis=1).round(12), kind="stable").tolist()
    return ranked


def count_needed(gaps: Matrix, comparisons: int) -> int | None:
    """About how many queries a difference of this size needs, of two figures; None for a difference of 0.

    With so many, 80 % of the comparisons have p < 0.05, corrected for their number by Bonferroni.
    """
    mean, n = abs(float(gaps.mean())), len(gaps)
    # Sums of the same numbers in another order differ by less.
    if mean < 1e-9:
        return None
    norm = import_library("scipy.stats", "eval").norm
    z = norm.ppf(1 - CHANCE / 2 / max(comparisons, 1)) + norm.ppf(POWER)
    spread = float(gaps.std(ddof=1)) if n > 1 else 0.0
    needed: float = max((z * spread / mean) ** 2, 1.1 * n, _FEWEST)
    step: int = 10 ** max(math.floor(math.log10(needed)) - 1, 0)
    return math.ceil(needed / step) * step


def _p_values(of_queries: Matrix, against: int) -> list[float]:
    """For each row the p value of its difference to the row ``against``; 1 for that row itself."""
    p = paired_test(np.delete(of_queries, against, axis=0), of_queries[against])
    p_values: list[float] = np.insert(p, against, 1.0).tolist()
    return p_values


def check_deciding(key: str | None, allowed: Collection[str] = (*DECIDING, *ON_REQUEST)) -> None:
    """Raise an error if ``key`` is not a deciding measure, or if the queries do not allow it."""
    deciding = [one for one in allowed if one in (*DECIDING, *ON_REQUEST)]
    if key is not None and key not in deciding:
        among = ", ".join(deciding) or "none: these queries allow no deciding measure"
        raise InvalidParameterError(f"{argument_name('decide_by')} must be one of {among}, got {quoted(key)}")


def _with_interval(of: Estimate) -> str:
    if of.low == of.high:
        return number(of.mean)
    return f"{number(of.mean)} (95 % interval {number(of.low)} to {number(of.high)})"


def p_value(p: float) -> str:
    """A p value as papers print it: ``p = 0.031`` or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def describe_change(rows: Sequence[Setting], replacements: Sequence[Replacement], k: int) -> Iterator[str]:
    """What the default would change, where no query says what is right."""
    for setting, replacement in zip(rows, replacements, strict=True):
        if setting.label == DEFAULT_SELECTOR:
            facts = {"changed": percent(replacement.changed), "replaced": number(replacement.replaced, 1), "k": k}
            yield SENTENCES["would change"].format(label=setting.label, **facts)


def list_notes(
    planned: Settings,
    rows: Sequence[Setting],
    outcomes: Sequence[JudgedQuery],
    without_candidates: Sequence[str],
    k: int,
    drop_duplicates: bool,
) -> Iterator[str]:
    """What was left out, and what limits the figures."""
    left_out = [setting.label for setting, _ in planned if setting not in rows]
    if left_out:
        yield f"There is no search by words here, so {', '.join(left_out)} is left out."
    capped = [setting.label for setting, selector in planned if as_adapted(selector).max_per_source is not None]
    if capped and not any(outcome.sourced for outcome in outcomes):
        yield f"No document has a source, so max_per_source has no effect on {', '.join(capped)}."
    numbers = np.array([[len(picked) for picked in outcome.sizes[k].ids] for outcome in outcomes])
    fewer = [
        f"{setting.label} {of_setting.mean():.1f}"
        for setting, of_setting in zip(rows, numbers.T, strict=True)
        if (of_setting < numbers[:, 0]).any()
    ]
    if fewer:
        nothing = " A query for which a row picks nothing has 0 in each measure." if not numbers.all() else ""
        yield f"Some pick fewer than {counted(k, 'text')}. The mean number of texts is {', '.join(fewer)}.{nothing}"
    repeated = sum(outcome.repeated for outcome in outcomes)
    if repeated:
        total = sum(len(outcome.candidates) for outcome in outcomes) + (repeated if drop_duplicates else 0)
        counts = "A text counts once, as in the retrievers" if drop_duplicates else "Every copy counts"
        yield f"{repeated:,} of {total:,} candidates repeat the text of another candidate of their query. {counts}."
    if without_candidates:
        named = ", ".join(map(quoted, without_candidates[:3])) + (", ..." if len(without_candidates) > 3 else "")
        yield f"No candidates were found for {counted(len(without_candidates), 'query', 'queries')} ({named})."
    reach = gold_in_reach(outcomes)
    if reach == 0:
        one = next(outcome for outcome in outcomes if outcome.query.gold)
        yield (
            f"No gold document is among the candidates. The query {quoted(one.query.text)} has the gold id "
            f"{quoted(one.query.gold[0])}, and a candidate has the id {quoted(min(one.candidates))}. If these are ids "
            "of one kind, fetch more candidates."
        )
    elif reach is not None and reach < 0.9:
        more = argument_name("fetch_k")
        yield f"The nearest candidates hold {reach:.1%} of the gold documents. A higher {more} can raise that."
