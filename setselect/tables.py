"""A set for each row of a table of queries (extras ``batch`` and ``ray``); docs/cluster.md."""

from shared_core.batch.dataset import Summary, read_vectors_by_id, select_dataset, select_table

__all__ = ["Summary", "read_vectors_by_id", "select_dataset", "select_table"]
