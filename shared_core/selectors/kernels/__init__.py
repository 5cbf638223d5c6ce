"""Kernels of the NDPP: a row for each known item, or computed from the stored vectors."""

import os
from typing import Any

from ...errors import KernelError
from .base import Kernel
from .linear import LinearKernel
from .low_rank import LowRankKernel

__all__ = ["Kernel", "LinearKernel", "LowRankKernel"]


def as_kernel(given: Any) -> Any:
    """The kernel of a file if ``given`` is its path; anything else as it is."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    try:
        return LinearKernel.load(given)
    except KernelError:
        # The file holds a low-rank kernel. If it holds none at all, this call raises the error.
        return LowRankKernel.load(given)
