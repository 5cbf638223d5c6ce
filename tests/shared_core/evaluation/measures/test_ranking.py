"""Measures of rankings against arithmetic by hand, against ndeval, and against ir_measures."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction as F
from typing import Any

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
NAMES = ["alpha_nDCG@5", "StRecall@5", "R@5", "nDCG@5", "Success@5"]


def value(name: str, qrels: Any = QRELS, run: Any = RUN) -> float:
    (result,) = rank_measures(qrels, run, [name])[name]
    return float(result)


def discounted(gains: list[F]) -> float:
    return sum(float(gain) / math.log2(1 + rank) for rank, gain in enumerate(gains, 1))


def test_measures_of_subtopics_by_hand() -> None:
    gains = [F(2), F(1, 2), F(1, 4), F(0), F(2), F(1, 2), F(1), F(1, 4), F(0), F(0)]
    # The ideal ranking: a and e with two subtopics each, then g, then the repetitions of A and C.
    ideal = [F(2), F(2), F(1), F(1, 2), F(1, 2), F(1, 4), F(1, 4), F(0), F(0), F(0)]
    for cutoff in (1, 2, 3, 5, 10):
        expected = discounted(gains[:cutoff]) / discounted(ideal[:cutoff])
        assert value(f"alpha_nDCG@{cutoff}") == pytest.approx(expected)
    assert [value(f"StRecall@{k}") for k in (1, 4, 5, 6, 7, 10)] == [2 / 5, 2 / 5, 4 / 5, 4 / 5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("alpha_nDCG@3", 0.6089343949810363), ("alpha_nDCG@7", 0.8101232039750002), ("StRecall@2", 2 / 3)],
)
def test_values_agree_with_ndeval(name: str, expected: float) -> None:
    """Printed by pyndeval 0.0.8 for these judgements and this ranking."""
    judged = {"a": {"x": 1, "y": 1}, "b": {"x": 1}, "c": {"z": 1}, "e": {"y": 1, "z": 2}, "f": {"w": 0}}
    assert value(name, {"1": judged}, {"1": list("badce")}) == pytest.approx(expected)


def test_ties_of_the_greedy_ideal_go_to_the_last_id_as_in_ndeval() -> None:
    """Printed by pyndeval 0.0.8. If ties went to the first id, this ranking would be the ideal and have the value 1."""
    topics = {"a": "vz", "b": "vw", "c": "xz", "d": "vz", "e": "xz", "f": "vw", "g": "vw", "h": "xz", "i": "vz"}
    topics |= {"j": "vz", "k": "xz"}
    judged = {name: dict.fromkeys(touched, 1) for name, touched in topics.items()}
    assert value("alpha_nDCG@3", {"1": judged}, {"1": list("abc")}) == pytest.approx(0.9825977348007214)


def test_measures_of_documents_by_hand_take_the_best_grade_among_the_subtopics() -> None:
    run = {"q": ["b", "c", "x", "a"]}
    ideal = 3 + 1 / math.log2(3) + 1 / math.log2(4)
    expected = {"R@2": 1 / 3, "R@4": 2 / 3, "Success@1": 0, "Success@2": 1}
    expected["nDCG@4"] = (3 / math.log2(3) + 1 / math.log2(5)) / ideal
    plain = {"q": {"a": 1, "b": 0, "c": 3, "z": 1}}
    of_subtopics = {"q": {"a": {"x": 0, "y": 1}, "b": {}, "c": {"x": 3, "y": 1}, "z": {"x": 1}}}
    for qrels in (plain, of_subtopics):
        for name, by_hand in expected.items():
            assert value(name, qrels, run) == pytest.approx(by_hand)


def test_queries_keep_the_order_of_the_judgements_and_ids_with_equal_text_stay_different() -> None:
    qrels: Any = {f"q{i}": {1: {"x": 1}, "1": {"y": 1}} for i in range(12)}
    run: Any = {query: [1] if i % 3 == 0 else [] for i, query in enumerate(qrels)}
    shuffled = dict(sorted(run.items(), key=lambda entry: entry[0][::-1]))
    names = ["StRecall@5", "R@5", "nDCG@1"]
    found = rank_measures(qrels, shuffled, names)
    assert list(found) == names
    for name, full in zip(names, (0.5, 0.5, 1.0), strict=True):
        assert found[name].dtype == np.float64
        assert found[name].tolist() == [full if i % 3 == 0 else 0.0 for i in range(12)]


judgements = st.dictionaries(
    st.sampled_from("abcdefgh"), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), min_size=1), min_size=1
).filter(lambda judged: any(grade for grades in judged.values() for grade in grades.values()))


@settings(deadline=None, derandomize=True, max_examples=40)
@given(judgements, st.lists(st.sampled_from("abcdefgh"), unique=True), st.integers(0, 7))
def test_values_are_in_range_and_an_earlier_relevant_document_never_hurts(
    judged: dict[str, dict[str, int]], ranked: list[str], at: int
) -> None:
    found = rank_measures({"q": judged}, {"q": ranked}, NAMES)
    for name, values in found.items():
        # The greedy ideal is an approximation, so a ranking can be slightly better.
        assert 0 <= values[0] <= (1.2 if name.startswith("alpha") else 1 + 1e-12)
    # Another order of judgements, other names of subtopics, and one more document that is not judged.
    turned = {name: {topic * 2: grade for topic, grade in judged[name].items()} for name in reversed(judged)}
    again = rank_measures({"q": turned}, {"q": [*ranked, "unjudged"]}, NAMES)
    # A document is swapped with an irrelevant one right before it.
    better, irrelevant = (
        list(ranked),
        [i for i, name in enumerate(ranked[:-1]) if not any(judged.get(name, {}).values())],
    )
    if irrelevant:
        i = irrelevant[at % len(irrelevant)]
        better[i], better[i + 1] = better[i + 1], better[i]
    after = rank_measures({"q": judged}, {"q": better}, NAMES)
    for name in NAMES:
        assert again[name] == pytest.approx(found[name], abs=1e-12)
        assert after[name][0] >= found[name][0] - 1e-12


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


@pytest.mark.parametrize("name", ["foo@5", "R", "nDCG@", "R@0", "R@5 + 1", "alpha_nDCG(alpha=0.9)@3", "ERR_IA@5"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameterError, match="alpha_nDCG@5"):
        rank_measures(QRELS, RUN, [name])


@pytest.mark.parametrize(
    ("qrels", "run", "name", "says"),
    [
        ({}, {}, "R@1", "no queries"),
        (QRELS, {}, "R@1", "'q'"),
        (QRELS, {"q": ["a", "b", "a"]}, "R@1", "'a'"),
        ({"q": {"a": 0}}, RUN, "R@1", "no relevant document"),
        ({"q": {"a": {}}}, RUN, "StRecall@1", "no relevant document"),
        ({"q": {"a": 1}}, RUN, "StRecall@1", "'a' has grade 1"),
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
        "print([v.tolist() for v in rank_measures(qrels, run, ['alpha_nDCG@12', 'StRecall@2']).values()])\n"
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
