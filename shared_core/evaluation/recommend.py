"""Which setting to take, and how sure that is; or, where nobody knows what is right, what there is to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..errors import InvalidParameterError
from .measures.statistics import paired_test
from .measuring import Matrix, Measured, estimate
from .results import Estimate, Recommendation, Setting

# What decides where nobody says: the most particular knowledge there is of what is right.
DECIDING = ("subtopic_recall", "answers", "p_recall", "recall")
# Deciding only where somebody says so.
ON_DEMAND = ("alpha_ndcg", "ndcg", "success")
# Nothing but the vectors: these cannot say what is right.
UNDECIDING = ("relevance", "redundancy", "sum_cosine")
CHANCE = 0.05
# How much of similarity's relevance a setting may give up in the example of the trade-off.
KEPT = 0.95


def recommend(
    settings: Sequence[Setting], found: Sequence[Measured], *, decide_by: str | None = None, seed: int = 0
) -> Recommendation:
    """The setting with the highest mean, tested against plain similarity and against the best of the other methods.

    Among equals similarity comes first, so that it is left for something better only, then what has nothing to tune.
    The runner-up is of another method, since neighbours in a sweep pick nearly the same. The p values are of one
    comparison each; the text says whether the one against similarity stands when every setting that was tried is
    counted (Bonferroni).

    Parameters
    ----------
    settings : sequence of Setting
        Similarity first.
    found : sequence of Measured
    decide_by : str, optional
        The key of the measure that decides; by default the first of ``DECIDING`` that at least half as
        many queries allow as any other.
    seed : int

    Raises
    ------
    InvalidParameterError
        ``decide_by`` is not among the measures that these queries allow, or says nothing of what is right.
    """
    by_key = {measured.measure.key: measured for measured in found}
    deciding = [key for key in by_key if key not in UNDECIDING]
    if decide_by is not None and decide_by not in deciding:
        raise InvalidParameterError(
            f"decide_by must be one of {', '.join(deciding) or 'none: these queries allow no deciding measure'}, "
            f"got {decide_by!r}"
        )
    key = decide_by or _deciding({key: by_key[key].values.shape[1] for key in DECIDING if key in by_key})
    if key is None:
        return Recommendation(None, None, None, _trade_off(settings, by_key), None, None)
    measure, values = by_key[key]
    means = values.mean(axis=1)
    if not values.any():
        nothing = (
            f"No setting can be named: in {measure.name} every one has 0. The candidates hold nothing of what is asked."
        )
        return Recommendation(None, None, None, nothing, None, None)
    best = _first(settings, means, range(len(settings)))
    others = [i for i, setting in enumerate(settings) if setting.method != settings[best].method]
    rival = _first(settings, means, others) if others else None
    against_rival = None if rival is None else _test(values[best], values[rival], seed)
    against_similarity = None if best == 0 else _test(values[best], values[0], seed)
    label = settings[best].label
    unit = "query" if values.shape[1] == 1 else "queries"
    unit = f"root {unit}" if measure.needs == "perspectives" else unit
    text = [
        f"Take {label}: its {measure.name} is {_spread(estimate(values[best], seed))} over {values.shape[1]} {unit}."
    ]
    if best == 0:
        text.append("No other setting has a higher one.")
    else:
        text.append(_beside_similarity(values[best] - values[0], against_similarity, len(settings) - 1, seed))
    if rival is not None and rival != 0:
        text.append(_beside_rival(settings[rival].label, float(means[rival]), against_rival))
    return Recommendation(best, rival, key, " ".join(text), against_rival, against_similarity)


def _deciding(queries: Mapping[str, int]) -> str | None:
    """The first measure, in the order of ``DECIDING``, that is not known of a few queries only."""
    # Roots are fewer than the queries that they stand for.
    covered = {key: n for key, n in queries.items() if key != "p_recall"}
    most = max(covered.values(), default=0)
    return next((key for key, n in queries.items() if key == "p_recall" or 2 * n >= most), None)


def _first(settings: Sequence[Setting], means: Matrix, among: Iterable[int]) -> int:
    """The best of some settings; means that differ by rounding alone are equal."""
    return min(among, key=lambda i: (-round(float(means[i]), 12), i != 0, settings[i].parameter is not None, i))


def _test(ours: Matrix, theirs: Matrix, seed: int) -> float | None:
    return None if len(ours) < 2 else paired_test(ours, theirs, seed=seed)


def _beside_similarity(lead: Matrix, p: float | None, tried: int, seed: int) -> str:
    said = f"That is {_spread(estimate(lead, seed), sign=True)} over plain similarity"
    if p is None:
        return f"{said}, from which a single query can prove nothing."
    said += f" (paired test: {_p(p)})"
    if p * tried < CHANCE:
        return f"{said}: more than chance, even with all {tried} other settings counted that were tried."
    if p < CHANCE:
        lucky = f"the best of {tried + 1} settings is often lucky"
        return f"{said}: by itself more than chance, but {lucky}. Take it as a hint."
    return f"{said}: that may be chance, so similarity may do as well. More queries would tell."


def _beside_rival(label: str, mean: float, p: float | None) -> str:
    said = f"The best of the other methods, {label}, has {_number(mean)}"
    if p is None:
        return f"{said}."
    verdict = "the difference is more than chance" if p < CHANCE else "the two cannot be told apart"
    return f"{said} ({_p(p)}): {verdict}."


def check_deciding(key: str | None) -> None:
    """Refuse a key that no queries could allow, before anything takes time.

    >>> check_deciding("recall")
    """
    if key is not None and key not in (*DECIDING, *ON_DEMAND):
        raise InvalidParameterError(f"decide_by must be one of {', '.join((*DECIDING, *ON_DEMAND))}, got {key!r}")


class _Traded(NamedTuple):
    redundancy: float
    setting: int


def _trade_off(settings: Sequence[Setting], by_key: dict[str, Measured]) -> str:
    said = (
        "No winner can be named: the queries say nothing of what is right. "
        "Give them gold ids, subtopics or answers, for some at least."
    )
    if "redundancy" not in by_key:
        return said
    relevance = by_key["relevance"].values.mean(axis=1)
    redundancy = by_key["redundancy"].values.mean(axis=1)
    said += (
        f" Meanwhile, what each setting trades: plain similarity's picks have a mean cosine of {_number(relevance[0])} "
        f"with the query and of {_number(redundancy[0])} with each other"
    )
    floor = KEPT * relevance[0]
    least = min(_Traded(float(redundancy[i]), i) for i in range(len(settings)) if i == 0 or relevance[i] >= floor)
    if relevance[0] <= 0 or least.setting == 0:
        return f"{said}."
    return (
        f"{said}; of the settings that keep {KEPT:.0%} of that relevance, {settings[least.setting].label} repeats "
        f"itself least ({_number(relevance[least.setting])} and {_number(least.redundancy)})."
    )


def _spread(of: Estimate, *, sign: bool = False) -> str:
    mean = f"{'+' if sign and of.mean > 0 else ''}{_number(of.mean)}"
    if of.queries < 2:
        return mean
    return f"{mean} (95 % interval {_number(of.low)} to {_number(of.high)})"


def _number(value: float) -> str:
    rounded = f"{value:.3f}"
    return "0" if float(rounded) == 0 else rounded.replace("0.", ".", 1) if abs(value) < 1 else rounded


def _p(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {_number(p)}"
