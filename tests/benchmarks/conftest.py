"""The tiny language model of the tests; torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny causal language model; treat it as read-only."""
    from tests.benchmarks.tiny_lm import saved

    return saved(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """The papers' language models compute in float32, as the references do."""
    from benchmarks.papers import _language_models

    monkeypatch.setattr(_language_models, "choose_precision", lambda library, _: library.float32)
