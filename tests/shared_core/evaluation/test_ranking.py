"""Measures of rankings against arithmetic by hand, against ndeval, and against ir_measures."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction as F

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core.evaluation.measures import alpha_ndcg, ndcg, recall, subtopic_recall, success

# Ten documents of which a, b and c share the subtopic A, and e, f and h the subtopic C. In the order of the alphabet
# they gain, at α = 1/2: 2, 1/2, 1/4, 0, 2, 1/2, 1, 1/4, 0, 0.
SUBTOPICS = {"A": "abc", "B": "a", "C": "efh", "D": "e", "E": "g"}


def discounted(gains: list[F]) -> float:
    return sum(float(gain) / math.log2(1 + rank) for rank, gain in enumerate(gains, 1))


def test_measures_of_subtopics_by_hand() -> None:
    gains = [F(2), F(1, 2), F(1, 4), F(0), F(2), F(1, 2), F(1), F(1, 4), F(0), F(0)]
    # The ideal ranking: a and e with two subtopics each, then g, then the repetitions of A and C.
    ideal = [F(2), F(2), F(1), F(1, 2), F(1, 2), F(1, 4), F(1, 4), F(0), F(0), F(0)]
    for k in (1, 2, 3, 5, 10):
        expected = discounted(gains[:k]) / discounted(ideal[:k])
        assert alpha_ndcg("abcdefghij"[:k], SUBTOPICS, k) == pytest.approx(expected)
    recalls = [subtopic_recall("abcdefghij"[:k], SUBTOPICS) for k in (1, 4, 5, 6, 7, 10)]
    assert recalls == [2 / 5, 2 / 5, 4 / 5, 4 / 5, 1.0, 1.0]


def test_values_agree_with_ndeval() -> None:
    """Printed by pyndeval 0.0.8. Ties of the greedy ideal go to the last id; else the last ranking would be ideal."""
    subtopics = {"x": "ab", "y": "ae", "z": "ce"}
    assert alpha_ndcg("bad", subtopics, 3) == pytest.approx(0.6089343949810363)
    assert alpha_ndcg("badce", subtopics, 7) == pytest.approx(0.8101232039750002)
    topics = {"a": "vz", "b": "vw", "c": "xz", "d": "vz", "e": "xz", "f": "vw", "g": "vw", "h": "xz", "i": "vz"}
    topics |= {"j": "vz", "k": "xz"}
    covering = {topic: [name for name, covered in topics.items() if topic in covered] for topic in "vwxz"}
    assert alpha_ndcg("abc", covering, 3) == pytest.approx(0.9825977348007214)


NAMES = st.sampled_from("abcdefgh")
RANKINGS = st.lists(NAMES, unique=True)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(RANKINGS, st.sets(NAMES, min_size=1), st.integers(1, 9))
def test_measures_of_right_documents_agree_with_ir_measures(ranking: list[str], right: set[str], k: int) -> None:
    qrels = {"q": dict.fromkeys(right, 1)}
    run = {"q": {name: float(-rank) for rank, name in enumerate(ranking)}}
    named = {ir_measures.R @ k: recall, ir_measures.Success @ k: success, ir_measures.nDCG @ k: None}
    theirs = {metric.measure: metric.value for metric in ir_measures.iter_calc([*named], qrels, run)}
    for name, measure in named.items():
        ours = ndcg(ranking[:k], right, k) if measure is None else measure(ranking[:k], right)
        assert ours == pytest.approx(theirs.get(name, 0.0), abs=1e-12)


SUBTOPIC_SETS = st.dictionaries(st.sampled_from("xyz"), st.sets(NAMES, min_size=1), min_size=1)


def test_values_do_not_depend_on_the_order_of_sets() -> None:
    """The hash of a text differs between processes, and so does the order of a set of subtopics."""
    program = (
        "from shared_core.evaluation.measures import alpha_ndcg\n"
        "def on(q, i, j): return (i * i * 7 + j * j * i + q * j + 3 * j) % 11 < 5\n"
        "names = [f'd{i * 7 % 20}' for i in range(20)]\n"
        "sets = [{f't{j}': {f'd{i}' for i in range(20) if on(q, i, j)} for j in range(9)} for q in range(40)]\n"
        "print([alpha_ndcg(names[:12], subtopics, 12) for subtopics in sets])\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
