from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from shared_core import InvalidParameterError
from shared_core.learning import FitSettings

LISTWISE = {"learn_relevance", "sharpness", "pull"}
LIKELIHOOD = {"share", "normalisation", "alpha", "beta", "ridge"}
FREE = {"epochs", "patience", "device", "subsets"}
NAMES = {field.name for field in dataclasses.fields(FitSettings)}


def test_numbers_of_numpy_become_those_of_python() -> None:
    given: dict[str, Any] = {
        "k": np.int64(2), "rank": np.int32(3), "temperature": np.float32(0.5), "share": np.float64(0.5),
        "learn_relevance": np.bool_(False),
    }  # fmt: skip
    assert json.loads(json.dumps(FitSettings(**given).identity()))["temperature"] == 0.5
    assert json.loads(json.dumps(FitSettings(**given, objective="likelihood").identity()))["share"] == 0.5


def test_the_identity_leaves_out_what_a_resumed_fit_may_change_and_what_has_no_effect() -> None:
    listwise, likelihood = FitSettings(), FitSettings(objective="likelihood")
    assert set(listwise.identity()) == NAMES - FREE - LIKELIHOOD
    assert set(likelihood.identity()) == NAMES - FREE - LISTWISE
    assert listwise.identity() == FitSettings(epochs=3, patience=1, device="cuda", alpha=9).identity()
    assert listwise.identity()["learning_rate"] == listwise.adam_rate == 0.001
    assert likelihood.identity()["learning_rate"] == likelihood.adam_rate == 0.01
    assert FitSettings(learning_rate=0.01).identity() != listwise.identity()


@pytest.mark.parametrize(
    "change",
    [
        {"objective": "paper"}, {"k": 0}, {"fetch_k": 3}, {"rank": 2.5}, {"temperature": np.nan}, {"share": 1.5},
        {"beta": "1"}, {"held_out": 1}, {"learn_relevance": 1},
    ],
)  # fmt: skip
def test_a_value_out_of_its_range_is_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{next(iter(change))} must"):
        FitSettings(**change)
