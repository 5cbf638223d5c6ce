"""The PIR tables and the rules for a direction, on cases small enough to check by hand; no data, no model."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from benchmarks.papers import _common, _direction, _pir, direction, pir
from benchmarks.papers._direction import EMPHASIZE, LEAVE, REMOVE, Cases, Threshold, fit_logistic, fit_threshold
from benchmarks.papers._pir import Subset, Vectors

HALF = math.sqrt(0.5)


def query(root: str, label: str, *gold: str) -> dict[str, object]:
    return {"query": f"{label} {root}", "root_query": root, "perspective": label, "label": label, "gold": list(gold)}


def subset(*queries: dict[str, object], name: str = "allsides", items: str = "abcdef") -> Subset:
    return Subset(name, list(queries), [f"text {item}" for item in items], {item: i for i, item in enumerate(items)})


def cases(features: object, success: object, subsets: object, roots: object) -> Cases:
    return Cases(*(np.array(column) for column in (features, success, subsets, roots)))


class TestData:
    CORPUS = (
        {"id": "d0", "text": "x"},
        {"id": "d1", "text": "y"},
        {"id": "d2", "text": "x"},
        {"id": "d3", "text": "z"},
    )

    def test_copies_of_a_text_are_one_item(self) -> None:
        assert _pir.merged(self.CORPUS) == (["x", "y", "z"], {"d0": 0, "d1": 1, "d2": 0, "d3": 2})

    def test_apart_each_copy_is_an_item(self) -> None:
        assert _pir.apart(self.CORPUS) == (["x", "y", "x", "z"], {"d0": 0, "d1": 1, "d2": 2, "d3": 3})

    def test_gold_ids_of_one_text_are_one_gold_item(self) -> None:
        texts, item_of = _pir.merged(self.CORPUS)
        assert Subset("story", [], texts, item_of).gold({"gold": ["d2", "d0", "d3"]}) == [0, 2]

    def test_without_data_the_script_says_so_and_ends_well(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            _common.require("pir/no-such-file.jsonl")
        assert stopped.value.code == 0
        assert "skipped: no pir/no-such-file.jsonl under" in capsys.readouterr().out


class TestRankings:
    def test_equal_scores_keep_the_order_of_the_corpus_despite_rounding(self) -> None:
        assert _pir.ranked(np.array([0.5, 0.7, 0.5 + 1e-12, 0.7 - 1e-12, 0.1]), 4) == [1, 3, 0, 2]

    def test_success_needs_one_gold_item_of_several(self) -> None:
        one = subset(query("r", "left", "a", "b"), query("r", "right", "c"))
        found = [[5, 1], [4, 5, 2]]
        assert _pir.successes(one, found, 1) == [0.0, 0.0]
        assert _pir.successes(one, found, 2) == [1.0, 0.0]
        assert _pir.successes(one, found, 3) == [1.0, 1.0]

    # q = (1, 1)/√2, root (1, 0), perspective (0, 1): removing leaves (1, 0), emphasizing gives (1, 2).
    @pytest.mark.parametrize(
        ("mode", "how", "expected"),
        [
            ("base", None, [2, 0, 1]),
            ("pap", "remove", [0, 2, 1]),
            ("pap+", "remove", [0, 2, 1]),
            ("pap", "emphasize", [2, 1, 0]),
            ("cast", None, [0, 2, 1]),
        ],
    )
    def test_modes_by_hand(self, mode: str, how: str | None, expected: list[int]) -> None:
        items = np.array([[1.0, 0.0], [0.0, 1.0], [HALF, HALF]])
        v = Vectors(items, *(np.array([row]) for row in ([HALF, HALF], [1.0, 0.0], [0.0, 1.0])))
        assert _pir.rankings(v, mode, how) == [expected]

    def test_the_difference_is_q_less_root(self) -> None:
        v = Vectors(np.eye(2), *(np.array([row]) for row in ([HALF, HALF], [1.0, 0.0], [0.0, 1.0])))
        assert v.perspective("text").tolist() == [[0.0, 1.0]]
        assert v.perspective("difference").tolist() == [[HALF - 1, HALF]]

    @pytest.mark.parametrize("mode", ["pap", "pap+", "cast", "cast+"])
    def test_a_perspective_that_is_the_query_leaves_the_plain_search(self, mode: str) -> None:
        q = np.array([0.6, 0.8])
        items = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
        assert _pir.scores(mode, None, q, np.array([1.0, 0.0]), q, items) is None
        v = Vectors(items, q[None], np.array([[1.0, 0.0]]), q[None])
        assert _pir.rankings(v, mode, "remove") == [[2, 1, 0]]

    def test_bm25_ranks_by_rare_words_and_drops_items_that_share_no_word(self) -> None:
        texts = ["zebras run fast", "horses run fast", "fish swim"]
        assert _pir.bm25_rankings(texts, ["zebras run", "whales"]) == [[0, 1], []]


class TestTables:
    def test_root_shares_count_gold_items_over_all_root_queries(self) -> None:
        # Root r finds a and d of left and c of right; root s finds f of center: 2, 1 and 1 of 4.
        one = subset(
            *(query("r", "left", "a"), query("r", "left", "d"), query("r", "right", "c"), query("r", "center", "b")),
            *(query("s", "left", "a"), query("s", "right", "b"), query("s", "center", "f")),
        )
        assert pir.root_shares(one, {"r": [0, 3, 2, 1], "s": [4, 5]}, 3) == [0.5, 0.25, 0.25]

    def test_general_queries_of_perspectrum_have_no_share(self) -> None:
        one = subset(query("r", "support", "a"), query("r", "undermine", "b"), query("r", "general", "a", "b"))
        one = Subset("perspectrum", one.queries, one.texts, one.item_of)
        assert pir.root_shares(one, {"r": [0, 1]}, 5) == [0.5, 0.5]

    def test_p_recall_weighs_root_queries_alike_and_success_weighs_queries(self) -> None:
        # Of root r one query of three succeeds, of root s its only one: p-Recall (1/3 + 1)/2, success 2/4.
        one = subset(
            query("r", "left", "a"), query("r", "right", "b"), query("r", "center", "c"), query("s", "left", "d")
        )
        rows = {"base": [[[0], [4], [4], [3]]] * 6}
        line = pir.summary_table([one] * 6, rows).splitlines()[-1]
        assert line.split(" | ")[2:9] == ["66.7"] * 3 + ["50.0"] * 3 + ["+0.0"]

    def test_the_papers_averages_are_the_means_of_its_rows(self) -> None:
        for *six, mean in pir.PIR_TABLE_2.values():
            assert abs(np.mean(six) - mean) <= 0.06


class TestCases:
    # Subset 0: root 0 with two queries, root 1 with one; subset 1: root 2 with one query.
    DATA = cases(
        np.zeros((4, 9)), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], subsets=[0, 0, 0, 1], roots=[0, 0, 1, 2]
    )

    def test_weights(self) -> None:
        assert self.DATA.weights.tolist() == [1 / 8, 1 / 8, 1 / 4, 1 / 2]

    @pytest.mark.parametrize(
        ("actions", "expected"),
        [
            ([LEAVE] * 4, {0: 0.25, 1: 1.0}),
            ([LEAVE, REMOVE, EMPHASIZE, EMPHASIZE], {0: 1.0, 1: 0.0}),
        ],
    )
    def test_recall(self, actions: list[int], expected: dict[int, float]) -> None:
        assert self.DATA.recall(np.array(actions)) == expected

    def test_features_by_hand(self) -> None:
        q, r, p = np.array([0.6, 0.8]), np.array([1.0, 0.0]), np.array([0.0, 2.0])
        items = np.array([[1.0, 0.0], [0.0, 1.0]])
        # q − root = (−0.4, 0.8), of length √0.8. The candidates' cosines with p are 0.5 ± 0.5, with the root reversed.
        expected = [0.6, 0.8, 0.0, 0.8 / math.sqrt(0.8), 0.5, 0.5, 0.5, 0.5, -1.0]
        np.testing.assert_allclose(_direction.features(q, r, p, items), expected, atol=1e-12)

    def test_features_where_nothing_varies(self) -> None:
        r = np.array([1.0, 0.0])
        one = _direction.features(r, r, np.array([0.0, 1.0]), np.array([[0.6, 0.8], [0.6, 0.8]]))
        assert (one[3], one[8]) == (0.0, 0.0)


def made(value: np.ndarray, best: np.ndarray) -> Cases:
    """Queries of one subset, each its own root, that succeed under one action only; feature 3 tells which."""
    features = np.random.default_rng(5).normal(size=(len(value), 9))
    features[:, 3] = value
    return Cases(features, np.eye(3)[best], np.zeros(len(value), dtype=int), np.arange(len(value)))


class TestFits:
    VALUES = np.linspace(0, 1, 200)
    BEST = np.select([VALUES < 0.3, VALUES > 0.7], [REMOVE, EMPHASIZE], LEAVE)

    def test_thresholds_are_found(self) -> None:
        rule = fit_threshold(made(self.VALUES, self.BEST))
        assert (rule.feature, rule.below, rule.above) == (3, REMOVE, EMPHASIZE)
        assert (round(rule.low, 2), round(rule.high, 2)) == (0.3, 0.7)
        assert (rule.actions(made(self.VALUES, self.BEST).features) == self.BEST).all()

    def test_thresholds_with_the_sides_exchanged_are_found(self) -> None:
        rule = fit_threshold(made(self.VALUES, np.array([LEAVE, EMPHASIZE, REMOVE])[self.BEST]))
        assert (rule.feature, rule.below, rule.above) == (3, EMPHASIZE, REMOVE)

    def test_only_allowed_features_and_actions_are_used(self) -> None:
        data = made(self.VALUES, self.BEST)
        assert fit_threshold(data, allowed=[0]).feature == 0
        only = fit_threshold(data, sides=_direction.REMOVE_ONLY)
        assert set(only.actions(data.features).tolist()) == {LEAVE, REMOVE}

    def test_no_query_is_changed_without_a_gain(self) -> None:
        data = made(self.VALUES, self.BEST)
        same = Cases(data.features, np.ones_like(data.success), data.subset, data.root)
        assert str(fit_threshold(same)) == "leave everywhere"
        assert (fit_logistic(same).actions(same.features) == LEAVE).all()

    def test_a_gain_on_one_subset_does_not_pay_for_a_loss_on_another(self) -> None:
        # Removing below 0.3 helps subset 0 and harms subset 1, which has the same features.
        one = made(self.VALUES, np.where(self.VALUES < 0.3, REMOVE, LEAVE))
        both = Cases(
            np.vstack([one.features, one.features]),
            np.vstack([one.success, np.tile([0.9, 0.8, 0.8], (200, 1))]),
            np.repeat([0, 1], 200),
            np.arange(400),
        )
        assert str(fit_threshold(one)).startswith("remove where cos(q − root, p) < 0.3")
        rule = fit_threshold(both)
        base = both.recall(np.full(400, LEAVE))
        found = both.recall(rule.actions(both.features))
        assert found[1] >= base[1] - _direction.MOST_LOST

    def test_the_logistic_model_learns_a_side(self) -> None:
        values = np.linspace(-1, 1, 200)
        best = np.where(values < 0, REMOVE, EMPHASIZE)
        data = made(values, best)
        clear = np.abs(values) > 0.2
        assert (fit_logistic(data).actions(data.features) == best)[clear].all()

    def test_fitting_twice_gives_the_same(self) -> None:
        data = made(self.VALUES, self.BEST)
        assert fit_threshold(data) == fit_threshold(data)
        assert (fit_logistic(data).coefficients == fit_logistic(data).coefficients).all()

    @pytest.mark.parametrize(
        ("rule", "said"),
        [
            (
                Threshold(0, 0.5, 0.75, REMOVE, EMPHASIZE),
                "remove where cos(q, root) < 0.50, emphasize where cos(q, root) > 0.75",
            ),
            (Threshold(0, -np.inf, 0.75, LEAVE, EMPHASIZE), "emphasize where cos(q, root) > 0.75"),
            (Threshold(0, -np.inf, -np.inf, LEAVE, REMOVE), "remove everywhere"),
            (Threshold(0, np.inf, np.inf, REMOVE, LEAVE), "remove everywhere"),
            (Threshold(0, -np.inf, np.inf, LEAVE, LEAVE), "leave everywhere"),
        ],
    )
    def test_a_rule_says_what_it_does(self, rule: Threshold, said: str) -> None:
        assert str(rule) == said


class TestValidation:
    DATA = Cases(np.zeros((24, 9)), np.ones((24, 3)), np.repeat(np.arange(3), 8), np.repeat(np.arange(12), 2))

    def test_halves_never_split_a_root_query(self) -> None:
        parts = list(direction.halves(self.DATA))
        assert len(parts) == 2 * direction.SPLITS
        for train, test in parts:
            assert not set(train.root) & set(test.root)
            assert set(train.root) | set(test.root) == set(range(12))
            assert Counter(train.subset.tolist()) == Counter(test.subset.tolist()) == {0: 4, 1: 4, 2: 4}
        assert any((a.root != b.root).any() for (a, _), (b, _) in zip(parts[::2], parts[2::2], strict=False))

    def test_halves_are_the_same_every_time(self) -> None:
        first, second = ([train.root.tolist() for train, _ in direction.halves(self.DATA)] for _ in range(2))
        assert first == second

    def test_left_out_judges_on_the_subset_that_was_not_fitted(self) -> None:
        for number, (train, test) in enumerate(direction.left_out(self.DATA)):
            assert set(test.subset) == {number}
            assert set(train.subset) == {0, 1, 2} - {number}

    def test_the_mean_uses_the_parts_that_have_the_subset(self) -> None:
        rows = [dict.fromkeys(range(6), 0.5), {0: 1.0}]
        assert direction.mean_recall(rows) == {0: 0.75, 1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.5}

    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            ({0: 0.62, 1: 0.60}, True),
            ({0: 0.63, 1: 0.59}, True),
            ({0: 0.70, 1: 0.589}, False),
            ({0: 0.60, 1: 0.60}, False),
            ({0: 0.605, 1: 0.605}, False),
        ],
    )
    def test_which_rules_pass(self, rule: dict[int, float], expected: bool) -> None:
        rows = {direction.NEVER: {0: 0.6, 1: 0.6}, "always remove": {0: 0.2, 1: 0.7}, "rule": rule}
        rows["always emphasize"] = {0: 0.61, 1: 0.60}
        assert direction.passes("rule", rows) is expected
