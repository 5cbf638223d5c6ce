"""Python runs this file at its start if this folder is on PYTHONPATH. numba then looks as if it were not installed.

``make fuzz`` sets PYTHONPATH for its last run. Child processes inherit it, Ray's workers among them.
"""

import sys

# ``import numba`` raises ModuleNotFoundError, and ``importlib.util.find_spec("numba")`` returns None.
sys.modules["numba"] = None  # type: ignore[assignment]
