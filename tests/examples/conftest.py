"""Gemma, for the examples and notebooks that answer with it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def gemma() -> None:
    """Assembles the model where its packages are installed; skips the test where they are not."""
    module = runpy.run_path(str(EXAMPLES / "_gemma.py"))
    if not module["has_gemma"]():
        pytest.skip(module["NOT_INSTALLED"])
    if not module["FOLDER"].is_dir():
        module["gemma_folder"]()
