"""A selection for each row of a table of queries: in one process, or on Ray (extra ``ray``). See docs/cluster.md."""

try:
    import pyarrow  # noqa: F401
except ImportError as error:
    raise ImportError('tables and Parquet files need pyarrow: pip install "setselect[batch]"') from error

from ._by_id import read_vectors_by_id
from ._output_folder import Summary
from .select_dataset import select_dataset, select_table

__all__ = ["Summary", "read_vectors_by_id", "select_dataset", "select_table"]
