"""The setting to take and how certain that is; or, if no query says what is right, the trade-off between settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from .._validation import quoted
from ..errors import InvalidParameterError
from .judging import Matrix, MeasureValues, estimate
from .measures import paired_test
from .results import Estimate, Recommendation, Setting

# The measures that can decide by default. Those that use the most specific knowledge of what is right come first.
DECIDING = ("subtopic_recall", "answers", "p_recall", "recall")
# The measures that decide only on request.
ON_REQUEST = ("alpha_ndcg", "ndcg", "success")
CHANCE = 0.05
# The share of similarity's relevance that a setting must keep to be the example of the trade-off.
KEPT = 0.95


def recommend(
    settings: Sequence[Setting], found: Sequence[MeasureValues], *, decide_by: str | None = None, seed: int = 0
) -> Recommendation:
    """The setting with the highest mean, tested against plain similarity and against the best of the other methods.

    Among settings with equal means similarity comes first, so that only a better setting replaces it, then settings
    without a parameter. The runner-up is of another method, because neighbours in a sweep pick nearly the same. Each
    p value is that of one comparison. The text says whether the one against similarity stays below 0.05 when it is
    multiplied by the number of other settings (Bonferroni). The measure ``decide_by`` decides, or by default the first
    of ``DECIDING`` that has at least half as many queries as any other of them.
    """
    by_key = {one.measure.key: one for one in found}
    check_deciding(decide_by, by_key)
    key = decide_by or _default_measure({key: by_key[key].values.shape[1] for key in DECIDING if key in by_key})
    if key is None:
        return Recommendation(None, None, None, _trade_off(settings, by_key), None, None)
    measure, values = by_key[key]
    means = values.mean(axis=1)
    if not values.any():
        nothing = f"No setting can be named: {measure.name} is 0 for all. No setting picked what the queries ask for."
        return Recommendation(None, None, None, nothing, None, None)
    best = _best(settings, means, range(len(settings)))
    others = [i for i, setting in enumerate(settings) if setting.method != settings[best].method]
    rival = _best(settings, means, others) if others else None
    against_rival = None if rival is None else _test(values[best], values[rival], seed)
    against_similarity = None if best == 0 else _test(values[best], values[0], seed)
    unit = "query" if values.shape[1] == 1 else "queries"
    unit = f"root {unit}" if measure.needs == "perspectives" else unit
    text = [
        f"Take {settings[best].label}: its {measure.name} is {_with_interval(estimate(values[best], seed))} over "
        f"{values.shape[1]} {unit}."
    ]
    if best == 0:
        text.append("No other setting has a higher one.")
    else:
        text.append(_similarity_sentence(values[best] - values[0], against_similarity, len(settings) - 1, seed))
    if rival is not None and rival != 0:
        text.append(_rival_sentence(settings[rival].label, float(means[rival]), against_rival))
    return Recommendation(best, rival, key, " ".join(text), against_rival, against_similarity)


def check_deciding(key: str | None, allowed: Collection[str] = (*DECIDING, *ON_REQUEST)) -> None:
    """Raise for a key that is not that of a deciding measure, or not among those that the queries allow."""
    deciding = [one for one in allowed if one in (*DECIDING, *ON_REQUEST)]
    if key is not None and key not in deciding:
        among = ", ".join(deciding) or "none: these queries allow no deciding measure"
        raise InvalidParameterError(f"decide_by must be one of {among}, got {quoted(key)}")


def _default_measure(queries: Mapping[str, int]) -> str | None:
    """The first measure with at least half as many queries as any other."""
    # p-recall counts root queries, which are fewer than their queries, so it is not compared.
    most = max((n for key, n in queries.items() if key != "p_recall"), default=0)
    return next((key for key, n in queries.items() if key == "p_recall" or 2 * n >= most), None)


def _best(settings: Sequence[Setting], means: Matrix, among: Iterable[int]) -> int:
    """The best of some settings; means that differ only by rounding are equal."""
    return min(among, key=lambda i: (-round(float(means[i]), 12), i != 0, settings[i].parameter is not None, i))


def _test(ours: Matrix, theirs: Matrix, seed: int) -> float | None:
    return None if len(ours) < 2 else paired_test(ours, theirs, seed=seed)


def _similarity_sentence(lead: Matrix, p: float | None, tried: int, seed: int) -> str:
    said = f"That is {_with_interval(estimate(lead, seed))} above plain similarity"
    if p is None:
        return f"{said}; a single query can prove nothing."
    said += f" (paired test: {_p_value(p)})"
    if p * tried < CHANCE:
        return f"{said}: more than chance, even if all {tried} other settings that were tried are counted."
    if p < CHANCE:
        return (
            f"{said}: more than chance for one comparison, but not if all {tried} other settings are counted. "
            "Take it as a hint."
        )
    return f"{said}: that may be chance, and similarity may do as well. A comparison with more queries can decide."


def _rival_sentence(label: str, mean: float, p: float | None) -> str:
    said = f"The best of the other methods, {label}, has {_number(mean)}"
    if p is None:
        return f"{said}."
    verdict = "the difference is more than chance" if p < CHANCE else "the difference may be chance"
    return f"{said} ({_p_value(p)}): {verdict}."


def _trade_off(settings: Sequence[Setting], by_key: dict[str, MeasureValues]) -> str:
    said = (
        "No winner can be named: no query says which picks are right. "
        "Add gold ids, subtopics or answers to some queries at least."
    )
    if "redundancy" not in by_key:
        return said
    relevance = by_key["relevance"].values.mean(axis=1)
    redundancy = by_key["redundancy"].values.mean(axis=1)
    said += (
        f" The trade-off: the picks of plain similarity have a mean cosine of {_number(relevance[0])} with the query "
        f"and of {_number(redundancy[0])} with each other"
    )
    eligible = [i for i in range(len(settings)) if i == 0 or relevance[i] >= KEPT * relevance[0]]
    least = min(eligible, key=lambda i: (float(redundancy[i]), i))
    if relevance[0] <= 0 or least == 0:
        return f"{said}."
    return (
        f"{said}. Among the settings that keep {KEPT:.0%} of that relevance, {settings[least].label} repeats itself "
        f"least ({_number(relevance[least])} and {_number(redundancy[least])})."
    )


def _with_interval(of: Estimate) -> str:
    interval = f" (95 % interval {_number(of.low)} to {_number(of.high)})" if of.queries > 1 else ""
    return _number(of.mean) + interval


def _number(value: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(value, 3) + 0.0:.3f}"


def _p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
