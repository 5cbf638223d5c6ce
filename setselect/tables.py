"""A set for each row of a table of queries (extras ``batch`` and ``ray``); docs/cluster.md."""

from shared_core.batch.tables import Summary, TableSelector, select_dataset

__all__ = ["Summary", "TableSelector", "select_dataset"]
