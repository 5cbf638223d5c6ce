"""What several tests of language models share; torch is imported only where it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """On tensors this small, threads that wait for each other cost 100 times the work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny causal language model; treat it as read-only."""
    from tests.benchmarks.tiny_lm import saved

    return saved(tmp_path_factory.mktemp("models") / "tiny")
