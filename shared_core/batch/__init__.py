"""A set for each of many queries: from arrays here, from tables and files in :mod:`shared_core.batch.dataset`."""

from .select_many import Selections, select_many, select_stream

__all__ = ["Selections", "select_many", "select_stream"]
