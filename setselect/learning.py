"""Learning a kernel from examples that help together (extra ``train``); docs/learning.md."""

from shared_core.learning import *  # noqa: F403
from shared_core.learning import __all__ as __all__
