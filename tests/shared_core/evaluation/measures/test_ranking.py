"""Measures of rankings against arithmetic by hand, against ndeval, and against ir_measures."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction as F
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import InvalidInputError, InvalidParameterError
from shared_core.evaluation.measures import rank_measures

# Ten documents of which a, b and c share the subtopic A, and e, f and h the subtopic C. In this order they gain, at
# α = 1/2: 2, 1/2, 1/4, 0, 2, 1/2, 1, 1/4, 0, 0.
SUBTOPICS = {"a": "AB", "b": "A", "c": "A", "d": "", "e": "CD", "f": "C", "g": "E", "h": "C", "i": "", "j": ""}
QRELS = {"q": {name: dict.fromkeys(topics, 1) for name, topics in SUBTOPICS.items()}}
RUN = {"q": list("abcdefghij")}


def value(name: str, qrels: Any = QRELS, run: Any = RUN) -> float:
    (result,) = rank_measures(qrels, run, [name])[name]
    return float(result)


def discounted(gains: list[F]) -> float:
    return sum(float(gain) / math.log2(1 + rank) for rank, gain in enumerate(gains, 1))


def close(found: float, expected: Any) -> bool:
    return found == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def test_alpha_ndcg_by_hand() -> None:
    gains = [F(2), F(1, 2), F(1, 4), F(0), F(2), F(1, 2), F(1), F(1, 4), F(0), F(0)]
    # The ideal ranking: a and e with two subtopics each, then g, then the repetitions of A and C.
    ideal = [F(2), F(2), F(1), F(1, 2), F(1, 2), F(1, 4), F(1, 4), F(0), F(0), F(0)]
    for cutoff in (1, 2, 3, 5, 10):
        assert close(value(f"alpha_nDCG@{cutoff}"), discounted(gains[:cutoff]) / discounted(ideal[:cutoff]))


def test_err_ia_by_hand() -> None:
    # Chapelle 2011: Σ over subtopics of 1/5 Σ over ranks of 1/rank · 1/2 · (1/2)^(earlier ones of that subtopic).
    first, second, third = F(1, 2), F(1, 4), F(1, 8)
    plain = F(1, 5) * (
        (first / 1 + second / 2 + third / 3)  # A at ranks 1, 2 and 3
        + first / 1  # B
        + (first / 5 + second / 6 + third / 8)  # C
        + first / 5  # D
        + first / 7  # E
    )
    # Relevant to everything at every rank: each subtopic gets 1/rank · (1/2)^rank.
    most = sum(F(1, rank) * F(1, 2) ** rank for rank in range(1, 11))
    assert close(value("ERR_IA@10"), plain / most)
    assert close(value("ERR_IA@1"), F(2, 5))


def test_subtopic_recall_by_hand() -> None:
    assert [value(f"StRecall@{k}") for k in (1, 4, 5, 6, 7, 10)] == [2 / 5, 2 / 5, 4 / 5, 4 / 5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("alpha_nDCG@3", 0.6089343949810363),
        ("alpha_nDCG@7", 0.8101232039750002),
        ("alpha_nDCG(alpha=0.9)@3", 0.6173501083170803),
        ("ERR_IA@5", 0.5325264750378216),
        ("StRecall@2", 2 / 3),
    ],
)
def test_values_agree_with_ndeval(name: str, expected: float) -> None:
    """Printed by pyndeval 0.0.8 for these judgements and this ranking."""
    judged = {"a": {"x": 1, "y": 1}, "b": {"x": 1}, "c": {"z": 1}, "e": {"y": 1, "z": 2}, "f": {"w": 0}}
    assert close(value(name, {"1": judged}, {"1": list("badce")}), expected)


def test_ties_of_the_greedy_ideal_go_to_the_last_id_as_in_ndeval() -> None:
    """Printed by pyndeval 0.0.8. If ties went to the first id, this ranking would be the ideal and have the value 1."""
    topics = {"a": "vz", "b": "vw", "c": "xz", "d": "vz", "e": "xz", "f": "vw", "g": "vw", "h": "xz", "i": "vz"}
    topics |= {"j": "vz", "k": "xz"}
    judged = {name: dict.fromkeys(touched, 1) for name, touched in topics.items()}
    assert close(value("alpha_nDCG@3", {"1": judged}, {"1": list("abc")}), 0.9825977348007214)


def test_plain_measures_by_hand() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 3, "z": 1}}
    run = {"q": ["b", "c", "x", "a"]}
    assert close(value("R@2", qrels, run), F(1, 3))
    assert close(value("R@4", qrels, run), F(2, 3))
    assert close(value("R(rel=3)@2", qrels, run), 1)
    assert close(value("RR", qrels, run), F(1, 2))
    ideal = 3 + 1 / math.log2(3) + 1 / math.log2(4)
    assert close(value("nDCG@4", qrels, run), (3 / math.log2(3) + 1 / math.log2(5)) / ideal)


def test_plain_measures_take_the_best_grade_among_the_subtopics() -> None:
    of_subtopics = {"q": {"a": {"x": 0, "y": 2}, "b": {"x": 1, "y": 1}, "c": {"x": 0}, "d": {}}}
    plain = {"q": {"a": 2, "b": 1, "c": 0, "d": 0}}
    run = {"q": ["d", "b", "a"]}
    for name in ("R@2", "nDCG@3", "AP"):
        assert value(name, of_subtopics, run) == value(name, plain, run)


def test_grades_below_the_requested_level_are_not_relevant() -> None:
    qrels = {"q": {"a": {"x": 1}, "b": {"y": 2}, "c": {"z": 0}}}
    run = {"q": ["a", "b"]}
    assert [value(f"StRecall{level}@1", qrels, run) for level in ("", "(rel=2)")] == [1 / 2, 0.0]
    assert close(value("alpha_nDCG(rel=2)@2", qrels, run), 1 / math.log2(3))
    with pytest.raises(InvalidInputError, match="no relevant document"):
        value("StRecall(rel=3)@1", qrels, run)


def test_queries_keep_the_order_of_the_judgements_and_their_own_values() -> None:
    qrels: Any = {f"q{i}": {"hit": {"x": 1}, "other": {"y": 1}} for i in range(12)}
    run: Any = {query: ["hit"] if i % 3 == 0 else [] for i, query in enumerate(qrels)}
    shuffled = dict(sorted(run.items(), key=lambda entry: entry[0][::-1]))
    names = ["StRecall@5", "R@5", "nDCG@1"]
    found = rank_measures(qrels, shuffled, names)
    assert list(found) == names
    for name, full in zip(names, (0.5, 0.5, 1.0), strict=True):
        assert found[name].dtype == np.float64
        assert found[name].tolist() == [full if i % 3 == 0 else 0.0 for i in range(12)]


def test_ids_with_equal_text_stay_different() -> None:
    qrels = {1: {1: {"x": 1}, "1": {"x": 0}}, 2: {1: {"x": 1}, "1": {"x": 0}}, "1": {("a", 1): {"x": 1}}}
    run = {1: ["1", 1], 2: [1, "1"], "1": [("a", 1)]}
    for name in ("R@1", "StRecall@1"):
        assert rank_measures(qrels, run, [name])[name].tolist() == [0.0, 1.0, 1.0]


ids = list("abcdefgh")
judgements = st.dictionaries(
    st.sampled_from(ids), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), min_size=1), min_size=1
).filter(lambda judged: any(grade for grades in judged.values() for grade in grades.values()))
rankings = st.lists(st.sampled_from(ids), unique=True)
NAMES = ["alpha_nDCG@5", "alpha_nDCG(alpha=0.9)@5", "ERR_IA@5", "StRecall@5", "R@5", "nDCG@5"]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(judgements, rankings)
def test_values_are_in_range_and_ignore_order_names_and_unjudged_documents(
    judged: dict[str, dict[str, int]], ranked: list[str]
) -> None:
    found = rank_measures({"q": judged}, {"q": ranked}, NAMES)
    for name, values in found.items():
        # The greedy ideal is an approximation, so a ranking can be slightly better.
        assert 0 <= values[0] <= (1.2 if name.startswith("alpha") else 1 + 1e-12)
    # Another order of judgements, other names of subtopics, and one more document that is not judged.
    turned = {name: {topic * 2: grade for topic, grade in judged[name].items()} for name in reversed(judged)}
    again = rank_measures({"q": turned}, {"q": [*ranked, "unjudged"]}, NAMES)
    for name in NAMES:
        assert again[name] == pytest.approx(found[name], abs=1e-12)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(judgements, rankings, st.integers(0, 7))
def test_a_relevant_document_earlier_never_hurts(judged: dict[str, dict[str, int]], ranked: list[str], at: int) -> None:
    """Swap a document with an irrelevant one right before it."""
    irrelevant = [name for name in ranked if not any(judged.get(name, {}).values())]
    if not irrelevant:
        return
    i = ranked.index(irrelevant[at % len(irrelevant)])
    if i + 1 == len(ranked):
        return
    better = [*ranked[:i], ranked[i + 1], ranked[i], *ranked[i + 2 :]]
    before, after = (rank_measures({"q": judged}, {"q": order}, NAMES) for order in (ranked, better))
    for name in NAMES:
        assert after[name][0] >= before[name][0] - 1e-12


@settings(deadline=None, derandomize=True, max_examples=40)
@given(judgements)
def test_the_greedy_ideal_has_the_value_one(judged: dict[str, dict[str, int]]) -> None:
    topics = {name: {topic for topic, grade in grades.items() if grade} for name, grades in judged.items()}
    left, seen, order = sorted(judged, reverse=True), dict.fromkeys("xyz", 0), []
    while left:
        best = max(left, key=lambda name: sum(0.5 ** seen[topic] for topic in topics[name]))
        left.remove(best)
        order.append(best)
        for topic in topics[best]:
            seen[topic] += 1
    assert value("alpha_nDCG@5", {"q": judged}, {"q": order}) == pytest.approx(1, abs=1e-12)
    assert value("StRecall@8", {"q": judged}, {"q": order}) == 1


def test_the_notation_is_that_of_ir_measures() -> None:
    # ir_measures' own parser warns from Python 3.12 on, and fails on 3.14.
    if sys.version_info >= (3, 12):
        pytest.skip("ir_measures 0.4.3 parses names with ast.Num, which is deprecated here")
    qrels, run = {"1": {"a": 2, "b": 1, "c": 1}}, {"1": {"a": 1.0, "x": 3.0, "c": 2.0}}
    for name in ("nDCG@3", "NDCG@3", "P(rel=2)@2", "AP(rel=2)", "Recall@2", "IPrec@0.5", "RR", "Success@1"):
        (theirs,) = ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, run)
        assert value(name, qrels, run) == theirs.value


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["foo"], "not a measure"),
        (["nDCG@"], "not a measure"),
        (["R@5 + 1"], "not a measure"),
        (["R"], "cutoff"),
        (["R(5)"], "names"),
        (["nDCG(alpha=3)@2"], "alpha"),
        (["R(cutoff=print(1))"], "malformed"),
        (["nDCG@0"], "cutoff"),
        (["ERR_IA"], "needs a cutoff"),
        (["ERR_IA(judged_only=True)@3"], "every document"),
        (["alpha_nDCG(alpha=2.0)@3"], "alpha"),
        (["NRBP"], "nothing installed"),
    ],
)
def test_unknown_names_are_refused(names: Any, says: str) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        rank_measures(QRELS, RUN, names)


@pytest.mark.parametrize(
    ("qrels", "run", "name", "says"),
    [
        ({}, {}, "R@1", "no queries"),
        (QRELS, {}, "R@1", "no ranking for query 'q'"),
        (QRELS, {"q": ["a", "b", "a"]}, "R@1", "'a' more than once"),
        (QRELS, {"q": {"a": float("nan")}}, "R@1", "NaN"),
        ({"q": {"a": 0}}, RUN, "R@1", "no relevant document"),
        ({"q": {"a": {}}}, RUN, "ERR_IA@1", "no relevant document"),
        ({"q": {"a": 1}}, RUN, "StRecall@1", "id 'a' has grade 1"),
        ({"q": {"a": 0.5}}, RUN, "R@1", "whole numbers"),
    ],
)
def test_bad_input_is_named(qrels: Any, run: Any, name: str, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        rank_measures(qrels, run, [name])


def test_values_do_not_depend_on_the_order_of_sets() -> None:
    """The hash of a text differs between processes, and so does the order of a set of subtopics."""
    program = (
        "from shared_core.evaluation.measures import rank_measures\n"
        "def on(q, i, j): return int((i * i * 7 + j * j * i + q * j + 3 * j) % 11 < 5)\n"
        "qrels = {q: {f'd{i}': {f't{j}': on(q, i, j) for j in range(9)} for i in range(20)} for q in range(40)}\n"
        "run = {q: [f'd{i * 7 % 20}' for i in range(20)] for q in qrels}\n"
        "names = ['alpha_nDCG(alpha=0.9)@12', 'alpha_nDCG(alpha=0.3)@12', 'ERR_IA@9', 'StRecall@2']\n"
        "print([v.tolist() for v in rank_measures(qrels, run, names).values()])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_without_ir_measures_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(ImportError, match=r"setselect\[eval\]"):
        rank_measures(QRELS, RUN, ["R@5"])
