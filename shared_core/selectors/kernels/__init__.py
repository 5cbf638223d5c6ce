"""Kernels of the NDPP: a row for each known item, or computed from the stored vectors."""

from .base import Kernel
from .linear import LinearKernel
from .low_rank import LowRankKernel

__all__ = ["Kernel", "LinearKernel", "LowRankKernel"]
