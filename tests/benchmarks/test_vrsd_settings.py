"""The search for the VRSD paper's setting, on cases worked out by hand; no data, no model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import vrsd_settings
from benchmarks.papers.vrsd_settings import FIRST, RANDOM, SINGLE, SUM, TEXTS, VRSD, Setting

QUERY = np.array([1.0, 0.0])
# Degrees from the query, in another order than that of the cosine.
ANGLES = (40, 2, -6, 25, -55, 70, -90, 5)
RECORDS = [
    {"question": f"q{row}", "answer": f"a{row}", "choices": [{"text": f"a{row}"}, {"text": "no"}]} for row in range(10)
]


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def setting(**changes: object) -> Setting:
    return vrsd_settings.CODE._replace(**changes)  # type: ignore[arg-type]


def test_values_for_each_number_of_picks_follow_from_the_angles() -> None:
    items = np.array([[cosine_of(angle), math.sin(math.radians(angle))] for angle in ANGLES])
    judged = vrsd_settings.judge(QUERY[None], items, [8])
    assert set(judged) == {(8, SUM), (8, SINGLE)}
    ordered = [cosine_of(angle) for angle in sorted(ANGLES, key=abs)]
    total = items.sum(axis=0)
    for name in vrsd_settings.ROWS:
        sums, singles = judged[8, SUM][name], judged[8, SINGLE][name]
        assert sums.shape == singles.shape == (1, 8)
        # The nearest item is everybody's first pick, and all eight are the same set.
        assert sums[0, 0] == singles[0, 0] == pytest.approx(cosine_of(2), abs=1e-6)
        assert sums[0, 7] == pytest.approx(total[0] / math.hypot(*total), abs=1e-6)
        assert singles[0, 7] == pytest.approx(np.mean(ordered), abs=1e-6)
    # The sum of two unit vectors lies in the middle of them: 2° and 5°, or 2° and −6° with VRSD.
    assert judged[8, SUM]["MMR λ 1"][0, 1] == pytest.approx(cosine_of(3.5), abs=1e-6)
    assert judged[8, SINGLE]["MMR λ 1"][0] == pytest.approx(np.cumsum(ordered) / np.arange(1, 9), abs=1e-6)
    assert judged[8, SUM][VRSD][0, 1] == pytest.approx(cosine_of(-2), abs=1e-6)
    assert judged[8, SUM]["MMR λ 0"][0, 1] == pytest.approx(cosine_of(-44), abs=1e-6)


def test_a_pool_leaves_out_the_items_that_are_further_away() -> None:
    near = [cosine_of(angle) for angle in range(1, 9)]
    items = np.array([[cosine_of(angle), math.sin(math.radians(angle))] for angle in (80, *range(1, 9), 85)])
    judged = vrsd_settings.judge(QUERY[None], items, [8, 10])
    assert judged[8, SINGLE]["MMR λ 0"][0, 7] == pytest.approx(np.mean(near), abs=1e-6)
    assert judged[10, SINGLE]["MMR λ 0"][0, 7] < np.mean(near) - 0.05


@pytest.mark.parametrize(("tie", "rate"), [(0.0, 0.25), (0.5, 0.5), (1.0, 0.75)])
def test_ten_figures_and_what_an_equal_value_counts(tie: float, rate: float) -> None:
    judged = {name: np.full((4, 8), 0.5) for name in vrsd_settings.ROWS}
    judged[VRSD][:, 2] = [0.5, 0.5 + 1e-10, 0.9, 0.3]
    found = vrsd_settings.figures(judged, k=3, tie=tie)
    assert found.tolist() == pytest.approx([0.5, 0.5, 0.5, 0.55, rate, rate, rate, 0.4, 0.4, 0.4])


def test_the_papers_figures_are_in_the_same_order() -> None:
    paper = vrsd_settings.paper_figures("Puzzle")
    assert paper.tolist() == pytest.approx([0.537, 0.576, 0.577, 0.592, 1, 0.9, 1, 0.161, 0.052, 0.132])


def test_the_distance_is_the_mean_absolute_difference_and_the_smallest_is_closest() -> None:
    paper = np.zeros(10)
    far, near = np.full(10, 0.1), np.array([-0.5, *[0.0] * 9])
    assert vrsd_settings.distance(near, paper) == pytest.approx(0.05)
    assert vrsd_settings.closest([(setting(k=2), far), (setting(k=3), near)], paper)[0].k == 3


def test_questions_are_the_first_fifth_or_a_random_one() -> None:
    questions, rest = vrsd_settings.fifth(10, FIRST)
    assert (questions.tolist(), rest.tolist()) == ([0, 1], [2, 3, 4, 5, 6, 7, 8, 9])
    questions, rest = vrsd_settings.fifth(100, RANDOM)
    assert len(questions) == 20
    assert sorted([*questions, *rest]) == list(range(100))


def test_the_own_record_is_among_the_items_only_if_asked_for() -> None:
    queries, items = vrsd_settings.pair(vrsd_settings.ANSWERED, RECORDS, FIRST, own=False)
    assert queries == ["q0?", "q1?"]
    assert items == [f"q{row}?->a{row}" for row in range(2, 10)]
    assert len(vrsd_settings.pair(vrsd_settings.ANSWERED, RECORDS, FIRST, own=True)[1]) == 10


def test_texts_are_those_of_the_published_code() -> None:
    published = vrsd_settings.PUBLISHED
    assert published.query(RECORDS[3]) == "q3? The option can be: a3. no"
    assert published.item is not None
    assert published.item(RECORDS[3]) == "q3? The option can be: a3. no->a3"


def test_an_item_that_repeats_the_query_is_never_the_questions_own() -> None:
    for texts in TEXTS:
        if texts.item is not None and texts.item(RECORDS[0]) == texts.query(RECORDS[0]):
            assert texts.own == (False,)


def test_the_page_shows_no_setting_twice_and_the_published_codes() -> None:
    every = [
        (Setting(texts.title, asked, own, pool, k, measure, ties), np.full(10, pool / 1000 + k / 100))
        for texts in TEXTS
        for asked in (FIRST, RANDOM)
        for own in texts.own
        for pool in vrsd_settings.POOLS
        for k in vrsd_settings.KS
        for measure in vrsd_settings.MEASURES
        for ties in vrsd_settings.TIES
    ]
    rows = vrsd_settings.chosen(every, np.zeros(10))
    shown = [how for _, how, _ in rows]
    assert len(set(shown)) == len(shown)
    assert vrsd_settings.CODE in shown
    assert {how.texts for how in shown} == {texts.title for texts in TEXTS}
    assert (rows[0][1].pool, rows[0][1].k) == (10, 2)
    lines = vrsd_settings.lines(rows, np.zeros(10)).splitlines()
    assert len(lines) == len(rows) + 3
    assert len({line.count("|") for line in lines}) == 1


def test_without_the_papers_model_it_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vrsd_settings, "is_installed", lambda model: False)
    monkeypatch.setattr("benchmarks.papers._common.RESULTS", tmp_path / "results")
    vrsd_settings.main(["--write"])
    out, err = capsys.readouterr()
    assert not out
    assert "make models" in err
    assert not (tmp_path / "results").exists()
