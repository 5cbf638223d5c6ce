"""The measures and the judgement of benchmarks/regimes.py, on small examples worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import regimes, regimes_drawing
from benchmarks.regimes import Cell


def test_parts_of_answers() -> None:
    assert regimes.calls_and_nestings("answer(state(loc_2(riverid('ohio'))))") == {
        "answer", "state", "loc_2", "riverid", ("answer", "state"), ("state", "loc_2"), ("loc_2", "riverid"),
    }  # fmt: skip
    assert regimes.intents_and_slots("[IN:GET_ALARM [SL:ORDINAL next ] ]") == {
        "IN:GET_ALARM", "SL:ORDINAL", ("IN:GET_ALARM", "SL:ORDINAL"),
    }  # fmt: skip
    assert regimes.commands_and_options("find . -name '*.py' | xargs grep -l --color x; ls") == {
        "find", ("find", "-name"), "xargs", ("xargs", "-l"), ("xargs", "--color"), "ls",
    }  # fmt: skip


def test_compressed_cosines() -> None:
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]], np.float32)
    cosines = regimes.compress(vectors) @ regimes.compress(vectors).T
    np.testing.assert_allclose(cosines, (3 + vectors @ vectors.T) / 4, atol=1e-6)


def cell(regime: str, k: int, **worth: list[float]) -> Cell:
    """Two questions for development, two others."""
    others = {method: np.zeros(4) for method in regimes.METHODS if method not in worth}
    values = {method.replace("_", " "): np.array(numbers) for method, numbers in worth.items()}
    return Cell(regime, k, np.array([True, False, True, False]), others | values)


def test_judgement_by_hand() -> None:
    by_vectors = {
        "one": [
            cell("needed", 5, similarity=[0, 0.6, 0, 0.6], VRSD=[0, 0.4, 0, 0.4]),
            cell("needed", 10, similarity=[0, 0.8, 0, 0.8], VRSD=[0, 0.7, 0, 0.7]),
            cell("repeated", 5, similarity=[0, 0.2, 0, 0.2], VRSD=[0, 0.3, 0, 0.5], NDPP_linear=[0, 0.6, 0, 0.6]),
        ]
    }
    found = regimes.judge(by_vectors, "VRSD", development=False)
    # Regret of VRSD: 70 - 55 points where similarity is best, 60 - 40 where NDPP is best.
    assert found.mean_regret == pytest.approx(17.5)
    assert (found.worst_regret, found.worst_at) == (pytest.approx(20), "repeated")
    assert (found.loss, found.loss_at) == (pytest.approx(15), "needed")
    # The best gain is 40 points, of which VRSD keeps 20. Where similarity is best there is no gain to keep.
    assert (found.kept, found.kept_at) == (pytest.approx(0.5), "repeated")
    assert regimes.points(by_vectors["one"], "VRSD", development=True) == {"needed": 0, "repeated": 0}


@pytest.mark.parametrize("name", ["regimes.svg", "regimes-dark.svg"])
def test_the_drawing_has_the_figures_of_the_page(name: str) -> None:
    added = regimes_drawing.points(regimes.RESULT.read_text(encoding="utf-8"))
    assert len(added) == 12
    assert regimes_drawing.in_words(added) in (regimes.RESULT.parent / name).read_text(encoding="utf-8")
