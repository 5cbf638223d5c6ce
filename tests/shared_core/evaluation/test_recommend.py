"""What is recommended on corpora whose right answer is known, and on figures made up for each rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shared_core.evaluation.compare import compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.recommend import recommend
from shared_core.evaluation.results import Comparison, Measure, Recommendation
from shared_core.evaluation.settings import named, sweep
from shared_core.evaluation.summary import MeasureValues, summarise

RECALL = Measure("recall@5", "recall", "", True, "gold")
FOUR = ["similarity", "ndpp", "vrsd", "mmr lambda_mult=0.5"]
LABELS = {setting.label: setting for setting, _ in sweep()}
MANY = [*LABELS.values(), *(named("mmr", lambda_mult=value)[0] for value in (0.1, 0.3, 0.6, 0.7, 0.9))]


def advise(values: dict[str, Sequence[float]], measure: Measure = RECALL) -> tuple[str, Recommendation]:
    """The label of the recommended setting, for these values of each query."""
    settings = [setting for label in values for setting in MANY if setting.label == label]
    rows = np.array(list(values.values()), dtype=np.float64)
    column = MeasureValues(measure, rows, tuple(f"q{i}" for i in range(1, rows.shape[1] + 1)))
    advice = recommend(settings, [column], *summarise([column]))
    assert advice.setting is not None
    return settings[advice.setting].label, advice


def corpus(
    make: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, list[int]]], queries: int, **options: Any
) -> Comparison:
    """Compare on candidates that ``make`` gives for each query: its vector, those of documents, and rows of gold."""
    rng = np.random.default_rng(0)
    made = {}
    for number in range(1, queries + 1):
        query, rows, gold = make(rng)
        # Any rotation leaves all cosines as they are.
        turn = np.linalg.qr(rng.normal(size=(len(query), len(query))))[0]
        documents = [Document(f"{number}-{row}", f"document {row} of {number}") for row in range(len(rows))]
        made[str(number)] = SearchResult(query @ turn, documents, rows @ turn), gold
    asked = [
        Query(name, "?", gold=tuple(found.documents[row].id for row in gold)) for name, (found, gold) in made.items()
    ]
    return compare_candidates(asked, lambda query: made[query.id][0], k=2, **options)


def recommended(found: Comparison) -> str:
    assert found.recommendation.setting is not None
    return found.settings[found.recommendation.setting].label


def test_where_a_query_asks_for_two_things_and_one_is_stored_many_times_a_diverse_setting_wins() -> None:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
        # Six documents say the same about one half of the question, one answers the other half, the rest neither.
        query = np.array([1.0, 0.98, 0, 0, 0, 0])
        rows = np.vstack([np.tile([1.0, 0.1, 0, 0, 0, 0], (6, 1)), [[0.05, 1.0, 0, 0, 0, 0]], np.eye(6)[2:]])
        rows += rng.normal(scale=0.02, size=rows.shape)
        nearest = int((rows @ query / np.linalg.norm(rows, axis=1)).argmax())
        return query, rows, [nearest, 6]

    found = corpus(make, 12)
    # All find both parts, so the simplest setting is named.
    assert recommended(found) == "coverage"
    told = found.recommendation
    assert told.p_similarity is not None
    assert told.p_similarity < 0.05
    assert all(fact in told.text for fact in ("coverage", "1.000 over 12 queries", "0.500 above", "100 %"))
    assert found.values[0, "recall"].mean == 0.5


def test_similarity_is_enough_where_the_right_documents_are_the_nearest() -> None:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
        # The two right passages are alike; the others are unlike them and less relevant.
        rows = np.vstack([[[1.0, 0.02, 0, 0, 0, 0], [1.0, 0, 0.02, 0, 0, 0]], 0.5 * np.eye(6)[1:] + np.eye(6)[0] * 0.3])
        return np.eye(6)[0], rows + rng.normal(scale=0.02, size=rows.shape), [0, 1]

    found = corpus(make, 12, decide_by="recall")
    assert recommended(found) == "similarity"
    assert "1.000 over 12 queries" in found.recommendation.text
    position = [setting.label for setting in found.settings].index("mmr lambda_mult=0.5")
    assert found.differences[position, "recall"].worse == 1.0
    assert found.recommendation.p_similarity is None


def test_settings_without_a_difference_leave_similarity() -> None:
    label, told = advise({name: [0.5, 1.0, 0.0, 0.25, 0.75, 1.0] for name in FOUR})
    assert (label, told.runner_up, told.p_runner_up) == ("similarity", 1, 1.0)
    assert "ndpp, has 0.583" in told.text


def test_the_simplest_is_taken_of_settings_whose_difference_may_be_chance() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(0, 0.3, size=40)
    vrsd = base + 0.4 + rng.normal(0, 0.05, size=40)
    mmr = vrsd + rng.normal(0.002, 0.03, size=40)
    assert mmr.mean() > vrsd.mean()
    label, told = advise({"similarity": base, "vrsd": vrsd, "mmr lambda_mult=0.5": mmr})
    assert (label, told.runner_up) == ("vrsd", 2)
    assert told.p_runner_up is not None
    assert told.p_runner_up >= 0.05
    assert f"mmr lambda_mult=0.5 has {mmr.mean():.3f}, which is {mmr.mean() - vrsd.mean():.3f} more" in told.text


def test_a_better_setting_is_taken_though_a_simpler_one_beats_similarity_too() -> None:
    base = np.random.default_rng(2).uniform(0, 0.3, size=40)
    label, told = advise({"similarity": base, "vrsd": base + 0.1, "mmr lambda_mult=0.5": base + 0.3})
    assert (label, told.runner_up) == ("mmr lambda_mult=0.5", 1)
    assert told.p_runner_up is not None
    assert told.p_runner_up < 0.05


def test_the_highest_mean_decides_between_the_values_of_one_parameter() -> None:
    base = np.random.default_rng(3).uniform(0, 0.3, size=40)
    low = base + 0.3 + np.random.default_rng(4).normal(0, 0.1, 40)
    high = base + 0.3 + np.random.default_rng(5).normal(0, 0.1, 40) + 0.03
    assert high.mean() > low.mean()
    values = {"similarity": base, "mmr lambda_mult=0.5": low, "mmr lambda_mult=0.8": high}
    assert advise(values)[0] == "mmr lambda_mult=0.8"
    # Which is earlier in the list makes no difference.
    turned = {name: values[name] for name in ("similarity", "mmr lambda_mult=0.8", "mmr lambda_mult=0.5")}
    assert advise(turned)[0] == "mmr lambda_mult=0.8"


def test_a_simpler_setting_that_does_not_beat_similarity_is_not_taken() -> None:
    rng = np.random.default_rng(6)
    base = rng.uniform(0.3, 0.5, size=30)
    # Its mean is near the best, but its values jump, so it may be no better than similarity.
    jumping = base + rng.permutation(np.repeat([1.1, -0.95], 15))
    steady = base + 0.12 + rng.normal(0, 0.02, size=30)
    label, told = advise({"similarity": base, "ndpp": jumping, "vrsd": steady})
    assert (label, told.runner_up) == ("vrsd", 1)


def test_one_lead_among_many_settings_is_not_more_than_chance() -> None:
    # A coin for each query: by itself the best of thirteen such settings often has p < 0.05.
    rng = np.random.default_rng(12)
    base = np.full(30, 0.5)
    coins = {setting.label: base + rng.choice([-0.5, 0.5], size=30) for setting in MANY[1:]}
    best = max(coins, key=lambda label: float(coins[label].mean()))
    alone = advise({"similarity": base, best: coins[best]})
    assert alone[0] == best
    assert "corrected" not in alone[1].text
    label, told = advise({"similarity": base, **coins})
    assert label == "similarity"
    assert all(fact in told.text for fact in (best, f"{coins[best].mean():.3f}", "14 comparisons", "30 queries", "50"))
    # The interval of this one setting excludes 0.
    assert f"about {best} alone" in told.text
    assert "14 settings" in told.text
    assert "interval is" not in alone[1].text


def test_a_recommendation_says_which_queries_it_makes_worse() -> None:
    # 11 of 50 lose: ten lose 0.25, one loses 0.5.
    ndpp = np.concatenate([np.full(38, 0.9), np.full(10, 0.25), [0.0, 0.5]])
    label, told = advise({"similarity": np.full(50, 0.5), "ndpp": ndpp})
    assert label == "ndpp"
    assert all(fact in told.text for fact in ("But", "22 % of the queries", "0.273", "76 %", "'q49'", "0.500"))
    roots = Measure("p-recall@5", "p_recall", "", True, "perspectives")
    assert "22 % of the root queries" in advise({"similarity": np.full(50, 0.5), "ndpp": ndpp}, roots)[1].text
    few = np.concatenate([np.full(48, 0.9), [0.25, 0.5]])
    told = advise({"similarity": np.full(50, 0.5), "ndpp": few})[1]
    assert ("2 %" in told.text, "But" in told.text) == (True, False)


@pytest.mark.parametrize("queries", [1, 5])
def test_too_few_queries_cannot_show_a_difference(queries: int) -> None:
    label, told = advise({"similarity": [0.0] * queries, "ndpp": [1.0] * queries})
    assert label == "similarity"
    assert "6 or more" in told.text
    assert (told.p_runner_up is None) == (queries == 1)
    assert advise({"similarity": [0.0] * 6, "ndpp": [1.0] * 6})[0] == "ndpp"


def fewer(values: dict[str, dict[int, list[float]]]) -> tuple[Recommendation, str | None]:
    """The recommendation for these values of each number of picks, and its sentence on fewer picks."""
    settings = [setting for label in values for setting in MANY if setting.label == label]
    sizes = {
        k: [MeasureValues(RECALL, np.array([of[k] for of in values.values()]), tuple("abcdef"))]
        for k in values["similarity"]
    }
    [column] = sizes[5]
    advice = recommend(settings, [column], *summarise([column]), sizes)
    said = [claim.text for claim in advice.claims if claim.shown_in == "sizes"]
    return advice, said[0] if said else None


def test_fewer_picks_that_find_as_much_are_named() -> None:
    nothing, half, full = [0.0] * 6, [0.5] * 6, [1.0] * 6
    plain = {2: nothing, 3: nothing, 5: half, 10: full}
    # By hand: the values of the six queries with 3 picks are 0.1 above 1 on average, and one is 0.2 below.
    better = {2: half, 3: [1.2, 1.2, 1.2, 1.2, 1.0, 0.8], 5: full, 10: full}
    advice, said = fewer({"similarity": plain, "coverage": better})
    assert advice.fewer is not None
    assert (advice.fewer.setting, advice.fewer.k, advice.fewer.than) == (1, 3, 10)
    assert advice.fewer.difference == pytest.approx(0.1)
    assert advice.fewer.low < 0 < advice.fewer.high
    assert said is not None
    assert all(fact in said for fact in ("3 texts of coverage", "10 texts of similarity", "1.100", "1.000"))
    # The lines to paste are those of the recommended setting, and have the number of the tables.
    assert advice.setting == 1
    assert advice.claims[-1].text.endswith(" 3.")
    # Similarity with 5 picks finds as much as with 10, so 5 is not fewer.
    assert fewer({"similarity": {2: nothing, 5: full, 10: full}, "coverage": {2: half, 5: full, 10: full}})[1] is None
    # Similarity is enough, and coverage is not among the settings.
    assert fewer({"similarity": {2: nothing, 5: full}, "ndpp": {2: full, 5: full}})[0].fewer is None
