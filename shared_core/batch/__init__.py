"""A set for each of many queries: from arrays here, from tables and files in :mod:`shared_core.batch.tables`."""

from ..selectors.selection import Selections
from .select_many import select_many, select_stream

__all__ = ["Selections", "select_many", "select_stream"]
