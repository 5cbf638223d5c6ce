"""Settings for all tests: none asks a model hub for files, and none sends usage data."""

import os
from importlib.util import find_spec

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ANONYMIZED_TELEMETRY"] = "False"  # of Chroma

collect_ignore = ["shared_core/selectors/_compiled.py"] if find_spec("numba") is None else []
