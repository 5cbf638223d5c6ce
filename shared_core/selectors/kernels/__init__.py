"""Kernels of the NDPP: a row for each known item, or computed from the stored vectors."""

import os
from typing import Any

from ...errors import InvalidParameterError, KernelError, quoted
from .base import Kernel
from .learned import LinearKernel, LowRankKernel

__all__ = ["Kernel", "LinearKernel", "LowRankKernel"]


def as_kernel(given: Any) -> Kernel:
    """A kernel, or that of a file, whose path is given."""
    if not isinstance(given, (str, os.PathLike)):
        if not isinstance(given, Kernel):
            raise InvalidParameterError(
                f"kernel must be a LowRankKernel, a LinearKernel, the path of one, or None, got {quoted(given)}"
            )
        return given
    try:
        return LinearKernel.load(given)
    except KernelError:
        # The file holds a low-rank kernel. If it holds none at all, this call raises the error.
        return LowRankKernel.load(given)
