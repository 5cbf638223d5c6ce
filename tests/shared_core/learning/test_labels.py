from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shared_core import NDPP, Candidates, InvalidInputError, InvalidParameterError
from shared_core.learning import CoverageFeedback
from shared_core.learning.labels import LabelFile, LabelledSubset, describe, label

Item = Mapping[str, Any]


def pool(n: int, d: int = 6) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    items = [{"question": f"q{i}", "answer": f"a{i}", "number": i} for i in range(n)]
    return items, np.random.default_rng(n).normal(size=(n, d))


def numbered(query: Item, subset: Sequence[Item]) -> float:
    """Depends on the query, on who is in the subset and on their order."""
    return float(np.sin(sum((place + 2) * item["number"] for place, item in enumerate(subset)) + query["number"]))


def nearest(vectors: NDArray[np.float64], query: int) -> list[int]:
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    order: list[int] = np.argsort(-(unit @ unit[query])).tolist()
    order.remove(query)
    return order


def by_query(labels: Sequence[LabelledSubset]) -> dict[int, list[tuple[int, ...]]]:
    found: dict[int, list[tuple[int, ...]]] = {}
    for entry in labels:
        found.setdefault(entry.query, []).append(entry.subset)
    return found


# --- what is drawn and scored ---------------------------------------------------------------------


@pytest.mark.parametrize("draw", ["random", "greedy"])
def test_subsets_are_drawn_from_the_examples_only(draw: str) -> None:
    """A query may be one of them or not."""
    items, vectors = pool(20)
    examples = [row for row in range(20) if row % 3]
    asked: list[set[int]] = []

    def noted(query: Item, subset: Sequence[Item]) -> float:
        asked.append({item["number"] for item in subset})
        return numbered(query, subset)

    found = by_query(label(items, vectors, noted, k=2, candidates=6, draw=draw, queries=[3, 4], examples=examples))
    for query in (3, 4):
        among = [row for row in nearest(vectors, query) if row in examples][:6]
        assert {row for subset in found[query] for row in subset} == set(among)
    assert set().union(*asked) <= set(examples)


@given(st.data())
def test_subsets_are_of_the_nearest_do_not_overlap_and_have_the_nearest_last(data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 25), "n")
    k = data.draw(st.integers(1, n - 1), "k")
    candidates = data.draw(st.integers(k, 30), "candidates")
    available = min(candidates, n - 1)
    subsets = data.draw(st.none() | st.integers(1, available // k), "subsets")
    seed = data.draw(st.integers(0, 3), "seed")
    items, vectors = pool(n)
    given: dict[str, Any] = {"k": k, "candidates": candidates, "subsets": subsets, "seed": seed}
    labels = label(items, vectors, numbered, **given)
    for entry in labels:
        assert entry.score == numbered(items[entry.query], [items[row] for row in entry.subset])
    # The draws of an item do not depend on the other items.
    some = data.draw(st.permutations(range(n)), "queries")[:2]
    expected = [entry for row in some for entry in labels if entry.query == row]
    assert label(items, vectors, numbered, **given, queries=np.array(some)) == expected
    found = by_query(labels)
    assert list(found) == list(range(n))
    for query, drawn in found.items():
        near = nearest(vectors, query)[:available]
        assert len(drawn) == (available // k if subsets is None else subsets)
        rows = [row for subset in drawn for row in subset]
        assert len(set(rows)) == len(rows) == len(drawn) * k
        assert set(rows) <= set(near)
        for subset in drawn:
            assert sorted(subset, key=near.index, reverse=True) == list(subset)


# --- near what greedy MAP picks -------------------------------------------------------------------


VECTORS = np.random.default_rng(2).normal(size=(40, 6)) * np.random.default_rng(3).uniform(0.2, 5, size=(40, 1))
ITEMS = [{"question": str(n), "answer": str(n), "number": n} for n in range(40)]


@given(st.integers(1, 5), st.none() | st.integers(30, 300), st.integers(0, 5))
def test_greedy_draws_are_different_subsets_of_each_size(k: int, subsets: int | None, seed: int) -> None:
    given: dict[str, Any] = {"k": k, "candidates": 30, "subsets": subsets, "seed": seed, "draw": "greedy"}
    found = [frozenset(entry.subset) for entry in label(ITEMS, VECTORS, numbered, queries=[0], **given)]
    assert 1 <= len(found) <= (96 * k if subsets is None else subsets)
    assert len(set(found)) == len(found)
    assert {len(subset) for subset in found} == set(range(1, k + 1))


def test_the_first_path_is_the_greedy_selection_without_a_kernel_and_each_step_has_many_next_items() -> None:
    found = [frozenset(e.subset) for e in label(ITEMS, VECTORS, numbered, k=3, draw="greedy", queries=[0])]
    near = nearest(VECTORS, 0)
    chosen = NDPP(relevance_mapping="exponential", temperature=0.1, ridge=0).select(
        Candidates(VECTORS[0], VECTORS[near]), 3
    )
    picks = np.array(near)[chosen.indices].tolist()
    for size in range(3):
        assert sum(set(picks[:size]) < subset and len(subset) == size + 1 for subset in found) >= 30
        assert frozenset(picks[: size + 1]) in found


# --- resuming -------------------------------------------------------------------------------------


class Noting:
    """Writes down each call."""

    fingerprint = "slow"

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def __call__(self, query: Item, subset: Sequence[Item]) -> float:
        raise AssertionError("one by one")

    def score(self, pairs: Sequence[tuple[Item, Sequence[Item]]]) -> list[float]:
        with self.notes.open("a") as notes:
            notes.write(f"{pairs[0][0]['number']}\n")
        return [numbered(*pair) for pair in pairs]

    def calls(self) -> list[int]:
        return [int(line) for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


def test_other_items_may_be_labelled_later(tmp_path: Path) -> None:
    items, vectors = pool(10)
    feedback, path = Noting(tmp_path / "calls"), tmp_path / "labels.jsonl"
    whole = label(items, vectors, numbered, k=2, candidates=6)
    for queries in ([7, 2], [2, 5, 7], [5]):
        found = label(items, vectors, feedback, k=2, candidates=6, queries=queries, resume=path)
        assert found == [entry for row in queries for entry in whole if entry.query == row]
    assert feedback.calls() == [7, 2, 5]
    assert label(items, vectors, feedback, k=2, candidates=6, resume=path) == whole
    assert sorted(feedback.calls()) == list(range(10))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"k": 3}, "k = 2 then, 3 now"),
        ({"subsets": 3}, "subsets = None then, 3 now"),
        ({"draw": "greedy"}, "draw = 'random' then, 'greedy' now"),
        ({"feedback": lambda query, subset: 0.0}, "numbered' then, "),
        ({"vectors": pool(10)[1] * 2}, "items and vectors = "),
        ({"items": [{**item, "id": 1} for item in pool(10)[0]]}, "items and vectors = "),
    ],
)
def test_a_file_of_another_run_is_refused_and_unchanged(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    items, vectors = pool(10)
    path = tmp_path / "labels.jsonl"
    ours = {"items": items, "vectors": vectors, "feedback": numbered, "k": 2, "candidates": 6, "resume": path}
    label(**ours)
    content = path.read_bytes()[:-5]
    path.write_bytes(content)
    with pytest.raises(InvalidParameterError, match=re.escape(named)) as caught:
        label(**{**ours, **change})
    assert str(caught.value).count(" then, ") == 1
    assert path.read_bytes() == content


def test_the_exception_of_a_feedback_is_passed_on_and_earlier_scores_are_kept(tmp_path: Path) -> None:
    items, vectors = pool(10)
    path = tmp_path / "labels.jsonl"

    class Failing(Noting):
        def score(self, pairs: Sequence[tuple[Item, Sequence[Item]]]) -> list[float]:
            if pairs[0][0]["number"] == 4:
                raise ConnectionError("gone")
            return super().score(pairs)

    with pytest.raises(ConnectionError, match="gone") as caught:
        label(items, vectors, Failing(tmp_path / "first"), k=2, candidates=6, resume=path)
    assert caught.value.__notes__ == ["setselect: while labelling item 4"]
    feedback = Noting(tmp_path / "second")
    found = label(items, vectors, feedback, k=2, candidates=6, resume=path)
    assert feedback.calls() == [4, 5, 6, 7, 8, 9]
    assert found == label(items, vectors, numbered, k=2, candidates=6)


# --- what is shown --------------------------------------------------------------------------------


class Remote(Noting):
    remote = True

    def __init__(self, notes: Path) -> None:
        super().__init__(notes)
        self.asked: list[Any] = []

    def cost(self, pairs: Sequence[tuple[Item, Sequence[Item]]]) -> str:
        assert self.calls() == []
        self.asked += pairs
        return "about 1,234 tokens"


def test_the_cost_of_a_remote_feedback_is_reported_before_it_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, vectors = pool(10)
    said: list[str] = []
    settings: dict[str, Any] = {"k": 2, "candidates": 6, "resume": tmp_path / "labels.jsonl"}
    feedback = Remote(tmp_path / "calls")
    label(items, vectors, feedback, **settings, queries=[4, 1], say=said.append)
    assert said == ["to label 2 items: about 1,234 tokens"]
    assert len(feedback.asked) == 6
    assert capsys.readouterr() == ("", "")
    label(items, vectors, Remote(tmp_path / "others"), **settings)
    assert capsys.readouterr() == ("", "to label 8 items: about 1,234 tokens\n")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"k": 7}, "candidates must be at least 7"),
        ({"draw": "near"}, "draw"),
        ({"draw": "greedy", "subsets": 1}, "subsets"),
        ({"queries": []}, "queries is empty"),
        ({"examples": [20]}, r"examples\[0\]"),
    ],
)
def test_parameters_out_of_range(change: dict[str, Any], match: str) -> None:
    items, vectors = pool(8)
    with pytest.raises(InvalidParameterError, match=match):
        label(items, vectors, numbered, **{"k": 2, "candidates": 6, **change})


def test_too_few_candidates_are_refused_before_anything_is_scored_or_written(tmp_path: Path) -> None:
    items, vectors = pool(5)
    items[4] = {**items[3], "number": 4}
    feedback, path = Noting(tmp_path / "calls"), tmp_path / "labels.jsonl"
    with pytest.raises(InvalidInputError, match=r"item 3 has 3 candidates .* 4 "):
        label(items, vectors, feedback, k=4, resume=path)
    with pytest.raises(InvalidInputError, match="item 0 has 0 candidates"):
        label(items, np.ones((5, 2)), feedback, k=1, resume=path)
    assert feedback.calls() == []
    assert not path.exists()


# --- the file ---------------------------------------------------------------------------------------

SETTINGS = {"k": 2, "subsets": None, "seed": 0, "feedback": "ours"}
FIRST = [LabelledSubset(3, (7, 1), 0.1 + 0.2), LabelledSubset(3, (0, 5), -1e-300)]
SECOND = [LabelledSubset(2, (8, 0), 3.0)]


def begun(folder: Path) -> Path:
    path = folder / "labels.jsonl"
    file = LabelFile(path, SETTINGS, 9)
    file.begin()
    file.append(FIRST)
    file.append(SECOND)
    return path


def test_labels_are_read_back_to_the_last_bit(tmp_path: Path) -> None:
    assert LabelFile(begun(tmp_path), SETTINGS, 9).known == {3: FIRST, 2: SECOND}


@pytest.mark.parametrize(
    "line",
    [
        b'{"query": 4}',
        b'{"query": 9, "subsets": [[1, 2]], "scores": [1.0]}',
        b'{"query": 4, "subsets": [[1, 2]], "scores": [NaN]}',
        b'{"query": 4, "subsets": [[1, 1]], "scores": [1.0]}',
    ],
)
def test_a_foreign_or_damaged_line_is_named_and_the_file_is_unchanged(tmp_path: Path, line: bytes) -> None:
    path = begun(tmp_path)
    content = path.read_bytes() + line + b"\n" + b'{"query": 5, "sub'
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"labels\.jsonl: line 4 .* 9 items"):
        LabelFile(path, SETTINGS, 9)
    assert path.read_bytes() == content


def test_a_line_torn_at_any_byte_is_removed_and_nothing_else(tmp_path: Path) -> None:
    path = begun(tmp_path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 3):
        path.write_bytes(whole[:cut])
        again = LabelFile(path, SETTINGS, 9)
        assert path.read_bytes() == whole[:cut], "reading must not write"
        again.begin()
        for labels in (FIRST, SECOND):
            if labels[0].query not in again.known:
                again.append(labels)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"notes", b'{"format": "setselect labels", "version": 2}\n'])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"notes\.txt: line 1 is"):
        LabelFile(path, SETTINGS, 9)
    assert path.read_bytes() == content


class Addressed:
    pass


def test_a_feedback_has_the_same_name_after_a_restart() -> None:
    assert describe(numbered) == f"{__name__}.numbered"
    assert describe(functools.partial(numbered)) == "functools.partial(<function numbered>)"
    assert describe(Addressed()) == f"<{__name__}.Addressed object>"
    assert describe(CoverageFeedback()) == CoverageFeedback().fingerprint
