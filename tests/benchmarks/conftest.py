"""The tiny language model of the tests; torch is imported only where it is needed."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny causal language model; treat it as read-only."""
    from tests.benchmarks.tiny_lm import saved

    return saved(tmp_path_factory.mktemp("models") / "tiny")
