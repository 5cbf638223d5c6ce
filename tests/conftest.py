"""What concerns torch: which files need it, and a fixture for all tests of models."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

# These files import torch at their start. In an environment without it all other tests run.
_NEED_TORCH = {
    "shared_core/cli": ["train"],
    "shared_core/signals": ["embedding_models", "language_models", "perplexity"],
}
if find_spec("torch") is None:
    collect_ignore = [f"{folder}/test_{name}.py" for folder, names in _NEED_TORCH.items() for name in names]
    collect_ignore.append("shared_core/signals/completions_server.py")


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """On tensors this small, threads that wait for each other cost 100 times the work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
