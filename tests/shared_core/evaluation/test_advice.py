"""Which row is called the best, and how surely, on corpora whose answer is known and on made-up figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shared_core.evaluation.advice import count_needed, recommend
from shared_core.evaluation.compare import compare_candidates
from shared_core.evaluation.corpus import Document, Query
from shared_core.evaluation.judging import SearchResult
from shared_core.evaluation.results import Comparison, Measure, Recommendation, Setting
from shared_core.evaluation.settings import named, sweep
from shared_core.evaluation.summary import MeasureValues, summarise

RECALL = Measure("recall@5", "recall", "", True, "gold")
FOUR = ["similarity", "ndpp", "vrsd", "mmr lambda_mult=0.5"]
LABELS = {setting.label: setting for setting, _ in sweep()}
MANY = [*LABELS.values(), *(named("mmr", lambda_mult=value)[0] for value in (0.1, 0.3, 0.6, 0.7, 0.9))]


def advise(values: dict[str, Sequence[float]], measure: Measure = RECALL) -> tuple[str, Recommendation]:
    """The label of the best row, for these values of each query."""
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
    assert told.needed is None
    assert all(fact in told.text for fact in ("coverage is best", "1.000 over 12 queries", "0.500", "100 %"))


def test_similarity_is_best_where_the_right_documents_are_the_nearest() -> None:
    def make(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[int]]:
        # The two right passages are alike; the others are unlike them and less relevant.
        rows = np.vstack([[[1.0, 0.02, 0, 0, 0, 0], [1.0, 0, 0.02, 0, 0, 0]], 0.5 * np.eye(6)[1:] + np.eye(6)[0] * 0.3])
        return np.eye(6)[0], rows + rng.normal(scale=0.02, size=rows.shape), [0, 1]

    found = corpus(make, 12, decide_by="recall")
    assert recommended(found) == "similarity"
    assert "1.000 over 12 queries" in found.recommendation.text
    assert found.recommendation.p_similarity is None


def test_rows_without_a_difference_are_called_equal() -> None:
    label, told = advise({name: [0.5, 1.0, 0.0, 0.25, 0.75, 1.0] for name in FOUR})
    assert (label, told.runner_up, told.needed) == ("similarity", 1, None)
    assert "No row is better than similarity: ndpp has the same" in told.text


def test_the_best_row_is_named_and_the_simplest_that_ties_with_it() -> None:
    rng = np.random.default_rng(1)
    base = rng.uniform(0, 0.3, size=40)
    vrsd = base + 0.4 + rng.normal(0, 0.05, size=40)
    mmr = vrsd + rng.normal(0.002, 0.03, size=40)
    assert mmr.mean() > vrsd.mean()
    label, told = advise({"similarity": base, "vrsd": vrsd, "mmr lambda_mult=0.5": mmr})
    assert (label, told.runner_up) == ("mmr lambda_mult=0.5", 1)
    assert f"vrsd has {vrsd.mean():.3f}" in told.text
    label, told = advise({"similarity": base, "vrsd": base + 0.1, "mmr lambda_mult=0.5": base + 0.3})
    assert (label, told.runner_up) == ("mmr lambda_mult=0.5", 1)
    assert "vrsd has" not in told.text


def test_a_lead_among_many_rows_that_may_be_chance_says_how_many_queries_it_needs() -> None:
    # A coin for each query: by itself the best of thirteen such settings often has p < 0.05.
    rng = np.random.default_rng(12)
    base = np.full(30, 0.5)
    coins = {setting.label: base + rng.choice([-0.5, 0.5], size=30) for setting in MANY[1:]}
    best = max(coins, key=lambda label: float(coins[label].mean()))
    alone = advise({"similarity": base, best: coins[best]})
    assert (alone[0], alone[1].needed, "corrected" in alone[1].text) == (best, None, False)
    label, told = advise({"similarity": base, **coins})
    assert label == best
    assert told.needed is not None
    assert told.needed > 30
    assert told.text.startswith(f"Too few to tell: {best} has the highest recall@5")
    assert all(fact in told.text for fact in (f"{told.needed} queries", "14 comparisons", "30 queries"))
    assert "enough" not in told.text


def test_the_number_that_is_needed_comes_from_the_spread_of_the_differences() -> None:
    gaps = np.array([0.5, -0.3] * 20)
    # (1.96 + 0.84)² (0.405 / 0.1)² = 129
    assert count_needed(gaps, 1) == 130
    assert (count_needed(gaps, 10) or 0) > 200
    # Never fewer than there are, which did not tell.
    assert count_needed(np.full(20, 0.1), 1) == 22
    assert count_needed(np.zeros(20), 1) is None


@pytest.mark.parametrize("queries", [1, 5])
def test_few_queries_cannot_show_a_difference(queries: int) -> None:
    label, told = advise({"similarity": [0.0] * queries, "ndpp": [1.0] * queries})
    assert (label, told.needed) == ("ndpp", 6)
    assert "Too few to tell" in told.text
    assert (told.p_similarity is None) == (queries == 1)
    label, told = advise({"similarity": [0.0] * 6, "ndpp": [1.0] * 6})
    assert (label, told.needed) == ("ndpp", None)


def test_the_text_says_which_queries_the_best_row_makes_worse() -> None:
    # 11 of 50 lose: ten lose 0.25, one loses 0.5.
    ndpp = np.concatenate([np.full(38, 0.9), np.full(10, 0.25), [0.0, 0.5]])
    label, told = advise({"similarity": np.full(50, 0.5), "ndpp": ndpp})
    assert label == "ndpp"
    assert all(fact in told.text for fact in ("22 % worse", "0.273", "76 %", "'q49'", "0.500"))


@pytest.mark.parametrize(
    ("gains", "queries", "said"),
    [
        (-0.1, 20, "finds 0.100 less than similarity (−0.100 to −0.100): keep similarity."),
        (0.1, 20, "finds 0.100 more than similarity (0.100 to 0.100)."),
        (-0.1, 5, "finds 0.100 less than similarity (−0.100 to −0.100), which may be chance."),
        ([0.5, -0.4] * 10, 20, "which may be chance."),
        (0.0, 20, "finds as much as similarity (0.000 to 0.000)."),
    ],
)
def test_every_comparison_says_what_the_default_finds(gains: Any, queries: int, said: str) -> None:
    base = np.full(queries, 0.4)
    # The best row is better by chance.
    noise = np.where(np.arange(queries) % 2, -0.6, 0.9)
    _, told = advise({"similarity": base, "coverage": base + gains, "vrsd": base + noise})
    [claim] = [claim for claim in told.claims if claim.startswith("coverage, the default, ")]
    assert claim.endswith(said)
    _, told = advise({"similarity": base, "coverage": base + 0.5})
    assert "the default" not in told.text, "its lead is said"


def test_where_another_row_is_surely_better_similarity_is_not_recommended() -> None:
    base = np.full(20, 0.4)
    label, told = advise({"similarity": base, "coverage": base - 0.1, "vrsd": base + 0.3})
    assert (label, "than similarity (−0.100 to −0.100)." in told.text) == ("vrsd", True)


def test_a_ranking_that_is_best_says_what_it_needs_and_what_setselect_selects_best() -> None:
    settings = [named("similarity")[0], named("vrsd")[0], Setting("ranking", "hybrid search", "")]
    column = MeasureValues(RECALL, np.array([[0.0] * 8, [0.5] * 8, [1.0] * 8]), tuple("abcdefgh"))
    told = recommend(settings, [column], *summarise([column]))
    assert (told.setting, told.runner_up) == (2, 1)
    assert all(fact in told.text for fact in ("index of words", "Of what setselect selects, vrsd has the highest"))
