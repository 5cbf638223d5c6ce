"""The pure functions of the VRSD paper's tables, on cases worked out by hand; no data, no model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import vrsd
from benchmarks.papers._paper_figures import VRSD_MPNET

QUERY = np.array([1.0, 0.0])
# Degrees from the query. The pool of three leaves out the item at 90°; its order by cosine is rows 3, 1, 2.
ANGLES = (90, 12, -20, 10)
ITEMS = np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in ANGLES])
ARC = next(data_set for data_set in vrsd.DATA_SETS if data_set.paper == "ARC-DA")
BM25 = np.array([5.0, 1.0, 0.0, 0.0])


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def values(**shares: list[float]) -> vrsd.Values:
    """Values of every method: those given, by a keyword for each method, and 0.5 for the others."""
    names = {"vrsd": vrsd.VRSD, "refined": vrsd.REFINED, "mmr0": "MMR λ 0", "mmr5": "MMR λ 0.5", "mmr1": "MMR λ 1"}
    names["mmr75"] = "MMR λ 0.75"
    length = len(next(iter(shares.values())))
    return {name: np.full(length, 0.5) for name in vrsd.METHODS} | {
        names[name]: np.array(given) for name, given in shares.items()
    }


@pytest.mark.parametrize(("n", "asked"), [(10, 2), (70, 14), (4833, 966), (2099, 419)])
def test_a_fifth_are_questions_and_no_items(n: int, asked: int) -> None:
    questions, rest = vrsd.split(n)
    assert len(questions) == asked
    assert sorted([*questions, *rest]) == list(range(n))


def test_only_the_seed_decides_which_records_are_questions() -> None:
    assert vrsd.split(100, 3)[0].tolist() == vrsd.split(100, 3)[0].tolist()
    assert vrsd.split(100, 3)[0].tolist() != vrsd.split(100, 4)[0].tolist()


def test_best_takes_the_lower_index_of_equals_and_all_if_there_are_fewer() -> None:
    assert vrsd.best(np.array([0.1, 0.7, 0.7, 0.9]), 3).tolist() == [3, 1, 2]
    assert vrsd.best(np.zeros(1000), 5).tolist() == [0, 1, 2, 3, 4]
    assert vrsd.best(np.array([0.1, 0.2]), 100).tolist() == [1, 0]


def test_what_each_method_selects() -> None:
    found = vrsd.picks(QUERY, ITEMS, BM25, size=3, k=2)
    assert {name: chosen.tolist() for name, chosen in found.items()} == {
        "similarity": [3, 1],
        "MMR λ 1": [3, 1],
        # ½(cos 12° − cos 2°) < 0 < ½(cos 20° − cos 30°)
        "MMR λ 0.5": [3, 2],
        # ¾ cos 20° − ¼ cos 30° = 0.488, and 0.484 for row 1
        "MMR λ 0.75": [3, 2],
        "MMR λ 0": [3, 2],
        # 10° and −20° add up to −5°, 10° and 12° to 11°
        "VRSD": [3, 2],
        "VRSD refined": [3, 2],
        # BM25 scores rows 2 and 3 equally; row 3 is nearer.
        "BM25, the pool": [1, 3],
        "BM25, all items": [0, 1],
    }


def test_cosines_of_sums_and_pairs_follow_from_the_angles() -> None:
    aims, likeness = vrsd.judge(QUERY[None], ITEMS, [BM25], size=3, k=2)
    assert list(aims) == list(likeness) == list(vrsd.METHODS)
    # The sum of two unit vectors halves the angle between them.
    for name, towards, apart in (
        ("similarity", 11, 2),
        ("VRSD", 5, 30),
        ("BM25, the pool", 11, 2),
        ("BM25, all items", 51, 78),
    ):
        assert aims[name] == pytest.approx([cosine_of(towards)], abs=1e-12)
        assert likeness[name] == pytest.approx([cosine_of(apart)], abs=1e-12)


def test_refining_corrects_a_greedy_mistake_and_both_are_judged() -> None:
    # 5° and −6° nearly cancel, and any third item turns the sum away; 5°, 20° and −28° point closer to the query.
    angles = (5, -6, 20, -28)
    items = np.array([[cosine_of(a), math.sin(math.radians(a))] for a in angles])
    aims, _ = vrsd.judge(QUERY[None], items, [np.zeros(4)], size=4, k=3)
    for name, rows in ((vrsd.VRSD, [0, 1, 2]), (vrsd.REFINED, [0, 2, 3])):
        assert aims[name] == pytest.approx([math.cos(math.atan2(*items[rows].sum(axis=0)[::-1]))], abs=1e-12)
    assert vrsd.worsened(aims) == 0


def test_bm25_is_lucenes_variant_and_unknown_words_score_nothing() -> None:
    items = ["heat metal", "metal metal pan", "river"]
    known, unknown, empty = vrsd.bm25_scores(items, ["Heat?", "volcano", "the"])
    # idf = ln(1 + (3 − 1 + ½) / (1 + ½)); the item is of average length, so tf counts 1 / (1 + k1) with k1 = 1.5.
    assert known == pytest.approx([math.log(1 + 2.5 / 1.5) / 2.5, 0, 0], rel=1e-6)
    assert unknown.tolist() == empty.tolist() == [0, 0, 0]


def test_the_weakest_row_counts_wins_and_a_tie_is_no_win() -> None:
    aims = values(
        vrsd=[0.6, 0.6, 0.6, 0.6], mmr0=[0.5] * 4, mmr5=[0.6, 0.6 - 1e-10, 0.5, 0.7], mmr1=[0.7, 0.5, 0.5, 0.5]
    )
    assert vrsd.weakest(aims) == ("MMR λ 0.5", 0.25)


def test_the_paper_is_compared_only_with_rows_that_it_has() -> None:
    aims = values(vrsd=[0.6] * 4, mmr75=[0.7] * 4, mmr1=[0.7, 0.5, 0.5, 0.5])
    assert vrsd.weakest(aims) == ("MMR λ 1", 0.75)
    assert vrsd.verdict(ARC, aims)[-1] == "0.0%"


def test_exactly_85_percent_is_not_more_than_85_and_the_interval_marks_uncertainty() -> None:
    aims = values(vrsd=[0.6] * 17 + [0.5] * 2 + [0.4])
    title, row, wins, equal, losses, interval, holds, paper, closer = vrsd.verdict(ARC, aims)
    assert (title, row, paper, closer) == ("ARC-Challenge", "MMR λ 0", "97.7%", "85.0%")
    assert (wins, equal, losses) == ("17 of 20 (85.0%)", "2", "1")
    assert holds == "**no**, too close to tell"
    low, high = (float(end.rstrip("%")) for end in interval.split(" to "))
    assert 60 < low < 85 < high <= 100


def test_a_clear_yes_and_a_clear_no() -> None:
    yes = vrsd.verdict(ARC, values(vrsd=[0.6] * 50))
    assert yes[2:7] == ["50 of 50 (100.0%)", "0", "0", "100.0% to 100.0%", "yes"]
    no = vrsd.verdict(ARC, values(vrsd=[0.6] * 50, mmr5=[0.7] * 50))
    assert no[1:7] == ["MMR λ 0.5", "0 of 50 (0.0%)", "0", "50", "0.0% to 0.0%", "**no**"]


def test_worsened_counts_questions_beyond_rounding() -> None:
    assert vrsd.worsened(values(vrsd=[0.6, 0.6, 0.6], refined=[0.6 - 1e-12, 0.59, 0.61])) == 1


def test_a_table_has_the_papers_columns_only_if_the_paper_has_figures() -> None:
    aims = values(vrsd=[0.6, 0.8], refined=[0.6, 0.9], mmr1=[0.7, 0.5])
    likeness = values(vrsd=[0.1, 0.3])
    bare = vrsd.lines(aims, likeness, None).splitlines()
    assert "| VRSD | 0.7000 |  |  | 50.0% | 0.1000 | 0.2000 |" in bare
    assert "| MMR λ 1 | 0.6000 | 50.0% | 0.3000 | 50.0% | 0.4000 | 0.5000 |" in bare
    beside = vrsd.lines(aims, likeness, VRSD_MPNET["ARC-DA"]).splitlines()
    assert "| MMR λ 1 | 0.6000 | 50.0% | 0.3000 | 50.0% | 0.4000 | 0.5000 | 0.710 | 95.3% | 0.158 |" in beside
    assert {line.count("|") for line in bare} == {8}
    assert {line.count("|") for line in beside} == {11}


def test_every_figure_of_the_paper_has_a_row_here() -> None:
    assert {data_set.paper for data_set in vrsd.DATA_SETS} == set(VRSD_MPNET)
    for rows in VRSD_MPNET.values():
        assert set(rows) <= set(vrsd.METHODS)
        # The paper's CS (its Table 3) is its MMR λ = 1 (its Table 1).
        assert rows["similarity"] == rows["MMR λ 1"]


def test_an_item_is_the_question_and_its_answer_as_each_data_set_defines_it() -> None:
    record = {
        "question": "Ice is",
        "choices": [{"label": "A", "text": "cold"}, {"label": "B", "text": "hot"}],
        "answer": "cold",
        "answers": ["cold"],
        "story": "He slept.",
    }
    assert [data_set.read(record) for data_set in vrsd.DATA_SETS] == [
        ("Ice is", "cold"),
        ("Ice is? The options are: cold. hot", "cold"),
        ("Ice is", "cold"),
        ("He slept.", "cold"),
    ]


def test_without_data_it_says_so_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vrsd, "DATA", tmp_path)
    monkeypatch.setattr("benchmarks.papers._common.RESULTS", tmp_path / "results")
    vrsd.main(["--write"])
    out, err = capsys.readouterr()
    assert not out
    assert err.count("skipped") == len(vrsd.DATA_SETS)
    assert "SETSELECT_DATA" in err
    assert not (tmp_path / "results").exists()


def test_without_the_papers_own_model_it_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vrsd, "is_installed", lambda model: False)
    monkeypatch.setattr("benchmarks.papers._common.RESULTS", tmp_path / "results")
    vrsd.main(["--model", "all-mpnet-base-v2", "--write"])
    out, err = capsys.readouterr()
    assert not out
    assert "make models" in err
    assert not (tmp_path / "results").exists()
