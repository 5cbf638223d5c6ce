"""How a comparison shows itself."""

from __future__ import annotations

import importlib.util
from xml.etree import ElementTree

import pytest

from shared_core.evaluation.results import Comparison
from tests.shared_core.evaluation.report.report_cases import comparison, hostile


def table(found: Comparison) -> list[list[str]]:
    rows = ElementTree.fromstring(found._repr_html_()).iter("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_a_comparison_of_many_queries_is_short_on_the_screen() -> None:
    found = comparison()
    assert len(repr(found)) < 200
    assert f"{len(found.settings)} settings" in repr(found)
    position = found.recommendation.setting
    assert position is not None
    assert repr(found.settings[position].label) in repr(found)


def test_a_notebook_shows_the_mean_of_each_measure_for_each_setting() -> None:
    found = comparison()
    head, *rows = table(found)
    assert head[1:] == [measure.name for measure in found.measures]
    assert [row[0] for row in rows] == [setting.label for setting in found.settings]
    for position, row in enumerate(rows):
        means = [found.values[position, measure.key].mean for measure in found.measures]
        assert [float(cell) for cell in row[1:]] == pytest.approx(means, abs=5e-4)


def test_texts_of_the_corpus_are_escaped_in_notebooks() -> None:
    assert len(table(hostile(comparison()))) == len(comparison().settings) + 1


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_a_frame_has_one_row_for_each_setting_and_measure() -> None:
    found = comparison()
    frame = found.to_frame()
    assert list(frame.columns) == ["setting", "method", "parameter", "measure", "mean", "low", "high", "queries"]
    assert len(frame) == len(found.values)
    wide = frame.pivot(index="setting", columns="measure", values="mean")
    for (position, key), estimate in found.values.items():
        assert wide.loc[found.settings[position].label, key] == estimate.mean
