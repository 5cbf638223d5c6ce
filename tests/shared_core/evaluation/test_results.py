"""How a comparison shows itself."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict
from xml.etree import ElementTree

import pytest

from shared_core.evaluation.results import Comparison, percent
from tests.shared_core.evaluation.report.report_cases import comparison, only_similarity


def table(found: Comparison) -> list[list[str]]:
    rows = ElementTree.fromstring(found._repr_html_()).iter("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_a_comparison_of_many_queries_is_short_on_the_screen() -> None:
    found = comparison()
    assert len(repr(found)) < 200
    assert f"{len(found.settings)} settings" in repr(found)
    assert repr(found).endswith("recommended='vrsd')")
    assert repr(only_similarity(found)).endswith("recommended=None)")


def test_a_notebook_shows_the_mean_of_each_measure_for_each_setting() -> None:
    found = comparison()
    head, *rows = table(found)
    names = [measure.name for measure in found.measures]
    assert head[1:] == [*names, "recall@5 − similarity", "queries worse", "mean loss", "worst loss"]
    assert [row[0] for row in rows] == [setting.label for setting in found.settings]
    for position, row in enumerate(rows):
        means = [found.values[position, measure.key].mean for measure in found.measures]
        assert [float(cell) for cell in row[1 : 1 + len(means)]] == pytest.approx(means, abs=5e-4)
        to = found.differences[position, "R@5"]
        gain, worse, loss, worst = row[1 + len(means) :]
        assert [float(gain), float(loss), float(worst)] == pytest.approx([to.mean, to.loss, to.worst_loss], abs=5e-4)
        assert worse == percent(to.worse)
    assert len(table(only_similarity(found))[0]) == 2


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_a_frame_has_one_row_for_each_setting_and_measure() -> None:
    found = comparison()
    frame = found.to_frame()
    about, means = ["setting", "method", "measure"], ["mean", "low", "high", "queries"]
    gaps = ["difference", "difference_low", "difference_high", "better", "worse", "loss", "worst_loss", "worst_query"]
    assert list(frame.columns) == [*about, *means, *gaps]
    assert len(frame) == len(found.values)
    wide = frame.pivot(index="setting", columns="measure", values="mean")
    for (position, key), estimate in found.values.items():
        assert wide.loc[found.settings[position].label, key] == estimate.mean
    for row, (at, difference) in zip(frame.to_dict("records"), found.differences.items(), strict=True):
        assert (row["setting"], row["measure"]) == (found.settings[at[0]].label, at[1])
        # pandas shows a missing query as NaN, which differs from itself.
        assert [None if row[gap] != row[gap] else row[gap] for gap in gaps] == list(asdict(difference).values())
