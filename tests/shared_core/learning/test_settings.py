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
FREE = {"epochs", "patience", "device"}
NAMES = {field.name for field in dataclasses.fields(FitSettings)}


def test_settings_are_values() -> None:
    settings = FitSettings(k=2, fetch_k=20)
    assert settings == FitSettings(fetch_k=20, k=2) != FitSettings(k=2)
    assert hash(settings) == hash(FitSettings(fetch_k=20, k=2))
    assert "k=2, fetch_k=20" in repr(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.k = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        FitSettings("listwise")  # type: ignore[misc]


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


def test_prompts_are_counted_for_each_epoch_the_start_and_five_selectors() -> None:
    assert FitSettings(epochs=3).count_prompts(10) == 10 * (3 + 1 + 5)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_learn_relevance_must_be_a_bool(value: Any) -> None:
    with pytest.raises(InvalidParameterError, match="learn_relevance must be True or False"):
        FitSettings(learn_relevance=value)


@pytest.mark.parametrize("name", ["k", "fetch_k", "skew_rank", "temperature", "epochs", "seed"])
def test_only_what_has_another_default_may_be_none(name: str) -> None:
    given: dict[str, Any] = {name: None}
    with pytest.raises(InvalidParameterError, match=rf"^{name} must be"):
        FitSettings(**given)
    assert FitSettings(rank=None, batch_size=None, learning_rate=None) == FitSettings()
